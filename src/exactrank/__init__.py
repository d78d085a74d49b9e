"""exactrank: learning to rank, trained on the measure you report.

Names are imported when first used, so that ``import exactrank`` and the command line start at once.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exactrank.backends.dask import DaskBackend as DaskBackend
    from exactrank.clicks.interleaving import interleave as interleave, preference as preference
    from exactrank.clicks.log import ClickColumns as ClickColumns, Clicks as Clicks
    from exactrank.clicks.propensities import Propensities as Propensities
    from exactrank.clicks.reading import read_clicks as read_clicks
    from exactrank.clicks.simulate import simulate_clicks as simulate_clicks
    from exactrank.clicks.writing import write_clicks as write_clicks
    from exactrank.compare.compare import compare as compare
    from exactrank.compare.comparison import Comparison as Comparison, read_comparison as read_comparison
    from exactrank.compare.runs import compare_runs as compare_runs
    from exactrank.compare.tune import Tuned as Tuned, tune as tune
    from exactrank.data.backend import LocalBackend as LocalBackend
    from exactrank.data.describe import describe as describe
    from exactrank.data.files import read as read, write as write
    from exactrank.data.folds import Fold as Fold, read_folds as read_folds, read_parts as read_parts, split as split
    from exactrank.data.formats.base import Columns as Columns
    from exactrank.data.formats.run_file import write_run as write_run
    from exactrank.data.formats.trec import from_trec as from_trec, read_qrels as read_qrels, read_run as read_run
    from exactrank.data.pairs import read_pairs as read_pairs, with_pairs as with_pairs
    from exactrank.data.preferences import Preferences as Preferences
    from exactrank.data.ranking_data import RankingData as RankingData
    from exactrank.data.shards import Shards as Shards, read_shards as read_shards
    from exactrank.errors import (
        DataError as DataError,
        EngineError as EngineError,
        ExactRankError as ExactRankError,
        IncompatibleError as IncompatibleError,
        InterruptedWarning as InterruptedWarning,
        LeftOutWarning as LeftOutWarning,
        MeasureError as MeasureError,
        OutputExistsError as OutputExistsError,
        PluginWarning as PluginWarning,
        PrecisionWarning as PrecisionWarning,
        SettingError as SettingError,
    )
    from exactrank.fusion.front import ParetoFront as ParetoFront
    from exactrank.fusion.fuse import fuse as fuse
    from exactrank.fusion.fusion import Fusion as Fusion
    from exactrank.fusion.pareto import pareto as pareto, tradeoff as tradeoff
    from exactrank.fusion.systems import systems_from_frame as systems_from_frame, systems_from_runs as systems_from_runs
    from exactrank.inspect.forces import Forces as Forces, forces as forces
    from exactrank.inspect.importance import Importance as Importance, importance as importance
    from exactrank.inspect.jumping_points import jumping_points as jumping_points
    from exactrank.inspect.optimality import Optimality as Optimality, optimality as optimality
    from exactrank.inspect.smoothness import Smoothness as Smoothness, smoothness as smoothness
    from exactrank.learning.objectives.bradley_terry import Strengths as Strengths, bradley_terry as bradley_terry
    from exactrank.learning.objectives.lambdas import (
        FiniteDifference as FiniteDifference,
        Lambdas as Lambdas,
        SampledLambdas as SampledLambdas,
    )
    from exactrank.learning.objectives.losses import (
        ApproxNDCGLoss as ApproxNDCGLoss,
        ListMLELoss as ListMLELoss,
        ListNetLoss as ListNetLoss,
        PairHinge as PairHinge,
        RankCosineLoss as RankCosineLoss,
        SmoothMeasure as SmoothMeasure,
        SquaredError as SquaredError,
    )
    from exactrank.learning.objectives.own_lambdas import (
        DocumentForces as DocumentForces,
        PairForces as PairForces,
        Pairs as Pairs,
        RankedQuery as RankedQuery,
    )
    from exactrank.learning.objectives.profile import line_search as line_search, profile as profile
    from exactrank.learning.objectives.score_space import Slopes as Slopes, slopes as slopes
    from exactrank.learning.objectives.step_function import StepFunction as StepFunction
    from exactrank.learning.objectives.structured import Separated as Separated, Structured as Structured, separate as separate
    from exactrank.loading import load as load
    from exactrank.measures import (
        AP as AP,
        DCG as DCG,
        ERR as ERR,
        NDCG as NDCG,
        RBP as RBP,
        RR as RR,
        Bpref as Bpref,
        MeanNDCG as MeanNDCG,
        Measure as Measure,
        PairwiseCorrect as PairwiseCorrect,
        Precision as Precision,
        Recall as Recall,
        Success as Success,
        Total as Total,
    )
    from exactrank.measures.evaluate import evaluate as evaluate
    from exactrank.measures.parse import parse_measure as parse_measure
    from exactrank.models.architecture import LinearModel as LinearModel, NetworkModel as NetworkModel
    from exactrank.models.deep import Deep as Deep
    from exactrank.models.estimators.model import from_estimator as from_estimator
    from exactrank.models.linear import Linear as Linear
    from exactrank.models.model import Model as Model
    from exactrank.models.network import Network as Network
    from exactrank.models.sum import Sum as Sum
    from exactrank.models.targets.check import Check as Check
    from exactrank.models.targets.export import export as export
    from exactrank.models.targets.target import Export as Export, Target as Target
    from exactrank.models.thresholds import Thresholds as Thresholds
    from exactrank.models.tree_ensemble import TreeEnsemble as TreeEnsemble
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
    "exactrank.clicks.interleaving": ("interleave", "preference"),
    "exactrank.clicks.log": ("ClickColumns", "Clicks"),
    "exactrank.clicks.propensities": ("Propensities",),
    "exactrank.clicks.reading": ("read_clicks",),
    "exactrank.clicks.simulate": ("simulate_clicks",),
    "exactrank.clicks.writing": ("write_clicks",),
    "exactrank.compare.compare": ("compare",),
    "exactrank.compare.comparison": ("Comparison", "read_comparison"),
    "exactrank.compare.runs": ("compare_runs",),
    "exactrank.compare.tune": ("Tuned", "tune"),
    "exactrank.data.describe": ("describe",),
    "exactrank.data.folds": ("Fold", "read_folds", "read_parts", "split"),
    "exactrank.data.formats.base": ("Columns",),
    "exactrank.data.files": ("read", "write"),
    "exactrank.data.pairs": ("read_pairs", "with_pairs"),
    "exactrank.data.preferences": ("Preferences",),
    "exactrank.data.ranking_data": ("RankingData",),
    "exactrank.data.formats.run_file": ("write_run",),
    "exactrank.data.formats.trec": ("from_trec", "read_qrels", "read_run"),
    "exactrank.backends.dask": ("DaskBackend",),
    "exactrank.data.backend": ("LocalBackend",),
    "exactrank.data.shards": ("Shards", "read_shards"),
    "exactrank.errors": (
        "DataError", "EngineError", "ExactRankError", "IncompatibleError", "InterruptedWarning", "LeftOutWarning", "MeasureError",
        "OutputExistsError", "PluginWarning", "PrecisionWarning", "SettingError",
    ),
    "exactrank.models.targets.check": ("Check",),
    "exactrank.models.targets.export": ("export",),
    "exactrank.models.targets.target": ("Export", "Target"),
    "exactrank.fusion.fuse": ("fuse",),
    "exactrank.fusion.fusion": ("Fusion",),
    "exactrank.fusion.systems": ("systems_from_frame", "systems_from_runs"),
    "exactrank.models.estimators.model": ("from_estimator",),
    "exactrank.loading": ("load",),
    "exactrank.measures": (
        "AP", "Bpref", "DCG", "ERR", "MeanNDCG", "Measure", "NDCG", "PairwiseCorrect", "Precision", "RBP", "RR", "Recall", "Success",
        "Total",
    ),
    "exactrank.measures.evaluate": ("evaluate",),
    "exactrank.measures.parse": ("parse_measure",),
    "exactrank.learning.objectives.bradley_terry": ("Strengths", "bradley_terry"),
    "exactrank.learning.objectives.lambdas": ("FiniteDifference", "Lambdas", "SampledLambdas"),
    "exactrank.learning.objectives.own_lambdas": ("DocumentForces", "PairForces", "Pairs", "RankedQuery"),
    "exactrank.learning.objectives.losses": (
        "ApproxNDCGLoss", "ListMLELoss", "ListNetLoss", "PairHinge", "RankCosineLoss", "SmoothMeasure", "SquaredError",
    ),
    "exactrank.learning.objectives.profile": ("line_search", "profile",),
    "exactrank.learning.objectives.score_space": ("Slopes", "slopes"),
    "exactrank.learning.objectives.step_function": ("StepFunction",),
    "exactrank.learning.objectives.structured": ("Separated", "Structured", "separate"),
    "exactrank.fusion.front": ("ParetoFront",),
    "exactrank.fusion.pareto": ("pareto", "tradeoff"),
    "exactrank.inspect.forces": ("Forces", "forces"),
    "exactrank.inspect.importance": ("Importance", "importance"),
    "exactrank.inspect.jumping_points": ("jumping_points",),
    "exactrank.inspect.optimality": ("Optimality", "optimality"),
    "exactrank.inspect.smoothness": ("Smoothness", "smoothness"),
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
    "exactrank.models.architecture": ("LinearModel", "NetworkModel"),
    "exactrank.models.deep": ("Deep",),
    "exactrank.models.linear": ("Linear",),
    "exactrank.models.model": ("Model",),
    "exactrank.models.network": ("Network",),
    "exactrank.models.sum": ("Sum",),
    "exactrank.models.thresholds": ("Thresholds",),
    "exactrank.models.tree_ensemble": ("TreeEnsemble",),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in HOME.items() for name in names}
__all__ = list(_MODULE_OF)


class _Exactrank(ModuleType):
    """A module where a public function keeps its name when a package of the same name is imported, as `compare` and `fuse` are."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in _MODULE_OF):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Exactrank


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'exactrank' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
