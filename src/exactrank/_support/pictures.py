"""What all pictures share: one look, the kinds of file, matplotlib, which is optional, and step functions of more steps than pixels.

Colors are those of the report of a comparison (Okabe & Ito 2008), which the color-blind can tell apart.
"""

import base64
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats
from exactrank._support.files import whole_file
from exactrank._support.text import clip, printable
from exactrank.errors import DataError, IncompatibleError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Panels = Axes | npt.NDArray[Any]  #: one Axes, or an array of several

SUFFIXES = (".png", ".svg", ".pdf")
CAPTION = 30  #: characters of a name
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
INK, QUIET = "#1c2024", "#5b646e"
SIZE = (8.0, 4.5)  #: inches, unless a picture says otherwise


class Plottable(ABC):
    """A result with a picture. It is drawn into one Axes; one that shows more in a figure of its own overrides `_fill` too."""

    @abstractmethod
    def _draw(self, axes: "Axes", **options: Any) -> None:
        """Draw into ``axes``; ``options`` are those of the result's `plot`."""

    def _fill(self, figure: "Figure", **options: Any) -> "Panels":
        """Draw into an empty figure."""
        axes: Axes = figure.subplots()
        self._draw(axes, **options)
        return axes

    def _size(self, **options: Any) -> tuple[float, float]:
        """Of a figure of its own, in inches."""
        return SIZE

    def plot(self, ax: "Axes | None" = None, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> "Panels":
        """Draw it with matplotlib: into ``ax``, or a new figure. Returns the Axes, as an array where there are several.

        ``path`` also writes the figure, as PNG, SVG or PDF by the suffix; ``force`` replaces a file that is there.
        """
        return self._plot(ax, path, force)

    def figure(self, **options: Any) -> "Figure":
        """The picture as a figure that pyplot does not know of; ``options`` are those of `plot`."""
        check_matplotlib()
        from matplotlib.figure import Figure

        with look():
            figure = Figure(self._size(**options), layout="constrained")
            self._fill(figure, **options)
        return figure

    def _plot(self, ax: "Axes | None", path: str | os.PathLike[str] | None, force: bool, **options: Any) -> "Panels":
        if isinstance(ax, str | os.PathLike):
            raise DataError(f"ax={os.fspath(ax)!r} is a path, not an Axes of matplotlib; give plot(path={os.fspath(ax)!r})")
        check_matplotlib()
        with nullcontext() if path is None else picture_file(path, force=force) as write:
            # Made before anything is set for a while: the first figure makes a notebook show all that follow.
            figure: Any = _new_figure(self._size(**options), shown=path is None) if ax is None else ax.figure.figure
            with look():
                drawn: Panels = self._fill(figure, **options) if ax is None else ax
                if ax is not None:
                    self._draw(ax, **options)
            if write is not None:
                write(figure)
        return drawn


def _new_figure(size: tuple[float, float], shown: bool) -> "Figure":
    """A figure; pyplot knows of one that is ``shown``, as notebooks do at the end of a cell."""
    if shown:
        import matplotlib.pyplot as plt

        return plt.figure(figsize=size, layout="constrained")
    from matplotlib.figure import Figure

    return Figure(size, layout="constrained")


def look() -> Any:
    """A context in which pictures look alike."""
    import matplotlib as mpl
    from cycler import cycler

    style: dict[Any, Any] = {f"axes.spines.{side}": False for side in ("top", "right")}
    style |= dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK)
    style |= dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), QUIET)
    style |= dict.fromkeys(("axes.titlesize", "figure.titlesize", "figure.labelsize"), "medium")
    style |= {"legend.frameon": False, "legend.fontsize": "small", "lines.linewidth": 1.4, "axes.prop_cycle": cycler(color=COLORS)}
    return mpl.rc_context(style)


def picture_html(result: Plottable) -> str:
    """The picture of a result, for a notebook."""
    file = io.BytesIO()
    result.figure().savefig(file, format="png", dpi=90)
    return f'<img src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'


def can_draw() -> bool:
    """Is matplotlib installed?"""
    return find_spec("matplotlib") is not None


def check_matplotlib() -> None:
    """Raise where matplotlib is not installed."""
    if not can_draw():
        raise IncompatibleError("a picture needs matplotlib, which is not installed; pip install 'exactrank[report]'")


def check_picture(path: Path) -> None:
    """Raise if a picture cannot be made at ``path``: before the work, not after it."""
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(f"{path}: the suffix {path.suffix!r} names no kind of picture; use one of {', '.join(SUFFIXES)}")
    check_matplotlib()


@contextmanager
def picture_file(path: str | os.PathLike[str], *, force: bool = False) -> "Iterator[Callable[[Figure], None]]":
    """What draws a figure to ``path``, which is opened before the work that the figure is made of."""
    target = Path(path)
    check_picture(target)
    with whole_file(target, force=force) as file:
        yield lambda figure: figure.savefig(file, format=target.suffix[1:].lower(), dpi=150)


def caption(text: str, most: int = CAPTION) -> str:
    """Words as a picture shows them: never as a formula, of limited length, and in a legend even if they begin with an underscore.

    >>> print(caption("_$x$"))
     _\\$x\\$
    """
    shown = clip(printable(text), most).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def outline(points: Floats, values: Floats, columns: Floats) -> tuple[Floats, Floats, Floats]:
    """Edges, and the least and the largest value between each two, of a step function between the ends of ``columns``.

    If there are more steps than columns, those of a column are drawn as one; two columns mean that there is no limit.

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


def draw_steps(axes: "Axes", points: Floats, values: Floats, columns: Floats, *, color: str = COLORS[0], **style: Any) -> None:
    """A step function between the ends of ``columns``; where it has more steps than there are columns, what each column holds."""
    edges, least, most = outline(points, values, columns)
    if least is not most:
        axes.stairs(most, edges, baseline=least, fill=True, color=color)
    axes.stairs(most, edges, baseline=None, color=color, **style)
    axes.update_datalim([(edges[0], least.min()), (edges[-1], most.max())])
