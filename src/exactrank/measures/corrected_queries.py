"""The mean that a machine's grades correct, as a mean with signed weights over the queries of one dataset: exact searches maximize it.

n queries have grades of people and of a machine, N further ones those of the machine alone. The dataset holds the n queries by human
grades, their *twins* by the machine's, and the further queries. With v the weights of queries, not below 0, a twin's that of its query,

    w_q = v_q by human grades,   w_q = -l v_q of a twin,   w_q = l v_q sum_human v / sum_further v of a further query     (1)

add up to sum_human v, and sum_q w_q M_q / sum_q w_q is equation (1) of `exactrank.measures.machine_grades`. It is a sum of the step
functions of queries, as any mean is. A pair counts if the measure skips neither. A training part or a bootstrap sample of the queries has
the weights (1) of its own v; a query and its twin are drawn together.

The machine weight l that minimizes the variance of the mean, (3) there, depends on the ranking, and the best ranking on l. So the search
begins with l at some ranking, and is repeated with l at its optimum until l changes by less than `STABLE`, or `ROUNDS` times; for any l the
mean is unbiased. Where l is 0, the machine's grades are left out, and everything is as without them, to the bit.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerQuery
from exactrank.data.alignment import check_same_features
from exactrank.data.dataset import Mask
from exactrank.data.folds import join
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError
from exactrank.measures.machine_grades import LEAST_QUERIES, CorrectedMean, corrected_mean, further_queries, places_of_queries

N = TypeVar("N", bound=np.generic)

STABLE = 0.01  #: change of the machine weight; the variance is flat at its minimum
ROUNDS = 10


@dataclass(frozen=True, eq=False)
class CorrectedQueries:
    """The queries of a corrected mean, of which the first ``people`` have human grades; their twins follow, then further queries."""

    data: RankingData
    people: int

    @classmethod
    def of(cls, data: RankingData, machine: RankingData) -> "CorrectedQueries":
        """Return the queries of ``data``, graded by people, with the grades of ``machine`` of the same and further queries."""
        check_data(machine, name="machine")
        places, is_further = places_of_queries(data, machine), further_queries(data, machine)
        for count, graded in ((data.n_queries, "by people"), (int(is_further.sum()), "by the machine alone")):
            if count < LEAST_QUERIES:
                raise DataError(f"{count} queries are graded {graded}; a correction takes at least {LEAST_QUERIES}")
        check_same_features(machine.feature_names, data.feature_names, "the queries of people")
        twins, further = replace(machine.take_queries(places), query_weight=data.query_weight), machine.select(is_further)
        parts = [replace(part, qid=np.arange(part.n_queries), order=None, comment=None) for part in (data, twins, further)]
        return cls(join(parts), data.n_queries)

    @property
    def further(self) -> int:
        """The number of queries that only the machine has graded."""
        return self.data.n_queries - 2 * self.people

    def by_query(self, of_people: npt.NDArray[N], of_further: npt.NDArray[N]) -> npt.NDArray[N]:
        """Return numbers for each query, along the last axis; those of twins are those of the queries of people."""
        return np.concatenate([of_people, of_people, of_further], axis=-1)

    def weights(self, machine_weight: float, weight: PerQuery, is_skipped: Mask) -> PerQuery:
        """Return (1) for the weights v; all 0 if the queries of people or the further ones have none."""
        n, counted = self.people, np.where(is_skipped, 0.0, weight)
        human = np.where(is_skipped[n : 2 * n], 0.0, counted[:n])
        further = counted[2 * n :]
        total, of_further = float(human.sum()), float(further.sum())
        if not (total > 0 and of_further > 0):
            return np.zeros(self.data.n_queries)
        return np.concatenate([human, -machine_weight * human, machine_weight * total / of_further * further])

    def mean(self, values: PerQuery, weight: PerQuery, machine_weight: float | None = None) -> CorrectedMean:
        """Return the corrected mean of the values of queries, with the best machine weight unless another is given."""
        n = self.people
        return corrected_mean(
            values[:n],
            values[n : 2 * n],
            values[2 * n :],
            weight=weight[:n],
            further_weight=weight[2 * n :],
            machine_weight=machine_weight,
        )
