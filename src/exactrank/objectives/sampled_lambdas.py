"""Lambda functions over rankings drawn at random: YetiRank (Gulin, Kuralenok & Pavlov 2011), for any measure.

Noise is added to the scores, and in the ranking by the noisy scores the documents push each other as in
`exactrank.objectives.lambdas`: which pairs meet and what their exchange would change is read off that ranking, the link off the
scores without noise. The force is the mean over several such rankings:

    lambda_ij = mean over samples of |weight_ij| link(s_i - s_j),    ranked by s + noise * e,  e standard logistic       (1)

Weights do not jump when two documents change places, and as each tree gets other draws, no tree fits itself to one ranking. YetiRank
has ``neighbours=1``: every two documents that could well stand next to each other are trained on. Its weights, a grade's difference times
decay^rank, are those of ``DCG(gain="linear", discount=[decay**r for r in range(longest)])``, up to a factor; Lyzhin, Ustimenko, Gulin &
Prokhorenkova (2023) compare the two kinds.
"""

from dataclasses import dataclass, replace

import numpy as np

from exactrank import _core
from exactrank.data.ranking_data import RankingData
from exactrank.errors import SettingError
from exactrank.objectives.lambdas import LambdaRule


@dataclass(frozen=True)
class SampledLambdas(LambdaRule):
    """(1); without a measure all weights are 1. The value is the measure's without noise, or the links' negated mean cost.

    The draws depend on ``seed``, ``draw``, the query's number, the sample and the document, and on nothing else.
    """

    samples: int = 10
    noise: float = 1.0
    seed: int = 0
    draw: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.samples, int | np.integer) and 1 <= self.samples < 2**31):
            raise SettingError(f"samples must be a whole number of at least 1, got {self.samples}")
        if not 0 <= self.noise < float("inf"):
            raise SettingError(f"noise must be a number of at least 0, got {self.noise}")
        for name in ("seed", "draw"):
            if not 0 <= getattr(self, name) < 2**64:
                raise SettingError(f"{name} must be at least 0 and below 2^64, got {getattr(self, name)}")

    def pairs(self, data: RankingData) -> float:
        """How many pairs of documents meet in one pass."""
        return self.samples * super().pairs(data)

    def on(self, data: RankingData) -> _core.Objective:
        """Itself on ``data``."""
        return _core.sampled_lambdas(self.rule_on(data), self.samples, self.noise, self.seed, self.draw)

    def drawn(self, number: int) -> "SampledLambdas":
        """The same with draws of their own, for the tree (or the step) of that number."""
        return replace(self, draw=number)
