"""How a method is told from others: colour, dash and marker, the same in every chart.

Colours are those of Okabe & Ito (2008), which the colour-blind can tell apart, without yellow, which is pale on white. With 7 colours,
3 dashes and 5 markers two methods of fewer than 105 differ in one of them at least.
"""

from markupsafe import Markup

from exactrank.compare.page.svg import element, path

COLOURS, DASHES = 7, 3
_SHAPES: dict[str, list[tuple[float, float]]] = {  # around 0, of about equal area
    "square": [(-3.1, -3.1), (3.1, -3.1), (3.1, 3.1), (-3.1, 3.1)],
    "triangle": [(0, -4.2), (4, 3), (-4, 3)],
    "diamond": [(0, -4.4), (4.4, 0), (0, 4.4), (-4.4, 0)],
    "nabla": [(0, 4.2), (4, -3), (-4, -3)],
}
MARKERS = ("circle", *_SHAPES)


def look(number: int) -> str:
    """The classes of a method's line.

    >>> look(0), look(8)
    ('colour-0 dash-0', 'colour-1 dash-1')
    """
    return f"colour-{number % COLOURS} dash-{number // COLOURS % DASHES}"


def marker(number: int, x: float, y: float, tip: str | None = None) -> Markup:
    """The marker of a method at a point; ``tip`` is said about it."""
    classes, shape = f"marker colour-{number % COLOURS}", MARKERS[number % len(MARKERS)]
    if shape == "circle":
        return element("circle", class_=classes, cx=x, cy=y, r=3.4, data_tip=tip)
    return element("path", class_=classes, d=path([(x + a, y + b) for a, b in _SHAPES[shape]]) + "Z", data_tip=tip)


def sample(number: int) -> Markup:
    """A piece of a method's line, for a legend."""
    line = element("path", class_=f"line {look(number)}", d="M1 7L33 7")
    return element(
        "svg", line, marker(number, 17.0, 7.0), class_="sample", viewBox="0 0 34 14", width="34", height="14", aria_hidden="true"
    )
