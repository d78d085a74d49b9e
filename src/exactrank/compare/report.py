"""The report of a comparison: one HTML file that holds all it needs, and can be read without a script, on a phone and on paper.

The sections are made by the modules of ``page``; the template, the style and the script lie beside them. Where there is a choice (data
set, fold) the page without a script, and on paper, shows all of it.
"""

from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from exactrank.compare.page.charts import (
    FEATURES,
    WHISKERS,
    Figure,
    Figures,
    difference_chart,
    learning_curves,
    rank_curves,
    slice_figures,
    time_curves,
    weight_figures,
)
from exactrank.compare.page.leaderboard import Board, leaderboard, overview, pairs_table, verdict
from exactrank.compare.page.record import definitions, fit_records, flat, folds_table, grades_chart
from exactrank.compare.page.svg import sample, shapes, shown
from exactrank.compare.page.table import plain
from exactrank.compare.page.win_loss import win_loss
from exactrank.compare.results import DataSummary, Results
from exactrank.compare.standings import LEVEL, MARKING_TEST, differences, efforts, pairs, shared_values, standings, winning
from exactrank.compare.statistics.pairs import letter

PAGE = "exactrank.compare.page"  #: where the template lies
NUMBERS = ("", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
SPELLED_OUT = 3  #: data sets that a title names


def report_html(comparison: Results) -> str:
    """The whole page."""
    names = [method.name for method in comparison.methods]
    boards = {
        data.name: {measure: standings(comparison, data.name, measure) for measure in comparison.measures} for data in comparison.datasets
    }
    won = {measure: winning(comparison, measure) for measure in comparison.measures} if len(boards) > 1 else {}
    environment = Environment(
        loader=PackageLoader(PAGE, ""), autoescape=True, finalize=shown, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("report.html.jinja").render(
        comparison=comparison,
        title=title(comparison),
        measure=next(iter(comparison.measures)),
        expected=len(names) * sum(len(data.folds) for data in comparison.datasets),
        overview=overview(names, boards, won) if won else None,
        parts=[_part(comparison, data, boards[data.name]) for data in comparison.datasets],
        legend={name: sample(i) for i, name in enumerate(names)},
        definitions=definitions(comparison.measures),
        run=list(flat(comparison.run)),
        records=fit_records(comparison.fits),
        shapes=shapes(),
        letters=[letter(i) for i in range(len(names))],
        features=FEATURES,
        whiskers=WHISKERS,
        level=LEVEL,
        test=MARKING_TEST,
        plain=plain,
        style=Markup(files(PAGE).joinpath("report.css").read_text("utf-8")),
        script=Markup(files(PAGE).joinpath("report.js").read_text("utf-8")),
    )


def title(comparison: Results) -> str:
    """As a person would write it."""
    names = [data.name for data in comparison.datasets]
    where = f"{len(names)} data sets" if len(names) > SPELLED_OUT else " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    methods = [method.name for method in comparison.methods]
    if len(methods) == 1:
        return f"{methods[0]} on {where}"
    many = NUMBERS[len(methods)] if len(methods) < len(NUMBERS) else str(len(methods))
    trained = any(fit.seconds or fit.failed for fit in comparison.fits) or not comparison.complete
    return f"{many} {'ranking methods' if trained else 'runs'} compared on {where}"


def _part(comparison: Results, data: DataSummary, board: Board) -> dict[str, Any]:
    """What the report says about one data set, and the charts of each division."""
    first = next(iter(comparison.measures))
    shared = shared_values(comparison, data.name, first)
    away = {measure: differences(comparison, data.name, measure) for measure in comparison.measures}
    by_measure = {measure: pairs(comparison, data.name, measure) for measure in comparison.measures}
    numbers = {method.name: i for i, method in enumerate(comparison.methods)}
    folds = []
    for fold in data.folds:
        fits = [fit for fit in comparison.fits if (fit.dataset, fit.fold) == (data.name, fold.name)]
        folds.append(
            {
                "name": fold.name,
                "learning": learning_curves(fits, numbers, first),
                "time": time_curves(fits, numbers, first),
                "weights": weight_figures(fits, numbers),
                "slices": slice_figures(fits, numbers, first),
            }
        )
    return {
        "data": data,
        "verdict": verdict(first, board[first]),
        "leaderboard": leaderboard(data.name, board, efforts(comparison, data.name)),
        "baseline": away[first][0].second if away[first] else "",
        "differences": difference_chart(away[first], numbers, first),
        "other_differences": Figures(
            [
                Figure(measure, drawn)
                for measure, own in away.items()
                if measure != first and (drawn := difference_chart(own, numbers, measure, kind="small"))
            ]
        ),
        "queries": len(shared.qid),  # over which means are taken
        "ranks": rank_curves(comparison, data.name, numbers),
        "win_loss": win_loss(shared, first, by_measure[first], comparison.baseline),
        "pairs": [(measure, pairs_table(f"{data.name}, {measure}", own)) for measure, own in by_measure.items() if own],
        "folds": folds,
        "folds_table": folds_table(data),
        "grades": grades_chart(data),
    }
