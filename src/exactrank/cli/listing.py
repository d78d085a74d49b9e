"""The commands that list the methods and the measures."""

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING

from exactrank.cli.common import Json, print_json

if TYPE_CHECKING:
    from exactrank.measures.base import Measure


def methods(as_json: Json = False) -> None:
    """List the methods: rankers to train, and methods of other libraries to compare them with."""
    from exactrank.cli.names import peers, rankers

    ours, theirs = rankers(), peers()
    if as_json:
        print_json({"train": ours, "compare": ours | theirs})
        return
    from exactrank.cli.terminal import PlainTable, show

    table = PlainTable("method", "description")
    for name, about in ours.items():
        table.row(name, about)
    peer_table = PlainTable("method", "description", title="only for exactrank compare")
    for name, about in theirs.items():
        peer_table.row(name, about)
    show(table, "exactrank train METHOD --help lists the settings of a method.", peer_table)


def measures(as_json: Json = False) -> None:
    """List the measures, with their settings and defaults, and the conventions of other tools (presets)."""
    from exactrank.measures.base import Measure
    from exactrank.measures.parse import PRESETS, known_measures

    kinds = {name: Measure.registry[name] for name in known_measures()}
    if as_json:
        listed = {name: {"about": _about(kind), "also": list(kind.aliases), "settings": _settings(kind)} for name, kind in kinds.items()}
        print_json({"measures": listed, "presets": {name: list(preset.measures) for name, preset in PRESETS.items()}})
        return
    from exactrank.cli.terminal import PlainTable, show

    table = PlainTable("measure", "description", "settings and their defaults")
    for name, kind in kinds.items():
        settings = ", ".join(f"{setting}={default!r}" for setting, default in _settings(kind).items() if setting != "k")
        table.row([f"{name}@k" if kind.has_cutoff else name, *(f"also {alias}" for alias in kind.aliases)], _about(kind), settings)
    presets = PlainTable("preset", "measures", title="conventions of other tools (--preset)")
    for name, preset in PRESETS.items():
        presets.row(name, ", ".join(preset.measures))
    show(table, "Settings are written in brackets: 'AP(rel=2)', 'nDCG(gain=linear)@10'.", presets)


def _about(kind: "type[Measure]") -> str:
    """Return the first sentence of the docstring, without numbers of equations."""
    return (kind.__doc__ or "").partition("\n")[0].partition(", (")[0].replace("``", "").rstrip(".")


def _settings(kind: "type[Measure]") -> dict[str, object]:
    return {field.name: None if field.default is MISSING else field.default for field in fields(kind)}
