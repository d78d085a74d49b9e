"""What the shell completes: methods and measures; commands, options and files it knows from the program itself."""

from collections.abc import Iterable

CUTOFFS = (1, 5, 10, 20)  #: offered where a name is complete except for its cutoff


def complete_measure(incomplete: str) -> list[str]:
    """The measures that begin so, in any case: names, then those with a cutoff."""
    from exactrank.measures.base import Measure
    from exactrank.measures.parse import known_measures

    names = known_measures()
    with_cutoff = [f"{name}@{k}" for name in names if Measure.registry[name].has_cutoff for k in CUTOFFS]
    return _beginning(incomplete, with_cutoff if "@" in incomplete or incomplete.lower() in map(str.lower, names) else names)


def complete_method(incomplete: str) -> list[str]:
    """The methods of a comparison that begin so."""
    from exactrank.cli.known import peers, rankers

    return _beginning(incomplete, [*rankers(), *peers()])


def complete_methods(incomplete: str) -> list[str]:
    """The same for the last of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + each for each in complete_method(last)]


def complete_ranker(incomplete: str) -> list[str]:
    """The rankers that begin so."""
    from exactrank.rankers import RANKERS

    return _beginning(incomplete, RANKERS)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.lower().startswith(incomplete.lower())]
