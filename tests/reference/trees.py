"""LightGBM's trees, walked one row and one node at a time."""

import math

import lightgbm as lgb

from exactrank.models.lightgbm_text import write_lightgbm

ZERO = 1.0000000180025095e-35  #: 1e-35 as a float: what is no larger counts as zero


def tree_scores(text, X):
    """The raw score of each row by the model ``text``."""
    trees = [_fields(block) for block in text.partition("\nend of trees\n")[0].split("\nTree=")[1:]]
    scores = [0.0 for _ in X]
    for tree in trees:  # not by sum(), which keeps what is rounded off from Python 3.12
        scores = [score + _value(tree, [float(x) for x in row]) for score, row in zip(scores, X, strict=True)]
    return scores


def _fields(block):
    return {name: value.split(" ") for name, _, value in (line.partition("=") for line in block.split("\n"))}


def _value(tree, row):
    node = 0 if int(tree["num_leaves"][0]) > 1 else -1
    while node >= 0:
        node = int(tree["left_child" if _goes_left(tree, node, row) else "right_child"][node])
    return float(tree["leaf_value"][-node - 1])


def _goes_left(tree, node, row):
    x, decision, threshold = row[int(tree["split_feature"][node])], int(tree["decision_type"][node]), float(tree["threshold"][node])
    if abs(x) <= ZERO:
        x = 0.0
    if decision & 1:
        return _in_set(tree, int(threshold), x)
    if math.isnan(x) and not decision & 8:
        x = 0.0
    if (decision & 4 and x == 0) or math.isnan(x):
        return bool(decision & 2)
    return x <= threshold


def _in_set(tree, number, x):
    begin, end = (int(bound) for bound in tree["cat_boundaries"][number : number + 2])
    words = [int(word) for word in tree["cat_threshold"][begin:end]]
    return math.isfinite(x) and 0 <= int(x) < 32 * len(words) and bool(words[int(x) // 32] >> int(x) % 32 & 1)


def booster_of(scorer):
    """The trees of a scorer as LightGBM reads them."""
    return lgb.Booster(model_str=write_lightgbm(scorer.table, scorer.feature_names, scorer.levels))
