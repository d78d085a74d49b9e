"""Gains for training, whose exponents are bounded.

A gain of 2^y - 1 is made for grades of 0 to 4 or so. With grades up to 1000 a document of the second-best grade may be worth 2^-250 of the
best: the forces between all others are rounded to nothing, and only one document of each query is left to learn from. So the surrogates
that rankers follow (forces, smooth measures, margins) see grades of at most MOST,

    y  ->  y min(1, MOST / largest grade of the data)                                                           (1)

if a grade is an exponent: in nDCG, DCG and MeanNDCG with gain='exp2', and in ERR, whose max_grade stands for the largest grade. If no
grade is larger than MOST, all stay as they are. The measure is reported without (1), and also selects iterates without it, except for
trees: too few of them would be kept, since the top of a ranking is learnt first. Rankers that maximize the measure itself do so without
(1).
"""

from dataclasses import replace

import numpy as np

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure, DatasetMeasure
from exactrank.measures.graded import DCG, ERR

#: The largest exponent. Up to it LambdaMART scores on artificial data what it scores on grades of 0 to 4, within noise; at 30 a
#: hundredth less, at 1000 a tenth.
MOST = 8.0


def training_kernel(measure: Measure, data: RankingData) -> tuple[_core.Kernel, PerDocument]:
    """Return the kernel of ``measure`` after (1), and the grades that it reads."""
    bounded_measure, grades = bound_exponents(measure, measure.grades(data), largest_of(measure, data))
    return bounded_measure.kernel(grades, data.longest)


def bounded_gain(bound: BoundMeasure) -> BoundMeasure:
    """Return ``bound`` with (1), which evaluates iterates in training; itself if (1) changes no grade."""
    y = bound.measure.grades(bound.data)
    measure, grades = bound_exponents(bound.measure, y, largest_of(bound.measure, bound.data))
    return bound if grades is y else replace(measure, column=None).on(replace(bound.data, y=grades), bound.weights, bound.threads)


def for_selection(measure: DatasetMeasure) -> DatasetMeasure:
    """Return ``measure`` with (1), as it selects models in training."""
    return replace(measure, adjust=bounded_gain)


def largest_of(measure: Measure, data: RankingData) -> float | None:
    """Return the largest grade that ``measure`` reads in all files if ``data`` is one of several; None otherwise."""
    if data.global_facts is None or not _is_exponential(measure):
        return None
    if measure.column not in (None, data.global_facts.column):
        raise IncompatibleError(
            f"{measure} reads {measure.column!r}, whose largest value in all files is not known to each file;"
            " train on that measure, or give it gain='linear'"
        )
    return data.global_facts.grades[1]


def _is_exponential(measure: Measure) -> bool:
    return isinstance(measure, DCG) and measure.gain == "exp2"


def bound_exponents(measure: Measure, y: PerDocument, largest: float | None = None) -> tuple[Measure, PerDocument]:
    """Return ``measure`` and the grades ``y`` after (1), as training uses them; ``y`` itself if no grade is larger than MOST.

    ``largest`` is the largest grade in all files, if ``y`` are the grades of one of them.

    >>> bound_exponents(DCG(), np.array([0.0, 500.0, 1000.0]))[1].tolist()
    [0.0, 4.0, 8.0]
    """
    if _is_exponential(measure):
        largest = float(y.max()) if largest is None else largest
        return measure, y if largest <= MOST else np.asarray(y * (MOST / largest))
    if isinstance(measure, ERR) and measure.max_grade > MOST:
        return replace(measure, max_grade=MOST), y * (MOST / measure.max_grade)
    return measure, y
