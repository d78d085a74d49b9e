"""The report of a comparison: one HTML file that holds all it needs, and can be read without a script, on a phone and on paper.

The sections are made by the modules of ``page``; the template, the style and the script lie beside them. Where there is a choice (data
set, fold) the page without a script, and on paper, shows all of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from exactrank.compare.page.curves import (
    FEATURES,
    WHISKERS,
    Drawing,
    Figure,
    learning_curves,
    rank_curves,
    slice_figures,
    time_curves,
    weight_figures,
)
from exactrank.compare.page.leaderboard import Board, leaderboard, overview, pairs_table, verdict
from exactrank.compare.page.numbers import plain
from exactrank.compare.page.record import definitions, fit_record, flat, folds_table, grades_chart, policies
from exactrank.compare.page.style import sample
from exactrank.compare.page.svg import shown
from exactrank.compare.page.table import Table
from exactrank.compare.page.win_loss import WinLoss, win_loss
from exactrank.compare.results import DataSummary, Fit, Results
from exactrank.compare.standings import LEVEL, MARKING_TEST, efforts, pairs, shared_values, standings, winning
from exactrank.compare.statistics.pairs import letter

PAGE = "exactrank.compare.page"  #: where the template lies


@dataclass(frozen=True)
class FoldPart:
    """The charts of one division."""

    name: str
    learning: Sequence[Figure]
    time: Drawing | None
    weights: Sequence[Figure]
    slices: Sequence[Figure]


@dataclass(frozen=True)
class DataPart:
    """What the report says about one data set."""

    data: DataSummary
    verdict: str
    leaderboard: Table
    queries: int  #: over which means are taken
    ranks: Drawing | None
    win_loss: WinLoss | None
    pairs: Sequence[tuple[str, Table]]
    folds: Sequence[FoldPart]
    folds_table: Table
    grades: Markup | None


def report_html(comparison: Results) -> str:
    """The whole page."""
    names = [method.name for method in comparison.methods]
    boards = {
        data.name: {measure: standings(comparison, data.name, measure) for measure in comparison.measures} for data in comparison.datasets
    }
    won = {measure: winning(comparison, measure) for measure in comparison.measures} if len(boards) > 1 else {}
    environment = Environment(
        loader=PackageLoader(PAGE, ""),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.jinja").render(
        comparison=comparison,
        measure=next(iter(comparison.measures)),
        expected=len(names) * sum(len(data.folds) for data in comparison.datasets),
        overview=overview(names, boards, won) if won else None,
        parts=[_part(comparison, data, boards[data.name]) for data in comparison.datasets],
        legend={name: sample(i) for i, name in enumerate(names)},
        definitions=definitions(comparison.measures),
        policies=policies(),
        run=list(flat(comparison.run)),
        records=[fit_record(fit) for fit in comparison.fits],
        letters=[letter(i) for i in range(len(names))],
        features=FEATURES,
        whiskers=WHISKERS,
        level=LEVEL,
        test=MARKING_TEST,
        plain=plain,
        style=_asset("report.css"),
        script=_asset("report.js"),
    )


def _part(comparison: Results, data: DataSummary, board: Board) -> DataPart:
    first = next(iter(comparison.measures))
    shared = shared_values(comparison, data.name, first)
    by_measure = {measure: pairs(comparison, data.name, measure) for measure in comparison.measures}
    numbers = {method.name: i for i, method in enumerate(comparison.methods)}
    return DataPart(
        data,
        verdict(first, board[first]),
        leaderboard(data.name, board, efforts(comparison, data.name)),
        len(shared.qid),
        rank_curves(comparison, data.name, numbers),
        win_loss(shared, first, by_measure[first], comparison.baseline),
        [(measure, pairs_table(f"{data.name}, {measure}", own)) for measure, own in by_measure.items() if own],
        [_fold_part(fold.name, _fits(comparison, data.name, fold.name), numbers, first) for fold in data.folds],
        folds_table(data),
        grades_chart(data),
    )


def _fold_part(name: str, fits: Sequence[Fit], numbers: Mapping[str, int], measure: str) -> FoldPart:
    return FoldPart(
        name,
        learning_curves(fits, numbers, measure),
        time_curves(fits, numbers, measure),
        weight_figures(fits, numbers),
        slice_figures(fits, numbers, measure),
    )


def _fits(comparison: Results, dataset: str, fold: str) -> list[Fit]:
    return [fit for fit in comparison.fits if (fit.dataset, fit.fold) == (dataset, fold)]


def _asset(name: str) -> Markup:
    """A file beside the template, as it is."""
    return Markup(files(PAGE).joinpath(name).read_text("utf-8"))
