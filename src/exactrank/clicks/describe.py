"""Summary of a click log."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from exactrank.clicks.log import Clicks


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
    at_several_ranks: int  #: of these, seen at more than one rank: what tells position from relevance
    first: Any = None  #: and last time
    last: Any = None


def describe(log: Clicks) -> ClickSummary:
    """
    >>> summary = describe(Clicks.from_arrays([1, 1, 1], ["a", "b", "a"], [1, 2, 2], [1, 0, 1]))
    >>> summary.pairs, summary.at_several_ranks, [each.rate for each in summary.by_rank]
    (2, 1, [1.0, 0.5])
    """
    cells = log.cells
    impressions, clicks = (np.bincount(cells.rank, counted) for counted in (cells.impressions, cells.clicks))
    ranks = np.unique(cells.rank)
    return ClickSummary(
        queries=len(np.unique(cells.query)),
        documents=len(np.unique(cells.document)),
        sessions=None if log.session is None else len(np.unique(log.session)),
        impressions=float(impressions.sum()),
        clicks=float(clicks.sum()),
        by_rank=tuple(RankClicks(int(k), float(impressions[k]), float(clicks[k])) for k in ranks),
        pairs=len(cells.query),
        at_several_ranks=int(np.sum(np.bincount(cells.pair) > 1)),
        first=None if log.time is None else log.time.min(),
        last=None if log.time is None else log.time.max(),
    )
