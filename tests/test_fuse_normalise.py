"""Scores made comparable: normalisation and ranks by their definitions, and which documents can be left out."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as xr
from exactrank.fuse import contenders, normalise
from exactrank.fuse.contenders import problem_of
from exactrank.fuse.normalise import ABSENT, NORMALISATIONS, kth_largest, mean_ranks, normalised
from tests.fuse_data import NAMES, random_systems, systems, value_at
from tests.reference import fuse as reference


@given(systems(anchored=False), st.sampled_from(list(NORMALISATIONS)), st.sampled_from(ABSENT))
def test_normalisation_equals_its_definition(data, how, missing):
    ours, ranked = normalised(data.X, data.indptr, how, missing)
    for begin, end in pairwise(data.indptr):
        for j in range(2):
            column = [None if math.isnan(s) else float(s) for s in data.X[begin:end, j]]
            theirs = reference.normalised(column, how, missing)
            np.testing.assert_allclose(ours[j, begin:end], theirs, rtol=1e-12, atol=1e-12)
    absent = np.isnan(data.X)
    assert ranked.tolist() == [not (row.any() if missing == "drop" else row.all()) for row in absent]


@given(systems(), st.sampled_from([f"{m}@3" for m in ("nDCG", "P", "ERR")]))
def test_rank_normalisation_sees_only_the_order(data, measure):
    """Any increasing function of one system's scores leaves the result as it is."""
    X = data.X.copy()
    X[:, 0] = np.exp(X[:, 0]) * 7 - 3
    other = xr.RankingData.from_arrays(X, data.y, group=data.sizes, feature_names=NAMES[:2])
    ours, theirs = (xr.fuse(d, normalise="rank", measure=measure, folds=0, bootstrap=0) for d in (data, other))
    assert ours.weights == theirs.weights
    assert ours.value == theirs.value


@given(systems(anchored=False, max_queries=5), st.integers(1, 4))
def test_kth_largest(data, k):
    values = np.nan_to_num(data.X[:, 0].astype(float))
    theirs = [sorted(values[a:b])[-k] if b - a >= k else -math.inf for a, b in pairwise(data.indptr)]
    assert kth_largest(values, data.indptr, k).tolist() == theirs


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=7), min_size=1, max_size=6), st.sampled_from([1, 8, 1000]))
def test_mean_ranks_of_lists_of_any_length(lists, room):
    scores, sizes = np.array([s for each in lists for s in each], np.float32), np.array([len(each) for each in lists])
    theirs = [sum(x > s for x in each) + (each.count(s) + 1) / 2 for each in lists for s in each]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(normalise, "ROOM", room)
        assert mean_ranks(scores, np.cumsum(sizes) - sizes, sizes).tolist() == theirs


def test_documents_that_cannot_matter_are_left_out():
    data = random_systems(2, documents=200)
    posed = problem_of(data, xr.parse_measure("nDCG@5"), "min-max", "worst")
    assert posed.data.n_documents < data.n_documents / 2
    for w in np.random.default_rng(1).random(20):
        whole = value_at(data, (1 - w, w), "nDCG@5")
        assert posed.value(np.array([1 - w, w]), posed.data.weights) == pytest.approx(whole, abs=1e-12)


@given(
    systems(anchored=False, n=3, max_documents=8), st.sampled_from(["nDCG@2", "P(norm='list')@2", "nDCG(short='zero')@4", "AP@2", "R@1"])
)
def test_leaving_documents_out_changes_no_value(data, measure):
    for nonnegative in (True, False):
        posed = problem_of(data, xr.parse_measure(measure), "min-max", "worst", nonnegative)
        weights = np.random.default_rng(0).dirichlet(np.ones(3)) * (1 if nonnegative else np.array([1, -1, 1]))
        assert posed.value(weights, posed.data.weights) == pytest.approx(value_at(data, weights, measure), abs=1e-12)


def test_blocks_of_queries_make_no_difference(monkeypatch):
    data = random_systems(2)
    whole = xr.fuse(data).to_json()
    monkeypatch.setattr(contenders, "BLOCK", 16)
    assert xr.fuse(data).to_json() == whole
