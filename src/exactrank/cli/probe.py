"""What the commands that look closely at a model or a lambda function share; each has a file of its own, called as the command."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from exactrank.cli.common import app, print_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Measured = Annotated[
    str | None, typer.Option("--measure", "-m", help="What to look at, e.g. nDCG@10. \\[default: what the model was trained on]")
]

probe = typer.Typer(no_args_is_help=True)
app.add_typer(probe, name="probe", help="Look closely at a model or a lambda function.")


class Found(Protocol):
    """What a probe finds."""

    @property
    def figure(self) -> Callable[..., "Figure"]:
        """What draws it."""

    def to_json(self) -> dict[str, Any]:
        """All of it."""


F = TypeVar("F", bound=Found)


def report(examine: Callable[[], F], show: Callable[[F], None], as_json: bool, plot: Path | None, force: bool, **drawn: Any) -> None:
    """Show what is found, and draw it to ``plot``, which is opened before the work, where a picture is asked for."""
    with picture(plot, force) as draw:
        found = examine()
        if draw is not None:
            draw(found.figure(**drawn))
    if as_json:
        print_json(found.to_json())
    else:
        show(found)


def picture(plot: Path | None, force: bool) -> "AbstractContextManager[Callable[[Figure], None] | None]":
    """What draws to ``plot``, opened before the work; None where no picture is asked for."""
    from exactrank.pictures import picture_file

    return nullcontext() if plot is None else picture_file(plot, force=force)
