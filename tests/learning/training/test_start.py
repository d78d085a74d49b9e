"""Training that goes on from a model, on the same data or on other data."""

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import exactrank as er
from exactrank.rankers import RANKERS
from tests.models.test_tree_ensemble import same
from tests.rankers.test_rankers import judged, quick, rows

TREES = ["mart", "lambdamart", "directrank-trees"]
PARAMETERS = ["ranknet", "lambdarank", "listnet", "listmle", "rankcosine", "approxndcg", "smoothrank", "spsarank", "coordinate-ascent"]
NETWORKS = ["ranknet", "lambdarank", "listnet", "spsarank"]
#: They measure the size of scores by what they begin from.
UP_TO_SIZE = {"smoothrank", "coordinate-ascent"}


def interrupted(ranker, data, start, **more):
    """The ranker, stopped before its first step."""

    def listener(progress):
        raise KeyboardInterrupt

    with pytest.warns(er.errors.InterruptedWarning):
        return ranker.fit(data, start=start, progress=listener, **more)


@pytest.mark.parametrize(("name", "more"), [(name, {}) for name in [*TREES, *PARAMETERS]] + [(name, {"hidden": 3}) for name in NETWORKS])
def test_no_more_steps_give_the_model_back(name, more):
    before, other = quick(name, **more).fit(judged()), judged(seed=7)
    ours, theirs = interrupted(quick(name, **more), other, before.model_).predict(other), before.predict(other)
    if name in UP_TO_SIZE:
        ours = ours * (theirs @ theirs) / (ours @ theirs)
    assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12)


def test_directrank_goes_on_where_there_are_no_bags():
    before = er.DirectRank("nDCG@5", bags=0, max_iter=1).fit(judged())
    assert interrupted(er.DirectRank("nDCG@5", bags=0), judged(seed=7), before.model_).weights_ == pytest.approx(before.weights_)
    further = er.DirectRank("nDCG@5", bags=0).fit(judged(), start=before.model_)
    assert further.score(judged()) >= before.score(judged())
    assert np.array_equal(er.DirectRank("nDCG@5").fit(judged(), start=before.model_).weights_, further.weights_), "open bags are none then"
    with pytest.raises(er.errors.SettingError, match="start is one model, and 20 bags are to be trained; give bags=0"):
        er.DirectRank("nDCG@5", bags=20).fit(judged(), start=before.model_)


@pytest.mark.parametrize("name", TREES)
def test_more_trees_on_the_same_data_are_those_of_one_run(name):
    """As many as both keep: where selection begins with the start, it does not know the steps before."""
    few, many = (quick(name, trees=trees).fit(judged(), valid=judged(seed=1)).model_ for trees in (8, 20))
    kept = few.scorer.n_trees
    further = quick(name, trees=20 - kept).fit(judged(), valid=judged(seed=1), start=few).model_
    both = min(further.scorer.n_trees, many.scorer.n_trees)
    assert both > 1
    assert same(*(model.scorer.table.first(both) for model in (further, many)))
    assert further.data != many.data, "the model says that it has a start"


@pytest.mark.parametrize("name", TREES)
def test_scores_are_those_of_the_model_plus_those_of_the_trees_that_were_added(name):
    before, other = quick(name, trees=6).fit(judged()).model_, judged(seed=7)
    after = quick(name, trees=5).fit(other, start=before).model_
    assert before.scorer.n_trees < after.scorer.n_trees <= before.scorer.n_trees + 5
    assert same(after.scorer.table.first(1), before.scorer.table.first(1))
    trees = list(after.scorer.single_trees())[before.scorer.n_trees :]
    added = sum(tree.score(other.X) for tree in trees)
    assert after.predict(other) == pytest.approx(before.predict(other) + added, rel=1e-9, abs=1e-9)
    assert after.scorer.first(before.scorer.n_trees).score(other.X) == pytest.approx(before.predict(other))


@pytest.mark.parametrize("name", ["lambdarank", "listnet", "spsarank", "coordinate-ascent"])
def test_training_begins_at_the_model(name):
    before, other = quick(name).fit(judged()), judged(seed=7)
    further, anew = (quick(name).fit(other, start=start) for start in (before.model_, None))
    assert further.history_[0].value == before.score(other) != anew.history_[0].value
    assert further.score(other) >= before.score(other)


def test_a_network_is_standardized_anew():
    X, y, qid = rows()
    before = er.LambdaRank(hidden=3, max_iter=5).fit(X, y, qid=qid)
    far = er.RankingData.from_arrays(X.astype(np.float64) * 3 + 1e6, y, qid=qid, feature_names=[f"x{j}" for j in range(4)])
    near = er.RankingData.from_arrays(X, y, qid=qid)
    after = interrupted(er.LambdaRank(hidden=3, max_iter=5), far, before.model_)
    assert after.predict(near) == pytest.approx(before.predict(near), rel=1e-6)


def test_offsets_of_other_data_move_the_trees():
    X, y, qid = rows()
    wide = X.astype(np.float64) + 2.0**30
    before = quick("lambdamart", trees=5).fit(wide, y, qid=qid)
    assert before.model_.scorer.offset is not None
    after = quick("lambdamart", trees=5).fit(wide + 0.25, y, qid=qid, start=before.model_)
    small = quick("lambdamart", trees=5).fit(X, y, qid=qid, start=before.model_)
    for left in (after, small):
        first = er.models.TreeEnsemble(left.model_.scorer.table.first(before.model_.scorer.n_trees), left.model_.scorer.feature_names)
        ours = first.score(X, offset=np.full(4, 2.0**30))
        assert np.corrcoef(ours, before.predict(wide))[0, 1] > 0.999


def test_what_stands_for_missing_values_stays():
    X, y, qid = rows()
    X[::7, 1] = np.nan
    before = er.ListNet(missing="mean", max_iter=5).fit(X, y, qid=qid)
    after = interrupted(er.ListNet(missing="mean", max_iter=5), er.RankingData.from_arrays(2 * X + 1, y, qid=qid), before.model_)
    assert after.predict(X) == pytest.approx(before.predict(X), rel=1e-9)
    with pytest.raises(er.errors.SettingError, match="missing='zero', but the model to start from has 'mean'; give the same"):
        er.ListNet(missing="zero").fit(X, y, qid=qid, start=before.model_)


def test_features_are_matched_by_name():
    X, y, qid = rows()
    frame = pd.DataFrame(X, columns=list("abcd"))
    before = quick("lambdamart").fit(frame, y, qid=qid)
    turned = frame[list("dcba")]
    ours, theirs = (quick("lambdamart").fit(one, y, qid=qid, start=before.model_) for one in (turned, frame))
    assert np.array_equal(ours.predict(turned), theirs.predict(frame))
    by_place = quick("lambdamart").fit(X, y, qid=qid, start=before.model_)
    assert np.array_equal(by_place.predict(X), theirs.predict(frame))
    with pytest.raises(er.errors.IncompatibleError, match="in another order; give valid as a RankingData or a frame too"):
        quick("lambdamart").fit(turned, y, qid=qid, start=before.model_, valid=(X, y, qid))


@pytest.mark.parametrize("estimator", [lgb.LGBMRanker(n_estimators=5, verbose=-1), xgb.XGBRanker(n_estimators=5)])
def test_models_of_other_libraries_are_gone_on_from(estimator):
    X, y, qid = rows()
    start = er.from_estimator(estimator.fit(X, y, group=[8] * 12))
    after = er.LambdaMART("nDCG@5", trees=5, min_documents=1).fit(X, y, qid=qid, start=start)
    first = er.models.TreeEnsemble(after.model_.scorer.table.first(start.scorer.n_trees))
    assert after.model_.scorer.n_trees > start.scorer.n_trees
    assert first.score(X) == pytest.approx(start.predict(X), rel=1e-6)


def test_a_run_from_a_start_is_resumed_with_it(monkeypatch):
    monkeypatch.setattr("exactrank.learning.training.run.SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    monkeypatch.setattr("exactrank.learning.training.run.TIMES_BETWEEN_CHECKPOINTS", -1.0)
    for name in ("lambdamart", "lambdarank"):
        start, models = quick(name).fit(judged(seed=7)).model_, []
        whole = quick(name, seed=1).fit(judged(), start=start, checkpoint=models.append)
        resumed = quick(name, seed=1).fit(judged(), start=start, resume=models[len(models) // 2])
        assert np.array_equal(resumed.predict(judged()), whole.predict(judged()))
        with pytest.raises(er.errors.IncompatibleError, match="the model was trained with data="):
            quick(name, seed=1).fit(judged(), resume=models[0])


@pytest.mark.parametrize("name", [name for name in RANKERS if not RANKERS[name].takes.start])
def test_rankers_that_begin_anew_say_so(name):
    with pytest.raises(er.errors.IncompatibleError, match="begins anew on any data, so it takes no start; leave it out"):
        quick(name).fit(judged(), start=quick("ridge").fit(judged()).model_)


@pytest.mark.parametrize(
    ("ranker", "start", "message"),
    [
        (er.LambdaMART(), er.Ridge(), "LambdaMART goes on from a trees model, and the start is a linear model"),
        (er.ListNet(), er.MART(trees=2), "ListNet goes on from a linear or network model, and the start is a trees model"),
        (er.ListNet(hidden=3), er.Ridge(), "the start.*a linear model, and a network of 3 units is to be trained; give hidden=None"),
        (er.ListNet(hidden=3), er.ListNet(hidden=4, max_iter=1), "a network of 4 units, and a network of 3 units .* give hidden=4"),
        (er.ListNet(), er.ListNet(hidden=4, max_iter=1), "a network of 4 units, and a linear model .* give hidden=4"),
        (er.MART(bags=3), er.MART(trees=2), "start is one model, and 3 bags are to be trained; give bags=0"),
        (er.LambdaRank(start="random"), er.Ridge(), "start='random' is set, and fit got a model to start from; leave out one of them"),
    ],
)
def test_starts_that_do_not_go_together_are_refused(ranker, start, message):
    with pytest.raises(er.errors.ExactRankError, match=message.replace("the start.*", "the model to start from is ")):
        ranker.fit(judged(), start=start.fit(judged()).model_)


def test_other_features_are_refused():
    start = er.Ridge().fit(judged(features=3)).model_
    with pytest.raises(er.errors.IncompatibleError, match="the data has 4 features, and the model to start from has 3; give the same ones"):
        er.ListNet().fit(judged(), start=start)
    X, y, qid = rows()
    named = er.Ridge().fit(pd.DataFrame(X, columns=list("abcd")), y, qid=qid).model_
    with pytest.raises(er.errors.IncompatibleError, match="other features than the model to start from: it lacks a, b"):
        er.ListNet().fit(pd.DataFrame(X, columns=list("wxyz")), y, qid=qid, start=named)


def test_a_start_keeps_its_levels():
    """Categories are read by the levels of the model to start from, whatever the codes of the new data; what is new counts as missing."""
    rng = np.random.default_rng(4)
    worth = {"amber": 2, "blue": 0, "cyan": 1, "dark": 0}

    def frame(colors):
        color = rng.choice(colors, 200)
        grades = [worth[name] for name in color]
        return pd.DataFrame({"query_id": np.repeat(np.arange(20), 10), "x": rng.normal(size=200), "color": color, "relevance": grades})

    old, new = (er.RankingData.from_frame(frame(colors)) for colors in (["amber", "blue", "cyan"], ["blue", "cyan", "dark"]))
    before = er.LambdaMART(trees=10, missing="keep", bags=0).fit(old)
    after = er.LambdaMART(trees=10, missing="keep", bags=0).fit(new, start=before.model_)
    assert old.levels != new.levels
    assert after.model_.scorer.levels == before.model_.scorer.levels
    assert before.score(old) == 1.0
    assert after.score(new) == 1.0  # of blue, cyan and dark the middle one is best, though the two sets have other codes for it
