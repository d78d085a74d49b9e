"""Gains for training, whose exponents are bounded.

A gain of 2^y - 1 is made for grades of 0 to 4 or so. With grades up to 1000 a document of the second-best grade may be worth 2^-250 of the
best: the forces between all others are rounded to nothing, and only one document in each query is left to learn from. So the surrogates
that rankers follow (forces, smooth measures, margins) see grades of at most MOST,

    y  ->  y min(1, MOST / largest grade of the data)                                                           (1)

wherever a grade is an exponent: in nDCG, DCG and MeanNDCG with gain='exp2', and in ERR, whose max_grade stands for the largest grade.
Smaller grades are left as they are. The measure is reported as asked, and also chooses the iterate to keep as asked, except for trees, of
which too few would be kept: the top of a ranking is learnt first. Rankers that maximise the measure itself do so as asked.
"""

from dataclasses import replace

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.engine.engine import Partitioned
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure
from exactrank.measures.graded import DCG, ERR

#: The largest exponent. Up to it LambdaMART reaches on artificial data what it reaches on grades of 0 to 4, within noise; at 30 a
#: hundredth less, at 1000 a tenth.
MOST = 8.0


def training_kernel(measure: Measure, data: RankingData) -> tuple[_core.Kernel, PerDocument]:
    """The kernel of ``measure`` with the grades that it reads, those that are exponents after (1)."""
    asked, grades = bounded(measure, measure.grades(data))
    return asked.kernel(grades, data.longest)


def gentle(bound: BoundMeasure) -> BoundMeasure:
    """``bound`` to judge by in training, (1); itself where that changes no grade."""
    if isinstance(bound.data, Partitioned):  # whose grades are at most MOST
        return bound
    y = bound.measure.grades(bound.data)
    asked, grades = bounded(bound.measure, y)
    return bound if grades is y else replace(asked, column=None).on(replace(bound.data, y=grades), bound.weights, bound.threads)


def bounded(measure: Measure, y: PerDocument) -> tuple[Measure, PerDocument]:
    """``measure`` and the grades to ask it with in training, (1); ``y`` itself where no grade is larger than MOST.

    >>> bounded(DCG(), np.array([0.0, 500.0, 1000.0]))[1].tolist()
    [0.0, 4.0, 8.0]
    """
    if isinstance(measure, DCG) and measure.gain == "exp2":
        largest = float(y.max())
        return measure, y if largest <= MOST else np.asarray(y * (MOST / largest))
    if isinstance(measure, ERR) and measure.max_grade > MOST:
        return replace(measure, max_grade=MOST), y * (MOST / measure.max_grade)
    return measure, y
