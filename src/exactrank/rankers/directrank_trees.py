"""DirectRank with regression trees (Tan, Xia, Guo & Wang 2013, section 2.4).

After each tree the exact line search of the measure along the tree's outputs says how far to go,

    alpha_t = the middle of the best interval of  measure(s + alpha tree_t)  in [low, high]                      (1)

and the weight goes into the values of its leaves, so that the model is a plain LightGBM one. Published is weight_t = alpha_t, searched
on all queries, with [0.1, 0.5]. But a tree looks better on the queries that it was fitted to than it is, so that the search takes
nearly the upper end each time; and what it finds on other queries is right only on average. So by default alpha_t is searched on the
queries that the tree did not see (``query_fraction``), and what is found moves the weight of the tree before,

    weight_t = weight_{t-1} + smoothing (alpha_t - weight_{t-1}),    weight_0 = rate                            (2)

a rate that learns how far the measure goes along. ``smoothing=1`` takes alpha_t itself, as published.

When all trees have grown, their weights may be set anew all together (``leverage``, which the paper leaves to future work): the trees
are features, and `DirectRank` moves one of their weights after the other, as a mean over bootstrap samples of the queries. Between the
weights as they were and that mean the line search on all queries has the last word, so the training measure does not fall.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from exactrank.arrays import PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.line_search import LineSearch
from exactrank.objectives.score_space import Objective
from exactrank.objectives.squared_error import SquaredError
from exactrank.rankers.boosted import Weigher
from exactrank.rankers.forest import Forest, Tree
from exactrank.rankers.lambdamart import LambdaMART
from exactrank.rankers.leverage import leveraged
from exactrank.rankers.search_space import Range, Space
from exactrank.scorers.base import Scorer
from exactrank.scorers.tree_ensemble import TreeEnsemble
from exactrank.training import Trained


@dataclass(eq=False, repr=False)
class DirectRankTrees(LambdaMART):
    """Regression trees whose weights an exact line search of the measure chooses (Tan, Xia, Guo & Wang 2013).

    Args:
        follow: What the trees are fitted to: what is left of the grades, the same within each query, or the forces of LambdaMART.
        search: On which queries the step is searched: those that the tree did not see, or all.
        low: The shortest step.
        high: The longest step.
        rate: What the first tree would weigh without a search.
        smoothing: How far the step that was found moves the weight from that of the tree before; 1 takes the step itself.
        leverage: When all trees have grown, set their weights anew, as a mean over so many bootstrap samples of the queries.

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> DirectRankTrees(measure="RR", min_documents=1, trees=5, search="all", query_fraction=1.0).fit(data).score(data)
    1.0
    """

    name = "directrank-trees"
    space: ClassVar[Space] = {**LambdaMART.space, "query_fraction": Range(0.5, 0.9), "smoothing": Range(0.003, 0.1, log=True)}

    follow: Literal["grades", "grades-within", "lambdas"] = "lambdas"
    search: Literal["unseen", "all"] = "unseen"
    low: float = 0.02
    high: float = 1.0
    rate: float = 0.05
    smoothing: float = 0.01
    leverage: int = 0
    query_fraction: float = 0.7

    def _check(self, data: RankingData) -> None:
        super()._check(data)
        if not 0 < self.low <= self.high < float("inf"):
            raise DataError(f"low and high must be numbers above 0, low no more than high; got {self.low} and {self.high}")
        if not 0 < self.smoothing <= 1:
            raise DataError(f"smoothing must be above 0 and at most 1, got {self.smoothing}")
        if self.leverage < 0:
            raise DataError(f"leverage must be a number of samples of at least 0, got {self.leverage}")
        if self.follow not in ("grades", "grades-within", "lambdas"):
            raise DataError(f'follow={self.follow!r} is not one of "grades", "grades-within", "lambdas"')
        if self.search not in ("unseen", "all"):
            raise DataError(f'search={self.search!r} is not one of "unseen", "all"')
        if self.search == "unseen" and self.query_fraction == 1:
            raise DataError('search="unseen" needs queries that a tree does not see; give a query_fraction below 1, or search="all"')

    def _settings(self, names: tuple[str, ...]) -> dict[str, Any]:
        return super()._settings(names) | {"learning_rate": 1.0}

    def _objective(self, measure: Measure) -> Objective:
        return super()._objective(measure) if self.follow == "lambdas" else SquaredError(within=self.follow == "grades-within")

    def _weigher(self, bound: BoundMeasure) -> Weigher:
        on_all = LineSearch(bound)

        def weight(forest: Forest, tree: Tree, seen: PerQuery) -> float:
            unseen = np.where(seen > 0, 0.0, bound.weights)
            search = on_all if self.search == "all" or not unseen.any() else LineSearch(replace(bound, weights=unseen))
            output = tree.outputs[0]
            search.start(forest.scores[0] + self.low * output)
            step = self.low + search.best(output, 0.0, self.high - self.low).middle()
            before = forest.weights[-1] if forest.weights else self.rate
            return before + self.smoothing * (step - before)  # (2)

        return weight

    def _finished(self, scorer: TreeEnsemble, trained: Trained, data: RankingData, valid: RankingData | None) -> tuple[Scorer, Trained]:
        """With other weights, unless validation data is against them."""
        if not self.leverage:
            return scorer, trained
        found = leveraged(scorer, data, parse_measure(self.measure), bags=self.leverage, seed=self.seed, threads=self.threads)
        anew = self._judged(found, trained, data, valid)
        worse = anew.valid is not None and trained.valid is not None and anew.valid < trained.valid
        return (scorer, trained) if worse else (found, anew)
