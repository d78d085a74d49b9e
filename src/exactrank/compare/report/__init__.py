"""The report of a comparison: one HTML file that needs no other, and can be read without a script, on a phone and on paper.

This module collects the content of each section; the template, the style and the script lie beside it. The page lets readers choose a
data set and a fold; without a script, and on paper, it shows all of them.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files

from markupsafe import Markup

from exactrank._support.libraries import library
from exactrank.compare.report.charts import (
    FEATURES,
    WHISKERS,
    Figure,
    Figures,
    difference_chart,
    grades_chart,
    learning_curves,
    rank_curves,
    slice_figures,
    time_curves,
    weight_figures,
    win_loss,
)
from exactrank.compare.report.svg import escape_shapeless, sample, shapes
from exactrank.compare.report.tables import NONE, Board, fit_records, folds_table, leaderboard, overview, pairs_table, plain, verdict
from exactrank.compare.results import DataSummary, Results
from exactrank.compare.standings import differences, efforts, machine_note, marking_test, pairs, shared_values, standings, winning
from exactrank.compare.statistics import LEVEL, letter
from exactrank.errors import MeasureError
from exactrank.measures.base import Measure
from exactrank.measures.parse import parse_measure

NUMBERS = ("", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
SPELLED_OUT = 3  #: data sets that a title names
#: Sentences about queries with nothing relevant, and about documents with the same score.
EMPTY = {0: "counts as 0", 1: "counts as 1", "skip": "is left out of the mean"}
TIES = {
    "input": "stay in the order in which they were given",
    "pessimistic": "are ranked from the lowest grade up, which is the worst order",
    "expected": "count by the mean over all their orders",
    "docid": "are ranked by document id, descending, as trec_eval does",
}


def report_html(comparison: Results) -> str:
    """Return the page."""
    names = [method.name for method in comparison.methods]
    boards = {
        data.name: {measure: standings(comparison, data.name, measure) for measure in comparison.measures} for data in comparison.datasets
    }
    wins = {measure: winning(comparison, measure) for measure in comparison.measures} if len(boards) > 1 else {}
    jinja2 = library("jinja2", "reports", "report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__name__, ""),
        autoescape=True,
        finalize=escape_shapeless,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page: str = environment.get_template("report.html.jinja").render(
        comparison=comparison,
        title=title(comparison),
        measure=next(iter(comparison.measures)),
        expected=len(names) * sum(len(data.folds) for data in comparison.datasets),
        overview=overview(names, boards, wins) if wins else None,
        parts=[_part(comparison, data, boards[data.name]) for data in comparison.datasets],
        legend={name: sample(i) for i, name in enumerate(names)},
        definitions=definitions(comparison.measures),
        run=list(flatten(comparison.run)),
        records=fit_records(comparison.fits),
        shapes=shapes(),
        letters=[letter(i) for i in range(len(names))],
        features=FEATURES,
        whiskers=WHISKERS,
        level=LEVEL,
        test=marking_test(comparison),
        kind_of_interval="corrected" if any(data.machine is not None for data in comparison.datasets) else "bootstrap",
        plain=plain,
        style=Markup(files(__name__).joinpath("report.css").read_text("utf-8")),
        script=Markup(files(__name__).joinpath("report.js").read_text("utf-8")),
    )
    return page


def title(comparison: Results) -> str:
    """Return the title of the page, with numbers and names as in prose."""
    names = [data.name for data in comparison.datasets]
    where = f"{len(names)} data sets" if len(names) > SPELLED_OUT else " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    methods = [method.name for method in comparison.methods]
    if len(methods) == 1:
        return f"{methods[0]} on {where}"
    count = NUMBERS[len(methods)] if len(methods) < len(NUMBERS) else str(len(methods))
    trained = any(fit.seconds or fit.failed for fit in comparison.fits) or not comparison.complete
    return f"{count} {'ranking methods' if trained else 'runs'} compared on {where}"


def _part(comparison: Results, data: DataSummary, board: Board) -> dict[str, object]:
    """Return the content of the sections about one data set, with the charts of each division."""
    first = next(iter(comparison.measures))
    shared = shared_values(comparison, data.name, first)
    against_base = {measure: differences(comparison, data.name, measure) for measure in comparison.measures}
    by_measure = {measure: pairs(comparison, data.name, measure) for measure in comparison.measures}
    numbers = {method.name: i for i, method in enumerate(comparison.methods)}
    other_charts = {
        measure: difference_chart(own_pairs, numbers, measure, kind="small")
        for measure, own_pairs in against_base.items()
        if measure != first
    }
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
        "machine_note": machine_note(comparison, data.name, first),
        "leaderboard": leaderboard(data.name, board, efforts(comparison, data.name)),
        "baseline": against_base[first][0].second if against_base[first] else "",
        "differences": difference_chart(against_base[first], numbers, first),
        "other_differences": Figures([Figure(measure, chart) for measure, chart in other_charts.items() if chart]),
        "queries": len(shared.qid),  # over which means are taken
        "ranks": rank_curves(comparison, data.name, numbers),
        "win_loss": win_loss(shared, first, by_measure[first], comparison.baseline),
        "pairs": [(measure, pairs_table(f"{data.name}, {measure}", rows)) for measure, rows in by_measure.items() if rows],
        "folds": folds,
        "folds_table": folds_table(data),
        "grades": grades_chart(data),
    }


@dataclass
class Definition:
    """A measure in words and equations; measures that differ only in their cutoff share it."""

    words: str = ""
    equations: list[Markup] = field(default_factory=list)
    symbols: str = ""
    policies: str = ""
    names: list[str] = field(default_factory=list)
    exact: list[str] = field(default_factory=list)


def definitions(measures: Mapping[str, str]) -> list[Definition]:
    """Define every measure of a comparison."""
    by_kind: dict[str, Definition] = {}
    convert = library("latex2mathml.converter", "reports", "report").convert
    for name, exact in measures.items():
        try:
            measure = parse_measure(name)
        except MeasureError:  # a measure of the caller's, of which only the notation is known
            by_kind[name] = Definition(names=[name], exact=[exact])
            continue
        definition = by_kind.setdefault(repr(replace(measure, k=1)) if measure.k else exact, Definition())
        if not definition.names:
            about = (inspect.getdoc(type(measure)) or "").partition("\n\n")[0]  # without references to equations
            definition.words = re.sub(r",? \(\d\)", "", about).replace("``", "").replace("\n", " ")
            mathml = [convert(equation, xmlns="", display="block") for equation in measure.equations]
            definition.equations = [Markup(equation.replace(' xmlns=""', "")) for equation in mathml]
            definition.symbols, definition.policies = measure.symbols, policies(measure)
        definition.names.append(name)
        definition.exact.append(exact)
    return list(by_kind.values())


def policies(measure: Measure) -> str:
    """Say what happens to queries with nothing relevant, to ties and to short lists.

    >>> from exactrank.measures import AP
    >>> policies(AP(empty="skip"))
    'A query with nothing relevant is left out of the mean. Documents with the same score stay in the order in which they were given.'
    """
    short = " A list with fewer than k documents counts as 0." if getattr(measure, "short", "") == "zero" else ""
    return f"A query with nothing relevant {EMPTY[measure.empty]}. Documents with the same score {TIES[measure.ties]}.{short}"


def flatten(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield names and values, with nested mappings under both names.

    >>> list(flatten({"seed": 0, "limit": None, "versions": {"numpy": "2.0"}}))
    [('seed', '0'), ('limit', '–'), ('versions: numpy', '2.0')]
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}: ")
        else:
            yield f"{prefix}{name}", NONE if value is None else value if isinstance(value, str) else repr(value)
