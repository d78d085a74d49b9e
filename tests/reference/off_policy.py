"""Off-policy estimates by their definitions, impression by impression, and interleaving's credit, page by page."""

from collections import defaultdict
from math import log2

from tests.reference.clicks import Row

Document = tuple[str, str]


def estimate(
    rows: list[Row],
    scores: dict[Document, float],
    theta: dict[int, float],
    estimator: str,
    clip: float,
    model: dict[Document, float],
    k: int,
) -> float:
    """DCG@k with linear gain over the queries of the log; equal scores rank in the order of ``scores``."""
    top = bottom = 0.0
    for query in {row[0] for row in rows}:
        ranked = sorted((key for key in scores if key[0] == query), key=lambda key: -scores[key])
        weight = sum(row[5] for row in rows if row[0] == query)
        grades = [_grade([row for row in rows if row[:2] == key], theta, estimator, clip, model[key]) for key in ranked]
        top += weight * sum(grade / log2(1 + rank) for rank, grade in enumerate(grades[:k], 1))
        bottom += weight * (sum(grades) if estimator == "snips" else 1.0)
    return top / bottom


def _grade(shown: list[Row], theta: dict[int, float], estimator: str, clip: float, model: float) -> float:
    robust = estimator == "doubly-robust"
    if not shown:
        return model if robust else 0.0
    expected = {row: theta[row[2]] * model if robust else 0.0 for row in shown}
    residuals = sum(row[5] * (row[3] - expected[row]) / max(theta[row[2]], clip) for row in shown)
    return residuals / sum(row[5] for row in shown) + (model if robust else 0.0)


def wins(rows: list[Row], team: dict[tuple[str, str, str], str]) -> tuple[int, int, int]:
    """Pages that a wins, that b wins, and ties."""
    lead = defaultdict(float)
    for query, document, _, clicked, session, weight in rows:
        lead[session, query] += clicked * weight * (1 if team[session, query, document] == "a" else -1)
    return sum(x > 0 for x in lead.values()), sum(x < 0 for x in lead.values()), sum(x == 0 for x in lead.values())
