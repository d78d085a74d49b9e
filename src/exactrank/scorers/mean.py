"""The mean of several scorers, as one: linear models are one linear model, forests one forest, and others a sum."""

from collections.abc import Sequence

import numpy as np

from exactrank.scorers.base import Scorer
from exactrank.scorers.sum import Sum

#: What scorers of one kind have in common where their mean is of the same kind.
_COMMON = ("n_features", "feature_names", "missing", "fill", "offset", "mean", "scale")


def mean_of(scorers: Sequence[Scorer]) -> Scorer:
    """The scorer whose scores are the mean of those of ``scorers``, which read the same features.

    >>> from exactrank import Linear
    >>> mean_of([Linear(np.array([1.0, 2.0])), Linear(np.array([3.0, 0.0]))]).weights
    array([2., 1.])
    """
    first = scorers[0]
    if len(scorers) == 1:
        return first
    if not isinstance(first, Sum) and all(_are_alike(first, other) for other in scorers[1:]):
        found: Scorer = type(first).averaged(scorers)  # type: ignore[attr-defined]
        return found
    terms = [(weight / len(scorers), part) for scorer in scorers for weight, part in _terms(scorer)]
    return Sum(tuple(part for _, part in terms), np.array([weight for weight, _ in terms]))


def _are_alike(one: Scorer, other: Scorer) -> bool:
    if type(one) is not type(other):
        return False
    ours, theirs = ([np.asarray(getattr(each, name, None)) for name in _COMMON] for each in (one, other))
    return all(map(np.array_equal, ours, theirs))


def _terms(scorer: Scorer) -> list[tuple[float, Scorer]]:
    """What ``scorer`` is a sum of, where it leaves missing values to its parts; else itself."""
    if isinstance(scorer, Sum) and scorer.missing == "keep":
        return list(zip(scorer.weights.tolist(), scorer.parts, strict=True))
    return [(1.0, scorer)]
