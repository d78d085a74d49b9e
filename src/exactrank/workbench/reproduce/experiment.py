"""What all experiments share: a value that says what to run, and a run that says whether a published finding holds."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Self

from exactrank.workbench.reproduce.finding import Check, Finding, Table
from exactrank.workbench.reproduce.panels import Panel
from exactrank.workbench.synthetic import CubicPolynomial

Tell = Callable[[str], None]  #: is told what is done next


def silent(line: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """A published experiment; by default on a reduced scale. The data is as large as ``features`` and ``documents`` a query say."""

    name: ClassVar[str]
    paper: ClassVar[str]  #: who published it, and where
    published: ClassVar[str]  #: what they found

    features: int = 50
    documents: int = 50
    seed: int = 0
    threads: int | None = None

    @classmethod
    @abstractmethod
    def full(cls, seed: int = 0) -> Self:
        """On the scale of the paper."""

    @abstractmethod
    def run(self, tell: Tell = silent) -> Finding:
        """Do it all again."""

    def _source(self, documents: int | None = None) -> CubicPolynomial:
        """Of the artificial data."""
        return CubicPolynomial(self.features, documents or self.documents, seed=self.seed, threads=self.threads)

    def _finding(self, found: str, checks: Iterable[Check], tables: Iterable[Table], panels: Iterable[Panel]) -> Finding:
        return Finding(self.name, self.paper, self.published, found, tuple(checks), tuple(tables), tuple(panels), repr(self))
