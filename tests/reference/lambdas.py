"""Forces between pairs and networks, one pair, one document and one unit at a time."""

import numpy as np


def link(name, lead, margin):
    """(force, how fast it falls as the lead grows, cost)."""
    if name == "logistic":
        force = 1 / (1 + np.exp(np.clip(lead, -700, 700)))
        return force, force * (1 - force), np.logaddexp(0, -lead)
    if name == "step":
        return float(lead < margin), 0.0, max(0.0, margin - lead)
    return max(0.0, margin - lead), float(lead < margin), max(0.0, margin - lead) ** 2 / 2


def pulls(y, s, deltas, name="logistic", margin=1.0, neighbors=None, truncation=None, near=None, ranked_by=None):
    """(the better document, the worse, force, curvature, cost) of each pair of one query; ``deltas(ranked grades)`` are the changes by
    exchanges of ranks.

    The ranking is that of the scores, or of others in their place.
    """
    n = len(y)
    order = np.lexsort((np.arange(n), y, -(s if ranked_by is None else ranked_by)))
    change = deltas(y[order])
    for i in range(n if truncation is None else min(n, truncation)):
        for j in range(i + 1, n if neighbors is None else min(n, i + 1 + neighbors)):
            if change[i, j] == 0:
                continue
            better, worse = (order[i], order[j]) if change[i, j] < 0 else (order[j], order[i])
            f, bend, c = link(name, s[better] - s[worse], margin)
            weight = abs(change[i, j]) / (1 if near is None else near + abs(s[better] - s[worse]))
            yield better, worse, weight * f, weight * bend, weight * c


def lambdas(y, *rule, **limits):
    """Forces, their curvature and the cost of one query, by `pulls`."""
    force, curvature, cost = np.zeros(len(y)), np.zeros(len(y)), 0.0
    for better, worse, f, bend, c in pulls(y, *rule, **limits):
        force[better] += f
        force[worse] -= f
        curvature[[better, worse]] += bend
        cost += c
    return force, curvature, cost


def normalizer(sizes):
    """What LightGBM multiplies the forces of a query by; ``sizes`` are those of its pairs, each of which pushes two documents."""
    total = sum(2 * size for size in sizes)
    return np.log2(1 + total) / total if total > 0 else 1.0


def unit_deltas(y):
    return np.sign(y[None, :] - y[:, None])


def finite_difference(y, s, value, step):
    """``value(scores)`` with one score moved up and down."""
    slope = np.array([(value(s + step * e) - value(s - step * e)) / (2 * step) for e in np.eye(len(s))])
    return slope - slope.mean()


def network(theta, X, mean, scale, hidden):
    d = X.shape[1]
    W, b, v = theta[: d * hidden].reshape(d, hidden), theta[d * hidden : (d + 1) * hidden], theta[(d + 1) * hidden :]
    return np.array([sum(v[u] * np.tanh(b[u] + (x - mean) / scale @ W[:, u]) for u in range(hidden)) for x in X.astype(float)])
