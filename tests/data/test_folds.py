"""Splits of data by whole queries."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er


def judged(queries):
    sizes = 1 + np.arange(queries) % 3
    names = np.repeat([f"q{q}" for q in range(queries)], sizes)
    order = np.random.default_rng(queries).permutation(len(names))
    return er.RankingData.from_arrays(np.arange(2.0 * len(names)).reshape(-1, 2), np.arange(len(names)) % 3, qid=names[order])


@given(st.integers(10, 60), st.integers(0, 5), st.sampled_from([(0.6, 0.2, 0.2), (0.5, 0.5), (0.7, 0.1, 0.1, 0.1)]))
def test_each_query_is_in_one_part_as_a_whole(queries, seed, fractions):
    data = judged(queries)
    parts = er.split(data, *fractions, seed=seed)
    results = [name for part in parts for name in part.qid.tolist()]
    assert sorted(results) == sorted(data.qid.tolist())
    assert sum(part.n_documents for part in parts) == data.n_documents
    for part, share in zip(parts, fractions, strict=True):
        assert abs(part.n_queries - share * queries) <= 1
        places = [data.qid.tolist().index(name) for name in part.qid.tolist()]
        assert places == sorted(places)
        assert np.array_equal(part.X, data.take_queries(places).X)
        assert np.array_equal(part.y, data.take_queries(places).y)


def test_the_seed_says_which():
    data = judged(40)
    first, again, second = (er.split(data, 0.5, 0.5, seed=seed)[0].qid.tolist() for seed in (1, 1, 2))
    assert first == again != second
    assert er.split(data, 0.5, 0.5)[0].qid.tolist() == er.split(data, 0.5, 0.5, seed=0)[0].qid.tolist()


@pytest.mark.parametrize(
    "fractions", [(), (1.0,), (0.6, 0.2), (0.6, 0.6), (1.5, -0.5), (1.0, 0.0), (0.5, np.nan), ("0.5", "0.5"), (True, 0.5)]
)
def test_fractions_that_make_no_sense_are_refused(fractions):
    with pytest.raises(er.errors.DataError, match="two or more numbers between 0 and 1 that add up to 1"):
        er.split(judged(20), *fractions)


def test_parts_without_a_query_are_refused():
    with pytest.raises(er.errors.DataError, match=r"a fraction of 0.1 of 3 queries is none; give a larger fraction, or more queries"):
        er.split(judged(3), 0.9, 0.1)
    with pytest.raises(er.errors.IncompatibleError, match=r"data is of type ndarray; give a RankingData, from er\.read or"):
        er.split(np.ones((3, 2)), 0.5, 0.5)
