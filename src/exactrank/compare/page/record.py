"""What is needed to understand a comparison and to run it again: data, measures, settings, trials."""

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from exactrank.compare.page.charts import bar_chart
from exactrank.compare.page.table import Cell, Column, Table, number, plain, words
from exactrank.compare.results import DataSummary, Fit
from exactrank.errors import MeasureError
from exactrank.measures import Measure
from exactrank.measures.parse import parse_measure
from exactrank.text import written

GRADES = 12  #: that have a bar of their own


def definitions(measures: Mapping[str, str]) -> list[dict[str, str]]:
    """Every measure of a comparison in words and equations, which are those of the code that computes it."""
    found = []
    for name, exact in measures.items():
        own = {"name": name, "exact": exact, "words": "", "equations": ""}
        try:
            kind = type(parse_measure(name))
        except MeasureError:  # a measure of the caller's own, whose definition is all there is
            found.append(own)
        else:
            found.append({**own, "words": _documented(kind), "equations": _documented(sys.modules[kind.__module__])})
    return found


def policies() -> str:
    """What all measures share: queries with nothing relevant, and ties."""
    return _documented(sys.modules[Measure.__module__]).rpartition("\n\n")[2]


def _documented(thing: object) -> str:
    return (inspect.getdoc(thing) or "").replace("``", "")


def folds_table(data: DataSummary) -> Table:
    """How large the parts of each division are."""
    sizes = [Column(title, part) for part in ("train", "validation", "test") for title in ("queries", "documents")]
    columns = [Column("fold", words=True), *sizes, Column("checksum", words=True)]
    rows = []
    for fold in data.folds:
        counts = [count for part in (fold.train, fold.valid, fold.test) for count in (part.queries, part.documents)]
        rows.append([words(fold.name, "name"), *(number(count, f"{count:,}") for count in counts), words(fold.checksum, "code")])
    return Table(f"Divisions of {data.name}", columns, rows)


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


def fit_record(fit: Fit) -> dict[str, Any]:
    """One fit with all that it was given, settings as they would be written in Python, and all that was tried for it, in order."""
    best = max((trial.valid for trial in fit.trials if trial.valid is not None), default=None)
    rows = []
    for i, trial in enumerate(fit.trials):
        settings = written(trial.settings) or "as they are by default"
        reached = Cell("failed", None, "failed") if trial.failed else number(trial.valid, kind="best" if trial.valid == best else "")
        text = f"{settings}: {trial.failed}" if trial.failed else settings
        rows.append([number(i, str(i)), reached, number(trial.seconds, plain(trial.seconds, 2)), words(text, "code")])
    columns = [Column("trial"), Column("validation"), Column("seconds"), Column("settings", words=True)]
    given = [(name, repr(value)) for name, value in fit.settings.items()]
    trials = Table("Trials of tuning", columns, rows) if rows else None
    return {"fit": fit, "chosen": written(fit.chosen), "settings": given, "trials": trials}


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
