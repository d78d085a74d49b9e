"""Exports to ONNX, by the real ONNX Runtime: double trees to the bit, all else within rounding, at the neighbors of every threshold."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.errors import IncompatibleError
from exactrank.models.targets.onnx import _Graph
from exactrank.models.targets.plain import plain
from exactrank.models.tree_table import TreeTable
from tests.models.targets.test_export import FEATURES, data_of, rows_of, scorers

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
FORMS = [(ml_opset, numbers) for ml_opset in (5, 3) for numbers in ("double", "float")]
LARGEST = np.finfo(np.float32).max  #: infinite features are refused before any model sees them
seeds = st.integers(0, 10**6)


def adversarial(scorer, seed, holes=False):
    """Rows with each threshold's float32 neighbors, and odd values, in the place of its feature."""
    terms, rows = plain(er.Model(scorer)), []
    odd = np.array([0.0, -0.0, 1e-45, -1e-45, 1e-38, 3e38, -3e38, *([np.nan] if holes else [])], np.float32)
    for tree in terms.trees:
        for feature, threshold in zip(tree.feature, tree.threshold, strict=True):
            near = np.float32(threshold)
            values = [np.nextafter(near, -LARGEST), near, np.nextafter(near, LARGEST), *odd]
            some = rows_of(seed, len(values), 0.2 if holes else 0.0)
            some[:, feature] = values
            rows.append(some)
    return np.concatenate([rows_of(seed), *rows])


def as_data(rows):
    return er.RankingData.from_arrays(rows, np.arange(len(rows)) % 3, group=[len(rows)], feature_names=FEATURES)


def runtime_scores(content, rows, threads=1):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(content, options).run(["score"], {"x": rows})[0]


@settings(max_examples=20)
@given(seeds)
def test_double_trees_and_steps_score_to_the_bit(seed):
    for scorer in scorers(seed)[2:4]:
        rows = adversarial(scorer, seed)
        export = er.export(scorer, "onnx")
        np.testing.assert_array_equal(runtime_scores(export.content, rows.astype(np.float64))[:, 0], scorer.score(rows))


@settings(max_examples=20)
@given(seeds, st.sampled_from(["keep", "zero", "mean"]))
def test_missing_values_go_where_the_model_sends_them(seed, missing):
    data = data_of(seed, holes=0.3)
    trees = er.LambdaMART(trees=4, leaves=4, min_documents=1, bags=0, missing=missing).fit(data).model_.scorer
    rows = adversarial(trees, seed, holes=True)
    np.testing.assert_array_equal(runtime_scores(er.export(trees, "onnx").content, rows.astype(np.float64))[:, 0], trees.score(rows))
    older = runtime_scores(er.export(trees, "onnx", ml_opset=3).content, rows.astype(np.float64))[:, 0]
    np.testing.assert_allclose(older, trees.score(rows), rtol=1e-6, atol=1e-6)
    if missing != "keep":
        for ranker in (er.Ridge(missing=missing), er.LambdaRank(hidden=2, max_iter=2, bags=0, missing=missing)):
            model = ranker.fit(data).model_
            for ml_opset, numbers in FORMS:
                export = er.export(model, "onnx", ml_opset=ml_opset, numbers=numbers)
                assert export.check(as_data(rows_of(seed + 1, holes=0.3))).beyond_rounding == 0


@settings(max_examples=10)
@given(seeds)
def test_every_kind_and_form_is_within_rounding(seed):
    for scorer in scorers(seed):
        data = as_data(np.clip(adversarial(scorer, seed), -1e3, 1e3))
        for ml_opset, numbers in FORMS:
            export = er.export(scorer, "onnx", ml_opset=ml_opset, numbers=numbers)
            onnx.checker.check_model(onnx.load_from_string(export.content), full_check=True)
            result = export.check(data, "nDCG@10")
            assert result.beyond_rounding == 0
            if scorer.kind in ("trees", "thresholds"):
                message = [float(remark.rpartition(" ")[2]) for remark in export.remarks if "at most" in remark]
                assert result.largest <= (message or [0.0])[0]


def test_thresholds_that_are_rounded_to_nearest_are_noticed(monkeypatch):
    """What everybody does sends rows down another branch; the tests above would see it."""
    scorer = scorers(0)[3]
    data = as_data(np.clip(adversarial(scorer, 0), -1e3, 1e3))
    nearest = lambda graph, trees: np.concatenate([tree.threshold for tree in trees]).astype(graph.number)  # noqa: E731
    assert er.export(scorer, "onnx", numbers="float").check(data, "nDCG@10").beyond_rounding == 0
    monkeypatch.setattr(_Graph, "thresholds", nearest)
    assert er.export(scorer, "onnx", numbers="float").check(data, "nDCG@10").beyond_rounding > 0


def test_a_leaf_and_a_node_below_a_root_have_different_numbers():
    """ONNX Runtime 1.21 to 1.23 takes such a tree for a single leaf."""
    for seed in range(20):
        trees = er.LambdaMART(trees=9, leaves=5, min_documents=1, bags=0, seed=seed).fit(data_of(seed)).model_.scorer
        given = {one.name: one for one in onnx.load_from_string(er.export(trees, "onnx").content).graph.node[0].attribute}
        for root in given["tree_roots"].ints:
            assert given["nodes_truenodeids"].ints[root] != given["nodes_falsenodeids"].ints[root]


@pytest.mark.parametrize(("ml_opset", "numbers"), FORMS)
@pytest.mark.parametrize("kind", range(6))
def test_any_number_of_documents(kind, ml_opset, numbers):
    scorer = scorers(1)[kind]
    content = er.export(scorer, "onnx", ml_opset=ml_opset, numbers=numbers).content
    rows = rows_of(2, 70).astype(np.float64 if numbers == "double" else np.float32)
    whole = runtime_scores(content, rows)
    assert whole.dtype == rows.dtype
    for count in (0, 1, 2, 69):
        some = runtime_scores(content, rows[:count])
        assert some.shape == (count, 1)
        np.testing.assert_allclose(some, whole[:count], rtol=1e-6, atol=1e-6)


def test_a_tree_of_one_leaf():
    data = er.RankingData.from_arrays(rows_of(0, 12), np.arange(12) % 2, group=[6, 6], feature_names=FEATURES)
    no_splits = np.empty(0)
    table = TreeTable(data.n_features, [0, 0], *[no_splits] * 6, [0.25], [0], no_splits, [1.0], [1.0])
    leaf = er.models.TreeEnsemble(table, data.feature_names)
    assert not any(len(tree.feature) for tree in plain(er.Model(leaf)).trees)
    for ml_opset, numbers in FORMS:
        export = er.export(leaf, "onnx", ml_opset=ml_opset, numbers=numbers)
        onnx.checker.check_model(onnx.load_from_string(export.content), full_check=True)
        assert export.check(data).beyond_rounding == 0


def test_names_and_properties():
    ranker = er.Ridge(measure="nDCG@3").fit(data_of(0))
    model = onnx.load_from_string(er.export(ranker, "onnx", model_name="shop").content)
    known = {one.key: one.value for one in model.metadata_props}
    assert {key: value for key, value in known.items() if key not in ("model", "graph")} == {
        "exactrank": er.__version__,
        "features": json.dumps(FEATURES),
        "measure": ranker.model_.measure,
        "missing": "zero",
    }
    assert (model.graph.name, model.producer_name) == ("shop", "exactrank")
    assert [one.name for one in (*model.graph.input, *model.graph.output)] == ["x", "score"]
    assert [one.type.tensor_type.shape.dim[1].dim_value for one in (*model.graph.input, *model.graph.output)] == [3, 1]
    assert er.export(ranker, "onnx").content == er.export(ranker, "onnx").content


def test_features_beyond_floats():
    rng = np.random.default_rng(0)
    near = rng.normal(size=(60, 3)) * [1, 1, 100] + [0, 0, 1e9]
    data = er.RankingData.from_arrays(near, (near[:, 2] > 1e9 + 5).astype(int), group=[6] * 10, feature_names=FEATURES)
    for ranker in (er.Ridge(), er.LambdaMART(trees=3, min_documents=1, bags=0)):
        model = ranker.fit(data)
        double, single = er.export(model, "onnx"), er.export(model, "onnx", numbers="float")
        assert double.check(data).beyond_rounding == 0
        np.testing.assert_allclose(runtime_scores(double.content, near)[:, 0], ranker.predict(data), rtol=1e-6, atol=1e-6)
        assert any("float32 cannot distinguish values of 'age'" in remark for remark in single.remarks)
        assert single.check(data).changed_top > 0


def test_several_threads_change_the_last_digits_alone():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3)).astype(np.float32)
    data = er.RankingData.from_arrays(rows, (rows.sum(axis=1) > 0).astype(int), group=[10] * 20)
    trees = er.MART(trees=120, leaves=7, min_documents=1, bags=0).fit(data).model_.scorer
    content, ours = er.export(trees, "onnx").content, trees.score(rows)
    np.testing.assert_array_equal(runtime_scores(content, rows.astype(np.float64))[:, 0], ours)
    np.testing.assert_allclose(runtime_scores(content, rows.astype(np.float64), threads=2)[:, 0], ours, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"ml_opset": 2}, "ml_opset=2 is out of range"),
        ({"numbers": "half"}, "numbers='half' is not"),
        ({"opset": 3}, "did you mean ml_opset"),
    ],
)
def test_bad_settings(arguments, says):
    with pytest.raises(er.errors.SettingError, match=says):
        er.export(er.models.Linear(np.ones(3)), "onnx", **arguments)


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_that_are_no_numbers_never_get_here(weight):
    with pytest.raises(er.errors.DataError, match="give finite numbers"):
        er.export(er.models.Linear(np.array([1.0, weight])), "onnx")


def test_what_is_not_installed_is_named(monkeypatch):
    export = er.export(er.models.Linear(np.ones(3), FEATURES), "onnx")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(IncompatibleError, match=r"need onnxruntime, which is not installed; pip install 'exactrank\[onnx\]'"):
        export.check(data_of(0))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(IncompatibleError, match=r"ONNX files need onnx, which is not installed; pip install 'exactrank\[onnx\]'"):
        er.export(er.models.Linear(np.ones(3)), "onnx")
