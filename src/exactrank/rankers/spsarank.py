"""A ranker trained on values of the measure alone, by stochastic approximation (Yue & Burges 2007).

A linear model or a network (`exactrank.scorers.architecture`), the measure as a function of its parameters
(`exactrank.objectives.measured`), and slopes estimated from a few of its values (`exactrank.optimizers.spsa`), or from two
values a parameter (`exactrank.optimizers.fdsa`). The steps of a measure are seen past only where there are many queries.
"""

from typing import Any, ClassVar, Literal

import numpy as np

from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.measured import Measured
from exactrank.objectives.ridge import ridge_weights
from exactrank.optimizers.base import Optimizer, Theta
from exactrank.optimizers.fdsa import FDSA
from exactrank.optimizers.spsa import SPSA
from exactrank.rankers.base import Ranker
from exactrank.rankers.restarts import best_of
from exactrank.rankers.search_space import Range, Space
from exactrank.scorers.architecture import form_of
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import Missing
from exactrank.training import Listener, Trained, train

#: How many steps each method makes by default.
STEPS = {"spsa": 1000, "fdsa": 50}


class SPSARank(Ranker):
    """A linear model or a network by slopes of the measure that are estimated from its values (Yue & Burges 2007).

    Args:
        hidden: Units of a network's hidden layer; none for a linear model.
        method: Perturb all parameters at once (spsa), or one after the other (fdsa), which costs two evaluations a parameter.
        evaluations: Evaluations of the measure for each slope of spsa; an even number.
        steps: So many steps; by default 1000 of spsa, 50 of fdsa.
        a0: The gain of the steps; by default it is chosen by values around the start.
        c0: How far to perturb each parameter at first; by default it is chosen by values around the start.
        start: Where to start: random parameters, or the ridge regression, for a linear model only.
        restarts: Start so often, the first time as said and then at random; the best model is kept.

    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> SPSARank(measure="RR", steps=100).fit(data).score(data)
    1.0
    """

    name = "spsarank"
    space: ClassVar[Space] = {
        "start": ("random", "ridge"),
        "evaluations": (2, 4, 8),
        "steps": Range(300, 3000, log=True),
        "restarts": Range(1, 4),
    }

    def __init__(
        self,
        measure: str | Measure = "nDCG@10",
        hidden: int | None = None,
        method: Literal["spsa", "fdsa"] = "spsa",
        evaluations: int = 4,
        steps: int | None = None,
        a0: float | None = None,
        c0: float | None = None,
        start: Literal["random", "ridge"] = "random",
        restarts: int = 1,
        seed: int = 0,
        threads: int | None = None,
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.hidden = hidden
        self.method = method
        self.evaluations = evaluations
        self.steps = steps
        self.a0 = a0
        self.c0 = c0
        self.start = start
        self.restarts = restarts
        self.seed = seed
        self.threads = threads
        self.missing = missing

    def _scorer(self, data: RankingData, theta: Theta) -> Scorer:
        return form_of(self.hidden).on(data).at(theta)

    def _fit(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        self._check()
        measure, architecture = parse_measure(self.measure), form_of(self.hidden).on(data)
        problem = Measured(measure.on(data, threads=self.threads), architecture)
        chosen_by = None if valid is None else Measured(measure.on(valid, threads=self.threads), architecture).value
        optimizer, steps = self._optimizer(), STEPS[self.method] if self.steps is None else self.steps

        def run(number: int, heard: Listener) -> Trained:
            rng = np.random.default_rng([self.seed, number])
            ridge = self.start == "ridge" and number == 0
            theta = architecture.theta_of(ridge_weights(data)) if ridge else architecture.initial(rng)
            return train(optimizer, problem, theta, rng=rng, max_steps=steps, valid=chosen_by, listener=heard)

        trained = best_of(self.restarts, run, listener)
        return architecture.at(trained.theta), trained

    def _optimizer(self) -> Optimizer[Any]:
        if self.method == "fdsa":
            return FDSA(a0=self.a0, c0=self.c0)
        return SPSA(self.evaluations, a0=self.a0, c0=self.c0)

    def _check(self) -> None:
        for name, allowed in {"method": tuple(STEPS), "start": ("random", "ridge")}.items():
            if getattr(self, name) not in allowed:
                raise DataError(f"{name}={getattr(self, name)!r} is not one of " + ", ".join(f'"{word}"' for word in allowed))
        for name in ("restarts", "steps"):
            given = getattr(self, name)
            if given is not None and given < 1:
                raise DataError(f"{name} must be at least 1, got {given}")
        if self.start == "ridge" and self.hidden is not None:
            raise IncompatibleError(f'start="ridge" gives the weights of a linear model, not of {self.hidden} units; take start="random"')
