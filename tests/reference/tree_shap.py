"""Shapley values of trees by their definition: over all subsets of the features, walked one row and one node at a time."""

from itertools import combinations
from math import factorial, isnan

ZERO = 1.0000000180025095e-35  #: 1e-35 as a float: what is no larger counts as zero


def tree_contributions(table, X):
    """What each feature adds to each row's score, and at last what all rows have in common."""
    rows = []
    for x in X:
        trees = [_tree_values(table, t, [float(value) for value in x]) for t in range(table.n_trees)]
        rows.append([sum(values) for values in zip(*trees, strict=True)] if trees else [0.0] * (table.n_features + 1))
    return rows


def _tree_values(table, t, x):
    features = sorted(set(table.feature[table.start[t] : table.start[t + 1]].tolist()))
    values, d = [0.0] * (table.n_features + 1), len(features)
    expected = {known: _expected(table, t, x, known) for size in range(d + 1) for known in combinations(features, size)}
    for j in features:
        for known in (known for known in expected if j not in known):
            weight = factorial(len(known)) * factorial(d - 1 - len(known)) / factorial(d)
            values[j] += weight * (expected[tuple(sorted((*known, j)))] - expected[known])
    values[-1] = expected[()]
    return values


def _expected(table, t, x, known, node=None):
    """The mean of the leaves, by documents, among those that ``x`` reaches as far as features are ``known``."""
    begin = table.start[t]
    node = node if node is not None else 0 if table.start[t + 1] > begin else -1
    if node < 0:
        return table.leaf_value[begin + t - 1 - node]
    left, right = int(table.left[begin + node]), int(table.right[begin + node])
    if int(table.feature[begin + node]) in known:
        return _expected(table, t, x, known, left if goes_left(table, begin + node, x) else right)
    covers = [_cover(table, t, child) for child in (left, right)]
    share = covers[0] / sum(covers) if sum(covers) else 0.5
    return share * _expected(table, t, x, known, left) + (1 - share) * _expected(table, t, x, known, right)


def _cover(table, t, node):
    begin = table.start[t]
    if node < 0:
        return table.cover[begin + t - 1 - node]
    return sum(_cover(table, t, int(side[begin + node])) for side in (table.left, table.right))


def goes_left(table, split, x):
    """Does a row go left at a split?"""
    value, decision, threshold = x[int(table.feature[split])], int(table.decision[split]), float(table.threshold[split])
    if decision & 1:
        words = table.sets[table.set_start[int(threshold)] : table.set_start[int(threshold) + 1]].tolist()
        return -1 < value < 32 * len(words) and bool(words[int(value) // 32] >> int(value) % 32 & 1)
    value = 0.0 if abs(value) <= ZERO or (isnan(value) and not decision & 8) else value
    if (decision & 4 and value == 0) or isnan(value):
        return bool(decision & 2)
    return value <= threshold
