"""The help of every command: how it is called, its options in panels, two examples that run.

Whatever the width of the terminal, nothing is cut: an option that is too long for its column has a line of its own, and its help begins
below it. An option that takes a value is shown with a word for it; a flag is shown alone.
"""

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from exactrank._support.numerals import number as number_in
from exactrank._support.text import printable
from exactrank.cli.examples import examples_of

if TYPE_CHECKING:
    from rich.text import Text

NARROWEST, WIDEST = 40, 110  #: columns of a page
LEFT = 28  #: columns of options and commands, as far as they fit
INDENT = 4  #: of the help of an option that has a line of its own
ARGUMENTS, DATA, TRAINING, OPTIONS, OUTPUT, COMMANDS, EXAMPLES = (
    *("Arguments", "Data", "Training", "Options", "Output", "Commands", "Examples"),
)
#: The panels that come first; others stand between them and the output.
FIRST = (ARGUMENTS, DATA, TRAINING, OPTIONS)
#: Where an option is shown, by its name, which means the same in every command.
TABLE, LOG = ("query", "doc", "relevance"), ("rank", "clicked", "session", "weight", "time")
PANELS = dict.fromkeys(
    (
        "valid",
        "test",
        "pairs",
        "dask",
        "features",
        "missing",
        *(f"{part}_column" for part in (*TABLE, *LOG)),
        "feature_columns",
        "keep_columns",
    ),
    DATA,
) | dict.fromkeys(("out", "save", "plot", "config", "force", "as_json", "debug"), OUTPUT)
_OPTION = re.compile(r"( --?[\w-]+) (?!-)(\S)")
#: What stands for a value, by its type.
WORDS: Mapping[Any, str] = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}


def described(parameter: inspect.Parameter) -> inspect.Parameter:
    """``parameter`` of a command with what its help says: a word for its value, the choices and the default."""
    kind, *about = get_args(parameter.annotation)
    info = copy(next(each for each in about if hasattr(each, "rich_help_panel")))
    inner = next((each for each in get_args(kind) if each is not NoneType), kind)  # of list[str] and str | None
    inner = next(iter(get_args(inner)), inner)  # of list[str] | None
    choices = [str(each.value) for each in inner] if isinstance(inner, type) and issubclass(inner, Enum) else []
    is_argument = isinstance(info, typer.models.ArgumentInfo)
    if inner is not bool:
        info.metavar = info.metavar or (parameter.name.upper() if is_argument else "WORD" if choices else WORDS[inner])
    info.rich_help_panel = info.rich_help_panel or (None if is_argument else PANELS.get(parameter.name))
    default = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    facts = ([f"one of {', '.join(choices)}"] if choices else []) + _default(default)
    info.help, info.show_default = (info.help or "") + (f" [{'; '.join(facts)}]" if facts else ""), False
    return parameter.replace(annotation=Annotated[kind, info])


def _default(value: object) -> list[str]:
    if value is inspect.Parameter.empty:
        return ["required"]
    listed = list(value) if isinstance(value, list | tuple) else [value]
    words = ", ".join(str(each) for each in listed if each is not None and each is not False and each != "")
    return [f"default: {words}"] if words else []


class _Page:
    """What commands and groups share: `format_help` of typer's classes, which prints the page."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the page."""
        from rich.console import Console
        from rich.panel import Panel

        console = Console(highlight=False, markup=False, emoji=False)
        width = min(max(console.width, NARROWEST), WIDEST)
        console.print(_head(ctx, width), width=width)
        for title, rows in _panels(ctx):
            lines = _listing(rows, width - 4) if title == EXAMPLES else _rows(rows, width - 4)
            console.print(Panel(lines, title=title, title_align="left", border_style="dim", width=width))


class Command(_Page, TyperCommand):
    """A command with a page of help, whose options take numbers by the rule of `exactrank._support.numerals`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        texts = self.make_parser(ctx).parse_args(list(args))[0]
        rest: list[str] = super().parse_args(ctx, args)
        for each in self.params:
            _check_numbers(texts.get(each.name), ctx.params.get(each.name), each, ctx)
        return rest


def _check_numbers(text: Any, value: Any, parameter: Any, ctx: Any) -> None:
    """Raise if ``text``, or one of several, was read as a number without being one by our rule."""
    if isinstance(text, list | tuple) and isinstance(value, list | tuple):
        for one_text, one_value in zip(text, value, strict=False):
            _check_numbers(one_text, one_value, parameter, ctx)
    elif isinstance(text, str) and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number_in(text)
        except ValueError as error:
            raise typer.BadParameter(str(error), ctx, parameter) from None


class Group(_Page, TyperGroup):
    """A group of commands with a page of help."""


def _head(ctx: Any, width: int) -> "Text":
    from rich.text import Text

    arguments = [_called(each) for each in ctx.command.params if each.param_type_name == "argument"]
    words = [ctx.command_path, "[OPTIONS]", *arguments, *(["COMMAND"] if hasattr(ctx.command, "list_commands") else [])]
    about = "\n\n".join(textwrap.fill(" ".join(part.split()), width - 2) for part in (ctx.command.help or "").split("\n\n"))
    usage = textwrap.fill(" ".join(words), width - 2, subsequent_indent=" " * 7, initial_indent="Usage: ")
    return Text(textwrap.indent(f"\n{usage}\n\n{printable(about, lines=True)}\n", " "))


def _panels(ctx: Any) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The titles, each with what stands on the left and what on the right; a group shows its commands before its options."""
    commands, options = dict[str, list[tuple[str, str]]](), dict[str, list[tuple[str, str]]]()
    is_group = hasattr(ctx.command, "list_commands")
    for name in ctx.command.list_commands(ctx) if is_group else ():
        command = ctx.command.get_command(ctx, name)
        panel = getattr(command, "rich_help_panel", None) or COMMANDS
        commands.setdefault(panel, []).append((name, (command.help or "").partition("\n\n")[0]))
    for each in ctx.command.get_params(ctx):
        if not getattr(each, "hidden", False):
            usual = ARGUMENTS if each.param_type_name == "argument" else OUTPUT if each.name == "help" else OPTIONS
            panel = OPTIONS if is_group else getattr(each, "rich_help_panel", None) or usual
            options.setdefault(panel, []).append((_called(each), each.help or ""))
    yield from commands.items()
    between = [title for title in options if title not in (*FIRST, OUTPUT)]
    yield from ((title, options[title]) for title in (*FIRST, *between, OUTPUT) if title in options)
    yield EXAMPLES, [(line, "") for line in examples_of(ctx.command_path.partition(" ")[2])]


def _called(parameter: Any) -> str:
    """How a parameter is written: its names, and the word for its value."""
    if parameter.param_type_name == "argument":
        name = parameter.metavar or parameter.name.upper()
        return (name if parameter.required else f"[{name}]") + ("..." if parameter.nargs == -1 else "")
    short_first = sorted(parameter.opts, key=len)
    names = ", ".join(short_first) + "".join(f" / {each}" for each in parameter.secondary_opts)
    return names if parameter.is_flag or not parameter.metavar else f"{names} {parameter.metavar}"


def _rows(rows: Sequence[tuple[str, str]], width: int) -> "Text":
    """Two columns, of which no word is cut."""
    from rich.text import Text

    left = min(LEFT, max(len(name) for name, _ in rows) + 2)
    page = Text()
    for number, (name, about) in enumerate(rows):
        fits = len(name) <= left - 2
        indent = left if fits or width < 2 * LEFT else INDENT
        text = textwrap.wrap(printable(" ".join(about.split())), width - indent, break_on_hyphens=False) or [""]
        page.append("\n" if number else "")
        page.append(name, "bold cyan")
        page.append(" " * (indent - len(name)) + text.pop(0) if fits else "")
        for line in text:
            page.append("\n" + " " * indent + line)
    return page


def _listing(rows: Sequence[tuple[str, str]], width: int) -> "Text":
    """Commands, each in a line; one that is too long goes on after a backslash."""
    from rich.text import Text

    lines = []
    for line, _ in rows:
        whole = _OPTION.sub("\\1\0\\2", line)  # an option and its value stay together
        wrapped = textwrap.wrap(whole, width - 2, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False)
        lines.append(" \\\n".join(wrapped).replace("\0", " "))
    return Text("\n".join(lines))
