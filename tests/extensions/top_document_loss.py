"""A listwise loss of another package: the log of the probability that a best document is drawn first.

log sum_{i: y_i = max y} softmax(s)_i
"""

from dataclasses import dataclass

import numpy as np

from exactrank.extend import by_query


@dataclass(frozen=True)
class TopDocumentLoss:
    """The log probability that one of the best documents of a query comes first in a ranking drawn from the scores."""

    def on(self, data):
        def answer(query, s):
            y = data.y[data.indptr[query] : data.indptr[query + 1]]
            softmax = np.exp(s - s.max())
            softmax /= softmax.sum()
            best = np.where(y == y.max(), softmax, 0.0)
            mass = best.sum()
            return float(np.log(mass)), best / mass - softmax, softmax * (1 - softmax)

        return by_query(answer)
