"""Models of other libraries: routed as by the library, to the bit, and scored within its own rounding; nothing wild is followed."""

import copy
import json
import struct
from functools import cache
from itertools import pairwise

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.models.formats.content import Budget, Content
from exactrank.models.formats.ubjson import parse_ubjson
from tests import GOLDEN

xgb = pytest.importorskip("xgboost", reason="xgboost is not installed")
#: Models and the scores that their libraries gave, of rows next to every threshold.
RECORDED = {one["source"]: one for one in json.loads((GOLDEN / "imports.json").read_text())}


@cache
def drawn(seed=0, holes=True):
    """Rows of three features, one with few values and one with holes, grades, and queries of ten."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    X[:, 1] = rng.integers(-2, 3, 200)
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + rng.normal(0, 0.3, 200), [-1, 0, 1])
    X[rng.random(200) < (0.2 if holes else 0), 2] = np.nan
    return X, y, np.arange(200) // 10


def hard_rows(scorer, seed=0, holes=True):
    """Rows of thresholds, the floats next to them, zeros and holes, in every feature."""
    known = scorer.table.threshold.astype(np.float32)
    known = known[np.abs(known) > 1e-30]  # up to 1e-35 counts as 0
    values = np.concatenate([known, np.nextafter(known, np.float32(np.inf)), np.nextafter(known, np.float32(-np.inf)), [0.0, -1e30, 1e30]])
    return np.random.default_rng(seed).choice(np.append(values, [np.nan] * (len(values) // 8 if holes else 0)), (300, 3)).astype(np.float32)


def rounding(scorer):
    """How far sums of all trees in single precision may be from those in double precision."""
    table = scorer.table
    starts = table.start + np.arange(len(table.start))
    largest = sum(np.abs(table.leaf_value[a:b]).max() for a, b in pairwise(starts))
    return 2.0**-24 * (scorer.n_trees + 2) * largest


@pytest.mark.parametrize("source", RECORDED)
def test_scores_are_those_that_the_library_gave(source, tmp_path):
    (tmp_path / "m").write_text(RECORDED[source]["model"])
    model, X = er.load(tmp_path / "m"), np.array(RECORDED[source]["X"], np.float32)
    assert np.abs(model.predict(X) - np.array(RECORDED[source]["scores"])).max() <= rounding(model.scorer)
    model.save(tmp_path / "saved.json")
    assert er.load(tmp_path / "saved.json").predict(X).tobytes() == model.predict(X).tobytes()


XGBOOST = st.fixed_dictionaries(
    {
        "booster": st.sampled_from(["gbtree", "dart"]),
        "objective": st.sampled_from(["rank:ndcg", "rank:pairwise", "reg:squarederror", "binary:logistic", "count:poisson"]),
        "max_depth": st.integers(1, 5),
        "num_parallel_tree": st.integers(1, 2),
        "tree_method": st.sampled_from(["exact", "hist", "approx"]),
        "base_score": st.sampled_from([None, 0.25]),
        "rate_drop": st.just(0.5),
    }
)


def boosted(given, seed=0, rounds=4, **more):
    X, y, qid = drawn(seed)
    chosen = {name: value for name, value in given.items() if value is not None and (given["booster"] == "dart" or name != "rate_drop")}
    y = y > 1 if given["objective"] == "binary:logistic" else y
    return xgb.train(chosen | {"nthread": 1, "verbosity": 0}, xgb.DMatrix(X, y, qid=qid, **more), rounds)


@given(given=XGBOOST, seed=st.integers(0, 20))
@settings(max_examples=25, deadline=None)
def test_xgboost_routes_the_same_and_scores_within_its_rounding(given, seed, tmp_path_factory):
    folder, booster = tmp_path_factory.mktemp("xgboost"), boosted(given, seed)
    models = []
    for name in ("m.json", "m.ubj"):
        booster.save_model(folder / name)
        models.append(er.load(folder / name))
    models.append(er.from_estimator(booster))
    X = hard_rows(models[0].scorer, seed)
    assert len({model.predict(X).tobytes() for model in models}) == 1
    scorer, rows = models[0].scorer, xgb.DMatrix(X)
    saved = json.loads((folder / "m.json").read_text())["learner"]["gradient_booster"]
    trees = saved["model"]["trees"] if given["booster"] == "gbtree" else saved["gbtree"]["model"]["trees"]
    factors = saved.get("weight_drop", [1.0] * len(trees))
    nodes = booster.predict(rows, pred_leaf=True).reshape(len(X), -1).astype(int)
    alone = [tree.score(X) for tree in scorer.single_trees()]
    for t in range(1, len(trees)):  # the first has the base score in its leaves
        values = np.array(trees[t]["split_conditions"], np.float32).astype(np.float64) * np.float32(factors[t]).astype(np.float64)
        assert alone[t].tolist() == values[nodes[:, t]].tolist()
    assert len({(node, value) for node, value in zip(nodes[:, 0], alone[0], strict=True)}) == len(set(nodes[:, 0]))
    assert np.abs(models[0].predict(X) - booster.predict(rows, output_margin=True)).max() <= rounding(scorer)


def test_xgboost_names_cover_and_gains_are_kept():
    X = drawn()[0]
    booster = boosted({"booster": "gbtree", "objective": "rank:ndcg"}, feature_names=["a", "b", "c"])
    model = er.from_estimator(booster)
    assert model.scorer.feature_names == ("a", "b", "c")
    gains = booster.get_score(importance_type="total_gain")
    np.testing.assert_allclose(model.scorer.importance("gain"), [gains.get(name, 0.0) for name in "abc"], rtol=1e-5)
    theirs = booster.predict(xgb.DMatrix(X, feature_names=list("abc")), pred_contribs=True)
    np.testing.assert_allclose(model.scorer.contributions(X), theirs, atol=2e-5)


def test_xgboost_ranker_has_the_trees_that_its_predict_uses():
    X, y, qid = drawn()
    ranker = xgb.XGBRanker(n_estimators=40, early_stopping_rounds=2, n_jobs=1, objective="rank:ndcg", learning_rate=1.0)
    ranker.fit(X, y, qid=qid, eval_set=[(X[::-1], y)], eval_qid=[qid], verbose=False)
    model, whole = er.from_estimator(ranker), er.from_estimator(ranker.get_booster())
    assert model.scorer.n_trees == ranker.best_iteration + 1 < whole.scorer.n_trees
    assert np.abs(model.predict(X) - ranker.predict(X)).max() <= rounding(model.scorer)
    assert np.abs(whole.predict(X) - ranker.get_booster().predict(xgb.DMatrix(X))).max() <= rounding(whole.scorer)


def test_xgboost_linear_is_linear(tmp_path):
    booster = boosted({"booster": "gblinear", "objective": "rank:pairwise"})
    X = drawn()[0]
    booster.save_model(tmp_path / "m.json")
    model = er.load(tmp_path / "m.json")
    away = model.predict(X) - booster.predict(xgb.DMatrix(X), output_margin=True)
    assert model.scorer.kind == "linear"
    assert np.ptp(away) < 1e-5


@cache
def xgboost_record():
    return json.loads(bytes(boosted({"booster": "gbtree", "objective": "rank:ndcg", "max_depth": 2}).save_raw("json")))


def changed(record, path, value):
    result = copy.deepcopy(record)
    *above, last = path
    at = result
    for name in above:
        at = at[name]
    at[last] = value
    return result


TREE = ("learner", "gradient_booster", "model", "trees", 1)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((*TREE, "left_children", 0), 0, "tree 1: node 0 is the child of two nodes"),
        ((*TREE, "right_children", 0), 10**6, "tree 1: there is a child 1000000 but there are"),
        ((*TREE, "right_children", 0), -7, "tree 1: there is a child -7"),
        ((*TREE, "split_indices", 0), 3, "tree 1: node 0 splits at a feature that is none of the 3"),
        ((*TREE, "split_indices"), [0], "tree 1: split_indices is .* expected . numbers"),
        ((*TREE, "split_conditions", 0), "x", "tree 1: split_conditions is"),
        ((*TREE, "split_conditions", 0), [1], "tree 1: split_conditions is"),
        ((*TREE, "left_children"), [], "tree 1 has no nodes"),
        ((*TREE, "left_children", 0), 10**30, "tree 1: left_children is"),
        ((*TREE, "split_type", 0), 1, "tree 1 splits on categories; encode them"),
        ((*TREE, "base_weights"), [0.0, 1.0], "tree 1 has several values in a leaf"),
        (TREE, "x", "tree 1: left_children is None"),
        (("learner", "learner_model_param", "num_class"), "3", "gives 3 scores per row"),
        (("learner", "learner_model_param", "num_target"), "2", "gives 2 scores per row"),
        (("learner", "learner_model_param", "num_feature"), "many", "num_feature is 'many'"),
        (("learner", "learner_model_param", "base_score"), "[5E-1,1E0]", "base_score is '\\[5E-1,1E0\\]'"),
        (("learner", "learner_model_param", "base_score"), "nan", "base_score is 'nan'"),
        (("learner", "feature_names"), ["a"], "1 feature_names for num_feature=3"),
        (("learner", "gradient_booster", "name"), "forest", "the booster is 'forest'"),
        (("learner", "gradient_booster", "model", "trees"), [], "no trees"),
        (("learner", "gradient_booster"), None, "learner.gradient_booster is None"),
        (("learner", "objective"), [], "learner.objective.name is None"),
    ],
)
def test_damaged_xgboost_models_are_refused_with_the_place(path, value, message, tmp_path):
    file = tmp_path / "m.json"
    file.write_text(json.dumps(changed(xgboost_record(), path, value)))
    with pytest.raises(er.errors.DataError, match=rf"m\.json: .*{message}"):
        er.load(file)


def test_xgboost_categories_and_classes_are_refused():
    X, y, _ = drawn(holes=False)
    X = np.column_stack([X[:, 0], X[:, 1] + 2])
    data = xgb.DMatrix(X, y, feature_types=["q", "c"], enable_categorical=True)
    with pytest.raises(er.errors.DataError, match="splits on categories; encode them"):
        er.from_estimator(xgb.train({"max_cat_to_onehot": 1, "nthread": 1}, data, 3))
    with pytest.raises(er.errors.DataError, match="gives 4 scores per row"):
        er.from_estimator(xgb.train({"objective": "multi:softprob", "num_class": 4, "nthread": 1}, xgb.DMatrix(X, y), 2))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def ubj(value, sized):
    """``value`` as UBJSON, containers with their lengths or with ends."""
    pack = struct.pack
    match value:
        case None | bool():
            return {None: b"Z", True: b"T", False: b"F"}[value]
        case int():
            return b"L" + pack(">q", value)
        case float():
            return b"D" + pack(">d", value)
        case str():
            return b"S" + name(value)
        case list():
            body = b"".join(ubj(item, sized) for item in value)
            return b"[" + (b"#L" + pack(">q", len(value)) + body if sized else body + b"]")
    body = b"".join(name(key) + ubj(item, sized) for key, item in value.items())
    return b"{" + (b"#L" + pack(">q", len(value)) + body if sized else body + b"}")


def name(text):
    return b"L" + struct.pack(">q", len(text.encode())) + text.encode()


@given(VALUES, st.booleans())
def test_ubjson_is_read(value, sized):
    assert parse_ubjson(ubj(value, sized), Budget()) == value


@pytest.mark.parametrize("kind", list("iUIlLdD"))
def test_ubjson_lists_of_one_kind_are_arrays(kind):
    letter = {"i": "b", "U": "B", "I": "h", "l": "i", "L": "q", "d": "f", "D": "d"}[kind]
    data = b"[$" + kind.encode() + b"#U\x03" + struct.pack(f">3{letter}", 1, 2, 3)
    assert parse_ubjson(data, Budget()).tolist() == [1, 2, 3]


@given(st.data())
@settings(max_examples=100)
def test_damaged_ubjson_is_refused_or_read(data):
    """Never anything but a `DataError`, and nothing that takes long."""
    whole = bytearray(boosted_ubj())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    try:
        model = Content(bytes(whole), "here")
        parse_ubjson(model.data, model.budget)
    except er.errors.DataError:
        pass


@cache
def boosted_ubj():
    return bytes(boosted({"booster": "gbtree", "objective": "rank:ndcg", "max_depth": 2}, rounds=2).save_raw("ubj"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{L" + b"\x7f" * 8 + b"learner", "items are declared"),
        (b"{" + name("learner") + b"[" * 200, "at depth"),
        (b"{" + name("learner") + b"[$Z#L" + struct.pack(">q", 2**40), "items are declared"),
        (b"{" + name("learner") + b"[$L#U\xff", "items are declared|bytes are declared"),
        (b"{" + name("learner") + b"[$L" + b"]", "without its length"),
        (b"{" + name("learner") + b"Z" + name("learner") + b"Z}", "twice"),
        (b"{" + name("learner") + b"Z}Z", "continues after its end"),
        (b"{" + name("learner") + b"Z}", "learner.gradient_booster is None"),
        (b"{U\x07learnerS" + b"U\x02\xff\xff}", "not UTF-8"),
    ],
)
def test_wild_ubjson_is_refused(data, message, tmp_path):
    (tmp_path / "m.ubj").write_bytes(data)
    with pytest.raises(er.errors.DataError, match=rf"m\.ubj: .*({message})"):
        er.load(tmp_path / "m.ubj")


# CatBoost


def cat(seed=0, holes=True, **more):
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    X, y, qid = drawn(seed, holes)
    chosen = {"loss_function": "RMSE", "iterations": 5, "depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False} | more
    pool = catboost.Pool(X, y, group_id=qid)
    model = catboost.CatBoost(chosen)
    return model.fit(pool)


@pytest.mark.parametrize("policy", ["SymmetricTree", "Depthwise", "Lossguide"])
@pytest.mark.parametrize("more", [{"loss_function": "YetiRank"}, {}, {"nan_mode": "Max"}])
@pytest.mark.parametrize("seed", [0, 1])
def test_catboost_routes_and_scores_the_same(policy, more, seed, tmp_path):
    theirs = cat(seed, grow_policy=policy, **more)
    theirs.save_model(str(tmp_path / "m.json"), format="json")
    model = er.load(tmp_path / "m.json")
    X = hard_rows(model.scorer, seed, holes=False)
    X[::5, 2] = np.nan  # of the feature that had holes; others with holes CatBoost refuses
    scores = theirs.predict(X)
    assert np.abs(model.predict(X) - scores).max() <= 2.0**-50 * max(1, np.abs(scores).max()) * model.scorer.n_trees
    assert model.predict(X).tobytes() == er.from_estimator(theirs).predict(X).tobytes()
    if policy == "SymmetricTree":
        values = [np.array(tree["leaf_values"]) for tree in json.loads((tmp_path / "m.json").read_text())["oblivious_trees"]]
        alone = [tree.score(X) for tree in model.scorer.single_trees()]
        for t, own in enumerate(theirs.calc_leaf_indexes(X).T):
            if t:  # the first has the bias in its leaves
                assert alone[t].tolist() == values[t][own].tolist()


def catboost_record(symmetric=True):
    kind = "SymmetricTree" if symmetric else "Lossguide"
    return json.loads(next(one["model"] for source, one in RECORDED.items() if source.startswith("catboost") and source.endswith(kind)))


@pytest.mark.parametrize(
    ("symmetric", "path", "value", "message"),
    [
        (True, ("oblivious_trees", 1, "leaf_values"), [1.0] * 16, "tree 1 has 16 values for 8 leaves; a ranking needs one"),
        (True, ("oblivious_trees", 1, "leaf_values", 0), 1e999, "tree 1|not a JSON number"),
        (True, ("oblivious_trees", 1, "splits", 0, "split_type"), "OneHotFeature", "tree 1 splits by 'OneHotFeature'; encode"),
        (True, ("oblivious_trees", 1, "splits", 0, "float_feature_index"), 3, "tree 1 splits at feature 3, of 3"),
        (True, ("oblivious_trees", 1, "splits", 0, "border"), "x", "tree 1: a border is 'x'"),
        (True, ("oblivious_trees", 1, "splits"), [{}] * 40, "tree 1 has 40 levels"),
        (True, ("oblivious_trees", 1), 5, "leaf_values is None"),
        (True, ("features_info", "categorical_features"), [{}], "the model has categorical_features; encode"),
        (True, ("features_info", "float_features"), [5], "does not hold features"),
        (True, ("scale_and_bias",), [1, [0, 1]], "2 biases"),
        (True, ("scale_and_bias",), 7, "not a scale and a list"),
        (False, ("trees", 1, "left"), {}, "tree 1: node 1 has neither"),
        (False, ("trees", 1, "left"), {"value": [1, 2]}, "tree 1: node 1 has several values"),
        (False, ("trees", 1, "split", "float_feature_index"), -1, "tree 1: node 0 splits at feature -1"),
    ],
)
def test_damaged_catboost_models_are_refused_with_the_place(symmetric, path, value, message, tmp_path):
    file = tmp_path / "m.json"
    file.write_text(json.dumps(changed(catboost_record(symmetric), path, value)))
    with pytest.raises(er.errors.DataError, match=message):
        er.load(file)


def test_catboost_categories_are_refused(tmp_path):
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    X, y, _ = drawn(holes=False)
    rows = [[float(row[0]), f"kind {row[1]:g}"] for row in X]
    model = catboost.CatBoostRegressor(iterations=2, depth=2, verbose=0, allow_writing_files=False, thread_count=1)
    model.fit(catboost.Pool(rows, y, cat_features=[1]))
    with pytest.raises(er.errors.DataError, match=r"the model has categorical_features; encode them as numbers.*cat_features"):
        er.from_estimator(model)


# RankLib


def test_ranklib_models_are_as_wide_as_the_data(tmp_path):
    golden = next(one for source, one in RECORDED.items() if "RankLib" in source)
    (tmp_path / "m.txt").write_text(golden["model"])
    model, X = er.load(tmp_path / "m.txt"), np.array(golden["X"], np.float32)
    wider = er.load(tmp_path / "m.txt", n_features=6)
    assert wider.predict(np.column_stack([X, X[:, :2]])).tobytes() == model.predict(X).tobytes()
    assert model.predict(np.where(X == 0, np.nan, X)).tobytes() == model.predict(X).tobytes()  # missing is 0
    with pytest.raises(er.errors.DataError, match="uses feature 4 but there are 3"):
        er.load(tmp_path / "m.txt", n_features=3)


FOREST = """## {name}
## No. of trees = 2

<ensemble>
  <tree id="1" weight="0.5">
    <split>
      <feature> 2 </feature>
      <threshold> 0.1 </threshold>
      <split pos="left">
        <output> 1.0 </output>
      </split>
      <split pos="right">
        <output> -3 </output>
      </split>
    </split>
  </tree>
  <tree id="2" weight="1.0"><split><output> 4 </output></split></tree>
</ensemble>
"""


def test_ranklib_forests_and_weights(tmp_path):
    file, X = tmp_path / "m.txt", np.array([[0, 0.1], [0, np.nextafter(np.float32(0.1), np.float32(1))], [0, np.nan]], np.float32)
    file.write_text(FOREST.format(name="MART").replace("\n", "\r\n"))
    assert er.load(file).predict(X).tolist() == [4.5, 2.5, 4.5]
    file.write_text(FOREST.format(name="Random Forests") + FOREST.partition("\n\n")[2])
    assert er.load(file).predict(X).tolist() == [4.5, 2.5, 4.5]  # the mean of two ensembles
    file.write_text("## Coordinate Ascent\n## Restart = 5\n1:0.25 3:-1.5\n")
    model = er.load(file)
    assert (model.scorer.weights.tolist(), model.ranker) == ([0.25, 0.0, -1.5], "RankLib Coordinate Ascent")
    assert er.load(file, n_features=4).scorer.n_features == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("## {name}", "## RankNet", "model of 'RankNet' cannot be read; give one of LambdaMART, MART, Random Forests, Coordinate Ascent"),
        ('pos="right"', 'pos="left"', "tree 0: node 1: expected the right split, found split"),
        ("<feature> 2 </feature>", "<feature> 0 </feature>", "tree 0: node 0 splits at feature 0; RankLib numbers features from 1"),
        ("<feature> 2 </feature>", "<feature> 1.5 </feature>", "tree 0: node 0 splits at feature 1.5"),
        ("<feature> 2 </feature>", "<feature> 1e9 </feature>", "tree 0: node 0 splits at feature 1e"),
        ("<feature> 2 </feature>", "", "tree 0: node 2: expected a split, .* found '/split'"),
        ("    <split>", "<feature> 2 </feature> <split>", "tree 0: expected a split, its parts or its end, found 'feature'"),
        ("</split>\n  </tree>", "</split> <split> <output> 1 </output> </split> </tree>", "tree 0: node 2: .* found 'split'"),
        ("</split>\n  </tree>", "</split> <output> 1 </output> </tree>", "tree 0: node 2: expected a split, .* found 'output'"),
        ("<threshold> 0.1 </threshold>", "<threshold> x </threshold>", "tree 0: node 0: its threshold is 'x', expected a finite number"),
        ("<threshold> 0.1 </threshold>", "<threshold> nan </threshold>", "tree 0: node 0: its threshold is 'nan'"),
        ("<output> 1.0 </output>", "<output> 1.0 2.0 </output>", "tree 0: node 1: its output is not one number"),
        ("<output> 1.0 </output>", "<output> 1e999 </output>", "tree 0: node 1: its output is '1e999'"),
        ('weight="0.5"', "", "tree 0: its weight is ''"),
        ("</tree>\n  <tree", "<tree", "tree 0: node 2: expected a split, .* found 'tree'"),
        ("<ensemble>", "<!DOCTYPE x>", "neither a tag nor a number"),
        ("</ensemble>", "</ensemble> 5", "expected a tree after . trees, found '5'"),
        ("  <tree", "  <tre", "expected a tree after . trees, found 'tre'"),
    ],
)
def test_damaged_ranklib_models_are_refused_with_the_place(old, new, message, tmp_path):
    assert old in FOREST
    (tmp_path / "m.txt").write_text(FOREST.replace(old, new, 1).format(name="MART"))
    with pytest.raises(er.errors.DataError, match=rf"m\.txt: .*{message}"):
        er.load(tmp_path / "m.txt")


@pytest.mark.parametrize("line", ["", "1:0.5 1:0.5", "0:0.5", "1:x", "1:nan", "99999999:1", "one:1"])
def test_damaged_ranklib_weights_are_refused(line, tmp_path):
    (tmp_path / "m.txt").write_text(f"## Coordinate Ascent\n{line}\n")
    with pytest.raises(er.errors.DataError, match=r"m\.txt: "):
        er.load(tmp_path / "m.txt")


@given(st.integers(0, len(FOREST)), st.integers(0, 9), st.text('<>/splitreouf "=0123456789.', max_size=4))
@settings(max_examples=50)
def test_damaged_ranklib_text_is_refused_or_read(at, cut, put):
    from exactrank.models.formats.ranklib import read

    text = FOREST.format(name="MART")
    try:
        model = read(Content((text[:at] + put + text[at + cut :]).encode(), "here"))
    except er.errors.DataError:
        return
    assert model.scorer.n_features >= 1


# Objects


def test_linear_models_of_scikit_learn():
    import pandas as pd

    X, y, _ = drawn(holes=False)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for estimator in (Ridge(), LinearRegression(), make_pipeline(StandardScaler(), Ridge())):
        estimator.fit(frame, y)
        model = er.from_estimator(estimator)
        assert np.ptp(model.predict(frame) - estimator.predict(frame)) < 1e-6
        assert model.scorer.feature_names == ("a", "b", "c")
    logistic = LogisticRegression().fit(X, y > 1)
    assert np.ptp(er.from_estimator(logistic).predict(X) - logistic.decision_function(X.astype(np.float64))) < 1e-6


def test_objects_that_cannot_be_read_are_named():
    X, y, _ = drawn(holes=False)
    for estimator, message in (
        (LogisticRegression().fit(X, y), "gives 4 scores per row"),
        (make_pipeline(MinMaxScaler(), Ridge()).fit(X, y), "the pipeline has a MinMaxScaler"),
        (Ridge(), "a Ridge cannot be read"),
        (object(), "a object cannot be read"),
    ):
        with pytest.raises(er.errors.IncompatibleError, match=message):
            er.from_estimator(estimator)


def test_lightgbm_objects_have_the_trees_that_their_predict_uses():
    X, y, _ = drawn()
    data = lgb.Dataset(X, y)
    chosen = {"verbose": -1, "num_threads": 1, "learning_rate": 0.3, "min_data_in_leaf": 2}
    booster = lgb.train(chosen, data, 12)
    booster.best_iteration = 7
    model = er.from_estimator(booster)
    assert model.scorer.n_trees == 7
    assert model.predict(X).tobytes() == booster.predict(X, raw_score=True).tobytes()
    ranker = lgb.LGBMRanker(n_estimators=3, verbose=-1, n_jobs=1).fit(X, y, group=[10] * 20)
    assert er.from_estimator(ranker).predict(X).tobytes() == ranker.predict(X).tobytes()


# Commands


def test_commands_take_models_of_other_libraries(tmp_path):
    X, y, qid = drawn(holes=False)
    data = er.RankingData.from_arrays(X, y, qid=qid)
    er.write(data, tmp_path / "d.txt")
    boosted({"booster": "gbtree", "objective": "rank:ndcg"}).save_model(tmp_path / "xgboost.ubj")
    (tmp_path / "catboost.json").write_text(json.dumps(catboost_record()))
    (tmp_path / "ranklib.txt").write_text(FOREST.format(name="LambdaMART"))  # which looks at feature 2 of 3
    for model in ("xgboost.ubj", "catboost.json", "ranklib.txt"):
        for words in (["predict"], ["inspect", "importance", "-m", "nDCG@5"]):
            result = CliRunner().invoke(app, [*words, str(tmp_path / model), str(tmp_path / "d.txt"), "--json"])
            assert result.exit_code == 0, result.output
            if words == ["predict"]:
                ours = er.load(tmp_path / model, n_features=3).predict(data)
                assert np.array_equal(np.array(json.loads(result.stdout)["scores"]), ours)
