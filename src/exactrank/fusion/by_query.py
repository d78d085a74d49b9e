"""Weights that depend on the query, kept where they win on held-out queries.

The weights of query q are the tuned ones, w, moved by features z_q of the query, such as its length or its intent:

    w(q) = w + r V z_q,    w(q) >= 0,    sum_j V_kj = 0 for each feature k                                     (1)

Numbers are standardized, and held within their range in training. A text has a 1 for its value, if enough queries have that value, so each
value is a segment with weights of its own; queries with another value have w. A feature that is the same for all queries moves nothing.

For a given V the scores are linear in alpha along the direction of feature k and system j,

    s(alpha) = s + alpha z_qk (x_j - rest_j),   rest_j the other systems in the proportions of w                (2)

so the measure is a step function of alpha that is known exactly. V starts at 0, and each direction is searched in turn, over all alpha for
which no weight of a training query is negative, until none improves the measure. For two systems and one text this is the global optimum
of every segment.

V fits chance too, so the shrinkage r is 0, 1/4, 1/2, 3/4 or 1, the best on held-out queries. The gain over r = 0 is that of a choice that
was made without the queries that it is measured on (`choose.py`). Weights by query are kept if this gain is at least its standard error.
"""

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from exactrank._support import numerics
from exactrank._support.arrays import PerDocument, PerQuery, Rows
from exactrank._support.numerals import number
from exactrank._support.text import clip
from exactrank.errors import DataError
from exactrank.fusion.choose import first_best, held_out_values, pairs_left_out, tune_each
from exactrank.fusion.problem import Combine, FusionProblem, Weights, weighted_sum
from exactrank.fusion.resample import Draws, Pair, means
from exactrank.learning.objectives.profile import line_search
from exactrank.learning.objectives.step_function import SAME_VALUE
from exactrank.measures.bound import mean_over_queries

SHRINKAGES = (0.0, 0.25, 0.5, 0.75, 1.0)
LEAST_QUERIES = 5  #: with a value of a text, for a segment of its own
ROUNDS = 10

Moves = npt.NDArray[np.float64]  #: V of (1), encoded features x systems
Encoded = npt.NDArray[np.float64]  #: z of (1), queries x encoded features
#: Features by the ids of queries: ``{"q1": {"length": 3, "intent": "brand"}}``.
ByQuery: TypeAlias = Mapping[str, Mapping[str, float | str]]


@dataclass(frozen=True)
class QueryFeature:
    """A feature of queries, as (1) reads it: a number, or a text with some values."""

    name: str
    texts: tuple[str, ...] = ()  #: values that are segments; none if it is a number
    mean: float = 0.0
    deviation: float = 1.0
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def of(cls, name: str, values: Sequence[float | str]) -> "QueryFeature | None":
        """Return the feature with these values in training; None if it tells no queries apart."""
        if len(set(values)) <= 2 or any(isinstance(value, str) for value in values):
            texts = [_text(value) for value in values]
            counts = {text: texts.count(text) for text in sorted(set(texts))}
            segments = tuple(text for text, count in counts.items() if LEAST_QUERIES <= count < len(texts))
            return cls(name, segments) if segments else None
        numbers = np.array(values, np.float64)
        mean = float(np.mean(numbers))
        deviation = float(np.sqrt(np.mean((numbers - mean) ** 2)))
        return cls(name, (), mean, deviation, float(numbers.min()), float(numbers.max()))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its columns in z."""
        return tuple(f"{self.name}={text}" for text in self.texts) or (self.name,)

    def encode(self, value: float | str, query: str) -> list[float]:
        """Return its columns of z for a query with this value."""
        if self.texts:
            return [float(_text(value) == text) for text in self.texts]
        if isinstance(value, str):
            raise DataError(f"query {query!r}: {self.name} is {clip(value)!r}; give a number, as in training")
        return [(min(max(value, self.low), self.high) - self.mean) / self.deviation]


@dataclass(frozen=True)
class QueryWeights:
    """V of (1), with what it gains on held-out queries; the weights of all queries are w if it was not kept."""

    features: tuple[QueryFeature, ...]
    moves: Mapping[str, tuple[float, ...]]  #: r V, the moves of the systems' weights by the columns of z
    shrinkage: float  #: r; 0 if weights by query were not kept
    gain: float  #: mean over held-out queries of the measure with weights by query, minus that with the same weights for all
    gain_interval: Pair | None  #: the bootstrap 95% interval of the gain

    @property
    def is_kept(self) -> bool:
        """True if weights depend on the query."""
        return self.shrinkage > 0

    @property
    def names(self) -> str:
        """The names of the features."""
        return ", ".join(feature.name for feature in self.features)

    @property
    def remark(self) -> str:
        """A sentence on what weights by query gain."""
        interval = "" if self.gain_interval is None else f" [{self.gain_interval[0]:+.4f}, {self.gain_interval[1]:+.4f}]"
        names = self.names or "features that tell no queries apart"
        verdict = f"kept, {self.shrinkage:.0%} of the way" if self.is_kept else "not kept"
        return f"weights by {names} gain {self.gain:+.4f}{interval} on held-out queries over the same weights for all: {verdict}"

    def weights(self, tuned: Weights, features: Sequence[Mapping[str, float | str]], queries: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return (1) for queries with these features, one row each, from the ``tuned`` weights w."""
        rows = [
            [cell for feature in self.features for cell in feature.encode(value_of(features[i], feature.name, query), query)]
            for i, query in enumerate(queries)
        ]
        z = np.array(rows, np.float64).reshape(len(queries), len(self.moves))
        return move_weights(tuned, np.array(list(self.moves.values())).reshape(len(self.moves), len(tuned)), z, bool(np.all(tuned >= 0)))


@dataclass(frozen=True, eq=False)
class QueryWeightChoice:
    """Weights by query with the values of the queries: with the model, and held out."""

    weights: QueryWeights
    in_sample: PerQuery
    held_out: PerQuery


def tune_by_query(
    problem: FusionProblem, combine: Combine, weights: Weights, by: ByQuery, fold: Rows, draws: Draws, seed: int
) -> QueryWeightChoice:
    """Tune (1) from the best ``weights`` of all queries, and choose r; values are of the scores that ``combine`` gives."""
    queries = [str(query) for query in problem.data.qid.tolist()]
    rows = features_of(by, queries)
    names = list(dict.fromkeys(name for row in rows for name in row))
    candidates = (QueryFeature.of(name, [value_of(row, name, query) for row, query in zip(rows, queries, strict=True)]) for name in names)
    features = tuple(feature for feature in candidates if feature is not None)
    columns = [column for feature in features for column in feature.columns]
    z = np.array(
        [
            [cell for feature in features for cell in feature.encode(row[feature.name], query)]
            for row, query in zip(rows, queries, strict=True)
        ]
    ).reshape(len(queries), len(columns))
    measured = replace(problem, combine=combine)

    def values(tuned: Weights, moves: Moves) -> list[PerQuery]:
        """Return the value of each query for each shrinkage."""
        return [measured.per_query(_by_document(problem, move_weights(tuned, r * moves, z, problem.nonnegative))) for r in SHRINKAGES]

    left_out = pairs_left_out(problem, fold)
    best = tune_each(problem, list(left_out.values()), seed)
    answers = [values(tuned, tune_moves(problem, tuned, z, w)) for tuned, w in zip(best, left_out.values(), strict=True)]
    query_weight = problem.data.weights
    by_shrinkage = [list(zip(left_out, rows_of_r, strict=True)) for rows_of_r in zip(*answers, strict=True)]
    held_out, unbiased = held_out_values(by_shrinkage, fold, problem)
    gains = unbiased - held_out[0]
    best_shrinkage = first_best([mean_over_queries(row, query_weight) for row in held_out])
    gain, interval = means({"gain": gains}, problem, draws)["gain"]
    if not gain > 0 or gain < _standard_error(gains, query_weight):
        best_shrinkage = 0
    r = SHRINKAGES[best_shrinkage]
    moves = r * tune_moves(problem, weights, z, query_weight)
    by_column = {column: tuple(row.tolist()) for column, row in zip(columns, moves, strict=True)}
    in_sample = measured.per_query(_by_document(problem, move_weights(weights, moves, z, problem.nonnegative)))
    return QueryWeightChoice(QueryWeights(features, by_column, r, gain, interval), in_sample, unbiased if best_shrinkage else held_out[0])


def tune_moves(problem: FusionProblem, weights: Weights, z: Encoded, query_weight: PerQuery) -> Moves:
    """Return V of (1) by exact searches along (2), for the mean by ``query_weight``."""
    moves = np.zeros((z.shape[1], problem.systems))
    directions = [direction_towards(weights, j) for j in range(1 if problem.systems == 2 else 0, problem.systems)]
    if not len(moves) or not problem.has_queries(query_weight):
        return moves
    by_query = move_weights(weights, moves, z, False)
    value = problem.value(weights, query_weight)
    for _ in range(ROUNDS):
        before = value
        for k, direction in ((k, direction) for k in range(len(moves)) for direction in directions):
            change = z[:, k, None] * direction
            low, high = _range(by_query[query_weight > 0], change[query_weight > 0]) if problem.nonnegative else (-math.inf, math.inf)
            if not low < high or not change.any():
                continue
            step = line_search(problem.data, *_ray(problem, by_query, change), problem.measure, low=low, high=high, weight=query_weight)
            if step.value > value + SAME_VALUE:
                moves[k] += step.alpha * direction
                by_query, value = by_query + step.alpha * change, step.value
        if value <= before + SAME_VALUE:
            break
    return moves


def direction_towards(weights: Weights, j: int) -> Weights:
    """Return the direction of (2): system ``j`` grows, and the others shrink in their proportions, equally if they have no weight."""
    rest = np.where(np.arange(len(weights)) == j, 0.0, np.abs(weights))
    if not rest.any():
        rest = np.where(np.arange(len(weights)) == j, 0.0, 1.0)
    return np.where(np.arange(len(weights)) == j, 1.0, -rest / rest.sum())


def move_weights(weights: Weights, moves: Moves, z: Encoded, nonnegative: bool) -> npt.NDArray[np.float64]:
    """Return (1) for each row of ``z``; beyond the range of training, weights below 0 are 0, and the others grow."""
    by_query = weights + numerics.matmul(z, moves) if len(moves) else np.tile(weights, (len(z), 1))
    if not nonnegative:
        return by_query
    by_query = np.maximum(by_query, 0.0)
    total = by_query.sum(axis=1, keepdims=True)
    return np.where(total > 0, by_query / np.where(total > 0, total, 1.0), weights)


def _range(by_query: npt.NDArray[np.float64], change: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends between which ``by_query + alpha change`` has no negative weight; 0 lies between them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = -np.maximum(by_query, 0.0) / change
    return float(np.max(ends[change > 0], initial=-math.inf)), float(np.min(ends[change < 0], initial=math.inf))


def _ray(problem: FusionProblem, *by_query: npt.NDArray[np.float64]) -> tuple[PerDocument, PerDocument]:
    """Return the scores and their direction, (2), for the weights of each query and their change."""
    scores, direction = (weighted_sum(_by_document(problem, weights), problem.values) for weights in by_query)
    return np.where(problem.ranked, scores, -np.inf), np.where(problem.ranked, direction, 0.0)


def _by_document(problem: FusionProblem, by_query: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the weights of each document's query, systems x documents."""
    return np.repeat(by_query, problem.data.sizes, axis=0).T


def _standard_error(values: PerQuery, weight: PerQuery) -> float:
    """Return the standard error of a weighted mean over queries."""
    counts = ~np.isnan(values) & (weight > 0)
    share = weight[counts] / weight[counts].sum()
    centered = values[counts] - np.sum(share * values[counts])
    return float(np.sqrt(np.sum((share * centered) ** 2)))


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def features_of(by: ByQuery, queries: Sequence[str]) -> list[Mapping[str, float | str]]:
    """Return the features of each query; raise if one has none."""
    features = {str(query): row for query, row in by.items()}
    lacking = next((query for query in queries if query not in features), None)
    if lacking is not None:
        raise DataError(f"by has no features of query {lacking!r}; give those of every query")
    return [features[query] for query in queries]


def value_of(features: Mapping[str, float | str], name: str, query: str) -> float | str:
    """Return a feature of a query; raise if it is missing or not a finite number."""
    if name not in features:
        raise DataError(f"query {query!r} has no {name!r}; give every query the same features")
    value = features[name]
    if not isinstance(value, str) and not math.isfinite(value):
        raise DataError(f"query {query!r}: {name} is {value}; give a finite number or a text")
    return value if isinstance(value, str) else float(value)


def read_query_features(path: str | os.PathLike[str], query: str = "query_id") -> dict[str, dict[str, float | str]]:
    """Read features of queries from a CSV file with a column of their ids; a column of numbers alone is one of numbers."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    if not rows or query not in rows[0] or len(rows[0]) < 2:
        raise DataError(f"{os.fspath(path)}: expected a header with {query} and at least one feature, and a line per query")
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise DataError(f"{os.fspath(path)}:{line}: has another number of columns than the header")
    repeated = [row[query] for row in rows]
    if len(set(repeated)) < len(repeated):
        twice = next(name for name in repeated if repeated.count(name) > 1)
        raise DataError(f"{os.fspath(path)}: query {twice!r} occurs twice; give each query once")
    columns = {name: _numbers_or_texts([row[name] for row in rows]) for name in rows[0] if name != query}
    return {row[query]: {name: values[i] for name, values in columns.items()} for i, row in enumerate(rows)}


def _numbers_or_texts(texts: Iterable[str]) -> list[float] | list[str]:
    listed = list(texts)
    try:
        return [number(text) for text in listed]
    except ValueError:
        return listed
