"""RankingData from arrays: any order, any type of id, and a clear word about what does not fit."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import exactrank as xr

IDS = st.one_of(
    st.lists(st.integers(0, 4), min_size=1, max_size=30),
    st.lists(st.sampled_from(["a", "b", "ö", ""]), min_size=1, max_size=30),
    st.lists(st.sampled_from([("x", 1), ("y", 2), 3, "z"]), min_size=1, max_size=30),
)


def column(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


@given(qid=IDS)
def test_grouping_is_stable_and_reversible(qid):
    rows = np.arange(len(qid))
    data = xr.RankingData.from_arrays(rows[:, None], rows, qid=column(qid))
    assert data.qid.tolist() == list(dict.fromkeys(qid))
    assert [qid[i] for i in data.y.astype(int)] == [q for q in dict.fromkeys(qid) for _ in range(qid.count(q))]
    for q in range(data.n_queries):
        mine = data.y[data.indptr[q] : data.indptr[q + 1]]
        assert np.all(np.diff(mine) > 0)
    np.testing.assert_array_equal(data.X[:, 0], data.y)
    np.testing.assert_array_equal(data.ungrouped(data.y), rows)
    np.testing.assert_array_equal(data.grouped(data.ungrouped(data.y)), data.y)


def test_group_sizes_and_sparse_features():
    X = scipy.sparse.csr_matrix([[1.0, 0], [0, 2], [3, 0]])
    data = xr.RankingData.from_arrays(X, [1, 0, 2], group=[2, 1])
    assert data.X.tolist() == [[1, 0], [0, 2], [3, 0]]
    assert data.indptr.tolist() == [0, 2, 3]


def test_a_frame_of_features_names_them():
    frame = pd.DataFrame({"bm25": [1.0, 2.0], "age": [3, 4]})
    data = xr.RankingData.from_arrays(frame, pd.Series([1, 0]), qid=pd.Series(["a", "a"]))
    assert data.feature_names == ("bm25", "age")
    assert data.X.tolist() == [[1, 3], [2, 4]]


def test_the_callers_arrays_stay_as_they_are():
    X, y = np.ones((3, 2), np.float32), np.zeros(3)
    data = xr.RankingData.from_arrays(X, y, qid=[1, 1, 2])
    assert X.flags.writeable
    assert y.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 5


def test_weights_per_query_or_per_row():
    rows = {"X": None, "y": [1, 0, 1], "qid": ["b", "a", "b"]}
    assert xr.RankingData.from_arrays(**rows, query_weight=[2, 3]).query_weight.tolist() == [2, 3]
    assert xr.RankingData.from_arrays(**rows, query_weight=[2, 3, 2]).query_weight.tolist() == [2, 3]
    assert xr.RankingData.from_arrays(**rows, sample_weight=[1, 2, 3]).sample_weight.tolist() == [1, 3, 2]


def test_taking_queries():
    data = xr.RankingData.from_arrays(np.arange(4.0)[:, None], [0, 1, 2, 3], qid=[5, 6, 5, 7], docid=list("abcd"), query_weight=[1, 2, 3])
    part = data.take_queries([2, 0])
    assert part.qid.tolist() == [7, 5]
    assert part.y.tolist() == [3, 0, 2]
    assert part.docid.tolist() == ["d", "a", "c"]
    assert part.query_weight.tolist() == [3, 1]
    assert data.take_queries([False, True, False]).qid.tolist() == [6]
    for bad in ([], [3], [-1], [0.5], [True], [[0]]):
        with pytest.raises(xr.DataError, match="at least one query number from 0 to 2"):
            data.take_queries(bad)


def test_features_by_name_in_the_callers_order():
    data = xr.RankingData.from_arrays([[1.0, 5], [2, 6], [3, 7]], [0, 1, 2], qid=[5, 6, 5], docid=[10, 20, 30], feature_names=["a", "b"])
    assert data.X[:, 1].tolist() == [5, 7, 6]
    assert data.feature("b").tolist() == [5, 6, 7]
    assert data.docid.tolist() == ["10", "30", "20"]
    with pytest.raises(xr.DataError, match="no feature 'c'; the data has a, b"):
        data.feature("c")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"y": [1, np.nan, 0]}, "grade of row 1 is nan"),
        ({"y": [1, np.inf, 0]}, "grade of row 1 is inf"),
        ({"y": ["a", "b", "c"]}, "y must hold numbers"),
        ({"y": []}, "at least one number"),
        ({"y": [1, 0]}, "X has 3 rows but y has 2"),
        ({"qid": [1, 1]}, r"qid has shape \(2,\) but y has 3 rows"),
        ({"qid": [1.0, np.nan, 2.0]}, "query id of row 1 is missing"),
        ({"qid": np.array(["a", None, "b"], object)}, "query id of row 1 is missing"),
        ({"qid": None}, "not neither"),
        ({"group": [3]}, "not both"),
        ({"qid": None, "group": [2, 2]}, "add up to 3 rows, got a sum of 4"),
        ({"qid": None, "group": [3, 0]}, "positive whole sizes"),
        ({"X": [[1.0], [np.inf], [2.0]]}, r"X\[1, 0\] is inf"),
        ({"X": [[1.0], [1e39], [2.0]]}, r"X\[1, 0\] is 1e\+39, which is not a finite float32"),
        ({"X": [1.0, 2.0, 3.0]}, "must be a table of numbers"),
        ({"X": [["a"], ["b"], ["c"]]}, "must be a table of numbers"),
        ({"sample_weight": [1, -2, 1]}, r"sample_weight\[1\] is -2.0"),
        ({"sample_weight": [1, 2]}, "sample_weight has 2 entries; expected 3"),
        ({"sample_weight": [0, 0, 0]}, "zero everywhere"),
        ({"query_weight": [1, np.nan]}, r"query_weight\[1\] is nan"),
        ({"query_weight": [1, 2, 3]}, "query_weight of row 1 is 2 but its query began with another"),
        ({"query_weight": [1, 2, 3, 4]}, r"one a query \(2\) or one a row \(3\)"),
        ({"feature_names": ["a", "b"]}, "2 names for 1 features"),
        ({"docid": ["a"]}, "docid has 1 entries for 3 rows"),
    ],
)
def test_bad_arrays_are_explained(changes, said):
    given = {"X": [[1.0], [2.0], [3.0]], "y": [1, 0, 2], "qid": [1, 1, 2], **changes}
    with pytest.raises(xr.DataError, match=said):
        xr.RankingData.from_arrays(given.pop("X"), given.pop("y"), **given)


def test_missing_features_are_kept_and_counted():
    data = xr.RankingData.from_arrays([[1.0, np.nan], [np.nan, np.nan]], [1, 0], qid=[1, 1])
    summary = xr.describe(data)
    assert summary.missing_values == {"x0": 1, "x1": 2}
    assert summary.constant_features == ("x1",)


@pytest.mark.parametrize("threads", [1, 2])
def test_description_equals_numpy(threads):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (30_000, 90)).astype(np.float32)
    X[:, 7] = 3
    X[rng.integers(0, 30_000, 50), 11] = np.nan
    qid = rng.integers(0, 500, 30_000)
    y = rng.integers(0, 3, 30_000)
    summary = xr.describe(xr.RankingData.from_arrays(X, y, qid=qid), threads=threads)
    lengths = np.bincount(qid)
    assert summary.list_lengths == (lengths.min(), np.median(lengths), lengths.max())
    assert summary.constant_features == ("x7",)
    assert summary.missing_values == {"x11": int(np.isnan(X[:, 11]).sum())}
    assert summary.grades == {float(g): int(n) for g, n in zip(*np.unique(y, return_counts=True), strict=True)}
    assert summary.interleaved
