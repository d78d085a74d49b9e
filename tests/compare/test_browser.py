"""The report in a real browser: Debian's Chromium, driven by playwright. `make test-browser` installs both."""

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from tests.compare.comparisons import NASTY, changed_fits, make_comparison, partial, with_failure

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; pip install playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; apt-get install chromium")


def told_by_all(comparison):
    """Every method has the charts that the first has, and every fold a checksum as long as real ones are."""
    (data,), first = comparison.datasets, comparison.fits[0]
    folds = tuple(replace(fold, checksum="-".join([2 * fold.checksum] * 3)) for fold in data.folds)
    made = changed_fits(comparison, curve=first.curve, weights=first.weights, slice=first.slice)
    return replace(made, datasets=(replace(data, folds=folds),))


CASES = {
    "plain": lambda: make_comparison(methods=5, queries=16),
    "several": lambda: with_failure(make_comparison(methods=4, datasets=2, folds=2, queries=8, weighted=True), "listnet"),
    "many": lambda: make_comparison(methods=20, queries=10, measures=("nDCG@10",), trials=1),
    "nasty": lambda: make_comparison(names=NASTY, queries=12, measures=("nDCG@10", "AP", "RR", "P@5")),
    "demo": lambda: told_by_all(make_comparison(methods=6, folds=3, queries=60, measures=("nDCG@10", "nDCG@1", "AP(rel=3)"))),
    "little": lambda: partial(make_comparison(methods=2, queries=1, folds=2, trials=0), 2),
}

#: Texts of a chart that leave it or meet another one, by what they say.
BAD_TEXTS = """() => {
  const bad = [];
  for (const chart of document.querySelectorAll(".chart")) {
    const outer = chart.getBoundingClientRect();
    if (!outer.width) continue;
    const texts = [...chart.querySelectorAll("text")].filter((text) => text.textContent && text.getClientRects().length);
    const boxes = texts.map((text) => [text.textContent, text.getBoundingClientRect()]);
    boxes.forEach(([said, box], i) => {
      if (box.left < outer.left - 1 || box.right > outer.right + 1 || box.top < outer.top - 1 || box.bottom > outer.bottom + 1)
        bad.push(`${chart.ariaLabel}: "${said}" is cut off`);
      for (const [other, its] of boxes.slice(i + 1))
        if (box.left < its.right - 0.5 && its.left < box.right - 0.5 && box.top < its.bottom - 2 && its.top < box.bottom - 2)
          bad.push(`${chart.ariaLabel}: "${said}" meets "${other}"`);
    });
  }
  return bad;
}"""

#: What is wider than the page, other than within a box that scrolls.
TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter((node) => {
  if (node.closest(".wide, nav ul, svg, caption, select, #tip, math")?.matches("nav ul, svg, caption, select, #tip, math")) return false;
  if (node.closest(".wide:not(.chart) *")) return false;
  return node.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map((node) => `${node.tagName}.${node.className}: ${node.textContent.slice(0, 40)}`)"""

#: What stands on the page beside or under other things and meets one of them: pairs of them.
OVERLAPS = """() => {
  const kinds = "h1, h2, h3, h4, p, figcaption, .chart, .wide:not(.chart), .legend li, .facts div, li, nav, summary, .chooser, math";
  const seen = (node) => node.getClientRects().length && !node.closest(".wide:not(.chart) *, nav *");
  const found = [...document.querySelectorAll(kinds)].filter(seen);
  const boxes = found.map((node) => [node, node.getBoundingClientRect()]), bad = [];
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const named = (node) => `${node.tagName} "${node.textContent.trim().slice(0, 30)}"`;
  boxes.forEach(([one, a], i) => {
    for (const [other, b] of boxes.slice(i + 1))
      if (!one.contains(other) && !other.contains(one) && meet(a, b)) bad.push(`${named(one)} meets ${named(other)}`);
  });
  return bad;
}"""

#: How much of the width that the page has each row of charts takes: from the left end of its first to the right end of its last.
WIDTHS = """() => {
  const main = document.querySelector("main").getBoundingClientRect();
  const wide = [...document.querySelectorAll(".chart.wide")].filter((chart) => chart.getClientRects().length);
  const alone = wide.map((chart) => chart.getBoundingClientRect().width / main.width);
  const panels = [...document.querySelectorAll(".panels")].filter((panel) => panel.getClientRects().length).map((panel) => {
    const boxes = [...panel.querySelectorAll(".chart")].map((chart) => chart.getBoundingClientRect()).filter((box) => box.width);
    return (Math.max(...boxes.map((box) => box.right)) - Math.min(...boxes.map((box) => box.left))) / main.width;
  });
  return [...alone, ...panels];
}"""

#: Cells of tables that are much taller than they are wide, as where a column is squeezed until a word stands letter by letter.
SQUEEZED = """() => [...document.querySelectorAll("td.code, td.failed, td.words")].filter((cell) => {
  const box = cell.getBoundingClientRect();
  return box.width && cell.textContent.length > 20 && box.height > 1.2 * box.width;
}).map((cell) => cell.textContent.slice(0, 40))"""


@pytest.fixture(scope="module")
def browser():
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield running
        running.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")

    def path(name) -> Path:
        page_file = folder / f"{name}.html"
        if not page_file.exists():
            CASES[name]().write_report(page_file)
        return page_file

    return path


@pytest.fixture
def opened(browser, reports):
    """A report in a page of some width; errors on its console and all that it asks for are failures."""
    contexts, wrong = [], []

    def page(name, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_default_timeout(10_000)
        new_page = context.new_page()
        new_page.on("console", lambda message: wrong.append(message.text))
        new_page.on("pageerror", lambda error: wrong.append(str(error)))
        new_page.on("request", lambda request: request.url.startswith(("file://", "data:")) or wrong.append(request.url))
        new_page.goto(reports(name).as_uri())
        return new_page

    yield page
    for context in contexts:
        context.close()
    assert wrong == []


def rows(page, table, column):
    return page.eval_on_selector_all(f"{table} tbody tr", f"rows => rows.map(row => row.cells[{column}].textContent)")


def tip(page):
    return page.locator("#tip").inner_text() if page.locator("#tip").is_visible() else None


PAPER = 1046  #: CSS pixels of A4 without its margins


WIDTHS_OF_ALL = [(375, "screen"), (1400, "screen"), (PAPER, "print")]
MORE_WIDTHS = [(800, "screen"), (2400, "screen")]  #: of the case with most to show


@pytest.mark.parametrize(
    ("case", "width", "media"),
    [*((case, *each) for each in WIDTHS_OF_ALL for case in CASES), *(("many", *each) for each in MORE_WIDTHS)],
)
def test_nothing_is_cut_off_and_nothing_overlaps(opened, case, width, media):
    page = opened(case, width)
    page.emulate_media(media=media)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    if media == "screen":
        page.evaluate("for (const name of ['data', 'fold of data-1', 'fold of data-2']) pick(name, '')")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(BAD_TEXTS) == []
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(SQUEEZED) == []


@pytest.mark.parametrize("width", [375, 700, 1400, 2400])
def test_charts_take_the_width_of_the_page_and_texts_keep_their_size(opened, width):
    page = opened("plain", width)
    assert page.evaluate("document.querySelector('main').getBoundingClientRect().width") > 0.9 * width
    taken = page.evaluate(WIDTHS)
    assert len(taken) > 5
    assert min(taken) > 0.97
    sizes = page.eval_on_selector_all(".chart text", "texts => texts.map(text => [getComputedStyle(text).fontSize, text.getCTM().a])")
    assert {(size, round(scale, 3)) for size, scale in sizes} == {("12px", 1)}
    strokes = page.eval_on_selector_all(".chart path", "paths => paths.map(path => getComputedStyle(path).vectorEffect)")
    assert set(strokes) == {"non-scaling-stroke"}
    markers = page.eval_on_selector_all(".chart use", "marks => marks.map(mark => mark.getBoundingClientRect().width)")
    assert 5 < min(markers) <= max(markers) < 12


def test_a_wide_chart_has_more_labels_and_a_narrow_one_fewer(opened):
    texts = (opened("plain", width).locator("#differences .chart").first.locator("text:visible") for width in (1400, 375))
    wide, narrow = (found.all_text_contents() for found in texts)
    assert any(" to " in text for text in wide)
    assert not any(" to " in text for text in narrow)
    assert len(narrow) < len(wide)


def test_lines_go_through_their_markers(opened):
    """Lines are drawn in a square that is stretched, markers at shares of the plot: they meet at any width."""
    for width in (375, 2400):
        page = opened("plain", width)
        far = page.evaluate("""() => {
          const chart = document.querySelector("#ranks .chart"), line = chart.querySelector("path.line"), matrix = line.getScreenCTM();
          const places = line.getAttribute("d").slice(1).split("L").map((place) => place.split(" ").map(Number));
          const corners = places.map(([x, y]) => new DOMPoint(x, y).matrixTransform(matrix));
          const marks = [...chart.querySelector("g[data-method]").querySelectorAll("use")].map((mark) => mark.getBoundingClientRect());
          return marks.map((box, i) => Math.hypot(box.x + box.width / 2 - corners[i].x, box.y + box.height / 2 - corners[i].y));
        }""")
        assert len(far) == 10
        assert max(far) < 1.5


def test_paper_has_all_data_sets_and_the_fold_that_is_chosen(opened):
    page = opened("several", PAPER)
    assert page.locator("#leaderboard .data-set:visible").count() == 1
    page.emulate_media(media="print")
    assert page.locator("#leaderboard .data-set:visible").count() == 2
    assert page.locator("#learning h4.fold:visible").all_inner_texts() == ["fold 1", "fold 1"]
    page.evaluate("pick('fold of data-1', 'fold 2')")
    assert page.locator("#learning h4.fold:visible").all_inner_texts() == ["fold 2", "fold 1"]
    assert page.locator("nav, .chooser, #tip, details").locator("visible=true").count() == 0
    over = "nodes => nodes.filter(node => node.scrollWidth > document.documentElement.clientWidth).length"
    assert page.eval_on_selector_all(".wide:not(.chart)", over) == 0


def test_paper_without_a_script_has_the_first_fold(opened):
    page = opened("several", PAPER, java_script_enabled=False)
    page.emulate_media(media="print")
    assert page.locator("#learning h4.fold:visible").all_inner_texts() == ["fold 1", "fold 1"]


def test_six_methods_print_on_eight_pages_at_most(opened):
    """As many as the demonstration has, with as many measures and folds, and with every chart."""
    printed = opened("demo").pdf(prefer_css_page_size=True)
    assert 2 <= max(int(count) for count in re.findall(rb"/Count (\d+)", printed)) <= 8


def test_equations_are_set_as_equations(opened):
    page = opened("plain")
    fractions = page.eval_on_selector_all(
        "mfrac", "all => all.map(each => each.children[1].getBoundingClientRect().y - each.getBoundingClientRect().y)"
    )
    assert fractions
    assert min(fractions) > 5, "what is below stands below"


def test_without_a_script_all_is_there_too(opened):
    page = opened("several", java_script_enabled=False)
    assert page.locator("#leaderboard .data-set:visible").count() == 2
    assert page.locator("#queries figure:visible").count() == 2 * 2
    assert page.locator("#queries path.loss:visible").count() == 2 * 2


def test_a_heading_sorts_by_its_column(opened):
    page, table = opened("several"), "#leaderboard [data-is=data-1] table"
    names = rows(page, table, 1)
    heading = page.locator(f"{table} thead tr:last-child th")

    def click(column):
        heading.nth(column).locator("button").click()
        return heading.nth(column).get_attribute("aria-sort")

    assert click(4) == "descending"  # the first measure on test data
    shown = rows(page, table, 4)
    assert shown[:3] == sorted(shown[:3], key=float, reverse=True)
    assert rows(page, table, 1)[3] == "listnet", "a failed method stays last"
    assert click(4) == "ascending"
    assert rows(page, table, 4)[:3] == shown[2::-1]
    assert click(1) == "ascending"
    assert rows(page, table, 1) == [*sorted(set(names) - {"listnet"}), "listnet"]
    assert click(0) == "ascending"
    assert rows(page, table, 1)[:3] == [name for name in names if name != "listnet"]
    assert [th.get_attribute("aria-sort") for th in heading.all()].count("none") == heading.count() - 1


def test_numbers_sort_as_numbers_and_by_the_keyboard(opened):
    page, table = opened("plain"), "#pairs table >> nth=0"
    heading = page.locator(table).locator("thead tr:last-child th", has_text="difference")
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    shown = [float(text.replace("\u2212", "-")) for text in page.locator(table).locator("tbody td:nth-child(3)").all_inner_texts()]
    assert shown == sorted(shown, reverse=True)
    assert min(shown) < 0 < max(shown)


def test_pointing_at_a_chart_tells_of_what_is_nearest(opened):
    page = opened("plain")
    mark = page.locator("#ranks .chart use").nth(13)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    assert tip(page) is None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert tip(page).startswith("directrank\nnDCG@4: 0.")
    assert re.search(r"95%: 0\.\d{4} to 0\.\d{4}$", tip(page))
    page.mouse.move(5, 5)
    assert tip(page) is None
    plot = page.locator("#queries .chart:visible svg").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 0.02 * box["height"])  # far above the first bar
    assert tip(page).startswith("query ")
    assert "difference: +" in tip(page)
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 0.02 * box["height"])
    assert "difference: \u2212" in tip(page)


def test_the_keyboard_walks_along_a_chart(opened):
    page = opened("plain")
    page.locator("#pairs .wide").first.focus()
    chart = page.locator("#queries .chart:visible").last
    while not chart.evaluate("node => node === document.activeElement"):
        page.keyboard.press("Shift+Tab")
    message = [bar.get_attribute("data-tip") for bar in chart.locator("rect").all()]
    assert len(message) == 15  # of 16 queries one is skipped
    assert tip(page) == message[0]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert tip(page) == message[2]
    page.keyboard.press("ArrowLeft")
    assert tip(page) == message[1]
    page.keyboard.press("Escape")
    assert tip(page) is None


@pytest.mark.parametrize("queries", [12, 300])
def test_another_baseline_is_drawn_as_if_it_had_been_the_first(browser, tmp_path, queries):
    """The script draws what `win_loss_chart` would have."""
    comparison = make_comparison(queries=queries, measures=("nDCG@10",))
    pictures = {}
    for baseline in ("lambdamart", "lightgbm"):
        replace(comparison, baseline=baseline).write_report(tmp_path / f"{baseline}.html")
        page = browser.new_page()
        page.goto((tmp_path / f"{baseline}.html").as_uri())
        pictures[baseline, "first"] = _win_loss(page)
        for chosen in ("directrank", "lightgbm", "lambdamart"):
            page.locator(".baseline").select_option(label=chosen)
            pictures[baseline, chosen] = _win_loss(page)
        page.close()
    for chosen in ("lambdamart", "lightgbm"):
        assert pictures["lambdamart", chosen] == pictures["lightgbm", chosen] == pictures[chosen, "first"]
    assert pictures["lambdamart", "directrank"] != pictures["lambdamart", "lightgbm"]


#: All that a reader sees of the charts against the baseline, and what is said about their bars.
SEEN = """figures => figures.map((figure) => {
  const [caption, count, chart] = ["figcaption", ".count", ".chart"].map((part) => figure.querySelector(part));
  const areas = [".win", ".loss"].map((area) => chart.querySelector(area).getAttribute("d"));
  const told = (bar) => ["x", "y", "width", "height", "data-tip"].map((name) => bar.getAttribute(name)).join("|");
  return [caption.textContent, count.textContent, chart.ariaLabel, ...areas, ...marks(chart).map(told)];
})"""


def _win_loss(page):
    return page.eval_on_selector_all("#queries figure:not([hidden])", SEEN)


def test_data_sets_and_folds_are_chosen(opened):
    page = opened("several")
    page.locator("nav select").select_option("data-2")
    for section in ("differences", "leaderboard", "ranks", "queries", "pairs", "learning", "features", "data"):
        assert page.locator(f"#{section} .data-set:visible > h3").all_inner_texts() == ["data-2"]
    page.locator("#learning .data-set:visible select").select_option("fold 2")
    for section in ("learning", "features"):  # one choice for both
        assert page.locator(f"#{section} h4.fold:visible").all_inner_texts() == ["fold 2"]
    page.locator("nav select").select_option("")
    assert page.locator("#leaderboard .data-set:visible").count() == 2


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_picture_of_the_page_is_not_blank(opened, tmp_path, width, scheme):
    page = opened("plain", width, color_scheme=scheme)
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    picture = imread(tmp_path / "page.png")[:, :, :3]
    paper = np.median(picture.reshape(-1, 3), axis=0)
    inked = np.abs(picture - paper).max(axis=2) > 0.2
    assert (paper > 0.9).all() if scheme == "light" else (paper < 0.2).all()
    assert 0.01 < inked.mean() < 0.3
    blank = np.flatnonzero(inked.any(axis=1))
    assert np.diff(blank).max() < 200, "no hole in the page"
