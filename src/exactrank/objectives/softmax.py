"""Softmax cross entropy: a convex surrogate that puts useful documents on top.

With u the usefulness of a document to the measure (its grade where that does not say, or is too large), less the least of its query, and
U the sum of all,

    f(w) = 1/U sum over queries of sum_i u_i (s_i - log sum_l exp s_l)  -  ridge/2 |sigma w|^2,    s = X w       (1)

the log likelihood of drawing each unit of usefulness from the softmax of the scores. Queries count by what there is to find in
them; sigma holds the features' standard deviations within queries, so the penalty does not depend on their units.
"""

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from exactrank import _core
from exactrank.data.room import FeatureColumns
from exactrank.measures.bound import BoundMeasure
from exactrank.objectives.within_query import deviation
from exactrank.threads import thread_count

Theta = npt.NDArray[np.float64]
#: Beyond this the usefulness of one document drowns that of all others.
MOST_USEFUL = 1e6


class SoftmaxLikelihood:
    """(1) on the data of a measure, by its weights; the features one after the other are ``columns``."""

    def __init__(self, bound: BoundMeasure, columns: FeatureColumns, ridge: float) -> None:
        data, y = bound.data, bound.measure.grades(bound.data)
        self._X, self._indptr, self._sizes = data.X, data.indptr, data.sizes
        self._threads = thread_count(bound.threads)
        self._ridge = ridge
        worth = getattr(bound.measure, "usefulness", None)
        with np.errstate(over="ignore"):
            useful = y if worth is None else np.asarray(worth(y), np.float64)
        if not np.all(np.abs(useful) < MOST_USEFUL):
            useful = y
        above = useful - np.repeat(np.minimum.reduceat(useful, data.indptr[:-1]), data.sizes)
        if not np.any(above > 0):
            above = y - np.repeat(np.minimum.reduceat(y, data.indptr[:-1]), data.sizes)
        above = above * np.repeat(bound.weights, data.sizes)
        self._share = above / above.sum()
        self._query_share = np.add.reduceat(self._share, data.indptr[:-1])
        sigma = np.array([deviation(column, data.indptr) for column in columns])
        self.sigma = np.where(sigma > 0, sigma, np.inf)

    def value_and_slope(self, theta: Theta) -> tuple[float, Theta]:
        """(1) and its gradient."""
        s = _core.linear_scores(self._X, np.ascontiguousarray(theta), self._threads)
        most = np.maximum.reduceat(s, self._indptr[:-1])
        chance = np.exp(s - np.repeat(most, self._sizes))
        total = np.add.reduceat(chance, self._indptr[:-1])
        gain = float(self._share @ s - self._query_share @ (np.log(total) + most))
        slope = self._share - chance * np.repeat(self._query_share / total, self._sizes)
        scaled = np.where(np.isinf(self.sigma), 0.0, self.sigma) ** 2 * theta
        return gain - self._ridge / 2 * float(theta @ scaled), _core.pulled_back(self._X, slope, self._threads) - self._ridge * scaled

    def best(self, iterations: int) -> Theta:
        """Where (1) is largest, by L-BFGS in units of the features' deviations."""

        def negated(scaled: Theta) -> tuple[float, Theta]:
            value, slope = self.value_and_slope(scaled / self.sigma)
            return -value, -slope / self.sigma

        found = minimize(negated, np.zeros(len(self.sigma)), jac=True, method="L-BFGS-B", options={"maxiter": iterations})
        return np.asarray(found.x / self.sigma)
