"""The results of a comparison: plain values, written as JSON after every fit, which know nothing of how they are shown.

They are read by their type hints (`exactrank._support.json_values.decode_record`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from exactrank._support.files import whole_file
from exactrank._support.json_values import decode_record, encode_record
from exactrank._support.text import clip
from exactrank.errors import DataError

#: The file of all results.
RECORD = "comparison.json"
#: All files that `Comparison.write` writes.
FILES = (RECORD, "tables.md", "tables.tex", "results.csv", "report.html")
#: nDCG at each of these ranks is measured besides the measures of the comparison, for the report.
RANKS = range(1, 11)

T = TypeVar("T")
Settings: TypeAlias = Mapping[str, object]  #: values by the names of the settings


@dataclass(frozen=True)
class Point:
    """The state of training after a step."""

    step: int
    seconds: float  #: since training began
    train: float  #: of the measure that is trained on, or of the method's own objective if it reports nothing else
    valid: float | None
    run: str = ""  #: the restart that the step belongs to, where training has several


@dataclass(frozen=True)
class Trial:
    """Settings that tuning tried, and the mean of the measure that they reached on validation data."""

    settings: Mapping[str, Any]
    valid: float | None
    seconds: float
    failed: str = ""  #: why there is no value


@dataclass(frozen=True)
class FeatureWeights:
    """The importance of each feature in a model, in units that ``kind`` names."""

    kind: str
    names: tuple[str, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.names) != len(self.values):
            raise DataError(f"there are {len(self.values):,} weights for {len(self.names):,} features; give one for each")


@dataclass(frozen=True)
class Slice:
    """The measure as an exact step function of a multiple of one feature added to the scores; 0 is the model as it is.

    Between ``edges[i]`` and ``edges[i + 1]`` the measure lies between ``low[i]`` and ``high[i]``, which differ only if there are too
    many steps to draw each.
    """

    feature: str
    part: str  #: the data on which it is measured: "validation" or "test"
    edges: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Fit:
    """A method on one division of a data set: tuned, fitted and measured, or the reason why it failed."""

    dataset: str
    fold: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)  #: all settings
    tuned_settings: Mapping[str, Any] = field(default_factory=dict)  #: those that tuning chose
    trials: tuple[Trial, ...] = field(default=(), repr=False)
    seconds: float = 0.0  #: of the final fit
    memory: int = 0  #: peak bytes of its process, data included
    train: Mapping[str, float | None] = field(default_factory=dict)  #: means by measure; empty if there are no scores
    valid: Mapping[str, float | None] = field(default_factory=dict)
    #: By measure and nDCG@1 to nDCG@10, one per test query.
    test: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict, repr=False)
    curve: tuple[Point, ...] = field(default=(), repr=False)
    weights: FeatureWeights | None = field(default=None, repr=False)
    slice: Slice | None = field(default=None, repr=False)
    #: By the same measures and a machine's grades, one per test query and then one per query that only the machine has graded.
    machine: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict, repr=False)
    models: tuple[str, ...] = ()  #: names of its files in the folder of models
    failed: str = ""
    remarks: Mapping[str, str] = field(default_factory=dict)  #: by measure: why the mean on test queries may not say what it seems to


@dataclass(frozen=True)
class PartSummary:
    """The size of a part of a division."""

    queries: int
    documents: int


@dataclass(frozen=True)
class FoldSummary:
    """A division of a data set."""

    name: str
    train: PartSummary
    valid: PartSummary
    test: PartSummary
    test_qid: tuple[str, ...] = field(repr=False)  #: the queries of the values in `Fit.test`
    test_weight: tuple[float, ...] | None = field(default=None, repr=False)  #: of each, where queries have weights
    checksum: str = ""  #: of all three parts


@dataclass(frozen=True)
class MachineSummary:
    """A machine's grades of the test queries and of further ones, and how far they agree with those of people."""

    further_qid: tuple[str, ...] = field(repr=False)  #: the queries that only the machine has graded
    further_weight: tuple[float, ...] | None = field(repr=False)  #: of each, where queries have weights
    documents: int  #: graded by both
    kappa: float | None  #: weighted, with its 95% interval; None if they have graded no document in common
    kappa_interval: tuple[float, float] | None
    bias: float | None  #: the mean of the machine's grade minus the human one
    checksum: str


@dataclass(frozen=True)
class DataSummary:
    """A data set; queries, documents and grades of all parts together, each counted once."""

    name: str
    source: str
    queries: int
    documents: int
    features: int
    grades: Mapping[str, int]  #: number of documents by grade
    folds: tuple[FoldSummary, ...]
    machine: MachineSummary | None = None


@dataclass(frozen=True)
class MethodSummary:
    """A contender."""

    name: str  #: in tables
    about: str  #: a line
    configuration: str  #: in the notation of Python
    space: Mapping[str, str]  #: the choices of tuning, by setting


@dataclass(frozen=True, eq=False)
class Results:
    """Methods on data sets; the first measure is trained and tuned on."""

    datasets: tuple[DataSummary, ...]
    methods: tuple[MethodSummary, ...]
    measures: Mapping[str, str]  #: the exact definition of each measure, by its name
    baseline: str
    fits: tuple[Fit, ...]
    run: Mapping[str, Any]  #: seed, trials or seconds, workers, threads, versions, machine: all that is needed to run it again
    complete: bool  #: False if it was interrupted and fits are missing
    seconds: float = 0.0  #: from beginning to end, all sessions together


def write_record(path: Path, value: object) -> None:
    """Write ``value`` as JSON; the file is complete or absent."""
    with whole_file(path, force=True) as file:
        file.write((json.dumps(encode_record(value), allow_nan=False) + "\n").encode())


def read_record(kind: type[T], path: Path) -> T:
    """Read a value of the type ``kind`` that `write_record` wrote."""
    try:
        value = decode_record(kind, json.loads(path.read_bytes()))
        if not isinstance(value, kind):
            raise TypeError(f"it holds {type(value).__name__}, not {kind.__name__}")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"{path} is damaged ({clip(str(error), 200)}); delete it, and it will be made again") from None
    return value
