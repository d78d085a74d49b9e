"""Progress as people see it: one line, the same in a terminal and in a notebook, for the library and for the command line.

    lambdamart ━━━━━━╺━━━━━  42%  12 s elapsed, about 1 min 35 s left  nDCG@10 0.4512, validation 0.4310

``progress=True`` draws it on stderr where that is a terminal, and below the cell in a notebook; anywhere else nothing is shown. It leaves
nothing behind. ``progress=function`` draws nothing and calls the function instead. rich is imported when a line is drawn.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from exactrank._support.text import printable
from exactrank.errors import SettingError

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
WIDTH = 12  #: columns of the bar itself
COLUMNS = 110  #: of the line in a notebook
SECONDS_BETWEEN_LINES = 0.25  #: in a notebook
SOON = 1.0  #: seconds after which the time left is estimated


@dataclass(frozen=True)
class Advance:
    """How far a comparison, a tuning or a fusion has come."""

    share: float  #: of all work that is done, as far as can be told
    left: float | None = None  #: seconds, as far as can be told
    done: int = 0  #: fits, or steps
    running: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgressLine:
    """What a line says: the share of the work that is done, what is being done, and the seconds left where more is known than the share."""

    share: float | None
    doing: str
    left: float | None = None

    @classmethod
    def of(cls, advance: Advance) -> "ProgressLine":
        """What it says of an `Advance`."""
        return cls(advance.share, ", ".join(advance.running), advance.left)


@contextmanager
def progress_listener(
    progress: "bool | Callable[[T], None] | None", title: str, line: Callable[[T], ProgressLine]
) -> Iterator[Callable[[T], None] | None]:
    """Who hears of every step: a function, a line called ``title`` that shows what ``line`` makes of it, or nobody."""
    if callable(progress):
        yield progress
    elif progress is True:
        with progress_bar(title) as draw:
            yield lambda step: draw(line(step))
    elif progress is None or progress is False:
        yield None
    else:
        raise SettingError(f"progress={progress!r} is not True, False or a function that is called with every step")


def step_listener(listener: Callable[[Advance], None] | None, steps: int) -> Callable[[str], None]:
    """What is called with a word for each of some steps as it begins; the listener, if there is one, hears of it."""
    done = count()

    def begin(doing: str) -> None:
        if listener is not None:
            number = next(done)
            listener(Advance(number / steps, None, number, (doing,)))

    return begin


@contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Callable[[ProgressLine], None]]:
    """What draws lines where somebody watches, unless it is to be ``quiet``."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not (console.is_terminal or console.is_jupyter):
        yield lambda line: None
        return
    columns = _columns(title)
    if console.is_jupyter:
        with _in_notebook(columns) as draw:
            yield draw
        return
    from rich.progress import Progress

    with Progress(*columns, console=console, transient=True) as bar:
        yield _drawing(bar)


def _drawing(bar: "Progress") -> Callable[[ProgressLine], None]:
    task = bar.add_task("", total=None, left=None)

    def draw(line: ProgressLine) -> None:
        total = None if line.share is None else 1.0
        bar.update(task, total=total, completed=line.share or 0.0, description=printable(line.doing), left=line.left)

    return draw


@contextmanager
def _in_notebook(columns: list[Any]) -> Iterator[Callable[[ProgressLine], None]]:
    """Below the cell, by the notebook's own means: rich would need ipywidgets."""
    from io import StringIO

    from rich.console import Console
    from rich.progress import Progress

    notebook: Any = import_module("IPython.display")
    page = Console(file=StringIO(), record=True, width=COLUMNS, force_terminal=True, force_jupyter=False)
    bar = Progress(*columns, console=page, auto_refresh=False)
    keep, place, due = _drawing(bar), notebook.display(notebook.HTML(""), display_id=True), 0.0

    def draw(line: ProgressLine) -> None:
        nonlocal due
        keep(line)
        if time.monotonic() >= due:
            page.print(bar.get_renderable())
            place.update(notebook.HTML(page.export_html(inline_styles=True, code_format='<pre style="margin: 0">{code}</pre>')))
            due = time.monotonic() + SECONDS_BETWEEN_LINES

    try:
        yield draw
    finally:
        place.update(notebook.HTML(""))


def _columns(title: str) -> list[Any]:
    from rich.progress import BarColumn, ProgressColumn, TextColumn
    from rich.text import Text

    class Times(ProgressColumn):
        """How long it took, and how long it will take."""

        def render(self, task: Any) -> Text:
            return Text(times_text(task.elapsed or 0.0, task.percentage / 100 if task.total else None, task.fields["left"]))

    class Share(ProgressColumn):
        """In percent, once it is known."""

        def render(self, task: Any) -> Text:
            return Text(f"{task.percentage:3.0f}%" if task.total else "")

    return [TextColumn(printable(title), markup=False), BarColumn(WIDTH), Share(), Times(), TextColumn(" {task.description}", markup=False)]


def times_text(elapsed: float, share: float | None, left: float | None = None) -> str:
    """The time that is spent and, as soon as it can be told, the time that is left.

    >>> times_text(0.2, None), times_text(12, 0.25), times_text(75, 0.5, 5700)
    ('0 s elapsed', '12 s elapsed, about 36 s left', '1 min 15 s elapsed, about 1 h 35 min left')
    >>> times_text(12, 0.99999), times_text(12, 1)
    ('12 s elapsed, about 1 s left', '12 s elapsed')
    """
    if left is None and share and elapsed >= SOON:
        left = elapsed * (1 - share) / share
    return f"{duration_text(elapsed)} elapsed" + ("" if left is None or share == 1 else f", about {duration_text(max(left, 1))} left")


def duration_text(seconds: float) -> str:
    """A duration in its two largest units.

    >>> duration_text(4.2), duration_text(75), duration_text(5714), duration_text(200_000)
    ('4 s', '1 min 15 s', '1 h 35 min', '2 d 7 h')
    """
    whole = round(seconds)
    for unit, size, part, smaller in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // smaller} {part}"
    return f"{whole} s"
