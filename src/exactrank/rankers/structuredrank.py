"""Large-margin structured ranking: a bound on the measure, made small (Chapelle, Le & Smola).

    least over theta of  lam/2 |theta - theta0|^2 + mean over queries of xi_q                                   (1)
    convex:  xi = max_y [delta(y) + w.psi(y)] - w.psi(y*)            y* a perfect ranking, theta0 = 0           (2)
    ramp:    xi = max_y [delta(y) + w.psi(y)] - max_y w.psi(y)       theta0: regression on grades, over A(1)     (3)

delta is what a ranking loses of the measure; see `exactrank.objectives.structured`. Both xi bound the loss of the ranking that
the model predicts. (3) is the tighter bound and not convex: by subgradients, or step by step as a convex problem (cutting planes
and bundles). The optimum of (2) may be w = 0 at every lam where perfect rankings are out of reach: then (3) is the remedy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.measures.base import Measure
from exactrank.objectives.ramp_risk import RampRisk
from exactrank.objectives.regularised_risk import RegularisedRisk
from exactrank.objectives.ridge import ridge_weights
from exactrank.objectives.structured import Bound, Shape, Slack, Structured
from exactrank.optimizers.adam import Adam
from exactrank.optimizers.base import Theta
from exactrank.optimizers.bundle import Bundle
from exactrank.optimizers.concave_convex import ConcaveConvex
from exactrank.optimizers.cutting_plane import CuttingPlane
from exactrank.optimizers.subgradient import Subgradient
from exactrank.rankers.large_margin import LargeMarginRanker, Problem, Resumable
from exactrank.rankers.search_space import Range, Space
from exactrank.scorers.architecture import Architecture, form_of
from exactrank.training import Trained

#: Queries in a batch, and passes without a better iterate that end training, of networks.
BATCH, STALE = 32, 30

#: The convex problems on the way down a ramp are solved to so many times the tolerance.
ROUGHLY = 10

Solver = Literal["cutting_plane", "bundle", "subgradient", "conjugate"]


@dataclass(eq=False, repr=False)
class StructuredRank(LargeMarginRanker):
    """A linear model or a network by a large-margin bound on the measure (Chapelle, Le & Smola).

    Args:
        A: How much the score at rank r counts in the joint features: max(k+1-r, 0), 1/sqrt(r), the measure's discount, or (in
            Python) a table; "auto" lets validation data choose, or folds.
        bound: The convex bound, or the tighter ramp that starts from regression on the grades; "auto" lets the data choose.
        slack: What a worse ranking asks more of: a margin, or a share of the slack (by a heuristic: the gap is then no certificate).
        solver: Cutting planes a query, a bundle of planes for all, or (conjugate) subgradients with a line search.
        hidden: Units of a network's hidden layer, which takes solver="subgradient" (in batches, by Adam); none for a linear model.

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> StructuredRank(measure="nDCG@1").fit(data).score(data)
    1.0
    """

    name = "structuredrank"
    space: ClassVar[Space] = {"lam": Range(0.01, 1000.0, log=True), "bound": ("convex", "ramp")}

    A: Literal["linear", "sqrt", "discount", "auto"] | Sequence[float] = "linear"
    bound: Literal["auto", "convex", "ramp"] = "auto"
    slack: Slack = "margin"
    solver: Solver = "cutting_plane"
    hidden: int | None = None

    def _check(self) -> None:
        super()._check()
        for name, allowed in {"bound": ("auto", *get_args(Bound)), "solver": get_args(Solver)}.items():
            if getattr(self, name) not in allowed:
                raise DataError(f"{name}={getattr(self, name)!r} is not one of {', '.join(map(repr, allowed))}")
        if self.hidden is not None and self.solver != "subgradient":
            raise IncompatibleError(f'a network\'s loss has no planes below it; train it by solver="subgradient", not {self.solver!r}')
        if self.hidden is not None and self.bound == "ramp":
            raise IncompatibleError('the ramp starts from regression, which is linear; train a network on bound="convex"')

    def _architecture(self, data: RankingData) -> Architecture:
        return form_of(self.hidden).on(data)

    def _problems(self, measure: Measure, architecture: Architecture) -> Sequence[tuple[Mapping[str, Any], Problem]]:
        both = architecture.linear and self.slack == "margin"
        bounds: Sequence[Bound] = (self.bound,) if self.bound != "auto" else ("convex", "ramp") if both else ("convex",)
        shapes = get_args(Shape) if self.A == "auto" else (self.A if isinstance(self.A, str) else tuple(self.A),)
        found = []
        for bound, shape in product(bounds, shapes):
            loss = Structured(measure, shape, bound, self.slack, self.seed)
            chosen = {"bound": bound} if len(bounds) > 1 else {}
            found.append((chosen | ({"A": shape} if self.A == "auto" else {}), partial(self._problem, loss, architecture)))
        return found

    def _problem(self, loss: Structured, architecture: Architecture, data: RankingData) -> RegularisedRisk:
        risk = RegularisedRisk.of(loss, architecture, data, threads=self.threads)
        if loss.bound == "convex":
            return risk
        grades = architecture.theta_of(ridge_weights(data))
        return RampRisk(risk.gain, risk.strength, grades / loss.unit(data), loss)

    def _optimizer(self, problem: RegularisedRisk) -> Resumable:
        if not problem.architecture.linear:
            return Adam(batch=BATCH)
        if self.solver in ("subgradient", "conjugate"):
            return Subgradient(conjugate=self.solver == "conjugate", tolerance=self.tolerance, convex=problem.convex)
        solver = CuttingPlane if self.solver == "cutting_plane" else Bundle
        if problem.convex:
            return solver(self.tolerance)
        return ConcaveConvex(solver(ROUGHLY * self.tolerance), self.max_passes, self.tolerance)

    @property
    def _stale(self) -> int | None:
        return None if self.hidden is None else STALE

    def _start(self, problem: RegularisedRisk) -> Theta:
        return problem.centre if isinstance(problem, RampRisk) else super()._start(problem)

    def _remark(self, problem: RegularisedRisk, trained: Trained) -> str:
        """Whether (2) has collapsed to w = 0, where no perfect ranking is in reach."""
        reached = trained.history[-1].duality
        if isinstance(problem, RampRisk) or reached is None:
            return ""
        nothing, _ = problem.risk(np.zeros_like(problem.centre))
        if reached.dual < (1 - 2 * self.tolerance) * nothing:
            return ""
        return (
            f"the best weights for the convex bound are 0: with them it is {nothing:.4g}, and no weights come below {reached.dual:.4g}"
            f' at lam={problem.strength:.3g}, as happens where perfect rankings are out of reach; use bound="ramp", or a smaller lam'
        )
