"""What is needed to understand a comparison and to run it again: data, measures, settings, trials."""

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from exactrank.compare.page.charts import bar_chart
from exactrank.compare.page.numbers import plain
from exactrank.compare.page.table import Cell, Column, Row, Table, number, words
from exactrank.compare.results import DataSummary, Fit, FoldSummary, Trial
from exactrank.errors import MeasureError
from exactrank.measures import Measure
from exactrank.measures.parse import parse_measure
from exactrank.text import written

GRADES = 12  #: that have a bar of their own


@dataclass(frozen=True)
class Definition:
    """A measure in words and equations, which are those of the code that computes it."""

    name: str
    exact: str
    words: str
    equations: str


@dataclass(frozen=True)
class FitRecord:
    """One fit with all that it was given and all that was tried for it."""

    fit: Fit
    chosen: str
    settings: Sequence[tuple[str, str]]
    trials: Table | None


def definitions(measures: Mapping[str, str]) -> list[Definition]:
    """Every measure of a comparison."""
    return [_definition(name, exact) for name, exact in measures.items()]


def policies() -> str:
    """What all measures share: queries with nothing relevant, and ties."""
    return _documented(sys.modules[Measure.__module__]).rpartition("\n\n")[2]


def folds_table(data: DataSummary) -> Table:
    """How large the parts of each division are."""
    sizes = [Column(title, part) for part in ("train", "validation", "test") for title in ("queries", "documents")]
    columns = [Column("fold", words=True), *sizes, Column("checksum", words=True)]
    return Table(f"Divisions of {data.name}", columns, [_fold(fold) for fold in data.folds])


def grades_chart(data: DataSummary) -> Markup | None:
    """How many documents have each grade; those beyond `GRADES` together."""
    grades = list(data.grades.items())
    if len(grades) > GRADES:
        most = sorted(grades, key=lambda pair: -pair[1])[: GRADES - 1]
        rest = sum(data.grades.values()) - sum(count for _, count in most)
        grades = [*(pair for pair in grades if pair in most), (f"{len(grades) - len(most):,} others", rest)]
    if not grades:
        return None
    counts = [count for _, count in grades]
    return bar_chart([name for name, _ in grades], counts, [f"{count:,}" for count in counts], f"documents of {data.name} by grade")


def fit_record(fit: Fit) -> FitRecord:
    """Settings as they would be written in Python."""
    return FitRecord(fit, written(fit.chosen), [(name, repr(value)) for name, value in fit.settings.items()], _trials(fit.trials))


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names and values, those of mappings within by both names.

    >>> list(flat({"seed": 0, "versions": {"numpy": "2.0"}}))
    [('seed', '0'), ('versions: numpy', '2.0')]
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}: ")
        else:
            yield f"{prefix}{name}", value if isinstance(value, str) else repr(value)


def _definition(name: str, exact: str) -> Definition:
    try:
        kind = type(parse_measure(name))
    except MeasureError:  # a measure of the caller's own, whose definition is all there is
        return Definition(name, exact, "", "")
    return Definition(name, exact, _documented(kind), _documented(sys.modules[kind.__module__]))


def _documented(thing: object) -> str:
    return (inspect.getdoc(thing) or "").replace("``", "")


def _fold(fold: FoldSummary) -> Row:
    sizes = [number(size, f"{size:,}") for part in (fold.train, fold.valid, fold.test) for size in (part.queries, part.documents)]
    return Row((words(fold.name, "name"), *sizes, words(fold.checksum, "code")))


def _trials(trials: Sequence[Trial]) -> Table | None:
    """A row for each trial, in the order they were made."""
    if not trials:
        return None
    columns = [Column("trial"), Column("validation"), Column("seconds"), Column("settings", words=True)]
    best = max((trial.valid for trial in trials if trial.valid is not None), default=None)
    return Table("Trials of tuning", columns, [_trial(i, trial, best) for i, trial in enumerate(trials)])


def _trial(i: int, trial: Trial, best: float | None) -> Row:
    settings = written(trial.settings) or "as they are by default"
    reached = Cell("failed", None, "failed") if trial.failed else number(trial.valid, kind="best" if trial.valid == best else "")
    text = f"{settings}: {trial.failed}" if trial.failed else settings
    return Row((number(i, str(i)), reached, number(trial.seconds, plain(trial.seconds, 2)), words(text, "code")))
