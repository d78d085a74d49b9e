"""A comparison as its user has it: the results, shown as text, Markdown, LaTeX, CSV, JSON and HTML, and written to a folder."""

import os
from pathlib import Path
from typing import Any

from exactrank.compare.report import report_html
from exactrank.compare.results import FILES, RECORD, Results, read_record, to_record, write_record
from exactrank.compare.standings import LEVEL, MARKING_TEST, efforts, shared_values, standings, winning
from exactrank.data.scores import unjudged_rule
from exactrank.files import refuse_existing, whole_file
from exactrank.reasons import reason_of
from exactrank.table import Cell, Marked, Table
from exactrank.text import encoded

MIB = 1 << 20


class Comparison(Results):
    """Methods on data sets, and how they did: the values of `Results`, and ways to show them."""

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, width: int = 120, *, colour: bool = False) -> str:
        """The tables as a terminal shows them."""
        return "\n".join(table.text(width, colour) for table in _tables(self))

    def to_markdown(self) -> str:
        """The tables for a README or an issue."""
        return "\n".join(f"{table.section()}\n" for table in _tables(self))

    def to_latex(self) -> str:
        """The tables for a paper, with booktabs."""
        return "\n".join(table.latex() for table in _tables(self))

    def to_csv(self) -> str:
        """One row per data set, method and measure, for a spreadsheet; numbers with all their digits."""
        columns = ("dataset", "measure", "method", "mean", "low", "high", "train", "validation", "better_than")
        effort_columns = ("fit_seconds", "tuning_seconds", "memory_bytes", "folds", "failed")
        rows: list[list[Cell]] = []
        for data in self.datasets:
            spent = efforts(self, data.name)
            for measure in self.measures:
                for one, took in zip(standings(self, data.name, measure), spent, strict=True):
                    found: list[Cell] = [data.name, measure, one.method, one.mean, *one.interval, one.train, one.valid, one.better_than]
                    rows.append([*found, took.seconds, took.tuning, took.memory, took.folds, took.failed])
        return Table("Results", (*columns, *effort_columns), rows).csv()

    def to_json(self) -> dict[str, Any]:
        """Everything, ready for ``json.dumps``."""
        return dict(to_record(self))

    def write_report(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """The report as one HTML file; ``force`` replaces a file that is there."""
        with whole_file(path, force=force) as file:
            file.write(encoded(report_html(self)))

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """All of it to ``folder``: the record, the tables and the report; ``force`` replaces files of the same names.

        The record comes first. Where something cannot be shown the rest is written all the same, and an `OSError` tells of it.
        """
        target = Path(folder)
        for name in () if force else FILES:
            refuse_existing(target / name)
        write_record(target / RECORD, self)
        made = (Comparison.to_markdown, Comparison.to_latex, Comparison.to_csv, report_html)
        troubles = []
        for name, make in zip(FILES[1:], made, strict=True):
            try:
                content = encoded(make(self))
            except Exception as error:  # whatever the numbers did to it: what took hours to compute is not lost by it
                troubles.append(f"{name} could not be made ({reason_of(error)})")
                continue
            with whole_file(target / name, force=True) as file:
                file.write(content)
        if troubles:
            raise OSError(f"{target / RECORD} holds all results, but {'; '.join(troubles)}; please report this as a bug of exactrank")


def read_comparison(folder: str | os.PathLike[str]) -> Comparison:
    """The comparison in ``folder``, as `compare` left it."""
    return read_record(Comparison, Path(folder) / RECORD)


def _tables(results: Results) -> list[Table]:
    """One table a data set and, where there are several, one of winning numbers."""
    tables = [_of_dataset(results, data.name) for data in results.datasets]
    if len(tables) > 1:
        wins = [winning(results, measure) for measure in results.measures]
        rows: list[list[Cell]] = [[method.name, *(won[method.name] for won in wins)] for method in results.methods]
        most = len(tables) * (len(results.methods) - 1)
        note = f"How often a method's mean is above another's, over {len(tables)} data sets; at most {most} (Liu 2009)."
        tables.append(Table("Winning numbers", ("method", *results.measures), rows, note))
    return tables


def _of_dataset(results: Results, dataset: str) -> Table:
    """For people: means with marks, intervals and effort."""
    first, *others = results.measures
    spent = efforts(results, dataset)
    fitted = any(fit.seconds or fit.failed for fit in results.fits if fit.dataset == dataset)  # runs that are compared as they are were not
    rows: list[list[Cell]] = []
    for took, *found in zip(spent, *(standings(results, dataset, measure) for measure in results.measures), strict=True):
        missing, own = "failed" if took.failed else "-", found[0]
        means = [missing if one.mean != one.mean else Marked(one.mean, one.better_than, one.best) for one in found]
        interval = "-" if own.mean != own.mean else f"{own.interval[0]:.3f}-{own.interval[1]:.3f}"
        effort = [own.train, own.valid, f"{took.seconds:.1f}", f"{took.tuning:.1f}", took.memory // MIB] if fitted else []
        rows.append([own.letter, own.method, means[0], interval, *means[1:], *effort])
    columns = [
        "",
        "method" if fitted else "run",
        first,
        "95% interval",
        *others,
        *(("train", "valid", "fit s", "tuning s", "MiB") if fitted else ()),
    ]
    failures = [f"{took.method} failed: {took.failed}." for took in spent if took.failed]
    return Table(dataset, columns, rows, "\n".join([_note(results, dataset, fitted), *failures]))


def _note(results: Results, dataset: str, fitted: bool) -> str:
    """What the numbers of a data set's table are, and what was done with documents that nobody judged."""
    first = next(iter(results.measures))
    queries = len(shared_values(results, dataset, first).qid)
    unjudged: dict[str, int] = {}
    for fit in results.fits:
        if fit.dataset == dataset:
            unjudged[fit.method] = unjudged.get(fit.method, 0) + int(fit.settings.get("unjudged", 0))
    parts = [
        f"{'Test means' if fitted else 'Means'} over {queries:,} queries.",
        f"Letters: significantly better than that {'method' if fitted else 'run'} ({MARKING_TEST} test, Holm, p < {LEVEL:g}).",
        f"Train and valid: {first}." if fitted else "",
        "" if results.complete else "Interrupted: not all fits are there.",
        unjudged_rule(unjudged),
    ]
    return " ".join(filter(None, parts))
