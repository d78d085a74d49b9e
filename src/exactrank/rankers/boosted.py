"""What all tree rankers share: trees by LightGBM, one after the other, each along the slope of an objective of the scores.

    tree_t fits  slope(s) / curvature(s)  in each leaf (a Newton step),    s <- s + weight_t * tree_t            (1)

An objective without curvature counts as one of curvature 1. The weight of a document multiplies its slope and its curvature: its share in
the loss of squared errors, and the force on it where there are forces between documents. After each tree the measure itself is evaluated,
exactly, and validation data says how many trees to keep. A ranker names its objective and, if it is not a constant, the weight of
each tree.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import lightgbm as lgb
import numpy as np

from exactrank import _core
from exactrank.arrays import PerQuery
from exactrank.data.alignment import listed
from exactrank.data.levels import Levels
from exactrank.data.ranking_data import RankingData
from exactrank.engine.engine import Part, Partitioned, fold
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.score_space import Objective, Sampled, announce_cost
from exactrank.optimizers.base import State
from exactrank.optimizers.boosting import Growth
from exactrank.rankers.base import Ranker
from exactrank.rankers.forces import Draws, Searches, Weigher, bound_by_tree, forces, line_searches
from exactrank.rankers.forest import Bins, Forest, Trees
from exactrank.rankers.lightgbm_library import AS_GOOD_AS_ZERO
from exactrank.rankers.lightgbm_parameters import passed_on
from exactrank.rankers.training_data import TrainingData
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import PerFeature, TreeMissing
from exactrank.scorers.model import Model
from exactrank.scorers.tree_ensemble import TreeEnsemble
from exactrank.settings import SOME, VALID, Range, setting
from exactrank.threads import thread_count
from exactrank.training.judge import Judge, Task
from exactrank.training.progress import Trained
from exactrank.training.run import Journal, Recorder, Run, Standing
from exactrank.training.selection import StepChoice


@dataclass(frozen=True, eq=False)
class Boosting:
    """(1) on the data of a task: what `exactrank.optimizers.growth` asks for the next tree."""

    barren: ClassVar[str] = (
        "no split is possible: the features are constant, or leaves would be too small; lower min_documents or min_curvature"
    )

    ranker: "BoostedRanker"
    task: Task
    bins: Bins
    objective: Objective
    weigh: Weigher | None  #: None where all trees weigh 1

    def grown(self, iterate: Trees) -> Trees:
        """``iterate`` with one tree more, or as it is where no split is possible."""
        trees, data = iterate.rooted(self.bins), self.task.data
        draws = self.ranker.draws(self.task.bag)
        seen, bound = draws.seen(trees.count, data.weights), self._bound(draws.place(trees.count))
        tree = trees.grow(*forces(bound, trees.kept[0], data, seen, self.bins), draws.seeds(trees.count))  # forces are held no longer
        if tree is None:
            return trees
        return trees.plus(tree, 1.0 if self.weigh is None else self.weigh(trees, tree.outputs[0], seen))

    @cached_property
    def _bound(self) -> Callable[[int], _core.Objective]:
        return bound_by_tree(self.objective, self.task.data)


class BoostedRanker(Ranker):
    """The base of rankers whose model is a sum of trees."""

    weighs_documents = True
    goes_on_from = (TreeEnsemble,)
    takes_categories = True
    takes_partitions = True
    weighs_partitioned_documents = True
    validates_partitions = False

    trees: int = setting(default=300, help="Maximum number of trees.", at_least=1, at_most=1 << 20, free=True)
    learning_rate: float = setting(
        default=0.05, help="What each tree's output is multiplied by.", above=0, at_most=1, search=Range(0.02, 0.3, log=True)
    )
    leaves: int = setting(
        default=15, help="Maximum number of leaves of a tree.", at_least=2, at_most=1 << 17, search=Range(4, 63, log=True)
    )
    depth: int | None = setting(
        default=None, help="Maximum number of splits from the root to a leaf; by default no limit.", at_least=1, at_most=(1 << 31) - 1
    )
    min_documents: int = setting(
        default=20, help="Minimum number of documents in a leaf.", at_least=1, at_most=1 << 30, search=Range(5, 100, log=True)
    )
    min_curvature: float = setting(default=1e-3, help="Minimum sum of curvatures in a leaf.", at_least=0, at_most=1e100)
    bins: int = setting(default=255, help="Maximum number of bins for the values of a feature.", at_least=2, at_most=1 << 16)
    l2: float = setting(default=0.0, help="Added to the curvature of each leaf.", at_least=0, at_most=1e100)
    feature_fraction: float = setting(
        default=0.7, help="Share of the features that each tree may use.", above=0, at_most=1, search=Range(0.3, 1.0)
    )
    query_fraction: float = setting(
        default=0.7, help="Share of the queries that each tree is fitted to.", above=0, at_most=1, search=Range(0.5, 1.0)
    )
    extra: bool = setting(
        default=False,
        help="Try one random threshold per feature instead of all: trees that differ more, for little or noisy data.",
    )
    monotone: Mapping[str, Literal[-1, 0, 1]] | None = setting(
        default=None, help="Features with which the score may only rise (1) or only fall (-1), by name, e.g. {'price': -1}."
    )
    categorical: Sequence[str] = setting(
        default=(), help="Names of features whose values are categories (whole numbers from 0), not amounts."
    )
    lightgbm: Mapping[str, object] | None = setting(
        default=None,
        help="Other parameters of LightGBM by its names, as {'lambda_l1': 0.1, 'interaction_constraints': [['bm25', 'age'], ['price']]}.",
    )
    patience: int = setting(
        default=50,
        help="With validation data: stop when it has not improved for this number of trees.",
        at_least=1,
        at_most=1 << 30,
        only={VALID: SOME},
        free=True,
    )
    bagging: Literal["draws", "cross-fit", "bootstrap"] = setting(  # type: ignore[assignment]  # one more than others have
        default="draws",
        help="What each forest of a bag is trained on: all queries, with its own random draws; all parts of the queries except two, one"
        " of which chooses how many trees to keep; or a bootstrap sample of the queries.",
        only={"bags": SOME},
    )
    missing: TreeMissing = setting(  # type: ignore[assignment]
        default="keep", help="How to treat a missing value: kept (splits send it to the better side), an error, 0, or the feature's mean."
    )

    @abstractmethod
    def _objective(self, measure: Measure) -> Objective:
        """What the trees follow the slope of."""

    def weigher(self, weights: PerQuery, searches: Searches) -> Weigher | None:
        """What says the weight of a tree that has grown, beside ``learning_rate``, by ``weights`` of queries; None where there is none."""
        return None

    def draws(self, bag: int) -> Draws:
        """What is drawn for the trees of the forest with that number in a bag."""
        return Draws(self.seed, bag * self.trees, self.query_fraction, self.feature_fraction < 1, self.extra)

    def check_effects(self, data: RankingData, validated: bool = False) -> None:
        """Raise also where the forests of a bag would not differ."""
        super().check_effects(data, validated)
        drawn = self.extra or min(self.query_fraction, self.feature_fraction) < 1
        alike = self.bags and self.bagging == "draws" and not drawn
        if alike and not isinstance(self._objective(parse_measure(self.measure)), Sampled):
            raise SettingError(
                f"{type(self).__name__}: the forests of {self.bags} bags would be the same; give query_fraction or feature_fraction below"
                ' 1, extra, sampled lambdas, or bagging="cross-fit" or "bootstrap"'
            )

    def _member(self, task: Task, number: int, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        if self.bagging == "draws":
            return self._fit(replace(task, bag=number), recorder)
        return super()._member(task, number, recorder)

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        self._check_features(task.data)
        objective, bins = self._objective(task.measure), task.common.get("bins")
        names, levels = task.data.feature_names, task.data.levels
        announce_cost(objective, task.data)
        if isinstance(task.data, Partitioned):
            from exactrank.rankers.cluster_forest import fit_on_engine

            return fit_on_engine(self, task, objective, recorder)
        if not isinstance(bins, Bins) or not bins.hold(task.data, task.valid):  # else they are those of the forest before
            bins = task.common["bins"] = self._bins(task)
        problem = Boosting(self, task, bins, objective, self.weigher(task.data.weights, line_searches(task)))
        patience = None if task.valid is None else self.patience
        start = Trees.of(task.start.table) if isinstance(task.start, TreeEnsemble) else Trees()
        run = Run(Growth[Trees](), problem, start, _judge(task), start.count + self.trees, patience=patience)
        return self.finished(run, names, levels, recorder)

    def finished(
        self, run: Run[Any, Trees, State[Trees]], names: tuple[str, ...], levels: Levels, recorder: Recorder[Scorer]
    ) -> Trained[Scorer]:
        """What ``run`` grows, as a model of features that have these names and levels."""
        growing: Recorder[Trees] = recorder.part(view=lambda trees: TreeEnsemble(trees.table, names, levels=levels))
        grown = run(growing)
        trees = Trees(grown.iterate.weights, read=grown.iterate.table)  # without a forest, which takes memory
        growing.journal.entries[growing.place] = replace(grown, iterate=trees)
        scorer = TreeEnsemble(trees.table, names, levels=levels)
        return Trained(scorer, grown.verdict, grown.steps, grown.trouble, alternatives=grown.alternatives)

    def _bins(self, task: Task) -> Bins:
        """The data in bins; raises where LightGBM refuses a parameter that is passed on, of which it looks at some when it begins."""
        kinds = self.kinds(task.data.feature_names, task.data.levels)
        settings = self._settings(task.data.feature_names) | self._of_kinds(kinds)
        try:
            bins = Bins(task.data, task.valid, settings, kinds, thread_count(self.threads))
            if self.lightgbm:
                Forest(bins)
        except (lgb.basic.LightGBMError, TypeError) as error:
            if not self.lightgbm:
                raise
            why = str(error).partition(" at /")[0]  # without the place in its sources
            raise SettingError(f"{type(self).__name__}: LightGBM refuses lightgbm={self.lightgbm!r}: {why}; change it") from None
        return bins

    def _journal(self, model: Model, given: TrainingData) -> Journal:
        """Trees that stand in a model alone, as they grew, go on from there."""
        for name in ("trees", "patience"):
            found = model.params.get(name)
            if not self._is_one_forest() and found != getattr(self, name) and model.ranker == type(self).__name__:
                told = f"the model was trained with {name}={found}, not {getattr(self, name)}"
                raise IncompatibleError(
                    f"{told}, which may change only for a single forest as it grew; resume with the same value, or train anew"
                )
        journal = super()._journal(model, given)
        if model.run is None and self._is_one_forest() and isinstance(model.scorer, TreeEnsemble):
            trees = Trees.of(model.scorer.relative_to(given.data.offset, given.data.feature_names).table)
            task = Task(parse_measure(self.measure), given.data, given.valid, self.threads)
            verdict = task.verdict(TreeEnsemble(trees.table))
            journal.entries["/0"] = Standing(State(trees, 0.0, trees.count), StepChoice.of(trees, verdict, trees.count))
        return journal

    def _is_one_forest(self) -> bool:
        """Is the model a forest as it grew, and nothing more?"""
        return not self.bags

    def kinds(self, names: Sequence[str], levels: Levels) -> list[int]:
        """The numbers of the features whose values are kinds: those that are so called, and those that the data has as text."""
        return [number for number, name in enumerate(names) if name in self.categorical or name in levels]

    def _of_kinds(self, kinds: Sequence[int]) -> dict[str, Any]:
        """What LightGBM is told of categories, where there are any: as many documents in a group of them as its defaults have in leaves."""
        return {"min_data_per_group": min(100, 5 * self.min_documents)} if kinds else {}

    def _check_features(self, data: RankingData) -> None:
        """Raise for settings that name features which cannot be meant, and for features that trees cannot read."""
        monotone, names = self.monotone or {}, data.feature_names
        for kind in ("monotone", "categorical"):
            unknown = [name for name in getattr(self, kind) or () if name not in names]
            if unknown:
                raise SettingError(f"{kind} names {unknown[0]!r}, which is not a feature; there are {listed(list(names))}")
        both = [names[kind] for kind in self.kinds(names, data.levels) if monotone.get(names[kind])]
        if both:
            raise SettingError(f"{both[0]!r} cannot be categorical and monotone; categories have no order, so leave it out of one of them")
        far = [name for name in self.categorical if data.offset is not None and data.offset[names.index(name)]]
        if far:
            raise SettingError(f"{far[0]!r} cannot be categorical: its values are too large for float32; number its categories from 0")
        largest = np.max(fold(data, LargestValues(self.threads)), axis=0)
        lost = np.flatnonzero((largest > 0) & (largest <= AS_GOOD_AS_ZERO))  # LightGBM reads them as 0, also when it scores
        if len(lost):
            raise DataError(
                f"all values of feature {names[lost[0]]} are at most {largest[lost[0]]:.2g} in size, and trees treat values up to 1e-35"
                " as 0; multiply the feature by a constant, in training and in prediction"
            )

    def _settings(self, names: tuple[str, ...]) -> dict[str, Any]:
        """What LightGBM calls them."""
        monotone = [(self.monotone or {}).get(name, 0) for name in names]
        return {
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "max_depth": self.depth or -1,
            "min_data_in_leaf": self.min_documents,
            "min_data_in_bin": min(3, self.min_documents),
            "min_sum_hessian_in_leaf": self.min_curvature,
            "max_bin": self.bins,
            "lambda_l2": self.l2,
            "feature_fraction": self.feature_fraction,
            "extra_trees": self.extra,
            "seed": self.seed,
            **({"monotone_constraints": monotone} if any(monotone) else {}),
            **passed_on(self.lightgbm or {}, names, type(self).__name__),
        }


@dataclass(frozen=True)
class LargestValues:
    """The size of the largest value of each feature."""

    threads: int | None

    def __call__(self, part: Part) -> PerFeature:
        """Of the documents of ``part``."""
        low, high, *_ = _core.summarise_columns(part.data.X, thread_count(self.threads))
        return np.maximum(np.abs(low), np.abs(high))


def _judge(task: Task) -> Judge[Trees]:
    return Judge(task, lambda trees, part: trees.scores(part, task.threads))
