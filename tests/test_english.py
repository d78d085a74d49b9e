"""Plain English in the documentation, docstrings, comments and messages: phrases that read as translated are refused.

A rule is a regular expression and what to write instead. Rules name clear cases only, so that no good sentence is refused.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
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
    r"\bma(?:kes?|king) (?:the|a|its) (?:\w+ ){1,2}large\b(?! \w)|\bmade large\b": '"maximises"',
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
        elif token.type == tokenize.STRING and (found := QUOTES.match(token.string)):
            yield found[2]
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
        ("an optimizer that makes the objective large", "an optimizer that maximises the objective; a fold makes large files"),
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
