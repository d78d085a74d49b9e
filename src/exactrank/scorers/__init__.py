"""Scorers: immutable functions from a document's features to its score, and the file they are kept in.

A scorer is one file and one line in `KINDS`, which names its class by the ``"kind"`` that stands in model files.
"""

from typing import TYPE_CHECKING

from exactrank.registry import Registry

if TYPE_CHECKING:
    from exactrank.scorers.base import Scorer

KINDS: "Registry[type[Scorer]]" = Registry("kind of scorer", {
    "linear": "exactrank.scorers.linear:Linear",
    "network": "exactrank.scorers.network:Network",
    "thresholds": "exactrank.scorers.thresholds:Thresholds",
    "trees": "exactrank.scorers.tree_ensemble:TreeEnsemble",
})  # fmt: skip
