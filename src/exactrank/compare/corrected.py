"""Comparisons with few human and many machine grades: corrected means of methods, and of their differences.

The difference of two methods on a query takes the place of the measure in the equations of `exactrank.measures.machine_grades`: with d the
difference by human grades and m that by the machine's,

    difference(l) = l/N sum_further m + 1/n sum_human (d - l m)                                                 (1)

and l is chosen for each pair of methods. The errors that the machine makes for both methods alike are not in (1) at all. The difference
is tested by t = difference / standard error, with the degrees of freedom of its interval.

Methods that are fitted on several divisions of the queries have a model for each. All of them rank the further queries, whose value is

    m_q = sum_f w_f m_qf / sum_f w_f,    w_f the weight of the test queries of division f                       (2)

so that on average it is that of the test queries by the machine's grades, which have one model each.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from exactrank._support.arrays import PerQuery
from exactrank.compare.results import DataSummary, Fit, MachineSummary
from exactrank.compare.statistics import Pair, all_pairs, differences_beyond_rounding, holm
from exactrank.data.dataset import Mask
from exactrank.data.ranking_data import RankingData, checksum
from exactrank.errors import DataError
from exactrank.measures.machine_grades import LEAST_QUERIES, CorrectedMean, agreement, corrected_mean

#: The test of a corrected difference.
CORRECTED_TEST = "t"


@dataclass(frozen=True, eq=False)
class MachineValues:
    """The values of methods by one measure and a machine's grades: of the queries that people have graded too, and of further ones."""

    shared: Mapping[str, PerQuery]
    further: Mapping[str, PerQuery]  #: (2)
    further_weight: PerQuery

    def mean(self, human: Mapping[str, PerQuery], weight: PerQuery, name: str) -> CorrectedMean | None:
        """Return the corrected mean of a method; None if too few queries count."""
        return self._correct(human[name], self.shared[name], self.further[name], weight)

    def pairs(self, human: Mapping[str, PerQuery], weight: PerQuery, seed: int) -> tuple[Pair, ...]:
        """Compare every method with those after it by (1); effects, wins, ties and losses are those by human grades."""
        plain = all_pairs(human, weight=weight, seed=seed)
        means = [self._difference(human, weight, first, second) for first, second in combinations(human, 2)]
        p = [math.nan if mean is None else mean.p for mean in means]
        return tuple(map(_corrected_pair, plain, means, p, holm(p).tolist()))

    def _difference(self, human: Mapping[str, PerQuery], weight: PerQuery, first: str, second: str) -> CorrectedMean | None:
        d, m, further = (differences_beyond_rounding(values[first], values[second]) for values in (human, self.shared, self.further))
        return self._correct(d, m, further, weight)

    def _correct(self, human: PerQuery, machine: PerQuery, further: PerQuery, weight: PerQuery) -> CorrectedMean | None:
        counts = ~np.isnan(human + machine) & (weight > 0), ~np.isnan(further) & (self.further_weight > 0)
        if min(int(np.sum(count)) for count in counts) < LEAST_QUERIES:
            return None
        return corrected_mean(human, machine, further, weight=weight, further_weight=self.further_weight)


def _corrected_pair(pair: Pair, mean: CorrectedMean | None, p: float, adjusted: float) -> Pair:
    """Return ``pair`` with the corrected difference."""
    tested = replace(pair, p={CORRECTED_TEST: p}, adjusted={CORRECTED_TEST: adjusted})
    if mean is None:
        return replace(tested, difference=math.nan, interval=(math.nan, math.nan))
    return replace(tested, difference=mean.mean, interval=mean.interval, queries=mean.human_queries, worth=mean.worth)


def machine_values(data: DataSummary, fits: Mapping[str, Sequence[Fit]], measure: str) -> MachineValues | None:
    """Return the values by one measure and a machine's grades; ``fits`` are those of each method on the same divisions."""
    if data.machine is None:
        return None
    number = len(data.machine.further_qid)
    folds = {fold.name: fold for fold in data.folds}
    shared, further = {}, {}
    for name, of_method in fits.items():
        tables = [np.array(fit.machine[measure], np.float64) for fit in of_method]
        shares = [math.fsum(folds[fit.fold].test_weight or [1.0] * len(folds[fit.fold].test_qid)) for fit in of_method]
        shared[name] = np.concatenate([values[: len(values) - number] for values in tables])
        total = math.fsum(shares)
        further[name] = np.sum(
            [share / total * values[len(values) - number :] for share, values in zip(shares, tables, strict=True)], axis=0
        )
    weight = data.machine.further_weight
    return MachineValues(shared, further, np.ones(number) if weight is None else np.array(weight))


def summarize_machine(data: RankingData, machine: RankingData, is_further: Mask, *, seed: int = 0) -> MachineSummary:
    """Summarize the grades of ``machine``, of all queries of ``data`` and of further ones."""
    for count, graded in ((data.n_queries, "by people"), (int(is_further.sum()), "by the machine alone")):
        if count < LEAST_QUERIES:
            raise DataError(f"{count} queries are graded {graded}; an interval takes at least {LEAST_QUERIES}")
    judges = agreement(data, machine, seed=seed)
    weight = None if machine.query_weight is None else tuple(machine.query_weight[is_further].tolist())
    finite = judges is not None and judges.kappa == judges.kappa
    return MachineSummary(
        tuple(map(str, machine.qid[is_further].tolist())),
        weight,
        0 if judges is None else judges.documents,
        judges.kappa if judges is not None and finite else None,
        judges.interval if judges is not None and finite else None,
        None if judges is None else judges.bias,
        checksum(machine),
    )
