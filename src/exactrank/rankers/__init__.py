"""Rankers: scikit-learn estimators, one file per published method.

A ranker is one file, called as its command with _ for -, and one line in `exactrank.HOME`, which gives it its command ``exactrank train
NAME`` and its place in `exactrank compare`. Other packages add theirs by entry points of the group ``exactrank.rankers``
(`exactrank._support.registry`).
"""

from typing import TYPE_CHECKING

from exactrank import HOME
from exactrank._support.registry import Registry

if TYPE_CHECKING:
    from exactrank.rankers.base import Ranker


def _is_ranker(value: object) -> bool:
    from exactrank.rankers.base import Ranker

    return isinstance(value, type) and issubclass(value, Ranker)


#: By their names on the command line; imported when asked for.
RANKERS: "Registry[type[Ranker]]" = Registry(
    "ranker",
    {
        module.removeprefix(f"{__name__}.").replace("_", "-"): f"{module}:{names[0]}"
        for module, names in HOME.items()
        if module.startswith(f"{__name__}.") and names != ("Composed",)  # which takes objects that no command line can write
    },
    "exactrank.rankers",
    _is_ranker,
)
