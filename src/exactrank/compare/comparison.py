"""A comparison: the results, shown as text, Markdown, LaTeX, CSV, JSON, HTML and a picture, and written to a folder."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank._support.files import checked_path, missing_file, refuse_existing, whole_file
from exactrank._support.json_values import JSONValue, encode_dataclass
from exactrank._support.pictures import COLORS, INK, QUIET, Plottable, caption
from exactrank._support.tables import Cell, MarkedNumber, Table, Tabular, Values, by_column
from exactrank._support.text import encode, reason_of
from exactrank.compare.report import report_html
from exactrank.compare.results import FILES, RECORD, Results, read_record, write_record
from exactrank.compare.standings import MethodStanding, differences, efforts, machine_note, marking_test, shared_values, standings, winning
from exactrank.compare.statistics import LEVEL
from exactrank.data.scores import unjudged_rule
from exactrank.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from exactrank._support.pictures import Panels


class Comparison(Results, Tabular, Plottable):
    """Methods on data sets and their results: the values of `Results`, and ways to show them."""

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return self._glance().text().rstrip()

    def _glance(self) -> Table:
        """Return the best methods by the first measure, on the data set or on each of them."""
        if len(self.datasets) == 1:
            table = _dataset_table(self, self.datasets[0].name)
            title, note = f"Comparison on {table.title}", table.note.splitlines()[0]
            return replace(table, title=title, rows=sorted(table.rows, key=_best_mean_first), note=note).head()
        first = next(iter(self.measures))
        by_method = zip(*(standings(self, data.name, first) for data in self.datasets), strict=True)
        rows: list[list[Cell]] = [[row[0].method, *(MarkedNumber(cell.mean, "", cell.best) for cell in row)] for row in by_method]
        title = f"Comparison of {len(self.methods):,} methods on {len(self.datasets):,} data sets by {first}"
        return Table(title, ("method", *(data.name for data in self.datasets)), sorted(rows, key=_best_mean_first)).head()

    def _columns(self) -> dict[str, Values]:
        """Return the columns of a table with one row per data set, measure and method."""
        keys = [(data.name, measure) for data in self.datasets for measure in self.measures for _ in self.methods]
        rows = [standing for data in self.datasets for measure in self.measures for standing in standings(self, data.name, measure)]
        costs = [effort for data in self.datasets for _ in self.measures for effort in efforts(self, data.name)]
        return {
            "dataset": [dataset for dataset, _ in keys],
            "measure": [measure for _, measure in keys],
            **by_column(rows, "method", "mean"),
            "low": [row.interval[0] for row in rows],
            "high": [row.interval[1] for row in rows],
            "train": [row.train for row in rows],
            "validation": [row.valid for row in rows],
            "better_than": [row.better_than for row in rows],
            **_corrected_columns(rows),
            "fit_seconds": [effort.seconds for effort in costs],
            "tuning_seconds": [effort.tuning for effort in costs],
            "memory_bytes": [effort.memory for effort in costs],
            **by_column(costs, "folds", "failed"),
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
        """Draw the difference of each method from ``baseline`` with its 95% interval; returns the Axes, one per data set.

        ``dataset`` draws only that one; with ``ax`` only one is drawn, by default the first. The measure is by default the first, the
        baseline that of the comparison. ``path`` also writes the figure, as PNG, SVG or PDF by the suffix; ``force`` replaces a file that
        is there.
        """
        datasets = [data.name for data in self.datasets]
        for kind, name, names in (("data set", dataset, datasets), ("measure", measure, list(self.measures))):
            if name is not None and name not in names:
                raise DataError(f"there is no {kind} {name!r} in the comparison; there are {', '.join(names)}")
        return self._plot(ax, path, force, dataset=dataset, measure=measure, baseline=baseline)

    def _size(self, **options: object) -> tuple[float, float]:
        return 8.0, (1.2 + 0.32 * len(self.methods)) * (1 if options.get("dataset") else len(self.datasets))

    def _fill(
        self,
        figure: "Figure",
        *,
        dataset: str | None = None,
        measure: str | None = None,
        baseline: str | None = None,
        **options: object,
    ) -> "Panels":
        if dataset is not None or len(self.datasets) == 1:
            return super()._fill(figure, dataset=dataset, measure=measure, baseline=baseline, **options)
        panels: npt.NDArray[Any] = figure.subplots(len(self.datasets), 1)
        for axes, data in zip(panels, self.datasets, strict=True):
            self._draw(axes, dataset=data.name, measure=measure, baseline=baseline)
        return panels

    def _draw(
        self, axes: "Axes", *, dataset: str | None = None, measure: str | None = None, baseline: str | None = None, **options: object
    ) -> None:
        dataset, measure = dataset or self.datasets[0].name, measure or next(iter(self.measures))
        pairs = sorted(differences(self, dataset, measure, baseline), key=lambda pair: -pair.difference)
        for row, pair in enumerate(pairs):
            clear = pair.is_clear
            color = QUIET if not clear else COLORS[0] if pair.difference > 0 else COLORS[1]
            axes.plot(pair.interval, (row, row), color=color)
            axes.plot(pair.difference, row, "o" if clear else "s", color=color, markerfacecolor=color if clear else "white")
        axes.axvline(0.0, color=INK, linewidth=0.8)
        axes.set_yticks(range(len(pairs)), [caption(pair.first) for pair in pairs])
        axes.set_ylim(len(pairs) - 0.5, -0.5)
        base = pairs[0].second if pairs else self.baseline
        queries = len(shared_values(self, dataset, measure).qid)
        axes.set_title(f"{caption(dataset)}: {queries:,} queries; filled: p < {LEVEL:g} ({marking_test(self)} test, Holm)")
        axes.set_xlabel(f"{measure}: difference from {caption(base)}, with its 95% interval")

    def to_text(self, width: int = 120, *, color: bool = False) -> str:
        """Return the tables for a terminal."""
        return "\n".join(table.text(width, color) for table in self._tables())

    def to_markdown(self) -> str:
        """Return the tables for a README or an issue."""
        return "\n".join(f"{table.section()}\n" for table in self._tables())

    def to_latex(self) -> str:
        """Return the tables for a paper, with booktabs."""
        return "\n".join(table.latex() for table in self._tables())

    def to_csv(self) -> str:
        """Return a row per data set, method and measure, for a spreadsheet; numbers with all their digits."""
        columns = self._columns()
        return Table("Results", list(columns), list(zip(*columns.values(), strict=True))).csv()

    def to_json(self) -> dict[str, JSONValue]:
        """Return all results, ready for ``json.dumps``."""
        return encode_dataclass(self)

    def write_report(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the report as one HTML file; ``force`` replaces a file that is there."""
        with whole_file(path, force=force) as file:
            file.write(encode(report_html(self)))

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the record, the tables and the report to ``folder``; ``force`` replaces files of the same names.

        The record comes first. If something cannot be shown, the rest is still written, and an `OSError` says so.
        """
        target = checked_path(folder)
        for name in () if force else FILES:
            refuse_existing(target / name)
        write_record(target / RECORD, self)
        forms = (Comparison.to_markdown, Comparison.to_latex, Comparison.to_csv, report_html)
        problems = []
        for name, form in zip(FILES[1:], forms, strict=True):
            try:
                content = encode(form(self))
            except Exception as error:  # one table or the report may fail, but hours of fits are not lost
                problems.append(f"{name} could not be made ({reason_of(error)})")
                continue
            with whole_file(target / name, force=True) as file:
                file.write(content)
        if problems:
            raise OSError(f"{target / RECORD} holds all results, but {'; '.join(problems)}; please report this as a bug of exactrank")

    def _tables(self) -> list[Table]:
        """Return one table per data set and, if there are several, one of winning numbers."""
        tables = [_dataset_table(self, data.name) for data in self.datasets]
        if len(tables) > 1:
            wins = [winning(self, measure) for measure in self.measures]
            rows: list[list[Cell]] = [[method.name, *(number[method.name] for number in wins)] for method in self.methods]
            note = f"How often a method's mean is above another's, over {len(tables)} data sets;"
            note += f" at most {len(tables) * (len(self.methods) - 1)} (Liu 2009)."
            tables.append(Table("Winning numbers", ("method", *self.measures), rows, note))
        return tables


def read_comparison(folder: str | os.PathLike[str]) -> Comparison:
    """Read the comparison that `compare` left in ``folder``."""
    record = checked_path(folder) / RECORD
    if not record.exists():
        raise missing_file(record)
    return read_record(Comparison, record)


def _best_mean_first(row: Sequence[Cell]) -> float:
    """Sort the best mean first, and rows without a mean last."""
    mean = next((cell.value for cell in row if isinstance(cell, MarkedNumber)), np.nan)
    return -mean if mean == mean else np.inf


def _corrected_columns(rows: Sequence[MethodStanding]) -> dict[str, Values]:
    """Return the mean by human grades alone, and what those of a machine are worth; nothing without a machine."""
    means = [row.corrected for row in rows]
    if not any(means):
        return {}
    human_means = [np.nan if mean is None or mean.human is None else mean.human.mean for mean in means]
    return {"human_mean": human_means, "worth": [np.nan if mean is None else mean.worth for mean in means]}


def _dataset_table(results: Results, dataset: str) -> Table:
    """Tabulate means with marks, intervals and effort, with a note that explains them."""
    first, *secondary = results.measures
    costs = efforts(results, dataset)
    fits = [fit for fit in results.fits if fit.dataset == dataset]
    trained = any(fit.seconds or fit.failed for fit in fits)  # runs are compared without training
    kind = "method" if trained else "run"
    rows: list[list[Cell]] = []
    for effort, *by_measure in zip(costs, *(standings(results, dataset, measure) for measure in results.measures), strict=True):
        missing, main = "failed" if effort.failed else "-", by_measure[0]
        means = [missing if row.mean != row.mean else MarkedNumber(row.mean, row.better_than, row.best) for row in by_measure]
        interval = "-" if main.mean != main.mean else f"{main.interval[0]:.3f}-{main.interval[1]:.3f}"
        cost = [main.train, main.valid, f"{effort.seconds:.1f}", f"{effort.tuning:.1f}", effort.memory >> 20] if trained else []
        rows.append([main.letter, main.method, means[0], interval, *means[1:], *cost])
    columns = ["", kind, first, "95% interval", *secondary, *(("train", "valid", "fit s", "tuning s", "MiB") if trained else ())]
    unjudged: dict[str, int] = {}
    for fit in fits:
        unjudged[fit.method] = unjudged.get(fit.method, 0) + int(fit.settings.get("unjudged", 0))
    note = [
        f"{'Test means' if trained else 'Means'} over {len(shared_values(results, dataset, first).qid):,} queries.",
        f"Letters: significantly better than that {kind} ({marking_test(results)} test, Holm, p < {LEVEL:g}).",
        machine_note(results, dataset, first),
        f"Train and valid: {first}." if trained else "",
        "" if results.complete else "Interrupted: not all fits are there.",
        unjudged_rule(unjudged),
    ]
    failures = [f"{effort.method} failed: {effort.failed}." for effort in costs if effort.failed]
    remarks = {(fit.method, name): f"{fit.method}: {remark}." for fit in fits for name, remark in fit.remarks.items()}  # of one fold
    return Table(dataset, columns, rows, "\n".join([" ".join(filter(None, note)), *failures, *remarks.values()]))
