"""What all tree rankers share: trees by LightGBM, one after the other, each along the slope of an objective of the scores.

    tree_t fits  slope(s) / curvature(s)  in each leaf (a Newton step),    s <- s + rate * tree_t               (1)

after which the measure itself is evaluated, exactly, and validation data says how many trees to keep. A ranker names its objective
and, where that is not a constant, the weight of each tree. An objective without curvature counts as one of curvature 1.

Few trees leave many documents tied. What chooses how many to keep is the measure with ``ties='pessimistic'``, unless it has
``ties='expected'``: else a lucky order of tied documents would take a single tree for the best model. There grades that are
exponents are bounded as they are in the forces (`exactrank.objectives.bounded_gain`).
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from exactrank import _core
from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.alignment import listed
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.bound import BoundMeasure
from exactrank.measures.parse import parse_measure
from exactrank.objectives.bounded_gain import gentle
from exactrank.objectives.cost import announce_cost
from exactrank.objectives.score_space import Objective, Sampled
from exactrank.optimizers.base import State, Theta
from exactrank.rankers.base import Ranker
from exactrank.rankers.forest import Forest, Tree
from exactrank.rankers.search_space import Range, Space
from exactrank.scorers.base import Scorer
from exactrank.scorers.missing import TreeMissing
from exactrank.scorers.tree_ensemble import TreeEnsemble
from exactrank.scorers.tree_text import first_trees, mean_of
from exactrank.threads import thread_count
from exactrank.training import Listener, Progress, Trained, train

Weigher = Callable[[Forest, Tree, PerQuery], float]  #: given also the weights of the queries that the tree saw
_LEAST = {"trees": 1, "leaves": 2, "min_documents": 1, "min_curvature": 0, "bins": 2, "l2": 0, "bags": 1, "patience": 1}
_MOST = {"trees": 1 << 20, "leaves": 1 << 17, "min_documents": 1 << 30, "bins": 1 << 16, "bags": 1 << 20, "patience": 1 << 30}
AS_GOOD_AS_ZERO = np.float32(1e-35)
NO_SPLIT = "no split is possible: the features are constant, or leaves would be too small; lower min_documents or min_curvature"


@dataclass(eq=False, repr=False)
class BoostedRanker(Ranker):
    """The base of rankers that add up trees; a ranker adds its own settings as fields.

    Args:
        trees: At most so many trees.
        rate: What each tree's output is multiplied by.
        leaves: At most so many leaves a tree.
        depth: At most so many splits from the root to a leaf; by default no limit.
        min_documents: At least so many documents a leaf.
        min_curvature: At least so much curvature a leaf.
        bins: Different values of a feature that are told apart.
        l2: Added to the curvature of each leaf.
        feature_fraction: The share of the features that each tree may use.
        query_fraction: The share of the queries that each tree is fitted to.
        bags: Grow so many forests, each with draws of its own, and take their mean.
        extra: Try one threshold of each feature at random in the place of all: trees that differ more, for little or noisy data.
        rising: Names of features with which the score may only rise.
        falling: Names of features with which the score may only fall.
        categorical: Names of features whose values are kinds (whole numbers of at least 0), not amounts.
        patience: With validation data: stop when it has not improved for so many trees.
        missing: What a missing value is: kept for the trees to send down the better side, an error, 0, or the feature's mean.
    """

    space: ClassVar[Space] = {
        "rate": Range(0.02, 0.3, log=True),
        "leaves": Range(4, 63, log=True),
        "min_documents": Range(5, 100, log=True),
        "feature_fraction": Range(0.3, 1.0),
        "query_fraction": Range(0.5, 1.0),
    }
    measure: str | Measure = "nDCG@10"
    trees: int = 300
    rate: float = 0.1
    leaves: int = 31
    depth: int | None = None
    min_documents: int = 20
    min_curvature: float = 1e-3
    bins: int = 255
    l2: float = 0.0
    feature_fraction: float = 1.0
    query_fraction: float = 1.0
    bags: int = 1
    extra: bool = False
    rising: Sequence[str] = ()
    falling: Sequence[str] = ()
    categorical: Sequence[str] = ()
    patience: int = 50
    seed: int = 0
    threads: int | None = None
    missing: TreeMissing = "keep"

    @abstractmethod
    def _objective(self, measure: Measure) -> Objective:
        """What the trees follow the slope of."""

    def _weigher(self, bound: BoundMeasure) -> Weigher:
        """What says the weight of a tree that has grown, beside ``rate``."""
        return lambda forest, tree, seen: 1.0

    def _fit(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        return self._grown(None, data, valid, listener)

    def _go_on(self, start: Any, *given: Any) -> tuple[Scorer, Trained]:
        return self._grown(start.of_differences() if self.bags == 1 else None, *given)

    def _grown(self, start: Any, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        self._check(data)
        categorical = [data.feature_names.index(name) for name in self.categorical]
        self._forest = Forest(data, valid, self._settings(data.feature_names), categorical, start, thread_count(self.threads))
        self._bags: list[tuple[str, int]] = []  # those that are whole, and how many trees of each are kept
        trained = self._all_bags(data, valid, listener)
        scorer = self._scorer(data, trained.theta)
        return self._finished(scorer, trained if self.bags == 1 else self._judged(scorer, trained, data, valid), data, valid)

    def _all_bags(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> Trained:
        """The last of all runs, with the history of all; Ctrl-C keeps those that have trees."""
        last: Trained | None = None
        history: tuple[Progress, ...] = ()
        while last is None or (len(self._bags) < self.bags and not last.interrupted):
            try:
                self._forest = self._forest.anew() if last else self._forest
                last = self._bag(data, valid, listener)
            except KeyboardInterrupt:
                if last is None:
                    raise
                return replace(last, history=history, interrupted=True)
            self._bags.append((self._forest.text(self._forest.n_trees), int(last.theta[0])))
            history += last.history
        return replace(last, history=history)

    def _bag(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> Trained:
        """One more forest, whose size is chosen by what it does alone; what is reported is the measure of the mean of all so far."""
        measure, before = parse_measure(self.measure), len(self._bags)
        whole = [TreeEnsemble(first_trees(*bag)) for bag in self._bags]
        others = [sum(each.score(part.X, self.threads) for each in whole) for part in (data, valid) if part is not None]
        objective = self._objective(measure)
        announce_cost(objective, data)
        bound = [measure.on(part, threads=self.threads) for part in (data, valid) if part is not None]
        weigher, judging = (gentle(self._severe(), part, self.threads) for part in (data, valid or data))
        growth = Growth(self, self._forest, objective, self._weigher(weigher), bound, before, others)

        def placed(progress: Progress) -> Progress:
            step, theta = progress.step + before * self.trees, np.array([float(progress.step), float(before)])
            return replace(progress, step=step, steps=self.bags * self.trees, theta=theta)

        heard: list[Progress] = []

        def hear(progress: Progress) -> None:
            heard.append(placed(progress))
            if listener is not None:
                listener(heard[-1])

        trained = train(
            growth,
            None,
            np.array([float(self._forest.n_trees), float(before)]),
            rng=np.random.default_rng(self.seed),
            max_steps=self.trees,
            valid=None if valid is None else lambda theta: growth.value_of_mean(1),
            chosen_by=lambda theta: judging.mean(growth.forest.scores[-1]),
            patience=None if valid is None else self.patience,
            listener=hear,
        )
        return replace(trained, history=tuple(heard))

    def _judged(self, scorer: Scorer, trained: Trained, data: RankingData, valid: RankingData | None) -> Trained:
        """``trained`` with what ``scorer`` comes to."""
        measure = parse_measure(self.measure)
        value, held_out = (
            None if part is None else measure.on(part, threads=self.threads).mean(scorer.score(part.X, self.threads))
            for part in (data, valid)
        )
        return replace(trained, value=trained.value if value is None else value, valid=held_out)

    def _finished(self, scorer: TreeEnsemble, trained: Trained, data: RankingData, valid: RankingData | None) -> tuple[Scorer, Trained]:
        """What is made of the trees in the end."""
        return scorer, trained

    def _scorer(self, data: RankingData, theta: Theta) -> TreeEnsemble:
        """The mean of the forests up to the one whose number theta has, of which it takes as many trees as theta says."""
        trees, bag = map(int, theta)
        last = self._forest.text(trees) if bag == len(self._bags) else first_trees(self._bags[bag][0], trees)
        return TreeEnsemble(mean_of([*(first_trees(*own) for own in self._bags[:bag]), last]) if bag else last, data.feature_names)

    def _check(self, data: RankingData) -> None:
        for name, least in _LEAST.items():
            if not least <= getattr(self, name) <= _MOST.get(name, 1e100):
                raise DataError(f"{name} must be at least {least} and at most {_MOST.get(name, 1e100):,.9g}, got {getattr(self, name)}")
        for name in ("rate", "feature_fraction", "query_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise DataError(f"{name} must be above 0 and at most 1, got {getattr(self, name)}")
        self._check_sizes(data)
        if self.bags > 1 and self.query_fraction == self.feature_fraction == 1 and not self.extra and not self._is_drawn():
            raise DataError(
                f"{self.bags} bags would be the same; give query_fraction or feature_fraction below 1, extra, or sampled lambdas"
            )
        if self.depth is not None and self.depth < 1:
            raise DataError(f"depth must be at least 1, or None for no limit; got {self.depth}")
        for kind in ("rising", "falling", "categorical"):
            unknown = [name for name in getattr(self, kind) if name not in data.feature_names]
            if unknown:
                raise DataError(f"{kind} names {unknown[0]!r}, which is no feature; there are {listed(list(data.feature_names))}")
        far = [name for name in self.categorical if data.offset is not None and data.offset[data.feature_names.index(name)]]
        if far:
            raise DataError(f"{far[0]!r} cannot be categorical: its values are too large for single precision; number its kinds from 0")
        twice = set(self.rising) & set(self.falling) | (set(self.rising) | set(self.falling)) & set(self.categorical)
        if twice:
            raise DataError(f"{sorted(twice)[0]!r} can be only one of rising, falling and categorical")

    def _check_sizes(self, data: RankingData) -> None:
        """Raise for a feature of which nothing would be left: LightGBM reads everything up to 1e-35 as 0, also when it scores."""
        low, high, *_ = _core.summarise_columns(data.X, thread_count(self.threads))
        largest = np.maximum(np.abs(low), np.abs(high))
        lost = np.flatnonzero((largest > 0) & (largest <= AS_GOOD_AS_ZERO))
        if len(lost):
            name = data.feature_names[lost[0]]
            raise DataError(
                f"all values of feature {name} are at most {largest[lost[0]]:.2g} in size, and trees take everything up to 1e-35 for 0;"
                " multiply the feature by a constant, in training and in prediction"
            )

    def _severe(self) -> Measure:
        """The measure that chooses how many trees to keep, and the weights of trees."""
        measure = parse_measure(self.measure)
        return measure if measure.ties == "expected" else replace(measure, ties="pessimistic")

    def _is_drawn(self) -> bool:
        return isinstance(self._objective(parse_measure(self.measure)), Sampled)

    def _settings(self, names: tuple[str, ...]) -> dict[str, Any]:
        """What LightGBM calls them."""
        return {
            "learning_rate": self.rate,
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
        } | ({"monotone_constraints": [self._direction(name) for name in names]} if self.rising or self.falling else {})

    def _direction(self, name: str) -> int:
        return 1 if name in self.rising else -1 if name in self.falling else 0


@dataclass(frozen=True, eq=False)
class Growth:
    """An optimizer whose steps are trees, and whose theta is how many there are; the trees themselves are in the forest."""

    ranker: BoostedRanker
    forest: Forest
    objective: Objective
    weigh: Weigher
    bound: Sequence[BoundMeasure]  #: what is reported, on training and on validation data
    bag: int  #: the number of the forest
    others: Sequence[PerDocument | int]  #: the sums of the scores of those before, of both

    def init(self, problem: None, theta: Theta, rng: np.random.Generator) -> State:
        """What there is; of nothing, the first tree: without one all documents tie."""
        return self._state(theta) if theta[0] else self._grown(State(theta, 0.0))

    def step(self, problem: None, state: State) -> State:
        """One more tree."""
        return self._grown(state)

    def value_of_mean(self, which: int) -> float:
        """What the mean of this forest and all before comes to, on training (0) or validation data (1)."""
        return self.bound[which].mean((self.others[which] + self.forest.scores[which]) / (self.bag + 1))

    def _grown(self, state: State) -> State:
        number = int(state.theta[0])
        seen = self._seen(number)
        tree = self.forest.grow(*self._forces(number, seen), self._draws(number))
        if tree is None:
            return replace(state if number else self._state(state.theta), done=True, trouble="" if number else NO_SPLIT)
        self.forest.add(tree, self.weigh(self.forest, tree, seen))
        return self._state(np.array([number + 1.0, self.bag]))

    def _state(self, theta: Theta) -> State:
        return State(theta, self.value_of_mean(0), int(theta[0]))

    def _forces(self, number: int, seen: PerQuery) -> tuple[PerDocument, PerDocument]:
        """The slope and the curvature at the scores, for the tree of that number."""
        drawn = self.objective.drawn(self._place(number)) if isinstance(self.objective, Sampled) else self.objective
        asked = drawn.on(self.bound[0].data), self.forest.scores[0], self.bound[0].data.indptr, seen
        _, slope, curvature = _core.answers(*asked, True, True, thread_count(self.ranker.threads))
        if not curvature.any():
            curvature = np.repeat(seen, self.bound[0].data.sizes)
        if self.bound[0].data.sample_weight is None:
            return slope, curvature
        return slope * self.bound[0].data.sample_weight, curvature * self.bound[0].data.sample_weight

    def _place(self, number: int) -> int:
        """Of a tree among all, for draws of its own."""
        return self.bag * self.ranker.trees + number

    def _seen(self, number: int) -> PerQuery:
        """The weights of the queries, 0 for those that the tree of that number does not see."""
        weight = self.bound[0].data.weights
        if self.ranker.query_fraction == 1:
            return weight
        rng = np.random.default_rng([self.ranker.seed, self._place(number)])
        return np.where(rng.random(len(weight)) < self.ranker.query_fraction, weight, 0.0)

    def _draws(self, number: int) -> dict[str, int]:
        """Where features or thresholds are drawn: seeds for each tree, so that training that is taken up again draws the same."""
        drawn = {"feature_fraction_seed": self.ranker.feature_fraction < 1, "extra_seed": self.ranker.extra}
        rng = np.random.default_rng([self.ranker.seed, self._place(number), 1])
        return {name: int(rng.integers(2**31)) for name, is_drawn in drawn.items() if is_drawn}
