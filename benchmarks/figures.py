"""Check every figure about quality or speed in README.md and docs: ``python -m benchmarks.figures``, part of ``make check``.

Named are figures that come from no ledger, figures that are not what a ledger holds, and experiments whose models, numbers or settings
have changed since they were run. Python and commands need no ledger, since tests run them and compare what is shown; neither do equations,
nor inline code, which names settings.
"""

import re
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from benchmarks import reproduce
from benchmarks.ledger import CELL, ROOT, with_tables

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
#: What tests run: Python with its output, and `exactrank` commands with theirs.
RUN = r"^ *```python\n.*?^ *```$(?:\s*^ *```text\n.*?^ *```$)?|^\$ exactrank\b[^\n]*\n(?:(?!\$ |```)[^\n]*\n)*"
#: Cells, tables and experiments.
WRITTEN = rf"{CELL}|<!-- ledger: reproduce[^>]*-->\n.*?<!-- /ledger -->|<!-- ledger: [^>]*-->\n\n(?:\|[^\n]*\n)*"
#: Equations of their own paragraph; the default beside a setting's name; and inline code, unless it is a number of several digits.
DEFINED = r"\$\$.*?\$\$|^\| `\w+` \| `[^`\n]*`|`(?![+-]?\d?\.\d*[1-9]\d*[1-9]\d*`)[^`\n]*`"
CHECKED = re.compile(f"{RUN}|{WRITTEN}|{DEFINED}", re.MULTILINE | re.DOTALL)
#: A value of a measure, how long something takes, how many times or per second, or a decimal as the cell of a table.
FIGURE = re.compile(
    r"(?<![\w.])[+-]?0?\.\d{3,4}(?!\d|\.\d)|\b\d+\.\d+ times\b|"
    r"\b\d[\d.,]*(?:-fold)? ?(?:times (?:as|faster|slower)|[mµnu]s\b|(?:micro|milli|nano)?seconds|minutes|hours|(?<=\d )s\b)|"
    r"\b\d[\d.,]* (?:\w+ ){0,2}per second|(?<=\| )[+-]?\d[\d,]*\.\d+(?= \|)"
)


def figures(page: str) -> list[tuple[int, str]]:
    """Return the line and the text of each figure in a page that comes neither from a ledger nor from what tests run."""
    rest = CHECKED.sub(lambda checked: re.sub(r"[^\n]", " ", checked[0]), page)
    return [(rest.count("\n", 0, match.start()) + 1, match[0].strip()) for match in FIGURE.finditer(rest)]


def problems_of(page: Path) -> Iterator[str]:
    """Yield what is wrong with the figures of a page."""
    name, text = page.relative_to(ROOT), page.read_text()
    for line, figure in figures(text):
        yield f"{name}:{line}: {figure!r} is in no ledger; write it as a cell of one (benchmarks/ledger.py), or leave it out"
    try:
        written = with_tables(reproduce.with_experiments(text))
    except ValueError as error:
        yield f"{name}: {error}"
        return
    for line, (shown, held) in enumerate(zip_longest(text.split("\n"), written.split("\n"), fillvalue=""), 1):
        if shown != held:
            remedy = "benchmarks/ledger.py docs, or -m benchmarks.reproduce --page, writes the page anew"
            yield f"{name}:{line}: shows {shown!r}, the ledger has {held!r}; {remedy}"
            return


def main() -> int:
    problems = [problem for page in PAGES for problem in problems_of(page)]
    problems += [problem for name in reproduce.TINY for problem in reproduce.staleness(name)]
    print("\n".join(problems) or f"all figures of {len(PAGES)} pages come from a ledger of today's code")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
