"""Scorers: immutable functions from a document's features to its score, and the file they are kept in.

A scorer is one file and one line in `KINDS`, which names its class by the ``"kind"`` that stands in model files.
"""

from collections.abc import Mapping

KINDS: Mapping[str, str] = {
    "linear": "exactrank.scorers.linear:Linear",
    "network": "exactrank.scorers.network:Network",
    "thresholds": "exactrank.scorers.thresholds:Thresholds",
    "trees": "exactrank.scorers.tree_ensemble:TreeEnsemble",
}
