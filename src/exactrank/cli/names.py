"""Names of methods and measures, as commands list them and as the shell completes them.

Importing a ranker takes 1.3 s of processor time, four fifths of it for scikit-learn. To list and complete names at once, `summary`
reads the first line of a docstring from the source. Only ``exactrank train METHOD`` imports the method, whose settings are its options.
"""

import ast
import pkgutil
from collections.abc import Iterable
from typing import TYPE_CHECKING

from exactrank._support.registry import Registry
from exactrank.compare import CONTENDERS
from exactrank.errors import ExactRankError
from exactrank.rankers import RANKERS

if TYPE_CHECKING:
    from exactrank.rankers.base import Ranker

CUTOFFS = (1, 5, 10, 20)  #: offered for a name that is complete except for its cutoff


def rankers() -> dict[str, str]:
    """Return a line about each ranker; for a ranker of another package that cannot be imported, the error."""
    return {name: summary(RANKERS, name) for name in RANKERS}


def peers() -> dict[str, str]:
    """Return a line about each other method that a comparison knows by name."""
    return {name: summary(CONTENDERS, name) for name in CONTENDERS}


def summary(registry: "Registry[type[Ranker]] | Registry[type]", name: str) -> str:
    """Return the first line of the docstring of the class called ``name``, read from its source if the class is ours."""
    place = registry.builtin.get(name)
    if isinstance(place, str):
        module, _, class_name = place.partition(":")
        source = pkgutil.get_data("exactrank", module.removeprefix("exactrank.").replace(".", "/") + ".py")
        classes = (node for node in ast.parse(source or b"").body if isinstance(node, ast.ClassDef))
        return _first_line(next((ast.get_docstring(node) for node in classes if node.name == class_name), None))
    try:
        return _first_line(registry[name].__doc__)
    except ExactRankError as error:
        return str(error)


def _first_line(docstring: str | None) -> str:
    return (docstring or "").partition("\n")[0]


def complete_measure(incomplete: str) -> list[str]:
    """Return the measures that begin with ``incomplete`` in any case: names, or names with a cutoff."""
    from exactrank.measures.base import Measure
    from exactrank.measures.parse import known_measures

    names = known_measures()
    with_cutoff = [f"{name}@{k}" for name in names if Measure.registry[name].has_cutoff for k in CUTOFFS]
    return _complete(incomplete, with_cutoff if "@" in incomplete or incomplete.lower() in map(str.lower, names) else names)


def complete_methods(incomplete: str) -> list[str]:
    """Complete the last method of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in _complete(last, [*RANKERS, *CONTENDERS])]


def complete_ranker(incomplete: str) -> list[str]:
    """Return the rankers that begin with ``incomplete``."""
    return _complete(incomplete, RANKERS)


def _complete(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.lower().startswith(incomplete.lower())]
