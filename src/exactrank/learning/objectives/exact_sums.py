"""Exact sums over documents, which do not depend on the order of the documents, on threads, or on where the documents lie.

Numbers are rounded to whole multiples of a unit so small that it does not matter, and so large that their sums are exact:

    unit = 2^(e - 52),    2^e above (number of terms) * (size of the largest)                                    (1)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerQuery
from exactrank.data.dataset import Dataset, Part

Values = npt.NDArray[np.float64]


def round_for_sums(values: Values, largest: float, count: int) -> Values:
    """Round ``values``, at most ``largest`` in size, to multiples of (1), so that sums of ``count`` of them are exact.

    >>> round_for_sums(np.array([1.0, 1 / 3]), 1.0, 1 << 40).tolist()
    [1.0, 0.33349609375]
    """
    exponent = math.frexp(largest * count)[1] if math.isfinite(largest * count) else None
    if exponent is None or not -900 < exponent < 900:  # not a finite number, or without neighbors
        return values
    shift = math.ldexp(1.5, exponent)  # where doubles are one unit apart
    return (values + shift) - shift


def mean_grade(data: Dataset) -> float:
    """Return the mean of all grades by the weights of documents and queries."""
    question = WeightedGrades(data.weights, data.n_documents)
    weight, weighted = data.ask(replace(question, largest=data.ask(question)))
    return weighted / weight


@dataclass(frozen=True, eq=False)
class WeightedGrades:
    """The largest weight and weighted grade of a part; or, once these ``largest`` are known, the exact sums of both."""

    weights: PerQuery  #: of all queries
    documents: int
    largest: tuple[float, float] | None = None

    def ask(self, part: Part) -> tuple[float, float]:
        """Answer for the documents of ``part``."""
        data = part.data
        weight = np.repeat(self.weights[part.first : part.first + data.n_queries], data.sizes)
        weight = weight if data.sample_weight is None else weight * data.sample_weight
        weighted = weight * data.y
        if self.largest is None:
            return float(weight.max()), float(np.abs(weighted).max())
        largest_weight, largest_weighted = self.largest
        return (
            float(round_for_sums(weight, largest_weight, self.documents).sum()),
            float(round_for_sums(weighted, largest_weighted, self.documents).sum()),
        )

    def combine(self, answers: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """Return the largest of both, or the sums."""
        weight, weighted = np.max(answers, axis=0) if self.largest is None else np.sum(answers, axis=0)
        return float(weight), float(weighted)
