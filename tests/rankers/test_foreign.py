"""Estimators of other libraries as rankers, alone and in a blend."""

import json

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Lars, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import exactrank as er
from exactrank.learning.training.selection import WINDOW
from exactrank.rankers.foreign import Foreign
from exactrank.rankers.training_data import in_content_order
from tests.rankers.test_rankers import judged, rows


def catboost(**settings):
    return pytest.importorskip("catboost").CatBoostRanker(**settings)


#: By what is made: an estimator with that many trees.
TREES = {
    "lightgbm": lambda trees=15, **more: lgb.LGBMRanker(n_estimators=trees, min_child_samples=2, verbose=-1, **more),
    "xgboost": lambda trees=15, **more: xgb.XGBRanker(n_estimators=trees, **more),
    "catboost": lambda trees=15, **more: catboost(iterations=trees, **more),
}
LINEAR = {"ridge": Ridge, "scaled": lambda: make_pipeline(StandardScaler(), Ridge())}
EVERY = pytest.mark.parametrize("made", [*TREES.values(), *LINEAR.values()], ids=[*TREES, *LINEAR])
EVERY_TREE = pytest.mark.parametrize("made", TREES.values(), ids=TREES)


def foreign(estimator, **more):
    return Foreign(measure="nDCG@5", estimator=estimator, threads=1, **more)


@EVERY
def test_it_learns_what_the_estimator_learns(made):
    train, test = judged(queries=60, noise=0.1), judged(queries=60, noise=0.1, seed=2)
    estimator = made()
    ranker = foreign(estimator).fit(train)
    assert ranker.score(test) > 0.9
    with pytest.raises(Exception, match=r"(?i)fit|trained"):
        estimator.predict(test.X)  # it was cloned, and stays as it is


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_queries_are_given_as_groups(name):
    data = in_content_order(judged(queries=20))  # as rankers train on it: where scores tie, these libraries go by the order of rows
    by_hand = TREES[name](random_state=0, n_jobs=1).fit(data.X, data.y, group=data.sizes)
    theirs = er.from_estimator(by_hand).predict(data)
    assert foreign(TREES[name]()).fit(data).predict(data) == pytest.approx(theirs, rel=1e-9)


@EVERY_TREE
def test_validation_data_says_how_many_trees_to_keep(made):
    train, valid = judged(queries=20, noise=2.0), judged(queries=20, noise=2.0, seed=1)
    whole, chosen = (foreign(made(40)).fit(train, valid=part).model_.scorer for part in (None, valid))
    sums, reached = np.zeros(valid.n_documents), []
    for tree in whole.single_trees():
        sums = sums + tree.score(valid.X)
        reached.append(er.evaluate(valid, sums, "nDCG(ties='pessimistic')@5").means["nDCG(ties='pessimistic')@5"])
    smooth = [np.mean(reached[max(0, number - WINDOW + 1) : number + 1]) for number in range(len(reached))]
    assert chosen.n_trees == 1 + int(np.argmax(smooth)) < whole.n_trees
    assert chosen.score(valid.X) == pytest.approx(sum(tree.score(valid.X) for tree in list(whole.single_trees())[: chosen.n_trees]))


@EVERY_TREE
def test_an_estimator_that_stops_by_itself_gets_validation_data(made, recwarn):
    train, valid = judged(queries=20, noise=2.0), judged(queries=20, noise=2.0, seed=1)
    stopped = foreign(made(200, early_stopping_rounds=3)).fit(train, valid=valid).model_.scorer
    assert stopped.n_trees < 100
    assert not [warning for warning in recwarn if "eval_set" in str(warning.message)]


@EVERY
def test_query_weights_count(made):
    X, y = np.tile([[1.0], [0.0]], (40, 1)), np.r_[np.tile([1, 0], 20), np.tile([0, 1], 20)]
    for heavy in (0, 1):
        weight = np.where(np.arange(40) // 20 == heavy, 3.0, 1.0)
        ranker = foreign(made()).fit(X, y, group=[2] * 40, query_weight=weight)
        assert np.sign(np.diff(ranker.predict([[0.0], [1.0]])))[0] == (1 if heavy == 0 else -1)


def test_an_estimator_without_weights_refuses_them():
    with pytest.raises(er.errors.DataError, match="Lars takes no weights, and the data has some; drop them"):
        foreign(Lars()).fit([[1.0], [0.0], [1.0], [0.0]], [1, 0, 0, 1], group=[2, 2], query_weight=[3.0, 1.0])


@EVERY
def test_a_blend_of_one_estimator_is_one_model_that_is_saved_as_data(made, tmp_path):
    data = judged(queries=12, noise=1.0)
    blend = er.Blend("nDCG@5", members=[made()], bags=3, threads=1).fit(data)
    assert blend.model_.scorer.kind == ("linear" if made in LINEAR.values() else "trees")
    assert np.isfinite(blend.estimate_.mean)
    blend.save(tmp_path / "m.json")
    assert np.array_equal(er.load(tmp_path / "m.json").predict(data), blend.predict(data))


def test_a_blend_of_ours_and_others(tmp_path):
    data, test = judged(queries=40, noise=1.0), judged(queries=40, noise=1.0, seed=2)
    members = [er.LambdaMART(trees=10, min_documents=2), TREES["lightgbm"](), TREES["xgboost"](), Ridge(), er.Ridge()]
    blend = er.Blend("nDCG@5", members=members, bags=3, threads=1).fit(data)
    assert blend.model_.training["chosen"]["members"] == [
        "LambdaMART(min_documents=2, trees=10)",
        "lightgbm.LGBMRanker(min_child_samples=2, n_estimators=15, verbose=-1)",
        "xgboost.XGBRanker(n_estimators=15)",
        "sklearn.Ridge()",
        "Ridge()",
    ]
    assert blend.score(test) > 0.8
    blend.save(tmp_path / "m.json")
    assert [part["kind"] for part in json.loads((tmp_path / "m.json").read_text())["scorer"]["parts"]] == ["trees", "linear"]
    again = er.Blend("nDCG@5", members=members, bags=3, threads=1).fit(data)
    assert np.array_equal(again.predict(test), blend.predict(test))


@EVERY
def test_scores_out_of_fold_know_nothing_of_their_query(made):
    """Other grades of a query change no score out of fold of its own documents, but some of others."""
    X, y, qid = rows(queries=12, noise=1.0)
    other = y.copy()
    other[qid == 3] = y.max() - y[qid == 3]
    assert len(np.unique(y[qid == 3])) > 1
    before, after = (foreign(made(), bags=4).fit(X, grades, qid=qid).oof_ for grades in (y, other))
    assert after[qid == 3] == pytest.approx(before[qid == 3], rel=1e-6)
    assert after[qid != 3] != pytest.approx(before[qid != 3], rel=1e-6)


def test_a_blend_of_others_is_resumed(monkeypatch):
    monkeypatch.setattr("exactrank.learning.training.run.SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    monkeypatch.setattr("exactrank.learning.training.run.TIMES_BETWEEN_CHECKPOINTS", -1.0)
    data, models = judged(queries=12, noise=1.0), []
    make_blend = lambda: er.Blend("nDCG@5", members=[TREES["lightgbm"](), Ridge()], bags=3, threads=1)  # noqa: E731
    whole = make_blend().fit(data, checkpoint=models.append)
    resumed = make_blend().fit(data, resume=models[len(models) // 2])
    assert np.array_equal(resumed.predict(data), whole.predict(data))


def test_members_that_fail_are_left_out_and_said():
    data = judged(queries=12, noise=1.0)
    with pytest.warns(UserWarning, match=r"sklearn.RandomForestRegressor\(n_estimators=3\) is left out of the blend: .* cannot be read"):
        blend = er.Blend("nDCG@5", members=[er.Ridge(), RandomForestRegressor(n_estimators=3)], bags=3).fit(data)
    assert blend.model_.scorer.kind == "linear"
    with pytest.raises(er.errors.IncompatibleError, match="a RandomForestRegressor cannot be read"):
        er.Blend(members=[RandomForestRegressor(n_estimators=3)], bags=3).fit(data)
    half = er.RankingData.from_arrays(data.X, data.y + 0.5, group=data.sizes)
    with pytest.raises(er.errors.IncompatibleError, match=r"lightgbm.LGBMRanker\(.*\) cannot be trained here: LightGBMError: .*label"):
        er.Blend(members=[TREES["lightgbm"]()], bags=3).fit(half)


@pytest.mark.parametrize("member", [3, object(), lgb.LGBMRanker])
def test_what_is_no_estimator_is_refused(member):
    with pytest.raises(er.errors.SettingError, match=r"cannot be blended; give rankers, .*, or estimators of LightGBM"):
        er.Blend(members=[member]).fit(judged())


def test_missing_values_go_to_trees_or_are_filled():
    X, y, qid = rows(queries=24)
    X[::5, 1] = np.nan
    ranker = er.Blend("nDCG@5", members=[TREES["lightgbm"](), TREES["xgboost"]()], missing="keep", bags=3, threads=1).fit(X, y, qid=qid)
    assert ranker.score(X, y, qid=qid) > 0.8
    filled = er.Blend("nDCG@5", members=[Ridge(), TREES["xgboost"]()], missing="mean", bags=3, threads=1).fit(X, y, qid=qid)
    by_hand = np.where(np.isnan(X), np.nanmean(X.astype(np.float64), axis=0).astype(np.float32), X)
    assert np.array_equal(filled.predict(X), filled.predict(by_hand))


def test_large_features_are_read_as_they_are():
    X, y, qid = rows(queries=24)
    far = X.astype(np.float64) + 2.0**30
    for made in (TREES["lightgbm"], LINEAR["scaled"]):
        ranker = foreign(made()).fit(far, y, qid=qid)
        assert ranker.model_.scorer.offset is not None
        assert ranker.score(far, y, qid=qid) > 0.85
