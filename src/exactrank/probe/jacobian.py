"""How the forces on a query's documents change with its scores (Burges, Ragno & Le 2006, section 4).

    J_jk = d lambda_j / d s_k                                                                                   (1)

Forces between pairs, |w| link(d) with d the lead of the better document, have it in closed form, as their weights w depend on
the scores through the order of the documents alone and stay while that stays:

    J_jk = J_kj = -|w_jk| link'(d),    J_jj = -sum over k of J_jk                                               (2)
    link' = -link (1 - link) for the logistic link, 0 for the step, -1 for a spring that pulls                  (3)

All others are differentiated numerically,

    J_jk = (lambda_j(s + h_k e_k) - lambda_j(s - h_k e_k)) / (2 h_k)                                            (4)

with steps too short for a change of order; half of each gives the error, and where that is large, shorter ones are tried: there
may be a jump that nobody knows of. A force is -dC/ds of a cost C, so C has the Hessian -J.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from exactrank.arrays import PerDocument
from exactrank.measures.base import NO_CUTOFF, Measure
from exactrank.measures.families import mirrored
from exactrank.objectives.bounded_gain import bounded
from exactrank.objectives.lambdas import Lambdas
from exactrank.probe.estimate import Estimate
from exactrank.probe.force_field import ForceField

Square = npt.NDArray[np.float64]  #: documents x documents
STEPS = (1e-4, 1e-5, 1e-6)  #: of (4), in units of score or of the scores' deviation, whichever is less
CONSTANT = 1e-3  #: forces that change by less than this share of themselves over the scores' deviation count as constant


@dataclass(frozen=True, eq=False)
class Jacobian:
    """(1) at one place."""

    matrix: Square
    error: Square | None  #: of each entry; None: exact
    floor: float  #: entries count beside this at least

    @property
    def asymmetry(self) -> Estimate:
        """The largest |J_jk - J_kj|, relative to the largest |J_jk|."""
        return self._estimate(float(np.abs(self.matrix - self.matrix.T).max()), float(np.abs(self.matrix).max()))

    @property
    def concavity(self) -> Estimate:
        """How far below 0 the least eigenvalue of -J is, relative to the largest one."""
        eigenvalues = np.linalg.eigvalsh(-(self.matrix + self.matrix.T) / 2)
        return self._estimate(max(0.0, -float(eigenvalues[0])), float(np.abs(eigenvalues).max()))

    def _estimate(self, value: float, size: float) -> Estimate:
        error = 0.0 if self.error is None else float(np.linalg.norm(self.error))
        beside = max(size, error, self.floor)
        return Estimate(value / beside, error / beside) if beside > 0 else Estimate(0.0)


def jacobian(field: ForceField, s: PerDocument) -> Jacobian:
    """(1) at the scores ``s``: by (2) for forces between pairs, else by (4)."""
    if isinstance(field.objective, Lambdas):
        return Jacobian(pair_jacobian(field.objective, field.y, s), None, 0.0)
    return numerical_jacobian(field, s)


def pair_jacobian(objective: Lambdas, y: PerDocument, s: PerDocument) -> Square:
    """(2) for documents of the grades ``y``."""
    order = np.lexsort((y, -s))
    n, ranked, s = len(s), y[order], s[order]
    upper, lower = np.triu_indices(n, 1)
    deltas = np.sign(ranked[None, :] - ranked[:, None]) if objective.measure is None else _swaps(objective.measure, ranked)
    delta = deltas[upper, lower]
    near = lower - upper <= (objective.neighbours or NO_CUTOFF)
    top = upper < (objective.truncation or NO_CUTOFF)
    lead = np.where(delta < 0, s[upper] - s[lower], s[lower] - s[upper])
    in_order = np.zeros((n, n))
    in_order[upper, lower] = np.where(near & top, np.abs(delta) * _fall(objective, lead), 0.0)
    in_order = mirrored(in_order)
    found = np.empty((n, n))
    found[np.ix_(order, order)] = in_order - np.diag(in_order.sum(axis=1))
    return found


def _swaps(measure: Measure, ranked: PerDocument) -> Square:
    """The changes of ``measure`` that weigh pairs."""
    asked, grades = bounded(measure, ranked)
    return asked.swap_deltas(grades)


def _fall(objective: Lambdas, lead: PerDocument) -> PerDocument:
    """(3), negated: how fast the force falls as the lead grows."""
    if objective.link == "logistic":
        return np.asarray(expit(lead) * expit(-lead))
    return np.where((objective.link == "spring") & (lead < objective.margin), 1.0, 0.0)


def numerical_jacobian(field: ForceField, s: PerDocument) -> Jacobian:
    """(4)."""
    spread, room = float(s.std()), field.room(s)
    floor = CONSTANT * float(np.abs(field(s[None, :])).max()) / spread
    for step in STEPS:
        h = np.minimum(step * min(spread, 1.0), room / 2)
        coarse, fine = (_differences(field, s, np.diag(steps)) for steps in (h, h / 2))
        found = Jacobian(fine, fine - coarse, floor)
        if found.asymmetry.nil is not None and found.concavity.nil is not None:
            break
    return found


def _differences(field: ForceField, s: PerDocument, steps: Square) -> Square:
    forces = field(np.concatenate([s + steps, s - steps]))
    taken = np.diag((s + steps) - (s - steps))  # rounding makes it another than twice the step
    return np.asarray(((forces[: len(s)] - forces[len(s) :]) / taken[:, None]).T)
