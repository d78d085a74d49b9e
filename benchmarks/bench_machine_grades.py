"""Claim: 95% intervals of means and of differences that a machine's grades correct cover 93% to 97% at 30, 60 and 200 human queries,
and exact searches with weights of both signs take at most 1.5 times as long as with weights above 0, of the same queries.

Coverage is that of 4,000 simulations each, with 1,000 further queries and a machine that overrates. The truth is the mean of a million
queries. Signed weights are those of a corrected mean: a quarter of the queries by people, their twins, and half of them further ones.
"""

import sys

import numpy as np
from timing import interleaved, pin, table

import exactrank as er
from exactrank.learning.objectives.line_search import LineSearch
from exactrank.measures.corrected_queries import CorrectedQueries
from exactrank.statistics import corrected_mean

SIMULATIONS, FURTHER = 4000, 1000
SHAPES = {"short lists": (8_000, 20), "long lists": (2_000, 120)}  #: queries and documents


def draw_values(rng: np.random.Generator, queries: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of two rankings by people and by a machine, 2 x queries each."""
    common = np.where(rng.random(queries) < 0.1, 0.0, rng.beta(2.5, 1.5, queries))
    human = np.clip(common + 0.15 * rng.standard_normal((2, queries)) + np.array([[0.04], [0.0]]), 0, 1)
    return human, np.clip(0.6 * human + 0.3 + 0.08 * rng.standard_normal((2, queries)), 0, 1)


def coverage(queries: int) -> list[list[str]]:
    """Return the rows of a mean and of a paired difference."""
    rng = np.random.default_rng(queries)
    first, second = draw_values(rng, 1_000_000)[0].mean(axis=1)
    rows = []
    for name, truth, value in (("mean", first, lambda v: v[0]), ("difference", first - second, lambda v: v[0] - v[1])):
        means = []
        for _ in range(SIMULATIONS):
            human, machine = draw_values(rng, queries)
            means.append(corrected_mean(value(human), value(machine), value(draw_values(rng, FURTHER)[1])))
        covers = [[low <= truth <= high for low, high in (mean.interval for mean in kind)] for kind in (means, [m.human for m in means])]
        error = np.mean([mean.standard_error / mean.human.standard_error for mean in means])
        rows.append([f"{name}, {queries} queries", *(f"{100 * np.mean(c):.1f}%" for c in covers), f"{error:.2f}"])
    return rows


def judged(queries: int, documents: int) -> tuple[er.RankingData, er.RankingData]:
    """Return a quarter of the queries by people, and these and two more quarters by a machine, of two systems."""
    rng, number = np.random.default_rng(0), 3 * queries // 4
    y = np.clip(np.round(rng.gamma(0.5, 1.0, number * documents)), 0, 4)
    X = y[:, None] + rng.normal(0, (2.0, 2.5), (len(y), 2))
    group = [documents] * number
    machine = er.RankingData.from_arrays(X, np.clip(y + (rng.random(len(y)) < 0.3), 0, 4), group=group, feature_names=["bm25", "dense"])
    people = er.RankingData.from_arrays(X, y, group=group, feature_names=["bm25", "dense"]).take_queries(np.arange(queries // 4))
    return people, machine


def signed(name: str) -> tuple[list[list[str]], dict[str, float]]:
    """Return the times of searches with weights of both signs and with their sizes, and of tuning with and without a correction."""
    people, machine = judged(*SHAPES[name])
    queries = CorrectedQueries.of(people, machine)
    bound = er.parse_measure("nDCG@10").on(queries.data, threads=1)
    weights = queries.weights(0.7, queries.data.weights, np.zeros(queries.data.n_queries, np.bool_))
    scores, slopes = (np.ascontiguousarray(column, np.float64) for column in queries.data.X.T)
    searches = {
        kind: LineSearch(er.parse_measure("nDCG@10").on(queries.data, w, 1))
        for kind, w in (("both", weights), ("above 0", np.abs(weights)))
    }
    for search in searches.values():
        search.start(scores)
    steps = interleaved({kind: lambda s=search: s.best(slopes) for kind, search in searches.items()}, 15)
    tuned = interleaved(
        {
            "both": lambda: er.fuse(people, machine=machine, threads=1),
            "above 0": lambda: er.fuse(queries.data, threads=1),
        },
        3,
    )
    rows, costs = [], {}
    for work, times in (("best step", steps), ("fuse, 5 folds, 200 bootstraps", tuned)):
        ratio = times["both"] / times["above 0"]
        label = f"{work}, {name}"
        rows.append([label, f"{bound.data.n_queries:,}", f"{1e3 * times['both']:.1f}", f"{1e3 * times['above 0']:.1f}", f"{ratio:.2f}"])
        costs[label] = ratio
    return rows, costs


def main() -> None:
    pin(1)
    rows = [row for queries in (30, 60, 200) for row in coverage(queries)]
    header = ["value", "corrected", "people alone", "standard error / that of people alone"]
    table("coverage", f"Coverage of 95% intervals, {SIMULATIONS:,} simulations", header, rows)
    results = [signed(name) for name in SHAPES]
    table(
        "signed",
        "Exact searches with query weights of both signs, one core",
        ["work", "queries", "both signs, ms", "above 0, ms", "ratio"],
        [row for rows, _ in results for row in rows],
        {label: cost for _, costs in results for label, cost in costs.items()},
    )


if __name__ == "__main__":
    sys.exit(main())
