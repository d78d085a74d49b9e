"""The always-valid interval of a mean by its definition, in plain Python: every mean of a grid, every look."""

import math


def interval(values: list[float], risk: float, points: int) -> tuple[float, float]:
    """Return the smallest and the largest mean of the grid in [0, 1] that no bet has refuted at any time; values are in [0, 1]."""
    means = []
    for m in range(points + 1):
        above, below = capital(values, m / points, risk), capital(flip(values), 1 - m / points, risk)
        if max(above, below) < 2 / risk:
            means.append(m / points)
    return min(means), max(means)


def flip(values: list[float]) -> list[float]:
    return [1 - x for x in values]


def capital(values: list[float], m: float, risk: float) -> float:
    """Return the largest capital that bets on a mean above ``m`` ever reached."""
    money = largest = 1.0
    for t, x in enumerate(values, 1):
        bet = math.sqrt(2 * math.log(2 / risk) / (variance(values[: t - 1]) * t * math.log(t + 1)))
        money *= 1 + min(bet, 0.5 / m if m else math.inf) * (x - m)
        largest = max(largest, money)
    return largest


def variance(values: list[float]) -> float:
    means = [(0.5 + sum(values[: i + 1])) / (i + 2) for i in range(len(values))]
    return (0.25 + sum((x - u) ** 2 for x, u in zip(values, means, strict=True))) / (len(values) + 1)
