"""Polishing: exact steps on the measure from where a gradient method ended.

A linear model's scores are linear in its weights, a network's in the weights of its output, so the measure along any line of
those is an exact step function (`exactrank.objectives.linear_profile`). Each round takes the best step along the lambda
direction and then along each weight; the training measure never falls, and validation data says which round to keep.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from exactrank.measures.base import Measure
from exactrank.objectives.linear_profile import LinearProfile, Place, columns_of
from exactrank.objectives.parametric import Parametric
from exactrank.optimizers.base import Theta
from exactrank.optimizers.slope_and_coordinates import SlopeAndCoordinates
from exactrank.rankers.gradient import Run
from exactrank.training import Listener, Progress, Trained, train


@dataclass(frozen=True, eq=False)
class _Polish:
    """The measure as a function of the weights, with the objective's slope for a direction to try."""

    start: Theta  #: all parameters
    profile: LinearProfile
    problem: Parametric

    @property
    def dimension(self) -> int:
        return self.profile.dimension

    def value(self, theta: Theta) -> float:
        return self.profile.value(theta)

    def at(self, theta: Theta) -> Place:
        return self.profile.at(theta)

    def slope(self, theta: Theta) -> Theta:
        return self.problem.architecture.linear_weights(self.problem.value_and_slope(self.whole(theta))[1])

    def whole(self, weights: Theta) -> Theta:
        """All parameters, with other weights."""
        return self.problem.architecture.with_linear_weights(self.start, weights)


def polished(run: Run, measure: Measure, rounds: int, theta: Theta, listener: Listener | None) -> Trained:
    """The best of ``rounds`` from ``theta``, by the values of ``run``."""
    problem = run.problem
    data = problem.architecture.linear_features(theta, problem.data)
    strict = measure if measure.ties == "expected" else replace(measure, ties="pessimistic")
    profile = LinearProfile(strict.on(data, threads=problem.threads), columns_of(data))
    polish = _Polish(theta, profile, problem)

    def whole(function: Callable[[Theta], float]) -> Callable[[Theta], float]:
        return lambda weights: function(polish.whole(weights))

    def heard(progress: Progress) -> None:
        if listener is not None:
            listener(replace(progress, theta=polish.whole(progress.theta)))

    found = train(
        SlopeAndCoordinates(),
        polish,
        problem.architecture.linear_weights(theta),
        rng=np.random.default_rng(run.seed),
        max_steps=rounds,
        reported=whole(problem.value),
        valid=None if run.valid is None else whole(run.valid),
        listener=heard,
    )
    return replace(found, theta=polish.whole(found.theta))
