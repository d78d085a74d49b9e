"""exactrank: learning to rank, trained on the measure you report.

Names are imported when first used, so that ``import exactrank`` and the command line start at once.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exactrank import (
        clicks as clicks,
        data as data,
        errors as errors,
        extend as extend,
        inspect as inspect,
        judging as judging,
        losses as losses,
        measures as measures,
        models as models,
        optimizers as optimizers,
        pairs as pairs,
        statistics as statistics,
        targets as targets,
    )
    from exactrank.backends.cuda.backend import CudaBackend as CudaBackend
    from exactrank.backends.dask import DaskBackend as DaskBackend
    from exactrank.compare.compare import compare as compare
    from exactrank.compare.comparison import Comparison as Comparison, read_comparison as read_comparison
    from exactrank.compare.runs import compare_runs as compare_runs
    from exactrank.compare.tune import Tuned as Tuned, tune as tune
    from exactrank.cutoffs.cutoff import Cutoff as Cutoff
    from exactrank.cutoffs.search import cutoff as cutoff
    from exactrank.data.backend import LocalBackend as LocalBackend
    from exactrank.data.describe import describe as describe
    from exactrank.data.files import read as read, write as write
    from exactrank.data.folds import Fold as Fold, read_folds as read_folds, split as split
    from exactrank.data.formats.run_file import write_run as write_run
    from exactrank.data.formats.trec import from_trec as from_trec, read_qrels as read_qrels, read_run as read_run
    from exactrank.data.ranking_data import RankingData as RankingData
    from exactrank.data.shards import read_shards as read_shards
    from exactrank.fusion.front import ParetoFront as ParetoFront
    from exactrank.fusion.fuse import fuse as fuse
    from exactrank.fusion.fusion import Fusion as Fusion
    from exactrank.fusion.pareto import pareto as pareto, tradeoff as tradeoff
    from exactrank.fusion.systems import systems_from_frame as systems_from_frame, systems_from_runs as systems_from_runs
    from exactrank.learning.objectives.profile import line_search as line_search, profile as profile
    from exactrank.learning.objectives.step_function import StepFunction as StepFunction
    from exactrank.loading import load as load
    from exactrank.measures import Measure as Measure
    from exactrank.measures.evaluate import evaluate as evaluate
    from exactrank.measures.parse import parse_measure as parse_measure
    from exactrank.models.estimators.model import from_estimator as from_estimator
    from exactrank.models.model import Model as Model
    from exactrank.models.targets.export import export as export
    from exactrank.rankers.adarank import AdaRank as AdaRank
    from exactrank.rankers.approxndcg import ApproxNDCG as ApproxNDCG
    from exactrank.rankers.blend import Blend as Blend
    from exactrank.rankers.composed import Composed as Composed
    from exactrank.rankers.coordinate_ascent import CoordinateAscent as CoordinateAscent
    from exactrank.rankers.directrank import DirectRank as DirectRank
    from exactrank.rankers.directrank_trees import DirectRankTrees as DirectRankTrees
    from exactrank.rankers.lambdamart import LambdaMART as LambdaMART
    from exactrank.rankers.lambdarank import LambdaRank as LambdaRank
    from exactrank.rankers.listmle import ListMLE as ListMLE
    from exactrank.rankers.listnet import ListNet as ListNet
    from exactrank.rankers.mart import MART as MART
    from exactrank.rankers.rankboost import RankBoost as RankBoost
    from exactrank.rankers.rankcosine import RankCosine as RankCosine
    from exactrank.rankers.ranknet import RankNet as RankNet
    from exactrank.rankers.ranksvm import RankSVM as RankSVM
    from exactrank.rankers.ridge import Ridge as Ridge
    from exactrank.rankers.smoothrank import SmoothRank as SmoothRank
    from exactrank.rankers.spsarank import SPSARank as SPSARank
    from exactrank.rankers.structuredrank import StructuredRank as StructuredRank
    from exactrank.rankers.svmmap import SVMMAP as SVMMAP
    from exactrank.rankers.torch import TorchRanker as TorchRanker

__version__ = "0.1.0"

#: Where public names are. Each module of ``rankers`` here is a ranker, whose command is called as the module, with - for _.
HOME = {
    "exactrank.backends.cuda.backend": ("CudaBackend",),
    "exactrank.backends.dask": ("DaskBackend",),
    "exactrank.compare.compare": ("compare",),
    "exactrank.compare.comparison": ("Comparison", "read_comparison",),
    "exactrank.compare.runs": ("compare_runs",),
    "exactrank.compare.tune": ("Tuned", "tune",),
    "exactrank.cutoffs.cutoff": ("Cutoff",),
    "exactrank.cutoffs.search": ("cutoff",),
    "exactrank.data.backend": ("LocalBackend",),
    "exactrank.data.describe": ("describe",),
    "exactrank.data.files": ("read", "write",),
    "exactrank.data.folds": ("Fold", "read_folds", "split",),
    "exactrank.data.formats.run_file": ("write_run",),
    "exactrank.data.formats.trec": ("from_trec", "read_qrels", "read_run",),
    "exactrank.data.ranking_data": ("RankingData",),
    "exactrank.data.shards": ("read_shards",),
    "exactrank.fusion.front": ("ParetoFront",),
    "exactrank.fusion.fuse": ("fuse",),
    "exactrank.fusion.fusion": ("Fusion",),
    "exactrank.fusion.pareto": ("pareto", "tradeoff",),
    "exactrank.fusion.systems": ("systems_from_frame", "systems_from_runs",),
    "exactrank.learning.objectives.profile": ("line_search", "profile",),
    "exactrank.learning.objectives.step_function": ("StepFunction",),
    "exactrank.loading": ("load",),
    "exactrank.measures": ("Measure",),
    "exactrank.measures.evaluate": ("evaluate",),
    "exactrank.measures.parse": ("parse_measure",),
    "exactrank.models.estimators.model": ("from_estimator",),
    "exactrank.models.model": ("Model",),
    "exactrank.models.targets.export": ("export",),
    "exactrank.rankers.adarank": ("AdaRank",),
    "exactrank.rankers.approxndcg": ("ApproxNDCG",),
    "exactrank.rankers.blend": ("Blend",),
    "exactrank.rankers.composed": ("Composed",),
    "exactrank.rankers.coordinate_ascent": ("CoordinateAscent",),
    "exactrank.rankers.directrank": ("DirectRank",),
    "exactrank.rankers.directrank_trees": ("DirectRankTrees",),
    "exactrank.rankers.lambdamart": ("LambdaMART",),
    "exactrank.rankers.lambdarank": ("LambdaRank",),
    "exactrank.rankers.listmle": ("ListMLE",),
    "exactrank.rankers.listnet": ("ListNet",),
    "exactrank.rankers.mart": ("MART",),
    "exactrank.rankers.rankboost": ("RankBoost",),
    "exactrank.rankers.rankcosine": ("RankCosine",),
    "exactrank.rankers.ranknet": ("RankNet",),
    "exactrank.rankers.ranksvm": ("RankSVM",),
    "exactrank.rankers.ridge": ("Ridge",),
    "exactrank.rankers.smoothrank": ("SmoothRank",),
    "exactrank.rankers.spsarank": ("SPSARank",),
    "exactrank.rankers.structuredrank": ("StructuredRank",),
    "exactrank.rankers.svmmap": ("SVMMAP",),
    "exactrank.rankers.torch": ("TorchRanker",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in HOME.items() for name in names}
#: Public modules with more names.
NAMESPACES = (
    "clicks", "data", "errors", "extend", "inspect", "judging", "losses", "measures", "models", "optimizers", "pairs", "statistics",
    "targets",
)  # fmt: skip
__all__ = list(_MODULE_OF)


class _Exactrank(ModuleType):
    """A module where a public function keeps its name when a package of the same name is imported, as `compare` does."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in _MODULE_OF):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Exactrank


def __getattr__(name: str) -> Any:
    if name in NAMESPACES:
        return import_module(f"exactrank.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'exactrank' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *NAMESPACES, "__version__"])
