"""Tables: CSV as text, Parquet made of columns of every type and then damaged."""

import io
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.mutations import ODD_WORDS, mutated, one_of, soup
from tests.fuzz.target import Target
from tests.fuzz.usage import use_file

NAMES = ["query_id", "relevance", "doc_id", "sample_weight", "query_weight", "bm25", "age", "", "Unnamed: 0", "[/b]", "é", "x" * 300]
CSV = [
    b"query_id",
    b"relevance",
    b"doc_id",
    b"bm25",
    b"1",
    b"0",
    b"2.5",
    b"q1",
    b",",
    b",",
    b",",
    b",",
    b"\n",
    b"\n",
    b'"',
    b'"a,b"',
    *ODD_WORDS,
]


def csv_text(rng: np.random.Generator) -> bytes:
    """Cells at random, or a good table with some bytes changed."""
    if rng.random() < 0.2:
        return soup(rng, CSV)
    header = b"query_id,doc_id,relevance,bm25,age\n"
    rows = [b"%d,d%d,%d,%g,%g\n" % (i // 4, i, rng.integers(3), rng.normal(), rng.normal()) for i in range(rng.integers(1, 20))]
    return mutated(rng, header + b"".join(rows), CSV)


def parquet_bytes(rng: np.random.Generator) -> bytes:
    """A table that could be data but for a column or two of another type; sometimes bytes of it are changed."""
    rows = int(rng.integers(0, 12))
    columns: dict[str, Any] = {
        "query_id": pa.array(np.arange(rows) // 3),
        "relevance": pa.array(np.arange(rows) % 3.0),
        "bm25": pa.array(rng.normal(size=rows)),
    }
    for _ in range(rng.integers(0, 4)):
        columns[one_of(rng, NAMES)] = odd_column(rng, rows)
    if rng.random() < 0.1:
        del columns[one_of(rng, sorted(columns))]
    target = io.BytesIO()
    pq.write_table(pa.table(columns), target, compression="none", row_group_size=max(1, int(rng.integers(1, 12))))
    return mutated(rng, target.getvalue()) if rng.random() < 0.5 else target.getvalue()


def odd_column(rng: np.random.Generator, rows: int) -> Any:
    """A column of any type, with nulls among its values."""
    values, kind = one_of(rng, COLUMNS)
    return pa.array([one_of(rng, values) for _ in range(rows)], kind)


COLUMNS: list[tuple[list[Any], Any]] = [
    ([0, 1, None, 2**63 - 1, -(2**63)], pa.int64()),
    ([0, 1, None, 2**64 - 1], pa.uint64()),
    ([0.0, 1.0, None, float("nan"), float("inf"), 1e308, 3.5e38, -1.0], pa.float64()),
    ([0.0, None, 65504.0], pa.float16()),
    ([True, False, None], pa.bool_()),
    (["a", "b", "", None, "é", "x" * 2000, "[/b]", "1"], pa.string()),
    ([b"a", b"\xff", None, b"\x00"], pa.binary()),
    (["a", "b", None], pa.dictionary(pa.int8(), pa.string())),
    ([0, 1, None], pa.timestamp("us")),
    ([0, None, 20000], pa.date32()),
    ([None, Decimal("1.5"), Decimal("-1e20")], pa.decimal128(38, 5)),
    ([[1], [], None], pa.list_(pa.int64())),
    ([{"a": 1}, None], pa.struct([("a", pa.int64())])),
    ([None], pa.null()),
]

TARGETS = [Target("csv", ".csv", csv_text, use_file), Target("parquet", ".parquet", parquet_bytes, use_file)]
