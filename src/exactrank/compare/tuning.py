"""Settings to try: the defaults first, then draws from the space of the method, each determined by the seed and its number alone.

So trials may run side by side in any order, and more of them later: trial n is the same (random search, Bergstra & Bengio 2012). The
draws are those of scikit-learn's ``ParameterSampler``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterSampler

from exactrank.compare.results import Trial
from exactrank.rankers.search_space import Space


def settings_of_trial(space: Space, seed: int, number: int) -> dict[str, Any]:
    """What trial ``number`` sets; the first one leaves everything as it is.

    >>> settings_of_trial({"leaves": [7, 15, 31]}, seed=0, number=0), settings_of_trial({"leaves": [7, 15, 31]}, seed=0, number=1)
    ({}, {'leaves': 7})
    """
    if number == 0 or not space:
        return {}
    state = np.random.RandomState(np.random.SeedSequence([seed, number]).generate_state(4))
    drawn = next(iter(ParameterSampler(dict(space), 1, random_state=state)))
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in drawn.items()}


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """The one that did best on validation data, the first of equals; None where all failed."""
    valued = [trial for trial in trials if trial.valid is not None and not trial.failed]
    return max(valued, key=lambda trial: trial.valid or 0.0, default=None)
