"""The base of all tree rankers: regression trees, one after the other, each along the slope of an objective of the scores.

    tree_t fits  slope(s) / curvature(s)  in each leaf (a Newton step),    s <- s + weight_t * tree_t            (1)

An objective without curvature counts as one of curvature 1. The weight of a document multiplies its slope and its curvature: its share in
the loss of squared errors, and the force on it where there are forces between documents. After each tree the measure itself is evaluated,
exactly, and validation data says how many trees to keep. A ranker names its objective and, if it is not a constant, the weight of
each tree. `exactrank.learning.trees` grows them.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from exactrank._support.settings import SOME, VALID, Range, setting
from exactrank._support.threads import thread_count
from exactrank.data.alignment import name_list
from exactrank.data.dataset import Answerer, Dataset
from exactrank.data.levels import Levels
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.learning.objectives.exact_sums import mean_grade
from exactrank.learning.objectives.losses import SquaredError
from exactrank.learning.objectives.score_space import Objective, Sampled, announce_cost
from exactrank.learning.optimizers.base import State
from exactrank.learning.optimizers.boosting import Growth
from exactrank.learning.training.judge import Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Journal, Recorder, Run, RunState
from exactrank.learning.training.selection import StepChoice
from exactrank.learning.trees.bins import MOST_CATEGORIES, Layout
from exactrank.learning.trees.forest import Expected, Forest, Trees, Weigher
from exactrank.learning.trees.growth import Draws, GrowthSettings
from exactrank.learning.trees.part import Plan
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure
from exactrank.models.base import Scorer
from exactrank.models.missing import TreeMissing
from exactrank.models.model import Model
from exactrank.models.tree_ensemble import TreeEnsemble
from exactrank.models.tree_table import TreeTable
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes
from exactrank.rankers.division import CELLS_PER_THREAD
from exactrank.rankers.training_data import TrainingData, mixed_queries

#: Forests where their number is left open: this many on fewer than MANY_QUERIES, if at least FEW_MIXED have documents of different grades.
BAGS, MANY_QUERIES, FEW_MIXED = 10, 2_000, 20


class BoostedRanker(Ranker):
    """The base of rankers whose model is a sum of trees."""

    takes = Takes(
        document_weights=True,
        categories=True,
        start=(TreeEnsemble,),
        shards=True,
        sharded_document_weights=True,
        sharded_validation=False,
        kernels=True,
    )

    trees: int = setting(default=300, help="Maximum number of trees.", at_least=1, at_most=1 << 20, free=True)
    learning_rate: float = setting(
        default=0.05, help="What each tree's output is multiplied by.", above=0, at_most=1, search=Range(0.02, 0.3, log=True)
    )
    leaves: int = setting(
        default=16, help="Maximum number of leaves of a tree.", at_least=2, at_most=1 << 17, search=Range(4, 63, log=True)
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
    shape: Literal["best-first", "symmetric"] | None = setting(
        default=None,
        help="How a tree grows: the leaf that gains most is split next, or all leaves of a level by the same split. By default symmetric"
        f" where bags is left open and comes to {BAGS}, and node_features is 1; otherwise best-first.",
    )
    l1: float = setting(default=0.0, help="Subtracted from the size of each leaf's slope.", at_least=0, at_most=1e100)
    min_gain: float = setting(default=0.0, help="Minimum gain of a split.", at_least=0, at_most=1e100)
    max_step: float = setting(default=0.0, help="Maximum size of a leaf's output before the learning rate; 0 is no limit.", at_least=0)
    path_smoothing: float = setting(
        default=0.0, help="Draws a leaf's output towards its parent's, as this number of documents would.", at_least=0, at_most=1e100
    )
    node_features: float = setting(
        default=1.0, help="Share of the tree's features that each split may use.", above=0, at_most=1, only={"shape": ("best-first",)}
    )
    split_noise: float = setting(
        default=0.0, help="Standard deviation of the random factor, around 1, by which the gains of features are compared.", at_least=0
    )
    interactions: Sequence[Sequence[str]] = setting(
        default=(),
        help="Groups of features, by name: only features of one group may meet on a path from the root. Those not named are a group too.",
    )
    patience: int = setting(
        default=50,
        help="With validation data: stop when it has not improved for this number of trees.",
        at_least=1,
        at_most=1 << 30,
        only={VALID: SOME},
        free=True,
    )
    bags: int | None = setting(
        default=None,
        help=f"Train this number of forests and take their mean; 0 trains one. By default {BAGS} on fewer than {MANY_QUERIES:,} queries,"
        " where a single forest, and the validation queries that choose its trees, depend much on chance; otherwise 0.",
        at_least=0,
        at_most=1 << 20,
    )
    bagging: Literal["cross-fit", "bootstrap", "draws"] = setting(  # type: ignore[assignment]  # one more than others have
        default="cross-fit",
        help="What each forest of a bag is trained on: all parts of the queries except two, one of which chooses how many trees to keep; a"
        " bootstrap sample of the queries; or all queries, with its own random draws.",
        only={"bags": SOME},
    )
    missing: TreeMissing = setting(  # type: ignore[assignment]
        default="keep", help="How to treat a missing value: kept (splits send it to the better side), an error, 0, or the feature's mean."
    )

    @abstractmethod
    def _objective(self, measure: Measure) -> Objective:
        """Return the objective whose slope the trees follow."""

    def _weigher(self, task: Task) -> Weigher:
        """Return the function that decides the weight of a grown tree."""
        return lambda forest, outputs: self.learning_rate

    @property
    def _expected_weight(self) -> Expected:
        """The weight that the next tree is expected to have, if the measure chooses its splits."""
        return None

    def draws(self, bag: int) -> Draws:
        """Return the random draws for the trees of the forest with that number in a bag."""
        return Draws(self.seed, bag * self.trees, self.query_fraction, self.feature_fraction)

    def resolve_auto(self, data: Dataset) -> Mapping[str, object]:
        is_little = data.is_local and data.n_queries < MANY_QUERIES and mixed_queries(data).sum() >= FEW_MIXED
        is_symmetric = self.bags is None and is_little and self.node_features == 1
        values = {"bags": BAGS if is_little else 0, "shape": "symmetric" if is_symmetric else "best-first"}
        return {**super().resolve_auto(data), **{name: value for name, value in values.items() if getattr(self, name) is None}}

    def check_effects(self, data: Dataset, validated: bool = False) -> None:
        """Raise also if the forests of a bag would not differ."""
        super().check_effects(data, validated)
        has_draws = self.extra or self.split_noise > 0 or min(self.query_fraction, self.feature_fraction, self.node_features) < 1
        bags = self.bag_count(data)
        alike = bags and self.bagging == "draws" and not has_draws
        if alike and not isinstance(self._objective(parse_measure(self.measure)), Sampled):
            raise SettingError(
                f"{type(self).__name__}: the forests of {bags} bags would be the same; give query_fraction or feature_fraction below"
                ' 1, extra, sampled lambdas, or bagging="cross-fit" or "bootstrap"'
            )

    def _member(self, task: Task, number: int, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        if self.bagging == "draws":
            return self._fit(replace(task, bag=number), recorder)
        return super()._member(task, number, recorder)

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        self._check_features(task.data)
        objective = self._objective(task.measure)
        announce_cost(objective, task.data)
        forest = self._forest(task, objective)
        start = Trees.of(task.start.table) if isinstance(task.start, TreeEnsemble) else Trees()
        patience = None if task.valid is None else self.patience
        run = Run(Growth[Trees](), forest, start, lambda trees, _: forest.verdict(trees), start.count + self.trees, patience=patience)
        scorer_of = partial(_scorer, names=task.data.feature_names, levels=task.data.levels)
        growing: Recorder[Trees] = recorder.part(view=scorer_of)
        grown = run(growing)
        trees = Trees.of(table) if (table := grown.iterate.table) is not None else Trees()  # without a forest, which takes memory
        growing.journal.entries[growing.place] = replace(grown, iterate=trees)
        return Trained(scorer_of(trees), grown.verdict, grown.steps, grown.trouble, alternatives=grown.alternatives)

    def _forest(self, task: Task, objective: Objective) -> Forest:
        """Return the forest before its first tree; the members of a bag that learn from the same documents share their bins."""
        data = task.data
        threads = min(thread_count(task.threads), 1 + data.n_documents * data.n_features // CELLS_PER_THREAD)
        earlier = task.common.get("bins")
        shared = earlier.share_with(data) if isinstance(earlier, SharedBins) else None
        shared = task.common["bins"] = SharedBins.of(data, self, threads) if shared is None else shared
        if isinstance(objective, SquaredError):
            objective = replace(objective, mean=mean_grade(data))
        plan = Plan(shared.layout, objective, task.measure, self.draws(task.bag), data.weights, data.n_documents, threads)
        limit = self.trees + (task.start.n_trees if isinstance(task.start, TreeEnsemble) else 0)
        return Forest(plan, self._growth_settings(data), shared.parts, task.valid, self._weigher(task), limit, self._expected_weight)

    def journal_of(self, model: Model, training: TrainingData) -> Journal:
        """Return the journal of ``model``; without one, a single forest continues from its last tree."""
        is_one = self._is_one_forest(training)
        for name in ("trees", "patience"):
            value = model.params.get(name)
            if not is_one and value != getattr(self, name) and model.ranker == type(self).__name__:
                trouble = f"the model was trained with {name}={value}, not {getattr(self, name)}"
                raise IncompatibleError(
                    f"{trouble}, which may change only for a single forest as it grew; resume with the same value, or train anew"
                )
        journal = super().journal_of(model, training)
        if model.run is None and is_one and isinstance(model.scorer, TreeEnsemble):
            scorer = model.scorer.relative_to(training.data.offset, training.data.feature_names)
            trees = Trees.of(scorer.table)
            verdict = Task(parse_measure(self.measure), training.data, training.valid, self.threads).verdict(scorer)
            journal.entries["/0"] = RunState(State(trees, 0.0, trees.count), StepChoice.of(trees, verdict, trees.count))
        return journal

    def _is_one_forest(self, training: TrainingData) -> bool:
        """Return whether the model is a single forest, whose trees stay as they grew."""
        return not self.resolve_settings(training.data, training.start is not None).get("bags", self.bags)

    def categories(self, names: Sequence[str], levels: Levels) -> list[int]:
        """Return the numbers of the features whose values are categories: by the setting, or because the data has them as text."""
        return [number for number, name in enumerate(names) if name in self.categorical or name in levels]

    def _check_features(self, data: Dataset) -> None:
        """Raise if settings name unknown or unsuitable features, or if trees cannot read a feature."""
        monotone, names = self.monotone or {}, data.feature_names
        for kind in ("monotone", "categorical"):
            unknown = [name for name in getattr(self, kind) or () if name not in names]
            if unknown:
                raise SettingError(f"{kind} names {unknown[0]!r}, which is not a feature; there are {name_list(list(names))}")
        clashes = [names[number] for number in self.categories(names, data.levels) if monotone.get(names[number])]
        if clashes:
            raise SettingError(
                f"{clashes[0]!r} cannot be categorical and monotone; categories have no order, so leave it out of one of them"
            )
        far = [name for name in self.categorical if data.offset is not None and data.offset[names.index(name)]]
        if far:
            raise SettingError(f"{far[0]!r} cannot be categorical: its values are too large for float32; number its categories from 0")
        unknown = [name for group in self.interactions for name in group if name not in names]
        if unknown:
            raise SettingError(f"interactions names {unknown[0]!r}, which is not a feature; there are {name_list(list(names))}")

    def _growth_settings(self, data: Dataset) -> GrowthSettings:
        """Return the settings of growth on ``data``, with features by their numbers."""
        names, shape = data.feature_names, self.shape
        monotone = tuple((self.monotone or {}).get(name, 0) for name in names)
        groups = [tuple(names.index(name) for name in group) for group in self.interactions]
        rest = tuple(number for number in range(len(names)) if not any(number in group for group in groups))
        return GrowthSettings(
            leaves=self.leaves,
            depth=self.depth or 0,
            min_documents=self.min_documents,
            min_curvature=self.min_curvature,
            l1=self.l1,
            l2=self.l2,
            min_gain=self.min_gain,
            max_step=self.max_step,
            smoothing=self.path_smoothing,
            noise=self.split_noise,
            extra=self.extra,
            features_per_node=self.node_features,
            symmetric=shape == "symmetric",
            monotone=monotone if any(monotone) else (),
            groups=(*groups, rest) if groups and rest else tuple(groups),
        )


def _scorer(trees: Trees, names: tuple[str, ...], levels: Levels) -> TreeEnsemble:
    """Return the model of ``trees``, whose features have these names and levels."""
    table = trees.table
    return TreeEnsemble(TreeTable.empty(len(names)) if table is None else table, names, levels=levels)


@dataclass(frozen=True, eq=False)
class SharedBins:
    """Documents with binned features, which all forests that learn from them share."""

    data: Dataset
    parts: Answerer
    layout: Layout

    @classmethod
    def of(cls, data: Dataset, ranker: BoostedRanker, threads: int) -> "SharedBins":
        """Return the bins for the forests of ``ranker``."""
        parts = data.with_memo()
        categorical = ranker.categories(data.feature_names, data.levels)
        layout = Layout.of(parts, data.n_documents, ranker.bins, categorical, threads)
        for number in categorical:
            largest = layout.cuts[layout.start[number] : layout.start[number + 1]].max(initial=0)
            if largest >= MOST_CATEGORIES:
                raise DataError(
                    f"{data.feature_names[number]!r} has the category {int(largest):,}, but a split stores a bit for each number up to its"
                    f" largest category; number them from 0 on, below {MOST_CATEGORIES:,}"
                )
        return cls(data, parts, layout)

    def share_with(self, data: Dataset) -> "SharedBins | None":
        """Return the bins for ``data`` if it has the same documents, maybe with other weights of queries."""
        parts = data.share_memo(self.data, self.parts)
        return None if parts is None else SharedBins(data, parts, self.layout)
