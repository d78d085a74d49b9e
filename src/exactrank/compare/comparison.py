"""A comparison as its user has it: the results, shown as text, Markdown, LaTeX, CSV, JSON and HTML, and written to a folder."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank._support.error_text import reason_of
from exactrank._support.files import checked_path, nothing_at, refuse_existing, whole_file
from exactrank._support.pictures import COLORS, INK, QUIET, Pictured, caption
from exactrank._support.tables import Cell, Marked, Shown, Table, Values, by_column
from exactrank._support.text import encoded
from exactrank.compare.page.table import MIB
from exactrank.compare.report import report_html
from exactrank.compare.results import FILES, RECORD, Results, read_record, to_record, write_record
from exactrank.compare.standings import LEVEL, MARKING_TEST, differences, efforts, shared_values, standings, winning
from exactrank.data.scores import unjudged_rule
from exactrank.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from exactrank._support.pictures import Panels


class Comparison(Results, Shown, Pictured):
    """Methods on data sets, and how they did: the values of `Results`, and ways to show them."""

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return self._glance().text().rstrip()

    def _glance(self) -> Table:
        """The best methods by the first measure, on the data set or on each of them."""
        if len(self.datasets) == 1:
            whole = _of_dataset(self, self.datasets[0].name)
            title, note = f"Comparison on {whole.title}", whole.note.splitlines()[0]
            return replace(whole, title=title, rows=sorted(whole.rows, key=_mean_first), note=note).head()
        first = next(iter(self.measures))
        standing = zip(*(standings(self, data.name, first) for data in self.datasets), strict=True)
        rows: list[list[Cell]] = [[own[0].method, *(Marked(one.mean, "", one.best) for one in own)] for own in standing]
        title = f"Comparison of {len(self.methods):,} methods on {len(self.datasets):,} data sets by {first}"
        return Table(title, ("method", *(data.name for data in self.datasets)), sorted(rows, key=_mean_first)).head()

    def _columns(self) -> dict[str, Values]:
        """One row per data set, measure and method."""
        standing = [
            (data.name, measure, one, took)
            for data in self.datasets
            for measure in self.measures
            for one, took in zip(standings(self, data.name, measure), efforts(self, data.name), strict=True)
        ]
        found, spent = [one for _, _, one, _ in standing], [took for *_, took in standing]
        return {
            "dataset": [data for data, *_ in standing],
            "measure": [measure for _, measure, *_ in standing],
            **by_column(found, "method", "mean"),
            "low": [one.interval[0] for one in found],
            "high": [one.interval[1] for one in found],
            "train": [one.train for one in found],
            "validation": [one.valid for one in found],
            "better_than": [one.better_than for one in found],
            "fit_seconds": [took.seconds for took in spent],
            "tuning_seconds": [took.tuning for took in spent],
            "memory_bytes": [took.memory for took in spent],
            **by_column(spent, "folds", "failed"),
        }

    def plot(
        self,
        ax: "Axes | None" = None,
        path: str | os.PathLike[str] | None = None,
        *,
        dataset: str | None = None,
        measure: str | None = None,
        baseline: str | None = None,
        force: bool = False,
    ) -> "Panels":
        """Draw how far each method is from ``baseline``, query by query, with 95% intervals; returns the Axes, one per data set.

        ``dataset`` draws one of them; so does ``ax``, by default the first. The measure is by default the first, the baseline that of the
        comparison. ``path`` also writes the figure, as PNG, SVG or PDF by the suffix; ``force`` replaces a file that is there.
        """
        names = [data.name for data in self.datasets]
        for what, given, known in (("data set", dataset, names), ("measure", measure, list(self.measures))):
            if given is not None and given not in known:
                raise DataError(f"there is no {what} {given!r} in the comparison; there are {', '.join(known)}")
        return self._plot(ax, path, force, dataset=dataset, measure=measure, baseline=baseline)

    def _size(self, **options: Any) -> tuple[float, float]:
        return 8.0, (1.2 + 0.32 * len(self.methods)) * (1 if options.get("dataset") else len(self.datasets))

    def _fill(self, figure: "Figure", **options: Any) -> "Panels":
        if options.get("dataset") is not None or len(self.datasets) == 1:
            return super()._fill(figure, **options)
        panels: npt.NDArray[Any] = figure.subplots(len(self.datasets), 1)
        for axes, data in zip(panels, self.datasets, strict=True):
            self._draw(axes, **options | {"dataset": data.name})
        return panels

    def _draw(self, axes: "Axes", **options: Any) -> None:
        dataset, measure = options.get("dataset") or self.datasets[0].name, options.get("measure") or next(iter(self.measures))
        pairs = sorted(differences(self, dataset, measure, options.get("baseline")), key=lambda pair: -pair.difference)
        for row, pair in enumerate(pairs):
            clear = pair.adjusted[MARKING_TEST] < LEVEL
            color = QUIET if not clear else COLORS[0] if pair.difference > 0 else COLORS[1]
            axes.plot(pair.interval, (row, row), color=color)
            axes.plot(pair.difference, row, "o" if clear else "s", color=color, markerfacecolor=color if clear else "white")
        axes.axvline(0.0, color=INK, linewidth=0.8)
        axes.set_yticks(range(len(pairs)), [caption(pair.first) for pair in pairs])
        axes.set_ylim(len(pairs) - 0.5, -0.5)
        base = pairs[0].second if pairs else self.baseline
        queries = len(shared_values(self, dataset, measure).qid)
        axes.set_title(f"{caption(dataset)}: {queries:,} queries; filled: p < {LEVEL:g} ({MARKING_TEST} test, Holm)")
        axes.set_xlabel(f"{measure}: difference from {caption(base)}, with its 95% interval")

    def to_text(self, width: int = 120, *, color: bool = False) -> str:
        """The tables as a terminal shows them."""
        return "\n".join(table.text(width, color) for table in _tables(self))

    def to_markdown(self) -> str:
        """The tables for a README or an issue."""
        return "\n".join(f"{table.section()}\n" for table in _tables(self))

    def to_latex(self) -> str:
        """The tables for a paper, with booktabs."""
        return "\n".join(table.latex() for table in _tables(self))

    def to_csv(self) -> str:
        """One row per data set, method and measure, for a spreadsheet; numbers with all their digits."""
        columns = self._columns()
        return Table("Results", list(columns), list(zip(*columns.values(), strict=True))).csv()

    def to_json(self) -> dict[str, Any]:
        """Everything, ready for ``json.dumps``."""
        return dict(to_record(self))

    def write_report(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """The report as one HTML file; ``force`` replaces a file that is there."""
        with whole_file(path, force=force) as file:
            file.write(encoded(report_html(self)))

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """All of it to ``folder``: the record, the tables and the report; ``force`` replaces files of the same names.

        The record comes first. If something cannot be shown, the rest is still written, and an `OSError` says so.
        """
        target = checked_path(folder)
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
    record = checked_path(folder) / RECORD
    if not record.exists():
        raise nothing_at(record)
    return read_record(Comparison, record)


def _tables(results: Results) -> list[Table]:
    """One table per data set and, if there are several, one of winning numbers."""
    tables = [_of_dataset(results, data.name) for data in results.datasets]
    if len(tables) > 1:
        wins = [winning(results, measure) for measure in results.measures]
        rows: list[list[Cell]] = [[method.name, *(won[method.name] for won in wins)] for method in results.methods]
        most = len(tables) * (len(results.methods) - 1)
        note = f"How often a method's mean is above another's, over {len(tables)} data sets; at most {most} (Liu 2009)."
        tables.append(Table("Winning numbers", ("method", *results.measures), rows, note))
    return tables


def _mean_first(row: Sequence[Cell]) -> float:
    """By which methods are sorted, the best first; those without a mean come last."""
    mean = next((cell.value for cell in row if isinstance(cell, Marked)), np.nan)
    return -mean if mean == mean else np.inf


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
