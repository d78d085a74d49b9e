"""The report in a real browser: Debian's Chromium, driven by playwright. `make test-browser` installs both."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from tests.comparisons import NASTY, make_comparison, partial, with_failure

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; pip install playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium; apt-get install chromium")

CASES = {
    "plain": lambda: make_comparison(methods=5, queries=16),
    "several": lambda: with_failure(make_comparison(methods=4, datasets=2, folds=2, queries=8, weighted=True), "listnet"),
    "many": lambda: make_comparison(methods=20, queries=10, measures=("nDCG@10",), trials=1),
    "nasty": lambda: make_comparison(names=NASTY, queries=12, measures=("nDCG@10", "AP", "RR", "P@5")),
    "little": lambda: partial(make_comparison(methods=2, queries=1, folds=2, trials=0), 2),
}

#: Texts of a chart that leave it or meet another one, by what they say.
BAD_TEXTS = """() => {
  const bad = [];
  for (const chart of document.querySelectorAll("svg.chart")) {
    const outer = chart.getBoundingClientRect();
    if (!outer.width) continue;
    const texts = [...chart.querySelectorAll("text")].filter((text) => text.textContent);
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
  if (node.closest(".wide, pre, nav ul, svg, caption, select, #tip")?.matches(":not(.wide)") || node.closest(".wide *")) return false;
  return node.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map((node) => `${node.tagName}.${node.className}: ${node.textContent.slice(0, 40)}`)"""


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
        found = folder / f"{name}.html"
        if not found.exists():
            CASES[name]().write_report(found)
        return found

    return path


@pytest.fixture
def opened(browser, reports):
    """A report in a page of some width; errors on its console and all that it asks for are failures."""
    contexts, wrong = [], []

    def page(name, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.set_default_timeout(10_000)
        made = context.new_page()
        made.on("console", lambda message: wrong.append(message.text))
        made.on("pageerror", lambda error: wrong.append(str(error)))
        made.on("request", lambda request: request.url.startswith(("file://", "data:")) or wrong.append(request.url))
        made.goto(reports(name).as_uri())
        return made

    yield page
    for context in contexts:
        context.close()
    assert wrong == []


def rows(page, table, column):
    return page.eval_on_selector_all(f"{table} tbody tr", f"rows => rows.map(row => row.cells[{column}].textContent)")


def tip(page):
    return page.locator("#tip").inner_text() if page.locator("#tip").is_visible() else None


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("width", "media"), [(1280, "screen"), (800, "screen"), (390, "screen"), (1017, "print")])
def test_nothing_is_cut_off_and_no_texts_meet(opened, case, width, media):
    page = opened(case, width)
    page.emulate_media(media=media)
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    if media == "screen":
        page.evaluate("for (const name of ['data', 'fold of data-1', 'fold of data-2']) pick(name, '')")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(TOO_WIDE) == []
    assert page.evaluate(BAD_TEXTS) == []


def test_paper_has_all_of_it(opened):
    page = opened("several")
    assert page.locator("#leaderboard .data-set:visible").count() == 1
    page.emulate_media(media="print")
    assert page.locator("#leaderboard .data-set:visible").count() == 2
    assert page.locator("#learning [data-of^=fold]:visible").count() == 4
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("nav, .chooser, #tip").locator("visible=true").count() == 0
    over = "nodes => nodes.filter(node => node.scrollWidth > document.documentElement.clientWidth).length"
    page.set_viewport_size({"width": 1017, "height": 700})
    assert page.eval_on_selector_all(".wide", over) == 0
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_without_a_script_all_is_there_too(opened):
    page = opened("several", java_script_enabled=False)
    assert page.locator("#leaderboard .data-set:visible").count() == 2
    assert page.locator("#queries figure:visible").count() == 2 * 2
    assert page.locator("#queries rect:visible").count() == 2 * 2 * 14


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
    mark = page.locator("#ranks .chart .marker").nth(13)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    assert tip(page) is None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert tip(page) == mark.get_attribute("data-tip")
    assert "nDCG@4" in tip(page)
    page.mouse.move(5, 5)
    assert tip(page) is None
    bar = page.locator("#queries figure:visible rect").nth(10)
    bar.scroll_into_view_if_needed()
    chart, box = page.locator("#queries .chart:visible").first.bounding_box(), bar.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, chart["y"] + 0.3 * chart["height"])  # far above a low bar
    assert tip(page) == bar.get_attribute("data-tip")


def test_the_keyboard_walks_along_a_chart(opened):
    page = opened("plain")
    page.locator("#pairs .wide").first.focus()
    chart = page.locator("#queries .chart:visible").last
    while not chart.evaluate("node => node === document.activeElement"):
        page.keyboard.press("Shift+Tab")
    said = [bar.get_attribute("data-tip") for bar in chart.locator("rect").all()]
    assert tip(page) == said[0]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert tip(page) == said[2]
    page.keyboard.press("ArrowLeft")
    assert tip(page) == said[1]
    page.keyboard.press("Escape")
    assert tip(page) is None


@pytest.mark.parametrize("queries", [12, 300])
def test_another_baseline_is_drawn_as_if_it_had_been_the_first(browser, tmp_path, queries):
    """The script draws what `win_loss_chart` would have."""
    made = make_comparison(queries=queries, measures=("nDCG@10",))
    pictures = {}
    for baseline in ("lambdamart", "lightgbm"):
        replace(made, baseline=baseline).write_report(tmp_path / f"{baseline}.html")
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


#: All that a reader sees of the charts against the baseline.
SEEN = """figures => figures.map((figure) => {
  const [caption, count, chart] = ["figcaption", ".count", "svg"].map((part) => figure.querySelector(part));
  const told = (bar) => ["class", "x", "y", "width", "height", "data-tip"].map((name) => bar.getAttribute(name)).join("|");
  return [caption.textContent, count.textContent, chart.ariaLabel, ...[...chart.querySelectorAll("rect")].map(told)];
})"""


def _win_loss(page):
    return page.eval_on_selector_all("#queries figure:not([hidden])", SEEN)


def test_data_sets_and_folds_are_chosen(opened):
    page = opened("several")
    page.locator("nav select").select_option("data-2")
    for section in ("leaderboard", "ranks", "queries", "pairs", "learning", "features", "data"):
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
