"""Listwise and smooth losses by their formulas, one query at a time; each is negated, so that large is good."""

import itertools
import math

import numpy as np

from exactrank.learning.objectives.losses import ApproxNDCGLoss, ListMLELoss, ListNetLoss, RankCosineLoss, SmoothMeasure
from tests.reference.measures import gain, is_empty


def log_softmax(s):
    below = s - s.max()
    return below - np.logaddexp.reduce(below)


def listnet(objective, y, s):
    if objective.target == "softmax":
        return np.exp(log_softmax(y)) @ log_softmax(s)
    u = 2 ** np.maximum(y, 0) - 1
    return u / u.sum() @ log_softmax(s) if u.any() else 0.0


def listmle(objective, ideal):
    """``ideal`` are scores in the order of an ideal ranking."""
    top = len(ideal) if objective.k is None else min(objective.k, len(ideal))
    return sum(log_softmax(ideal[j:])[0] for j in range(top))


def ideal_orders(y):
    """Every order of the documents by grade, best first."""
    grades = [np.flatnonzero(y == grade) for grade in sorted(set(y), reverse=True)]
    return [list(itertools.chain(*order)) for order in itertools.product(*(itertools.permutations(group) for group in grades))]


def ideal_dcg(gains):
    return max(sum(g / math.log2(1 + r) for r, g in enumerate(order, 1)) for order in itertools.permutations(gains))


def rank_cosine(objective, y, s):
    target = (2 ** np.maximum(y, 0) - 1) if objective.consistent else y
    if len(set(target)) == 1:
        return 0.0
    centered, scores = target - target.mean(), s - s.mean()
    length = ideal_dcg(target) if objective.consistent else np.linalg.norm(centered)
    cosine = centered @ scores / (length * np.linalg.norm(scores)) if np.ptp(s) > 0 else 0.0
    return (cosine - 1) / 2


def smooth_measure(objective, y, s):
    measure, u = objective.measure, objective.measure.usefulness(y)
    if len(y) == 1 or is_empty(measure, y) or (measure.short_is_zero and len(y) < measure.cutoff):
        return 0.0
    discounts = measure.discounts(len(y)) * (np.arange(len(y)) < measure.cutoff)
    norm = {"one": 1.0, "length": min(measure.cutoff, len(y)), "total": u.sum(), "ideal": np.sort(u)[::-1] @ discounts}[measure.normalizer]
    with np.errstate(over="ignore"):
        weight = np.exp(-((s[:, None] - np.sort(s)[None, ::-1]) ** 2) / objective.sigma)
    return u @ (weight / weight.sum(axis=0)) @ discounts / norm


def approx_ndcg(objective, y, s):
    gains = np.array([gain(objective.measure, grade) for grade in y])
    if len(y) == 1 or not gains.any():
        return 0.0
    gap = np.clip(objective.alpha * (s[:, None] - s[None, :]), -700, 700)
    ranks = 0.5 + np.sum(1 / (1 + np.exp(gap)), axis=1)  # a document is above itself by a half
    ideal = np.sort(gains)[::-1] @ (1 / np.log2(2 + np.arange(len(y))))
    return np.sum(gains / np.log2(1 + ranks)) / ideal


DEFINITION = {ListNetLoss: listnet, RankCosineLoss: rank_cosine, SmoothMeasure: smooth_measure, ApproxNDCGLoss: approx_ndcg}


def possible_values(objective, y, s):
    """What one query may be worth: several values where documents of one grade have no order of their own."""
    if not isinstance(objective, ListMLELoss):
        return [DEFINITION[type(objective)](objective, y, s)]
    if len(set(y)) == 1:
        return [0.0]
    return [listmle(objective, s[order]) for order in ideal_orders(y)]
