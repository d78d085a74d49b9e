"""What all experiments share: a value that says what to run, and a run that says whether a published finding holds."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from exactrank.data.folds import Fold, read_folds
from exactrank.data.synthetic import CubicPolynomial
from exactrank.reproduce.artificial import Sizes, three_parts
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Panel
from exactrank.table import Table

YAHOO, MICROSOFT = "as Yahoo", "as Microsoft"
SIZES: dict[str, Any] = {"yahoo": (19_944, 2_994, 6_983), "microsoft": (18_919, 6_306, 6_306)}  #: of the sets themselves

T = TypeVar("T")
Tell = Callable[[str], None]  #: is told what is done next
Some = Iterable[T | Iterable[T]]  #: some of them, one by one or several together


def silent(line: str) -> None:
    """Tells nobody."""


def flat(some: Some[T]) -> tuple[T, ...]:
    """All of them, one by one.

    >>> flat([1, [2, 3]])
    (1, 2, 3)
    """
    return tuple(one for each in some for one in (each if isinstance(each, Iterable) else (each,)))


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """A published experiment; by default on a reduced scale. The data is as large as ``features`` and ``documents`` per query say.

    The keyword ``full`` of a class holds what the scale of the paper sets. A file is called as its experiment, with _ for -.
    """

    name: ClassVar[str]
    paper: ClassVar[str]  #: who published it
    where: ClassVar[str]  #: the figures and tables that it runs again
    published: ClassVar[str]  #: what they found; the first sentence is the finding in short
    _full: ClassVar[Mapping[str, Any]]

    features: int = 50
    documents: int = 50
    seed: int = 0
    threads: int | None = None

    def __init_subclass__(cls, full: Mapping[str, Any] | None = None) -> None:
        cls.name, cls._full = cls.__module__.rpartition(".")[2].replace("_", "-"), full or {}

    @classmethod
    def full(cls, seed: int = 0) -> Self:
        """On the scale of the paper."""
        return cls(seed=seed, **cls._full)

    @property
    @abstractmethod
    def stages(self) -> int:
        """How often `run` tells what is done next."""

    @abstractmethod
    def run(self, tell: Tell = silent) -> Finding:
        """Do it all again."""

    def _source(self, documents: int | None = None, noise: float = 0.0) -> CubicPolynomial:
        """Of the artificial data."""
        return CubicPolynomial(self.features, documents or self.documents, noise=noise, seed=self.seed, threads=self.threads)

    def _finding(self, found: str | Iterable[str], checks: Some[Check], tables: Some[Table], panels: Some[Panel]) -> Finding:
        """``found`` is a text, or its sentences."""
        paper, told = f"{self.paper}, {self.where}", found if isinstance(found, str) else " ".join(found)
        return Finding(self.name, paper, self.published, told, flat(checks), flat(tables), flat(panels), repr(self))


@dataclass(frozen=True, kw_only=True)
class OnFolds(Experiment):
    """An experiment that takes the folders in ``data``, each with Fold1, Fold2, ... as LETOR has them, in place of artificial data."""

    data: tuple[str, ...] = ()

    @cached_property
    def given(self) -> list[tuple[str, list[Fold]]]:
        """The name and the folds of each folder."""
        return [(Path(folder).resolve().name, read_folds(folder, threads=self.threads)) for folder in self.data]


@dataclass(frozen=True, kw_only=True)
class AsYahooAndMicrosoft(OnFolds):
    """Noisy data with ``documents`` per query as Microsoft's set has, and a third as many as Yahoo's; or the folds in ``data``."""

    documents: int = 72
    noise: float = 1.0
    yahoo: Sizes = (2_000, 1_000, 2_000)
    microsoft: Sizes = (1_000, 500, 1_000)

    def _sets(self) -> list[tuple[str, list[Fold]]]:
        """The name and the folds of each set."""
        drawn = (YAHOO, max(1, self.documents // 3), self.yahoo), (MICROSOFT, self.documents, self.microsoft)
        return self.given or [(name, [three_parts(self._source(documents, self.noise), sizes)]) for name, documents, sizes in drawn]
