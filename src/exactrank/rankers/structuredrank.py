"""Large-margin structured ranking: minimizes an upper bound on the loss of the measure (Chapelle, Le & Smola).

    least over theta of  l2/2 |theta - theta0|^2 + mean over queries of xi_q                                    (1)
    convex:  xi = max_y [delta(y) + w.psi(y)] - w.psi(y*)            y* a perfect ranking, theta0 = 0           (2)
    ramp:    xi = max_y [delta(y) + w.psi(y)] - max_y w.psi(y)       theta0: regression on grades, over A(1)     (3)

delta is what a ranking loses of the measure; see `exactrank.learning.objectives.structured`. Both xi bound the loss of the ranking that
the model predicts. (3) is the tighter bound and not convex: it is solved by subgradients, or as a series of convex problems (cutting
planes and bundles). The optimum of (2) may be w = 0 at every l2 where perfect rankings are out of reach: then (3) is the remedy.

With a kernel the scores are f(x) = sum_i beta_i k(x_i, x), and |theta|^2 is the squared norm of f. (2) is solved with the same planes, on
the features of `exactrank.learning.objectives.kernel_basis`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Literal, get_args

import numpy as np

from exactrank._support.settings import Range, setting
from exactrank.data.dataset import Dataset
from exactrank.errors import SettingError
from exactrank.learning.objectives.kernel_basis import KernelBasis
from exactrank.learning.objectives.regularized_risk import RampRisk, RegularizedRisk
from exactrank.learning.objectives.ridge import ridge_weights
from exactrank.learning.objectives.structured import Bound, Shape, Slack, Structured
from exactrank.learning.optimizers.base import Duality, Theta
from exactrank.learning.optimizers.concave_convex import ConcaveConvex, ConcaveConvexBundle
from exactrank.learning.optimizers.cutting_plane import Bundle, CuttingPlane
from exactrank.learning.optimizers.slopes import Adam
from exactrank.learning.optimizers.subgradient import Subgradient
from exactrank.learning.training.judge import Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder
from exactrank.measures.base import Measure
from exactrank.models.architecture import HIDDEN, Architecture, LinearModel, form_of
from exactrank.models.base import Scorer
from exactrank.rankers.large_margin import LargeMarginRanker, Problem, Solves

#: Queries in a batch, and passes without a better iterate that end training, of networks.
BATCH, STALE = 32, 30

#: The convex problems on the way down a ramp are solved to this multiple of the tolerance, and all ramps where a strength is to be chosen.
ROUGHLY = 10

Solver = Literal["cutting-plane", "bundle", "subgradient", "conjugate"]
Shapes = Sequence[Shape | float | tuple[float, ...]]

#: The powers that A="power" tries.
POWERS = 0.25, 0.5, 1.0, 2.0, 4.0


class StructuredRanker(LargeMarginRanker):
    """The base of the rankers that bound a measure; ``_shapes`` says how much the score at a rank counts."""

    l2: float | Literal["auto"] = setting(
        default="auto", help=LargeMarginRanker.settings["l2"].help, above=0, search=Range(0.01, 1000.0, log=True)
    )
    tolerance: float = setting(default=1e-4, help=LargeMarginRanker.settings["tolerance"].help, above=0, below=1, only={"hidden": (None,)})
    bound: Literal["auto", "convex", "ramp"] = setting(
        default="auto",
        help='The convex bound, or the tighter ramp, which starts from regression on the grades; "auto" lets the data choose.',
        search=("convex", "ramp"),
    )
    ramp: Literal["path", "published"] = setting(
        default="path",
        help="Where the ramp starts at each strength: where it ended at the strength before or, as published, at regression on the grades"
        " in its own units, towards which the penalty then draws.",
        only={"bound": ("auto", "ramp")},
    )
    slack: Slack = setting(
        default="margin",
        help="How a worse ranking counts more: by its margin, or by its slack (a heuristic: the gap is then no certificate).",
        only={"bound": ("convex",)},
    )
    solver: Solver = setting(
        default="cutting-plane",
        help="Cutting planes for each query, one bundle of planes for all, or (conjugate) subgradients with a line search.",
    )
    hidden: int | None = setting(
        default=None,
        help="Number of units in a network's hidden layer, trained in batches by Adam; by default a linear model.",
        at_least=1,
        at_most=HIDDEN,
        only={"solver": ("subgradient",), "bound": ("convex",)},
    )
    kernel: Literal["linear", "rbf"] | None = setting(
        default=None,
        help="Scores are sums of this kernel between a document and those of the training data: the product of their standardized features,"
        " or exp(-gamma times their squared distance). Memory grows with the square of the number of documents.",
        only={"hidden": (None,), "bound": ("auto", "convex")},
    )
    gamma: float | None = setting(
        default=None,
        help="Of the kernel rbf; by default 1 over the number of features.",
        above=0,
        only={"kernel": ("rbf",)},
        search=Range(1e-3, 1.0, log=True),
    )

    @property
    def _shapes(self) -> Shapes:
        """The candidates for the joint features; several if the data is to choose."""
        return ("linear",)

    @property
    def _bounds(self) -> Sequence[Bound]:
        """The candidates for the bound; several if the data is to choose. Networks, kernels and rescaled slacks have no ramp."""
        if self.bound != "auto":
            return (self.bound,)
        return ("convex", "ramp") if self.hidden is None and self.kernel is None and self.slack == "margin" else ("convex",)

    def resolve_auto(self, data: Dataset) -> Mapping[str, object]:
        return {"bound": "convex"} if self.bound == "auto" and len(self._bounds) == 1 else {}

    def check_shards(self, data: Dataset) -> None:
        """Raise also if documents would have to be compared across files."""
        super().check_shards(data)
        if self.kernel is not None:
            raise SettingError(
                f"{type(self).__name__}: kernel={self.kernel!r} compares all documents with each other, which lie in several files here;"
                " give kernel=None, or train on a RankingData"
            )

    def _architecture(self, data: Dataset) -> Architecture:
        return form_of(self.hidden).on(data) if self.kernel is None else LinearModel(standardize=False).on(data)

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """Train; with a kernel on features in which it is a product."""
        if self.kernel is None:
            return super()._fit(task, recorder)
        data = task.data.gather()
        basis = KernelBasis.of(data, self.kernel, self.gamma)
        valid = None if task.valid is None else basis.features(task.valid.gather())
        trained = super()._fit(replace(task, data=basis.features(data), valid=valid), recorder.part(view=basis.scorer))
        return replace(trained, iterate=basis.scorer(trained.iterate))

    def _problems(self, measure: Measure, architecture: Architecture) -> Sequence[tuple[Mapping[str, object], Problem]]:
        problems: list[tuple[Mapping[str, object], Problem]] = []
        for bound, shape in product(self._bounds, self._shapes):
            loss = Structured(measure, shape, bound, self.slack, self.seed)
            choice = ({"bound": bound} if len(self._bounds) > 1 else {}) | ({"A": shape} if len(self._shapes) > 1 else {})
            problems.append((choice, partial(self._problem, loss, architecture)))
        return problems

    def _problem(self, loss: Structured, architecture: Architecture, data: Dataset) -> RegularizedRisk:
        if loss.bound == "convex":
            return RegularizedRisk(loss, architecture, data, threads=self.threads)
        grades = architecture.theta_of(ridge_weights(data))
        unit = loss.unit(data) if self.ramp == "path" else 1.0
        return RampRisk(loss, architecture, data, center=grades / unit, threads=self.threads)

    def _optimizer(self, problem: RegularizedRisk) -> Solves:
        if self.hidden is not None:
            return Adam(batch_size=BATCH)
        if self.solver in ("subgradient", "conjugate"):
            return Subgradient(conjugate=self.solver == "conjugate", tolerance=self.tolerance, convex=problem.convex)
        solver = CuttingPlane if self.solver == "cutting-plane" else Bundle
        if problem.convex:
            return solver(self.tolerance)
        if self.l2 == "auto" and self.ramp == "path":
            return ConcaveConvexBundle(ROUGHLY * self.tolerance)
        return ConcaveConvex(solver(ROUGHLY * self.tolerance), self.max_iter, self.tolerance)

    @property
    def _stale(self) -> int | None:
        return None if self.hidden is None else STALE

    def _start(self, problem: RegularizedRisk) -> Theta:
        return problem.center if isinstance(problem, RampRisk) else super()._start(problem)

    def _remark(self, problem: RegularizedRisk, reached: Duality | None) -> str:
        """Return a remark if (2) has collapsed to w = 0, since no perfect ranking is in reach."""
        if isinstance(problem, RampRisk) or reached is None:
            return ""
        nothing, _ = problem.risk(np.zeros_like(problem.center))
        if reached.dual < (1 - 2 * self.tolerance) * nothing:
            return ""
        return (
            f"the best weights for the convex bound are 0: with them it is {nothing:.4g}, and no weights come below {reached.dual:.4g}"
            f' at l2={problem.strength:.3g}, as happens where perfect rankings are out of reach; use bound="ramp", or a smaller l2'
        )


class StructuredRank(StructuredRanker):
    """A linear model or a network by a large-margin bound on the measure (Chapelle, Le & Smola).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> StructuredRank(measure="nDCG@1").fit(data).score(data)
    1.0
    """

    name = "structuredrank"

    A: Literal["linear", "sqrt", "discount", "auto", "power"] | float | Sequence[float] = setting(
        default="linear",
        help="How much the score at rank r counts in the joint features: max(k+1-r, 0), a power of it (a number), 1/sqrt(r), the measure's"
        ' discount, or (in Python) a table. Validation data or folds choose among the words with "auto", and the number with "power".',
        above=0,
    )

    @property
    def _shapes(self) -> Shapes:
        if self.A == "auto":
            return get_args(Shape)
        if self.A == "power":
            return POWERS
        return (self.A if isinstance(self.A, str | float) else tuple(self.A),)
