"""Scorers: immutable functions from a document's features to its score, and the file they are kept in.

A scorer is one file and one line in `KINDS`, which names its class by the ``"kind"`` that stands in model files.
"""

from collections.abc import Mapping
from reprlib import repr
from typing import TYPE_CHECKING, Any

from exactrank.errors import DataError
from exactrank.registry import Registry

if TYPE_CHECKING:
    from exactrank.scorers.base import Scorer

KINDS: "Registry[type[Scorer]]" = Registry("kind of scorer", {
    "deep": "exactrank.scorers.deep:Deep",
    "linear": "exactrank.scorers.linear:Linear",
    "network": "exactrank.scorers.network:Network",
    "sum": "exactrank.scorers.sum:Sum",
    "thresholds": "exactrank.scorers.thresholds:Thresholds",
    "trees": "exactrank.scorers.tree_ensemble:TreeEnsemble",
})  # fmt: skip


def read_scorer(record: Mapping[str, Any], where: str) -> "Scorer":
    """The scorer of any kind that ``to_record`` described; errors name ``where`` it was read."""
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise DataError(f"{where}: the scorer's kind is {repr(kind)}; known: {', '.join(KINDS)}")
    return KINDS[kind].from_record(record, where)
