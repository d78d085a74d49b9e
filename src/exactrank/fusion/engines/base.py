"""What a search engine is to tuning: its own normalizations, absent documents, signs and sums, and its configuration.

An engine ranks by a weighted sum of its systems' normalized scores, over the first ``depth`` documents of each. Weights that were
tuned with another normalization, or on longer lists, are not the best there. So an engine is a profile of the tuning: the weights are
tuned for exactly what it computes, and the configuration holds all that it needs to compute just that.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument
from exactrank._support.text import printable
from exactrank.fusion.lists import ScoreLists

Normaliser = Callable[
    [ScoreLists, int], PerDocument
]  #: lists and the constant of a reciprocal rank, to comparable scores, in the engine's precision
Weights = npt.NDArray[np.float64]
DEPTH = 100  #: documents of each list, where nothing else is asked for
LEAST = np.float32(1.4e-45)  #: positive number of single precision; Java's Float.MIN_VALUE


@dataclass(frozen=True)
class Settings:
    """What a configuration is written of."""

    systems: Sequence[str]
    weights: Sequence[float]
    normalize: str  #: without its constant
    k: int  #: the constant of a reciprocal rank
    depth: int  #: documents of each list
    size: int  #: documents of the result
    parts: Mapping[str, Any]  #: what each system is in the engine: a query, a retriever, a rank feature

    def part(self, system: str, what: str) -> Any:
        """What ``system`` is in the engine, or a place that says so."""
        return self.parts.get(system, f"{what} of {printable(system)}")


@dataclass(frozen=True)
class SearchEngine:
    """How one engine, or one of its ways to combine, is tuned for and configured."""

    name: str
    normalizations: Mapping[str, Normaliser]  #: its own, the default first
    write: Callable[[Settings], str]
    absent: str = "zero"
    signed: bool = False  #: may weights be negative?
    systems: int | None = None  #: how many it can combine, where that is limited
    combine: Callable[[Weights, npt.NDArray[np.float64]], PerDocument] | None = None  #: where it is not the sum in double precision


def single_sum(weights: Weights, values: npt.NDArray[np.float64]) -> PerDocument:
    """sum_j w_j x_j in single precision, system by system."""
    total = np.zeros(values.shape[1], np.float32)
    for weight, scores in zip(weights.astype(np.float32), values, strict=True):
        total += weight * scores.astype(np.float32)
    return total.astype(np.float64)


def pretty(value: Any) -> str:
    """A configuration as JSON."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def scaled(lists: ScoreLists, high: npt.NDArray[Any], equal: npt.NDArray[np.bool_], then: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """(s - min) / (high - min) with the precision of the lists; in lists whose scores are ``equal``, what comes ``then``."""
    width = np.where(equal, 1, high - lists.low).astype(high.dtype)
    return np.where(lists.each(equal), lists.each(then), (lists.scores - lists.each(lists.low)) / lists.each(width))


def raw(lists: ScoreLists, k: int) -> PerDocument:
    """The scores as they are."""
    return lists.scores
