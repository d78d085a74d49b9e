"""What experiments with rankers share: training, names of nets, and settings of which validation data chooses one, as in the papers."""

import warnings
from collections.abc import Iterable
from typing import Any, TypeVar

from sklearn.exceptions import ConvergenceWarning

from exactrank.data.folds import Fold
from exactrank.data.ranking_data import RankingData
from exactrank.rankers.base import Ranker
from exactrank.rankers.gradient import GradientRanker
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.reproduce.experiment import Tell
from exactrank.training.progress import Listener

R = TypeVar("R", bound=Ranker)


def as_published(kind: type[GradientRanker], **settings: Any) -> GradientRanker:
    """A ranker that is trained as both papers did: one update per query, no penalty on weights, random parameters to start from."""
    start: dict[str, Any] = {"start": "random"} if kind is LambdaRank else {}
    return kind(solver="sgd", l2=0.0, **start, **settings)


def fitted(ranker: R, train: RankingData, valid: RankingData | None = None, listener: Listener | None = None) -> R:
    """``ranker``, trained. Ctrl-C, which ends a training with the best model so far, ends the experiment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what a method comes to is what is looked for
        ranker.fit(train, valid=valid, listener=listener)
    if ranker.model_.training["interrupted"]:
        raise KeyboardInterrupt
    return ranker


def chosen(rankers: Iterable[Ranker], fold: Fold, tell: Tell) -> Ranker:
    """Train all ``rankers``, which share a measure, and keep the one that is best on the validation data."""
    trained: list[tuple[float, Ranker]] = []
    for ranker in rankers:
        tell(" ".join(repr(ranker).split()))
        trained.append((fitted(ranker, fold.train, fold.valid).score(fold.valid), ranker))
    return max(trained, key=lambda pair: pair[0])[1]


def net(hidden: int | None) -> str:
    """What nets with that number of hidden units are called.

    >>> net(None), net(10)
    ('linear nets', 'two-layer nets (10 hidden units)')
    """
    return "linear nets" if hidden is None else f"two-layer nets ({hidden} hidden units)"
