"""Plain English in the documentation, docstrings, comments, messages and names of the code.

A rule for prose is a regular expression and what to write instead; it names clear cases only, so that no good sentence is refused.
Names and docstrings are checked in the syntax tree. `REMAINING` counts what is still to be rewritten, package by package: the counts
are exact, so that they can only fall.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT

#: Files and folders that are checked; a folder stands for the Markdown and Python files below it.
ROOTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "src")
#: What there is a number of, and what it is counted for.
COUNTED = "bins?|bytes?|columns?|documents?|draws|forces?|jumping points|lines?|models?|numbers?|pairs?|points?|queries|rows?|scores?"
COUNTED += "|seconds|sets?|terms?|trees?|trials|updates?|values?|weights?"
FOR_EACH = "class|document|epoch|feature|fit|fold|leaf|level|line|measure|method|pair|query|rank|ranker|row|second|set|split|step|tree|unit"
RULES = {
    rf"(?<!how many )\b(?:{COUNTED}) an? (?:{FOR_EACH})\b(?! (?:of|id|has|is|such)\b)": '"per", as in "one row per document"',
    r"\b(?:at most|after|only|first) so many\b": '"this number of", or "maximum number of"',
    r"\bthan which\b": '"the methods it significantly beats"',
    r"\bma(?:kes?|king) (?:the|a|its) (?:\w+ ){1,2}large\b(?! \w)|\bmade large\b": '"maximizes"',
    r"\b(?:is|are|be|not|nothing) told from\b": '"differs significantly from"',
    r"\b(?:where|which|and|it|alone|DirectRank|LambdaRank|RankNet|MART) has 0\.\d{3,}": '"scores 0.5420"',
    r"\bby heart\b": '"overfits"',
    r"\bbettered\b": '"improved"',
    r"\b[Mm]end(?:s|ed|ing)?\b": '"fix"',
    r"(?<![,;]) but for\b(?! no\b)": '"except for"',
}
FENCE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
QUOTES = re.compile(r"""^[a-zA-Z]*("{3}|'{3}|"|')(.*)\1$""", re.DOTALL)


def prose(path: Path) -> str:
    """What people read of a file: Markdown without code, or the comments and strings of Python, in one line."""
    text = path.read_text()
    parts = _python_prose(text) if path.suffix == ".py" else [FENCE.sub(" ", text)]
    return " ".join(" ".join(parts).split())


def _python_prose(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield f"| {token.string.lstrip('#: ')} |"
        elif token.type == tokenize.STRING and (result := QUOTES.match(token.string)):
            yield result[2]
        elif tokenize.tok_name[token.type] == "FSTRING_MIDDLE":  # from Python 3.12 on
            yield token.string
        elif token.type in (tokenize.NAME, tokenize.OP):
            yield "|"  # strings on both sides of it are not one sentence


def problems(text: str) -> list[str]:
    return [
        f"...{text[max(0, m.start() - 30) : m.end() + 20]}...: write {better}"
        for rule, better in RULES.items()
        for m in re.finditer(rule, text)
    ]


def checked(root: str) -> list[Path]:
    path = ROOT / root
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.suffix in (".md", ".py"))


FILES = [file for root in ROOTS for file in checked(root)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_the_english_is_plain(file):
    assert problems(prose(file)) == []


@pytest.mark.parametrize(
    ("translated", "plain"),
    [
        ("one row a document", "one row per document"),
        ("50 documents a query", "50 documents per query; give each query a name"),
        ("Grow at most so many trees.", "Maximum number of trees; there are so many that it takes long."),
        (
            "says than which methods one is significantly better",
            "names the methods it significantly beats, rather than those which it loses to",
        ),
        ("an optimizer that makes the objective large", "an optimizer that maximizes the objective; a fold makes large files"),
        ("nothing is told from chance", "it is told to stop by a signal from the parent"),
        ("on MQ2008 LambdaRank has 0.5420", "on MQ2008 LambdaRank scores 0.5420"),
        ("the network learns the data by heart", "the network overfits the data"),
        ("it can be bettered", "it can be improved, for the better"),
        ("Mends go into the newest release.", "Fixes go into the newest release; amend and recommend it."),
        ("it holds but for one of four", "not for trees, but for networks"),
        ("means, a row a measure", "means, one row per measure; scores a row of zeros"),
    ],
)
def test_a_rule_refuses_the_translated_phrase_only(translated, plain):
    assert len(problems(translated)) == 1
    assert problems(plain) == []


def test_code_is_no_prose(tmp_path):
    page, module = tmp_path / "page.md", tmp_path / "module.py"
    page.write_text("Read `one row a document` and\n\n```python\nx = 1  # a row a document\n```\n")
    module.write_text('"""One row\na document."""\nx = f"{1} documents a query"  # a row a pair\n')
    assert problems(prose(page)) == []
    assert len(problems(prose(module))) == 3


# ---- names and docstrings

PACKAGE = ROOT / "src" / "exactrank"
#: Names that do not say what a thing is.
NOUNLESS = frozenset(
    re.findall(
        r"\w+",
        """
        all_ alone another asked begun both chosen done drawn each every few found given heard held here it
        kept known less made more most one other others own put said same seen shown some straight such taken
        that them these this those together told wanted whole
        """,
    )
)
#: Irregular participles. A function is called by a verb, or by a noun if it is a property.
PARTICIPLES = frozenset(
    re.findall(
        r"\w+",
        """asked begun broken brought built chosen dealt done drawn fitted found given gone grown heard held kept known learnt lent made
            meant     met paid said seen sent shown sold spent taken taught thought told understood won written""",
    )
)
NOT_PARTICIPLES = frozenset({"bleed", "embed", "exceed", "feed", "indeed", "need", "proceed", "red", "seed", "shed", "speed", "succeed"})
PREPOSITIONS = frozenset({"as", "at", "by", "for", "from", "if", "in", "into", "of", "on", "to", "with"})
#: Names that others fix: callbacks of asyncio, properties of being, and methods of public classes.
FIXED_NAMES = frozenset({"connection_made", "data_received", "padded", "ranked"})
#: A docstring begins with an imperative or a noun phrase.
DIALECT_START = re.compile(
    r"(?:What|Whatever|Where|Who|Whose|When|Whether|Which|Why|How|As|From|In|By|With|If|To|Of|Else|Is|Are|Was|Were|Does|Do|Did|Can"
    r"|Has|It|Its|Those|These|The same|One|Each|Every|All|Any|Some)\b"
)
#: Phrases in docstrings, comments and messages that read as translated, though not yet refused everywhere.
DIALECT_PHRASES = (re.compile(r"(?<![Tt]here )\bis no \w+ of\b"), re.compile(r"\bso that\b[^.;:|]{0,60}\bas\b[^.;:|]{0,40}\b(?:is|are)\b"))
#: How many cases are left in the packages that are still to be rewritten. A number may only fall; a package that is not named has none.
REMAINING: dict[str, int] = {}


def is_participle(name: str) -> bool:
    """Return whether a function's name is a participle, such as ``dealt``, ``_rows_taken`` and ``drawn_from``."""
    words = name.strip("_").split("_")
    if words[0] in ("is", "has", "was", "are") or name in FIXED_NAMES:
        return False
    last, first = (word in PARTICIPLES or (word.endswith("ed") and word not in NOT_PARTICIPLES) for word in (words[-1], words[0]))
    return last or (first and len(words) > 1 and words[1] in PREPOSITIONS)


def dialect(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and a description of each name, docstring and phrase to be rewritten."""
    tree = ast.parse(path.read_text())
    in_comprehensions = {node for loop in ast.walk(tree) if isinstance(loop, ast.comprehension) for node in ast.walk(loop.target)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and node not in in_comprehensions
            and node.id.strip("_") in NOUNLESS
        ):
            yield node.lineno, f"{node.id} is not a noun"
        elif isinstance(node, ast.arg) and node.arg in NOUNLESS:
            yield node.lineno, f"the argument {node.arg} is not a noun"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_participle(node.name):
            yield node.lineno, f"{node.name}() is called by a participle"
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node) or ""
            if DIALECT_START.match(docstring):
                yield getattr(node, "lineno", 1), f"a docstring begins: {docstring.splitlines()[0][:60]}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((node.lineno, f"...{match[0]}...") for phrase in DIALECT_PHRASES for match in phrase.finditer(node.value))


@cache
def dialect_by_package() -> dict[str, list[str]]:
    """Return all cases by package; modules beside the packages are "."."""
    cases: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE)
        package = place.parts[0] if len(place.parts) > 1 else "."
        cases.setdefault(package, []).extend(f"{place}:{line}: {case}" for line, case in sorted(dialect(path)))
    return cases


@pytest.mark.parametrize("package", sorted({path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))} | {"."}))
def test_names_and_docstrings_are_plain(package):
    """A package with fewer cases than `REMAINING` says must have its number lowered, so that they cannot come back."""
    cases, allowed = dialect_by_package()[package], REMAINING.get(package, 0)
    assert len(cases) <= allowed, "\n".join(["rewrite these, or others of the package:", *cases])
    assert len(cases) == allowed, f"{package} has only {len(cases)} cases left; lower its number in REMAINING"


def test_all_remaining_packages_exist():
    assert REMAINING.keys() <= dialect_by_package().keys()


def test_dialect_is_recognized(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        '"""What a stranger cannot read."""\n\n\ndef dealt(given):\n    """Whether it is no part of it."""\n'
        "    for each in given:\n        found = [one for one in each]\n    return found\n"
    )
    assert [line for line, _ in sorted(dialect(module))] == [1, 4, 4, 4, 5, 6, 7]
    module.write_text(
        '"""Deal parts to workers."""\n\n\ndef deal_parts(parts):\n    """Return the parts in random order."""\n'
        "    return [one for one in parts]\n"
    )
    assert list(dialect(module)) == []


@pytest.mark.parametrize(
    ("participle", "verb"), [("dealt", "deal"), ("_rows_taken", "_take_rows"), ("drawn_from", "shared_memory"), ("_moved", "is_moved")]
)
def test_participles_are_recognized(participle, verb):
    assert is_participle(participle)
    assert not is_participle(verb)
