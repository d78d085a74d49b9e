"""Click logs by their definitions: rows as plain tuples (query, document, rank, clicked, session, weight)."""

from collections import defaultdict
from math import log

Row = tuple[str, str, int, int, str, float]


def cells(rows: list[Row]) -> dict[tuple[str, str, int], tuple[float, float]]:
    sums: dict[tuple[str, str, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for query, document, rank, clicked, _, weight in rows:
        sums[query, document, rank][0] += weight
        sums[query, document, rank][1] += weight * clicked
    return {key: (n, c) for key, (n, c) in sums.items()}


def grades(rows: list[Row], theta: dict[int, float], clip: float = 0.0) -> dict[tuple[str, str], float]:
    """The mean over the impressions of a document of its clicks / propensity."""
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for query, document, rank, clicked, _, weight in rows:
        sums[query, document][0] += weight * clicked / max(theta[rank], clip)
        sums[query, document][1] += weight
    return {key: total / weight for key, (total, weight) in sums.items()}


def em_step(rows: list[Row], theta: dict[int, float], gamma: dict[tuple[str, str], float]):
    """One step of EM, impression by impression."""
    looked, relevant = defaultdict(list), defaultdict(list)
    for query, document, rank, clicked, _, weight in rows:
        t, g = theta[rank], gamma[query, document]
        looked[rank].append((weight, 1.0 if clicked else t * (1 - g) / (1 - t * g)))
        relevant[query, document].append((weight, 1.0 if clicked else g * (1 - t) / (1 - t * g)))

    def mean(pairs):
        return sum(w * p for w, p in pairs) / sum(w for w, _ in pairs)

    return {k: mean(pairs) for k, pairs in looked.items()}, {key: mean(pairs) for key, pairs in relevant.items()}


def log_likelihood(rows: list[Row], theta, gamma) -> float:
    chances = ((weight, clicked, theta[rank] * gamma[query, document]) for query, document, rank, clicked, _, weight in rows)
    return sum(weight * log(p if clicked else 1 - p) for weight, clicked, p in chances)


def meetings(rows: list[Row], j: int, k: int) -> float:
    """Mantel and Haenszel's sum of the clicks at rank j of documents that were also seen at rank k."""
    found, total = cells(rows), 0.0
    for (query, document, rank), (n, c) in found.items():
        if rank == j and (query, document, k) in found:
            other = found[query, document, k][0]
            total += c * other / (n + other)
    return total


def examined_by_cascade(rows: list[Row]) -> dict[int, float]:
    seen, looked = defaultdict(float), defaultdict(float)
    for query, _, rank, _, session, weight in rows:
        above = any(r[0] == query and r[4] == session and r[2] < rank and r[3] for r in rows)
        seen[rank] += weight
        looked[rank] += 0.0 if above else weight
    return {rank: looked[rank] / seen[rank] for rank in seen}


def examined_by_dbn(rows: list[Row]) -> dict[int, float]:
    pages = defaultdict(list)
    for row in sorted(rows, key=lambda row: row[2]):
        pages[row[4], row[0]].append(row)
    shown, ended = defaultdict(float), defaultdict(float)
    for page in pages.values():
        last = max((rank for _, _, rank, clicked, _, _ in page if clicked), default=None)
        for query, document, rank, _, _, weight in page:
            shown[query, document] += weight if last is None or rank <= last else 0.0
            ended[query, document] += weight if rank == last else 0.0
    seen, looked = defaultdict(float), defaultdict(float)
    for page in pages.values():
        chance = 1.0
        for query, document, rank, _, _, weight in page:
            seen[rank] += weight
            looked[rank] += weight * chance
            chance *= 1 - (ended[query, document] / shown[query, document] if shown[query, document] else 0.0)
    return {rank: looked[rank] / seen[rank] for rank in seen}
