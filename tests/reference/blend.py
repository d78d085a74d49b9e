"""The measure of weighted sums of two score vectors at every ratio of their weights, in exact arithmetic."""

from fractions import Fraction
from itertools import pairwise

import numpy as np


def crossings(first, second, indptr):
    """The weights of the second vector, between 0 and 1, at which two documents of a query have equal sums, and 0 and 1."""
    points = {Fraction(0), Fraction(1)}
    for begin, end in pairwise(indptr):
        for i in range(begin, end):
            for j in range(begin, i):
                ahead, behind = first[i] - first[j], second[j] - second[i]
                if ahead + behind != 0 and 0 <= ahead / (ahead + behind) <= 1:
                    points.add(ahead / (ahead + behind))
    return sorted(points)


def values_of_weights(bound, scores):
    """Two lists of pairs of a weight of the second vector and the measure: at crossings, and half way between neighbors."""
    first, second = ([Fraction(float(score)) for score in row] for row in scores)
    points = crossings(first, second, bound.data.indptr)

    def value(weight):
        sums = [(1 - weight) * a + weight * b for a, b in zip(first, second, strict=True)]
        places = {total: place for place, total in enumerate(sorted(set(sums)))}
        return weight, bound.mean(np.array([float(places[total]) for total in sums]))

    return [value(point) for point in points], [value((low + high) / 2) for low, high in pairwise(points)]
