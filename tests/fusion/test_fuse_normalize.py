"""Scores made comparable: normalization and ranks by their definitions, and which documents can be left out."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

import exactrank as er
from exactrank.fusion import lists as fuse_lists, preparation
from exactrank.fusion.engines import ENGINES
from exactrank.fusion.lists import kth_largest, mean_ranks, ordinal_ranks
from exactrank.fusion.normalize import ABSENT, NORMALIZATIONS, cut_lists, normalize_systems, parse_normalization
from exactrank.fusion.preparation import problem_of
from tests.fusion.fuse_data import NAMES, random_systems, systems, value_at
from tests.reference import fuse as reference

ALL = [
    *NORMALIZATIONS,
    *(f"{name}(k={k})" for name in NORMALIZATIONS if name.endswith(("-rank", "-rrf")) and name != "rank" for k in (1, 10)),
]


@given(systems(anchored=False), st.sampled_from(ALL), st.sampled_from(ABSENT))
def test_normalization_equals_its_definition(data, how, missing):
    ours, ranked = normalize_systems(data.X, data.indptr, how, missing)
    name, k = parse_normalization(how)
    absent = np.isnan(data.X)
    for begin, end in pairwise(data.indptr):
        for j in range(2):
            column = [None if math.isnan(s) else float(s) for s in data.X[begin:end, j]]
            if missing == "zero-score":
                column = [0.0 if s is None and not gone else s for s, gone in zip(column, absent[begin:end].all(axis=1), strict=True)]
            theirs = reference.normalized(column, name, missing, k)
            if name in ENGINES_OWN:  # in the engine's own arithmetic, to the bit
                assert ours[j, begin:end].tolist() == [float(v) for v in theirs]
            np.testing.assert_allclose(ours[j, begin:end], theirs, rtol=1e-12, atol=1e-12)
    assert ranked.tolist() == [not (row.any() if missing == "drop" else row.all()) for row in absent]


ENGINES_OWN = {how for engine in ENGINES.values() for how in engine.normalizations if how != "none"}
#: What each engine makes of 4, 2, 2, 8 and of 3, 3, worked out by hand from its formula; ranks with the constant 60.
BY_HAND = {
    "elasticsearch-min-max": ([1 / 3, 0, 0, 1], [3, 3]),
    "elasticsearch-l2": ([4 / 88**0.5, 2 / 88**0.5, 2 / 88**0.5, 8 / 88**0.5], [0.5**0.5, 0.5**0.5]),
    "elasticsearch-rrf": ([1 / 62, 1 / 63, 1 / 64, 1 / 61], [1 / 61, 1 / 62]),
    "opensearch-min-max": ([1 / 3, 0.001, 0.001, 1], [1, 1]),
    "opensearch-l2": ([4 / 88**0.5, 2 / 88**0.5, 2 / 88**0.5, 8 / 88**0.5], [0.5**0.5, 0.5**0.5]),
    "opensearch-z-score": ([8, 0.001, 0.001, 4 / 8**0.5], [3, 3]),  # the mean is 4, the variance (0 + 4 + 4 + 16) / 3 = 8
    "opensearch-rrf": ([0.0161290323, 0.0158730159, 0.015625, 0.0163934426], [0.0163934426, 0.0161290323]),
    "vespa-linear": ([0.5 - 1 / 6, 0, 0, 1], [0.5, 0.5]),  # the middle is 5, the width 6
    "vespa-reciprocal-rank": ([1 / 62, 1 / 63, 1 / 64, 1 / 61], [1 / 61, 1 / 62]),
    "weaviate-relative-score": ([1 / 3, 0, 0, 1], [1, 1]),
}


def test_every_engine_by_hand():
    assert set(BY_HAND) == ENGINES_OWN
    for how, theirs in BY_HAND.items():
        ours, _ = normalize_systems(np.array([[4], [2], [2], [8], [3], [3]], np.float32), np.array([0, 4, 6]), how, "zero")
        np.testing.assert_allclose(ours[0], [*theirs[0], *theirs[1]], rtol=1e-7, err_msg=how)
        for scores, made in zip(([4, 2, 2, 8], [3, 3]), theirs, strict=True):
            np.testing.assert_allclose([float(v) for v in reference.comparable(scores, how)], made, rtol=1e-7, err_msg=how)


@pytest.mark.parametrize("how", sorted(ENGINES_OWN))
@given(scores=st.lists(st.floats(0, 50, width=32), min_size=1, max_size=9))
@example(scores=[2.0, 2.0 + 2**-21])  # less than 1e-6 apart
@example(scores=[0.0, 0.0])
def test_engines_on_scores_of_any_size(how, scores):
    """Single documents, equal scores, zeros, numbers too small to divide by: as the twin has it, to the bit."""
    ours, _ = normalize_systems(np.array(scores, np.float32)[:, None], np.array([0, len(scores)]), how, "zero")
    with np.errstate(all="ignore"):
        theirs = [float(v) for v in reference.comparable(scores, how)]
    if how == "opensearch-z-score":  # mean and deviation are rounded to single precision, from sums in another order
        np.testing.assert_allclose(ours[0], theirs, rtol=1e-5)
    else:
        assert ours[0].tolist() == theirs


def test_ten_decimals_are_rounded_up():
    """1 / 2048 has eleven decimals, of which the last is a 5."""
    ours, _ = normalize_systems(np.array([[1.0]], np.float32), np.array([0, 1]), "opensearch-rrf(k=2047)", "zero")
    assert ours[0, 0] == np.float32(0.0004882813) != np.float32(0.0004882812)


@given(systems(anchored=False, max_queries=5), st.integers(1, 4))
def test_cutting_keeps_the_first_of_each_list(data, depth):
    shorter = cut_lists(data.X, data.indptr, depth)
    for begin, end in pairwise(data.indptr):
        for j in range(2):
            there = [i for i in range(begin, end) if not math.isnan(data.X[i, j])]
            kept = sorted(there, key=lambda i: -data.X[i, j])[:depth]
            assert [i for i in range(begin, end) if not math.isnan(shorter[i, j])] == sorted(kept)
            assert shorter[kept, j].tolist() == data.X[kept, j].tolist()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("opensearch-minmax", r"there is no normalization 'opensearch-minmax' \(did you mean opensearch-min-max\?\)"),
        ("min-max(k=3)", r"normalize='min-max\(k=3\)': min-max has no constant; leave out \(k=3\)"),
        ("reciprocal-rank(k=0)", "k must be from 1 to 10,000"),
        ("reciprocal-rank(k=-1)", "there is no normalization"),
        ("reciprocal-rank(k=99999)", "k must be from 1 to 10,000"),
        ("", "there is no normalization ''"),
    ],
)
def test_bad_normalizations(how, message):
    with pytest.raises(er.errors.SettingError, match=message):
        parse_normalization(how)


@given(systems(), st.sampled_from([f"{m}@3" for m in ("nDCG", "P", "ERR")]))
def test_rank_normalization_sees_only_the_order(data, measure):
    """Any increasing function of one system's scores leaves the result as it is."""
    X = data.X.copy()
    X[:, 0] = np.exp(X[:, 0]) * 7 - 3
    other = er.RankingData.from_arrays(X, data.y, group=data.sizes, feature_names=NAMES[:2])
    ours, theirs = (er.fuse(d, normalize="rank", measure=measure, folds=0, bootstrap=0) for d in (data, other))
    assert ours.weights == theirs.weights
    assert ours.value == theirs.value


@given(systems(anchored=False, max_queries=5), st.integers(1, 4))
def test_kth_largest(data, k):
    values = np.nan_to_num(data.X[:, 0].astype(float))
    theirs = [sorted(values[a:b])[-k] if b - a >= k else -math.inf for a, b in pairwise(data.indptr)]
    assert kth_largest(values, data.indptr, k).tolist() == theirs


@given(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=7), min_size=1, max_size=6), st.sampled_from([1, 8, 1000]))
def test_ranks_of_lists_of_any_length(lists, room):
    scores, sizes = np.array([s for each in lists for s in each], np.float32), np.array([len(each) for each in lists])
    theirs = [sum(x > s for x in each) + (each.count(s) + 1) / 2 for each in lists for s in each]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fuse_lists, "TABLE_CELLS", room)
        assert mean_ranks(scores, np.cumsum(sizes) - sizes, sizes).tolist() == theirs
        apart = [sum(x > s for x in each) + each[: i + 1].count(s) for each in lists for i, s in enumerate(each)]
        assert ordinal_ranks(scores, np.cumsum(sizes) - sizes, sizes).tolist() == apart


def test_documents_that_cannot_matter_are_left_out():
    data = random_systems(2, documents=200)
    posed = problem_of(data, er.parse_measure("nDCG@5"), "min-max", "worst")
    assert posed.data.n_documents < data.n_documents / 2
    for w in np.random.default_rng(1).random(20):
        whole = value_at(data, (1 - w, w), "nDCG@5")
        assert posed.value(np.array([1 - w, w]), posed.data.weights) == pytest.approx(whole, abs=1e-12)


@given(
    systems(anchored=False, n=3, max_documents=8), st.sampled_from(["nDCG@2", "P(norm='list')@2", "nDCG(short='zero')@4", "AP@2", "R@1"])
)
def test_leaving_documents_out_changes_no_value(data, measure):
    for nonnegative in (True, False):
        posed = problem_of(data, er.parse_measure(measure), "min-max", "worst", nonnegative)
        weights = np.random.default_rng(0).dirichlet(np.ones(3)) * (1 if nonnegative else np.array([1, -1, 1]))
        assert posed.value(weights, posed.data.weights) == pytest.approx(value_at(data, weights, measure), abs=1e-12)


def test_blocks_of_queries_make_no_difference(monkeypatch):
    data = random_systems(2)
    whole = er.fuse(data).to_json()
    monkeypatch.setattr(preparation, "BLOCK", 16)
    assert er.fuse(data).to_json() == whole
