"""Progress bars: one line, the same in a terminal and in a notebook, for the library and for the command line.

    lambdamart ━━━━━━╺━━━━━  42%  12 s elapsed, about 1 min 35 s left  nDCG@10 0.4512, validation 0.4310

``progress=True`` draws the line on stderr if that is a terminal, or below the cell of a notebook; otherwise nothing is shown. At the end
the line is removed. ``progress=function`` draws nothing and calls the function instead. rich is imported when a line is drawn.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from exactrank._support.text import printable
from exactrank.errors import SettingError

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, Task

Columns: TypeAlias = "list[str | ProgressColumn]"
T = TypeVar("T")
WIDTH = 12  #: characters of the bar itself
COLUMNS = 110  #: characters of the line in a notebook
SECONDS_BETWEEN_LINES = 0.25  #: in a notebook
SOON = 1.0  #: seconds after which the remaining time is estimated


@dataclass(frozen=True)
class Advance:
    """The progress of a comparison, a tuning or a fusion."""

    share: float  #: the estimated share of the work that is completed
    left: float | None = None  #: the estimated remaining time in seconds
    completed: int = 0  #: number of fits or steps
    running: tuple[str, ...] = ()  #: names of the fits or steps that run now


@dataclass(frozen=True)
class ProgressLine:
    """The content of a progress line."""

    share: float | None  #: the completed share of the work
    activity: str  #: a description of the current step
    left: float | None = None  #: the remaining time in seconds, if a better estimate is known than the share gives

    @classmethod
    def of(cls, advance: Advance) -> "ProgressLine":
        """Return the line of an `Advance`."""
        return cls(advance.share, ", ".join(advance.running), advance.left)


@contextmanager
def progress_listener(
    progress: "bool | Callable[[T], None] | None", title: str, line: Callable[[T], ProgressLine]
) -> Iterator[Callable[[T], None] | None]:
    """Yield the function to call with every step, or None: the user's own, or one that draws ``line(step)`` after the ``title``."""
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
    """Return the function to call with the name of each of ``steps`` steps as it begins; it tells the ``listener``, if there is one."""
    numbers = count()

    def begin(step: str) -> None:
        if listener is not None:
            number = next(numbers)
            listener(Advance(number / steps, None, number, (step,)))

    return begin


@contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Callable[[ProgressLine], None]]:
    """Yield a function that draws lines in a terminal or notebook; elsewhere, or if ``quiet``, it draws nothing."""
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
        yield _line_drawer(bar)


def _line_drawer(bar: "Progress") -> Callable[[ProgressLine], None]:
    task = bar.add_task("", total=None, left=None)

    def draw(line: ProgressLine) -> None:
        total = None if line.share is None else 1.0
        bar.update(task, total=total, completed=line.share or 0.0, description=printable(line.activity), left=line.left)

    return draw


@contextmanager
def _in_notebook(columns: Columns) -> Iterator[Callable[[ProgressLine], None]]:
    """Draw below the cell by IPython alone: rich would need ipywidgets."""
    from io import StringIO

    from rich.console import Console
    from rich.progress import Progress

    notebook: Any = import_module("IPython.display")
    page = Console(file=StringIO(), record=True, width=COLUMNS, force_terminal=True, force_jupyter=False)
    bar = Progress(*columns, console=page, auto_refresh=False)
    update, place, due = _line_drawer(bar), notebook.display(notebook.HTML(""), display_id=True), 0.0

    def draw(line: ProgressLine) -> None:
        nonlocal due
        update(line)
        if time.monotonic() >= due:
            page.print(bar.get_renderable())
            place.update(notebook.HTML(page.export_html(inline_styles=True, code_format='<pre style="margin: 0">{code}</pre>')))
            due = time.monotonic() + SECONDS_BETWEEN_LINES

    try:
        yield draw
    finally:
        place.update(notebook.HTML(""))


def _columns(title: str) -> Columns:
    from rich.progress import BarColumn, ProgressColumn, TextColumn
    from rich.text import Text

    class Times(ProgressColumn):
        """The elapsed and the remaining time."""

        def render(self, task: "Task") -> Text:
            return Text(times_text(task.elapsed or 0.0, task.percentage / 100 if task.total else None, task.fields["left"]))

    class Share(ProgressColumn):
        """The share in percent, if it is known."""

        def render(self, task: "Task") -> Text:
            return Text(f"{task.percentage:3.0f}%" if task.total else "")

    return [TextColumn(printable(title), markup=False), BarColumn(WIDTH), Share(), Times(), TextColumn(" {task.description}", markup=False)]


def times_text(elapsed: float, share: float | None, left: float | None = None) -> str:
    """Return the elapsed time and, if it can be estimated, the remaining time.

    >>> times_text(0.2, None), times_text(12, 0.25), times_text(75, 0.5, 5700)
    ('0 s elapsed', '12 s elapsed, about 36 s left', '1 min 15 s elapsed, about 1 h 35 min left')
    >>> times_text(12, 0.99999), times_text(12, 1)
    ('12 s elapsed, about 1 s left', '12 s elapsed')
    """
    if left is None and share and elapsed >= SOON:
        left = elapsed * (1 - share) / share
    return f"{duration_text(elapsed)} elapsed" + ("" if left is None or share == 1 else f", about {duration_text(max(left, 1))} left")


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units.

    >>> duration_text(4.2), duration_text(75), duration_text(5714), duration_text(200_000)
    ('4 s', '1 min 15 s', '1 h 35 min', '2 d 7 h')
    """
    total = round(seconds)
    for unit, size, part, smaller in (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1)):
        if total >= size:
            return f"{total // size} {unit} {total % size // smaller} {part}"
    return f"{total} s"
