"""The documentation is run: every Python block, every `$ exactrank` line, and the output that is shown for them.

A page is one sitting: its blocks share a namespace and a folder of their own. A ```text block right after a ```python block
is what it prints; the lines under a command are what the command prints. ``...`` stands for anything. A command ends
with code 0 unless it carries the comment ``# exit code N``.

A block that imports a library that is optional and not installed ends the page's run; the test then says so.

The table of settings on a method's page is that of the ranker's declarations.

``python -m tests.docs.test_docs [PAGE ...]`` writes what is printed now into the pages, except where they have ``...``, and the tables of
settings.
"""

import ast
import contextlib
import io
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path

import pytest
from typer.main import get_command

import exactrank as er
from exactrank._support.settings import Setting
from exactrank.cli import app
from exactrank.cli.train import training_command
from exactrank.measures.base import Measure
from exactrank.measures.parse import known_measures
from exactrank.rankers import RANKERS
from exactrank.rankers.base import Ranker
from tests import ROOT
from tests.driver import commands

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<kind>\w*)[^\n]*\n(?P<text>.*?)^```$\s*", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (?P<line>exactrank\b.*)\n(?P<shown>(?:(?!\$ ).*\n)*)", re.MULTILINE)
#: Libraries that not every machine has; a page is run up to the first block that imports one that is missing.
OPTIONAL = {"datasets", "jax", "sentence_transformers", "tokenizers", "torch", "transformers"}
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


@dataclass(frozen=True)
class Step:
    """One thing to run, and the part of the page that shows what it prints (None: nothing is shown)."""

    where: str
    source: str
    shown: slice | None

    def output(self, namespace: dict) -> str:
        text = self.printed(namespace)
        return "".join(line.rstrip() + "\n" for line in text.splitlines())


class PythonBlock(Step):
    @property
    def missing(self) -> str | None:
        """The first of the `OPTIONAL` libraries that it imports and that is not installed."""
        imported = [
            name
            for node in ast.walk(ast.parse(self.source))
            for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", None) or ""])
        ]
        libraries = (name.removeprefix("exactrank.").partition(".")[0] for name in imported)
        return next((name for name in libraries if name in OPTIONAL and find_spec(name) is None), None)

    def printed(self, namespace):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(self.source, self.where, "exec"), namespace)
        return printed.getvalue()


class Command(Step):
    missing = None

    def printed(self, namespace):
        _, *words = shlex.split(self.source, comments=True)
        result = commands().run(*words, at=Path.cwd(), together=True, **TERMINAL)
        match = re.search(r"# exit code (\d)", self.source)
        assert result.code == (int(match[1]) if match else 0), f"{self.where}: {self.source}\n{result.out}"
        return result.out


def steps(page: Path) -> Iterator[Step]:
    text = page.read_text()
    fences = list(FENCE.finditer(text))
    for fence, follower in zip_longest(fences, fences[1:]):
        where = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, fence.start()) + 1}"
        if fence["kind"] == "python":
            shows = follower is not None and follower.start() == fence.end() and follower["kind"] == "text"
            yield PythonBlock(where, fence["text"], slice(*follower.span("text")) if shows else None)
        if fence["kind"] == "console":
            for command in COMMAND.finditer(text, *fence.span("text")):
                yield Command(where, command["line"], slice(*command.span("shown")) if command["shown"] else None)


def pattern(shown: str) -> str:
    """``shown`` as a regular expression: a line of three dots is any lines, dots within a line are any characters."""

    def line_pattern(line: str) -> str:
        return r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()).replace(r"\.\.\.", ".*") + r"\n"

    return "".join(map(line_pattern, shown.splitlines()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_runs_and_shows_what_it_prints(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Measure.registry, "builtin", dict(Measure.registry.builtin))  # pages may define measures
    text, namespace = page.read_text(), {"__name__": "__main__"}
    if re.search(r"^import torch|TorchRanker\(", text, re.MULTILINE):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    for step in steps(page):
        if step.missing is not None:
            pytest.skip(f"{step.where}: {step.missing} is not installed; all before was run")
        ours = step.output(namespace)
        if step.shown is not None:
            shown = text[step.shown]
            assert re.fullmatch(pattern(shown), ours), f"{step.where} shows\n{shown}\nbut prints\n{ours}"


def test_something_is_run_and_compared():
    results = [step for page in PAGES for step in steps(page)]
    for kind in (PythonBlock, Command):
        assert sum(isinstance(step, kind) and step.shown is not None for step in results) >= 10


@pytest.mark.parametrize(
    ("shown", "printed", "agree"), [("a 1...\n", "a 1234\n", True), ("a\n...\nz\n", "a\nb\nc\nz\n", True), ("a.b\n", "axb\n", False)]
)
def test_what_three_dots_mean(shown, printed, agree):
    assert bool(re.fullmatch(pattern(shown), printed)) == agree


def test_every_public_name_is_in_the_reference():
    pages = [page for folder in ("api", "methods") for page in (ROOT / "docs" / folder).glob("*.md")]
    documented = {name for page in pages for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE)}
    homes = {name: f"{getattr(er, name).__module__}.{name}" for name in er.__all__}
    assert [name for name, home in homes.items() if documented.isdisjoint({home, f"exactrank.{name}"})] == []
    assert {path.removeprefix("exactrank.") for path in documented if path.count(".") == 1} <= set(homes)


def test_every_ranker_has_a_page_of_the_same_structure():
    folder = ROOT / "docs" / "methods"
    assert {page.stem for page in folder.glob("*.md")} == set(RANKERS)
    asked = ["When to use it", "Example", "Equations", "Settings", "Cost", "Measured", "Published", "See also"]
    for name in RANKERS:
        headings = re.findall(r"^## (.+)$", (folder / f"{name}.md").read_text(), re.MULTILINE)
        assert [heading for heading in headings if heading in asked] == asked, f"{name}.md has the headings {headings}"


def settings_table(name: str) -> str:
    """The settings of a ranker as Markdown, its own first."""
    ranker = RANKERS[name]
    own = [one for one in ranker.settings.values() if one.name not in Ranker.settings]
    shared = [ranker.settings[name] for name in Ranker.settings if name in ranker.settings]
    rows = "\n".join(f"| `{one.name}` | `{written(one.default)}` | {meaning(one)} |" for one in (*own, *shared))
    return f"| setting | default | meaning |\n|---|---|---|\n{rows}\n"


def written(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def meaning(one: Setting) -> str:
    condition = f" {one.condition[0].upper()}{one.condition[1:]}." if one.condition else ""
    return f"{one.help}{condition} *{one.values_in_words[0].upper()}{one.values_in_words[1:]}.*".replace("|", "\\|")


SETTINGS = re.compile(r"(?<=## Settings\n\n)\| setting .*?\n(?=\n)", re.DOTALL)


@pytest.mark.parametrize("name", RANKERS)
def test_the_table_of_settings_is_what_is_declared(name):
    page = (ROOT / "docs" / "methods" / f"{name}.md").read_text()
    shown = SETTINGS.search(page)
    assert shown is not None
    assert shown[0] == settings_table(name), "python -m tests.docs.test_docs writes it anew"


def test_every_measure_has_a_heading():
    headings = set(re.findall(r"^#+ (\w+)$", (ROOT / "docs" / "measures.md").read_text(), re.MULTILINE))
    assert headings >= set(known_measures())


def all_commands(name, command):
    """(heading, command) of a command, or of those in a group, which share one heading."""
    if hasattr(command, "list_commands"):
        for inner in command.list_commands(None):
            member = training_command(inner) if name == "train" else command.get_command(None, inner)
            yield from ((name, found) for _, found in all_commands(inner, member))
    else:
        yield name, command


def test_every_command_and_option_is_described():
    shared = (ROOT / "docs" / "cli.md").read_text()
    pages = {
        heading: page
        for page in (ROOT / "docs" / "cli").glob("*.md")
        for heading in re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)
    }
    for top, result in get_command(app).commands.items():
        for name, command in all_commands(top, result):
            own = ROOT / "docs" / "methods" / f"{command.name}.md"  # of a ranker
            assert name in pages, f"no page in docs/cli has a heading for {name}"
            text = shared + pages[name].read_text() + (own.read_text() if own.exists() else "")
            assert result is command or name == "train" or f"`exactrank {name} {command.name}" in text
            declared = RANKERS[command.name].settings if name == "train" else {}  # on the page of the method
            given = (parameter for parameter in command.params if parameter.name not in declared)
            for option in (o for p in given for o in (*p.opts, *p.secondary_opts) if o.startswith("-")):
                assert f"`{option}" in text, f"{name} {option} is not in {pages[name].name}"


def test_links_lead_somewhere():
    """Those inside docs/ are checked by mkdocs too, the README's only here."""
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def refresh(page: Path) -> None:
    """Write what the page's blocks print now over what it shows, and the table of settings."""
    if page.parent.name == "methods":
        page.write_text(SETTINGS.sub(lambda _: settings_table(page.stem), page.read_text()))
    text, namespace = page.read_text(), {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        printed = [(step.shown, step.output(namespace)) for step in steps(page)]
    for shown, output in reversed(printed):
        if shown is not None and "..." not in text[shown]:
            text = text[: shown.start] + output + text[shown.stop :]
    page.write_text(text)


if __name__ == "__main__":
    for each in map(Path.resolve, map(Path, sys.argv[1:])) if sys.argv[1:] else PAGES:
        refresh(each)
