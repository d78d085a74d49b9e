"""The command that scores documents by a model."""

from pathlib import Path
from typing import Annotated

import typer

from exactrank.cli.common import (
    Force,
    Json,
    Reading,
    Source,
    Threads,
    app,
    command,
    load_model,
    optional_file,
    print_json,
    read,
    report_written,
    write,
)


@command(app)
def predict(
    model: Annotated[Path, typer.Argument(help="A model of exactrank train, or JSON with weights by feature name.")],
    data: Source,
    reading: Reading,
    out: Annotated[Path | None, typer.Option(help="Where the scores go; - is standard output. \\[default: stdout]")] = None,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Score documents by a model: one score a line, in the order of DATA."""
    with optional_file(out, force) as file:
        scores = load_model(model).predict(read(data, reading), threads).tolist()
        if file is not None:
            file.writelines(f"{score!r}\n".encode() for score in scores)
    if out is not None:
        report_written(out, len(scores), as_json)
    elif as_json:
        print_json({"scores": scores})
    else:
        write("\n".join(map(repr, scores)))
