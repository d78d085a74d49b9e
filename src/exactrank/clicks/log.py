"""A click log in memory: one row per impression, by codes, and its sums over equal impressions.

An impression is a document that was shown for a query at a rank, and was clicked or not. Queries, documents and sessions are numbers that
stand for sorted ids, so a row takes some 20 bytes; the rows are sorted too, so their original order does not matter. Most estimates need
less: the cells, for each query, document and rank that occur together

    n = sum of the weights of the impressions,    c = sum of the weights of those that were clicked              (1)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import check_kind
from exactrank._support.arrays import Floats, Ids, Rows
from exactrank._support.tables import ROWS, Table, Tabular, Values, small_table
from exactrank.data.formats.text_column import TextColumn, rows_of
from exactrank.data.immutable import immutable, seal
from exactrank.data.ranking_data import RankingData
from exactrank.data.validation import array_of, floats_of, numbers_of
from exactrank.errors import DataError, IncompatibleError

if TYPE_CHECKING:
    from exactrank.clicks.off_policy import OffPolicyEvaluation
    from exactrank.clicks.propensities import Given, Propensities
    from exactrank.data.formats.base import Columns

Codes = npt.NDArray[np.int32]  #: one small number per row
DEEPEST = 1 << 20  #: the largest valid rank
ROWWISE = ("query", "document", "rank", "clicked", "session", "weight", "time")


@dataclass(frozen=True)
class ClickColumns:
    """Names of the columns of a click log; the last three may be missing."""

    query: str = "query_id"
    doc: str = "doc_id"
    rank: str = "rank"
    clicked: str = "clicked"
    session: str = "session_id"
    weight: str = "weight"
    time: str = "time"


@dataclass(frozen=True, eq=False)
class Cells:
    """(1) of each query, document and rank, sorted by these; a pair is a document of a query."""

    pair: Rows
    rank: Rows  #: from 1
    impressions: Floats
    clicks: Floats
    query: Codes  #: of each pair, as is the document
    document: Codes
    cell: Rows  #: of each row of the log


@dataclass(frozen=True)
class RankClicks:
    """Counts at a rank."""

    rank: int
    impressions: float
    clicks: float

    @property
    def rate(self) -> float:
        """The click-through rate; NaN where nothing has any weight."""
        return self.clicks / self.impressions if self.impressions else np.nan


@dataclass(frozen=True)
class ClickSummary:
    """Counts that show whether a log is what you expect; impressions and clicks are sums of weights."""

    queries: int
    documents: int
    sessions: int | None
    impressions: float
    clicks: float
    by_rank: tuple[RankClicks, ...]
    pairs: int  #: documents, counted once for each query that showed them
    at_several_ranks: int  #: of these, seen at more than one rank, which distinguishes position from relevance
    first: Any = None  #: the first time, if the log has times
    last: Any = None


@dataclass(frozen=True, eq=False, repr=False)
class Clicks(Tabular):
    """A click log; build it with [`er.clicks.read_clicks`][exactrank.clicks.read_clicks] or `from_arrays`.

    Row ``i`` shows document ``documents[document[i]]`` for query ``queries[query[i]]`` at ``rank[i]``, from 1. A session is
    one visit or one page of results; a weight of 2 means two such impressions.
    """

    queries: TextColumn
    documents: TextColumn
    query: Codes
    document: Codes
    rank: Codes
    clicked: npt.NDArray[np.bool_]
    sessions: TextColumn | None = None
    session: Codes | None = None
    weight: Floats | None = None
    time: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if len(self.rank) == 0:
            raise DataError("the click log has no impressions; give one row per document shown")
        keys = (self.time, self.weight, self.clicked, self.document, self.rank, self.query, self.session)
        order = np.lexsort([key for key in keys if key is not None])
        for name in ROWWISE:
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, seal(values[order]))

    @classmethod
    def from_arrays(
        cls,
        query: Sequence[object] | Ids,
        document: Sequence[object] | Ids,
        rank: npt.ArrayLike,
        clicked: npt.ArrayLike,
        *,
        session: Sequence[object] | Ids | None = None,
        weight: npt.ArrayLike | None = None,
        time: npt.ArrayLike | None = None,
    ) -> "Clicks":
        """Make a log from one value per impression; ids of any type become text.

        >>> log = Clicks.from_arrays(["b", "a", "a"], [7, 7, 8], [1, 1, 2], [1, 0, 1])
        >>> log.queries.tolist(), log.query.tolist(), log.rank.tolist(), log.clicked.tolist()
        (['a', 'b'], [0, 0, 1], [1, 2, 1], [False, True, True])
        """
        parts = {
            "query": query,
            "document": document,
            "rank": rank,
            "clicked": clicked,
            "session": session,
            "weight": weight,
            "time": time,
        }
        arrays = {name: array_of(values, name) for name, values in parts.items() if values is not None}
        for name, values in arrays.items():
            if values.ndim != 1 or len(values) != len(arrays["rank"]):
                raise DataError(f"{name} has shape {values.shape}; give one value per impression, as rank has {len(arrays['rank'])}")
        ids = {name: encode_ids(arrays[name]) for name in ("query", "document", "session") if name in arrays}
        sessions, session_codes = ids.get("session", (None, None))
        return cls(
            *(ids["query"][0], ids["document"][0], ids["query"][1], ids["document"][1]),
            checked_ranks(arrays["rank"], "rank[{}]"),
            checked_clicks(arrays["clicked"], "clicked[{}]"),
            *(sessions, session_codes),
            None if weight is None or not len(arrays["rank"]) else numbers_of("weight", weight),
            arrays.get("time"),
        )

    @property
    def n_impressions(self) -> int:
        """The number of rows."""
        return len(self.rank)

    @property
    def deepest(self) -> int:
        """The largest rank."""
        return int(self.rank.max())

    @cached_property
    def weights(self) -> Floats:
        """The weight of each row: ``weight``, or ones if there is none."""
        return seal(np.ones(self.n_impressions)) if self.weight is None else self.weight

    @cached_property
    def cells(self) -> Cells:
        """The log, summed over equal impressions."""
        pairs, pair = np.unique(self.query.astype(np.int64) * len(self.documents) + self.document, return_inverse=True)
        depth = self.deepest + 1
        keys, cell = np.unique(pair * depth + self.rank, return_inverse=True)
        query, document = np.divmod(pairs, len(self.documents))
        sums = self.cell_sums(cell, len(keys), self.weights)
        return Cells(*np.divmod(keys, depth), *sums, query.astype(np.int32), document.astype(np.int32), cell)

    def cell_sums(self, cell: Rows, count: int, weights: Floats) -> tuple[Floats, Floats]:
        """Return (1) of each of ``count`` cells with other ``weights`` of the rows; ``cell`` is the cell of each row."""
        return sums_of(cell, weights, count), sums_of(cell, weights * self.clicked, count)

    def take(self, rows: npt.ArrayLike) -> "Clicks":
        """Select impressions by a mask or by their numbers; the ids stay the same.

        >>> log = Clicks.from_arrays([1, 1], ["a", "b"], [1, 2], [0, 1])
        >>> log.take(log.rank <= 1)
        Clicks(1 impression of 1 document for 1 query, 0 clicked)
        """
        selection = array_of(rows)
        return replace(self, **{name: rows_of(getattr(self, name), selection) for name in ROWWISE})

    def describe(self) -> ClickSummary:
        """Return counts, the click-through rate by rank, and the number of documents seen at several ranks.

        >>> summary = Clicks.from_arrays([1, 1, 1], ["a", "b", "a"], [1, 2, 2], [1, 0, 1]).describe()
        >>> summary.pairs, summary.at_several_ranks, [rank.rate for rank in summary.by_rank]
        (2, 1, [1.0, 0.5])
        """
        cells = self.cells
        impressions, clicks = (np.bincount(cells.rank, counted) for counted in (cells.impressions, cells.clicks))
        ranks = np.unique(cells.rank)
        return ClickSummary(
            queries=len(np.unique(cells.query)),
            documents=len(np.unique(cells.document)),
            sessions=None if self.session is None else len(np.unique(self.session)),
            impressions=float(impressions.sum()),
            clicks=float(clicks.sum()),
            by_rank=tuple(RankClicks(int(k), float(impressions[k]), float(clicks[k])) for k in ranks),
            pairs=len(cells.query),
            at_several_ranks=int(np.sum(np.bincount(cells.pair) > 1)),
            first=None if self.time is None else self.time.min(),
            last=None if self.time is None else self.time.max(),
        )

    def propensities(self, method: "Given | Propensities" = "harvest", *, bootstrap: int = 200, seed: int = 0) -> "Propensities":
        """Estimate the probability that each rank is examined, relative to the first, with 95% intervals.

        ``method`` is ``"harvest"`` or ``"em"`` for the position-based model, where ``"em"`` needs about 50 impressions per document and
        ``"harvest"`` does not; ``"cascade"`` or ``"dbn"`` for users who read down until
        they are satisfied, or numbers that are known: one per rank from 1, by rank, or ``"1/k"`` and ``"1/k^0.7"``. ``bootstrap``
        samples (0: none) of the sessions, or of the queries of a log without, give the intervals.
        """
        from exactrank.clicks.propensities import propensities

        return propensities(self, method, bootstrap=bootstrap, seed=seed)

    def to_data(
        self,
        features: object,
        propensity: "Given | Propensities",
        *,
        clip: float = 0.05,
        unknown: str = "error",
        columns: "Columns | None" = None,
    ) -> RankingData:
        """Make training data of the documents shown, with grades clicks / propensity and a query's impressions as its weight.

        ``features`` has all of them, by query id and document id: data, a frame or a file. A propensity below ``clip`` counts as
        ``clip``. Documents of the log without features are an error, or left out with ``unknown="drop"``.
        """
        from exactrank.clicks.to_data import to_data

        return to_data(self, features, propensity, clip=clip, unknown=unknown, columns=columns)

    def evaluate(
        self, measures: Any, features: RankingData, scores: npt.ArrayLike, propensity: "Given | Propensities | None", **settings: Any
    ) -> "OffPolicyEvaluation":
        """Estimate from this log the measures of a ranker with these ``scores``, one per row of ``features``, with intervals.

        The settings are those of `exactrank.clicks.off_policy.evaluate`.
        """
        from exactrank.clicks.off_policy import evaluate

        return evaluate(self, measures, features, scores, propensity, **settings)

    def __repr__(self) -> str:
        def amount(count: int, singular: str, plural: str) -> str:
            return f"{count:,} {singular if count == 1 else plural}"

        impressions = amount(self.n_impressions, "impression", "impressions")
        documents = amount(len(np.unique(self.document)), "document", "documents")
        queries = amount(len(np.unique(self.query)), "query", "queries")
        return f"Clicks({impressions} of {documents} for {queries}, {int(self.clicked.sum()):,} clicked)"

    def _columns(self, rows: slice = slice(None)) -> Mapping[str, Values]:
        names = ClickColumns()
        columns: dict[str, Values | None] = {
            names.query: _texts(self.queries, self.query, rows),
            names.doc: _texts(self.documents, self.document, rows),
            names.rank: self.rank[rows],
            names.clicked: self.clicked[rows].astype(np.int8),
            names.session: _texts(self.sessions, self.session, rows),
            names.weight: rows_of(self.weight, rows),
            names.time: rows_of(self.time, rows),
        }
        return {name: values for name, values in columns.items() if values is not None}

    def _glance(self) -> Table:
        return small_table(repr(self), list(self._columns(slice(ROWS)).items()), self.n_impressions)


def sums_of(group: npt.NDArray[np.integer], values: Floats, count: int = 0) -> Floats:
    """Return the sum of the values of each group; groups are numbered from 0."""
    return np.bincount(group, values, count).astype(np.float64, copy=False)


def _texts(ids: TextColumn | None, codes: Codes | None, rows: slice) -> list[str] | None:
    return None if ids is None or codes is None else ids.take(codes[rows].astype(np.int64)).tolist()


def check_clicks(log: object, name: str = "log") -> None:
    """Raise unless the argument ``name`` is a click log."""
    check_kind(name, log, Clicks, "a click log, from er.clicks.read_clicks")


def encode_ids(values: Ids) -> tuple[TextColumn, Codes]:
    """Return the distinct values as sorted text, and the number of each value among them.

    >>> encode_ids(np.array([10, 9, 10]))[1]
    array([0, 1, 0], dtype=int32)
    """
    distinct, code = np.unique(values if values.dtype.kind in "iub" else values.astype(str), return_inverse=True)
    texts, place = np.unique(distinct.astype(str), return_inverse=True)
    return TextColumn.of(texts.tolist()), place.astype(np.int32)[code]


def checked_ranks(values: npt.NDArray[np.generic], place: str, first: int = 0) -> Codes:
    """Return ranks as whole numbers from 1; ``place`` names row {} in messages, and ``first`` is the number of the first."""
    numbers = _numbers(values, place, "ranks")
    bad = np.flatnonzero(~((numbers >= 1) & (numbers <= DEEPEST) & (numbers == np.floor(numbers))))
    if len(bad):
        remedy = "add 1 if yours count from 0" if numbers[bad[0]] == 0 else "leave out what was not shown"
        value = f"{numbers[bad[0]]:g}"
        raise DataError(f"{place.format(first + bad[0])} is {value}; ranks are whole numbers from 1 to {DEEPEST:,}, so {remedy}")
    return np.asarray(numbers, np.int32)


def checked_clicks(values: npt.NDArray[np.generic], place: str, first: int = 0) -> npt.NDArray[np.bool_]:
    """Return clicks as booleans, after checking that they are 0 or 1; ``place`` and ``first`` as in `checked_ranks`."""
    numbers = _numbers(values, place, "clicks")
    bad = np.flatnonzero((numbers != 0) & (numbers != 1))
    if len(bad):
        value = f"{numbers[bad[0]]:g}"
        raise DataError(
            f"{place.format(first + bad[0])} is {value}; an impression was clicked (1) or not (0), so give how often as its weight"
        )
    return np.asarray(numbers == 1)


def _numbers(values: npt.NDArray[Any], place: str, name: str) -> npt.NDArray[Any]:
    if values.dtype.kind not in "iufb" or values.dtype == np.float16:  # which cannot hold ranks above 65,504
        return floats_of(f"{place.format('...')}: {name}", values)
    return immutable(values)


def list_starts(log: Clicks, model: str) -> Rows:
    """Return the first row of each page of results, the rows of a session and query from rank 1 down; rows are sorted by page."""
    if log.session is None:
        trouble = f"{model} reads each page of results from the top, so the log needs a column of sessions"
        raise IncompatibleError(f"{trouble}; name it, or use em")
    return np.flatnonzero(np.r_[True, (np.diff(log.session) != 0) | (np.diff(log.query) != 0)])
