"""Polishing: exact steps on the measure from where a gradient method ended.

A linear model's scores are linear in its weights, a network's in the weights of its output, so the measure along any line of
those is an exact step function (`exactrank.objectives.linear_profile`). Each round takes the best step along the lambda
direction and then along each weight; the training measure never falls, and validation data says which round to keep.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import Measure
from exactrank.objectives.linear_profile import LinearProfile, Place, columns_of
from exactrank.objectives.parametric import Parametric
from exactrank.optimizers.base import Theta
from exactrank.optimizers.slope_and_coordinates import SlopeAndCoordinates
from exactrank.rankers.gradient import Run
from exactrank.scorers.architecture import Architecture
from exactrank.scorers.network import Network
from exactrank.training import Listener, Progress, Trained, train


@dataclass(frozen=True, eq=False)
class LinearPart:
    """The parameters in which the scores are linear, as weights of features: those given, or what hidden units say."""

    theta: Theta  #: all parameters
    architecture: Architecture
    data: RankingData  #: with those features

    @classmethod
    def of(cls, theta: Theta, problem: Parametric) -> "LinearPart":
        """That of a model on the data of ``problem``."""
        scorer = problem.architecture.at(theta)
        if not isinstance(scorer, Network):
            return cls(theta, problem.architecture, problem.data)
        active = scorer.activations(problem.data.X).astype(np.float32)
        units = tuple(f"unit {u}" for u in range(scorer.n_hidden))
        return cls(theta, problem.architecture, replace(problem.data, X=active, feature_names=units, offset=None))

    @property
    def weights(self) -> Theta:
        """As they are."""
        return self.of_slope(self.theta)

    def of_slope(self, slope: Theta) -> Theta:
        """A direction by all parameters, as one by the weights."""
        hidden = self.architecture.hidden
        return slope / self.architecture.scale if hidden is None else slope[-hidden:]

    def whole(self, weights: Theta) -> Theta:
        """All parameters, with other weights."""
        hidden = self.architecture.hidden
        return self.architecture.theta_of(weights) if hidden is None else np.concatenate([self.theta[:-hidden], weights])


@dataclass(frozen=True, eq=False)
class _Polish:
    """The measure as a function of the weights, with the objective's slope for a direction to try."""

    part: LinearPart
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
        return self.part.of_slope(self.problem.value_and_slope(self.part.whole(theta))[1])


def polished(run: Run, measure: Measure, rounds: int, theta: Theta, listener: Listener | None) -> Trained:
    """The best of ``rounds`` from ``theta``, by the values of ``run``."""
    part, problem = LinearPart.of(theta, run.problem), run.problem
    strict = measure if measure.ties == "expected" else replace(measure, ties="pessimistic")
    profile = LinearProfile(strict.on(part.data, threads=problem.threads), columns_of(part.data))

    def whole(function: Callable[[Theta], float]) -> Callable[[Theta], float]:
        return lambda weights: function(part.whole(weights))

    def heard(progress: Progress) -> None:
        if listener is not None:
            listener(replace(progress, theta=part.whole(progress.theta)))

    found = train(
        SlopeAndCoordinates(),
        _Polish(part, profile, problem),
        part.weights,
        rng=np.random.default_rng(run.seed),
        max_steps=rounds,
        reported=whole(problem.value),
        valid=None if run.valid is None else whole(run.valid),
        listener=heard,
    )
    return replace(found, theta=part.whole(found.theta))
