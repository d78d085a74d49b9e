"""What is needed to understand a comparison and to run it again: data, measures, settings, trials."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from exactrank._support.text import written
from exactrank.compare.page.charts import bar_chart
from exactrank.compare.page.equations import equations, policies, symbols
from exactrank.compare.page.table import NONE, Cell, Column, ReportTable, number, plain, words
from exactrank.compare.results import DataSummary, Fit
from exactrank.errors import MeasureError
from exactrank.measures import Measure
from exactrank.measures.parse import parse_measure

GRADES = 12  #: that have a bar of their own


def definitions(measures: Mapping[str, str]) -> list[dict[str, Any]]:
    """Every measure of a comparison in words and equations; those that differ in their cutoff alone are told of once."""
    found: dict[str, dict[str, Any]] = {}
    for name, exact in measures.items():
        try:
            measure = parse_measure(name)
        except MeasureError:  # a measure of the caller's own, whose definition is all there is
            found[name] = {"names": [name], "exact": [exact], "words": "", "equations": [], "symbols": "", "policies": ""}
            continue
        own = {"words": _documented(measure), "equations": equations(measure), "symbols": symbols(measure), "policies": policies(measure)}
        same = found.setdefault(repr(replace(measure, k=1)) if measure.k else exact, {"names": [], "exact": [], **own})
        same["names"].append(name)
        same["exact"].append(exact)
    return list(found.values())


def _documented(measure: Measure) -> str:
    """The first paragraph of what its class says, without references to equations and examples."""
    about = (inspect.getdoc(type(measure)) or "").partition("\n\n")[0]
    return re.sub(r",? \(\d\)", "", about).replace("``", "").replace("\n", " ")


def folds_table(data: DataSummary) -> ReportTable:
    """How large the parts of each division are."""
    sizes = [Column(title, part) for part in ("train", "validation", "test") for title in ("queries", "documents")]
    columns = [Column("fold", words=True), *sizes, Column("checksum", words=True)]
    rows = []
    for fold in data.folds:
        counts = [count for part in (fold.train, fold.valid, fold.test) for count in (part.queries, part.documents)]
        rows.append([words(fold.name, "name"), *(number(count, f"{count:,}") for count in counts), words(fold.checksum, "code")])
    return ReportTable(f"Divisions of {data.name}", columns, rows)


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


def fit_records(fits: Iterable[Fit]) -> list[dict[str, Any]]:
    """Each method on each data set with all that it was given, settings as they would be written in Python, and all that was tried.

    Settings that are the same in all folds are told once; those that differ stand in a table of the folds.
    """
    together: dict[tuple[str, str], list[Fit]] = {}
    for fit in fits:
        together.setdefault((fit.dataset, fit.method), []).append(fit)
    return [_record(own) for own in together.values()]


def _record(fits: list[Fit]) -> dict[str, Any]:
    given = [{name: repr(value) for name, value in fit.settings.items()} for fit in fits]
    same = {name: text for name, text in given[0].items() if all(own.get(name) == text for own in given)}
    columns = [Column("fold", words=True), Column("fit (s)"), Column("settings of this fold", words=True)]
    rows = []
    for fit, own in zip(fits, given, strict=True):
        text = ", ".join(f"{name}={value}" for name, value in own.items() if name not in same)
        what = Cell(f"failed: {fit.failed}", None, "failed") if fit.failed else words(text, "code")
        rows.append([words(fit.fold, "name"), number(fit.seconds, plain(fit.seconds, 2)), what])
    tried = [row for fit in fits for row in _trials(fit)]
    heads = [Column("fold", words=True), Column("trial"), Column("validation"), Column("seconds"), Column("settings", words=True)]
    return {
        "fit": fits[0],
        "failed": sum(bool(fit.failed) for fit in fits),
        "settings": list(same.items()),
        "folds": ReportTable("Folds", columns, rows),
        "trials": ReportTable("Trials of tuning", heads, tried) if tried else None,
    }


def _trials(fit: Fit) -> list[list[Cell]]:
    best = max((trial.valid for trial in fit.trials if trial.valid is not None), default=None)
    rows = []
    for i, trial in enumerate(fit.trials):
        settings = written(trial.settings) or "the defaults"
        reached = Cell("failed", None, "failed") if trial.failed else number(trial.valid, kind="best" if trial.valid == best else "")
        text = f"{settings}: {trial.failed}" if trial.failed else settings
        rows.append([words(fit.fold), number(i, str(i)), reached, number(trial.seconds, plain(trial.seconds, 2)), words(text, "code")])
    return rows


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names and values, those of mappings within by both names.

    >>> list(flat({"seed": 0, "limit": None, "versions": {"numpy": "2.0"}}))
    [('seed', '0'), ('limit', '–'), ('versions: numpy', '2.0')]
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}: ")
        else:
            yield f"{prefix}{name}", NONE if value is None else value if isinstance(value, str) else repr(value)
