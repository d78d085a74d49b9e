"""What a comparison leaves behind: plain values, which are written as JSON after every fit and know nothing of how they are shown.

They are read by their type hints. JSON has no NaN; it is written as null, which is read as NaN where the hint says ``float``, and as
None where it says ``float | None``.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from exactrank._support.error_text import clipped
from exactrank._support.files import whole_file
from exactrank.errors import DataError

#: The file of all results.
RECORD = "comparison.json"
#: All files that `Comparison.write` makes.
FILES = (RECORD, "tables.md", "tables.tex", "results.csv", "report.html")

#: nDCG at each of these ranks is measured besides what was asked for; a report draws it.
RANKS = range(1, 11)
#: What a value of JSON must be to stand for one of these.
PLAIN: Mapping[type, tuple[type, ...]] = {float: (float, int), int: (int,), str: (str,), bool: (bool,)}

T = TypeVar("T")


@dataclass(frozen=True)
class Point:
    """Training as it stood after a step."""

    step: int
    seconds: float  #: since training began
    train: float  #: of the measure that is trained on, or of the method's own objective where that is all it tells
    valid: float | None
    run: str = ""  #: which run, where training has several that do not begin where another ended


@dataclass(frozen=True)
class Trial:
    """Settings that were tried, and the mean of the measure that they reached on validation data."""

    settings: Mapping[str, Any]
    valid: float | None
    seconds: float
    failed: str = ""  #: why there is no value, where that is so


@dataclass(frozen=True)
class FeatureWeights:
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
    trials: tuple[Trial, ...] = field(default=(), repr=False)
    seconds: float = 0.0  #: of the final fit
    memory: int = 0  #: the most bytes that its process held at a time, data included
    train: Mapping[str, float | None] = field(default_factory=dict)  #: means by measure; nothing where there are no scores
    valid: Mapping[str, float | None] = field(default_factory=dict)
    #: By measure and nDCG@1 to nDCG@10, one per test query.
    test: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict, repr=False)
    curve: tuple[Point, ...] = field(default=(), repr=False)
    weights: FeatureWeights | None = field(default=None, repr=False)
    slice: Slice | None = field(default=None, repr=False)
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
    test_qid: tuple[str, ...] = field(repr=False)  #: the queries that `Fit.test` is about
    test_weight: tuple[float, ...] | None = field(default=None, repr=False)  #: of each, where queries have weights
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


def to_record(value: Any) -> Any:
    """``value`` in the types of JSON.

    >>> to_record({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if is_dataclass(value):
        return {field.name: to_record(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_record(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_record(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | NoneType) else str(value)


def from_record(hint: Any, record: Any) -> Any:
    """What a record that `to_record` made stands for: a value of the type ``hint``."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return None if record is None else from_record(next(kind for kind in inside if kind is not NoneType), record)
    if origin is tuple:
        return tuple(from_record(inside[0], item) for item in record)
    if origin is Mapping:
        return {key: from_record(inside[1], item) for key, item in record.items()}
    if hint is float and record is None:
        return math.nan
    if hint in PLAIN and not isinstance(record, PLAIN[hint]):
        raise TypeError(f"{record!r:.40} is no {hint.__name__}")
    if not (isinstance(hint, type) and is_dataclass(hint)):
        return record
    hints = get_type_hints(hint)
    return hint(**{name: from_record(hints[name], record[name]) for name in hints if name in record})


def write_record(path: Path, value: Any) -> None:
    """Write ``value`` as JSON; the file is whole or not there."""
    with whole_file(path, force=True) as file:
        file.write((json.dumps(to_record(value), allow_nan=False) + "\n").encode())


def read_record(kind: type[T], path: Path) -> T:
    """Read what `write_record` wrote."""
    try:
        found: T = from_record(kind, json.loads(path.read_bytes()))
        return found
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(f"{path} is damaged ({clipped(str(error), 200)}); delete it, and it will be made again") from None
