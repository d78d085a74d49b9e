"""Published experiments, rerun: one file per experiment, or for a few that share their methods.

An experiment is one class and one line in `EXPERIMENTS`; ``exactrank reproduce NAME --out FOLDER`` runs it and writes the table, the
figure, what was published, what was found, and whether the published finding holds.
"""

from typing import TYPE_CHECKING

from exactrank._support.registry import Registry

if TYPE_CHECKING:
    from exactrank.reproduce.experiment import Experiment

_HERE = "exactrank.reproduce"
#: Where each experiment is, by name, in the order of the papers; imported on demand.
EXPERIMENTS: "Registry[type[Experiment]]" = Registry("experiment", {
    "ranknet-speedup": f"{_HERE}.ranknet_speedup:RankNetSpeedup",
    "lambdarank-ranknet": f"{_HERE}.lambdarank_duels:LambdaRankOverRankNet",
    "lambda-functions": f"{_HERE}.lambdarank_duels:LambdaFunctions",
    "lambdarank-intranet": f"{_HERE}.lambdarank_duels:LambdaRankOnIntranet",
    "lambdarank-web": f"{_HERE}.lambdarank_duels:LambdaRankOnWeb",
    "spsa-convergence": f"{_HERE}.spsa:SPSAConvergence",
    "smoothness": f"{_HERE}.smoothness:SmoothWithQueries",
    "smoothness-web": f"{_HERE}.smoothness:SmoothOnWeb",
    "spsa-table": f"{_HERE}.spsa:SPSATable",
    "spsa-queries": f"{_HERE}.spsa:SPSAQueries",
    "lambdarank-optimality": f"{_HERE}.smoothness:LambdaRankOptimality",
    "structured-ndcg": f"{_HERE}.structured_ndcg:StructuredNDCG",
    "structured-bounds": f"{_HERE}.structured_bounds:StructuredBounds",
    "structured-times": f"{_HERE}.structured_bounds:StructuredTimes",
    "line-search-example": f"{_HERE}.jumping_points:LineSearchExample",
    "directrank-order": f"{_HERE}.directrank_search:DirectRankOrder",
    "directrank-consistency": f"{_HERE}.directrank_search:DirectRankConsistency",
    "directrank-letor": f"{_HERE}.directrank_letor:DirectRankLETOR",
    "directrank-large": f"{_HERE}.directrank_linear:DirectRankLarge",
    "directrank-err-map": f"{_HERE}.directrank_linear:DirectRankERRMAP",
    "tree-tables": f"{_HERE}.tree_tables:TreeTables",
    "jumping-points": f"{_HERE}.jumping_points:JumpingPointsTable",
    "directrank-times": f"{_HERE}.directrank_linear:DirectRankTimes",
    "directrank-starts": f"{_HERE}.directrank_search:DirectRankStarts",
    "unbiased": f"{_HERE}.unbiased:Unbiased",
})  # fmt: skip


def find_experiment(name: str) -> "type[Experiment]":
    """The class of the experiment called ``name``."""
    return EXPERIMENTS[name]
