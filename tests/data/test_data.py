"""RankingData from arrays: any order, any type of id, and a clear word about what does not fit.

Nobody can write into it, and its invariants hold however it was made.
"""

import copy
import pickle
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, strategies as st

import exactrank as er
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.immutable import immutable, is_immutable
from exactrank.data.validation import boundaries

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
    data = er.RankingData.from_arrays(rows[:, None], rows, qid=column(qid))
    assert data.qid.tolist() == list(dict.fromkeys(qid))
    assert [qid[i] for i in data.y.astype(int)] == [q for q in dict.fromkeys(qid) for _ in range(qid.count(q))]
    for q in range(data.n_queries):
        mine = data.y[data.indptr[q] : data.indptr[q + 1]]
        assert np.all(np.diff(mine) > 0)
    np.testing.assert_array_equal(data.X[:, 0], data.y)
    np.testing.assert_array_equal(data.ungroup(data.y), rows)
    np.testing.assert_array_equal(data.group(data.ungroup(data.y)), data.y)


def test_group_sizes_and_sparse_features():
    X = scipy.sparse.csr_matrix([[1.0, 0], [0, 2], [3, 0]])
    data = er.RankingData.from_arrays(X, [1, 0, 2], group=[2, 1])
    assert data.X.tolist() == [[1, 0], [0, 2], [3, 0]]
    assert data.indptr.tolist() == [0, 2, 3]


def test_a_frame_of_features_names_them():
    frame = pd.DataFrame({"bm25": [1.0, 2.0], "age": [3, 4]})
    data = er.RankingData.from_arrays(frame, pd.Series([1, 0]), qid=pd.Series(["a", "a"]))
    assert data.feature_names == ("bm25", "age")
    assert data.X.tolist() == [[1, 3], [2, 4]]


def contents(data):
    """All that the data holds, as plain values."""
    values = (getattr(data, field.name) for field in fields(data))
    return [value if value is None or isinstance(value, tuple | dict) else value.tolist() for value in values]


def test_the_callers_arrays_stay_as_they_are():
    X, y = np.ones((3, 2), np.float32), np.zeros(3)
    data = er.RankingData.from_arrays(X, y, qid=[1, 1, 2])
    assert X.flags.writeable
    assert y.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 5


KINDS = {
    "float32": lambda a: a.astype(np.float32),
    "float64": lambda a: a.astype(np.float64),
    "int64": lambda a: a.astype(np.int64),
    "columns": lambda a: np.asfortranarray(a, np.float32),
    "every second": lambda a: np.repeat(a, 2, axis=0).astype(np.float64)[::2],
    "view of bytes": lambda a: np.frombuffer(bytearray(a.tobytes()), a.dtype).reshape(a.shape),
}


@given(kinds=st.tuples(*[st.sampled_from(sorted(KINDS))] * 4), together=st.booleans(), writable=st.booleans())
def test_writing_into_what_was_given_changes_nothing(kinds, together, writable):
    rows = np.arange(1.0, 7.0)
    given = [KINDS[kind](a) for kind, a in zip(kinds, (np.stack([rows, -rows], 1), rows, rows, np.array([1.0, 2.0])), strict=True)]
    qid = np.array([4, 4, 4, 9, 9, 9] if together else [4, 9, 4, 9, 4, 9])
    passed = [array.view() for array in (*given, qid)]
    for view in passed:
        view.flags.writeable = writable  # a view that can't be written still looks at an array that can
    X, y, sample, query, ids = passed
    data = er.RankingData.from_arrays(X, y, qid=ids, sample_weight=sample, query_weight=query)
    before = contents(data)
    for array in (*given, qid):
        array[...] = 77
    assert contents(data) == before


def test_writing_into_the_parts_of_data_made_by_hand_changes_nothing():
    rng = np.random.default_rng(0)
    arguments = {"X": rng.random((4, 2), np.float32), "y": rng.random(4), "indptr": np.array([0, 1, 4]), "qid": column(["a", ("b", 1)])}
    arguments |= {"sample_weight": rng.random(4), "query_weight": rng.random(2), "order": rng.permutation(4)}
    text = {"buffer": np.frombuffer(bytearray(b"abcd"), np.uint8), "start": np.arange(4), "stop": np.arange(1, 5)}
    data = er.RankingData(feature_names=("f", "g"), docid=TextColumn(**text), **arguments)
    again = replace(data, **arguments)
    before = contents(data)
    for array in (arguments | text).values():
        array[...] = array[::-1].copy()
    assert contents(data) == contents(again) == before


def test_nobody_can_write_into_data():
    data = er.RankingData.from_arrays([[1.0], [2.0]], [0.0, 1.0], qid=[1, 1], docid=["a", "b"], sample_weight=[1, 2], query_weight=[1])
    for copied in (data, copy.copy(data), copy.deepcopy(data), pickle.loads(pickle.dumps(data)), data.take_queries([0])):
        arrays = [getattr(copied, name) for name in ("X", "y", "indptr", "qid", "sample_weight", "query_weight")]
        for array in [*arrays, copied.sizes, copied.weights, copied.docid.buffer, copied.docid.start, copied.docid.stop]:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
            with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
                array.flags.writeable = True


def test_what_cannot_be_written_is_shared(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((3, 2), np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    data = er.RankingData.from_arrays(mapped, [1.0, 0.0, 1.0], group=[3])
    assert type(data.X) is np.ndarray
    assert np.shares_memory(data.X, mapped)
    assert np.shares_memory(replace(data, y=np.zeros(3)).X, mapped)
    assert np.shares_memory(immutable(data.y[1:]), data.y)
    assert not is_immutable(np.load(tmp_path / "X.npy", mmap_mode="r+"))


def test_weights_per_query_or_per_row():
    rows = {"X": None, "y": [1, 0, 1], "qid": ["b", "a", "b"]}
    assert er.RankingData.from_arrays(**rows, query_weight=[2, 3]).query_weight.tolist() == [2, 3]
    assert er.RankingData.from_arrays(**rows, query_weight=[2, 3, 2]).query_weight.tolist() == [2, 3]
    assert er.RankingData.from_arrays(**rows, sample_weight=[1, 2, 3]).sample_weight.tolist() == [1, 3, 2]


@pytest.mark.parametrize("weight", [None, [2.0, 0.0]])
def test_sizes_longest_and_weights_of_queries(weight):
    data = er.RankingData.from_arrays(None, [0, 1, 2, 0], qid=["b", "a", "b", "b"], query_weight=weight)
    assert (data.sizes.tolist(), data.longest) == ([3, 1], 3)
    assert data.weights.tolist() == (weight or [1.0, 1.0])
    assert all(is_immutable(each) and each is again for each, again in ((data.sizes, data.sizes), (data.weights, data.weights)))
    part = pickle.loads(pickle.dumps(data)).take_queries([1, 1, 1])
    assert (part.sizes.tolist(), part.longest, part.weights.tolist()) == ([1, 1, 1], 1, [0.0] * 3 if weight else [1.0] * 3)


def test_taking_queries():
    data = er.RankingData.from_arrays(np.arange(4.0)[:, None], [0, 1, 2, 3], qid=[5, 6, 5, 7], docid=list("abcd"), query_weight=[1, 2, 3])
    part = data.take_queries([2, 0])
    assert part.qid.tolist() == [7, 5]
    assert part.y.tolist() == [3, 0, 2]
    assert part.docid.tolist() == ["d", "a", "c"]
    assert part.query_weight.tolist() == [3, 1]
    assert data.take_queries([False, True, False]).qid.tolist() == [6]
    for bad in ([], [3], [-1], [0.5], [True], [[0]], True, [[0], [1, 2]], np.array([2**63], np.uint64)):
        with pytest.raises(er.errors.DataError, match="at least one query number from 0 to 2"):
            data.take_queries(bad)


@pytest.mark.parametrize("qid", [[1, 1, 2], [1, 2, 1]])
@pytest.mark.parametrize("count", [2, 4])
def test_values_must_be_one_per_document(qid, count):
    data = er.RankingData.from_arrays(None, [0, 1, 2], qid=qid)
    for reordered in (data.group, data.ungroup):
        with pytest.raises(er.errors.DataError, match=f"{count} values for 3 documents"):
            reordered(np.zeros(count))


def test_features_by_name_in_the_callers_order():
    data = er.RankingData.from_arrays([[1.0, 5], [2, 6], [3, 7]], [0, 1, 2], qid=[5, 6, 5], docid=[10, 20, 30], feature_names=["a", "b"])
    assert data.X[:, 1].tolist() == [5, 7, 6]
    assert data.feature("b").tolist() == [5, 6, 7]
    assert data.docid.tolist() == ["10", "30", "20"]
    with pytest.raises(er.errors.DataError, match="no feature 'c'; the data has a, b"):
        data.feature("c")


@pytest.mark.parametrize(
    ("changes", "message"),
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
        ({"qid": None, "group": [2**62] * 4 + [3]}, f"add up to 3 rows, got a sum of {2**64 + 3} over 5 queries"),
        ({"qid": None, "group": np.array([2**63, 2**63, 3], np.uint64)}, f"got a sum of {2**64 + 3} over 3 queries"),
        ({"qid": None, "group": np.array([2**64 - 1, 4], np.uint64)}, f"got a sum of {2**64 + 3} over 2 queries"),
        ({"qid": None, "group": [4, -1]}, "positive whole sizes"),
        ({"qid": None, "group": [2**64, 3]}, "whole sizes that fit 64 bits, got object"),
        ({"qid": None, "group": ["a"]}, "whole sizes that fit 64 bits, got <U1"),
        ({"qid": None, "group": []}, "whole sizes that fit 64 bits, got float64"),
        ({"qid": None, "group": 3}, r"of shape \(\)"),
        ({"X": [[1.0], [np.inf], [2.0]]}, r"X\[1, 0\] is inf"),
        ({"X": [[1.0], [1e39], [2.0]]}, r"X\[1, 0\] is 1e\+39, which is not a finite float32"),
        ({"X": [1.0, 2.0, 3.0]}, "must be a table of numbers"),
        ({"X": [[1.0], [1.0, 2.0], [3.0]]}, "must be a table of numbers"),
        ({"qid": [[1], [1, 2], [3]]}, "give one query id per row"),
        ({"qid": None, "group": [[1], [1, 1]]}, "whole sizes that fit 64 bits, got object"),
        ({"X": [["a"], ["b"], ["c"]]}, "must be a table of numbers"),
        ({"sample_weight": [1, -2, 1]}, r"sample_weight\[1\] is -2.0"),
        ({"sample_weight": [1, 2]}, "sample_weight has 2 entries; expected 3"),
        ({"sample_weight": [0, 0, 0]}, "zero everywhere"),
        ({"query_weight": [1, np.nan]}, r"query_weight\[1\] is nan"),
        ({"query_weight": [1, 2, 3]}, "query_weight of row 1 is 2 but its query began with another"),
        ({"query_weight": [1, 2, 3, 4]}, r"one per query \(2\) or one per row \(3\)"),
        ({"feature_names": ["a", "b"]}, "2 names for 1 features"),
        ({"docid": ["a"]}, "docid has 1 entries for 3 rows"),
    ],
)
def test_bad_arrays_are_explained(changes, message):
    arguments = {"X": [[1.0], [2.0], [3.0]], "y": [1, 0, 2], "qid": [1, 1, 2], **changes}
    with pytest.raises(er.errors.DataError, match=message):
        er.RankingData.from_arrays(arguments.pop("X"), arguments.pop("y"), **arguments)


@given(st.lists(st.integers(-1, 5) | st.sampled_from([2**31, 2**62, 2**63 - 1, 2**63, 2**64 - 1]), max_size=8), st.integers(1, 20))
def test_sizes_become_boundaries_only_if_they_add_up(sizes, rows):
    kind = np.uint64 if max(sizes, default=0) >= 2**63 else np.int64
    if kind is np.uint64 and min(sizes) < 0:
        return
    made = boundaries(np.array(sizes, kind), rows)
    assert (made is not None) == (bool(sizes) and min(sizes) > 0 and sum(sizes) == rows)
    if made is not None:
        assert np.diff(made).tolist() == sizes


WRAPPING = np.array([0, 2**63 - 1, -(2**63), -1, 3])  # every step is positive if it may overflow


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.zeros((2, 1), np.float32)}, "X has 2 entries; expected 3"),
        ({"X": np.zeros((3, 1))}, "X must be an array of float32 of 2 dimensions, not float64"),
        ({"X": np.zeros(3, np.float32)}, r"X must be .* not float32 of shape \(3,\)"),
        ({"X": np.zeros((3, 1), ">f4")}, "X must be an array of float32"),
        ({"X": [[1.0], [2.0], [3.0]]}, "X must be .* not a list; RankingData.from_arrays converts"),
        ({"y": np.array([0, 1, 2])}, "y must be an array of float64"),
        ({"y": np.array([0.0, np.nan, 2.0])}, "grade of row 1 is nan"),
        ({"y": np.array([0.0, 1.0])}, "expected 2 for 2 documents"),
        ({"indptr": np.array([0, 2, 3], np.uint64)}, "indptr must be an array of int64"),
        ({"indptr": np.array([0, 3, 2])}, "indptr must rise"),
        ({"indptr": np.array([0, 3, 3])}, "indptr must rise"),
        ({"indptr": np.array([1, 2, 3])}, "indptr must rise"),
        ({"indptr": np.array([0, 2, 4])}, "indptr must rise"),
        ({"indptr": WRAPPING, "qid": np.arange(4)}, "indptr must rise"),
        ({"indptr": np.array([0, 3])}, "indptr has 2 entries; expected 3"),
        ({"indptr": np.empty(0, np.int64), "qid": np.arange(0)}, "indptr has 0 entries; expected 1"),
        ({"qid": np.array([[1], [2]])}, "qid must be an array of one id per query"),
        ({"qid": [1, 2]}, "qid must be an array of one id per query"),
        ({"order": np.array([0, 1, 1])}, "order must hold each row number from 0 to 2 once"),
        ({"order": np.array([0, 1, -1])}, "order must hold each row number from 0 to 2 once"),
        ({"order": np.array([0, 1, 3])}, "order must hold each row number from 0 to 2 once"),
        ({"order": np.array([0, 1])}, "order has 2 entries; expected 3"),
        ({"sample_weight": np.array([1.0, -1.0, 1.0])}, r"sample_weight\[1\] is -1"),
        ({"query_weight": np.array([1.0, np.inf])}, r"query_weight\[1\] is inf"),
        ({"query_weight": np.ones(3)}, "query_weight has 3 entries; expected 2"),
        ({"docid": ["a", "b", "c"]}, "docid and comment must be text columns"),
        ({"docid": TextColumn.of(["a"])}, "docid has 1 entries; expected 3"),
        ({"feature_names": ("a", "b")}, "feature_names has 2 entries; expected 1"),
        ({"feature_names": (1,)}, "feature_names must be strings"),
    ],
)
def test_invariants_hold_however_data_is_made(changes, message):
    data = er.RankingData.from_arrays([[1.0], [2.0], [3.0]], [1, 0, 2], qid=[1, 1, 2])
    with pytest.raises(er.errors.DataError, match=message):
        replace(data, **changes)


@pytest.mark.parametrize(
    ("start", "stop", "message"),
    [
        ([0, 9], [1, 10], "string 1 of a text column lies at 9 to 10, outside of its 4 bytes"),
        ([0, -1], [1, 2], "lies at -1 to 2"),
        ([0, 3], [1, 2], "lies at 3 to 2"),
        ([0], [1, 2], "1 starts but 2 stops"),
        ([0.0], [1.0], "start of a text column is float64"),
        ([[0]], [[1]], "of shape"),
    ],
)
def test_strings_lie_within_their_text(start, stop, message):
    with pytest.raises(er.errors.DataError, match=message):
        TextColumn(np.frombuffer(b"abcd", np.uint8), np.array(start), np.array(stop))


def test_half_of_a_surrogate_pair_is_explained():
    with pytest.raises(er.errors.DataError, match="half of a surrogate pair"):
        er.RankingData.from_arrays(None, [1], qid=[1], docid=["\ud800"])


def test_missing_features_are_kept_and_counted():
    data = er.RankingData.from_arrays([[1.0, np.nan], [np.nan, np.nan]], [1, 0], qid=[1, 1])
    summary = er.describe(data)
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
    summary = er.describe(er.RankingData.from_arrays(X, y, qid=qid), threads=threads)
    lengths = np.bincount(qid)
    assert summary.list_lengths == (lengths.min(), np.median(lengths), lengths.max())
    assert summary.constant_features == ("x7",)
    assert summary.missing_values == {"x11": int(np.isnan(X[:, 11]).sum())}
    assert summary.grades == {float(g): int(n) for g, n in zip(*np.unique(y, return_counts=True), strict=True)}
    assert summary.interleaved
