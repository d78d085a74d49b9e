"""Jumping points against the order of the documents between all crossings."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank.errors import DataError, IncompatibleError
from exactrank.inspect.jumping_points import jumping_points


def brute_force(s, t, k):
    """How many crossings of lines s + alpha t have other documents, or another order of them, at the top on their two sides."""
    i, j = np.triu_indices(len(s), 1)
    points = np.sort((s[i] - s[j]) / (t[j] - t[i]))
    ends = np.concatenate([points[:1] - 1, points, points[-1:] + 1])
    tops = [np.argsort(-(s + (a + b) / 2 * t))[:k].tolist() for a, b in pairwise(ends)]
    return sum(before != after for before, after in pairwise(tops))


def lines(seed, sizes):
    rng = np.random.default_rng(seed)
    data = er.RankingData.from_arrays(None, rng.integers(0, 3, sum(sizes)), group=sizes)
    return data, rng.normal(size=sum(sizes)), rng.normal(size=sum(sizes))


@given(st.integers(0, 10**6), st.lists(st.integers(1, 12), min_size=1, max_size=4), st.sampled_from([1, 2, 5, None]))
def test_equals_brute_force(seed, sizes, k):
    data, s, t = lines(seed, sizes)
    ours = jumping_points(data, s, t, er.measures.NDCG(k=k))
    theirs = [brute_force(s[a:b], t[a:b], k) for a, b in pairwise(data.indptr)]
    assert ours.dtype == np.int64
    assert ours.tolist() == theirs


@given(st.integers(0, 10**6), st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_without_a_cutoff_every_crossing_is_one_and_with_one_fewer_are(seed, sizes):
    data, s, t = lines(seed, sizes)
    every = jumping_points(data, s, t, "nDCG")
    assert every.tolist() == [n * (n - 1) // 2 for n in sizes]
    assert np.all(jumping_points(data, s, t, "nDCG@3", threads=2) <= every)
    assert jumping_points(data, s, t, "P@3").tolist() == jumping_points(data, s, t, "nDCG@3", threads=1).tolist()


def test_interleaved_queries_and_documents_that_were_not_retrieved():
    data = er.RankingData.from_arrays(None, [1, 0, 0, 1, 0], qid=["a", "b", "a", "b", "a"])
    s, t = np.array([0.0, 0.0, 1.0, 0.0, -np.inf]), np.array([1.0, 0.0, 0.0, 0.0, 2.0])
    assert jumping_points(data, s, t, "nDCG@2").tolist() == [1, 0]


def test_the_number_stops_growing_with_the_documents():
    """Table 12 of Tan et al. (2013): most documents are never at the top."""
    means = []
    for documents in (50, 500):
        data, s, t = lines(0, [documents] * 20)
        means.append(jumping_points(data, s, t, "nDCG@5").mean())
    assert means[1] < 2 * means[0]


def test_what_is_refused():
    data, s, t = lines(0, [3])
    with pytest.raises(IncompatibleError, match="AP is not positional"):
        jumping_points(data, s, t, "AP")
    with pytest.raises(DataError, match="direction holds nan; give numbers"):
        jumping_points(data, s, t * np.nan, "nDCG")
    with pytest.raises(DataError, match="direction has shape"):
        jumping_points(data, s, t[:2], "nDCG")
