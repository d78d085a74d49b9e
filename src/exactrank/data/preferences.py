"""Pairs of documents that a judge has put into an order, each with a weight.

A pair holds two rows of one query. Pairs are sorted by their rows, and the weights of equal pairs are added up, so that neither the order
of the pairs nor how often each was given makes a difference. Judges may contradict each other, and pairs may form a cycle: each pair
counts by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exactrank import _core
from exactrank._support.arrays import Boundaries, PerDocument, Rows, starts_of
from exactrank._support.tables import Tabular, Values
from exactrank.data.immutable import immutable, seal
from exactrank.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class Preferences(Tabular):
    """Pairs of rows: document ``better[p]`` is to be ranked above ``worse[p]``, with ``weight[p]``, above 0.

    `with_pairs` and `read_pairs` make them from query and document ids.

    >>> Preferences(np.array([2, 0, 2]), np.array([1, 1, 1]), np.array([1.0, 2.0, 0.5])).to_frame().values.tolist()
    [[0.0, 1.0, 2.0], [2.0, 1.0, 1.5]]
    """

    better: Rows
    worse: Rows
    weight: PerDocument

    def __post_init__(self) -> None:
        for name, kind in (("better", np.int64), ("worse", np.int64), ("weight", np.float64)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != kind or len(array) != len(self.better):
                raise DataError(f"{name} of preferences must be an array of {np.dtype(kind)}, one per pair")
        bad = np.flatnonzero((self.better == self.worse) | (self.better < 0) | (self.worse < 0))
        if len(bad):
            raise DataError(f"pair {bad[0]} is of the rows {self.better[bad[0]]} and {self.worse[bad[0]]}; give two different rows, from 0")
        bad = np.flatnonzero(~((self.weight >= 0) & (self.weight < np.inf)))
        if len(bad):
            raise DataError(f"the weight of pair {bad[0]} is {self.weight[bad[0]]}; weights must be finite and not negative")
        by_rows = np.lexsort((self.weight, self.worse, self.better))
        better, worse, weight = self.better[by_rows], self.worse[by_rows], self.weight[by_rows]
        first = np.flatnonzero(np.append(True, (better[1:] != better[:-1]) | (worse[1:] != worse[:-1]))[: len(better)])
        weight = np.add.reduceat(weight, first) if len(first) else weight
        if not np.all(np.isfinite(weight)):
            raise DataError("the weights of a pair add up to more than a float64 holds; scale them down")
        counts = weight > 0
        for name, array in (("better", better[first][counts]), ("worse", worse[first][counts]), ("weight", weight[counts])):
            object.__setattr__(self, name, immutable(array))

    def __setstate__(self, state: dict[str, Rows | PerDocument]) -> None:
        self.__dict__.update({name: seal(array) for name, array in state.items()})

    def __len__(self) -> int:
        return len(self.better)

    def __repr__(self) -> str:
        return f"Preferences({len(self):,} pairs)"

    def _columns(self) -> dict[str, Values]:
        return {"better": self.better, "worse": self.worse, "weight": self.weight}

    def check(self, indptr: Boundaries) -> None:
        """Raise unless both documents of each pair belong to the same query; ``indptr`` are the boundaries of the queries."""
        rows = np.stack([self.better, self.worse])
        beyond = np.flatnonzero(rows >= indptr[-1])
        if len(beyond):
            raise DataError(f"a pair is of row {rows.ravel()[beyond[0]]}; the data has rows 0 to {indptr[-1] - 1}")
        query = np.searchsorted(indptr, rows, side="right")
        across = np.flatnonzero(query[0] != query[1])
        if len(across):
            raise DataError(f"the rows {rows[0, across[0]]} and {rows[1, across[0]]} of a pair are of different queries; a pair is of one")

    def by_query(self, indptr: Boundaries) -> Boundaries:
        """Return the boundaries of the pairs of each query."""
        return np.searchsorted(self.better, indptr)

    def renumber(self, new_rows: Rows) -> "Preferences":
        """Return the same pairs after document ``i`` has moved to row ``new_rows[i]``."""
        return Preferences(new_rows[self.better], new_rows[self.worse], self.weight)

    def wins_and_losses(self, documents: int) -> tuple[PerDocument, PerDocument]:
        """Return the total weight of the pairs that each document wins, and of those that it loses; independent of the order of pairs."""
        rising = np.argsort(self.weight, kind="stable")
        better, worse, weight = self.better[rising], self.worse[rising], self.weight[rising]
        wins, losses = (np.bincount(rows, weight, documents).astype(np.float64) for rows in (better, worse))
        return wins, losses

    def native(self, indptr: Boundaries) -> _core.Preferences:
        """Return the pairs as the kernels take them; ``indptr`` are the boundaries of the queries."""
        return _core.Preferences(indptr, self.better, self.worse, self.weight)


def preferences_between(preferences: Preferences | None, first: int, last: int) -> Preferences | None:
    """Return the pairs of the rows ``first`` to ``last``, which hold whole queries, with rows numbered from 0."""
    if preferences is None:
        return None
    pairs = slice(*np.searchsorted(preferences.better, [first, last]))
    return Preferences(preferences.better[pairs] - first, preferences.worse[pairs] - first, preferences.weight[pairs])


def concatenate_preferences(parts: Sequence[Preferences | None], sizes: Sequence[int]) -> Preferences | None:
    """Return the pairs of several datasets, one after the other; ``sizes`` are their numbers of documents."""
    starts = starts_of(sizes)
    shifted = [(part, start) for part, start in zip(parts, starts, strict=False) if part is not None]
    if not shifted:
        return None
    return Preferences(
        np.concatenate([part.better + start for part, start in shifted]),
        np.concatenate([part.worse + start for part, start in shifted]),
        np.concatenate([part.weight for part, _ in shifted]),
    )
