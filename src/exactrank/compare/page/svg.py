"""Elements of SVG and HTML as text that is escaped exactly once, and how wide text is about."""

import unicodedata
from typing import Any

from markupsafe import Markup

from exactrank.text import printable

FONT = 12.0  #: pixels, in all charts
_NARROW, _BROAD = set("iljtfrI.,:;'|!()[] "), set("mwMW@%+=<>~\u2014\u2026\u2212")


def shown(value: Any) -> Any:
    """Text with an escape for each character that has no shape; all else, and what is HTML already, as it is."""
    return printable(value, lines=True) if type(value) is str else value


def element(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """``class_`` is written class and ``data_tip`` data-tip; None leaves an attribute out.

    >>> element("text", "a < b", class_="tick", x=1 / 3)
    Markup('<text class="tick" x="0.33">a &lt; b</text>')
    """
    given = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), coordinate(value) if isinstance(value, float) else shown(value))
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(map(shown, children))
    return Markup("<{}{}>{}</{}>").format(Markup(name), given, inside, Markup(name))


def coordinate(value: float) -> str:
    """As few digits as a screen shows.

    >>> coordinate(10.0), coordinate(-0.001), coordinate(1.256)
    ('10', '0', '1.26')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def path(points: list[tuple[float, float]]) -> str:
    """The ``d`` of a line through points.

    >>> path([(0, 1), (2.5, 3)])
    'M0 1L2.5 3'
    """
    return "M" + "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points)


def text_width(text: str, font: float = FONT) -> float:
    """About how many pixels a text takes in a sans-serif font; rather too many than too few."""
    return font * sum(_character_width(c) for c in text)


def shortened(text: str, width: float, font: float = FONT) -> str:
    """The text, or as much of it as fits with an ellipsis.

    >>> shortened("title", 100), shortened("a very long name indeed", 60)
    ('title', 'a very l…')
    """
    if text_width(text, font) <= width:
        return text
    kept = ""
    for c in text:
        if text_width(kept + c + "…", font) > width:
            break
        kept += c
    return kept + "…"


def _character_width(c: str) -> float:
    if unicodedata.combining(c):
        return 0.0
    if unicodedata.east_asian_width(c) in "WF":
        return 1.05
    if c in _BROAD:
        return 0.95
    return 0.36 if c in _NARROW else 0.7 if c.isupper() else 0.6
