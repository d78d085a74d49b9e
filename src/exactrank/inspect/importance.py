"""Permutation importance of a model's features: `er.inspect.importance`, by the drop in the measure.

Permute the values of one feature at random among the documents, and see how much the measure drops (Breiman
2001, section 10; Fisher, Rudin & Dominici 2019). Only differences within a query affect its ranking, so values are exchanged only among
documents of the same query. With v_q the value of query q as the model ranks it, v_qjr its value after the r-th exchange of
feature j, and w_q the query's weight,

    d_qj = mean over repeats r of (v_q - v_qjr)                                                                 (1)
    drop_j = sum over queries of w_q d_qj / sum over queries of w_q                                             (2)
    error_j^2 = n / (n - 1) * sum over queries of w_q^2 (d_qj - drop_j)^2 / (sum over queries of w_q)^2         (3)

with n the number of queries that count. (3) is the squared standard error of (2) over queries. Each query has its own exchanges, so
their randomness is included. A repeat exchanges all features, one after the other, by the same draws: their drops differ because of
the model, not by chance.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import check_count
from exactrank._support.arrays import PerQuery
from exactrank._support.pictures import COLORS, INK, Plottable, caption
from exactrank._support.tables import ROWS, Table, Tabular, Values, by_column, small_table
from exactrank.data.alignment import align_features
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError
from exactrank.inspect.probed import measure_of, model_of
from exactrank.measures.base import Measure
from exactrank.measures.bootstrap import MOST_RESAMPLES
from exactrank.measures.evaluate import measure_scores
from exactrank.measures.parse import parse_measure
from exactrank.models.base import Scorer
from exactrank.models.linear import Linear
from exactrank.models.missing import PerFeature
from exactrank.models.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from exactrank._support.pictures import Panels
    from exactrank.rankers.base import Ranker

MAX_SHOWN = 20  #: features in a picture by default
CLEAR = 2.0  #: a drop of more standard errors than this is significant


@runtime_checkable
class Splitting(Protocol):
    """A scorer that knows the gain and the number of its splits by feature, as tree ensembles do."""

    def importance(self, kind: Literal["gain", "split"]) -> PerFeature:
        """Return one number per feature: the gain of its splits in training, or their number."""


@dataclass(frozen=True)
class FeatureImportance:
    """Drop in the measure without the information in one feature."""

    feature: str
    drop: float  #: (2); exactly 0 if no query's value changes, below 0 if the model ranks better without the feature
    error: float  #: (3); NaN if only one query counts
    gain: float | None = None  #: for trees: the gain of splits by the feature in training
    splits: int | None = None  #: for trees: the number of splits by the feature

    @property
    def clear(self) -> bool:
        """True if the drop is significant: more than `CLEAR` standard errors above 0."""
        return self.drop > CLEAR * self.error

    @property
    def idle(self) -> bool:
        """True if the value of no query changes. A drop of 0 alone may be gains that offset losses."""
        return self.drop == 0 and not self.error > 0


@dataclass(frozen=True, repr=False)
class Importance(Tabular, Plottable):
    """Drop in a measure by each feature of a model; build it with [`er.inspect.importance`][exactrank.inspect.importance]."""

    measure: Measure
    value: float  #: value of the measure on the data, with the model as it is
    queries: int  #: queries that count in its mean
    repeats: int
    seed: int
    per_feature: tuple[FeatureImportance, ...]  #: in the order of the model's features

    @property
    def verdict(self) -> str:
        """The result in words."""
        summary = f"{self.measure} {self.value:.4f} on {self.queries:,} queries"
        top_feature, count = self.ranked()[0], len(self.per_feature)
        idle = sum(feature.idle for feature in self.per_feature)
        if idle == count:
            return f"{summary}: exchanging any of {count:,} features changes nothing."
        if top_feature.drop <= 0:
            return f"{summary}: exchanging no feature lowers it."
        clear = sum(feature.clear for feature in self.per_feature)
        rest = f"Features that cost more than {CLEAR:g} standard errors: {clear:,} of {count:,}; that change nothing: {idle:,}."
        return f"{summary}: exchanging {top_feature.feature} costs most, {top_feature.drop:.4f}. {rest}"

    def ranked(self) -> list[FeatureImportance]:
        """Return the features by decreasing drop; equal drops in the model's order."""
        return sorted(self.per_feature, key=lambda feature: -feature.drop)

    def to_json(self) -> dict[str, object]:
        """Return everything in a form for ``json.dumps``; an undefined error is None."""
        return {
            "measure": repr(self.measure),
            "value": self.value,
            "queries": self.queries,
            "repeats": self.repeats,
            "seed": self.seed,
            "verdict": self.verdict,
            "per_feature": [asdict(f) | ({"error": None} if math.isnan(f.error) else {}) for f in self.per_feature],
        }

    def plot(
        self, ax: "Axes | None" = None, path: str | os.PathLike[str] | None = None, *, features: int = MAX_SHOWN, force: bool = False
    ) -> "Panels":
        """Draw the ``features`` with the largest drops, as bars, into ``ax`` or a new figure; return the Axes.

        ``path`` also writes the figure, as PNG, SVG or PDF by the suffix; ``force`` replaces an existing file.
        """
        if features < 1:
            raise DataError(f"features must be at least 1, got {features}")
        return self._plot(ax, path, force, features=features)

    def _size(self, features: int = MAX_SHOWN, **_: object) -> tuple[float, float]:
        return 8.0, 1.6 + 0.28 * min(features, len(self.per_feature))

    def _draw(self, axes: "Axes", features: int = MAX_SHOWN, **_: object) -> None:
        selection, count = self.ranked()[:features], len(self.per_feature)
        places, drops = np.arange(len(selection)), [feature.drop for feature in selection]
        axes.barh(places, drops, color=COLORS[0])
        reach = [0.0 if math.isnan(feature.error) else CLEAR * feature.error for feature in selection]
        axes.errorbar(drops, places, xerr=reach, fmt="none", ecolor=INK, elinewidth=1.0, capsize=2.0)
        axes.axvline(0.0, color=INK, linewidth=0.8)
        axes.set_yticks(places, [caption(feature.feature) for feature in selection])
        axes.invert_yaxis()
        axes.margins(y=0.02)
        scope = f"all {count:,} features" if len(selection) == count else f"the {len(selection):,} of {count:,} features that drop most"
        axes.set_xlabel(f"drop of {self.measure} from {self.value:.4f}; lines: {CLEAR:g} standard errors to each side")
        axes.set_title(f"{scope}, each exchanged within queries", wrap=True)

    def _columns(self) -> dict[str, Values]:
        return _feature_columns(self.per_feature)

    def _glance(self) -> Table:
        return small_table(self.verdict, list(_feature_columns(self.ranked()[:ROWS]).items()), len(self.per_feature))

    def __repr__(self) -> str:
        return f"Importance({self.verdict!r})"


def _feature_columns(features: Sequence[FeatureImportance]) -> dict[str, Values]:
    """Return the fields of ``features`` as columns; only trees have gains and splits."""
    columns = by_column(features, "feature", "drop", "error", "gain", "splits")
    return {name: values for name, values in columns.items() if any(value is not None for value in values)}


def importance(
    data: RankingData,
    model: "Model | Ranker",
    measure: str | Measure | None = None,
    *,
    repeats: int = 5,
    seed: int = 0,
    threads: int | None = None,
) -> Importance:
    """Measure how far ``measure`` falls on ``data`` when the values of one feature are exchanged at random within each query.

    ``model`` comes from [`er.load`][exactrank.load] or is a fitted ranker, of any kind. The measure is by default the
    one that it was trained on. Exchanges are drawn ``repeats`` times by ``seed``, and the drops are averaged.

    >>> X = [[3.0, 1.0], [2.0, 1.0], [1.0, 5.0], [9.0, 2.0], [4.0, 1.0], [2.0, 3.0]]
    >>> data = RankingData.from_arrays(X, [2, 1, 0, 1, 0, 0], group=[3, 3], feature_names=["bm25", "length"])
    >>> result = importance(data, Model(Linear(np.array([1.0, 0.0]))), "nDCG@10", repeats=100)
    >>> [(feature.feature, round(feature.drop, 2), round(feature.error, 2)) for feature in result.per_feature]
    [('bm25', 0.26, 0.04), ('length', 0.0, 0.0)]
    """
    check_data(data)
    check_count("repeats", repeats, 1, MOST_RESAMPLES)
    trained = model_of(model)
    parsed = measure_of(trained, None) if measure is None else parse_measure(measure)
    evaluation = measure_scores(data, trained.predict(data, threads), parsed, threads=threads)
    counts = ~np.isnan(evaluation.per_query[0]) & (evaluation.weight > 0)
    if not np.any(counts):
        raise DataError(f"{parsed} skips every query of the data, so no feature can lower it; give data with relevant documents")
    rows = align_features(data, trained.scorer.feature_names, levels=trained.scorer.levels) if trained.scorer.feature_names else data
    losses = _sum_losses(trained.scorer, replace(rows, order=None), parsed, evaluation.per_query[0], repeats, seed, threads)
    drops, weight = losses[:, counts] / repeats, evaluation.weight[counts]  # (1)
    share, n = weight / weight.sum(), len(weight)
    drop = (drops * share).sum(axis=1)  # (2)
    squares = (share * (drops - drop[:, None])) ** 2
    error = np.sqrt(squares.sum(axis=1) * n / (n - 1)) if n > 1 else np.full(len(drop), np.nan)  # (3)
    trees: list[tuple[float | None, int | None]] = [(None, None)] * len(drop)
    if isinstance(trained.scorer, Splitting):
        gains, splits = trained.scorer.importance("gain"), trained.scorer.importance("split")
        trees = [(float(gain), int(count)) for gain, count in zip(gains, splits, strict=True)]
    per_feature = zip(rows.feature_names, drop.tolist(), error.tolist(), trees, strict=True)
    results = tuple(FeatureImportance(name, feature_drop, err, *tree) for name, feature_drop, err, tree in per_feature)
    return Importance(parsed, evaluation.means[str(parsed)], n, repeats, seed, results)


def _sum_losses(
    scorer: Scorer, data: RankingData, measure: Measure, values: PerQuery, repeats: int, seed: int, threads: int | None
) -> npt.NDArray[np.float64]:
    """Sum over exchanges the loss of each query from its value in ``values``, features x queries."""
    X, losses = np.array(data.X), np.zeros((data.n_features, data.n_queries))  # a copy in which one column changes at a time
    used = np.flatnonzero(scorer.weights) if isinstance(scorer, Linear) else np.arange(data.n_features)
    rng, query = np.random.default_rng(seed), data.query_numbers
    for _ in range(repeats):
        order = np.lexsort((rng.random(len(query)), query))  # all orders within a query are equally likely
        for j in used:
            column = data.X[:, j].copy()  # contiguous, for speed
            exchanged = column[order]
            if np.array_equal(exchanged, column, equal_nan=True):
                continue
            X[:, j] = exchanged
            losses[j] += values - measure_scores(data, scorer.score(X, threads, data.offset), measure, threads=threads).per_query[0]
            X[:, j] = column
    return losses
