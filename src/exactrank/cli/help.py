"""The help of every command: its usage, its options in panels, and two examples that run.

Nothing is cut, whatever the width of the terminal: an option that is too long for its column has a line of its own, and its help begins
below it. An option that takes a value is shown with a word for it; a flag is shown alone.
"""

import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Literal, get_args, get_origin

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from exactrank._support.numerals import number
from exactrank._support.text import printable
from exactrank.cli.examples import examples_of

if TYPE_CHECKING:
    from rich.text import Text
    from typer._click import Context, HelpFormatter, Parameter  # typer's own copy of click

NARROWEST, WIDEST = 40, 110  #: columns of a page
LEFT = 28  #: maximum width of the column of options and commands
INDENT = 4  #: of the help of an option that has a line of its own
ARGUMENTS, DATA, TRAINING, OPTIONS = "Arguments", "Data", "Training", "Options"
OUTPUT, COMMANDS, EXAMPLES = "Output", "Commands", "Examples"
#: The panels that come first; others stand between them and the output.
FIRST = (ARGUMENTS, DATA, TRAINING, OPTIONS)
_TABLE_COLUMNS = ("query", "doc", "relevance")
_LOG_COLUMNS = ("rank", "clicked", "session", "weight", "time")
#: The panel of an option by its name, which means the same in every command.
PANELS = dict.fromkeys(("valid", "test", "pairs", "dask", "features", "missing", "feature_columns", "keep_columns"), DATA)
PANELS |= dict.fromkeys((f"{part}_column" for part in (*_TABLE_COLUMNS, *_LOG_COLUMNS)), DATA)
PANELS |= dict.fromkeys(("out", "save", "plot", "config", "force", "as_json", "debug"), OUTPUT)
_OPTION = re.compile(r"( --?[\w-]+) (?!-)(\S)")
#: The word for a value, by its type.
WORDS: Mapping[object, str] = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}


def describe_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return ``parameter`` of a command with what its help shows: a word for its value, the choices and the default."""
    kind, *metadata = get_args(parameter.annotation)
    info = copy(next(item for item in metadata if hasattr(item, "rich_help_panel")))
    choices = next((get_args(item) for item in (kind, *get_args(kind)) if get_origin(item) is Literal), ())
    inner = next((item for item in get_args(kind) if item is not NoneType), kind)  # of list[str] and str | None
    inner = next(iter(get_args(inner)), inner)  # of list[str] | None
    is_argument = isinstance(info, typer.models.ArgumentInfo)
    if inner is not bool:
        info.metavar = info.metavar or (parameter.name.upper() if is_argument else "WORD" if choices else WORDS[inner])
    info.rich_help_panel = info.rich_help_panel or (None if is_argument else PANELS.get(parameter.name))
    facts = ([f"one of {', '.join(choices)}"] if choices else []) + _default(parameter.default)
    info.help, info.show_default = (info.help or "") + (f" [{'; '.join(facts)}]" if facts else ""), False
    return parameter.replace(annotation=Annotated[kind, info])


def _default(value: object) -> list[str]:
    if value is inspect.Parameter.empty:
        return ["required"]
    values = list(value) if isinstance(value, list | tuple) else [value]
    words = ", ".join(str(item) for item in values if item is not None and item is not False and item != "")
    return [f"default: {words}"] if words else []


class _Page:
    """The page of help of a command or a group, which replaces `format_help` of typer's classes."""

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Print the page."""
        from rich.console import Console
        from rich.panel import Panel

        console = Console(highlight=False, markup=False, emoji=False)
        width = min(max(console.width, NARROWEST), WIDEST)
        console.print(_head(ctx, width), width=width)
        for title, rows in _panels(ctx):
            lines = _examples(rows, width - 4) if title == EXAMPLES else _rows(rows, width - 4)
            console.print(Panel(lines, title=title, title_align="left", border_style="dim", width=width))


class Command(_Page, TyperCommand):
    """A command with a page of help, whose options take numbers by the rule of `exactrank._support.numerals`."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Parse the arguments, and refuse numbers such as 1_0."""
        texts = self.make_parser(ctx).parse_args(list(args))[0]
        rest: list[str] = super().parse_args(ctx, args)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument | TyperOption):
                _check_numbers(texts.get(parameter.name), ctx.params.get(parameter.name or ""), parameter, ctx)
        return rest


def _check_numbers(text: object, value: object, parameter: TyperArgument | TyperOption, ctx: "Context") -> None:
    """Raise if ``text``, or an item of it, was parsed as a number without being one by our rule."""
    if isinstance(text, list | tuple) and isinstance(value, list | tuple):
        for item_text, item in zip(text, value, strict=False):
            _check_numbers(item_text, item, parameter, ctx)
    elif isinstance(text, str) and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number(text)
        except ValueError as error:
            raise typer.BadParameter(str(error), ctx, parameter) from None


class Group(_Page, TyperGroup):
    """A group of commands with a page of help."""


def _head(ctx: "Context", width: int) -> "Text":
    from rich.text import Text

    arguments = [_usage(parameter) for parameter in ctx.command.params if parameter.param_type_name == "argument"]
    words = [ctx.command_path, "[OPTIONS]", *arguments, *(["COMMAND"] if isinstance(ctx.command, Group) else [])]
    about = "\n\n".join(textwrap.fill(" ".join(part.split()), width - 2) for part in (ctx.command.help or "").split("\n\n"))
    usage = textwrap.fill(" ".join(words), width - 2, subsequent_indent=" " * 7, initial_indent="Usage: ")
    return Text(textwrap.indent(f"\n{usage}\n\n{printable(about, lines=True)}\n", " "))


def _panels(ctx: "Context") -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the titles of the panels, each with its rows of two columns; a group shows its commands before its options."""
    commands, options = dict[str, list[tuple[str, str]]](), dict[str, list[tuple[str, str]]]()
    if isinstance(ctx.command, Group):
        for name in ctx.command.list_commands(ctx):
            command = ctx.command.get_command(ctx, name)
            panel, about = getattr(command, "rich_help_panel", None) or COMMANDS, getattr(command, "help", None) or ""
            commands.setdefault(panel, []).append((name, about.partition("\n\n")[0]))
    for parameter in ctx.command.get_params(ctx):
        if not getattr(parameter, "hidden", False):
            usual = ARGUMENTS if parameter.param_type_name == "argument" else OUTPUT if parameter.name == "help" else OPTIONS
            panel = OPTIONS if isinstance(ctx.command, Group) else getattr(parameter, "rich_help_panel", None) or usual
            options.setdefault(panel, []).append((_usage(parameter), getattr(parameter, "help", None) or ""))
    yield from commands.items()
    between = [title for title in options if title not in (*FIRST, OUTPUT)]
    yield from ((title, options[title]) for title in (*FIRST, *between, OUTPUT) if title in options)
    yield EXAMPLES, [(line, "") for line in examples_of(ctx.command_path.partition(" ")[2])]


def _usage(parameter: "Parameter") -> str:
    """Return the names of a parameter and the word for its value."""
    if parameter.param_type_name == "argument":
        name = parameter.metavar or (parameter.name or "").upper()
        return (name if parameter.required else f"[{name}]") + ("..." if parameter.nargs == -1 else "")
    short_first = sorted(parameter.opts, key=len)
    names = ", ".join(short_first) + "".join(f" / {name}" for name in parameter.secondary_opts)
    return names if getattr(parameter, "is_flag", False) or not parameter.metavar else f"{names} {parameter.metavar}"


def _rows(rows: Sequence[tuple[str, str]], width: int) -> "Text":
    """Lay out two columns, of which no word is cut."""
    from rich.text import Text

    left = min(LEFT, max(len(name) for name, _ in rows) + 2)
    page = Text()
    for index, (name, about) in enumerate(rows):
        fits = len(name) <= left - 2
        indent = left if fits or width < 2 * LEFT else INDENT
        text = textwrap.wrap(printable(" ".join(about.split())), width - indent, break_on_hyphens=False) or [""]
        page.append("\n" if index else "")
        page.append(name, "bold cyan")
        page.append(" " * (indent - len(name)) + text.pop(0) if fits else "")
        for line in text:
            page.append("\n" + " " * indent + line)
    return page


def _examples(rows: Sequence[tuple[str, str]], width: int) -> "Text":
    """Lay out commands, one per line; a command that is too long goes on after a backslash."""
    from rich.text import Text

    lines = []
    for line, _ in rows:
        joined = _OPTION.sub("\\1\0\\2", line)  # an option and its value stay together
        wrapped = textwrap.wrap(joined, width - 2, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False)
        lines.append(" \\\n".join(wrapped).replace("\0", " "))
    return Text("\n".join(lines))
