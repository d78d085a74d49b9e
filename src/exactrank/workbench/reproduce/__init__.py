"""Published experiments, run again: one file an experiment.

An experiment is one file and one line in `EXPERIMENTS`; ``python -m exactrank.workbench.reproduce NAME --out FOLDER`` runs it and
writes the table, the figure, what was published, what was found, and whether the published finding holds.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from exactrank.errors import DataError

if TYPE_CHECKING:
    from exactrank.workbench.reproduce.experiment import Experiment

#: Where each experiment is, by its name; imported when asked for.
EXPERIMENTS: Mapping[str, str] = {
    "lambdarank-ranknet": "exactrank.workbench.reproduce.lambdarank_ranknet:LambdaRankOverRankNet",
    "ranknet-speedup": "exactrank.workbench.reproduce.ranknet_speedup:RankNetSpeedup",
    "spsa-convergence": "exactrank.workbench.reproduce.spsa_convergence:SPSAConvergence",
    "spsa-table": "exactrank.workbench.reproduce.spsa_table:SPSATable",
    "smoothness": "exactrank.workbench.reproduce.smoothness:SmoothWithQueries",
    "structured-bounds": "exactrank.workbench.reproduce.structured_bounds:StructuredBounds",
    "structured-ndcg": "exactrank.workbench.reproduce.structured_ndcg:StructuredNDCG",
    "structured-times": "exactrank.workbench.reproduce.structured_times:StructuredTimes",
    "tree-tables": "exactrank.workbench.reproduce.tree_tables:TreeTables",
}


def find_experiment(name: str) -> "type[Experiment]":
    """The class of the experiment called ``name``."""
    if name not in EXPERIMENTS:
        raise DataError(f"there is no experiment called {name!r}; there are {', '.join(EXPERIMENTS)}")
    module, _, found = EXPERIMENTS[name].partition(":")
    experiment: type[Experiment] = getattr(import_module(module), found)
    return experiment
