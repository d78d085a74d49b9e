"""What all gradient rankers share: a scorer with parameters, an objective of its scores, and an optimizer that follows the slope.

A ranker names its objective; this file trains on it. With ``sgd`` training is as Burges, Ragno & Le (2006) published it: an
update a query, a learning rate that falls when the value does, restarts, the rate and the epoch chosen on validation data.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.measured import Measured
from exactrank.objectives.parametric import Parametric
from exactrank.objectives.ridge import ridge_weights
from exactrank.objectives.score_space import Objective
from exactrank.objectives.within_query import deviation
from exactrank.optimizers.adam import Adam
from exactrank.optimizers.base import Optimizer, Theta
from exactrank.optimizers.lbfgs import LBFGS
from exactrank.optimizers.sgd import SGD
from exactrank.rankers.base import Ranker
from exactrank.rankers.restarts import best_of, goodness
from exactrank.rankers.search_space import Range, Space
from exactrank.scorers.architecture import Architecture, form_of
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import Missing
from exactrank.training import Listener, Trained, train

Method = Literal["auto", "sgd", "adam", "lbfgs"]
#: The learning rates that are tried where none is given.
RATES = {"sgd": tuple(10.0**e for e in range(-7, -1)), "adam": (0.001, 0.01, 0.1)}


@dataclass(eq=False, repr=False)
class GradientRanker(Ranker):
    """The base of rankers that follow a slope; a ranker adds its own settings as fields.

    Args:
        hidden: Units of a network's hidden layer; none for a linear model.
        optimizer: How to follow the slope: an update a query, batches of queries by Adam, or all queries by L-BFGS.
        rate: The learning rate; by default several are tried, and the best by validation is kept.
        epochs: At most so many epochs, or steps of L-BFGS.
        trial_epochs: Epochs for each rate that is tried; 0 gives each all epochs.
        patience: With validation data: stop when it has not improved for so many epochs.
        batch: Queries in a batch of Adam.
        l2: The penalty on half the squared size of the parameters, against the mean over queries.
    """

    #: Is the objective's own value what the slope belongs to? Else the measure judges.
    has_value: ClassVar[bool] = True
    #: Has the objective several maxima? Then a linear model starts from ridge regression.
    rugged: ClassVar[bool] = False
    #: What optimizer="auto" is.
    preferred: ClassVar[Method] = "lbfgs"

    space: ClassVar[Space] = {"l2": Range(1e-5, 1.0, log=True), "hidden": (None, 10, 30)}
    measure: str | Measure = "nDCG@10"
    hidden: int | None = None
    optimizer: Method = "auto"
    rate: float | None = None
    epochs: int = 300
    trial_epochs: int = 10
    patience: int = 50
    batch: int = 32
    l2: float = 0.01
    seed: int = 0
    threads: int | None = None
    missing: Missing = "error"

    @abstractmethod
    def _objective(self, measure: Measure) -> Objective:
        """What is made large."""

    def _scorer(self, data: RankingData, theta: Theta) -> Scorer:
        return form_of(self.hidden).on(data).at(theta)

    def _fit(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        for name, least in {"epochs": 1, "trial_epochs": 0, "patience": 1}.items():
            if getattr(self, name) < least:
                raise DataError(f"{name} must be at least {least}, got {getattr(self, name)}")
        measure = parse_measure(self.measure)
        architecture = form_of(self.hidden).on(data)
        value = Measured(measure.on(data, threads=self.threads), architecture).value
        run = Run(
            problem=Parametric(self._objective(measure), architecture, data, self.l2, None if self.has_value else value, self.threads),
            reported=value if self.has_value else None,
            valid=None if valid is None else Measured(measure.on(valid, threads=self.threads), architecture).value,
            patience=None if valid is None else self.patience,
            seed=self.seed,
        )
        trained = self._trained(run, self._start(data, architecture), listener)
        return architecture.at(trained.theta), trained

    def _start(self, data: RankingData, architecture: Architecture) -> Theta:
        """Where training starts."""
        if self.rugged and architecture.linear:
            return regression_start(data, architecture)
        return architecture.initial(np.random.default_rng(self.seed))

    def _trained(self, run: "Run", theta: Theta, listener: Listener | None) -> Trained:
        optimizers = self._optimizers()
        if len(optimizers) == 1:
            return run(optimizers[0], self.epochs, theta, listener)
        return tried(run, optimizers, theta, self.trial_epochs, self.epochs, listener)

    def _optimizers(self) -> list[Optimizer[Any]]:
        """The one to follow the slope by, or several to be tried."""
        method = self.preferred if self.optimizer == "auto" else self.optimizer
        if method == "lbfgs" and not self.has_value:
            raise IncompatibleError(
                'L-BFGS needs the function that the slope belongs to, and lambdas have none; use optimizer="adam" or "sgd"'
            )
        if method == "lbfgs":
            return [LBFGS()]
        if method not in RATES:
            raise DataError(f'optimizer={method!r} is not one of "auto", "sgd", "adam", "lbfgs"')
        rates = RATES[method] if self.rate is None else (self.rate,)
        return [SGD(rate) if method == "sgd" else Adam(rate, self.batch) for rate in rates]


def regression_start(data: RankingData, architecture: Architecture) -> Theta:
    """The parameters of ridge regression, of unit deviation within queries."""
    theta = architecture.theta_of(ridge_weights(data))
    size = deviation(architecture.scores(theta, data.X), data.indptr)
    return theta / size if size > 0 else theta


@dataclass(frozen=True)
class Run:
    """Training runs on one problem."""

    problem: Parametric
    reported: Callable[[Theta], float] | None
    valid: Callable[[Theta], float] | None
    patience: int | None
    seed: int

    def on(self, objective: Objective) -> "Run":
        """The same with another objective."""
        return replace(self, problem=self.problem.of(objective))

    def __call__(self, optimizer: Optimizer[Any], steps: int, theta: Theta, listener: Listener | None) -> Trained:
        return train(
            optimizer,
            self.problem,
            theta,
            rng=np.random.default_rng(self.seed),
            max_steps=steps,
            reported=self.reported,
            valid=self.valid,
            patience=self.patience,
            listener=listener,
        )


def tried(run: Run, optimizers: Sequence[Optimizer[Any]], theta: Theta, trial_steps: int, steps: int, listener: Listener | None) -> Trained:
    """The best iterate of all ``optimizers``: each makes ``trial_steps``, and the best of them goes on; 0 lets each make all."""
    trials: list[Trained] = []

    def one(number: int, heard: Listener) -> Trained:
        if number < len(optimizers):
            trials.append(run(optimizers[number], trial_steps or steps, theta, heard))
            return trials[-1]
        best = max(range(len(trials)), key=lambda i: goodness(trials[i]))
        return run(optimizers[best], max(steps - trial_steps, 1), trials[best].theta, heard)

    return best_of(len(optimizers) + (trial_steps > 0), one, listener)
