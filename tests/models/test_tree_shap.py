"""What features add to the scores of trees: Shapley values by their definition, LightGBM's, and laws."""

from dataclasses import replace

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.models.plain_tree import PlainTree, table_of
from tests.models.test_tree_ensemble import boosters, hard_rows, rows, trained
from tests.models.test_tree_table import plain_trees
from tests.reference.tree_shap import tree_contributions

NAMES = ("a", "b", "c", "d")


def close(ours, theirs, scale=1.0):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12 * scale)


@given(boosters(), st.integers(0, 99))
@settings(max_examples=25)
def test_contributions_are_shapley_values(booster, seed):
    text = booster.model_to_string()
    scorer, X = er.models.TreeEnsemble.of_lightgbm(text), hard_rows(text, seed)[::15]
    ours = scorer.contributions(X)
    close(ours, tree_contributions(scorer.table, X))
    close(ours.sum(axis=1), scorer.score(X))


@given(st.lists(plain_trees(), min_size=1, max_size=3), st.integers(0, 99))
@settings(max_examples=25)
def test_any_cover_counts_leaves_without_documents_too(trees, seed):
    table, rng = table_of(trees, 3), np.random.default_rng(seed)
    table = replace(table, cover=rng.choice([0.0, 0.0, 0.25, 1.0, 1e9], len(table.cover)))
    X = rng.choice(np.array([np.nan, 0.0, 0.5, -1.0, 3.0], np.float32), (6, 3))
    close(er.models.TreeEnsemble(table).contributions(X), tree_contributions(table, X))


@given(boosters(), st.integers(0, 99))
@settings(max_examples=25)
def test_contributions_are_lightgbms(booster, seed):
    text = booster.model_to_string()
    X = hard_rows(text, seed)
    ours = er.models.TreeEnsemble.of_lightgbm(text).contributions(X)
    close(ours, booster.predict(X, pred_contrib=True))
    written = er.export(er.models.TreeEnsemble.of_lightgbm(text), "lightgbm").content.decode()
    close(ours, lgb.Booster(model_str=written).predict(X, pred_contrib=True))


def test_contributions_do_not_depend_on_threads_or_neighbors():
    X, scorer = rows(5, 700), er.models.TreeEnsemble.of_lightgbm(trained(5, 10, num_leaves=60).model_to_string())
    single = scorer.contributions(X, threads=1)
    assert single.tobytes() == scorer.contributions(X, threads=3).tobytes()
    assert single[130:201].tobytes() == scorer.contributions(X[130:201]).tobytes()
    assert scorer.contributions(X[:0]).shape == (0, 5)


def chain(depth, features):
    """A tree whose splits all lie on one path."""
    splits, sides = np.arange(0, 2 * depth, 2), np.full((2, 2 * depth + 1), -1)  # a leaf follows each split
    sides[:, splits] = splits + 1, splits + 2
    feature = np.zeros(2 * depth + 1, np.int64)
    feature[splits] = np.arange(depth) % features
    rng = np.random.default_rng(depth)
    return PlainTree(feature, np.zeros(2 * depth + 1), *sides, rng.normal(size=2 * depth + 1), cover=rng.random(2 * depth + 1))


@pytest.mark.parametrize(("depth", "features"), [(40, 40), (300, 300), (2000, 20)])
def test_deep_trees_lose_no_digits(depth, features):
    """More features on a path than quadratures are kept for, and splits that are asked again and again."""
    scorer = er.models.TreeEnsemble(table_of([chain(depth, features)], features))
    X = np.random.default_rng(0).choice([1.0, -1.0], (5, features), p=[0.9, 0.1]).astype(np.float32)
    close(scorer.contributions(X).sum(axis=1), scorer.score(X))


def test_contributions_follow_the_policy_for_missing_values():
    X = rows(3)
    keeping = er.models.TreeEnsemble(er.models.TreeEnsemble.of_lightgbm(trained(3).model_to_string()).table, NAMES)
    mean = replace(keeping, missing="mean", fill=np.array([0.5, 0, 0, 7]))
    filled = np.where(np.isnan(X), mean.fill, X).astype(np.float32)
    assert mean.contributions(X).tobytes() == keeping.contributions(filled).tobytes()
    with pytest.raises(er.errors.DataError, match=r"values are missing \(a: "):
        replace(keeping, missing="error").contributions(X)


def test_contributions_of_differences_from_an_offset_are_those_of_whole_features():
    X, offset = rows(4).astype(np.float64), np.array([4096.0, 0.0, 64.0, 0.0])
    scorer = er.models.TreeEnsemble.of_lightgbm(trained(4, zero_as_missing=False).model_to_string()).with_offset(offset)
    whole = (X + offset).astype(np.float32)
    close(scorer.contributions((whole - offset).astype(np.float32), offset), scorer.contributions(whole))


def test_contributions_that_overflow_are_refused():
    left, right = np.array([1, -1, -1]), np.array([2, -1, -1])
    tree = PlainTree(np.zeros(3, int), np.full(3, 0.5), left, right, np.array([0.0, 1.7e308, -1.7e308]))
    scorer = er.models.TreeEnsemble(table_of([tree, tree], 1))
    with pytest.raises(er.errors.DataError, match="row 0 overflows; scale the trees down"):
        scorer.contributions(np.zeros((1, 1), np.float32))


def test_the_kernel_checks_its_arrays():
    arrays = er.models.TreeEnsemble.of_lightgbm(trained().model_to_string()).table._kernel_arrays()
    with pytest.raises(ValueError, match="a cover for each leaf"):
        _core.tree_contributions(**arrays, cover=np.ones(1), x=np.zeros((1, 4), np.float32), threads=1)
    with pytest.raises(ValueError, match="differ in features"):
        _core.tree_contributions(**arrays, cover=np.ones(len(arrays["leaf_value"])), x=np.zeros((1, 3), np.float32), threads=1)
