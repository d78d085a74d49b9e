"""What all experiments share: a value that says what to run, and a run that says whether a published finding holds."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self

from exactrank.data.folds import Fold, read_folds
from exactrank.data.synthetic import CubicPolynomial
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Panel
from exactrank.table import Table

Tell = Callable[[str], None]  #: is told what is done next


def silent(line: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """A published experiment; by default on a reduced scale. The data is as large as ``features`` and ``documents`` a query say."""

    name: ClassVar[str]
    paper: ClassVar[str]  #: who published it
    where: ClassVar[str]  #: the figures and tables that it runs again
    published: ClassVar[str]  #: what they found; the first sentence is the finding in short

    features: int = 50
    documents: int = 50
    seed: int = 0
    threads: int | None = None

    @classmethod
    @abstractmethod
    def full(cls, seed: int = 0) -> Self:
        """On the scale of the paper."""

    @property
    @abstractmethod
    def stages(self) -> int:
        """How often `run` tells what is done next."""

    @abstractmethod
    def run(self, tell: Tell = silent) -> Finding:
        """Do it all again."""

    def _source(self, documents: int | None = None) -> CubicPolynomial:
        """Of the artificial data."""
        return CubicPolynomial(self.features, documents or self.documents, seed=self.seed, threads=self.threads)

    def _finding(self, found: str, checks: Iterable[Check], tables: Iterable[Table], panels: Iterable[Panel]) -> Finding:
        paper = f"{self.paper}, {self.where}"
        return Finding(self.name, paper, self.published, found, tuple(checks), tuple(tables), tuple(panels), repr(self))


@dataclass(frozen=True, kw_only=True)
class OnFolds(Experiment):
    """An experiment that takes the folders in ``data``, each with Fold1, Fold2, ... as LETOR has them, in place of artificial data."""

    data: tuple[str, ...] = ()

    @cached_property
    def given(self) -> list[tuple[str, list[Fold]]]:
        """The name and the folds of each folder."""
        return [(Path(folder).resolve().name, read_folds(folder, threads=self.threads)) for folder in self.data]
