"""The base of all experiments: a description of what to run, a run that tests the published finding, and training."""

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from exactrank._support.arrays import PerQuery
from exactrank._support.tables import Table
from exactrank.compare.statistics import drop_missing, signed_ranks, wilcoxon
from exactrank.data.folds import Fold, read_folds
from exactrank.data.ranking_data import RankingData
from exactrank.data.synthetic import CubicPolynomial
from exactrank.learning.training.progress import Listener
from exactrank.measures import NDCG, Measure
from exactrank.measures.evaluate import measure_scores
from exactrank.rankers.base import Ranker
from exactrank.rankers.gradient import GradientRanker
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.reproduce.artificial import PermutedPolynomial, Sizes, mix_features, three_parts
from exactrank.reproduce.finding import Finding, Inequality, Panel

YAHOO, MICROSOFT = "as Yahoo", "as Microsoft"
SIZES: dict[str, Any] = {"yahoo": (19_944, 2_994, 6_983), "microsoft": (18_919, 6_306, 6_306)}  #: of the sets themselves
RANKS = tuple(range(1, 11))
#: By experiment what was published, where, and how ours differs; and figures with their source.
PUBLISHED: dict[str, Any] = json.loads((files("exactrank.reproduce") / "published.json").read_text())
MEASURES = tuple(f"nDCG@{k}" for k in RANKS)
#: NDCG of both papers with nets: a document of grade 0 is worth nothing, one of any other grade y is worth 2^(y+1) - 1.
NETS_NDCG = NDCG(gain={0: 0, 1: 3, 2: 7, 3: 15, 4: 31})
NETS_MEASURES = tuple(replace(NETS_NDCG, k=k) for k in RANKS)

T = TypeVar("T")
R = TypeVar("R", bound=Ranker)
Values = npt.NDArray[np.float64]  #: mostly of test queries: one row per measure
Tell = Callable[[str], None]  #: called with what is done next
Piece = str | Inequality | Table | Panel  #: of a finding: a sentence, an inequality, a table, a part of the figure


def silent(line: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """A published experiment, by default on a reduced scale. The data has ``features`` features and ``documents`` documents per query.

    The class keyword ``name`` is its name, and ``full`` holds the settings of the paper's scale.
    """

    name: ClassVar[str]
    paper: ClassVar[str]  #: who published it
    where: ClassVar[tuple[str, ...]]  #: the figures and tables that it reproduces
    published: ClassVar[str]  #: what they found; the first sentence is a summary
    differs: ClassVar[str]  #: how its settings differ from the published ones
    tried: ClassVar[str] = ""  #: what was tried where the verdict is another one
    estimate: ClassVar[str]  #: how long it takes on the scale of the paper, on one core
    _full: ClassVar[Mapping[str, Any]]
    polynomial: ClassVar[type[CubicPolynomial]] = CubicPolynomial  #: the artificial data

    features: int = 50
    documents: int = 50
    seed: int = 0
    threads: int | None = None

    def __init_subclass__(cls, name: str = "", full: Mapping[str, Any] | None = None) -> None:
        cls.name, cls._full = name, full or {}
        for key, text in PUBLISHED["experiments"].get(name, {}).items():
            setattr(cls, key, tuple(text) if isinstance(text, list) else text)

    @classmethod
    def full(cls, seed: int = 0) -> Self:
        """On the scale of the paper."""
        return cls(seed=seed, **cls._full)

    def run(self, tell: Tell = silent) -> Finding:
        """Run the experiment."""
        pieces = list(self._pieces(tell))

        def every(kind: type[T]) -> tuple[T, ...]:
            return tuple(piece for piece in pieces if isinstance(piece, kind))

        paper, summary = f"{self.paper}, {', '.join(self.where)}", " ".join(every(str))
        return Finding(self.name, paper, self.published, summary, every(Inequality), every(Table), every(Panel), repr(self))

    @abstractmethod
    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        """Yield the finding piece by piece; pieces of one kind keep their order."""

    def _source(self, **settings: Any) -> CubicPolynomial:
        """The source of the artificial data; ``settings`` replace those of the experiment."""
        defaults = {"features": self.features, "documents": self.documents, "seed": self.seed, "threads": self.threads}
        return self.polynomial(**defaults | settings)

    def _fold(self, sizes: Sizes, *, mixed: bool = False, **settings: Any) -> Fold:
        """Artificial data, with mixed features or independent ones."""
        fold = three_parts(self._source(**settings), sizes)
        parts = (fold.train, fold.valid, fold.test)
        return Fold(fold.name, *(mix_features(part, self.seed) for part in parts)) if mixed else fold


@dataclass(frozen=True, kw_only=True)
class OnFolds(Experiment):
    """An experiment that takes the folders in ``data``, each with Fold1, Fold2, ... as in LETOR, instead of artificial data."""

    data: tuple[str, ...] = ()

    @cached_property
    def folders(self) -> list[tuple[str, list[Fold]]]:
        """The name and the folds of each folder."""
        return [(Path(folder).resolve().name, read_folds(folder, threads=self.threads)) for folder in self.data]


@dataclass(frozen=True, kw_only=True)
class AsYahooAndMicrosoft(OnFolds):
    """Noisy data: like Microsoft's with ``documents`` per query, and like Yahoo's with a third as many; or the folds in ``data``."""

    documents: int = 72
    noise: float = 1.0
    yahoo: Sizes = (2_000, 1_000, 2_000)
    microsoft: Sizes = (1_000, 500, 1_000)

    def _sets(self, *, mixed: bool = False) -> list[tuple[str, list[Fold]]]:
        """The name and the folds of each set."""
        sets = (YAHOO, max(1, self.documents // 3), self.yahoo), (MICROSOFT, self.documents, self.microsoft)
        return self.folders or [
            (name, [self._fold(sizes, mixed=mixed, documents=length, noise=self.noise)]) for name, length, sizes in sets
        ]


class WithNets(Experiment):
    """An experiment with nets, trained as in both papers: one update per query, no penalty on weights, random starts.

    Training continues for all epochs, with new random parameters when the training cost has not fallen for 50 of them (`SGD`).
    """

    polynomial = PermutedPolynomial

    rates: tuple[float, ...]  #: of which validation data chooses one; a field of each experiment, as are the epochs
    epochs: int

    def _net(self, kind: type[GradientRanker], fold: Fold, tell: Tell, **settings: Any) -> Ranker:
        as_published: dict[str, Any] = {"start": "random"} if issubclass(kind, LambdaRank) else {}
        as_published |= {"measure": NETS_MEASURES[-1], "solver": "sgd", "l2": 0.0, "max_iter": self.epochs, "patience": self.epochs}
        as_published |= {"seed": self.seed, "threads": self.threads} | settings
        return choose_best((kind(learning_rate=rate, **as_published) for rate in self.rates), fold, tell)


def fit_ranker(ranker: R, train: RankingData, valid: RankingData | None = None, progress: bool | Listener = False) -> R:
    """Train ``ranker``. Ctrl-C, which ends training with the best model so far, ends the experiment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the experiment is about what a method reaches
        ranker.fit(train, valid=valid, progress=progress)
    if ranker.model_.training["interrupted"]:
        raise KeyboardInterrupt
    return ranker


def choose_best(rankers: Iterable[Ranker], fold: Fold, tell: Tell = silent) -> Ranker:
    """Train all ``rankers`` and keep the one that is best on the validation data, by their own measure."""
    trained: list[tuple[float, Ranker]] = []
    for ranker in rankers:
        tell(" ".join(repr(ranker).split()))
        fit_ranker(ranker, fold.train, fold.valid)
        trained.append((float(query_values(ranker, fold.valid, ranker.measure).mean()), ranker))
    return max(trained, key=lambda pair: pair[0])[1]


def query_values(ranker: Ranker, data: RankingData, measures: str | Measure | Sequence[str | Measure] = MEASURES) -> Values:
    """Return the values of ``measures`` for each query, one row per measure; by default nDCG at ranks 1 to 10."""
    return measure_scores(data, ranker.predict(data), measures, threads=ranker.threads).per_query


def signed_rank(ours: PerQuery, theirs: PerQuery) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test where ``ours`` are better, and 1 where they are worse.

    >>> signed_rank(np.arange(1.0, 7.0), np.zeros(6)), signed_rank(np.zeros(6), np.arange(1.0, 7.0)), signed_rank(np.ones(6), np.ones(6))
    (0.03125, 1.0, 1.0)
    """
    difference = drop_missing(ours - theirs)
    ahead = len(difference) > 1 and signed_ranks(difference).sum() > 0
    return wilcoxon(difference) if ahead else 1.0


def net(hidden: int | None) -> str:
    """Return the name of nets with that number of hidden units.

    >>> net(None), net(10)
    ('linear nets', 'two-layer nets (10 hidden units)')
    """
    return "linear nets" if hidden is None else f"two-layer nets ({hidden} hidden units)"
