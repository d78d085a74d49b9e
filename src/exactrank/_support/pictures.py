"""Pictures: their style, their files, matplotlib (which is optional), and step functions with more steps than pixels.

Colors are those of the report of a comparison (Okabe & Ito 2008), which color-blind people can tell apart.
"""

import base64
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import Floats
from exactrank._support.files import whole_file
from exactrank._support.libraries import library
from exactrank._support.text import clip, printable
from exactrank.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Panels = Axes | npt.NDArray[Any]  #: one Axes, or an array of several

SUFFIXES = (".png", ".svg", ".pdf")
CAPTION = 30  #: largest number of characters of a name
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
INK, QUIET = "#1c2024", "#5b646e"
SIZE = (8.0, 4.5)  #: default width and height in inches


class Plottable(ABC):
    """A result with a picture, which is drawn into one Axes. A picture with more in its own figure overrides `_fill` too."""

    @abstractmethod
    def _draw(self, axes: "Axes", **options: Any) -> None:
        """Draw into ``axes``; ``options`` are those of `plot`."""

    def _fill(self, figure: "Figure", **options: Any) -> "Panels":
        """Draw into an empty figure."""
        axes: Axes = figure.subplots()
        self._draw(axes, **options)
        return axes

    def _size(self, **options: Any) -> tuple[float, float]:
        """Return the size of a new figure in inches."""
        return SIZE

    def plot(self, ax: "Axes | None" = None, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> "Panels":
        """Draw the picture with matplotlib, into ``ax`` or a new figure, and return the Axes, or an array of several.

        With ``path`` the figure is also written, as PNG, SVG or PDF by the suffix; ``force`` replaces an existing file.
        """
        return self._plot(ax, path, force)

    def figure(self, **options: object) -> "Figure":
        """Return the picture as a figure that is unknown to pyplot; ``options`` are those of `plot`."""
        check_matplotlib()
        from matplotlib.figure import Figure

        with picture_style():
            figure = Figure(self._size(**options), layout="constrained")
            self._fill(figure, **options)
        return figure

    def _plot(self, ax: "Axes | None", path: str | os.PathLike[str] | None, force: bool, **options: object) -> "Panels":
        if isinstance(ax, str | os.PathLike):
            raise DataError(f"ax={os.fspath(ax)!r} is a path, not an Axes of matplotlib; give plot(path={os.fspath(ax)!r})")
        check_matplotlib()
        with nullcontext() if path is None else picture_file(path, force=force) as write:
            # The figure is made before the style is set: the first figure makes a notebook show all later ones.
            figure: Any = _new_figure(self._size(**options), in_pyplot=path is None) if ax is None else ax.figure.figure
            with picture_style():
                panels: Panels = self._fill(figure, **options) if ax is None else ax
                if ax is not None:
                    self._draw(ax, **options)
            if write is not None:
                write(figure)
        return panels


def _new_figure(size: tuple[float, float], in_pyplot: bool) -> "Figure":
    """Return a figure; one ``in_pyplot`` is shown, as notebooks do at the end of a cell."""
    if in_pyplot:
        import matplotlib.pyplot as plt

        return plt.figure(figsize=size, layout="constrained")
    from matplotlib.figure import Figure

    return Figure(size, layout="constrained")


def picture_style() -> AbstractContextManager[None]:
    """Return a context that sets the style of all pictures."""
    import matplotlib as mpl
    from cycler import cycler

    parameters: dict[Any, Any] = {f"axes.spines.{side}": False for side in ("top", "right")}
    parameters |= dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK)
    parameters |= dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), QUIET)
    parameters |= dict.fromkeys(("axes.titlesize", "figure.titlesize", "figure.labelsize"), "medium")
    parameters |= {"legend.frameon": False, "legend.fontsize": "small", "lines.linewidth": 1.4, "axes.prop_cycle": cycler(color=COLORS)}
    return mpl.rc_context(parameters)


def picture_html(result: Plottable) -> str:
    """Return the picture of a result as HTML, for a notebook."""
    file = io.BytesIO()
    result.figure().savefig(file, format="png", dpi=90)
    return f'<img src="data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}">'


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def check_matplotlib() -> None:
    """Raise if matplotlib is not installed."""
    library("matplotlib", "pictures", "report")


def check_picture(path: Path) -> None:
    """Raise if no picture can be written to ``path``; called before the work, not after it."""
    if path.suffix.lower() not in SUFFIXES:
        raise DataError(f"{path}: the suffix {path.suffix!r} names no kind of picture; use one of {', '.join(SUFFIXES)}")
    check_matplotlib()


@contextmanager
def picture_file(path: str | os.PathLike[str], *, force: bool = False) -> "Iterator[Callable[[Figure], None]]":
    """Open ``path`` before the work, and yield a function that writes a figure to it."""
    target = Path(path)
    check_picture(target)
    with whole_file(target, force=force) as file:
        yield lambda figure: figure.savefig(file, format=target.suffix[1:].lower(), dpi=150)


def caption(text: str, longest: int = CAPTION) -> str:
    """Return text for a picture: clipped, never read as a formula, and shown in a legend even if it begins with an underscore.

    >>> print(caption("_$x$"))
     _\\$x\\$
    """
    words = clip(printable(text), longest).replace("$", r"\$")
    return f" {words}" if words.startswith("_") else words


def outline(points: Floats, values: Floats, columns: Floats) -> tuple[Floats, Floats, Floats]:
    """Return a step function between the ends of ``columns``: edges, and the lowest and highest value between each two of them.

    If there are more steps than columns, the steps of a column are drawn as one; with two columns there is no limit.

    >>> outline(np.array([1.0, 2.0, 3.0]), np.array([0.0, 5.0, 2.0, 1.0]), np.array([0.0, 1.5, 4.0]))
    (array([0., 1., 4.]), array([0., 1.]), array([0., 5.]))
    """
    low, high = float(columns[0]), float(columns[-1])
    first, last = np.searchsorted(points, low, "right"), np.searchsorted(points, high, "left")
    edges, steps = np.concatenate([[low], points[first:last], [high]]), values[first : last + 1]
    if not 2 < len(columns) < len(steps):
        return edges, steps, steps
    starts = np.unique(np.searchsorted(edges[:-1], columns[:-1], "right") - 1)
    return np.append(edges[starts], high), np.minimum.reduceat(steps, starts), np.maximum.reduceat(steps, starts)


def draw_steps(axes: "Axes", points: Floats, values: Floats, columns: Floats, *, color: str = COLORS[0], **style: Any) -> None:
    """Draw a step function between the ends of ``columns``; with more steps than columns, the range of values in each column."""
    edges, lowest, highest = outline(points, values, columns)
    if lowest is not highest:
        axes.stairs(highest, edges, baseline=lowest, fill=True, color=color)
    axes.stairs(highest, edges, baseline=None, color=color, **style)
    axes.update_datalim([(edges[0], lowest.min()), (edges[-1], highest.max())])
