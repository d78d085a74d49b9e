"""The structured loss with a kernel, in the dual, over all rankings of every query: scores f(x) = sum_i beta_i k(x_i, x).

primal   l2/2 beta' K beta + 1/Q sum_q max_y (delta(y) + (c(y) - t) . f(x_q))                              (1)
dual     1/Q sum_q sum_y alpha_qy delta(y) - l2/2 beta' K beta,
         beta = 1/(l2 Q) sum_q sum_y alpha_qy (t - c(y)),    alpha_q at least 0 with sum 1                  (2)
"""

import numpy as np

from tests.reference.structured import Rankings


def kernel(name, gamma, x, z):
    """The kernel of two documents."""
    return x @ z if name == "linear" else np.exp(-gamma * np.sum((x - z) ** 2))


def solve(structured, K, y, size, l2, gap, sweeps=20_000):
    """Beta, the primal and the dual: weight moves within a query from the lowest ranking that has some to the highest, as far as it gains.

    Queries have ``size`` documents each, of different grades.
    """
    Q = len(y) // size
    queries = []
    for q in range(Q):
        rows = slice(q * size, (q + 1) * size)
        rankings = Rankings(structured, y[rows])
        (target,) = rankings.perfect
        unique = np.unique(np.column_stack([rankings.delta, rankings.c - target]), axis=0)
        alpha = np.zeros(len(unique))
        alpha[np.argmin(unique[:, 0])] = 1.0  # the perfect ranking
        queries.append((rows, unique[:, 0], unique[:, 1:], alpha))
    beta = np.zeros(len(y))
    for _ in range(sweeps):
        for rows, delta, c, alpha in queries:
            height = delta + c @ (K[rows] @ beta)
            high, low = np.argmax(height), np.argmin(np.where(alpha > 0, height, np.inf))
            move = c[high] - c[low]
            width = move @ K[rows, rows] @ move
            step = alpha[low] if width <= 0 else min(alpha[low], l2 * Q * (height[high] - height[low]) / width)
            alpha[high] += step
            alpha[low] -= step
            beta[rows] -= step * move / (l2 * Q)
        f, norm = K @ beta, beta @ K @ beta
        primal = l2 / 2 * norm + np.mean([np.max(delta + c @ f[rows]) for rows, delta, c, _ in queries])
        dual = np.mean([alpha @ delta for _, delta, _, alpha in queries]) - l2 / 2 * norm
        if primal - dual <= gap * primal:
            return beta, primal, dual
    raise AssertionError(f"the gap is still {primal - dual:g}")
