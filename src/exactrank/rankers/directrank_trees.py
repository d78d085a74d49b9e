"""DirectRank with regression trees (Tan, Xia, Guo & Wang 2013, section 2.4).

After each tree the exact line search of the measure along the tree's outputs says how far to go,

    alpha_t = the middle of the best interval of  measure(s + alpha tree_t)  in [low, high]                      (1)

and the weight goes into the values of its leaves, so that the model is a plain sum of trees. The paper has weight_t = alpha_t, searched
on all queries, with [0.1, 0.5]. But a tree looks better than it is on the queries that it was fitted to, so that the search goes
nearly to the upper end each time; and what it finds on other queries is right only on average. So by default alpha_t is searched on the
queries that the tree did not see (``query_fraction``), and the result moves the weight of the tree before,

    weight_t = weight_{t-1} + smoothing (alpha_t - weight_{t-1}),    weight_0 = learning_rate                   (2)

so the learning rate adapts to the measure. ``smoothing=1`` takes alpha_t itself, as published; ``clip`` searches steps of any length in
(1), and takes an end of [low, high] for those beyond it.

With ``splits="measure"`` the measure also chooses among the best splits of each leaf, at the weight of the tree before
(`exactrank.learning.trees.measured_splits`; this, too, the paper leaves to future work).

When all trees have grown, their weights may be refitted together (``leverage``, which the paper leaves to future work):

    s = sum_t w_t tree_t,    at first all w_t = 1                                                               (3)

is a linear model whose features are the trees' outputs, so `DirectRank` trains it: exact coordinate ascent, as a mean over bootstrap
samples of the queries against overfitting. An exact line search on all queries then goes from the old weights towards that mean, and
no further; so the training measure does not fall.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from exactrank import _core
from exactrank._support.settings import Range, setting
from exactrank._support.threads import thread_count
from exactrank.data.dataset import Dataset
from exactrank.errors import SettingError
from exactrank.learning.objectives.line_search import LineSearch
from exactrank.learning.objectives.losses import SquaredError
from exactrank.learning.objectives.score_space import Objective
from exactrank.learning.training.judge import Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder
from exactrank.learning.trees.forest import Expected, Forest, Weigher
from exactrank.learning.trees.growth import GrowthSettings, PerLeaf
from exactrank.learning.trees.steps import exact_steps
from exactrank.measures.base import Measure
from exactrank.measures.ties import worst_tie_order
from exactrank.models.base import Scorer
from exactrank.models.tree_ensemble import TreeEnsemble
from exactrank.rankers.directrank import DirectRank, linear_weights
from exactrank.rankers.lambda_function import LambdaChoice
from exactrank.rankers.lambdamart import LambdaMART
from exactrank.rankers.training_data import TrainingData

#: Leveraging, no tree weighs more than this, nor less than nothing.
MOST = 2.0
#: The share of the trees that each sample moves.
SHARE = 0.3


class DirectRankTrees(LambdaMART):
    """Regression trees whose weights are chosen by an exact line search of the measure (Tan, Xia, Guo & Wang 2013).

    >>> from exactrank import RankingData
    >>> data = RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    >>> DirectRankTrees(measure="RR", min_documents=1, trees=5, search="all", query_fraction=1.0).fit(data).score(data)
    1.0
    """

    name = "directrank-trees"

    follow: Literal["grades", "grades-within", "lambdas"] = setting(
        default="lambdas",
        help="What the trees are fitted to: the residuals of the grades, the same within each query, or the forces of LambdaMART.",
    )
    lambdas: LambdaChoice = setting(default="logistic", help="Lambda function, as in LambdaMART.", only={"follow": ("lambdas",)})
    search: Literal["unseen", "all"] = setting(
        default="unseen", help="Queries on which the step is searched: those that the tree did not see, or all."
    )
    clip: bool = setting(
        default=False, help="Take the best step of any length, clipped to low and high, as published, instead of the best between them."
    )
    low: float = setting(default=0.02, help="The shortest step.", above=0)
    high: float = setting(default=1.0, help="The longest step.", above=0)
    learning_rate: float = setting(
        default=0.05,
        help="Weight of the first tree before the search; not used with smoothing=1.",
        above=0,
        at_most=1,
        search=Range(0.02, 0.3, log=True),
    )
    smoothing: float = setting(
        default=0.01,
        help="How far the step found moves the weight away from that of the tree before; 1 takes the step itself.",
        above=0,
        at_most=1,
        search=Range(0.003, 0.1, log=True),
    )
    splits: Literal["gain", "measure"] = setting(
        default="gain",
        help="What chooses the split of a leaf: its gain in the objective, or, among the best by their gains, the measure itself.",
        only={"shape": ("best-first",)},
    )
    candidates: int = setting(
        default=8,
        help="The number of splits of a leaf, each at another feature, among which the measure chooses.",
        at_least=2,
        at_most=1 << 16,
        only={"splits": ("measure",)},
    )
    leverage: int = setting(
        default=0,
        help="When all trees have grown, refit their weights as a mean over this number of bootstrap samples of the queries; 0 leaves"
        " them.",
        at_least=0,
        at_most=1 << 20,
    )
    query_fraction: float = setting(
        default=0.7, help="Share of the queries that each tree is fitted to.", above=0, at_most=1, search=Range(0.5, 0.9)
    )

    def resolve_auto(self, data: Dataset) -> Mapping[str, object]:
        values = dict(super().resolve_auto(data)) | ({} if self.follow == "lambdas" else {"lambdas": None})
        return values | ({"shape": "best-first"} if self.splits == "measure" and "shape" in values else {})

    def ineffective_settings(self, data: Dataset, validated: bool = False) -> dict[str, str]:
        """Return the settings without effect; a learning rate has none if no tree is weighed by it."""
        reasons = super().ineffective_settings(data, validated)
        if self.smoothing == 1 and not self.settings["learning_rate"].is_default(self.learning_rate):
            reasons["learning_rate"] = (
                f"learning_rate={self.learning_rate} has no effect with smoothing=1; leave it out, or set smoothing below 1"
            )
        return reasons

    def check_effects(self, data: Dataset, validated: bool = False) -> None:
        """Raise also if steps cannot be searched."""
        super().check_effects(data, validated)
        if self.low > self.high:
            raise SettingError(f"DirectRankTrees: low={self.low} is above high={self.high}; low is the shortest step, high the longest")
        if self.splits == "measure" and not self.runs_in_threads:
            raise SettingError(
                f'DirectRankTrees: splits="measure" is not known for {self.backend!r}, which grows trees by kernels of its own;'
                ' give splits="gain", or leave out backend'
            )
        if self.search == "unseen" and self.query_fraction == 1:
            raise SettingError(
                'DirectRankTrees: search="unseen" needs queries that a tree does not see; give a query_fraction below 1, or search="all"'
            )

    def _objective(self, measure: Measure) -> Objective:
        return super()._objective(measure) if self.follow == "lambdas" else SquaredError(within=self.follow == "grades-within")

    def _weigher(self, task: Task) -> Weigher:
        """Return (1) and (2)."""
        steps = exact_steps(task)

        def weight(forest: Forest, outputs: PerLeaf) -> float:
            ends = (-math.inf, math.inf) if self.clip else (self.low, self.high)
            step = min(max(steps(forest, outputs, self.search == "unseen", *ends), self.low), self.high)
            before = self.learning_rate if forest.last_weight is None else forest.last_weight
            return step if self.smoothing == 1 else before + self.smoothing * (step - before)  # (2)

        return weight

    @property
    def _expected_weight(self) -> Expected:
        if self.splits == "gain":
            return None
        first = self.high if self.smoothing == 1 else self.learning_rate
        return lambda forest: first if forest.last_weight is None else forest.last_weight

    def _growth_settings(self, data: Dataset) -> GrowthSettings:
        settings = super()._growth_settings(data)
        return settings if self.splits == "gain" else replace(settings, candidates=self.candidates)

    def check_shards(self, data: Dataset) -> None:
        """Raise also if all trees would have to be scored at once, or the whole measure for each split."""
        super().check_shards(data)
        if self.splits == "measure":
            raise SettingError('DirectRankTrees: splits="measure" is not known for data in several files; give splits="gain"')
        if self.leverage:
            raise SettingError(f"DirectRankTrees: leverage={self.leverage} is not known for data in several files; give leverage=0")

    def _is_one_forest(self, training: TrainingData) -> bool:
        return super()._is_one_forest(training) and not self.leverage

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """Train the trees; with leverage, use the refitted weights unless the judge finds them worse."""
        trained = super()._fit(task, recorder)
        if not self.leverage:
            return trained
        assert isinstance(trained.iterate, TreeEnsemble)
        scorer = refit_weights(trained.iterate, task, self.leverage, self.seed, recorder)
        verdict = recorder.record_result(scorer, task.verdict, recorder.steps, recorder.steps)
        return trained if verdict.goodness < trained.verdict.goodness else replace(trained, iterate=scorer, verdict=verdict)


def refit_weights(scorer: TreeEnsemble, task: Task, bags: int, seed: int, recorder: Recorder[Scorer]) -> TreeEnsemble:
    """Return ``scorer`` with refitted weights of its trees, as a mean over ``bags`` bootstrap samples."""
    if scorer.n_trees < 2:
        return scorer
    measure, data, threads = worst_tie_order(task.measure), task.data.gather(), task.threads
    outputs, bound = np.empty((data.n_documents, scorer.n_trees), np.float32), measure.on(data, threads=threads)
    for number, tree in enumerate(scorer.single_trees()):
        outputs[:, number] = tree.score(data.X, threads)
    trees = replace(data, X=outputs, feature_names=tuple(f"tree {t}" for t in range(scorer.n_trees)), offset=None, levels={})
    ones = np.ones(scorer.n_trees)
    again = DirectRank(measure, bags=bags, start=ones.tolist(), low=0.0, high=MOST, share=SHARE, seed=seed, threads=threads)
    mean = recorder.remember("leverage", lambda: again.train(Task(measure, trees, threads=threads), Recorder()).iterate)
    towards, search = linear_weights(mean) - ones, LineSearch(bound)
    search.start(outputs.sum(axis=1, dtype=np.float64))
    step = search.best(_core.linear_scores(outputs, towards, thread_count(threads)), 0.0, 1.0).middle()
    anew = replace(scorer, table=scorer.table.scale(ones + step * towards))
    before, after = (bound.mean(each.score(data.X, threads)) for each in (scorer, anew))
    return anew if after >= before else scorer
