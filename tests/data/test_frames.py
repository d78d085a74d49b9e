"""Frames, Parquet and CSV: what goes in comes out to the bit, in any row order, whole or as a stream."""

import datetime
import gzip
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from exactrank.data.formats import arrow as arrow_module, csv as csv_module
from exactrank.data.formats.arrow import ParquetFormat
from exactrank.data.formats.base import Block, Columns, ReadOptions, Stream, stream_of
from exactrank.data.formats.csv import CsvFormat
from exactrank.data.formats.text_column import TextColumn
from exactrank.data.frame import from_frame
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError, LeftOutWarning

FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
FORMATS = {"parquet": ParquetFormat(), "csv": CsvFormat()}
quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

each_frame = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
each_format = pytest.mark.parametrize("kind", FORMATS)

TABLE: dict[str, list[Any]] = {"query_id": [7, 9, 7], "relevance": [2, 0, 1], "bm25": [0.5, None, 1.5], "fresh": [True, False, None]}


@pytest.mark.parametrize("make", [lambda c: pd.DataFrame(c, copy=False), pl.DataFrame, pa.table], ids=FRAMES)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_writing_into_the_columns_of_a_frame_changes_nothing(make: Callable[[Any], Any], kind: type) -> None:
    columns = {"query_id": np.array([1, 1, 2]), **{name: np.arange(1, 4, dtype=kind) for name in ("relevance", "a", "sample_weight")}}
    frame = make(columns)
    matrix = np.ones((3, 2), kind)
    named = pd.DataFrame(matrix, columns=["a", "b"], copy=False)
    made = [from_frame(frame, Columns()), RankingData.from_arrays(named, columns["relevance"], qid=columns["query_id"])]
    for array in (*columns.values(), matrix):
        array[...] = 9
    for data, first in zip(made, ([1, 2, 3], [1, 1, 1]), strict=True):
        assert data.qid.tolist() == [1, 2]
        assert data.y.tolist() == [1, 2, 3]
        assert data.X[:, 0].tolist() == first
    assert made[0].sample_weight is not None
    assert made[0].sample_weight.tolist() == [1, 2, 3]


def table(**changes: Any) -> dict[str, list[Any]]:
    return {name: values for name, values in (TABLE | changes).items() if values is not None}


def file_of(kind: str, folder: Path, data: RankingData) -> Path:
    path = folder / f"data.{kind}"
    with open(path, "wb") as file:
        FORMATS[kind].write(file, stream_of(data))
    return path


def csv_file(folder: Path, text: str) -> Path:
    path = folder / "data.csv"
    path.write_text(text)
    return path


def read(path: Path, **columns: Any) -> RankingData:
    return FORMATS[path.suffix[1:]].read(path, ReadOptions(columns=Columns(**columns)))


def joined(stream: Stream) -> dict[str, Any]:
    blocks = list(stream.blocks)
    parts = ("X", "y", "qid", "sample_weight", "query_weight")
    arrays = {part: np.concatenate([getattr(b, part) for b in blocks]) for part in parts if getattr(blocks[0], part) is not None}
    docids = [name for b in blocks if b.docid is not None for name in b.docid]
    return arrays | {"docid": docids, "names": stream.feature_names, "blocks": len(blocks)}


def same_bits(ours: np.ndarray[Any, Any], theirs: np.ndarray[Any, Any]) -> bool:
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and ours.tobytes() == theirs.tobytes()


def assert_same(ours: RankingData, theirs: RankingData) -> None:
    assert same_bits(ours.X, theirs.X)
    assert same_bits(ours.y, theirs.y)
    assert ours.indptr.tolist() == theirs.indptr.tolist()
    assert ours.qid.tolist() == theirs.qid.tolist()
    assert [type(q) for q in ours.qid.tolist()] == [type(q) for q in theirs.qid.tolist()]
    assert ours.feature_names == theirs.feature_names
    assert (ours.docid is None) == (theirs.docid is None)
    assert ours.docid is None or theirs.docid is None or ours.docid.tolist() == theirs.docid.tolist()
    for part in ("sample_weight", "query_weight"):
        mine, other = getattr(ours, part), getattr(theirs, part)
        assert (mine is None) == (other is None)
        assert mine is None or same_bits(mine, other)


# ---- random data: any float32 that may stand in X, ids and names with everything that quoting must survive

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=4)
digits = st.integers(0, 99).map(str)
query_ids = {
    "ints": st.integers(-(2**63), 2**63 - 1),
    "unsigned": st.integers(2**63, 2**64 - 1),
    "digits": digits,
    "padded": digits.map("0{}".format),
    "words": words,
}


@st.composite
def ranking_data(draw: st.DrawFn) -> RankingData:
    names = draw(st.lists(words.map("f{}".format), max_size=3, unique=True))
    ids = draw(st.sampled_from(list(query_ids.values())).flatmap(lambda ids: st.lists(ids, min_size=1, max_size=4, unique=True)))
    rows = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=8))
    cell = st.floats(width=32, allow_nan=False, allow_infinity=False) | st.just(np.nan)
    column = lambda value: st.lists(value, min_size=len(rows), max_size=len(rows))  # noqa: E731
    X = np.array(draw(column(st.lists(cell, min_size=len(names), max_size=len(names)))), np.float32).reshape(len(rows), len(names))
    weights = st.floats(0.125, 1e300)
    per_query = dict(zip(ids, draw(st.lists(weights, min_size=len(ids), max_size=len(ids))), strict=True))
    return RankingData.from_arrays(
        X,
        draw(column(st.floats(allow_nan=False, allow_infinity=False))),
        qid=np.array(rows, dtype=object if isinstance(ids[0], str) else None),
        feature_names=names,
        docid=draw(st.none() | column(words | st.just(""))),
        sample_weight=draw(st.none() | column(weights)),
        query_weight=draw(st.sampled_from([None, [per_query[q] for q in rows]])),
    )


@each_format
@quick
@given(data=ranking_data())
def test_round_trip_is_exact(kind: str, data: RankingData, tmp_path: Path) -> None:
    assert_same(read(file_of(kind, tmp_path, data)), replace(data, order=None))


@each_format
@quick
@given(data=ranking_data(), cells=st.integers(1, 6))
def test_stream_has_the_rows_of_read(kind: str, data: RankingData, cells: int, tmp_path: Path) -> None:
    path = file_of(kind, tmp_path, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_module, "BLOCK_CELLS", cells)
        ours = joined(FORMATS[kind].stream(path, ReadOptions()))
    theirs = joined(stream_of(read(path)))
    assert same_bits(ours["X"], theirs["X"])
    assert ours["qid"].dtype == theirs["qid"].dtype
    for part in ("y", "qid"):
        assert ours[part].tolist() == theirs[part].tolist()
    assert {part for part in ours if part != "blocks"} == {part for part in theirs if part != "blocks"}
    assert (ours["docid"], ours["names"]) == (theirs["docid"], theirs["names"])


@each_frame
@quick
@given(order=st.permutations(range(6)))
def test_any_row_order_gives_the_same_queries(make: Callable[..., Any], order: list[int]) -> None:
    columns: dict[str, list[Any]] = {
        "query_id": ["a", "a", "b", "c", "c", "c"],
        "doc_id": list("uvwxyz"),
        "relevance": [0, 1, 2, 3, 4, 5],
        "f": [0.0, 1.5, None, 3.5, 4.5, 5.5],
        "query_weight": [1.0, 1.0, 2.0, 3.0, 3.0, 3.0],
    }
    data = from_frame(make({name: [values[i] for i in order] for name, values in columns.items()}), Columns())
    assert data.docid is not None
    assert data.query_weight is not None
    ours = {
        (data.qid[q], data.query_weight[q], data.docid[i], data.y[i], str(data.X[i, 0]))
        for q in range(data.n_queries)
        for i in range(data.indptr[q], data.indptr[q + 1])
    }
    theirs = {(q, w, d, y, str(np.float32(np.nan if f is None else f))) for q, d, y, f, w in zip(*columns.values(), strict=True)}
    assert ours == theirs
    assert data.ungroup(data.y).tolist() == [columns["relevance"][i] for i in order]


# ---- frames


@each_frame
def test_frame_is_grouped_with_nulls_as_nan(make: Callable[..., Any]) -> None:
    with pytest.warns(
        LeftOutWarning, match=r"frame: left out 'title' \(text that seldom repeats\); name the features in Columns\(features"
    ):
        data = from_frame(make(table(title=["x", "y", "z"])), Columns())
    assert data.feature_names == ("bm25", "fresh")
    assert data.qid.tolist() == [7, 9]
    assert data.y.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(data.X, np.array([[0.5, 1], [1.5, np.nan], [np.nan, 0]], np.float32))
    assert (data.X.flags.c_contiguous, data.X.dtype) == (True, np.float32)
    assert (data.docid, data.sample_weight, data.query_weight) == (None, None, None)


@each_frame
def test_named_columns(make: Callable[..., Any]) -> None:
    renamed = {"q": [1, 2], "d": ["x", None], "g": [True, False], "w": [1, 3], "qw": [1.5, 2.5], "a": [1, 2], "b": [3, 4]}
    columns = Columns("q", "d", "g", "w", "qw", features=("b",))
    data = from_frame(make(renamed), columns)
    assert data.docid is not None
    assert data.docid.tolist() == ["x", ""]
    assert (data.feature_names, data.X.tolist(), data.y.tolist()) == (("b",), [[3], [4]], [1, 0])
    assert data.sample_weight is not None
    assert data.sample_weight.tolist() == [1, 3]
    assert data.query_weight is not None
    assert data.query_weight.tolist() == [1.5, 2.5]


@each_frame
@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 3],
        ["b", "a", "b"],
        [datetime.date(2024, 1, 2), datetime.date(2023, 1, 2), datetime.date(2024, 1, 2)],
        [datetime.datetime(2024, 1, 2, 3), datetime.datetime(2023, 1, 2), datetime.datetime(2024, 1, 2, 3)],
        [1.5, 0.5, 1.5],
        [True, False, True],
    ],
    ids=lambda ids: type(ids[0]).__name__,
)
def test_query_ids_of_any_type(make: Callable[..., Any], ids: list[Any]) -> None:
    data = from_frame(make(table(query_id=ids)), Columns())
    assert data.qid.tolist() == ids[:2]
    assert data.indptr.tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(table(query_id=pd.Categorical(["b", "a", "b"]))),
        pl.DataFrame(table(query_id=pl.Series(["b", "a", "b"], dtype=pl.Categorical))),
        pl.DataFrame(table(query_id=pl.Series(["b", "a", "b"], dtype=pl.Enum(["a", "b"])))),
        pa.table(table(query_id=pa.array(["b", "a", "b"]).dictionary_encode())),
        pa.table(table(query_id=[b"b", b"a", b"b"])),
    ],
    ids=["pandas", "polars", "enum", "arrow", "bytes"],
)
def test_categorical_query_ids_become_strings(frame: Any) -> None:
    assert from_frame(frame, Columns()).qid.tolist() == ["b", "a"]


def test_integer_categories_stay_integers() -> None:
    assert from_frame(pd.DataFrame(table(query_id=pd.Categorical([4, 3, 4]))), Columns()).qid.tolist() == [4, 3]


@pytest.mark.parametrize(
    "column",
    [
        pd.array([1, None, 3], "Int64"),
        pd.array([1, None, 3], "Float32"),
        pd.array([1, None, 3], "int64[pyarrow]"),
        pd.array([Decimal(1), None, Decimal(3)], pd.ArrowDtype(pa.decimal128(5, 2))),
        pl.Series([1, None, 3], dtype=pl.Int128),
        pl.Series([Decimal(1), None, Decimal(3)]),
        pa.array([1, None, 3], pa.int8()),
        pa.array([1, None, 3], pa.float16()),
    ],
    ids=lambda column: str(getattr(column, "dtype", getattr(column, "type", ""))),
)
def test_nullable_numbers_of_any_width(column: Any) -> None:
    make = pl.DataFrame if isinstance(column, pl.Series) else pa.table if isinstance(column, pa.Array) else pd.DataFrame
    data = from_frame(make(table(query_id=["a", "a", "a"], bm25=column, fresh=None)), Columns())
    np.testing.assert_array_equal(data.X[:, 0], [1, np.nan, 3])


@pytest.mark.parametrize("frame", [pl.DataFrame(table(bm25=[None] * 3)), pa.table(table(bm25=[None] * 3))], ids=["polars", "arrow"])
def test_a_column_of_nulls_is_a_missing_feature(frame: Any) -> None:
    data = from_frame(frame, Columns())
    assert data.feature_names == ("bm25", "fresh")
    assert np.isnan(data.X[:, 0]).all()


def test_pandas_labels_and_index() -> None:
    frame = pd.DataFrame(
        {0: [1.0, 2.0], "__index_level_0__": [5, 6], "Unnamed: 0": [5, 6], "relevance": [0, 1], "query_id": [1, 1]}, index=[9, 9]
    )
    data = from_frame(frame, Columns())
    assert (data.feature_names, data.X.tolist()) == (("0",), [[1], [2]])


def test_the_frame_stays_as_it_is_and_is_not_shared() -> None:
    columns = {"query_id": np.array([1, 1, 2]), "relevance": np.array([0.0, 1.0, 2.0]), "f": np.arange(3, dtype=np.float32)}
    frame = pd.DataFrame(columns, copy=False)
    before = frame.copy()
    data = from_frame(frame, Columns())
    pd.testing.assert_frame_equal(frame, before)
    for column in columns.values():
        column[:] = 9
    assert frame["relevance"].tolist() == [9, 9, 9]  # so the frame does hold these very arrays
    assert (data.y.tolist(), data.X.ravel().tolist(), data.qid.tolist()) == ([0, 1, 2], [0, 1, 2], [1, 2])


@each_frame
@pytest.mark.parametrize(
    ("changes", "columns", "message"),
    [
        ({"query_id": None}, {}, r"no column 'query_id' for the query id; it has 'relevance', 'bm25', 'fresh'; set Columns\(query=...\)"),
        ({"relevance": None}, {}, r"no column 'relevance' for the grade; .* set Columns\(relevance=...\)"),
        ({}, {"doc": "docno"}, r"no column 'docno' for the document id; .* set Columns\(doc=...\)"),
        ({}, {"features": ("bm25", "dense")}, r"no feature column 'dense'; it has .*Columns\(features=...\)"),
        (
            {"bm25": [datetime.datetime(2020, 1, day) for day in (1, 2, 3)]},
            {"features": ("bm25",)},
            "column 'bm25' holds Datetime.*, not numbers",
        ),
        ({"relevance": ["x", "y", "z"]}, {}, "column 'relevance' holds String, not numbers"),
        ({}, {"features": ("bm25", "relevance")}, "column 'relevance' is named for 2 parts"),
        ({"query_id": [7, None, 7]}, {}, "frame: query id 'query_id' of row 1 .* is missing"),
        ({"query_id": ["a", "b", None]}, {}, "query id 'query_id' of row 2 .* is missing"),
        ({"query_id": ["a", "", "b"]}, {}, "query id 'query_id' of row 1 .* is missing"),
        ({"query_id": [0.5, 0.5, float("nan")]}, {}, "query id 'query_id' of row 2 .* is missing"),
        ({"relevance": [2, None, 1]}, {}, "grade 'relevance' of row 1 .* is missing"),
        ({"relevance": [2.0, 1.0, float("nan")]}, {}, "grade 'relevance' of row 2 .* is missing"),
        ({"relevance": [2.0, 1.0, float("inf")]}, {}, "grade 'relevance' of row 2 .* is inf"),
        ({"bm25": [0.5, 1.0, float("-inf")]}, {}, "feature 'bm25' of row 2 .* is -inf"),
        ({"bm25": [0.5, 1e300, 0.5]}, {}, "feature 'bm25' of row 1 .* is 1e.300, which is not a finite float32"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, {}, r"frame: sample_weight\[1\] is -1.0"),
        ({"sample_weight": [1.0, None, 1.0]}, {}, r"frame: sample_weight\[1\] is nan"),
        ({"query_weight": [1.0, 1.0, 2.0]}, {}, "frame: query_weight of row 2 is 2"),
    ],
)
def test_bad_frames(make: Callable[..., Any], changes: dict[str, Any], columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        from_frame(make(table(**changes)), Columns(**columns))


@each_frame
def test_a_frame_without_rows(make: Callable[..., Any]) -> None:
    with pytest.raises(DataError, match="frame: holds no rows"):
        from_frame(make({"query_id": [], "relevance": np.array([], np.float64)}), Columns())


def test_nested_query_ids() -> None:
    with pytest.raises(DataError, match=r"query column 'query_id' holds List\(Int64\)"):
        from_frame(pl.DataFrame(table(query_id=[[1], [2], [1]])), Columns())


def test_a_wide_frame_lists_some_columns() -> None:
    with pytest.raises(DataError, match=r"'c19', \.\.\. \(25 in all\);"):
        from_frame(pd.DataFrame({f"c{j}": [1] for j in range(25)}), Columns())


@pytest.mark.parametrize(
    "frame", [pd.DataFrame([[1, 2]], columns=["a", "a"]), pa.table([[1], [2]], names=["a", "a"])], ids=["pandas", "arrow"]
)
def test_columns_of_one_name(frame: Any) -> None:
    with pytest.raises(DataError, match="columns 1 and 2 are both called 'a'; rename or remove one"):
        from_frame(frame, Columns())


@pytest.mark.parametrize("thing", [{"query_id": [1]}, np.ones((2, 2))], ids=["dict", "array"])
def test_no_frame(thing: Any) -> None:
    with pytest.raises(IncompatibleError, match=r"expected a pandas, polars or pyarrow table, got .*; convert it, or pass arrays"):
        from_frame(thing, Columns())


def test_a_lazy_frame_is_collected() -> None:
    ours, theirs = from_frame(pl.LazyFrame(TABLE), Columns()), from_frame(pl.DataFrame(TABLE), Columns())
    assert ours.feature_names == theirs.feature_names
    np.testing.assert_array_equal(ours.X, theirs.X)


@pytest.mark.parametrize("library", ["narwhals", "pyarrow"])
def test_libraries_are_optional(library: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = file_of("parquet", tmp_path, RankingData.from_arrays([[1.0]], [1], qid=[1]))
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(IncompatibleError, match=rf"need {library}, which is not installed; pip install 'exactrank\[frames\]'"):
        read(path)
    if library == "narwhals":
        with pytest.raises(IncompatibleError, match="pip install"):
            from_frame(pd.DataFrame(TABLE), Columns())


# ---- files


@each_format
def test_unsorted_files_are_grouped(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"data.{kind}"
    frame = pd.DataFrame(table(title=["x", "y", "z"]))
    frame.to_csv(path) if kind == "csv" else frame.set_axis([3, 1, 2]).to_parquet(path)  # both keep the index, as a column of no name
    with pytest.warns(LeftOutWarning) as warned:
        data, theirs = read(path), from_frame(frame, Columns())
    assert [str(each.message).partition(";")[0] for each in warned] == [
        f"{place}: left out 'title' (text that seldom repeats)" for place in (path, "frame")
    ]
    assert data.feature_names == ("bm25", "fresh")
    np.testing.assert_array_equal(data.X, theirs.X)
    assert data.order is not None
    assert data.order.tolist() == [0, 2, 1]
    assert data.qid.tolist() == [7, 9]


@each_format
def test_many_blocks_are_one_table(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = 3000
    data = RankingData.from_arrays(
        rng.standard_normal((rows, 5), np.float32),
        rng.integers(0, 5, rows),
        qid=rng.integers(0, 40, rows),
        docid=[f"D\n{i}" for i in range(rows)],
    )
    path = file_of(kind, tmp_path, data)
    monkeypatch.setattr(arrow_module, "BLOCK_CELLS", 1000)
    monkeypatch.setattr(csv_module, "CSV_BLOCK", 1000)
    stream = joined(FORMATS[kind].stream(path, ReadOptions()))
    assert stream["blocks"] > 5
    assert same_bits(stream["X"], data.ungroup(data.X))
    assert_same(read(path), data)


def test_gzip_csv(tmp_path: Path) -> None:
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"query_id,relevance,f\n1,2,0.5\n"))
    assert CsvFormat().read(path, ReadOptions()).X.tolist() == [[0.5]]


def test_damaged_gzip_csv(tmp_path: Path) -> None:
    path = tmp_path / "data.csv.gz"
    rows = "".join(f"{i},1,{i * 0.37}\n" for i in range(20000))
    path.write_bytes(gzip.compress(f"query_id,relevance,f\n{rows}".encode())[:-500])
    with pytest.raises(DataError, match=r"data.csv.gz: the gzip stream is damaged"):
        CsvFormat().read(path, ReadOptions())


@pytest.mark.parametrize(
    ("cells", "ids"),
    [
        (["7", "12"], [7, 12]),
        (["-7", "0"], [-7, 0]),
        (["7", "012"], ["7", "012"]),
        (["7", "x"], ["7", "x"]),
        (["7", "1.0"], ["7", "1.0"]),
        (['"7"', '"12"'], ["7", "12"]),
        (["18446744073709551615", "1"], [2**64 - 1, 1]),
        (["18446744073709551616", "1"], ["18446744073709551616", "1"]),
        (["NA", "null"], ["NA", "null"]),
    ],
)
def test_kind_of_csv_query_ids(cells: list[str], ids: list[Any], tmp_path: Path) -> None:
    path = csv_file(tmp_path, "relevance,query_id\n" + "".join(f"1,{cell}\n" for cell in cells))
    assert read(path).qid.tolist() == ids
    assert joined(CsvFormat().stream(path, ReadOptions()))["qid"].tolist() == ids


def test_a_late_word_makes_all_csv_query_ids_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_module, "CSV_BLOCK", 256)
    monkeypatch.setattr(arrow_module, "BLOCK_CELLS", 100)
    ids = [str(i) for i in range(500)] + ["last"]
    path = csv_file(tmp_path, "query_id,relevance\n" + "".join(f"{q},1\n" for q in ids))
    assert read(path).qid.tolist() == ids
    stream = joined(CsvFormat().stream(path, ReadOptions()))
    assert stream["blocks"] > 1
    assert stream["qid"].tolist() == ids


def test_csv_cells(tmp_path: Path) -> None:
    """Missing in many spellings, booleans, an empty column, text that is no feature, a byte order mark."""
    text = "\ufeffquery_id,relevance,a,b,c,d\n1,2,NA,true,,x\n1,1,nan,false,,y\n1,0,3,,,z\n"
    with pytest.warns(LeftOutWarning, match="left out 'd'"):
        data = read(csv_file(tmp_path, text))
    assert data.feature_names == ("a", "b", "c")
    np.testing.assert_array_equal(data.X, [[np.nan, 1, np.nan], [np.nan, 0, np.nan], [3, np.nan, np.nan]])


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("query_id,relevance,f\n1,x,0.5\n", {}, r"data.csv: column 'relevance': CSV conversion error to double: invalid value 'x'"),
        ("query_id,relevance,f\n1,2,0.5\n1,2,0.5\n1,1,oops\n", {}, "data.csv: column 'f': .* invalid value 'oops'"),
        ("query_id,relevance,f\n1,2,1\n1,2,3\n1,2,oops\n", {"features": ("f",)}, "data.csv: column 'f': .* invalid value 'oops'"),
        ("query_id,relevance,f\n1,2,2020-01-01\n", {"features": ("f",)}, "data.csv: column 'f': .* invalid value '2020-01-01'"),
        ("query_id,relevance,sample_weight\n1,2,heavy\n", {}, "data.csv: column 'sample_weight': .* invalid value 'heavy'"),
        ("query_id,relevance,f\n1,2,inf\n", {}, "data.csv: feature 'f' of row 0 .* is inf"),
        ("query_id,relevance,f\n1,2,1e300\n", {}, "data.csv: feature 'f' of row 0 .* is inf"),
        ("query_id,relevance,f\n1,2,3\n,2,3\n", {}, "data.csv: query id 'query_id' of row 1 .* is missing"),
        ("query_id,relevance,f\n1,2,3\n1,,3\n", {}, "data.csv: grade 'relevance' of row 1 .* is missing"),
        ("query_id,relevance,f\n1,,3\n", {}, "data.csv: grade 'relevance' of row 0 .* is missing"),
        ("query_id,relevance,f\n1,2,3\n1,2\n", {}, "data.csv: .*Expected 3 columns, got 2"),
        ("query_id,relevance,f\n", {}, "data.csv: holds no rows"),
        ("", {}, "data.csv: Empty CSV file"),
        ("\n\n", {}, "data.csv: its first 2 MiB hold no line of column names"),
        ("query_id;relevance\n1;2\n", {}, "data.csv: has no column 'query_id' .* it has 'query_id;relevance'"),
        ("query_id,relevance,f,f\n1,2,3,4\n", {}, "data.csv: columns 3 and 4 are both called 'f'"),
    ],
)
def test_bad_csv(text: str, columns: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = csv_file(tmp_path, text)
    with pytest.raises(DataError, match=message):
        read(path, **columns)
    with pytest.raises(DataError, match=message):
        list(CsvFormat().stream(path, ReadOptions(columns=Columns(**columns))).blocks)


def test_rows_are_counted_through_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_module, "CSV_BLOCK", 256)
    monkeypatch.setattr(arrow_module, "BLOCK_CELLS", 100)
    path = csv_file(tmp_path, "query_id,relevance,f\n" + "1,2,3\n" * 900 + "1,2,inf\n" + "1,2,3\n" * 50)
    with pytest.raises(DataError, match="feature 'f' of row 900 "):
        read(path)


def test_text_after_the_first_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_module, "CSV_BLOCK", 256)
    path = csv_file(tmp_path, "title,query_id,relevance,f\n" + "t,1,2,3\n" * 900 + "t,1,2,oops\n")
    with pytest.raises(DataError, match=r"data.csv: column 'f': .* invalid value 'oops'"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "data.parquet: Parquet file size is 0 bytes"),
        (b"query_id,relevance\n1,2\n" * 9, "data.parquet: Parquet magic bytes not found"),
    ],
)
def test_bad_parquet(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read(path)


def test_damaged_parquet_pages(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"query_id": [1] * 9, "relevance": list(range(9)), "f": list(range(9))}), path, use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"data.parquet: "):
        read(path)


def test_parquet_without_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"query_id": pa.array([], pa.int64()), "relevance": pa.array([], pa.int64())}), tmp_path / "data.parquet")
    with pytest.raises(DataError, match=r"data.parquet: holds no rows"):
        read(tmp_path / "data.parquet")


# ---- writing


def written(kind: str, *blocks: Block, names: tuple[str, ...] = ("f",)) -> bytes:
    file = io.BytesIO()
    FORMATS[kind].write(file, Stream(names, iter(blocks)))
    return file.getvalue()


def block(**parts: Any) -> Block:
    return Block(**({"X": np.ones((1, 1), np.float32), "y": np.ones(1), "qid": np.array([1])} | parts))


def test_csv_text() -> None:
    ids = np.array(["7"], dtype=object)
    ours = written("csv", block(qid=ids, X=np.float32([[0.1]]), docid=TextColumn.of(['a,"b"'])))
    assert ours == b'"query_id","doc_id","relevance","f"\n"7","a,""b""",1,0.1\n'


@each_format
@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"docid": TextColumn.of([b"caf\xe9"])}, r"'caf\\udce9' is not UTF-8.* write .xr or .txt"),
        ({"qid": np.array(["caf\udce9"], dtype=object)}, r"'caf\\udce9' is not UTF-8"),
        ({"qid": np.array([""], dtype=object)}, "query id '' would read back as missing"),
        (
            {"qid": np.array([1, "a"], dtype=object), "X": np.ones((2, 1), np.float32), "y": np.ones(2)},
            "query ids cannot be the column of a table",
        ),
    ],
)
def test_what_a_table_cannot_hold(kind: str, parts: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        written(kind, block(**parts))


@each_format
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("f", "f"), "feature name 'f' .* 2 features have it; rename"),
        (("f", "relevance"), "feature name 'relevance' .* another part"),
        (("f", ""), "feature name '' .* row labels"),
        (("f", "caf\udce9"), r"'caf\\udce9' is not UTF-8"),
    ],
)
def test_feature_names_that_cannot_be_columns(kind: str, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        written(kind, block(X=np.ones((1, 2), np.float32)), names=names)


@each_format
def test_nothing_to_write(kind: str) -> None:
    with pytest.raises(DataError, match="no documents to write"):
        written(kind)


@each_format
@pytest.mark.parametrize(
    "late",
    [{"docid": TextColumn.of(["a"])}, {"sample_weight": np.ones(1)}, {"qid": np.array(["a"], dtype=object)}],
    ids=lambda late: next(iter(late)),
)
def test_columns_that_come_late(kind: str, late: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"must be the same in all rows.*(doc_id|sample_weight|query_id).*write .xr"):
        written(kind, block(), block(**late))


def test_document_ids_may_stop(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(written("parquet", block(docid=TextColumn.of(["a"])), block()))
    docid = read(path).docid
    assert docid is not None
    assert docid.tolist() == ["a", ""]


@pytest.fixture(autouse=True)
def _no_warnings(recwarn: pytest.WarningsRecorder) -> Iterator[None]:
    yield
    assert [str(w.message) for w in recwarn] == []


@each_format
def test_whole_numbers_that_text_rounds_read_back(kind: str, tmp_path: Path) -> None:
    """Of 44960152 Arrow writes the digits that single precision needs, 44960150: read back, they are the same number."""
    data = RankingData.from_arrays(np.array([[44960152.0], [1.5]], np.float32), [1.0, 0.0], group=[2])
    assert_same(read(file_of(kind, tmp_path, data)), data)
