"""What a ranker is asked to do: a measure, data to train on and, maybe, data to select by."""

from collections.abc import Callable
from dataclasses import dataclass, field

from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.measures.base import Measure
from exactrank.scorers.base import Scorer
from exactrank.training.judge import Judge
from exactrank.training.progress import It, Verdict


@dataclass(frozen=True, eq=False)
class Task:
    """Train on ``data``, which has something to learn and no missing values, for ``measure``; ``valid`` has the same features."""

    measure: Measure
    data: RankingData
    valid: RankingData | None = None
    threads: int | None = None
    bag: int = 0  #: the number of the member of a bag, for draws of its own
    common: dict[str, object] = field(default_factory=dict)  #: what is made once for all members of a bag

    def judge(
        self,
        scores: Callable[[It, RankingData], PerDocument],
        by_objective: bool = False,
        reported: Callable[[It], float] | None = None,
    ) -> Judge[It]:
        """Who judges iterates, which give ``scores``; ``reported`` knows the measure as asked on the training data without them."""
        return Judge(self.measure, self.data, self.valid, scores, by_objective, self.threads, reported)

    def verdict(self, scorer: Scorer) -> Verdict:
        """What is to be said of a finished scorer."""
        judge: Judge[Scorer] = self.judge(lambda one, part: one.score(part.X, self.threads))
        return judge(scorer, 0.0)
