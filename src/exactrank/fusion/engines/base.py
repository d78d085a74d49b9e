"""The base of search engines: normalizations, absent documents, signs and sums of an engine, and its configuration.

An engine ranks by a weighted sum of its systems' normalized scores, over the first ``depth`` documents of each. Weights that were
tuned with another normalization, or on longer lists, are not the best there. So the weights are tuned for exactly the scores that the
engine computes, and the configuration makes the engine compute exactly these.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument, PerQuery
from exactrank._support.json_values import JSONValue
from exactrank._support.text import printable
from exactrank.fusion.lists import ScoreLists

Normalizer = Callable[
    [ScoreLists, int], PerDocument
]  #: lists and the constant of a reciprocal rank, to comparable scores, in the engine's precision
Weights = npt.NDArray[np.float64]
DEPTH = 100  #: default number of documents of each list
LEAST = np.float32(1.4e-45)  #: positive number of single precision; Java's Float.MIN_VALUE


@dataclass(frozen=True)
class EngineSettings:
    """The values that a configuration is written from."""

    systems: Sequence[str]
    weights: Sequence[float]
    normalize: str  #: without its constant
    k: int  #: the constant of a reciprocal rank
    depth: int  #: documents of each list
    size: int  #: documents of the result
    parts: Mapping[str, JSONValue]  #: each system's counterpart in the engine: a query, a retriever, a rank feature

    def part(self, system: str, kind: str) -> JSONValue:
        """Return the counterpart of ``system`` in the engine, or a placeholder that names its ``kind``."""
        return self.parts.get(system, f"{kind} of {printable(system)}")


@dataclass(frozen=True)
class SearchEngine:
    """An engine, or one of its ways to combine scores, as a target of tuning."""

    name: str
    normalizations: Mapping[str, Normalizer]  #: of the engine, the default first
    write: Callable[[EngineSettings], str]
    absent: str = "zero"
    signed: bool = False  #: True if weights may be negative
    systems: int | None = None  #: number of systems that it can combine, if that is limited
    combine: Callable[[Weights, npt.NDArray[np.float64]], PerDocument] | None = None  #: None: the sum in double precision


def single_sum(weights: Weights, values: npt.NDArray[np.float64]) -> PerDocument:
    """Return sum_j w_j x_j in single precision, added system by system."""
    total = np.zeros(values.shape[1], np.float32)
    for weight, scores in zip(weights.astype(np.float32), values, strict=True):
        total += weight * scores.astype(np.float32)
    return total.astype(np.float64)


def pretty(value: JSONValue) -> str:
    """Write a configuration as JSON."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"


def min_max_scores(lists: ScoreLists, high: PerQuery, equal: npt.NDArray[np.bool_], constant: PerQuery) -> PerDocument:
    """Return (s - min) / (high - min) in the precision of the lists; lists whose scores are ``equal`` get a ``constant``."""
    width = np.where(equal, 1, high - lists.low).astype(high.dtype)
    return np.where(lists.repeat(equal), lists.repeat(constant), (lists.scores - lists.repeat(lists.low)) / lists.repeat(width))


def raw(lists: ScoreLists, k: int) -> PerDocument:
    """Return the scores as they are."""
    return lists.scores
