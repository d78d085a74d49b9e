"""A forest that grows on the workers of an engine, some trees at a time, and stays what it was when workers are lost.

The loop of training (`exactrank.training.run`) runs here, on the client, and asks for one tree after the other. Trees come in batches: all
workers grow some together (`exactrank.rankers.crew`), which takes about a second, and send the trees, and what the measure is
of each query after each of them; validation data stays here. So the judge, early stopping, checkpoints, progress and Ctrl-C are those of
any training. Batches do not change the trees; a few that nobody asks for grow in vain when training stops early.

When a worker is lost, those that are left are told to end, and begin again from the trees so far: training that is taken up
goes on to the same bits.
"""

import secrets
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import repeat
from typing import TypeVar, cast

import numpy as np

from exactrank.arrays import PerDocument, PerQuery
from exactrank.data.ranking_data import RankingData
from exactrank.engine.engine import Engine, Part, Partitioned, fold
from exactrank.engine.partitions import Partition
from exactrank.engine.together import LostWorkerError, abandoned, hosts, threads_of, together
from exactrank.errors import EngineError, LostWorkerWarning
from exactrank.measures.bound import BoundMeasure, mean_over_queries
from exactrank.objectives.bounded_gain import gentle
from exactrank.objectives.exact_sums import rounded
from exactrank.objectives.losses import SquaredError
from exactrank.objectives.score_space import Objective
from exactrank.optimizers.boosting import Growth
from exactrank.rankers.boosted import BoostedRanker, Boosting
from exactrank.rankers.crew import Load, Orders, begin, end, grow, muster
from exactrank.rankers.forest import Trees
from exactrank.rankers.rank import Grown, Plan, Values
from exactrank.scorers.base import Scorer
from exactrank.scorers.tree_ensemble import TreeEnsemble
from exactrank.scorers.tree_table import TreeTable
from exactrank.training.judge import Task, severe, validated
from exactrank.training.progress import Trained, Verdict
from exactrank.training.run import Recorder, Run

A = TypeVar("A")
SECONDS_PER_BATCH = 1.0
MOST_TREES = 64  #: of a batch
#: How often in a row workers may be lost before any tree has grown.
TRIES = 5


class ClusterForest:
    """Up to ``most`` trees on the data of ``task``; they begin to grow when the first is asked for. Validation data is judged here."""

    barren = Boosting.barren

    def __init__(self, plan: Plan, task: Task, most: int) -> None:
        self._plan, self._task, self._data, self._most = plan, task, cast(Partitioned, task.data), most
        self._table: TreeTable | None = None
        self._weights, self._verdicts = tuple[float, ...](), dict[int, Verdict]()
        self._ended = False
        self._crews: Crews | None = None
        self._batch = 1
        self._scores: PerDocument | None = None  #: of validation documents, by all trees

    def table(self, weights: Sequence[float]) -> TreeTable:
        """The first trees."""
        if self._table is None:
            raise TypeError("no trees have grown")
        return self._table if len(weights) == self._count else self._table.first(len(weights))

    def grown(self, trees: Trees) -> Trees:
        """``trees`` with one more, or as they are where no split is possible."""
        self._take_up(trees)
        while trees.count == self._count and not self._ended:
            self._grow(max(1, min(self._batch, self._most - self._count)))
        return trees if trees.count == self._count else replace(trees, weights=self._weights[: trees.count + 1], kept=(), forest=self)

    def verdict(self, trees: Trees) -> Verdict:
        """What is reported of ``trees``, and selects them."""
        self._take_up(trees)
        if trees.count not in self._verdicts:
            self._grow(0)
        return self._verdicts[trees.count]

    @property
    def _count(self) -> int:
        """How many trees there are."""
        return len(self._weights)

    def close(self) -> None:
        """End the work on all workers."""
        if self._crews is not None:
            self._crews.end()
        self._crews = None

    def _take_up(self, trees: Trees) -> None:
        """Go on from ``trees`` where they grew elsewhere."""
        if trees.forest is self or (not trees.count and not self._count):
            return
        if trees.count == self._count and trees.read is self._table is not None:
            return
        self.close()
        self._table, self._weights, self._ended, self._verdicts = trees.table if trees.count else None, trees.weights, False, {}
        self._scores = None

    def _grow(self, count: int) -> None:
        """Up to ``count`` trees more; workers that are lost on the way are done without."""
        for _ in range(TRIES):
            try:
                begun = time.monotonic()
                if self._crews is None:
                    self._crews = Crews.begun(self._plan, self._data, self._table, self._task.threads)
                    begun = time.monotonic()
                self._hear(count, self._crews.grow(count))
                if count and time.monotonic() - begun < SECONDS_PER_BATCH / 2:
                    self._batch = min(MOST_TREES, 2 * self._batch)
                return
            except LostWorkerError as error:
                self.close()
                warnings.warn(
                    f"{error}; trees grow on from number {self._count} on the workers that are left", LostWorkerWarning, stacklevel=2
                )
                trouble = error
        raise EngineError(f"workers were lost {TRIES} times in a row, and no tree has grown: {trouble}") from trouble

    def _hear(self, count: int, heard: Sequence[tuple[Load, Grown]]) -> None:
        """Take the trees of a batch, and what the measure is after each."""
        table, made = next((grown.table for _, grown in heard if grown.table is not None), None), len(heard[0][1].values)
        values = np.empty((made, 2, self._data.n_queries))
        for load, grown in heard:
            values[:, :, load.queries] = grown.values
        first = self._count + 1 if count else self._count
        for place, (both, scores) in enumerate(zip(values, self._staged(table), strict=False)):
            self._verdicts[first + place] = self._verdict(both, scores)
        if table is not None:
            self._table = table if self._table is None else self._table.joined(table)
        self._weights, self._ended = (*self._weights, *heard[0][1].weights), heard[0][1].ended

    def _staged(self, table: TreeTable | None) -> Iterator[PerDocument | None]:
        """The scores of validation documents after each tree of ``table``, or where there is none by the trees so far."""
        valid, threads = self._task.valid, self._task.threads
        if valid is None:
            yield from repeat(None)
            return
        if self._scores is None:
            self._scores = np.zeros(valid.n_documents) if self._table is None else TreeEnsemble(self._table).score(valid.X, threads)
        if table is None:
            yield self._scores
            return
        for tree in TreeEnsemble(table).single_trees():
            self._scores = self._scores + tree.score(valid.X, threads)
            yield self._scores

    def _verdict(self, values: Values, scores: PerDocument | None) -> Verdict:
        """As `exactrank.training.judge.Judge` has it."""
        value, goodness = (mean_over_queries(each, self._data.weights) for each in values)
        if scores is None:
            return Verdict(value, None, goodness)
        return validated(value, *self._valid, scores)

    @cached_property
    def _valid(self) -> tuple[BoundMeasure, BoundMeasure]:
        """The measure on validation data, as asked and as it selects."""
        measure, valid = self._task.measure, cast(RankingData, self._task.valid)
        asked = measure.on(valid, threads=self._task.threads)
        return asked, gentle(asked.with_ties(severe(measure).ties))


@dataclass(frozen=True, eq=False)
class Crews:
    """The ranks of one session, on all workers."""

    engine: Engine
    session: str
    loads: dict[str, dict[int, Load]]  #: by worker and rank

    @classmethod
    def begun(cls, plan: Plan, data: Partitioned, start: TreeTable | None, threads: int | None) -> "Crews":
        """Ranks on all workers that live now, ready to grow trees after those of ``start``."""
        crews = cls(data.engine, secrets.token_hex(8), _loads(data))
        try:
            musters = {host: partial(muster, crews.session, _name(host), len(own)) for host, own in crews.loads.items()}
            found = crews._together(musters, "the ports of ranks")
            by_rank = {rank: at for host, own in crews.loads.items() for rank, at in zip(own, found[host], strict=True)}
            addresses = tuple(by_rank[rank] for rank in range(len(by_rank)))
            key, orders = secrets.token_bytes(16), {}
            for host, own in crews.loads.items():
                each = max(1, threads_of(data.engine, host, threads) // len(own))
                orders[host] = partial(begin, crews.session, Orders(plan, own, addresses, key, start, each))
            crews._together(orders, "bins of their documents")
        except BaseException:
            crews.end()
            raise
        return crews

    def grow(self, count: int) -> list[tuple[Load, Grown]]:
        """What each rank found, with what it holds."""
        found = self._together({host: partial(grow, self.session, count) for host in self.loads}, f"{count} trees")
        return [pair for host, own in self.loads.items() for pair in zip(own.values(), found[host], strict=True)]

    def end(self) -> None:
        """All ranks end, whatever they do."""
        abandoned(self.engine, partial(end, self.session))

    def _together(self, work: Mapping[str, Callable[[], A]], what: str) -> dict[str, A]:
        return together(self.engine, work, what, partial(end, self.session))


def _loads(data: Partitioned) -> dict[str, dict[int, Load]]:
    """Who holds what: each worker a run of partitions, and ranks in the order of the partitions; a worker alone has two ranks."""
    living = hosts(data.engine)
    runs = _runs(data.partitions, len(living))
    loads = [Load(data.key, tuple(run), tuple(int(data.indptr[each.first]) for each in run)) for run in runs]
    if len(loads) == 1 and data.n_queries > 1:
        return {living[0]: {half: replace(loads[0], half=half) for half in range(2)}}
    return {host: {rank: load} for rank, (host, load) in enumerate(zip(living, loads, strict=False))}


def _runs(partitions: Sequence[Partition], count: int) -> list[list[Partition]]:
    """``partitions`` in up to ``count`` runs of about as many documents."""
    total, runs = sum(each.documents for each in partitions), list[list[Partition]]([[]])
    before = 0
    for each in partitions:
        if runs[-1] and before + each.documents / 2 > total * len(runs) / count and len(runs) < count:
            runs.append([])
        runs[-1].append(each)
        before += each.documents
    return runs


def _name(host: str) -> str:
    """The machine of a worker's address.

    >>> _name("tcp://10.0.0.5:40331"), _name("tls://[fe80::1]:8786"), _name("inproc://10.0.0.5/81/1"), _name("")
    ('10.0.0.5', 'fe80::1', '127.0.0.1', '127.0.0.1')
    """
    scheme, _, rest = host.partition("://")
    return rest.rpartition(":")[0].strip("[]") if scheme in ("tcp", "tls", "ucx") else "127.0.0.1"


def plan_of(ranker: BoostedRanker, task: Task, objective: Objective) -> Plan:
    """What ranks are told of ``ranker`` on the data of ``task``."""
    data = cast(Partitioned, task.data)
    names, kinds = data.feature_names, ranker.kinds(data.feature_names, data.levels)
    if isinstance(objective, SquaredError):
        objective = replace(objective, mean=_mean_grade(data))
    here = type(ranker)(**ranker.get_params() | {"engine": None})  # a client cannot be sent
    settings = ranker._settings(names) | ranker._of_kinds(kinds)
    return Plan(settings, kinds, names, objective, task.measure, ranker.draws(task.bag), data.n_documents, data.weights, here.weigher)


def fit_on_engine(ranker: BoostedRanker, task: Task, objective: Objective, recorder: Recorder[Scorer]) -> Trained[Scorer]:
    """What `BoostedRanker` finds on data that an engine answers for."""
    start = Trees.of(task.start.table) if isinstance(task.start, TreeEnsemble) else Trees()
    most, patience = start.count + ranker.trees, None if task.valid is None else ranker.patience
    forest = ClusterForest(plan_of(ranker, task, objective), task, most)
    run = Run(Growth[Trees](), forest, start, lambda trees, _: forest.verdict(trees), most, patience=patience)
    try:
        return ranker.finished(run, task.data.feature_names, task.data.levels, recorder)
    finally:
        forest.close()


@dataclass(frozen=True, eq=False)
class WeighedGrades:
    """The largest weight and weighed grade or, where these ``largest`` are known, the sums of both, made exact as those of forces."""

    weights: PerQuery  #: of all queries
    documents: int
    largest: tuple[float, float] | None = None

    def __call__(self, part: Part) -> tuple[float, float]:
        """Of the documents of ``part``."""
        data = part.data
        weight = np.repeat(self.weights[part.first : part.first + data.n_queries], data.sizes)
        weight = weight if data.sample_weight is None else weight * data.sample_weight
        both = weight, weight * data.y
        if self.largest is None:
            return float(both[0].max()), float(np.abs(both[1]).max())
        one, other = (float(rounded(each, largest, self.documents).sum()) for each, largest in zip(both, self.largest, strict=True))
        return one, other


def _mean_grade(data: Partitioned) -> float:
    """The mean of all grades by their weights, the same for any cut."""
    question = WeighedGrades(data.weights, data.n_documents)
    highest = np.max(fold(data, question), axis=0)
    weight, weighed = np.sum(fold(data, replace(question, largest=(float(highest[0]), float(highest[1])))), axis=0)
    return float(weighed / weight)
