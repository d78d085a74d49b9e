"""Claim: no ranker minds in which units features, weights and grades come, what is there twice, or that features outnumber documents.

Every ranker is trained on the same artificial data, changed in a way that ought not to matter. A cell is the nDCG@10 on test queries over
what the ranker reaches on the data as it is ("plain", which has the nDCG@10 itself), or "refused" where an error says what to do.
The last column is 10,000 features for 50 documents: what is reached on those, with the ranker's own settings, and the processor's
seconds.

    python benchmarks/bench_numbers.py [RANKER ...]        prints the table of docs/numbers.md
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from timing import pin, table

import exactrank as er
from exactrank.data.synthetic import CubicPolynomial
from exactrank.rankers import RANKERS

#: Enough for the small data, so that the whole table takes minutes.
SETTINGS = {
    "directrank": {"bags": 5},
    "coordinate-ascent": {"restarts": 2, "max_iter": 5},
    "spsarank": {"steps": 200},
    "mart": {"trees": 50, "bags": 0},
    "lambdamart": {"trees": 50, "bags": 0},
    "directrank-trees": {"trees": 50, "bags": 0},
    "rankboost": {"rounds": 100},
}
MEASURE = "nDCG@10"
Change = Callable[[er.RankingData], er.RankingData]


def with_features(change: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Data whose features are changed, in double precision."""

    def changed(data: er.RankingData) -> er.RankingData:
        X = change(data.X.astype(np.float64))
        return er.RankingData.from_arrays(X, data.y, group=data.sizes)

    return changed


def weighted(weights: Callable[[int], np.ndarray], kind: str = "query_weight") -> Change:
    """Data with weights, one for each query or document."""
    return lambda data: replace(data, **{kind: weights(data.n_queries if kind == "query_weight" else data.n_documents)})


def every_row_twice(data: er.RankingData) -> er.RankingData:
    """Each document listed two times, one after the other."""
    return er.RankingData.from_arrays(data.X.repeat(2, axis=0), data.y.repeat(2), group=2 * data.sizes)


def powers(n: int, most: float) -> np.ndarray:
    """Powers of ten from 10^-most to 10^most."""
    return 10.0 ** np.linspace(-most, most, n)


CASES: dict[str, Change] = {
    **{f"x {scale:g}": with_features(lambda X, scale=scale: X * scale) for scale in (1e-38, 1e-30, 1e-3, 1e6, 1e30, 3e37)},
    "x mixed": with_features(lambda X: X * powers(X.shape[1], 30)),
    **{f"+ {offset:g}": with_features(lambda X, offset=offset: X + offset) for offset in (1e3, 1e6)},
    **{f"weights {weight:g}": weighted(lambda n, weight=weight: np.full(n, weight)) for weight in (1e-30, 1e30)},
    "weights mixed": weighted(lambda n: np.tile([1e-30, 1.0, 2.0], n)[:n]),
    "row weights 1e-30": weighted(lambda n: np.full(n, 1e-30), "sample_weight"),
    "constant columns": with_features(lambda X: np.hstack([X, np.full((len(X), 3), [0.0, 7.0, 1e30])])),
    "columns twice": with_features(lambda X: np.hstack([X, X])),
    "rows twice": every_row_twice,
    "grades to 1000": lambda data: replace(data, y=250.0 * data.y),
}


def reached(name: str, change: Change, train: er.RankingData, test: er.RankingData) -> str | float:
    """The measure on test data, judged by grades and weights as they were, or why there is none."""
    ranker = RANKERS[name](**({"measure": MEASURE} | SETTINGS.get(name, {})))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            scores = ranker.fit(change(train)).predict(change(test))
    except Exception as error:
        return "refused" if isinstance(error, er.errors.ExactRankError) else f"**{type(error).__name__}**"
    scores = scores[:: len(scores) // test.n_documents]
    return er.evaluate(test, scores, MEASURE).means[MEASURE]


def wide_seconds(name: str) -> str:
    """Return the seconds of a fit to 10,000 features of 50 documents, with the ranker's own settings."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 10_000), dtype=np.float32)
    data = er.RankingData.from_arrays(X, np.digitize(X[:, :20].sum(axis=1), [0, 4, 7]), group=[10] * 5)
    start = time.process_time()
    value = RANKERS[name](measure=MEASURE).fit(data).score(data)
    return f"{value:.2f} in {time.process_time() - start:.1f} s"


def cells(name: str, train: er.RankingData, test: er.RankingData) -> Iterator[str]:
    """One row of the table."""
    plain = reached(name, lambda data: data, train, test)
    yield plain if isinstance(plain, str) else f"{plain:.3f}"
    for change in CASES.values():
        result = reached(name, change, train, test)
        yield result if isinstance(result, str) or isinstance(plain, str) else f"{result / plain:.2f}"
    yield wide_seconds(name)


def main() -> None:
    pin(1)
    source = CubicPolynomial(features=10, documents=20, noise=0.5)
    train, test = source.data(60), source.data(100, first=1001)
    heads = ["ranker", "plain", *CASES, "10,000 features"]
    rows = [[name, *cells(name, train, test)] for name in sys.argv[1:] or RANKERS]
    table("rankers", f"{MEASURE} on test queries, as a share of that on plain data", heads, rows)


if __name__ == "__main__":
    sys.exit(main())
