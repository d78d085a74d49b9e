"""Trees in arrays: taken, weighted, joined and moved without loss, and wrong arrays refused with the tree and the value."""

import pickle
from dataclasses import fields, replace
from fractions import Fraction

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.models.lightgbm_text import write_lightgbm
from exactrank.models.plain_tree import PlainTree, table_of
from exactrank.models.tree_table import CATEGORICAL, TreeTable
from tests.models.test_tree_ensemble import boosters, ensemble, hard_rows, same, trained


@given(boosters(), st.integers(0, 99), st.data())
@settings(max_examples=20)
def test_the_first_trees_are_those_of_lightgbm(booster, seed, data):
    text, count = booster.model_to_string(), data.draw(st.integers(1, booster.num_trees()))
    table, X = ensemble(text).table, hard_rows(text, seed)
    assert same(table.first(count), ensemble(booster.model_to_string(num_iteration=count)).table)
    assert er.models.TreeEnsemble(table.first(0)).score(X).tolist() == [0.0] * len(X)
    assert same(table.first(0).join(table), table)
    assert same(table.join(table.first(0)), table)
    assert same(table.single(0).join(*(table.single(t) for t in range(1, table.n_trees))), table)


@given(boosters(), st.integers(0, 99), st.data())
@settings(max_examples=20)
def test_weights_go_into_the_leaves(booster, seed, data):
    text, trees = booster.model_to_string(), booster.num_trees()
    weights = data.draw(st.lists(st.one_of(st.just(1.0), st.floats(-3, 3)), min_size=trees, max_size=trees))
    table, X = ensemble(text).table, hard_rows(text, seed)
    changed, leaf = table.scale(weights), booster.predict(X, pred_leaf=True).reshape(len(X), trees)
    theirs = [sum((w * booster.get_leaf_output(t, k) for t, (w, k) in enumerate(zip(weights, own, strict=True))), 0.0) for own in leaf]
    written = lgb.Booster(model_str=write_lightgbm(changed))
    assert er.models.TreeEnsemble(changed).score(X).tolist() == theirs == written.predict(X, raw_score=True).tolist()
    assert changed.shrinkage.tolist() == (table.shrinkage * weights).tolist()
    assert same(table.scale([1.0] * trees), table)


@given(boosters(), boosters(), st.integers(0, 99))
@settings(max_examples=20)
def test_joined_trees_add_up(first, second, seed):
    tables = [ensemble(booster.model_to_string()).table for booster in (first, second)]
    whole, X = tables[0].join(*tables), hard_rows(second.model_to_string(), seed)
    assert whole.n_trees == 2 * first.num_trees() + second.num_trees()
    scores = np.zeros(len(X))
    for table in (tables[0], *tables):
        for t in range(table.n_trees):
            scores = scores + er.models.TreeEnsemble(table.single(t)).score(X)
    assert er.models.TreeEnsemble(whole).score(X).tobytes() == scores.tobytes()


@given(boosters(), st.integers(0, 99))
@settings(max_examples=20)
def test_moved_thresholds_are_rounded_down(booster, seed):
    """The largest double that is not above the sum: so what lay above a threshold does so after both have moved."""
    table, rng = ensemble(booster.model_to_string()).table, np.random.default_rng(seed)
    by = rng.choice([0.0, 1e9, -3.7, 2.0**40], table.n_features)
    moved = table.shift(by)
    for feature, decision, before, after in zip(table.feature, table.decision, table.threshold, moved.threshold, strict=True):
        if decision & CATEGORICAL or by[feature] == 0 or not np.isfinite(before):
            assert after == before
        else:
            assert Fraction(after) <= Fraction(before) + Fraction(by[feature]) < Fraction(np.nextafter(after, np.inf))


def test_arrays_cannot_be_changed_and_copies_are_the_same():
    table = ensemble(trained().model_to_string()).table
    with pytest.raises(ValueError, match="read-only"):
        table.leaf_value[0] = 1.0
    assert table.native is table.native
    assert same(pickle.loads(pickle.dumps(table)), table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.scale([1.0]), "1 weights, 1.0, for 3 trees; give one finite weight per tree"),
        (lambda table: table.scale([1.0, np.nan, 1.0]), "give one finite weight per tree"),
        (lambda table: table.scale([1.0, 1.0, 1e308]), "tree 2: leaf_value .* times its weight overflows; give a smaller one"),
        (lambda table: table.first(4), "there are 3 trees, so the first 4"),
        (lambda table: table.first(-1), "the first -1"),
        (lambda table: table.join(table_of([STUMP], 2)), "4 and 2 features; join only trees of the same features"),
    ],
)
def test_changes_that_make_no_sense_are_refused(change, message):
    table = ensemble(trained(trees=3).model_to_string()).table.scale([1.0, 1.0, 100.0])
    with pytest.raises(er.errors.ExactRankError, match=message):
        change(table)


STUMP = PlainTree(np.array([1, 0, 0]), np.array([0.5, 0, 0]), np.array([1, -1, -1]), np.array([2, -1, -1]), np.array([0, 1.0, 2.0]))
SOUND = {
    "n_features": 2, "start": [0, 0, 2], "feature": [0, 1], "threshold": [0.0, 0.0], "decision": [0, 1], "left": [1, -1],
    "right": [-2, -3], "gain": [1.0, 1.0], "leaf_value": [0.5, 1.0, 2.0, 3.0], "set_start": [0, 1], "sets": [1],
    "shrinkage": [1.0, 1.0], "cover": [1.0, 1.0, 2.0, 3.0],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_features": 0}, "the trees read 0 features"),
        ({"start": [0, 0, 3]}, "start does not rise from 0 to 2"),
        ({"start": [0, 3, 2]}, "start does not rise from 0 to 2"),
        ({"start": []}, "start does not rise"),
        ({"set_start": [0, 0, 1]}, "set_start does not rise from 0 to 1"),
        ({"threshold": [0.0]}, "threshold has 1 numbers for 2 trees with 2 splits, not 2"),
        ({"leaf_value": [1.0, 2.0]}, "leaf_value has 2 numbers .* not 4"),
        ({"shrinkage": [1.0]}, "shrinkage has 1 numbers .* not 2"),
        ({"feature": [0, 2]}, "tree 1: feature 2 is not one of 0 to 1"),
        ({"feature": [0.0, 1.0]}, r"feature is an array of shape \(2,\) and type float64; give a flat array of type int32"),
        ({"threshold": [[0.0, 0.0]]}, r"threshold is an array of shape \(1, 2\)"),
        ({"threshold": [np.nan, 0.0]}, "tree 1: threshold nan is not a number"),
        ({"threshold": [0.0, 1.0]}, "tree 1: threshold 1.0 names a set of categories that is not there"),
        ({"threshold": [0.0, 0.5]}, "tree 1: threshold 0.5 names a set"),
        ({"decision": [12, 1]}, "tree 1: decision 12 is not one of 0 to 11"),
        ({"left": [1, 2]}, "tree 1: child 2 is out of range"),
        ({"left": [0, -1]}, "tree 1: child 0 is out of range or leads back"),
        ({"left": [1, -4]}, "tree 1: child -4 is out of range"),
        ({"left": [1, -2]}, "tree 1: child -2 is the child of two splits"),
        ({"gain": [np.nan, 1.0]}, "tree 1: gain nan is not a number"),
        ({"leaf_value": [np.inf, 1.0, 2.0, 3.0]}, "tree 0: leaf_value inf is not finite"),
        ({"cover": [1.0, -1.0, 2.0, 3.0]}, "tree 1: cover -1.0 is not a finite number of at least 0"),
        ({"shrinkage": [1.0, np.inf]}, "tree 1: shrinkage inf is not finite"),
        ({"sets": [1 << 32]}, "does not have 32 bits"),
    ],
)
def test_wrong_arrays_are_refused_with_the_tree_and_the_value(change, message):
    assert [field.name for field in fields(TreeTable)] == list(SOUND)
    assert TreeTable(**SOUND).native.scores(np.array([[0, 0], [0, 1], [1, 0]], np.float32), 1).tolist() == [1.5, 3.5, 2.5]
    with pytest.raises(er.errors.DataError, match=message):
        TreeTable(**SOUND | change)


@st.composite
def plain_trees(draw, n_features=3):
    """Random trees whose nodes stand in a random order, with some that nothing leads to."""
    splits = draw(st.integers(0, 12))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    left, right, leaves = [-1], [-1], [0]
    for _ in range(splits):
        node = leaves.pop(rng.integers(len(leaves)))
        left[node], right[node] = len(left), len(left) + 1
        leaves += [len(left), len(left) + 1]
        left += [-1, -1]
        right += [-1, -1]
    nodes, lost = len(left), draw(st.integers(0, 2))
    place = np.concatenate([[0], 1 + rng.permutation(nodes - 1 + lost)])[:nodes]  # of each node
    sides = np.full((2, nodes + lost), -1)
    for side, own in enumerate((left, right)):
        sides[side, place] = [place[child] if child >= 0 else -1 for child in own]
    size = nodes + lost
    missing = rng.random(size) < 0.5 if draw(st.booleans()) else None
    threshold = rng.choice([0.0, 0.5, -1.0, 1e-35, np.float32(0.1), 3.0], size)
    return PlainTree(rng.integers(0, n_features, size), threshold, *sides, rng.normal(size=size), missing)


def walked(tree, row):
    node = 0
    while tree.left[node] >= 0:
        x, left = float(row[tree.feature[node]]), tree.missing_left
        x = 0.0 if abs(x) <= 1.0000000180025095e-35 or (np.isnan(x) and left is None) else x
        goes_left = left[node] if np.isnan(x) else x <= tree.threshold[node]
        node = tree.left[node] if goes_left else tree.right[node]
    return tree.value[node]


@given(st.lists(plain_trees(), min_size=1, max_size=4), st.integers(0, 99))
@settings(max_examples=60)
def test_plain_trees_score_as_they_are_walked(trees, seed):
    scorer = er.models.TreeEnsemble(table_of(trees, 3), ("a", "b", "c d"))
    close = [np.nextafter(np.float32(t), np.float32(side)) for t in (0.0, 0.5, -1.0, 0.1, 3.0) for side in (-np.inf, np.inf)]
    X = np.random.default_rng(seed).choice(np.array([np.nan, 0.0, 0.5, -1.0, 0.1, 3.0, np.inf, *close], np.float32), (60, 3))
    theirs = [sum((walked(tree, row) for tree in trees), 0.0) for row in X]
    assert scorer.score(X).tolist() == theirs
    booster = lgb.Booster(model_str=write_lightgbm(scorer.table, scorer.feature_names))
    assert booster.predict(X).tolist() == theirs
    np.testing.assert_allclose(booster.predict(X, pred_contrib=True).sum(axis=1), theirs, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"left": [1, 0, -1]}, "tree 1: node 0 is the child of two nodes, or of one below it"),
        ({"right": [1, -1, -1]}, "tree 1: node 1 is the child of two"),
        ({"right": [3, -1, -1]}, "tree 1: there is a child 3 but there are 3 nodes"),
        ({"right": [-2, -1, -1]}, "tree 1: there is a child -2"),
        ({"feature": [2, 0, 0]}, "tree 1: node 0 splits at a feature that is none of the 2"),
        ({"threshold": [np.nan, 0, 0]}, "tree 1: node 0 has no number for a threshold"),
        ({"value": [0, 1.0, np.inf]}, "tree 1: node 2 has no finite value"),
        ({"gain": [np.nan, 0, 0]}, "tree 1: node 0 has no number for a gain"),
        ({"cover": [0, -1, 1]}, "tree 1: node 1 has no cover"),
    ],
)
def test_what_is_no_tree_is_named_with_its_node(arguments, message):
    sound = {"feature": [1, 0, 0], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1], "value": [0, 1.0, 2.0]}
    stump = PlainTree(**{name: np.array(values) for name, values in sound.items()})
    table_of([stump], 2)
    with pytest.raises(er.errors.DataError, match=message):
        table_of([stump, replace(stump, **{name: np.array(values) for name, values in arguments.items()})], 2)
    with pytest.raises(er.errors.DataError, match="no trees"):
        table_of([], 2)
