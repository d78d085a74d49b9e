"""Bounds over unknown grades by trying every grade: `values` are all that a ranking can have, `differences` those of two."""

import itertools

import numpy as np

from tests.reference.measures import value


def completions(grades, choices):
    """All lists of grades where each one below 0 is replaced by one of the choices."""
    for filled in itertools.product(*(choices if y < 0 else [y] for y in grades)):
        yield list(filled)


def ranking(scores):
    """Places of the retrieved documents in ranked order, and of the others."""
    order = sorted((i for i in range(len(scores)) if scores[i] > -np.inf), key=lambda i: (-scores[i], i))
    return order, [i for i in range(len(scores)) if scores[i] == -np.inf]


def measured(measure, grades, scores):
    ranked, rest = ranking(scores)
    return value(measure, [grades[i] for i in ranked], [grades[i] for i in rest])


def values(measure, grades, scores, choices):
    return [measured(measure, filled, scores) for filled in completions(grades, choices)]


def differences(measure, grades, first, second, choices):
    return [measured(measure, filled, first) - measured(measure, filled, second) for filled in completions(grades, choices)]
