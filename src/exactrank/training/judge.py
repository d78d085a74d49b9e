"""The judge: what is reported of an iterate, and what selects the one to keep. The one place where it is decided how ties count.

Reported is the measure as asked. Selecting, ties count severely: by the worst order of tied documents, unless the measure has
``ties='expected'``. Else a model could look good by a lucky order of documents that it does not tell apart. Where grades are exponents
they are bounded there, as they are in the forces that training follows (`exactrank.objectives.bounded_gain`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic

from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure, values_of_both
from exactrank.objectives.bounded_gain import gentle
from exactrank.training.progress import It, Verdict


def severe(measure: Measure) -> Measure:
    """``measure`` as it counts in training: tied documents in their worst order, or on average where that is what is asked."""
    return measure if measure.ties == "expected" else replace(measure, ties="pessimistic")


def unheard(iterate: object, objective: float) -> Verdict:
    """The judge of runs whose steps nobody hears of: the objective alone counts."""
    return Verdict(objective, None, objective)


@dataclass(frozen=True, eq=False)
class Judge(Generic[It]):
    """Judges iterates by the scores that they give the documents of ``data`` and, where there is any, of ``valid``.

    Validation data selects. Without it the measure on the training data does, or the objective's value (``by_objective``).
    """

    measure: Measure
    data: RankingData
    valid: RankingData | None
    scores: Callable[[It, RankingData], PerDocument]
    by_objective: bool = False
    threads: int | None = None
    #: Knows the measure as asked on the training data without scores.
    reported: Callable[[It], float] | None = None

    def __call__(self, iterate: It, objective: float) -> Verdict:
        """What to say of ``iterate``, at which the objective is as given."""
        if self.valid is None and not self.by_objective:
            value, goodness = self._means(self.asked, self.severe, iterate)
            return Verdict(value, None, goodness)
        value = self.asked.mean(self.scores(iterate, self.data)) if self.reported is None else self.reported(iterate)
        if self.valid is None:
            return Verdict(value, None, objective)
        return Verdict(value, *self._means(self._asked_of_valid, self._severe_of_valid, iterate))

    def _means(self, asked: BoundMeasure, severe: BoundMeasure, iterate: It) -> tuple[float, float]:
        values = values_of_both(asked, severe, self.scores(iterate, asked.data))
        return asked.mean_of(values[0]), severe.mean_of(values[1])

    @cached_property
    def asked(self) -> BoundMeasure:
        """The measure as asked, on the training data."""
        return self.measure.on(self.data, threads=self.threads)

    @cached_property
    def _asked_of_valid(self) -> BoundMeasure:
        return self.measure.on(self.valid or self.data, threads=self.threads)

    @cached_property
    def severe(self) -> BoundMeasure:
        """What selects where there is no validation data, on the training data."""
        return gentle(self.asked.with_ties(severe(self.measure).ties))

    @cached_property
    def _severe_of_valid(self) -> BoundMeasure:
        return gentle(self._asked_of_valid.with_ties(severe(self.measure).ties))
