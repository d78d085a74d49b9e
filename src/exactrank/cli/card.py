"""The command that writes a model's card."""

from pathlib import Path
from typing import Annotated

import typer

from exactrank.cli.common import Force, load_model, optional_file, print_line, print_text


def card(
    model: Annotated[Path, typer.Argument(help="A model of exactrank train, or of a library that exactrank reads.")],
    out: Annotated[Path | None, typer.Option(help="Where the card goes; - is standard output. [default: stdout]")] = None,
    force: Force = False,
) -> None:
    """Write a model's card in Markdown, to be read before the model is used: data, measure, settings, estimate, features and limits."""
    from exactrank._support.files import is_stream
    from exactrank._support.text import encode

    with optional_file(out, force) as file:
        text = load_model(model).card()
        if file is not None:
            file.write(encode(text))
    if out is None:
        print_text(text.rstrip("\n"))
    elif not is_stream(out):
        print_line(f"{out}: card of {model}")
