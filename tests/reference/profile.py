"""The measure along a ray, by evaluating it at every crossing of two documents and half way between the crossings."""

import numpy as np

from exactrank import evaluate
from exactrank.learning.objectives.step_function import StepFunction


def crossings(s, t):
    """Where lines s_i + alpha t_i meet, to 13 significant decimals."""
    found = set()
    for i in range(len(s)):
        for j in range(i):
            if t[i] != t[j] and np.isfinite(s[i]) and np.isfinite(s[j]):
                found.add(float(f"{(s[j] - s[i]) / (t[i] - t[j]):.13g}") + 0.0)
    return found


def profile(measure, data, scores, direction):
    s, t = data.group(np.asarray(scores, float)), data.group(np.asarray(direction, float))
    points = {0.0}
    for begin, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        points |= crossings(s[begin:end], t[begin:end])
    points = np.array(sorted(points))
    inside = np.concatenate([points[:1] - 1, (points[:-1] + points[1:]) / 2, points[-1:] + 1])

    def value(alpha):
        return evaluate(data, scores + alpha * direction, [measure]).means[str(measure)]

    return StepFunction(points, np.array([value(a) for a in inside]), np.array([value(a) for a in points]))
