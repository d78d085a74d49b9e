"""The report of a comparison: what it says, that it says all of it, and that nothing in the data can break it."""

import json
import math
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from exactrank.compare import report, standings
from exactrank.compare.page.charts import Dot, Line, line_chart
from exactrank.compare.page.svg import Scale, element, extent, framed, look, marker, shortened, text_width
from exactrank.compare.page.table import MINUS
from exactrank.compare.page.win_loss import COLUMNS, drawn_places
from exactrank.compare.report import report_html
from exactrank.compare.results import Point, Slice, Weights
from exactrank.compare.statistics.paired import TESTS
from exactrank.errors import OutputExistsError
from exactrank.text import printable
from tests.comparisons import NASTY, changed_fits, make_comparison, partial, with_failure
from tests.html_tree import parsed

SECTIONS = ["leaderboard", "ranks", "queries", "pairs", "learning", "features", "data", "measures", "settings"]
NOTHING = {"curve": (), "weights": None, "slice": None, "trials": (), "settings": {}, "chosen": {}}


def not_finite():
    odd = (math.nan, math.inf, -math.inf, 1.0)
    curve = tuple(Point(i, v, v, None if i == 1 else v) for i, v in enumerate(odd))
    steps = Slice("f", "test", (-math.inf, -1.0, 0.0, 1.0), odd[:3], odd[:3])
    return changed_fits(make_comparison(methods=3), curve=curve, weights=Weights("gain", ("a", "b", "c", "d"), odd), slice=steps)


def no_values():
    made = make_comparison(methods=3, queries=5)
    return changed_fits(made, test=dict.fromkeys(made.fits[0].test, (None,) * 5), train={}, valid={"nDCG@10": None, "AP": None})


def many_grades():
    made = make_comparison(methods=2)
    return replace(made, datasets=(replace(made.datasets[0], grades={f"{i / 7:.3f}": i for i in range(100)}, source=""),))


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
    for chart in tree.all("svg"):
        assert_numbers(chart)
    assert not re.search(r"\b(nan|inf|None|undefined)\b", " ".join(words(node) for node in tree.all("text")))
    for table in tree.all("table"):
        assert_as_many_cells_as_columns(table)


def assert_numbers(chart):
    for name, value in (pair for node in chart.all() for pair in node.attributes.items()):
        if name in {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "r"}:
            assert math.isfinite(float(value))
            assert float(value) >= 0 or name not in {"width", "height"}
        elif name == "d":
            assert re.fullmatch(r"M[-\d. L]+Z?", value)


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
        assert row[10:] == [f"{fit.seconds:.2f}", f"{sum(t.seconds for t in fit.trials):.2f}", f"{fit.memory / 1e6:.0f}"]
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
    for name in SECTIONS[:7]:
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
        rows, found = table_rows(table), standings.pairs(comparison, "data-1", measure)
        assert [row[:2] for row in rows] == [[p.first, p.second] for p in found]
        for row, pair in zip(rows, found, strict=True):
            assert row[-3:] == [str(pair.wins), str(pair.ties), str(pair.losses)]
            assert float(row[2].replace(MINUS, "-")) == pytest.approx(pair.difference, abs=5e-5)
            for text, p in zip(row[4:10], [by[test] for by in (pair.p, pair.adjusted) for test in TESTS], strict=True):
                assert text == "<0.0001" if p < 5e-5 else float(text) == pytest.approx(p, abs=5e-5)


def test_ranks_one_to_ten_with_intervals(pages):
    comparison, _, tree = pages("plain")
    chart = section(tree, "ranks").one("svg", class_="chart")
    assert len(list(chart.all(class_="marker"))) == 10 * len(comparison.methods) == len(list(chart.all(class_="whisker")))
    ten = next(node.attributes["data-tip"] for node in chart.all() if "directrank\nnDCG@10:" in (node.attributes.get("data-tip") or ""))
    own = standings.standings(comparison, "data-1", "nDCG@10")[1]
    assert ten == f"directrank\nnDCG@10: {own.mean:.4f}\n95%: {own.interval[0]:.4f} to {own.interval[1]:.4f}"
    _, _, tree = pages("many methods")
    assert not list(section(tree, "ranks").all(class_="whisker"))
    assert "whiskers are not drawn" in words(section(tree, "ranks"))


def test_each_query_against_the_baseline(pages):
    comparison, _, tree = pages("plain")
    shared = standings.shared_values(comparison, "data-1", "nDCG@10")
    option = [node for node in section(tree, "queries").all("option") if "selected" in node.attributes]
    assert [words(node) for node in option] == [comparison.baseline]
    for figure in section(tree, "queries").all("figure"):
        name = words(figure.one("figcaption")).split()[0]
        bars = list(figure.all("rect"))
        differences = np.sort((shared.values[name] - shared.values["listnet"])[~np.isnan(shared.values[name])])[::-1]
        assert ("hidden" in figure.attributes) == (name == "listnet")
        assert [bar.attributes["class"] for bar in bars].count("win") == pytest.approx((differences > 0).sum(), abs=1)
        said = [float(bar.attributes["data-tip"].rpartition(" ")[2].replace(MINUS, "-")) for bar in bars]
        np.testing.assert_allclose(said, differences, atol=1.5e-4)
        qid = {bar.attributes["data-tip"].split("\n")[0] for bar in bars}
        assert qid == {f"query {q}" for q in shared.qid if q != "q4"}, "q4 is skipped"


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
    assert len(html) < 2_000_000
    assert {len(list(figure.all("rect"))) for figure in section(tree, "queries").all("figure")} == {COLUMNS}
    assert f"{COLUMNS} of 4,999 queries are drawn" in words(section(tree, "queries"))


def test_every_name_is_escaped_and_shown(pages):
    _, _, tree = pages("nasty")
    assert len(list(tree.all("script"))) == 2
    assert not list(tree.all("b"))
    rows = table_rows(section(tree, "leaderboard"))
    assert [row[1] for row in rows] == list(NASTY)
    assert {words(node) for node in section(tree, "ranks").one(class_="legend").all("li")} == set(NASTY)
    assert [words(node) for node in section(tree, "queries").all("option")] == list(NASTY)
    assert json.loads(section(tree, "queries").one("script").text)["names"] == list(NASTY)
    assert '<1> & "co"' in {node.attributes.get("data-tip", "").split("\n")[0] for node in section(tree, "features").all("rect")}


def test_every_setting_seed_and_trial_is_there(pages):
    comparison, _, tree = pages("several")
    settings = section(tree, "settings")
    records = list(settings.all("details"))
    assert len(records) == len(comparison.fits)
    for record, fit in zip(records, comparison.fits, strict=True):
        facts = {words(node.one("dt")): words(node.one("dd")) for node in record.all("div") if [c.tag for c in node.all()] == ["dt", "dd"]}
        assert facts == {name: repr(value) for name, value in fit.settings.items()}
        assert fit.failed in words(record)
        trials = table_rows(record) if fit.trials else []
        assert [row[1] for row in trials] == [("failed" if t.failed else f"{t.valid:.4f}") for t in fit.trials]
        assert all(f"{name}={value!r}" in row[3] for row, t in zip(trials, fit.trials, strict=True) for name, value in t.settings.items())
        assert all(t.failed in row[3] for row, t in zip(trials, fit.trials, strict=True))
    said = words(settings)
    facts = next(settings.all("dl"))
    run = {words(node): words(value) for node, value in zip(facts.all("dt"), facts.all("dd"), strict=True)}
    for name, value in comparison.run.items():
        assert name == "versions" or run[name] == str(value)
    assert run["versions: numpy"] == comparison.run["versions"]["numpy"]
    for method in comparison.methods:
        assert all(text in said for text in (method.about, method.configuration, *method.space.values()))


def test_data_and_measures(pages):
    comparison, _, tree = pages("several")
    data = section(tree, "data")
    for part, summary in zip(data.all(data_of="data"), comparison.datasets, strict=True):
        assert [row[-1] for row in table_rows(part)] == [fold.checksum for fold in summary.folds]
        assert [text for text in map(words, part.all("text")) if "," in text or text.isdigit()][1::2] == [
            f"{n:,}" for n in summary.grades.values()
        ]
        assert summary.source in words(part)
    measures = words(section(tree, "measures"))
    for exact in comparison.measures.values():
        assert exact in measures
    for said in ("nDCG@k = DCG@k / (DCG@k of the documents in order of grade)", "AP@k = sum_{r<=k}", "pessimistic"):
        assert said in measures


def test_a_measure_of_the_callers_own_has_its_definition_alone():
    comparison = make_comparison(methods=2)
    fits = tuple(replace(fit, test={**fit.test, "clicks": fit.test["AP"]}) for fit in comparison.fits)
    tree = parsed(report_html(replace(comparison, measures={"clicks": "clicks a day"}, fits=fits)))
    clicks, everything = section(tree, "measures").all("article")
    assert words(clicks) == "clicks clicks a day"
    assert words(everything.one("h3")) == "All measures"


def test_learning_and_features_are_of_those_who_tell(pages):
    comparison, _, tree = pages("plain")
    learning, features = section(tree, "learning"), section(tree, "features")
    assert [words(node) for node in learning.all("figcaption")] == [fit.method for fit in comparison.fits if fit.curve]
    told = [fit.method for fit in comparison.fits if fit.weights]
    sliced = [f"{fit.method} along feature {fit.slice.feature}" for fit in comparison.fits if fit.slice]
    assert [words(node) for node in features.all("figcaption")] == told + sliced
    for figure, fit in zip(features.all("figure"), [fit for fit in comparison.fits if fit.weights], strict=False):
        sizes = sorted(map(abs, fit.weights.values), reverse=True)
        names = dict(zip(map(abs, fit.weights.values), fit.weights.names, strict=True))
        assert [bar.attributes["data-tip"].split("\n")[0] for bar in figure.all("rect")] == [names[size] for size in sizes[:15]]
    _, _, tree = pages("no more than values")
    assert "No method tells of its steps" in words(section(tree, "learning"))
    assert "No method tells of its features" in words(section(tree, "features"))


def test_the_best_step_is_held_against_the_model():
    steps = Slice("f", "validation", (-1.0, -0.5, 0.25, 0.75, 1.0), (0.3, 0.5, 0.625, 0.1), (0.3, 0.5, 0.625, 0.1))
    made = changed_fits(make_comparison(methods=1), slice=steps, weights=None)
    figure = section(parsed(report_html(made)), "features").one("figure")
    assert words(figure.one(class_="note")) == "validation data: 0.5000 at 0; best 0.6250 at +0.5000, +0.1250"
    assert figure.one(class_="model").attributes["data-tip"] == "the model as it is\n0.5000"
    assert figure.one(class_="best-point").attributes["data-tip"] == "best, at +0.5000\n0.6250"


def test_seconds_far_apart_are_drawn_by_their_ratio():
    def ticks(seconds):
        curve = tuple(Point(i, s, 0.5, 0.5 + i / 10) for i, s in enumerate(seconds))
        tree = parsed(report_html(changed_fits(make_comparison(methods=1), curve=curve)))
        return [words(node) for node in section(tree, "learning").one(class_="single").all("text", text_anchor="middle")]

    assert ticks([0.1, 100.0]) == ["0.1", "1", "10", "100"]
    assert ticks([1.0, 3.0]) == ["1.0", "1.5", "2.0", "2.5", "3.0"]


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
    scale = Scale(low, low + length, 0.0, 100.0, many=many)
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
    scale = Scale(low, low * ratio, 0.0, 100.0, log=True)
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
    short = shortened(text, width)
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
    looks = [(look(i), re.sub(r'colour-\d+|"[MLZ\d. -]+"', "", marker(i, 0.0, 0.0)), str(marker(i, 0.0, 0.0))) for i in range(105)]
    assert len({(a, c) for a, _, c in looks}) == 105


def test_a_gap_in_a_curve_stays_one():
    dots = [Dot(float(i), math.nan if i == 3 else 1.0 + i, str(i)) for i in range(6)]
    chart = parsed(line_chart([Line(0, dots)], "gap", ("x", "y")))
    assert len(list(chart.all(class_="line"))) == 2
    assert [node.attributes["data-tip"] for node in chart.all(class_="marker")] == ["0", "1", "2", "4", "5"]


def test_labels_of_ticks_keep_apart():
    *_, axes = framed((120.0, 100.0), (0.0, 1e5), (0.0, 1.0), ("x", "y"))
    labels = [node for node in parsed(axes).all("text") if node.attributes.get("text-anchor") == "middle"]
    ends = [(float(n.attributes["x"]) - text_width(n.text) / 2, float(n.attributes["x"]) + text_width(n.text) / 2) for n in labels]
    assert labels
    assert all(a[1] < b[0] for a, b in pairwise(ends))
