"""A cutoff: a threshold on a number of each document, or on its rank, that says which documents of a ranking are kept.

A threshold t keeps the documents with x >= t, so those whose number *is* t too. x of a document with the score s is one of

    score       s
    z-score     (s - mean) / standard deviation, over the retrieved documents of the query; 0 if they all have the same score    (1)
    softmax     e^s / sum e^s over the retrieved documents of the query                                                          (2)
    margin      s - the largest score of the query, the logarithm of (2) as a share of the first document's                      (3)
    depth       minus the rank by the score; of equal scores the earlier row ranks above                                         (4)

Scores are those of one model, so that a threshold on them means the same for every query if the scores do; (1) to (3) are for models
whose scores differ in level or spread from query to query. A document with the score -inf was not retrieved, and is never kept.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Boundaries, Floats, PerDocument, Rows
from exactrank._support.json_values import JSONObject, JSONValue, decode_record, encode_record
from exactrank._support.numerics import exp
from exactrank._support.pictures import COLORS, QUIET, Plottable, draw_steps
from exactrank.cutoffs.goals import parse_cutoff_goal
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError, SettingError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Mask = npt.NDArray[np.bool_]
BOTH = "score and depth"
BY = ("score", "z-score", "softmax", "margin", "depth", BOTH)
#: A threshold that keeps nothing; minus it keeps everything.
LARGEST = sys.float_info.max
COLUMNS = 1500  #: approximate width of a picture in pixels


@dataclass(frozen=True, eq=False)
class CutoffSweep:
    """The value of every threshold."""

    thresholds: Floats  #: in ascending order
    values: Floats  #: one more than thresholds: between them, from keeping everything to keeping nothing


@dataclass(frozen=True, repr=False)
class Cutoff(Plottable):
    """A rule for which documents of a ranking are kept; [`er.cutoff`][exactrank.cutoff] finds the best one.

    `Model.with_cutoff` and `Fusion.with_cutoff` attach it to what it was found for.
    """

    by: str  #: the number that the threshold is of
    threshold: float
    depth: int | None  #: the largest rank that is kept; None for all
    goal: str
    average: str  #: over queries (macro) or documents (micro)
    rel: float  #: the smallest relevant grade
    value: float  #: of the goal, on the data that it was found on
    cross_validated: float | None  #: of cutoffs found without the queries that they are applied to
    interval: tuple[float, float] | None  #: of the cross-validated value, 95%
    flat: tuple[float, float]  #: ends between which the threshold could move without keeping other documents of this data
    documents: float  #: mean number that is kept per query
    queries: int  #: that it was found on
    sweep: CutoffSweep | None = field(default=None, compare=False)  #: not in the file

    def keep(self, scores: PerDocument, indptr: Boundaries) -> Mask:
        """Return which documents are kept; query q has the documents ``indptr[q]`` to ``indptr[q + 1]``."""
        retrieved = np.isfinite(scores)
        mask = retrieved & (comparable(scores, indptr, "score" if self.by == BOTH else self.by) >= self.threshold)
        return mask if self.depth is None else mask & (ranks(scores, indptr) <= self.depth)

    def apply(self, data: RankingData, scores: PerDocument) -> PerDocument:
        """Return the scores of the rows of ``data``, -inf for documents that are not kept; both in the caller's order."""
        grouped = data.group(scores)
        return data.ungroup(np.where(self.keep(grouped, data.indptr), grouped, -np.inf))

    def to_record(self) -> dict[str, JSONValue]:
        """Return the cutoff as JSON values."""
        return {name: encode_record(value) for name, value in vars(self).items() if name != "sweep"}

    @property
    def rule(self) -> str:
        """The rule in words: the documents that are kept."""
        if self.threshold == LARGEST:
            return "nothing"
        bounds = [] if self.depth is None else [f"the first {self.depth:,}"]
        if self.threshold > -LARGEST:
            bounds.append(f"{'score' if self.by == BOTH else self.by} >= {self.threshold:.6g}")
        return " with ".join(bounds) or "everything"

    @property
    def quantity(self) -> str:
        """The name of what ``value`` measures."""
        return parse_cutoff_goal(self.goal).quantity

    def __repr__(self) -> str:
        held_out = "" if self.cross_validated is None else f", {self.cross_validated:.4f} on held-out queries"
        return f"Cutoff(keeps {self.rule}; {self.documents:.1f} documents per query; {self.goal}: {self.value:.4f}{held_out})"

    def _draw(self, axes: "Axes", **options: object) -> None:
        """Draw the value of every threshold, and the one that was chosen."""
        if self.sweep is None:
            raise IncompatibleError("a cutoff that was read from a file has no sweep to draw; find it again")
        points, values, position = self.sweep.thresholds, self.sweep.values, min(max(self.threshold, -LARGEST), LARGEST)
        if self.by == "depth":
            points, values, position = -points[::-1], values[::-1], float(self.depth or 0)
        margin = 0.03 * float(points[-1] - points[0]) or 1.0
        low, high = float(points[0]) - margin, float(points[-1]) + margin
        draw_steps(axes, points, values, np.linspace(low, high, COLUMNS), label="every threshold, exactly")
        axes.plot(min(max(position, low), high), self.value, "o", color=COLORS[1], label=f"chosen: {self.value:.4f}")
        if self.cross_validated is not None:
            axes.axhline(self.cross_validated, color=QUIET, linestyle="--", label=f"on held-out queries: {self.cross_validated:.4f}")
        axes.set(xlim=(low, high), xlabel=f"{'depth' if self.by == 'depth' else 'threshold on the ' + self.by}", ylabel=self.quantity)
        axes.margins(y=0.1)
        axes.legend(loc="best", frameon=True, framealpha=0.8, edgecolor="none")


def read_cutoff(record: JSONValue, where: str) -> Cutoff | None:
    """Return the cutoff in the file of a model or a fusion, or None without one; errors name ``where`` it was read."""
    if record is None:
        return None
    try:
        cutoff = decode_record(Cutoff, _without_sweep(record))
        if not isinstance(cutoff, Cutoff) or cutoff.by not in BY or not (cutoff.depth is None or cutoff.depth >= 1):
            raise TypeError("it has another number or depth")
        if math.isnan(cutoff.threshold):
            raise TypeError("it has no threshold")
        parse_cutoff_goal(cutoff.goal)
    except (TypeError, ValueError, SettingError) as error:
        raise DataError(f"{where}: 'cutoff' is damaged ({error}); attach the cutoff again") from None
    return cutoff


def _without_sweep(record: JSONValue) -> JSONObject:
    if not isinstance(record, Mapping):
        raise TypeError("it is not an object")
    return {name: value for name, value in record.items() if name != "sweep"}


def comparable(scores: PerDocument, indptr: Boundaries, by: str) -> PerDocument:
    """Return x of each document; -inf for one that was not retrieved."""
    if by == "score":
        return scores
    if by == "depth":
        return np.where(np.isfinite(scores), -ranks(scores, indptr), -np.inf)
    rows = np.flatnonzero(np.isfinite(scores))
    query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[rows]
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    sizes = np.diff(starts, append=len(rows))
    x = np.full(len(scores), -np.inf)
    x[rows] = _by_query(scores[rows], starts, sizes, by) if len(rows) else 0.0
    return x


def _by_query(s: Floats, starts: Rows, sizes: Rows, by: str) -> Floats:
    """Return (1), (2) or (3) of lists that begin at ``starts``."""
    margin: Floats = s - np.repeat(np.maximum.reduceat(s, starts), sizes)
    if by == "margin":
        return margin
    if by == "softmax":
        powers = exp(margin)
        shares: Floats = powers / np.repeat(np.add.reduceat(powers, starts), sizes)
        return shares
    deviation: Floats = margin - np.repeat(np.add.reduceat(margin, starts) / sizes, sizes)
    spread = np.repeat(np.sqrt(np.add.reduceat(deviation * deviation, starts) / sizes), sizes)
    is_flat = np.repeat(np.minimum.reduceat(margin, starts) == 0, sizes)
    return np.where(is_flat, 0.0, deviation / np.where(is_flat, 1.0, spread))


def ranks(scores: PerDocument, indptr: Boundaries) -> Rows:
    """Return the rank of each document in its query, from 1.

    >>> ranks(np.array([0.5, 2.0, 0.5, 7.0]), np.array([0, 3, 4])).tolist()
    [2, 1, 3, 1]
    """
    sizes = np.diff(indptr)
    query = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((-scores, query))
    rank = np.empty(len(scores), np.int64)
    rank[order] = np.arange(len(scores)) - np.repeat(indptr[:-1], sizes) + 1
    return rank
