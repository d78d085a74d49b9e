"""Scorers: immutable functions from a document's features to its score, and the model file.

A scorer is one file and one line in `KINDS`, which names its class by its ``"kind"`` in model files.
"""

from reprlib import repr
from typing import TYPE_CHECKING

from exactrank._support.json_values import JSONObject
from exactrank._support.registry import Registry, lazy_getattr
from exactrank.errors import DataError

if TYPE_CHECKING:
    from exactrank.models.architecture import LinearModel as LinearModel, NetworkModel as NetworkModel
    from exactrank.models.base import Scorer as Scorer
    from exactrank.models.deep import Deep as Deep
    from exactrank.models.kernel_expansion import KernelExpansion as KernelExpansion
    from exactrank.models.linear import Linear as Linear
    from exactrank.models.network import Network as Network
    from exactrank.models.sum import Sum as Sum
    from exactrank.models.thresholds import Thresholds as Thresholds
    from exactrank.models.tree_ensemble import TreeEnsemble as TreeEnsemble

KINDS: "Registry[type[Scorer]]" = Registry("kind of scorer", {
    "deep": "exactrank.models.deep:Deep",
    "kernel": "exactrank.models.kernel_expansion:KernelExpansion",
    "linear": "exactrank.models.linear:Linear",
    "network": "exactrank.models.network:Network",
    "sum": "exactrank.models.sum:Sum",
    "thresholds": "exactrank.models.thresholds:Thresholds",
    "trees": "exactrank.models.tree_ensemble:TreeEnsemble",
})  # fmt: skip

#: The module of each public name that `exactrank` does not export itself.
PUBLIC = {
    "Deep": "deep", "KernelExpansion": "kernel_expansion", "Linear": "linear", "LinearModel": "architecture", "Network": "network",
    "NetworkModel": "architecture",
    "Scorer": "base", "Sum": "sum", "Thresholds": "thresholds", "TreeEnsemble": "tree_ensemble",
}  # fmt: skip
__getattr__ = lazy_getattr(__name__, PUBLIC)


def read_scorer(record: JSONObject, where: str) -> "Scorer":
    """Return the scorer, of any kind, that ``to_record`` described; errors name ``where`` it was read."""
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise DataError(f"{where}: the scorer's kind is {repr(kind)}; known: {', '.join(KINDS)}")
    return KINDS[kind].from_record(record, where)
