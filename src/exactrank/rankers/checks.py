"""Checks before training: settings without effect, and data that a ranker would misunderstand or ignore."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from exactrank.data.alignment import name_list
from exactrank.data.dataset import Dataset
from exactrank.errors import IncompatibleError, SettingError
from exactrank.measures.goal import Goal, parse_goal
from exactrank.models.base import Scorer

if TYPE_CHECKING:
    from exactrank.rankers.base import Ranker

#: Rankers that train on data in several files, for the errors of the others.
SHARDED = "LambdaMART, MART, DirectRankTrees, or any ranker of a linear model or a network"
#: Rankers that use the kernels of a backend.
WITH_KERNELS = "DirectRank, LambdaMART, MART or DirectRankTrees"


@dataclass(frozen=True)
class Takes:
    """The input that a ranker can learn from; by default only numbers and grades in one file."""

    document_weights: bool = False  #: weights of single documents (``sample_weight``)
    constraints: bool = False  #: constraints on other measures
    categories: bool = False  #: features that are categories
    pairs: bool | Literal["by measure"] = False  #: pairs of documents beside the grades; "by measure": if the measure counts them
    start: tuple[type[Scorer], ...] = ()  #: the kinds of scorer for ``fit(start=...)``
    shards: bool = False  #: data in several files
    sharded_document_weights: bool = False  #: weights of single documents in such data
    sharded_validation: bool = True  #: validation data in several files; otherwise it is read as one
    kernels: bool = False  #: a backend with its own kernels, such as those of a GPU


def checked_goal(ranker: "Ranker") -> Goal:
    """Return the goal of ``ranker``; constraints that it cannot keep are an error."""
    goal = parse_goal(ranker.measure)
    if goal.constraints and not ranker.takes.constraints:
        raise IncompatibleError(
            f"{type(ranker).__name__} cannot keep {' and '.join(map(str, goal.constraints))}: it follows a stand-in for the"
            " measure, not the measure itself; use DirectRank, or tune the weights of several systems with er.fuse"
        )
    return goal


def check_settings(ranker: "Ranker", data: Dataset, validated: bool) -> None:
    """Raise if a setting has no effect on ``data``, or contradicts another."""
    name = type(ranker).__name__
    for trouble in ranker.ineffective_settings(data, validated).values():
        raise SettingError(f"{name}: {trouble}")
    if ranker.bags == 1 and ranker.bagging == "cross-fit":
        raise SettingError(f"{name}: bags=1 leaves no queries to train on; give bags=0 for one model, or at least 2")


def check_takes(ranker: "Ranker", data: Dataset) -> None:
    """Raise if ``ranker`` would ignore some content of ``data``."""
    name, takes = type(ranker).__name__, ranker.takes
    if ranker.backend is not None and ranker.backend.kernels and not takes.kernels:
        raise IncompatibleError(f"{name} computes nothing by {ranker.backend!r}; leave out backend, or use {WITH_KERNELS}")
    if data.weighs_documents and not takes.document_weights:
        raise SettingError(
            f"{name} cannot weigh single documents; leave out sample_weight, give a query_weight, or use Ridge, MART,"
            " LambdaMART or DirectRankTrees"
        )
    if data.preferences is not None and not ranker.learns_pairs:
        how = f"{name} with these settings" if takes.pairs else name
        counted = "train on PairwiseCorrect, " if takes.pairs == "by measure" else ""
        raise IncompatibleError(
            f"{how} learns from grades alone, and the data has {len(data.preferences):,} pairs; {counted}make grades of them with"
            " er.pairs.bradley_terry (exactrank pairs --bradley-terry), or use RankNet, LambdaRank, LambdaMART, RankSVM or RankBoost"
        )
    if data.levels and not takes.categories:
        raise IncompatibleError(
            f"{name} takes numbers alone, and there are categories in {name_list(list(map(repr, data.levels)))}; encode them as numbers,"
            " leave them out, or use a tree ranker: LambdaMART, MART or DirectRankTrees"
        )
    if data.levels and ranker.missing in ("zero", "mean"):
        raise SettingError(
            f"{name}: missing={ranker.missing!r} would put a level in the place of a missing one, and"
            f" there are categories in {name_list(list(map(repr, data.levels)))}; leave missing at its default"
        )


def check_takes_shards(ranker: "Ranker") -> None:
    """Raise if ``ranker`` does not train on data in several files."""
    if not ranker.takes.shards:
        raise IncompatibleError(f"{type(ranker).__name__} needs its data in one file; er.read one, or use {SHARDED}")


def check_shards(ranker: "Ranker", data: Dataset, validated: bool) -> None:
    """Raise if a setting is incompatible with data in several files."""
    name = type(ranker).__name__
    if data.weighs_documents and not ranker.takes.sharded_document_weights:
        raise IncompatibleError(
            f"{name} cannot weigh single documents of data in several files; leave out sample_weight, give a query_weight, or use Ridge"
        )
    if validated and ranker.cross_fits(data):
        raise SettingError(f"{name}: cross-fitted models of data in several files learn from it alone; leave out valid, or bags")


def check_start(ranker: "Ranker", scorer: Scorer) -> None:
    """Raise if training cannot continue from ``scorer``."""
    name, kinds = type(ranker).__name__, " or ".join(kind.kind for kind in ranker.takes.start)
    if not kinds:
        raise IncompatibleError(f"{name} begins anew on any data, so it takes no start; leave it out")
    if not isinstance(scorer, ranker.takes.start):
        raise IncompatibleError(f"{name} goes on from a {kinds} model, and the start is a {scorer.kind} model; train it anew")
    if ranker.bags:
        raise SettingError(f"{name}: start is one model, and {ranker.bags} bags are to be trained; give bags=0")
    setting = ranker.settings.get("start")
    if setting is not None and not setting.is_default(vars(ranker)["start"]):
        raise SettingError(f"{name}: start={vars(ranker)['start']!r} is set, and fit got a model to start from; leave out one of them")
    if scorer.missing != ranker.missing:
        raise SettingError(f"{name}: missing={ranker.missing!r}, but the model to start from has {scorer.missing!r}; give the same")
