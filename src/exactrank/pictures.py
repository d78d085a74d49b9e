"""What all pictures share: the kinds of file, matplotlib, which is optional, and step functions of more steps than pixels."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from exactrank.arrays import Floats
from exactrank.errors import DataError, IncompatibleError
from exactrank.files import whole_file
from exactrank.text import printable, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
CAPTION = 30  #: characters of a name


def check_picture(path: Path) -> None:
    """Raise where a picture cannot be made at ``path``: before the work, not after it."""
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(f"{path}: the suffix {path.suffix!r} names no kind of picture; use one of {', '.join(SUFFIXES)}")
    if find_spec("matplotlib") is None:
        raise IncompatibleError("a picture needs matplotlib, which is not installed; pip install 'exactrank[report]'")


@contextmanager
def picture_file(path: str | os.PathLike[str], *, force: bool = False) -> "Iterator[Callable[[Figure], None]]":
    """What draws a figure to ``path``, which is opened before the work that the figure is made of."""
    target = Path(path)
    check_picture(target)
    with whole_file(target, force=force) as file:
        yield lambda figure: figure.savefig(file, format=target.suffix[1:].lower(), dpi=150)


def caption(text: str, most: int = CAPTION) -> str:
    """Words as a picture shows them: never as a formula, at most so long, and in a legend also where they begin with an underscore.

    >>> print(caption("_$x$"))
     _\\$x\\$
    """
    shown = shortened(printable(text), most).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def outline(points: Floats, values: Floats, columns: Floats) -> tuple[Floats, Floats, Floats]:
    """Edges, and the least and the largest value between each two, of a step function between the ends of ``columns``.

    Steps beyond the number of columns are drawn together, those of a column; two columns say that there is no limit.

    >>> outline(np.array([1.0, 2.0, 3.0]), np.array([0.0, 5.0, 2.0, 1.0]), np.array([0.0, 1.5, 4.0]))
    (array([0., 1., 4.]), array([0., 1.]), array([0., 5.]))
    """
    low, high = float(columns[0]), float(columns[-1])
    first, last = np.searchsorted(points, low, "right"), np.searchsorted(points, high, "left")
    edges, inside = np.concatenate([[low], points[first:last], [high]]), values[first : last + 1]
    if not 2 < len(columns) < len(inside):
        return edges, inside, inside
    starts = np.unique(np.searchsorted(edges[:-1], columns[:-1], "right") - 1)
    return np.append(edges[starts], high), np.minimum.reduceat(inside, starts), np.maximum.reduceat(inside, starts)
