"""The number of forests, and their shape, where the settings leave them open: several on little data, one wherever that cannot be."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import exactrank as er
from exactrank.rankers import boosted
from tests.rankers.test_rankers import judged, mean

KINDS = {"mart": er.MART, "lambdamart": er.LambdaMART, "directrank-trees": er.DirectRankTrees}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
QUICK = {"trees": 6, "min_documents": 2, "threads": 1}
ONE = {"bags": 0, "shape": "best-first"}
TEN = {"bags": 10, "bagging": "cross-fit"}
TEN_SYMMETRIC = {"bags": 10, "shape": "symmetric"}


def fitted(data, kind="lambdamart", valid=None, **settings):
    return KINDS[kind]("nDCG@5", **(QUICK | settings)).fit(data, valid=valid)


def same(first, second):
    return first.model_.scorer.to_record() == second.model_.scorer.to_record()


@EVERY_KIND
def test_little_data_trains_ten_cross_fitted_forests_of_symmetric_trees(kind):
    data, valid = judged(queries=24, noise=1.0), judged(queries=10, noise=1.0, seed=1)
    result, asked = fitted(data, kind, valid), fitted(data, kind, valid, shape="symmetric", **TEN)
    assert same(result, asked)
    assert result.estimate_.mean == mean("nDCG@5", er.RankingData.from_arrays(
        np.concatenate([data.X, valid.X]), np.concatenate([data.y, valid.y]), group=[*data.sizes, *valid.sizes]
    ), np.concatenate([result.oof_, result.valid_oof_]))  # fmt: skip
    assert (result.bags, result.shape, result.model_.params["bags"]) == (None, None, None), "settings stay open"


@EVERY_KIND
@pytest.mark.parametrize("held_out", [False, True])
def test_much_data_trains_one_forest_of_best_first_trees(kind, held_out, monkeypatch):
    monkeypatch.setattr(boosted, "MANY_QUERIES", 24)
    data, valid = judged(queries=24, noise=1.0), judged(queries=10, noise=1.0, seed=1) if held_out else None
    result = fitted(data, kind, valid)
    assert same(result, fitted(data, kind, valid, **ONE))
    assert not hasattr(result, "oof_")
    assert result.model_.training["valid"] == (result.score(valid) if held_out else None)


def test_the_training_queries_alone_decide(monkeypatch):
    """Those of the validation data, from which cross-fitted forests learn too, do not count."""
    monkeypatch.setattr(boosted, "MANY_QUERIES", 26)
    data, valid = judged(queries=24, noise=1.0), judged(queries=10, noise=1.0, seed=1)
    assert same(fitted(data, valid=valid), fitted(data, valid=valid, shape="symmetric", **TEN))


def test_queries_of_a_single_grade_do_not_count():
    data = judged(queries=30, noise=1.0)
    one_grade = np.repeat(np.arange(30) >= boosted.FEW_MIXED - 1, data.sizes)
    few = er.RankingData.from_arrays(data.X, np.where(one_grade, 1, data.y), group=data.sizes)
    enough = er.RankingData.from_arrays(data.X, np.where(one_grade & (np.arange(240) >= 160), 1, data.y), group=data.sizes)
    assert same(fitted(few), fitted(few, **ONE))
    assert same(fitted(enough), fitted(enough, shape="symmetric", **TEN))


def pairs(queries, mixed):
    """Queries of two documents, of which the first ``mixed`` queries have different grades."""
    y = np.column_stack([np.arange(queries) < mixed, np.zeros(queries)]).ravel()
    return er.RankingData.from_arrays(np.arange(2 * queries, dtype=np.float32)[:, None], y, group=[2] * queries)


@EVERY_KIND
@pytest.mark.parametrize(
    ("queries", "mixed", "expected"),
    [
        (1_999, 1_999, TEN_SYMMETRIC),
        (2_000, 2_000, ONE),
        (1_999, 20, TEN_SYMMETRIC),
        (1_999, 19, ONE),
        (20, 20, TEN_SYMMETRIC),
        (1, 1, ONE),
    ],
)
def test_the_last_sizes_with_ten_forests_and_the_first_with_one(kind, queries, mixed, expected):
    data = pairs(queries, mixed)
    assert KINDS[kind]().resolve_auto(data).items() >= expected.items()
    assert KINDS[kind](bags=2).resolve_auto(data)["shape"] == "best-first"
    assert "shape" not in KINDS[kind](shape="symmetric").resolve_auto(data)


@EVERY_KIND
@pytest.mark.parametrize("queries", [1, 2, 20, 60])
def test_fewer_documents_than_leaves_need_end_with_a_reason(kind, queries):
    """With defaults: two documents per query, of which a tree sees those of some queries."""
    data = pairs(queries, queries)
    if queries < 60:
        with pytest.warns(ConvergenceWarning, match="no split is possible.*lower min_documents"):
            assert not KINDS[kind](threads=1).fit(data).predict(data).any()
    else:
        assert KINDS[kind](threads=1, trees=5).fit(data).predict(data).any()


def test_data_in_several_files_trains_one_forest(tmp_path):
    data = judged(queries=24, noise=1.0)
    for number, part in enumerate(np.split(np.arange(24), 2)):
        er.write(data.take_queries(part), tmp_path / f"{number}.xr")
    assert same(fitted(er.read_shards([tmp_path / "0.xr", tmp_path / "1.xr"])), fitted(data, **ONE))


def test_trees_are_best_first_where_other_settings_ask_for_it():
    data = judged(queries=24, noise=1.0)
    halves = {"node_features": 0.5, "categorical": ()}
    assert same(fitted(data, **halves), fitted(data, shape="best-first", **TEN, **halves))
    kinds = er.RankingData.from_arrays(np.round(np.abs(data.X)), data.y, group=data.sizes)
    assert same(fitted(kinds, categorical=["x0"]), fitted(kinds, categorical=["x0"], shape="symmetric", **TEN)), "categories do not"
    assert same(fitted(data, bags=3), fitted(data, bags=3, shape="best-first")), "a number of bags says that the settings are chosen"
    with pytest.raises(er.errors.SettingError, match=r"node_features=0\.5 has no effect with shape='symmetric'"):
        fitted(data, shape="symmetric", node_features=0.5)


@pytest.mark.parametrize("kind", [er.LambdaMART, er.DirectRank])
def test_what_goes_on_from_a_model_is_one_model(kind):
    data, valid = judged(queries=24, noise=1.0), judged(queries=10, noise=1.0, seed=1)
    few = QUICK if kind is er.LambdaMART else {"threads": 1}
    before = kind("nDCG@5", **few).fit(judged(queries=24, seed=2)).model_
    ranker = kind("nDCG@5", **few).fit(data, start=before, valid=valid)
    assert same(ranker, kind("nDCG@5", bags=0, **few).fit(data, start=before, valid=valid))
    assert ranker.model_.training["valid"] == pytest.approx(ranker.score(valid), abs=1e-12)
    again = kind("nDCG@5", **few).fit(data, start=before, valid=valid, resume=ranker.model_)
    assert same(ranker, again)


def test_a_break_is_taken_up(monkeypatch):
    monkeypatch.setattr("exactrank.learning.training.run.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    monkeypatch.setattr("exactrank.learning.training.run.TIMES_BETWEEN_CHECKPOINTS", 0)
    data, models = judged(queries=24, noise=1.0), []
    ranker = er.LambdaMART("nDCG@5", **QUICK)
    whole = ranker.fit(data, checkpoint=models.append).model_
    again = er.LambdaMART("nDCG@5", **QUICK).fit(data, resume=models[len(models) // 2])
    assert again.model_.scorer.to_record() == whole.scorer.to_record()
    with pytest.raises(er.errors.IncompatibleError, match="trees=6, not 9, which may change only for a single forest"):
        er.LambdaMART("nDCG@5", **(QUICK | {"trees": 9})).fit(data, resume=whole)


def test_members_of_a_blend_are_single_forests():
    data = judged(queries=24, noise=1.0)
    open_bags, first = (f"lambdamart(trees=6, min_documents=2{more})" for more in ("", ", bags=0"))
    assert same(*(er.Blend("nDCG@5", members=members, bags=3, threads=1).fit(data) for members in (open_bags, first)))


def test_forests_of_draws_that_would_be_alike_are_refused_where_the_number_is_open():
    alike = {"bagging": "draws", "query_fraction": 1.0, "feature_fraction": 1.0}
    with pytest.raises(er.errors.SettingError, match="the forests of 10 bags would be the same"):
        fitted(judged(queries=24, noise=1.0), **alike)
    with pytest.raises(er.errors.SettingError, match=r"bagging='draws' has no effect with bags=0 \(its value here\)"):
        fitted(judged(queries=12, noise=1.0), **alike)


def test_the_mean_is_one_forest_that_exports():
    data = judged(queries=24, noise=1.0)
    model = fitted(data).model_
    assert isinstance(model.scorer, er.models.TreeEnsemble)
    assert model.scorer.n_trees > 10
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.Booster(model_str=er.export(model, "lightgbm").text)
    np.testing.assert_allclose(booster.predict(data.X, raw_score=True), model.predict(data), rtol=0, atol=1e-12)
