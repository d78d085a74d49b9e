"""The command that writes a model in the format of a serving engine or another language."""

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactrank.cli.common import (
    Force,
    Json,
    Module,
    Reading,
    Threads,
    load_model,
    measure_option,
    number,
    optional_file,
    print_json,
    read,
    say,
    tell,
    write,
)

if TYPE_CHECKING:
    from exactrank.models.targets.check import Check


def export(
    model: Annotated[Path, typer.Argument(help="A model of exactrank train, or of another library.")],
    reading: Reading,
    to: Annotated[str, typer.Option(help="Where the model goes, with its settings: solr, 'onnx(ml_opset=3)' ...")],
    out: Annotated[Path | None, typer.Option(help="Where the export goes; - is standard output. [default: stdout]")] = None,
    check: Annotated[
        Path | None, typer.Option(help="Data to score by the target's own arithmetic: what differs from the model, and by how much.")
    ] = None,
    measure: Annotated[str | None, measure_option("For --check. [default: what the model was trained on]")] = None,
    module: Module = None,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Write a model for a serving engine or another language, so that it scores there as it was trained."""
    from exactrank._support.files import is_stream
    from exactrank.errors import DataError
    from exactrank.models.targets import TARGETS
    from exactrank.models.targets.export import export as exported
    from exactrank.rankers.notation import parse_method

    if measure is not None and check is None:
        raise DataError("--measure says by what --check compares; give --check DATA, or leave it out")
    method = parse_method(to, "a target", "write e.g. solr or 'onnx(ml_opset=3)'")
    if method.name not in TARGETS:
        raise TARGETS.unknown(method.name, TARGETS)
    if out is None and not (as_json or TARGETS[method.name].is_text):
        raise DataError(f"{method.name} is no text to be shown; give the file that it goes to, --out model{TARGETS[method.name].suffix}")
    with optional_file(out, force) as file:
        data = None if check is None else read(check, reading)
        n_features = reading.n_features if data is None else data.n_features
        made = exported(load_model(model, n_features, module), method.name, **method.settings)
        found = None if data is None else made.check(data, measure, threads)
        if file is not None:
            file.write(made.content)
    for remark in made.remarks:
        tell(remark)
    if as_json:
        print_json({"target": str(method), "bytes": len(made.content), "remarks": list(made.remarks), "check": found and _record(found)})
    elif out is None:
        write(made.text)
    elif not is_stream(out):
        say(f"{out}: {len(made.content):,} bytes")
    if found is not None and not as_json:
        with redirect_stdout(sys.stderr) if out is None else nullcontext():
            _show(found)


def _record(found: "Check") -> dict[str, Any]:
    values = {name: number(getattr(found, name)) for name in ("largest", "of_model", "of_export")}
    return vars(found) | {"measure": repr(found.measure)} | values


def _show(found: "Check") -> None:
    from exactrank.cli.terminal import PlainTable, show
    from exactrank.models.targets.check import TOP

    table = PlainTable("", "", title=f"{found.target} beside the model")
    table.row("documents", f"{found.documents:,} of {found.queries:,} queries")
    table.row("largest difference of scores", f"{found.largest:.3g}")
    table.row("documents that differ by more than rounding", f"{found.beyond_rounding:,}")
    table.row(f"queries with another top {TOP}", f"{found.changed_top:,}")
    table.row(f"{found.measure} of the model", f"{found.of_model:.6f}")
    table.row(f"{found.measure} of the export", f"{found.of_export:.6f} ({found.of_export - found.of_model:+.2g})")
    show(table)
