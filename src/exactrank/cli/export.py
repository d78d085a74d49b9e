"""The commands that write a model's card, and the model in the format of a search engine, a runtime or a language."""

import sys
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.common import (
    Force,
    Json,
    Module,
    Reading,
    Threads,
    json_number,
    load_model,
    measure_option,
    optional_file,
    print_json,
    print_line,
    print_note,
    print_text,
    read,
)

if TYPE_CHECKING:
    from exactrank.models.targets.check import Check


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


def export(
    model: Annotated[Path, typer.Argument(help="A model of exactrank train, or of another library.")],
    reading: Reading,
    to: Annotated[str, typer.Option(help="The target, with its settings: solr, 'onnx(ml_opset=3)' ...")],
    out: Annotated[Path | None, typer.Option(help="Where the export goes; - is standard output. [default: stdout]")] = None,
    check: Annotated[
        Path | None, typer.Option(help="Data to score by the target's own arithmetic, to show how much its scores differ from the model's.")
    ] = None,
    measure: Annotated[str | None, measure_option("The measure of --check. [default: the measure the model was trained on]")] = None,
    rename: Annotated[
        list[str] | None, typer.Option(metavar="OLD=NEW", help="Another name for a feature in the export; repeatable.")
    ] = None,
    module: Module = None,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Write a model for a search engine, a runtime or a language, where it gives the same scores."""
    from exactrank._support.files import is_stream
    from exactrank.errors import DataError
    from exactrank.models.targets import TARGETS
    from exactrank.models.targets.export import export as export_model
    from exactrank.rankers.notation import parse_method

    if measure is not None and check is None:
        raise DataError("--measure is the measure of --check; add --check DATA, or leave it out")
    method = parse_method(to, "a target", "write e.g. solr or 'onnx(ml_opset=3)'")
    if method.name not in TARGETS:
        raise TARGETS.unknown(method.name, TARGETS)
    if out is None and not (as_json or TARGETS[method.name].is_text):
        raise DataError(f"{method.name} is binary and cannot be printed; give a file, --out model{TARGETS[method.name].suffix}")
    with optional_file(out, force) as file:
        data = None if check is None else read(check, reading)
        n_features = reading.n_features if data is None else data.n_features
        settings: dict[str, object] = {**method.settings, **({"rename": _new_names(rename)} if rename else {})}
        exported = export_model(load_model(model, n_features, module), method.name, **settings)
        checked = None if data is None else exported.check(data, measure, threads)
        if file is not None:
            file.write(exported.content)
    for remark in exported.remarks:
        print_note(remark)
    if as_json:
        facts = {"target": str(method), "bytes": len(exported.content), "remarks": list(exported.remarks)}
        print_json(facts | {"check": None if checked is None else _record(checked)})
    elif out is None:
        print_text(exported.text)
    elif not is_stream(out):
        print_line(f"{out}: {len(exported.content):,} bytes")
    if checked is not None and not as_json:
        with redirect_stdout(sys.stderr) if out is None else nullcontext():
            _show(checked)


def _new_names(pairs: list[str]) -> dict[str, str]:
    """Return the new names of features by their old ones.

    >>> _new_names(["1=bm25(title)", "2=age"])
    {'1': 'bm25(title)', '2': 'age'}
    """
    from exactrank.errors import SettingError

    for pair in pairs:
        if not all(pair.partition("=")):
            raise SettingError(f"--rename {pair!r}: expected OLD=NEW, e.g. --rename 1=title_bm25")
    return {old: new for old, _, new in (pair.partition("=") for pair in pairs)}


def _record(check: "Check") -> dict[str, object]:
    values = {name: json_number(getattr(check, name)) for name in ("largest", "of_model", "of_export")}
    return vars(check) | {"measure": repr(check.measure)} | values


def _show(check: "Check") -> None:
    from exactrank.cli.terminal import PlainTable, show
    from exactrank.models.targets.check import TOP

    table = PlainTable("", "", title=f"{check.target} beside the model")
    table.row("documents", f"{check.documents:,} of {check.queries:,} queries")
    table.row("largest difference of scores", f"{check.largest:.3g}")
    table.row("documents that differ by more than rounding", f"{check.beyond_rounding:,}")
    table.row(f"queries with another top {TOP}", f"{check.changed_top:,}")
    table.row(f"{check.measure} of the model", f"{check.of_model:.6f}")
    table.row(f"{check.measure} of the export", f"{check.of_export:.6f} ({check.of_export - check.of_model:+.2g})")
    show(table)
