"""The pages beside what they run: pictures, names of other libraries, equations."""

import re
import sys
import tomllib
from xml.etree import ElementTree

import pytest

from exactrank._support.settings import ELSEWHERE
from exactrank.rankers import RANKERS
from tests import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
#: Pages that explain an idea, and so have to show it.
CONCEPTS = [
    "compare",
    "conventions",
    "evaluate",
    "forces",
    "fuse",
    "gradient-training",
    "hybrid-tutorial",
    "importance",
    "index",
    "lambda-functions",
    "large-margin",
    "line-search",
    "measures",
    "optimality",
    "smoothness",
    "statistics",
    "trees",
]


def test_pictures_are_those_that_the_script_draws_and_pages_show():
    drawn = set(re.findall(r'^@picture\("([\w.-]+)"\)$', (ROOT / "docs" / "pictures.py").read_text(), re.MULTILINE))
    there = {path.name for path in (ROOT / "docs" / "img").iterdir()}
    shown = {(page.parent / target).resolve() for page in PAGES for _, target in PICTURE.findall(page.read_text())}
    assert there == drawn, "make pictures writes them"
    assert shown == {ROOT / "docs" / "img" / name for name in drawn}


def test_pictures_are_small_and_have_no_date():
    for path in (ROOT / "docs" / "img").iterdir():
        assert path.stat().st_size < 60_000, path.name
        if path.suffix == ".svg":
            assert re.findall(r"<dc:date>(\d{4})", path.read_text()) == ["1970"], path.name


def test_the_picture_of_the_layers_is_that_of_the_import_contract():
    picture = ElementTree.parse(ROOT / "docs" / "img" / "layers.svg")
    description = picture.find(".//{http://purl.org/dc/elements/1.1/}description")
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["name"] == "imports point one way")
    assert description.text == " > ".join(layers).replace("exactrank.", ""), "make pictures PICTURES=layers.svg"


def test_pictures_say_in_words_what_they_show():
    for page in PAGES:
        for words, target in PICTURE.findall(page.read_text()):
            assert len(words) > 20, f"{page.relative_to(ROOT)}: {target} needs a text for those who cannot see it"


@pytest.mark.parametrize("name", CONCEPTS)
def test_every_page_of_a_concept_has_a_picture(name):
    assert PICTURE.search((ROOT / "docs" / f"{name}.md").read_text())


def test_the_first_screen_has_a_picture():
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        before, _, _ = page.read_text().partition("![")
        assert before.count("\n") < 10


def test_names_of_other_libraries_are_those_that_errors_explain():
    text = (ROOT / "docs" / "coming-from.md").read_text()
    ours = {name for ranker in RANKERS.values() for name in ranker.settings}
    parameters = [section for section in re.split(r"\n\n", text) if section.startswith("| parameter in ")]
    assert len(parameters) == 2
    for line in (line for table in parameters for line in table.splitlines()[2:]):
        left, right = re.findall(r"\| ([^|]+) (?=\|)", line)
        named, theirs = set(re.findall(r"`(\w+)`", right)), re.findall(r"`(\w+)`", left)
        assert named <= ours, line
        for name in theirs:
            assert ELSEWHERE.get(name, name) in named or name not in ELSEWHERE, f"{name}: the error says {ELSEWHERE[name]}"
    mapped = {name for name in re.findall(r"`(\w+)`", "\n".join(parameters)) if name in ELSEWHERE}
    assert len(mapped) > 20


def test_options_of_the_page_for_ranklib_exist():
    (table,) = re.findall(r"## RankLib\n\n(.*?)\n\n## ", (ROOT / "docs" / "coming-from.md").read_text(), re.DOTALL)
    ours = {f"--{name.replace('_', '-')}" for ranker in RANKERS.values() for name in ranker.settings}
    assert set(re.findall(r"--[a-z][\w-]*", table)) <= ours | {"--valid", "--out", "--folds"}
    assert set(re.findall(r"exactrank train ([a-z-]+)", table)) <= set(RANKERS)


@pytest.fixture
def equations(monkeypatch):
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed; make check builds the pages")
    pytest.importorskip("mkdocs", reason="mkdocs is not installed; make check builds the pages")
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.delitem(sys.modules, "equations", raising=False)
    import equations

    return equations


def block(latex: str) -> str:
    return f'<div class="arithmatex">\\[{latex}\\]</div>'


def test_equations_become_mathml_with_their_number(equations):
    made = equations.rendered(f"<p>{block('a &lt; b_i <tag>'.replace('<tag>', chr(92) + 'tag{3}'))}</p>", "page.md")
    assert made.startswith('<p><div class="equation"><div><math ')
    assert made.endswith("</math></div><span>(3)</span></div></p>")
    assert "<msub>" in made
    assert "tag" not in made


def test_equations_are_numbered_once_and_use_what_is_known(equations):
    with pytest.raises(Exception, match=r"page\.md: two equations have the number \(1\)"):
        equations.rendered(block(r"a \tag{1}") + block(r"b \tag{1}"), "page.md")
    with pytest.raises(Exception, match=r"page\.md: \\nonsense"):
        equations.rendered(block(r"\nonsense{x}"), "page.md")
