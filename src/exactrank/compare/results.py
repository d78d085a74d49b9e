"""What a comparison leaves behind: plain values, which are written as JSON after every fit and know nothing of how they are shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from exactrank.errors import DataError

#: nDCG at each of these ranks is measured besides what was asked for; a report draws it.
RANKS = range(1, 11)


@dataclass(frozen=True)
class Point:
    """Training as it stood after a step."""

    step: int
    seconds: float  #: since training began
    train: float  #: of the measure that is trained on, or of the method's own objective where that is all it tells
    valid: float | None


@dataclass(frozen=True)
class Trial:
    """Settings that were tried, and the mean of the measure that they reached on validation data."""

    settings: Mapping[str, Any]
    valid: float | None
    seconds: float
    failed: str = ""  #: why there is no value, where that is so


@dataclass(frozen=True)
class Weights:
    """How much each feature counts in a model, in units that ``kind`` names."""

    kind: str
    names: tuple[str, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.values):
            raise DataError(f"there are {len(self.values):,} weights for {len(self.names):,} features; give one for each")


@dataclass(frozen=True)
class Slice:
    """The exact step function of the measure where a multiple of one feature is added to the scores; 0 is the model as it is.

    Between ``edges[i]`` and ``edges[i + 1]`` the measure lies between ``low[i]`` and ``high[i]``; they differ only where steps are too
    many to be drawn one by one.
    """

    feature: str
    part: str  #: the data on which it is measured: "validation" or "test"
    edges: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Fit:
    """A method on one division of a data set: tuned, fitted, and measured; or why it failed."""

    dataset: str
    fold: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)  #: all of them
    chosen: Mapping[str, Any] = field(default_factory=dict)  #: those that tuning chose
    trials: tuple[Trial, ...] = ()
    seconds: float = 0.0  #: of the final fit
    memory: int = 0  #: the most bytes that its process held at a time, data included
    train: Mapping[str, float | None] = field(default_factory=dict)  #: means by measure; nothing where there are no scores
    valid: Mapping[str, float | None] = field(default_factory=dict)
    test: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)  #: by measure and nDCG@1 to nDCG@10, one a test query
    curve: tuple[Point, ...] = ()
    weights: Weights | None = None
    slice: Slice | None = None
    models: tuple[str, ...] = ()  #: names of its files in the folder of models
    failed: str = ""


@dataclass(frozen=True)
class PartSummary:
    """How large a part of a division is."""

    queries: int
    documents: int


@dataclass(frozen=True)
class FoldSummary:
    """One division of a data set."""

    name: str
    train: PartSummary
    valid: PartSummary
    test: PartSummary
    test_qid: tuple[str, ...]  #: the queries that `Fit.test` is about
    test_weight: tuple[float, ...] | None = None  #: of each, where queries have weights
    checksum: str = ""  #: of all three parts


@dataclass(frozen=True)
class DataSummary:
    """One data set; queries, documents and grades are those of its test parts and all others together, each counted once."""

    name: str
    source: str
    queries: int
    documents: int
    features: int
    grades: Mapping[str, int]  #: how many documents have each
    folds: tuple[FoldSummary, ...]


@dataclass(frozen=True)
class MethodSummary:
    """One contender."""

    name: str  #: in tables
    about: str  #: one line
    configuration: str  #: how it would be written in Python
    space: Mapping[str, str]  #: what tuning could choose from


@dataclass(frozen=True, eq=False)
class Results:
    """Methods on data sets; the first measure is the one that was trained and tuned on."""

    datasets: tuple[DataSummary, ...]
    methods: tuple[MethodSummary, ...]
    measures: Mapping[str, str]  #: names as given, and the exact definition of each
    baseline: str
    fits: tuple[Fit, ...]
    run: Mapping[str, Any]  #: seed, trials or seconds, workers, threads, versions, machine: whatever is needed to run it again
    complete: bool  #: False where it was interrupted: some fits are missing
    seconds: float = 0.0  #: from beginning to end, all sessions together
