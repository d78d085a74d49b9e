"""The report of a comparison: what it says, that it says all of it, and that nothing in the data can break it."""

import json
import math
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from exactrank._support.json_values import decode_record, encode_record
from exactrank._support.text import printable
from exactrank.compare import report, standings
from exactrank.compare.report import definitions, report_html
from exactrank.compare.report.charts import COLUMNS, STEPS, UNIT, Dot, Line, drawn_places, line_chart, step_chart, win_loss_areas
from exactrank.compare.report.svg import NARROW, SPAN, WIDE, PixelScale, element, extent, frame, look, marker, shapes, shorten, text_width
from exactrank.compare.report.tables import MINUS, verdict
from exactrank.compare.results import FeatureWeights, Point, Slice
from exactrank.compare.statistics import TESTS, letter
from exactrank.errors import OutputExistsError
from exactrank.measures import Measure
from exactrank.measures.parse import parse_measure
from tests.compare.comparisons import NASTY, changed_fits, make_comparison, partial, with_failure
from tests.compare.html_tree import parsed

SECTIONS = ["differences", "leaderboard", "ranks", "queries", "pairs", "learning", "features", "data", "measures", "settings"]
NOTHING = {"curve": (), "weights": None, "slice": None, "trials": (), "settings": {}, "tuned_settings": {}}


def not_finite():
    odd = (math.nan, math.inf, -math.inf, 1.0)
    curve = tuple(Point(i, v, v, None if i == 1 else v) for i, v in enumerate(odd))
    steps = Slice("f", "test", (-math.inf, -1.0, 0.0, 1.0), odd[:3], odd[:3])
    return changed_fits(make_comparison(methods=3), curve=curve, weights=FeatureWeights("gain", ("a", "b", "c", "d"), odd), slice=steps)


def no_values():
    comparison = make_comparison(methods=3, queries=5)
    return changed_fits(comparison, test=dict.fromkeys(comparison.fits[0].test, (None,) * 5), train={}, valid={"nDCG@10": None, "AP": None})


def many_grades():
    comparison = make_comparison(methods=2)
    return replace(comparison, datasets=(replace(comparison.datasets[0], grades={f"{i / 7:.3f}": i for i in range(100)}, source=""),))


CASES = {
    "plain": make_comparison,
    "several": lambda: with_failure(make_comparison(methods=5, datasets=2, folds=2, weighted=True, queries=15), "listnet"),
    "nasty": lambda: make_comparison(names=NASTY, measures=("nDCG(gain={0: 0, 1: 1, 2: 4})@10",)),
    "one query": lambda: make_comparison(queries=1),
    "one method": lambda: make_comparison(methods=1, trials=0),
    "one of each": lambda: make_comparison(methods=1, queries=1),
    "all failed": lambda: with_failure(with_failure(make_comparison(methods=2), "lambdamart"), "directrank", "<why>"),
    "nothing yet": lambda: partial(make_comparison(), 0),
    "partial": lambda: partial(make_comparison(folds=3, queries=10), 6),
    "no more than values": lambda: changed_fits(make_comparison(), **NOTHING),
    "not finite": not_finite,
    "no values": no_values,
    "many grades": many_grades,
    "many methods": lambda: make_comparison(methods=28, queries=4, trials=1, measures=("nDCG@10",)),
}


@pytest.fixture(scope="module")
def pages():
    """Each case once."""
    made = {}

    def page(name):
        if name not in made:
            comparison = CASES[name]()
            html = report_html(comparison)
            made[name] = comparison, html, parsed(html)
        return made[name]

    return page


def words(node):
    return " ".join(node.text.split())


def section(tree, name):
    return tree.one("section", id=name)


def tips(node):
    """What is said about points: as it stands, and from the shorter form that lines have."""
    results = [own.attributes["data-tip"] for own in node.all() if "data-tip" in own.attributes]
    for line in (own for own in node.all() if own.attributes.get("data-at")):
        for point in line.attributes["data-at"].split(";"):
            results.append(line.attributes["data-say"].format(*point.split(" ")[2:]))
    return results


def table_rows(node):
    return [[words(cell) for cell in row.all("td")] for row in node.one("tbody").all("tr")]


@pytest.mark.parametrize("case", CASES)
def test_every_page_is_whole_loads_nothing_and_holds_only_numbers(pages, case):
    comparison, html, tree = pages(case)
    assert [node.attributes["id"] for node in tree.all("section")] == SECTIONS
    assert [link.attributes["href"] for link in tree.one("nav").all("a")] == [f"#{name}" for name in SECTIONS]
    ids = [node.attributes["id"] for node in tree.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    assert not [node for node in tree.all() if "src" in node.attributes]
    assert {link.attributes["href"] for link in tree.all("link")} == {"data:,"}
    assert "://" not in html
    assert not re.search(r"url\(|@import", tree.one("style").text)
    assert len(list(tree.one("header").all(class_="banner"))) == (not comparison.complete)
    for chart in tree.all(class_="chart"):
        assert_numbers(chart)
    assert not re.search(r"\b(nan|inf|None|undefined)\b", " ".join(words(node) for node in tree.all("text")))
    for table in tree.all("table"):
        assert_as_many_cells_as_columns(table)


def assert_numbers(chart):
    """Places are shares of the plot or pixels, and no line leaves the plot."""
    for name, value in (pair for node in chart.all() for pair in node.attributes.items()):
        if name in {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "dx", "dy", "width", "height", "r"}:
            assert math.isfinite(float(value.removesuffix("%")))
            assert -0.01 <= float(value.removesuffix("%")) <= 100.01 or not value.endswith("%")
        elif name == "d":
            assert re.fullmatch(r"(M[-\d. LHV]+Z?)*", value)
            assert all(0 <= int(number) <= SPAN for number in re.findall(r"-?\d+", value))
        elif name == "data-at":
            assert all(math.isfinite(float(number)) for point in filter(None, value.split(";")) for number in point.split(" ")[:2])


def assert_as_many_cells_as_columns(table):
    *groups, heads = table.one("thead").all("tr")
    columns = len(list(heads.all("th")))
    assert [sum(int(th.attributes["colspan"]) for th in row.all("th")) for row in groups] == [columns] * len(groups)
    for row in table.one("tbody").all("tr"):
        assert sum(int(td.attributes.get("colspan") or 1) for td in row.all("td")) == columns


def test_the_leaderboard_says_what_the_standings_are(pages):
    comparison, _, tree = pages("plain")
    rows = table_rows(section(tree, "leaderboard"))
    first, second = (standings.standings(comparison, "data-1", measure) for measure in comparison.measures)
    assert len(rows) == len(comparison.methods)
    for row, fit, a, b in zip(rows, comparison.fits, first, second, strict=True):
        ends = [f"{own.interval[0]:.3f} to {own.interval[1]:.3f}" for own in (a, b)]
        assert row[:7] == [a.letter, a.method, f"{a.train:.4f}", f"{a.valid:.4f}", f"{a.mean:.4f}", ends[0], a.better_than]
        assert row[7:10] == [f"{b.mean:.4f}", ends[1], b.better_than]
        assert row[10:] == [f"{fit.seconds:.2f}", f"{sum(t.seconds for t in fit.trials):.2f}", str(fit.memory // 2**20)]
    assert [node.text for node in section(tree, "leaderboard").all("td", class_="best")] == [
        f"{max(a.mean for a in own):.4f}" for own in (first, second)
    ]


def test_letters_mark_who_is_beaten():
    comparison = make_comparison(queries=200)
    rows = table_rows(section(parsed(report_html(comparison)), "leaderboard"))
    assert set("cd") <= set(rows[0][6])
    assert rows[-1][6] == ""


def test_a_failed_method_keeps_its_row_and_says_why(pages):
    _, _, tree = pages("several")
    for part in section(tree, "leaderboard").all(class_="data-set"):
        rows = table_rows(part)
        assert rows[3][1] == "listnet"
        assert rows[3][2].startswith("failed: ")
        assert "RuntimeError: no memory left at <0x1>" in rows[3][2]
        assert [row.attributes.get("data-last") for row in part.one("tbody").all("tr")] == [None, None, None, "", None]
        assert rows[0][-1] == "2/2"


def test_several_data_sets_have_winning_numbers_and_parts_of_their_own(pages):
    comparison, _, tree = pages("several")
    overview, *boards = section(tree, "leaderboard").all("table")
    won = [standings.winning(comparison, measure) for measure in comparison.measures]
    assert [row[3:] for row in table_rows(overview)] == [[str(own[m.name]) for own in won] for m in comparison.methods]
    assert len(boards) == 2
    for name in SECTIONS[:8]:
        parts = list(section(tree, name).all(data_of="data"))
        assert [part.attributes["data-is"] for part in parts] == ["data-1", "data-2"]
        assert [words(part.one("h3")) for part in parts] == ["data-1", "data-2"]
    for name in ("learning", "features"):
        folds = [node.attributes["data-is"] for node in section(tree, name).all(data_of="fold of data-2")]
        assert folds == ["fold 1", "fold 2"]


def test_an_interrupted_comparison_says_how_far_it_came(pages):
    _, _, tree = pages("partial")
    assert words(tree.one(class_="banner")).startswith("partial: interrupted; 6 of 12 fits.")
    assert [row[-1] for row in table_rows(section(tree, "leaderboard"))] == ["2/3", "2/3", "1/3", "1/3"]
    _, _, tree = pages("nothing yet")
    assert [row[2] for row in table_rows(section(tree, "leaderboard"))] == ["not run yet"] * 4


def test_all_pairs_with_every_test(pages):
    comparison, _, tree = pages("plain")
    for measure, table in zip(comparison.measures, section(tree, "pairs").all("table"), strict=True):
        rows, result = table_rows(table), standings.pairs(comparison, "data-1", measure)
        assert [row[:2] for row in rows] == [[p.first, p.second] for p in result]
        for row, pair in zip(rows, result, strict=True):
            assert row[-3:] == [str(pair.wins), str(pair.ties), str(pair.losses)]
            assert float(row[2].replace(MINUS, "-")) == pytest.approx(pair.difference, abs=5e-5)
            for text, p in zip(row[4:10], [by[test] for by in (pair.p, pair.adjusted) for test in TESTS], strict=True):
                assert text == "<0.0001" if p < 5e-5 else float(text) == pytest.approx(p, abs=5e-5)


def test_ranks_one_to_ten_with_intervals(pages):
    comparison, _, tree = pages("plain")
    chart = section(tree, "ranks").one(class_="chart")
    assert len(list(chart.all("use"))) == 10 * len(comparison.methods) == len(list(chart.all(class_="whisker")))
    ten = next(tip for tip in tips(chart) if tip.startswith("directrank\nnDCG@10:"))
    own = standings.standings(comparison, "data-1", "nDCG@10")[1]
    assert ten == f"directrank\nnDCG@10: {own.mean:.4f}\n95%: {own.interval[0]:.4f} to {own.interval[1]:.4f}"
    _, _, tree = pages("many methods")
    assert not list(section(tree, "ranks").all(class_="whisker"))
    assert "Whiskers are not drawn" in words(section(tree, "ranks"))


def test_each_query_against_the_baseline(pages):
    comparison, _, tree = pages("plain")
    shared = standings.shared_values(comparison, "data-1", "nDCG@10")
    option = [node for node in section(tree, "queries").all("option") if "selected" in node.attributes]
    assert [words(node) for node in option] == [comparison.baseline]
    held = json.loads(section(tree, "queries").one("script").text)
    for figure in section(tree, "queries").all("figure"):
        name = words(figure.one("figcaption")).split()[0]
        differences = np.sort((shared.values[name] - shared.values["listnet"])[~np.isnan(shared.values[name])])[::-1]
        assert ("hidden" in figure.attributes) == (name == "listnet")
        rounded = (np.rint(shared.values[name] * UNIT) - np.rint(shared.values["listnet"] * UNIT)) / UNIT
        areas = [figure.one("path", class_=kind).attributes["d"] for kind in ("win", "loss")]
        assert areas == list(win_loss_areas(np.sort(rounded[~np.isnan(rounded)])[::-1].tolist(), held["reach"]))
        heights = [1 - int(top) / (SPAN / 2) for top in re.findall(r"V(\d+)H", "".join(areas))]
        np.testing.assert_allclose(np.array(heights) * held["reach"], differences[np.abs(differences) > 1.5e-4], atol=2e-3)


def test_the_values_for_other_baselines_are_those_of_the_methods(pages):
    comparison, _, tree = pages("plain")
    held = json.loads(section(tree, "queries").one("script").text)
    shared = standings.shared_values(comparison, "data-1", "nDCG@10")
    ours = np.array([[np.nan if v is None else v / held["unit"] for v in own] for own in held["values"]])
    np.testing.assert_allclose(ours, [shared.values[name] for name in held["names"]], atol=0.5 / held["unit"])
    for pair in standings.pairs(comparison, "data-1", "nDCG@10"):
        i, j = held["names"].index(pair.first), held["names"].index(pair.second)
        assert held["counts"][i][j] == held["counts"][j][i][::-1] == [pair.wins, pair.ties, pair.losses]


def test_many_queries_are_thinned_out_and_the_page_says_so(monkeypatch):
    for module in (report, standings):
        monkeypatch.setattr(module, "pairs", lambda *_: ())  # the tests take long and say nothing about the size
    html = report_html(make_comparison(methods=10, queries=5000, measures=("nDCG@10",)))
    tree = parsed(html)
    assert len(html) < 500_000
    for figure in section(tree, "queries").all("figure"):
        columns = sum(node.attributes["d"].count("H") for kind in ("win", "loss") for node in figure.all(class_=kind))
        assert 0.9 * COLUMNS <= columns <= COLUMNS or "hidden" in figure.attributes
    assert f"{COLUMNS} of 4,999 queries are drawn" in words(section(tree, "queries"))


def test_twenty_two_methods_on_two_sets_of_five_folds_stay_below_five_megabytes(monkeypatch):
    """A part of them, to which the size is proportional: every method has each chart, with as much in it as is ever drawn."""
    for module in (report, standings):
        monkeypatch.setattr(module, "pairs", lambda *_: ())
    rng = np.random.default_rng(0)
    values = 0.7 + 0.01 * rng.normal(size=500)
    curve = tuple(Point(i, 0.01 * i**1.3, float(v), float(v) - 0.05, f"{i // 100}/") for i, v in enumerate(values))
    low, edges = values[:400], np.linspace(-2, 2, 401)
    steps = Slice("feature 7", "validation", tuple(edges.tolist()), tuple(low.tolist()), tuple((low + 0.002 * rng.random(400)).tolist()))
    weights = FeatureWeights("gain", tuple(f"feature {i}" for i in range(46)), tuple(rng.random(46).tolist()))
    message = {"curve": curve, "slice": steps, "weights": weights, "settings": {f"setting_{i}": 0.1 * i for i in range(25)}}
    sizes = {}
    for folds in (1, 2):
        comparison = changed_fits(make_comparison(methods=4, folds=folds, queries=300, measures=("nDCG@10",), trials=4), **message)
        sizes[folds] = len(report_html(comparison).encode())
    a_fit, a_pair = (sizes[2] - sizes[1]) / 4, 500  # bytes; a row of the table of all pairs is checked below
    assert 22 * 2 * 5 * a_fit + 22 * 21 // 2 * 3 * 2 * a_pair < 4_700_000
    monkeypatch.undo()
    first, second = (len(str(section_html(report_html(make_comparison(methods=m, queries=12)), "pairs"))) for m in (4, 10))
    assert (second - first) / (2 * (45 - 6)) < a_pair


def section_html(html, name):
    return html.partition(f'<section id="{name}">')[2].partition("</section>")[0]


def test_every_name_is_escaped_and_shown(pages):
    _, _, tree = pages("nasty")
    assert len(list(tree.all("script"))) == 2
    assert not list(tree.all("b"))
    rows = table_rows(section(tree, "leaderboard"))
    assert [row[1] for row in rows] == list(NASTY)
    assert {words(node) for node in section(tree, "ranks").one(class_="legend").all("li")} == set(NASTY)
    assert [words(node) for node in section(tree, "queries").all("option")] == list(NASTY)
    assert json.loads(section(tree, "queries").one("script").text)["names"] == list(NASTY)
    assert '<1> & "co"' in {words(node) for node in section(tree, "features").all("text")}
    held_against = {f"{name} against {NASTY[-1]}" for name in NASTY[:-1]}
    assert {tip.partition("\n")[0] for tip in tips(section(tree, "differences"))} == held_against, "names that are cut short too"


def test_every_setting_seed_and_trial_is_there(pages):
    comparison, _, tree = pages("several")
    settings = section(tree, "settings")
    records = list(settings.all("details"))
    assert len(records) == len(comparison.methods) * len(comparison.datasets)
    for record in records:
        name, _, dataset = words(record.one("summary")).removesuffix(" failed").partition(" on ")
        fits = [fit for fit in comparison.fits if (fit.method, fit.dataset) == (name, dataset)]
        facts = {words(node.one("dt")): words(node.one("dd")) for node in record.all("div") if [c.tag for c in node.all()] == ["dt", "dd"]}
        folds, *rest = record.all("table")
        for row, fit in zip(table_rows(folds), fits, strict=True):
            assert row[0] == fit.fold
            assert all(facts.get(key) == repr(value) or f"{key}={value!r}" in row[2] for key, value in fit.settings.items())
            assert fit.failed in row[2]
        trials = [(fit, trial) for fit in fits for trial in fit.trials]
        for row, (fit, trial) in zip(table_rows(rest[0]) if rest else [], trials, strict=True):
            assert row[0] == fit.fold
            assert row[2] == ("failed" if trial.failed else f"{trial.valid:.4f}")
            assert all(f"{key}={value!r}" in row[4] for key, value in trial.settings.items())
            assert trial.failed in row[4]
    message = words(settings)
    facts = next(settings.all("dl"))
    run = {words(node): words(value) for node, value in zip(facts.all("dt"), facts.all("dd"), strict=True)}
    for name, value in comparison.run.items():
        assert name == "versions" or run[name] == str(value)
    assert run["versions: numpy"] == comparison.run["versions"]["numpy"]
    for method in comparison.methods:
        assert all(text in message for text in (method.about, method.configuration, *method.space.values()))


def test_data_and_measures(pages):
    comparison, _, tree = pages("several")
    data = section(tree, "data")
    for part, summary in zip(data.all(data_of="data"), comparison.datasets, strict=True):
        assert [row[-1] for row in table_rows(part)] == [fold.checksum for fold in summary.folds]
        assert [words(node) for node in part.one(class_="values").all("text")] == [f"{n:,}" for n in summary.grades.values()]
        assert summary.source in words(part)
    measures = words(section(tree, "measures"))
    for exact in comparison.measures.values():
        assert exact in measures
    for message in (
        "IDCG is the DCG of the documents in order of grade",
        "N is the number of relevant documents",
        "nothing relevant counts as 0",
    ):
        assert message in measures


def test_a_measure_of_the_callers_own_has_its_definition_alone():
    comparison = make_comparison(methods=2)
    fits = tuple(replace(fit, test={**fit.test, "clicks": fit.test["AP"]}) for fit in comparison.fits)
    tree = parsed(report_html(replace(comparison, measures={"clicks": "clicks a day"}, fits=fits)))
    clicks = section(tree, "measures").one("article")
    assert words(clicks) == "clicks clicks a day"


EQUATIONS = {
    "nDCG@10": "nDCG@k=DCG@kIDCG@k DCG@k=∑r≤k2yr-1log2(1+r)",
    "nDCG(gain='linear', discount='letor')": "nDCG=DCGIDCG DCG=∑ryrmax(1,log2r)",
    "DCG(gain={0: 0, 1: 3})@5": "DCG@k=∑r≤kgain of yrlog2(1+r)",
    "DCG(discount=[1, 0.5])": "DCG=∑r(2yr-1) times the discount of r",
    "MeanNDCG": "MeanNDCG=1n∑k=1nnDCG@k nDCG@k=DCG@kIDCG@k DCG@k=∑r≤k2yr-1log2(1+r)",
    "ERR(max_grade=2)@5": "ERR@k=∑r≤k1rur∏t<r(1-ut) ur=2yr-122",
    "P(rel=2)@5": "P@k=1k∑r≤k[yr≥2]",
    "P(norm='list')@5": "P@k=1n∑r≤k[yr≥1]",
    "R@5": "R@k=∑r≤k[yr≥1]∑r[yr≥1]",
    "RBP(p=0.5)": "RBP=(1-0.5)∑r[yr≥1]0.5r-1",
    "AP(rel=3)": "AP=1N∑r[yr≥3]Crr Cr=∑t≤r[yt≥3]",
    "RR": "RR=1r",
    "Judged@3": "Judged@k=1min(k,n)∑r≤k[yr≥0]",
    "Success@3": "Success@k=maxr≤k[yr≥1]",
    "revenue@10": "Total@k=∑r≤kcr",
    "PairwiseCorrect": "PairwiseCorrect=∑a,b[a,b]∑a,b1",
    "Bpref": "Bpref=1R∑d(1-min(n,R)min(R,N))",
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_a_measure_is_an_equation_with_its_own_settings(name):
    (own,) = definitions({name: repr(parse_measure(name))})
    assert " ".join(words(parsed(line).one("math")) for line in own.equations) == EQUATIONS[name].replace("-", MINUS)
    assert not re.search(r"\(\d\)|``|>>>", own.words)


def test_every_kind_of_measure_has_an_equation():
    assert {type(parse_measure(name)) for name in EQUATIONS} == {
        kind for kind in Measure.registry.builtin.values() if kind.__module__.startswith("exactrank")
    }


def test_measures_that_differ_in_their_cutoff_have_one_equation():
    comparison = make_comparison(methods=2, measures=("nDCG@10", "nDCG@1", "AP", "nDCG(gain='linear')@10"))
    articles = list(section(parsed(report_html(comparison)), "measures").all("article"))
    assert [words(article.one("h3")) for article in articles] == ["nDCG@10, nDCG@1", "AP", "nDCG(gain='linear')@10"]
    assert [len(list(article.all("math"))) for article in articles] == [2, 2, 2]


def test_learning_and_features_are_of_those_who_tell_and_the_others_say_why(pages):
    comparison, _, tree = pages("plain")
    learning, features = section(tree, "learning"), section(tree, "features")
    assert [words(node) for node in learning.all("figcaption")] == [fit.method for fit in comparison.fits if fit.curve]
    message = [fit.method for fit in comparison.fits if fit.weights]
    sliced = [f"{fit.method} along feature {fit.slice.feature}" for fit in comparison.fits if fit.slice]
    assert [words(node) for node in features.all("figcaption")] == message + sliced
    for figure, fit in zip(features.all("figure"), [fit for fit in comparison.fits if fit.weights], strict=False):
        known = sorted(zip(fit.weights.names, fit.weights.values, strict=True), key=lambda pair: -abs(pair[1]))[:15]
        assert [words(node) for node in figure.one(class_="ys").all("text")] == [name for name, _ in known]
    assert reasons(learning) == ["No chart for lightgbm: it does not report its steps."]
    assert reasons(features) == [
        "No chart for directrank, listnet: its model has no weight per feature (a network or a sum of models has none).",
        "No chart for lightgbm: the scores, or the feature that counts most, are constant or missing, or the measure has no exact steps.",
        "No chart for listnet: its model has no weight per feature (a network or a sum of models has none).",
    ]


def reasons(node):
    return [words(item) for own in node.all(class_="without") for item in own.all("li")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"curve": (Point(0, 0.1, 0.5, 0.5),)}, "it is solved in one step"),
        ({"curve": ()}, "it does not report its steps"),
        ({"curve": (), "seconds": 0.0}, "nothing was trained"),
        ({"curve": (), "failed": "no <memory>"}, "its fit failed (no <memory>)"),
    ],
)
def test_a_method_without_a_curve_says_why(change, message):
    comparison = changed_fits(make_comparison(methods=2), **change)
    assert reasons(section(parsed(report_html(comparison)), "learning")) == [f"No chart for lambdamart, directrank: {message}."]


def test_a_method_that_has_not_run_says_so(pages):
    _, _, tree = pages("nothing yet")
    assert reasons(section(tree, "learning")) == ["No chart for lambdamart, directrank, lightgbm, listnet: it has not run yet."]


def test_each_method_is_held_against_the_baseline_first_of_all(pages):
    comparison, html, tree = pages("plain")
    assert html.index('class="chart') == html.index('class="chart wide rows"'), "it is the first picture"
    big, small = section(tree, "differences").all(class_="chart")
    for chart, measure in zip((big, small), comparison.measures, strict=True):
        results = sorted(standings.differences(comparison, "data-1", measure), key=lambda pair: -pair.difference)
        assert [words(node) for node in chart.all("text", class_="name")] == [pair.first for pair in results]
        places = [float(node.attributes["x"].removesuffix("%")) for node in chart.all("use")]
        zero = float(chart.one(class_="zero").attributes["x1"].removesuffix("%"))
        scale = (places[0] - zero) / results[0].difference
        np.testing.assert_allclose(places, [zero + scale * pair.difference for pair in results], atol=0.05)
        for whisker, pair in zip(chart.all(class_="whisker"), results, strict=True):
            ends = [float(whisker.attributes[end].removesuffix("%")) for end in ("x1", "x2")]
            np.testing.assert_allclose(ends, [zero + scale * end for end in pair.interval], atol=0.05)
        clear = [pair.adjusted["randomization"] < 0.05 for pair in results]
        assert [group.has("class_", "clear") for group in chart.all("g") if list(group.all(class_="name"))] == clear
        assert [tip.split("\n")[0] for tip in tips(chart)] == [f"{pair.first} against {comparison.baseline}" for pair in results]
    first = max(standings.differences(comparison, "data-1", "nDCG@10"), key=lambda pair: pair.difference)
    message = f"+{first.difference:.4f} ({first.interval[0]:.4f} to {first.interval[1]:.4f})"
    assert words(next(big.all(class_="many", tag="text"))) == message


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        (lambda: make_comparison(methods=6), "Six ranking methods compared on data-1"),
        (lambda: make_comparison(methods=2, datasets=2), "Two ranking methods compared on data-1 and data-2"),
        (lambda: make_comparison(methods=22, datasets=3, queries=3), "22 ranking methods compared on data-1, data-2 and data-3"),
        (lambda: make_comparison(methods=2, datasets=4, queries=3), "Two ranking methods compared on 4 data sets"),
        (lambda: make_comparison(methods=1), "lambdamart on data-1"),
        (lambda: changed_fits(make_comparison(methods=2), seconds=0.0), "Two runs compared on data-1"),
    ],
)
def test_the_title_is_one_that_a_person_would_write(comparison, expected):
    assert report.title(comparison()) == expected


@pytest.mark.parametrize(
    ("methods", "better_than", "expected"),
    [
        (1, "", ""),
        (3, "", ", not significantly better than any other"),
        (3, "c", ", significantly better than method c"),
        (3, "bc", ", significantly better than every other method"),
        (9, "bcdef", ", significantly better than 5 of 8 others"),
        (28, "ab", ", significantly better than method ab"),
    ],
)
def test_the_verdict_names_whom_the_best_beats(methods, better_than, expected):
    names = [letter(i) for i in range(methods)]
    own = [
        standings.MethodStanding(f"method {a}", a, 0.5, (0.4, 0.6), 0.5, 0.5, "" if i else better_than, not i) for i, a in enumerate(names)
    ]
    assert verdict("AP", own) == f"Best by AP: method a with 0.5000 (0.4000 to 0.6000){expected}."


def test_a_restart_is_marked_and_not_joined():
    runs = ["0/"] * 20 + ["1/"] * 20 + [""] + ["2/"] * 20
    curve = tuple(Point(i, 0.1 * i, 0.6, 0.5 + 0.001 * i, run) for i, run in enumerate(runs))
    learning = section(parsed(report_html(changed_fits(make_comparison(methods=1), curve=curve))), "learning")
    times, steps = learning.all(class_="chart")
    for chart in (times, steps):
        valid = [node for node in chart.all("path", class_="line") if not node.has("class_", "faint")]
        assert [node.attributes["d"].count("M") for node in valid] == [3], "the point between the last two runs is no line"
    assert steps.one("path", class_="restart").attributes["d"].count("M") == 2
    assert "2 restarts, each marked by a line" in words(learning)
    joined = tuple(replace(point, run="") for point in curve)
    learning = section(parsed(report_html(changed_fits(make_comparison(methods=1), curve=joined))), "learning")
    assert not list(learning.all(class_="restart"))
    assert all(node.attributes["d"].count("M") == 1 for node in learning.all("path", class_="line"))


def test_points_of_older_results_have_no_run():
    record = encode_record(Point(3, 0.1, 0.5, None, "1/"))
    assert decode_record(Point, record).run == "1/"
    del record["run"]
    assert decode_record(Point, record) == Point(3, 0.1, 0.5, None)


def test_the_best_step_is_held_against_the_model():
    steps = Slice("f", "validation", (-1.0, -0.5, 0.25, 0.75, 1.0), (0.3, 0.5, 0.625, 0.1), (0.3, 0.5, 0.625, 0.1))
    comparison = changed_fits(make_comparison(methods=1), slice=steps, weights=None)
    figure = section(parsed(report_html(comparison)), "features").one("figure")
    assert words(figure.one(class_="note")) == "validation data: 0.5000 at 0; best 0.6250 at +0.5000, +0.1250"
    assert figure.one(class_="model").attributes["data-tip"] == "the model as it is\n0.5000"
    assert figure.one(class_="best-point").attributes["data-tip"] == "best, at +0.5000\n0.6250"


def test_seconds_far_apart_are_drawn_by_their_ratio():
    def ticks(seconds):
        curve = tuple(Point(i, s, 0.5, 0.5 + i / 10) for i, s in enumerate(seconds))
        tree = parsed(report_html(changed_fits(make_comparison(methods=1), curve=curve)))
        few, many = (section(tree, "learning").one(class_="wide").one("g", class_=kind) for kind in ("few", "many"))
        return [words(node) for node in few.all("text")], [words(node) for node in many.all("text")]

    assert ticks([0.1, 100.0]) == (["0.1", "1", "10", "100"],) * 2
    assert ticks([1.0, 3.0]) == (["1.0", "1.5", "2.0", "2.5", "3.0"], [f"{1 + i / 5:.1f}" for i in range(11)])


def test_a_report_is_the_same_each_time_and_replaces_nothing_unasked(tmp_path):
    comparison, path = make_comparison(), tmp_path / "report.html"
    comparison.write_report(path)
    with pytest.raises(OutputExistsError):
        comparison.write_report(path)
    written = path.read_bytes()
    make_comparison().write_report(path, force=True)
    assert path.read_bytes() == written == report_html(comparison).encode()


@given(st.floats(-1e6, 1e6), st.floats(1e-4, 1e6), st.integers(2, 12))
def test_ticks_are_round_and_within_the_scale(low, length, many):
    scale = PixelScale(low, low + length, 0.0, 100.0, many=many)
    assert all(low - 1e-6 * length <= tick <= low + length + 1e-6 * length for tick in scale.ticks)
    steps = np.diff(scale.ticks)
    assert (steps > 0).all()
    assert math.floor(many / 2.5 + 1e-6) <= len(scale.ticks) <= many + 1
    if len(steps) and abs(low) < 1000 * length:
        step = steps[0]
        assert min(abs(step / 10 ** round(math.log10(step / m)) - m) for m in (1, 2, 5)) < 1e-3
        assert len(set(scale.labels)) == len(scale.labels)


@given(st.floats(1e-3, 1e6), st.floats(1.5, 1e6))
def test_logarithmic_ticks_are_within_the_scale(low, ratio):
    scale = PixelScale(low, low * ratio, 0.0, 100.0, log=True)
    assert all(low <= tick <= low * ratio for tick in scale.ticks)
    assert list(scale.ticks) == sorted(set(scale.ticks))
    assert scale(low) == pytest.approx(0)
    assert scale(low * ratio) == pytest.approx(100)


@given(st.lists(st.one_of(st.none(), st.floats())))
def test_a_scale_shows_all_finite_values(values):
    known = [v for v in values if v is not None and math.isfinite(v) and abs(v) < 1e300]
    low, high = extent(known)
    assert low < high
    assert all(low <= v <= high for v in known)


@given(st.text(st.characters(codec=None)))
def test_text_comes_back_as_it_was_but_for_what_has_no_shape(text):
    node = parsed(element("text", text, data_tip=text)).one("text")
    text = printable(text, lines=True)
    assert node.text == text
    assert node.attributes["data-tip"] == text


@given(st.text(), st.floats(20, 200))
def test_shortened_text_fits(text, width):
    short = shorten(text, width)
    assert text_width(short) <= width
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


@given(st.integers(0, 3 * COLUMNS), st.integers(1, 1000), st.integers(0, 2**32))
def test_the_queries_drawn_span_all_differences(queries, distinct, seed):
    rng = np.random.default_rng(seed)
    differences = np.where(rng.random(queries) < 0.1, np.nan, rng.integers(-distinct, distinct, queries) / distinct)
    places = drawn_places(differences)
    known = differences[np.isfinite(differences)]
    assert len(places) == len(set(places.tolist())) == min(len(known), COLUMNS)
    assert (np.diff(differences[places]) <= 0).all()
    if len(known):
        assert (differences[places[0]], differences[places[-1]]) == (known.max(), known.min())


def test_no_two_methods_look_alike():
    looks = {(look(i), str(marker(i, 0.0, 0.0))) for i in range(105)}
    assert len(looks) == 105
    drawn = {node.attributes["id"] for node in parsed(shapes()).all() if "id" in node.attributes}
    assert {re.search('#(.*?)"', made)[1] for _, made in looks} == drawn


def test_a_gap_in_a_curve_stays_one():
    dots = [Dot(float(i), math.nan if i == 3 else 1.0 + i, (str(i),)) for i in range(7)]
    chart = parsed(line_chart([Line(0, dots, "at {}")], "gap", ("x", "y")))
    assert chart.one("path", class_="line").attributes["d"].count("M") == 2
    assert tips(chart) == [f"at {i}" for i in (0, 1, 2, 4, 5, 6)]
    assert len(list(chart.all("use"))) == 6


@pytest.mark.parametrize(("kind", "wide"), [("small", NARROW), ("wide", WIDE)])
def test_labels_of_ticks_keep_apart(kind, wide):
    *_, axes, padding = frame((0.0, 1e5), (0.0, 1.0), ("x", "y"), many=9, kind=kind)
    labels = list([*parsed(axes).all("g", class_="xs")][-1].all("text"))
    across = wide - padding[1] - padding[3]
    middles = [float(node.attributes["x"].removesuffix("%")) / 100 * across for node in labels]
    ends = [(at - text_width(node.text) / 2, at + text_width(node.text) / 2) for at, node in zip(middles, labels, strict=True)]
    assert len(labels) > 2
    assert all(a[1] < b[0] for a, b in pairwise(ends))
    assert -padding[3] <= ends[0][0]
    assert ends[-1][1] <= across + padding[1]


def test_many_steps_are_drawn_together_as_a_band():
    def drawn(steps):
        edges, values = np.linspace(-1, 1, steps + 1), np.tile([0.3, 0.5], steps)[:steps]
        steps = Slice("f", "test", tuple(edges.tolist()), tuple(values.tolist()), tuple(values.tolist()))
        return parsed(step_chart(steps, "steps", ("x", "y"), "color-0", ()))

    assert drawn(STEPS).one("path", class_="line").attributes["d"].count("H") == STEPS
    assert drawn(2 * STEPS).one("path", class_="area").attributes["d"].count("V") == 0
