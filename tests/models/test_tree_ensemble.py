"""Trees: scores that are LightGBM's to the bit without LightGBM, files, copies and missing values."""

import copy
import json
import pickle
import subprocess
import sys
from dataclasses import fields, replace

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.models.lightgbm_text import read_lightgbm
from exactrank.models.tree_table import TreeTable
from tests.reference.trees import tree_scores

SETTINGS = {
    "num_leaves": st.integers(2, 64),
    "max_depth": st.sampled_from([-1, -1, 1, 3]),
    "min_data_in_leaf": st.sampled_from([1, 1, 5, 1000]),
    "use_missing": st.booleans(),
    "zero_as_missing": st.booleans(),
    "monotone_constraints": st.sampled_from([[0] * 4, [1, -1, 0, 0]]),
    "objective": st.sampled_from(["regression", "binary"]),
    "max_bin": st.sampled_from([15, 255]),
}
ODD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-36, -1e-36, 1e-35, 1e-34, -0.5, -1.0, 0.99, 31.0, 32.5, 1e9, 3e9, -3e9, 3.4e38, -3.4e38]


def rows(seed, count=250, categories=70):
    """Normal, with holes and zeros, small integers, categories with holes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, 4)).astype(np.float32)
    X[rng.random(count) < 0.2, 0], X[rng.random(count) < 0.3, 1] = np.nan, 0.0
    X[:, 2], X[:, 3] = rng.integers(-3, 4, count), rng.integers(0, categories, count)
    X[rng.random(count) < 0.1, 3] = np.nan
    return X


def trained(seed=0, trees=3, categorical=True, **more):
    X, rng = rows(seed), np.random.default_rng([seed, 1])
    y = 0.1 * np.nan_to_num(X[:, 0]) + 2 * np.isnan(X[:, 0]) + (X[:, 1] == 0) + np.sin(np.nan_to_num(X[:, 3])) + rng.normal(0, 0.2, len(X))
    y = y > 1 if more.get("objective") == "binary" else np.abs(y).astype(int) if more.get("objective") == "multiclass" else y
    arguments = {
        "verbose": -1,
        "num_threads": 1,
        "cat_smooth": 1,
        "min_data_per_group": 1,
        "min_data_in_leaf": 1,
        "min_data_in_bin": 1,
    } | more
    data = lgb.Dataset(X, np.asarray(y, float), categorical_feature=[3] if categorical else [], params=arguments)
    return lgb.train(arguments | {"min_sum_hessian_in_leaf": 0}, data, trees)


def ensemble(text, *common):
    """The trees of a LightGBM model, with what all scorers have."""
    return er.models.TreeEnsemble(read_lightgbm(text)[0], *common)


TEXT = trained(trees=3, num_leaves=8).model_to_string()


@st.composite
def boosters(draw):
    chosen = draw(st.fixed_dictionaries(SETTINGS))
    return trained(draw(st.integers(0, 99)), draw(st.integers(1, 4)), draw(st.booleans()), **chosen)


def hard_rows(text, seed):
    """Rows of all kinds of odd values, and thresholds with their neighbors."""
    known, rng = ensemble(text).table.threshold, np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        close = [np.nextafter(known.astype(np.float32), np.float32(side)) for side in (-np.inf, np.inf)]
        values = np.concatenate([np.array(ODD, np.float32), known.astype(np.float32), *close])
    return np.concatenate([rows(seed, 40), rng.choice(values, (150, 4))]).astype(np.float32)


@given(boosters(), st.integers(0, 99), st.integers(1, 3))
@settings(max_examples=60)
def test_scores_are_lightgbms_to_the_bit(booster, seed, threads):
    text = booster.model_to_string()
    X = hard_rows(text, seed)
    ours = ensemble(text).score(X, threads)
    assert ours.tobytes() == booster.predict(X, raw_score=True).tobytes()
    assert ours.tolist() == tree_scores(text, X)


def test_the_models_of_these_tests_have_every_kind_of_node():
    texts = [
        trained(seed, zero_as_missing=zero, use_missing=use).model_to_string()
        for seed in range(3)
        for zero, use in [(True, True), (False, True), (False, False)]
    ]
    tables = [ensemble(text).table for text in texts]
    assert set(np.concatenate([table.decision for table in tables]) & 13) >= {0, 4, 8, 9}
    assert {2, 0} <= set(np.concatenate([table.decision for table in tables]) & 2)
    assert np.inf in np.concatenate([table.threshold for table in tables])
    assert max(table.n_trees for table in tables) == 3
    assert ensemble(trained(num_leaves=64).model_to_string()).table.start[1] > 32


def test_scores_do_not_depend_on_threads_or_neighbors():
    X = np.tile(rows(5, 1000), (60, 1)) + np.arange(4, dtype=np.float32)
    booster = trained(5, 30, num_leaves=200)
    scorer = ensemble(booster.model_to_string())
    first = scorer.score(X, threads=1)
    assert first.tobytes() == scorer.score(X, threads=3).tobytes() == scorer.score(np.asfortranarray(X), threads=2).tobytes()
    assert first[:3000].tobytes() == booster.predict(X[:3000], raw_score=True).tobytes()
    for lanes in (4, 8, 16):
        assert first.tobytes() == scorer.table.native.scores(X, 2, lanes).tobytes()
    for count in (1, 3, 4, 15, 16, 17, 33, 63, 64, 65, 131):
        assert first[777 : 777 + count].tobytes() == scorer.score(X[777 : 777 + count]).tobytes()
    assert len(scorer.score(X[:0])) == 0


@given(boosters(), st.integers(0, 99))
@settings(max_examples=20)
def test_single_trees_add_up(booster, seed):
    text = booster.model_to_string()
    scorer = ensemble(text, ("a", "b", "c", "d"), "zero")
    X, singles = hard_rows(text, seed), list(scorer.single_trees())
    assert [(each.n_trees, each.feature_names, each.missing) for each in singles] == [(1, scorer.feature_names, "zero")] * scorer.n_trees
    assert sum((each.score(X) for each in singles), np.zeros(len(X))).tobytes() == scorer.score(X).tobytes()


@given(boosters())
@settings(max_examples=20)
def test_importance_is_lightgbms(booster):
    scorer = ensemble(booster.model_to_string())
    for kind in ("gain", "split"):
        assert scorer.importance(kind).tolist() == booster.feature_importance(kind).tolist()


def test_missing_values_by_policy():
    X = rows(3)
    kept = ensemble(trained(3).model_to_string(), ("a", "b", "c", "d"))
    with pytest.raises(er.errors.DataError, match=r"values are missing \(a: "):
        replace(kept, missing="error").score(X)
    whole = X[~np.isnan(X).any(axis=1)]
    assert replace(kept, missing="error").score(whole).tolist() == kept.score(whole).tolist()
    assert replace(kept, missing="zero").score(X).tolist() == kept.score(np.nan_to_num(X)).tolist()
    fill = np.array([0.5, 0.0, 0.0, 7.0])
    assert replace(kept, missing="mean", fill=fill).score(X).tolist() == kept.score(np.where(np.isnan(X), fill, X)).tolist()
    assert kept.score(X).tolist() != kept.score(np.nan_to_num(X)).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"missing": "keep", "fill": np.zeros(4)}, 'missing="keep" has no fill'),
        ({"missing": "error", "fill": np.zeros(4)}, "has no fill"),
        ({"missing": "mean"}, "needs fill"),
        ({"missing": "mean", "fill": np.zeros(3)}, "fill has 3 values for 4 features"),
        ({"missing": "median"}, '\'median\' is not a policy; use "keep", "error"'),
        ({"feature_names": ("a",)}, "for 1 features"),
    ],
)
def test_bad_scorers_are_refused(arguments, message):
    with pytest.raises(er.errors.DataError, match=message):
        er.models.TreeEnsemble(ensemble(TEXT).table, **arguments)


def test_bad_questions_are_refused():
    scorer = ensemble(TEXT)
    with pytest.raises(er.errors.IncompatibleError, match="shape"):
        scorer.score(np.zeros((2, 3), np.float32))
    with pytest.raises(er.errors.IncompatibleError, match="shape"):
        scorer.contributions(np.zeros((2, 3), np.float32))
    with pytest.raises(er.errors.DataError, match="kind='weight' is not one of"):
        scorer.importance("weight")


def test_copies_score_the_same():
    scorer = ensemble(TEXT, ("a", "b", "c", "d"), "mean", np.arange(4.0))
    X = rows(1)
    scores = scorer.score(X)
    assert scorer.n_trees == 3
    for twin in (pickle.loads(pickle.dumps(scorer)), copy.deepcopy(scorer), copy.copy(scorer), replace(scorer)):
        assert same(twin.table, scorer.table)
        assert (twin.feature_names, twin.missing, twin.fill.tolist()) == (("a", "b", "c", "d"), "mean", [0, 1, 2, 3])
        assert twin.score(X).tobytes() == scores.tobytes()


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("missing", ["keep", "error", "zero", "mean"])
def test_a_file_keeps_every_bit(tmp_path, missing, named):
    fill = np.arange(4.0) / 3 if missing == "mean" else None
    scorer = ensemble(TEXT, ("a", "b", "c", "d") if named else (), missing, fill)
    er.Model(scorer).save(tmp_path / "m.json")
    read = er.load(tmp_path / "m.json").scorer
    assert same(read.table, scorer.table)
    assert (read.feature_names, read.missing) == (scorer.feature_names, missing)
    assert (read.fill is None) == (missing in ("keep", "error"))
    assert read.fill is None or read.fill.tobytes() == scorer.fill.tobytes()


def test_loading_and_scoring_need_no_lightgbm(tmp_path):
    er.Model(ensemble(TEXT)).save(tmp_path / "m.json")
    code = """
import sys
sys.modules["lightgbm"] = None
import exactrank as er
scorer = er.load(sys.argv[1]).scorer
X = er.RankingData.from_arrays([[0.0, 1.0, 2.0, 3.0]], [0], group=[1]).X
print(scorer.score(X).tolist(), scorer.contributions(X).tolist(), scorer.importance("split").tolist())
er.models.TreeEnsemble.of_lightgbm(er.export(scorer, "lightgbm").content.decode())
"""
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.json")], capture_output=True, text=True, check=True)
    scorer, X = ensemble(TEXT), np.array([[0, 1, 2, 3]], np.float32)
    ours = f"{scorer.score(X).tolist()} {scorer.contributions(X).tolist()} {scorer.importance('split').tolist()}"
    assert result.stdout.strip() == ours


def same(ours, theirs):
    """Do two tables have the same bits?"""
    pairs = [(getattr(ours, field.name), getattr(theirs, field.name)) for field in fields(TreeTable)]
    return all(np.asarray(one).tobytes() == np.asarray(other).tobytes() for one, other in pairs)


@given(boosters(), st.integers(0, 99))
@settings(max_examples=30)
def test_records_keep_every_bit(booster, seed):
    """Sets of categories, infinite thresholds and gains of single precision included."""
    table = ensemble(booster.model_to_string()).table
    values = np.random.default_rng(seed).standard_normal(len(table.leaf_value)) * 1e-300
    table = replace(table, leaf_value=values, cover=np.abs(values), gain=np.where(table.gain > 5, np.inf, table.gain))
    record = json.loads(json.dumps(er.models.TreeEnsemble(table).to_record(), allow_nan=False))
    assert same(er.models.TreeEnsemble.from_record(record, "m.json").table, table)


def test_the_lines_of_version_1_still_load():
    record = {"kind": "trees", "missing": "keep", "features": [], "lightgbm": TEXT.split("\n")}
    assert same(er.models.TreeEnsemble.from_record(record, "m.json").table, ensemble(TEXT).table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lightgbm": None}, "trees need the lines"),
        ({"lightgbm": ["tree", 3], "features": []}, "trees need the lines"),
        ({"lightgbm": ["tree"], "features": []}, "begins with a line|end of trees"),
        ({"trees": None}, "trees: None is not a list"),
        ({"trees": [3]}, "tree 0: 3 is not an object"),
        ({"features": "abcd"}, "expected names, or a number from 1 to 1048576"),
        ({"features": 2**40}, "expected names, or a number"),
        ({"features": True}, "expected names, or a number"),
        ({"features": ["a", 3]}, "expected names or a number"),
        ({"missing": "mean"}, "needs fill"),
        ({"missing": "mean", "fill": [1.0]}, "fill has 1 values"),
        ({"features": ["a", "b", "c", "c"]}, "features 2 and 3 .* are both called 'c'"),
        ({"levels": {"a": "xy"}}, "levels: expected lists of texts"),
    ],
)
def test_bad_records_are_refused_with_their_place(change, message):
    record = json.loads(json.dumps(ensemble(TEXT).to_record()))
    with pytest.raises(er.errors.DataError, match=rf"m\.json: .*({message})"):
        er.models.TreeEnsemble.from_record(record | change, "m.json")


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("left", lambda left: [9, *left[1:]], "child 9 is out of range"),
        ("left", lambda left: [-9, *left[1:]], "child -9 is out of range"),
        ("right", lambda right: [*right[:-1], 1], "child 1 is out of range or leads back"),
        ("right", lambda right: [-1 if child < 0 else child for child in right], "child -1 is the child of two splits"),
        ("left", lambda left: left[:-1], "left has 6 numbers and feature has 7"),
        ("left", lambda left: [True, *left[1:]], "left has True, which is not a whole number of 32 bits"),
        ("left", lambda left: [2**40, *left[1:]], "left has 1099511627776, which is not a whole number of 32 bits"),
        ("right", lambda right: None, "right is None, not a list"),
        ("feature", lambda feature: [4, *feature[1:]], "feature 4 is not one of 0 to 3"),
        ("decision", lambda decision: [12, *decision[1:]], "decision 12 is not one of 0 to 11"),
        ("decision", lambda decision: [256, *decision[1:]], "decision 256 is not one of 0 to 11"),
        ("value", lambda value: ["inf", *value[1:]], "leaf_value inf is not finite"),
        ("value", lambda value: [10**400, *value[1:]], "value has 10{5}"),
        ("threshold", lambda threshold: ["nan", *threshold[1:]], "threshold has 'nan', which is neither a number nor \"inf\""),
        ("documents", lambda documents: [-1, *documents[1:]], "cover -1.0 is not a finite number of at least 0"),
        ("weight", lambda weight: "inf", "shrinkage inf is not finite"),
        ("weight", lambda weight: None, "weight has None"),
        ("categories", lambda categories: [], "threshold .* is not the place of one of the 0 categories"),
        ("categories", lambda categories: 3, "categories is 3, not a list of lists"),
        (
            "categories",
            lambda categories: [[1 << 24], *categories[1:]],
            "categories has .* whole numbers from 0 to 16777215",
        ),
        (
            "categories",
            lambda categories: [*categories, *[[(1 << 24) - 1]] * 40],
            ".* take more than 16,777,216 words",
        ),
    ],
)
def test_damage_to_a_tree_is_named_with_it(key, change, message):
    record = json.loads(json.dumps(ensemble(TEXT).to_record()))
    tree = record["trees"][1]
    assert len(tree["feature"]) == 7
    tree[key] = change(tree[key])
    with pytest.raises(er.errors.DataError, match=rf"^m\.json: tree 1: {message}.*; (train or copy|number categories)"):
        er.models.TreeEnsemble.from_record(record, "m.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": [0, 3]}, "start must end at 2"),
        ({"feature": [0, 2]}, "feature is out of range"),
        ({"left": [1, 2]}, "child is out of range"),
        ({"left": [0, -1]}, "child is out of range"),
        ({"left": [1, -2]}, "child is out of range"),
        ({"decision": [1, 1], "threshold": [0.0, 1.0]}, "set is out of range"),
        ({"leaf_value": [0.0, 0.0]}, "one leaf more"),
        ({"set_start": [0, 2]}, "set_start must end at 1"),
    ],
)
def test_the_kernel_follows_no_wild_index(change, message):
    arguments = {"start": [0, 2], "feature": [0, 1], "threshold": [0.0, 0.0], "decision": [0, 1], "left": [1, -1], "right": [-2, -3]}
    arguments |= {"leaf_value": [1.0, 2.0, 3.0], "set_start": [0, 1], "sets": [1]} | change
    types = {"start": np.int64, "feature": np.int32, "decision": np.uint8, "left": np.int32, "right": np.int32, "set_start": np.int64}
    with pytest.raises(ValueError, match=message):
        _core.Trees(
            2,
            **{name: np.array(values, types.get(name, np.uint32 if name == "sets" else np.float64)) for name, values in arguments.items()},
        )
