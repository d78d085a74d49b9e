"""Graphs that were exported here score as the model did when they are loaded; all others are refused with a reason."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as xr
from exactrank.errors import DataError
from exactrank.scorers.sum import sum_of
from tests.test_export import FEATURES, data_of, rows_of, scorers
from tests.test_export_onnx import FORMS, adversarial

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
seeds = st.integers(0, 10**6)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("onnx") / "model.onnx"


def loaded(path, content):
    path.write_bytes(content)
    return xr.load(path)


@settings(max_examples=15)
@given(seeds, st.sampled_from(FORMS))
def test_the_way_there_and_back(path, seed, form):
    for scorer in scorers(seed):
        ml_opset, numbers = form
        export = xr.export(xr.Model(scorer, "nDCG@5"), "onnx", ml_opset=ml_opset, numbers=numbers)
        model, rows = loaded(path, export.content), adversarial(scorer, seed)
        ours, theirs = scorer.score(rows), model.scorer.score(rows)
        assert (model.scorer.feature_names, model.measure) == (FEATURES, "nDCG@5")
        if numbers == "double" and scorer.kind == "trees":
            np.testing.assert_array_equal(theirs, ours)
        else:
            inside = np.all((np.abs(rows) < 1e3) & ((rows == 0) | (np.abs(rows) > 1e-30)), axis=1)  # trees take 1e-35 for 0, steps do not
            close = 1e-11 if numbers == "double" else 1e-3
            np.testing.assert_allclose(theirs[inside], ours[inside], rtol=close, atol=close)
        if numbers == "double":  # what is loaded is exported as it was
            again = loaded(path, xr.export(model, "onnx", ml_opset=ml_opset).content)
            np.testing.assert_array_equal(again.scorer.score(rows), theirs)


@settings(max_examples=10)
@given(seeds, st.sampled_from(["keep", "zero", "mean"]))
def test_missing_values(path, seed, missing):
    data = data_of(seed, holes=0.3)
    trees = xr.LambdaMART(trees=4, leaves=4, min_documents=1, bags=0, missing=missing).fit(data).model_.scorer
    rows = adversarial(trees, seed, holes=True)
    for ml_opset in (5, 3):
        model = loaded(path, xr.export(trees, "onnx", ml_opset=ml_opset).content)
        np.testing.assert_array_equal(model.scorer.score(rows), trees.score(rows))
    if missing != "keep":
        linear = xr.Ridge(missing=missing).fit(data).model_.scorer
        rows = rows_of(seed, holes=0.3)
        np.testing.assert_array_equal(loaded(path, xr.export(linear, "onnx").content).scorer.score(rows), linear.score(rows))
        both = sum_of([linear, trees], [0.5, 2.0])
        ours = loaded(path, xr.export(both, "onnx").content).scorer.score(rows)
        np.testing.assert_allclose(ours, both.score(rows), rtol=1e-12, atol=1e-12)


def test_features_beyond_floats(path):
    rng = np.random.default_rng(0)
    near = rng.normal(size=(60, 3)) * [1, 1, 100] + [0, 0, 1e9]
    data = xr.RankingData.from_arrays(near, (near[:, 2] > 1e9 + 5).astype(int), group=[6] * 10, feature_names=FEATURES)
    linear, trees = xr.Ridge().fit(data), xr.LambdaMART(trees=3, min_documents=1, bags=0).fit(data)
    network = xr.LambdaRank(hidden=2, max_iter=3, bags=0).fit(data)
    both = xr.Model(sum_of([ranker.model_.scorer for ranker in (linear, trees, network)], [0.3, 1.0, 0.7]))
    for model in (linear.model_, trees.model_, network.model_, both):
        read = loaded(path, xr.export(model, "onnx").content)
        for rows in (data, near):
            np.testing.assert_allclose(read.predict(rows), model.predict(rows), rtol=1e-6, atol=1e-6)
    assert isinstance(loaded(path, xr.export(linear, "onnx").content).scorer, xr.Linear)


def test_a_constant_and_features_without_names(path):
    model = loaded(path, xr.export(xr.Linear(np.array([1.0, 2.0])), "onnx").content)
    assert model.scorer.feature_names == ()
    graph = onnx.load_from_string(xr.export(xr.Linear(np.array([1.0, 2.0])), "onnx").content)
    graph.graph.node[-1].output[0] = "before"
    graph.graph.node.append(onnx.helper.make_node("Add", ["before", "constant"], ["score"]))
    graph.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0.5]), "constant"))
    rows = np.array([[1.0, 2.0], [3.0, -1.0]], np.float32)
    np.testing.assert_array_equal(loaded(path, graph.SerializeToString()).scorer.score(rows), [5.5, 1.5])


def edited(kind, change, **form):
    """The export of a scorer, changed."""
    model = onnx.load_from_string(xr.export(scorers(0)[kind], "onnx", **form).content)
    change(model.graph, {one.name: one for node in model.graph.node for one in node.attribute}, model)
    return model.SerializeToString()


LINEAR, NETWORK, TREES = 0, 1, 3
BAD = {
    "operator 'Gemm'": (LINEAR, lambda graph, _, model: setattr(graph.node[-1], "op_type", "Gemm")),
    "reads 'nowhere'": (LINEAR, lambda graph, _, model: graph.node[-1].input.__setitem__(1, "nowhere")),
    "already exists": (LINEAR, lambda graph, _, model: graph.node[-1].output.__setitem__(0, "x")),
    "2 inputs and 1 outputs": (LINEAR, lambda graph, _, model: graph.input.append(graph.input[0])),
    "has 0 columns": (LINEAR, lambda graph, _, model: graph.input[0].type.tensor_type.shape.dim[1].Clear()),
    "1,099,511,627,776 features": (
        TREES, lambda graph, _, model: setattr(graph.input[0].type.tensor_type.shape.dim[1], "dim_value", 1 << 40)),
    "in another file": (LINEAR, lambda graph, _, model: graph.initializer[0].external_data.add(key="location", value="/etc/passwd")),
    "neither double nor float": (LINEAR, lambda graph, _, model: setattr(graph.initializer[0], "data_type", onnx.TensorProto.STRING)),
    "not have as many numbers": (LINEAR, lambda graph, _, model: graph.initializer[0].dims.__setitem__(0, 1 << 40)),
    "of shape": (NETWORK, lambda graph, _, model: graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.ones(2), "fill"))),
    r"MatMul has a constant of shape \(3,\), expected \(3, 1\)": (LINEAR, lambda graph, _, model: graph.initializer[1].CopyFrom(
        onnx.numpy_helper.from_array(np.ones(3), "weights"))),
    "is nan; give finite": (LINEAR, lambda graph, _, model: graph.initializer[1].CopyFrom(
        onnx.numpy_helper.from_array(np.full((3, 1), np.nan), "weights"))),
    "the output differs": (NETWORK, lambda graph, _, model: graph.node.pop()),
    "aggregate_function of TreeEnsemble is not 1": (TREES, lambda _, given, model: setattr(given["aggregate_function"], "i", 0)),
    "n_targets of TreeEnsemble is not 1": (TREES, lambda _, given, model: setattr(given["n_targets"], "i", 2)),
    "has the attribute 'base'": (TREES, lambda graph, _, model: graph.node[0].attribute.append(onnx.helper.make_attribute("base", 1))),
    "compare in another way": (
        TREES, lambda _, given, model: setattr(given["nodes_modes"].t, "raw_data", b"\1" * len(given["nodes_modes"].t.raw_data))),
    "nodes_truenodeids of TreeEnsemble refer to missing nodes": (
        TREES, lambda _, given, model: given["nodes_truenodeids"].ints.__setitem__(0, 999)),
    "is the child of two nodes": (
        TREES, lambda _, given, model: [given[name].ints.__setitem__(0, 0) for name in ("nodes_truenodeids", "nodes_trueleafs")]),
    "splits at a feature that is none": (TREES, lambda _, given, model: given["nodes_featureids"].ints.__setitem__(0, 3)),
    "nodes_featureids of TreeEnsemble has": (TREES, lambda _, given, model: given["nodes_featureids"].ints.__setitem__(0, -1)),
    "leaf_weights of TreeEnsemble has": (TREES, lambda _, given, model: given["leaf_targetids"].ints.pop()),
    "are in another order": (TREES, lambda _, given, model: (
        given["leaf_targetids"].ClearField("ints"), given["leaf_weights"].t.CopyFrom(onnx.numpy_helper.from_array(np.zeros(0))))),
    "for 'features', which is not a list of 3": (
        LINEAR, lambda _, __, model: onnx.helper.set_model_props(model, {"features": '["a", "b"]'})),
    "for 'offset', which is not a list of 3": (LINEAR, lambda _, __, model: onnx.helper.set_model_props(model, {"offset": "[" * 9000})),
    "are both called 'a'": (
        LINEAR, lambda _, __, model: onnx.helper.set_model_props(model, {"features": '["a", "a", "b"]'})),
}  # fmt: skip


@pytest.mark.parametrize("says", BAD)
def test_foreign_and_damaged_graphs(path, says):
    kind, change = BAD[says]
    with pytest.raises(DataError, match=f"model.onnx: .*{says}"):
        loaded(path, edited(kind, change))


BAD_REGRESSORS = {
    "aggregate_function of TreeEnsembleRegressor is not SUM": lambda given: setattr(given["aggregate_function"], "s", b"MAX"),
    "compare in another way": lambda given: given["nodes_modes"].strings.__setitem__(0, b"BRANCH_LT"),
    "or are in another order": lambda given: given["nodes_nodeids"].ints.__setitem__(0, 1),
    "not the nodes that have values": lambda given: given["target_nodeids"].ints.__setitem__(0, 0),
    "target_treeids of TreeEnsembleRegressor has": lambda given: given["target_treeids"].ints.__setitem__(0, 99),
    "there is a child 999": lambda given: given["nodes_truenodeids"].ints.__setitem__(0, 999),
    "has no finite value": lambda given: given["target_weights"].floats.__setitem__(0, np.inf),
}


@pytest.mark.parametrize("says", BAD_REGRESSORS)
def test_foreign_and_damaged_graphs_of_older_operators(path, says):
    with pytest.raises(DataError, match=f"model.onnx: .*{says}"):
        loaded(path, edited(TREES, lambda _, given, model: BAD_REGRESSORS[says](given), ml_opset=3, numbers="float"))


@settings(max_examples=100)
@given(st.data())
def test_whatever_the_bytes(path, data):
    """Bytes that were changed, cut or put in give a model or a reason."""
    form = data.draw(st.sampled_from(FORMS))
    content = bytearray(EXPORTS[data.draw(st.integers(0, 5)), form])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(1, len(content)))
        content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    with suppress(DataError):
        scorer = loaded(path, bytes(content)).scorer
        scorer.score(np.zeros((2, scorer.n_features), np.float32))


EXPORTS = {
    (kind, form): xr.export(scorer, "onnx", ml_opset=form[0], numbers=form[1]).content
    for kind, scorer in enumerate(scorers(1))
    for form in FORMS
}
