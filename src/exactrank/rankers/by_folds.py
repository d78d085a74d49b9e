"""Choosing among candidates by cross validation over queries: each fold of queries judges models of all others."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from exactrank.data.folds import deal_folds
from exactrank.data.ranking_data import RankingData
from exactrank.measures.bound import means_over_queries
from exactrank.objectives.measured import Measured
from exactrank.optimizers.base import Theta
from exactrank.training import Listener, Progress, Trained

Solutions = Callable[[RankingData], Iterator[Theta]]


def by_folds(solutions: Solutions, candidates: int, measured: Measured, folds: int, seed: int, listener: Listener | None) -> int | Trained:
    """The number of the one of ``candidates`` that is best on queries it has not seen.

    ``solutions`` gives the candidates' parameters in turn, on data of which some queries weigh nothing. ``listener`` hears of each
    as a step, with the measure of all queries, seen or not. Ctrl-C gives the model that did best so far. Where no query can judge, as
    when a single one has weight, it is the first.
    """
    data, history = measured.bound.data, list[Progress]()
    weight = data.weights
    fold = deal_folds(data.n_queries, min(folds, data.n_queries), seed)
    held_out = np.full((candidates, data.n_queries), np.nan)
    try:
        for part in range(fold.max() + 1):
            seen = np.where(fold == part, 0.0, weight)
            if not np.any(seen > 0):
                continue
            for number, theta in enumerate(solutions(replace(data, query_weight=seen))):
                values = measured.by_query(theta)
                held_out[number, fold == part] = values[fold == part]
                value = float(means_over_queries(values, weight))
                best = theta if not history or value > max(before.value for before in history) else history[-1].theta
                history.append(Progress(len(history) + 1, candidates * int(fold.max() + 1), value, None, best))
                if listener is not None:
                    listener(history[-1])
    except KeyboardInterrupt:
        if not history:
            raise
        return Trained(history[-1].theta, max(progress.value for progress in history), None, tuple(history), interrupted=True)
    means = means_over_queries(held_out, weight)
    return 0 if np.isnan(means).all() else int(np.nanargmax(means))
