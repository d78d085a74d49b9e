"""Polishing: exact steps on the measure from where a gradient method ended.

A linear model's scores are linear in its weights, a network's in the weights of its output, so the measure along any line of
those is an exact step function (`exactrank.objectives.linear_profile`). Each round takes the best step along the direction of the
objective's slope and then along each weight; the training measure never falls, and validation data says which round to keep.
"""

from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import Measure
from exactrank.objectives.linear_profile import LinearProfile, columns_of
from exactrank.objectives.parametric import Parametric
from exactrank.objectives.score_space import Objective
from exactrank.optimizers.base import Theta
from exactrank.optimizers.slope_and_coordinates import SlopeAndCoordinates
from exactrank.rankers.composed import Composition, Phase
from exactrank.training.combinators import seen
from exactrank.training.judge import severe
from exactrank.training.loop import Run
from exactrank.training.progress import Trained
from exactrank.training.recorder import Recorder


class _Polish(LinearProfile):
    """The measure as a function of the weights in which scores are linear, with the objective's slope for a direction to try."""

    def __init__(self, measure: Measure, start: Theta, problem: Parametric) -> None:
        data = problem.architecture.linear_features(start, problem.data)
        super().__init__(measure.on(data, threads=problem.threads), columns_of(data))
        self._start, self._problem = start, problem

    def slope(self, weights: Theta) -> Theta:
        return self._problem.architecture.linear_weights(self._problem.value_and_slope(self.whole(weights))[1])

    def whole(self, weights: Theta) -> Theta:
        """All parameters, with other weights."""
        return self._problem.architecture.with_linear_weights(self._start, weights)


def polish(made: Composition, objective: Objective, max_iter: int) -> Phase:
    """A phase of at most ``max_iter`` rounds."""
    task, architecture = made.task, made.architecture

    def run(theta: Theta, recorder: Recorder[Theta]) -> Trained[Theta]:
        problem = _Polish(severe(task.measure), theta, Parametric(objective, architecture, task.data, made.l2, task.threads))

        def scores(weights: Theta, part: RankingData) -> PerDocument:
            return made.scores(problem.whole(weights), part)

        judge = task.judge(scores)
        polishing = Run(SlopeAndCoordinates(), problem, architecture.linear_weights(theta), judge, max_iter, made.seed)
        return seen(polishing, problem.whole, recorder)

    return run
