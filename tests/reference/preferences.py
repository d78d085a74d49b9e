"""Objectives and the measure over pairs that are given beside grades, one pair after the other."""

import math


def all_pairs(y, given):
    """(better, worse, weight) of one query: those of different grades with weight 1, and those that are given."""
    return [(i, j, 1.0) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]] + list(given)


def pulls(link, margin, lead):
    """Cost, force and curvature of a pair whose better document leads by so much."""
    if link == "logistic":
        share = 1 / (1 + math.exp(lead))
        return math.log(1 + math.exp(-lead)), share, share * (1 - share)
    short = max(0.0, margin - lead)
    return (short, float(lead < margin), 0.0) if link == "step" else (short**2 / 2, short, float(lead < margin))


def pair_cost(pairs, s, link="logistic", margin=1.0, near=0.0):
    """The value (the negated cost), the slope and the curvature of weighted pairs."""
    value, slope, curvature = 0.0, [0.0] * len(s), [0.0] * len(s)
    for better, worse, given in pairs:
        lead = s[better] - s[worse]
        weight = given / (near + abs(lead)) if near else given
        cost, force, bend = pulls(link, margin, lead)
        value -= weight * cost
        slope[better] += weight * force
        slope[worse] -= weight * force
        curvature[better] += weight * bend
        curvature[worse] += weight * bend
    return value, slope, curvature


def share_in_order(pairs, s):
    """The weighted share of pairs in the right order, tied pairs half; None where there are none."""
    total = sum(weight for *_, weight in pairs)
    right = sum(weight * (s[b] > s[w]) + weight / 2 * (s[b] == s[w]) for b, w, weight in pairs)
    return right / total if total else None
