"""Click logs and pairs of documents: CSV as text, Parquet made of columns of every type and then damaged."""

import io
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import exactrank as er
from tests.fuzz.mutations import ODD_WORDS, mutated, one_of, soup
from tests.fuzz.tables import odd_column
from tests.fuzz.target import Target, require

LOG = ("query_id", "doc_id", "rank", "clicked", "session_id", "weight", "time")
PAIRS = ("query_id", "better", "worse", "weight")
CELLS = [b",", b",", b"\n", b"0", b"1", b"2", b"d1", b"true", b"1e9", b'"', *(name.encode() for name in {*LOG, *PAIRS}), *ODD_WORDS]


def log_columns(rng: np.random.Generator) -> dict[str, Any]:
    """A good log of a few pages of two rankings each, with some of the columns that need not be there."""
    pages, depth = int(rng.integers(1, 12)), int(rng.integers(1, 5))
    page, rank = np.repeat(np.arange(pages), depth), np.tile(np.arange(1, depth + 1), pages)
    document = [f"d{q % 3}-{(k + shift) % 5}" for q, k, shift in zip(page, rank, rng.integers(0, 2, pages).repeat(depth), strict=True)]
    columns = dict(zip(LOG, (page % 3, document, rank, rng.integers(0, 2, len(page)), page, rng.random(len(page)), page), strict=True))
    return {name: values for name, values in columns.items() if name in LOG[:4] or rng.random() < 0.7}


def pair_columns(rng: np.random.Generator) -> dict[str, Any]:
    """Good pairs of `features`; some contradict each other."""
    n = int(rng.integers(1, 20))
    query, first = rng.integers(0, 3, n), rng.integers(0, 5, n)
    second = (first + rng.integers(1, 5, n)) % 5
    better, worse = ([f"d{q}-{d}" for q, d in zip(query, of, strict=True)] for of in (first, second))
    columns = dict(zip(PAIRS, (query, better, worse, rng.random(n)), strict=True))
    return columns if rng.random() < 0.5 else {name: columns[name] for name in PAIRS[:3]}


def csv_of(rng: np.random.Generator, columns: dict[str, Any]) -> bytes:
    """The columns as CSV with some bytes changed, or cells at random."""
    if rng.random() < 0.1:
        return soup(rng, CELLS)
    rows = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    content = "\n".join(rows).encode()
    return content if rng.random() < 0.1 else mutated(rng, content, CELLS)


def parquet_of(rng: np.random.Generator, columns: dict[str, Any]) -> bytes:
    """The columns but for one or two of another type; sometimes bytes are changed."""
    rows = len(next(iter(columns.values())))
    for _ in range(rng.integers(0, 3)):
        columns = columns | {one_of(rng, list(columns)): odd_column(rng, rows)}
    target = io.BytesIO()
    pq.write_table(pa.table(columns), target, compression="none", row_group_size=max(1, int(rng.integers(1, 12))))
    return mutated(rng, target.getvalue()) if rng.random() < 0.5 else target.getvalue()


@cache
def features() -> er.RankingData:
    """Three queries of five documents each."""
    X, ids = np.random.default_rng(0).normal(size=(15, 2)), [f"d{i // 5}-{i % 5}" for i in range(15)]
    return er.RankingData.from_arrays(X, np.zeros(15), qid=np.repeat([0, 1, 2], 5), docid=ids)


def use_clicks(path: Path) -> None:
    """Read a log, describe it, estimate propensities by every model, make data of it; what is refused by one may be taken by others."""
    log = er.clicks.read_clicks(path, threads=1)
    n = len(log.query)
    require(n > 0 and all(len(column) == n for column in (log.query, log.document, log.rank, log.clicked)), "there is a row per impression")
    require(log.rank.min() >= 1 and np.isfinite(log.weights).all() and (log.weights >= 0).all(), "ranks and weights are sound")
    require(len(log.to_frame()) == n and repr(log) and str(log.describe()), "a log can be shown")
    for method in ("em", "harvest", "cascade", "dbn", "1/k"):
        try:
            found = log.propensities(method, bootstrap=2).value
        except er.errors.ExactRankError:
            continue
        require(np.all((found > 0) & (found <= 1)), f"propensities of {method} are above 0 and at most 1")
    data = log.to_data(features(), "1/k", unknown="drop")
    require(np.isfinite(data.y).all() and (data.y >= 0).all(), "grades are finite and not negative")


def use_pairs(path: Path) -> None:
    """Read pairs, make grades of them and evaluate the share in order."""
    data = er.pairs.read_pairs(path, features())
    require(data.preferences is not None, "there are pairs")
    result = er.pairs.bradley_terry(data)
    require(np.isfinite(result.strength).all() and (result.error > 0).all(), "strengths and their errors are finite")
    (value,) = er.evaluate(data, result.strength, "PairwiseCorrect").means.values()
    require(np.isnan(value) or 0 <= value <= 1, "PairwiseCorrect lies between 0 and 1")


TARGETS = [
    Target("clicks", ".csv", lambda rng: csv_of(rng, log_columns(rng)), use_clicks),
    Target("click_tables", ".parquet", lambda rng: parquet_of(rng, log_columns(rng)), use_clicks),
    Target("pairs", ".csv", lambda rng: csv_of(rng, pair_columns(rng)), use_pairs),
    Target("pair_tables", ".parquet", lambda rng: parquet_of(rng, pair_columns(rng)), use_pairs),
]
