"""LightGBM: the text scores in LightGBM as the model does here."""

from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.errors import IncompatibleError
from exactrank.models.sum import sum_of
from tests.models.targets.engine_rows import FEATURES, as_data, forest, models, rows_near
from tests.models.targets.test_export_code import single_leaf
from tests.models.test_tree_ensemble import same


def lightgbm_scores(export, rows):
    return lgb.Booster(model_str=export.text).predict(rows.astype(np.float64), raw_score=True)


def without_tiny(rows):
    """LightGBM takes values up to 1e-35 for 0; steps do not."""
    return np.where(np.abs(rows) <= np.float32(1e-35), np.float32(0), rows)


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_scores_are_those_of_the_model(seed):
    known = models(seed)
    steps = known["thresholds"]
    for scorer in (known["trees"], steps, sum_of([steps, known["trees"]], [0.5, 2.0])):
        export, rows = er.export(scorer, "lightgbm"), rows_near(scorer, seed)
        if scorer is not known["trees"]:
            rows = without_tiny(rows)
        if not isinstance(scorer, er.models.Sum):
            np.testing.assert_array_equal(lightgbm_scores(export, rows), scorer.score(rows))
        assert export.check(as_data(rows)).beyond_rounding == 0


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(["keep", "zero", "mean"]))
def test_missing_values_are_what_the_model_takes_them_for(seed, missing):
    scorer = forest(seed, missing)
    export, rows = er.export(scorer, "lightgbm"), rows_near(scorer, seed, holes=0.3)
    np.testing.assert_array_equal(lightgbm_scores(export, rows), scorer.score(rows))
    filled = replace(forest(seed, "keep"), missing="mean", fill=np.array([0.5, -1.0, 2.0]))  # by which its nodes do not go
    np.testing.assert_array_equal(lightgbm_scores(er.export(filled, "lightgbm"), rows), filled.score(rows))


def test_the_text_is_read_back_as_the_same_trees():
    trained = forest(1)
    text = er.export(trained, "lightgbm").text
    assert same(er.models.TreeEnsemble.of_lightgbm(text).table, trained.table)
    assert er.models.TreeEnsemble.of_lightgbm(text).feature_names == trained.feature_names
    assert text.count("\nobjective=lambdarank\n") == text.count("[objective: lambdarank]") == 1


def categorical():
    rng = np.random.default_rng(0)
    rows = np.stack([rng.normal(size=200), rng.integers(0, 5, 200)], axis=1).astype(np.float32)
    data = er.RankingData.from_arrays(rows, np.isin(rows[:, 1], [1, 3]).astype(int), group=[10] * 20, feature_names=["a", "kind"])
    return er.LambdaMART(trees=5, leaves=4, min_documents=1, bags=0, categorical=["kind"]).fit(data).model_.scorer, data


def test_categorical_splits_stay():
    scorer, data = categorical()
    export = er.export(scorer, "lightgbm")
    assert same(er.models.TreeEnsemble.of_lightgbm(export.text).table, scorer.table)
    assert export.remarks == ()
    np.testing.assert_array_equal(lightgbm_scores(export, data.X), scorer.score(data.X))
    result = export.check(data)
    assert (result.largest, result.beyond_rounding) == (0.0, 0)
    with pytest.raises(IncompatibleError, match="categorical split, which only --to lightgbm can write"):
        er.export(scorer, "python")
    filled = replace(scorer, missing="mean", fill=np.array([0.5, 1.0]))
    assert er.export(filled, "lightgbm").remarks == ("the model fills missing values by missing='mean'; fill them before scoring",)


def test_treelite_reads_it(tmp_path):
    treelite = pytest.importorskip("treelite", reason="needs treelite")
    scorer = forest(3)
    rows = rows_near(scorer, 3)
    er.export(scorer, "lightgbm").save(tmp_path / "model.txt")
    model = treelite.frontend.load_lightgbm_model(tmp_path / "model.txt")
    result = treelite.gtil.predict(model, rows.astype(np.float64), pred_margin=True).ravel()
    np.testing.assert_allclose(result, scorer.score(without_tiny(rows)), atol=1e-12)


def test_what_is_not_trees_is_refused():
    for kind, says in {"linear": "weights of features", "network": "hidden units", "linear and trees": "weights of features"}.items():
        with pytest.raises(IncompatibleError, match=f"lightgbm cannot express {says}; train trees"):
            er.export(models(0)[kind], "lightgbm")
    with pytest.raises(IncompatibleError, match="has no weights, units or trees"):
        er.export(er.models.Thresholds((np.empty(0),), (np.empty(0),), ("a",)), "lightgbm")


def test_names_that_the_text_cannot_have_are_told():
    steps = er.models.Thresholds((np.array([0.5]), np.array([1.0])), (np.ones(1), np.ones(1)), ("fine", "a b"))
    export = er.export(steps, "lightgbm")
    assert "a feature called 'a b', so features are numbered" in export.remarks[0]
    assert lightgbm_scores(export, np.array([[0.5, 2.0], [0.75, 1.0]])).tolist() == [1.0, 1.0]


def test_steps_are_a_model_of_lightgbm_like_any_other():
    dumped = lgb.Booster(model_str=er.export(models(2)["thresholds"], "lightgbm").text).dump_model()
    assert (dumped["feature_names"], dumped["objective"]) == (list(FEATURES), "lambdarank")


def test_a_tree_of_a_single_leaf_is_written_too():
    steps = er.models.Thresholds((np.array([0.5]),), (np.ones(1),), ("a",))
    both = er.models.Sum((steps, er.models.TreeEnsemble(single_leaf(), ("a",))), np.array([1.0, 2.0]))
    export, rows = er.export(both, "lightgbm"), np.array([[0.5], [0.75]], np.float32)
    assert lightgbm_scores(export, rows).tolist() == both.score(rows).tolist() == [1.0, 2.0]
