r"""Equations as MathML, made when the documentation is built: nothing is fetched or computed in the reader's browser.

A page has ``$...$`` in a line and ``$$...$$`` as a paragraph; ``\tag{1}`` numbers an equation, each number once per page. Named as a
hook in mkdocs.yml.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

EQUATION = re.compile(r'<(?P<kind>div|span) class="arithmatex">\\[\[(](?P<latex>.*?)\\[\])]</(?P=kind)>', re.DOTALL)
TAG = re.compile(r"\\tag\{([^{}]+)\}")


def mathml(latex: str, where: str, *, block: bool) -> str:
    """An equation in LaTeX as MathML; what the converter does not know is an error, which it would let through."""
    equation = convert(latex.strip(), display="block" if block else "inline")
    unknown = re.search(r"<m\w+>(\\\w+|&)</m", equation)
    if unknown:
        raise PluginError(f"{where}: {unknown[1]} in the equation {latex.strip()!r} is unknown to latex2mathml; write it otherwise")
    return equation


def rendered(text: str, where: str) -> str:
    """The page ``text`` with its equations as MathML."""
    tags: set[str] = set()

    def one(found: re.Match[str]) -> str:
        latex = html.unescape(found["latex"])
        if found["kind"] == "span":
            return mathml(latex, where, block=False)
        tag = TAG.search(latex)
        if tag is None:
            return f'<div class="equation"><div>{mathml(latex, where, block=True)}</div></div>'
        if tag[1] in tags:
            raise PluginError(f"{where}: two equations have the number ({tag[1]}); number each once")
        tags.add(tag[1])
        return f'<div class="equation"><div>{mathml(TAG.sub("", latex), where, block=True)}</div><span>({tag[1]})</span></div>'

    return EQUATION.sub(one, text)


def on_page_content(text: str, page: Page, **kwargs: Any) -> str:
    """Called by mkdocs once for each page."""
    return rendered(text, page.file.src_uri)
