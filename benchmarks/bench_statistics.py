"""Claims: an always-valid interval errs in at most 5% of experiments that are looked at after every ten queries, where the t-test errs in
far more; a number of queries has the power that it is said to have; and tests of clusters err in 5% where queries depend on each other.

Experiments are simulated with differences per query as measures have them: many zeros and skewed, as of nDCG; wins and losses, as of
P@1; and few queries that differ at all. In the first two kinds of experiment there is no true difference.
"""

import math
import sys

import numpy as np
from timing import table

from exactrank._support.distributions import t_quantile
from exactrank.compare.statistics import observations, paired_t
from exactrank.statistics import always_valid, power, sample_size

EXPERIMENTS, QUERIES, STEP = 1000, 1000, 10
POPULATION = 100_000


def populations() -> dict[str, np.ndarray]:
    """Return the differences from which experiments draw, by name."""
    rng = np.random.default_rng(0)
    skewed = np.where(rng.random(POPULATION) < 0.4, 0.0, rng.beta(1.5, 6, POPULATION) - 0.2)
    return {
        "as of nDCG@10": skewed - skewed.mean(),
        "wins and losses": rng.choice([-1.0, 0.0, 1.0], POPULATION, p=[0.15, 0.7, 0.15]),
        "2% of the queries differ": rng.choice([-0.5, 0.0, 0.5], POPULATION, p=[0.01, 0.98, 0.01]),
    }


def peeking() -> None:
    """How often is there a difference, at any of a hundred looks, where there is none?"""
    looks = np.arange(STEP, QUERIES + 1, STEP)
    critical = np.array([t_quantile(0.975, n - 1) for n in looks.tolist()])
    rows = []
    for name, population in populations().items():
        errors, at_end, ratios, mean = np.zeros(2), 0, [], float(population.mean())
        for seed in range(EXPERIMENTS):
            d = np.random.default_rng([1, seed]).choice(population, QUERIES) - mean
            means, squares = np.cumsum(d)[looks - 1] / looks, np.cumsum(d * d)[looks - 1]
            deviation = np.sqrt(np.maximum(squares - looks * means**2, 0) / (looks - 1))
            seen = (np.abs(means) > critical * deviation / np.sqrt(looks)) & (deviation > 1e-9)
            low, high = always_valid(d + mean).interval
            errors += seen.any(), not low <= mean <= high
            at_end += seen[-1]
            ratios.append((high - low) / (2 * critical[-1] * deviation[-1] / math.sqrt(QUERIES)))
        shares = [at_end / EXPERIMENTS, *(errors / EXPERIMENTS)]
        rows.append([name, *(f"{share:.1%}" for share in shares), f"{np.median(ratios):.2f}"])
    header = ["differences", "t, one look at the end", "t, a look every 10 queries", "always-valid, a look every 10 queries", "width"]
    table("peeking", f"Errors in {EXPERIMENTS:,} experiments of {QUERIES:,} queries; width of the interval as a share of t's", header, rows)


def powers() -> None:
    """Do as many tests find a difference as the number of queries was chosen for?"""
    rows = []
    for name, population in populations().items():
        for wanted in (0.5, 0.8, 0.95):
            difference = 0.25 * float(population.std())
            n = sample_size(population, difference, wanted)
            rng = np.random.default_rng([2, n])
            hits = sum(paired_t(rng.choice(population, n) - population.mean() + difference) < 0.05 for _ in range(EXPERIMENTS))
            cells = [f"{wanted:.0%}", f"{n:,}", f"{power(population, difference, n):.1%}", f"{hits / EXPERIMENTS:.1%}"]
            rows.append([name, *cells])
    table("power", "Tests that find a difference", ["differences", "wanted", "queries", "computed", "simulated"], rows)


def clusters() -> None:
    """How often do tests err where the queries of a user depend on each other?"""
    rows = []
    for users in (30, 60, 200):
        errors = np.zeros(2)
        for seed in range(EXPERIMENTS):
            rng = np.random.default_rng([3, users, seed])
            user = np.repeat(np.arange(users), rng.integers(1, 20, users))
            d = 0.1 * rng.standard_normal(users)[user] + 0.1 * rng.standard_normal(len(user))
            errors += paired_t(d) < 0.05, paired_t(observations(d, clusters=user)) < 0.05
        rows.append([f"{users}", *(f"{share:.1%}" for share in errors / EXPERIMENTS)])
    table("clusters", "Errors of the t-test at the level 5%, users of 1 to 19 queries", ["users", "by query", "by user"], rows)


def main() -> None:
    peeking()
    powers()
    clusters()


if __name__ == "__main__":
    sys.exit(main())
