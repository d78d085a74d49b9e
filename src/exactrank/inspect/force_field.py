"""The forces on one query's documents as a function of their scores, and how they change (Burges, Ragno & Le 2006, section 4).

    J_jk = d lambda_j / d s_k                                                                                   (1)

Forces between pairs, |w| link(d) with d the lead of the better document, have a Jacobian in closed form, since their weights w depend on
the scores only through the order of the documents, and are constant while it does not change:

    J_jk = J_kj = -|w_jk| link'(d),    J_jj = -sum over k of J_jk - score_l2                                    (2)
    link' = -link (1 - link) for the logistic link, 0 for the step, -1 for a spring that pulls                  (3)

All other forces are differentiated numerically,

    J_jk = (lambda_j(s + h_k e_k) - lambda_j(s - h_k e_k)) / (2 h_k)                                            (4)

with steps too short to change the order. The same with half the steps gives the error; if it is large, shorter steps are tried, since there
may be an unknown jump. A force is -dC/ds of a cost C, so the Hessian of C is -J.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arrays import PerDocument
from exactrank._support.numerics import eigh, exp, norm
from exactrank.data.ranking_data import RankingData
from exactrank.learning.objectives.bounded_gain import bound_exponents
from exactrank.learning.objectives.lambdas import FiniteDifference, Lambdas
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.base import NO_CUTOFF
from exactrank.measures.families import mirror

Points = npt.NDArray[np.float64]  #: a row of scores, or of forces, for each point
Square = npt.NDArray[np.float64]  #: documents x documents

NIL = 1e-6  #: sizes below this count as zero
SAFETY = 4.0  #: an error is itself an estimate, and may be this many times as large
TELLING = 1e-3  #: with a larger error nothing can be decided
STEPS = (1e-4, 1e-5, 1e-6)  #: steps of (4), in units of score or of the scores' deviation, whichever is smaller
CONSTANT = 1e-3  #: forces that change by less than this share of themselves over the scores' deviation count as constant


@dataclass(frozen=True)
class Estimate:
    """A quantity that is tested for being zero, relative to the size of its terms, with its numerical error."""

    value: float
    error: float = 0.0

    @property
    def nil(self) -> bool | None:
        """True if the quantity is zero within its error, False if it is not, and None if the error is too large to tell.

        >>> Estimate(1e-15).nil, Estimate(2e-5, 1e-5).nil, Estimate(2e-5).nil, Estimate(0.01, 0.01).nil
        (True, True, False, None)
        """
        if self.value > NIL + SAFETY * self.error:
            return False
        return True if SAFETY * self.error <= TELLING else None


@dataclass(frozen=True, eq=False)
class ForceField:
    """Slope of ``objective`` on a query with grades ``y``, as a function of the scores."""

    objective: Objective
    y: PerDocument

    def __call__(self, scores: Points) -> Points:
        """Return the forces at each row of ``scores``."""
        boundaries, weight = np.array([0, len(self.y)]), np.ones(1)
        rows = np.ascontiguousarray(scores)
        return np.array([_core.answers(self._bound, row, boundaries, weight, True, True, 1)[1] for row in rows])

    @cached_property
    def _bound(self) -> _core.Objective:
        """Return the objective on this query; it is bound only once, because its random draws must be the same at all points."""
        return self.objective.on(RankingData.from_arrays(None, self.y, group=[len(self.y)]))

    @property
    def knows_all_jumps(self) -> bool:
        """True if the forces jump only at `jumps`."""
        return isinstance(self.objective, Lambdas | FiniteDifference)

    @property
    def jumps(self) -> tuple[float, ...]:
        """Return the differences of two scores at which forces are known to jump or bend: 0, where ranks are swapped, and the margin."""
        objective = self.objective
        if isinstance(objective, Lambdas) and objective.link != "logistic":
            return (-objective.margin, 0.0, objective.margin)
        return (-objective.step, 0.0, objective.step) if isinstance(objective, FiniteDifference) else (0.0,)

    def distance_to_jump(self, s: PerDocument) -> PerDocument:
        """Return how far each score can move, while the others stay, before the forces jump."""
        gaps = np.abs(np.subtract.outer(s, s)[..., None] - np.array(self.jumps))
        gaps[np.diag_indices(len(s))] = np.inf
        return np.asarray(gaps.min(axis=(1, 2)))


@dataclass(frozen=True, eq=False)
class Jacobian:
    """Jacobian (1) of the forces at one point."""

    matrix: Square
    error: Square | None  #: error of each entry; None: exact
    floor: float  #: least size that entries are compared with

    @property
    def asymmetry(self) -> Estimate:
        """Return the largest |J_jk - J_kj|, relative to the largest |J_jk|."""
        return self._estimate(float(np.abs(self.matrix - self.matrix.T).max()), float(np.abs(self.matrix).max()))

    @property
    def concavity(self) -> Estimate:
        """Return how far the least eigenvalue of -J is below 0, relative to the largest."""
        eigenvalues = eigh(-(self.matrix + self.matrix.T) / 2)[0]
        return self._estimate(max(0.0, -float(eigenvalues[0])), float(np.abs(eigenvalues).max()))

    def _estimate(self, value: float, size: float) -> Estimate:
        error = 0.0 if self.error is None else norm(self.error.ravel())
        scale = max(size, error, self.floor)
        return Estimate(value / scale, error / scale) if scale > 0 else Estimate(0.0)


def jacobian(field: ForceField, s: PerDocument) -> Jacobian:
    """Return (1) at the scores ``s``: by (2) where the forces have a closed form, otherwise by (4)."""
    if has_closed_form(field.objective):
        return Jacobian(pair_jacobian(field.objective, field.y, s), None, 0.0)
    return numerical_jacobian(field, s)


def has_closed_form(objective: Objective) -> TypeGuard[Lambdas]:
    """Return whether (2) holds: for forces between pairs whose weights change with the order of the documents alone."""
    return isinstance(objective, Lambdas) and objective.near is None and not objective.normalize


def pair_jacobian(objective: Lambdas, y: PerDocument, s: PerDocument) -> Square:
    """Return (2) for documents with the grades ``y``."""
    order = np.lexsort((y, -s))
    n, ranked, s = len(s), y[order], s[order]
    upper, lower = np.triu_indices(n, 1)
    if objective.measure is None:
        deltas = np.sign(ranked[None, :] - ranked[:, None])
    else:
        training_measure, grades = bound_exponents(objective.measure, ranked)
        deltas = training_measure.swap_deltas(grades)
    delta = deltas[upper, lower]
    within_window = lower - upper <= (objective.neighbors or NO_CUTOFF)
    within_truncation = upper < (objective.truncation or NO_CUTOFF)
    lead = np.where(delta < 0, s[upper] - s[lower], s[lower] - s[upper])
    pulls = np.where((objective.link == "spring") & (lead < objective.margin), 1.0, 0.0)
    odds = exp(-np.abs(lead))
    fall = odds / (1 + odds) ** 2 if objective.link == "logistic" else pulls  # (3), negated
    in_order = np.zeros((n, n))
    in_order[upper, lower] = np.where(within_window & within_truncation, np.abs(delta) * fall, 0.0)
    in_order = mirror(in_order)
    matrix = np.empty((n, n))
    matrix[np.ix_(order, order)] = in_order - np.diag(in_order.sum(axis=1) + objective.score_l2)
    return matrix


def numerical_jacobian(field: ForceField, s: PerDocument) -> Jacobian:
    """Return (4)."""
    spread, distance = float(s.std()), field.distance_to_jump(s)
    floor = CONSTANT * float(np.abs(field(s[None, :])).max()) / spread

    def differences(steps: Square) -> Square:
        forces = field(np.concatenate([s + steps, s - steps]))
        widths = np.diag((s + steps) - (s - steps))  # rounding makes them differ from twice the step
        return np.asarray(((forces[: len(s)] - forces[len(s) :]) / widths[:, None]).T)

    for step in STEPS:
        h = np.diag(np.minimum(step * min(spread, 1.0), distance / 2))
        coarse, fine = differences(h), differences(h / 2)
        estimate = Jacobian(fine, fine - coarse, floor)
        if estimate.asymmetry.nil is not None and estimate.concavity.nil is not None:
            break
    return estimate
