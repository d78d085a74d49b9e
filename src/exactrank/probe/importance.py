"""How much a model's ranking depends on each feature: `xr.importance`, by the drop in the measure.

Permute the values of one feature at random among the documents, and see what the measure loses (Breiman
2001, section 10; Fisher, Rudin & Dominici 2019). Only differences within a query rank, so values are exchanged among the
documents of the same query and no others. With v_q the value of query q as the model ranks it, v_qjr its value after feature j
went through the r-th exchange, and w_q the query's weight,

    d_qj = mean over repeats r of (v_q - v_qjr)                                                                 (1)
    drop_j = sum over queries of w_q d_qj / sum over queries of w_q                                             (2)
    error_j^2 = n / (n - 1) * sum over queries of w_q^2 (d_qj - drop_j)^2 / (sum over queries of w_q)^2         (3)

with n the queries that count. (3) is the squared standard error of (2) over queries; each query has exchanges of its own, so
the chance in them is in it too. A repeat exchanges all features, one after the other, by the same draws: their drops differ by
what the model does with them, not by luck.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from exactrank.arguments import check_count
from exactrank.arrays import PerQuery
from exactrank.data.alignment import aligned
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import MOST_RESAMPLES, evaluate
from exactrank.measures.parse import parse_measure
from exactrank.pictures import COLOURS, INK, Pictured, caption
from exactrank.probe.probed import measure_of, model_of
from exactrank.scorers.base import Scorer
from exactrank.scorers.linear import Linear
from exactrank.scorers.missing import PerFeature
from exactrank.scorers.model import Model
from exactrank.table import ROWS, Shown, Table, Values, by_column, small_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from exactrank.pictures import Panels
    from exactrank.rankers.base import Ranker

SHOWN = 20  #: features of a picture
CLEAR = 2.0  #: a drop of more standard errors than this is significant


@runtime_checkable
class Splitting(Protocol):
    """A scorer that counts what its splits by each feature are worth, as tree ensembles do."""

    def importance(self, kind: Literal["gain", "split"]) -> PerFeature:
        """One number per feature: how much its splits gained in training, or their number."""


@dataclass(frozen=True)
class FeatureImportance:
    """The loss of the measure without the information in one feature."""

    feature: str
    drop: float  #: (2); exactly 0 where no query's value changed, below 0 where the model ranks better without
    error: float  #: (3); NaN where only one query counts
    gain: float | None = None  #: of trees: what splits by the feature gained in training
    splits: int | None = None  #: of trees: how many there are

    @property
    def clear(self) -> bool:
        """Is the drop above 0 by more than chance explains: `CLEAR` standard errors?"""
        return self.drop > CLEAR * self.error

    @property
    def idle(self) -> bool:
        """Did no query gain or lose? A drop of 0 alone may be gains that offset losses."""
        return self.drop == 0 and not self.error > 0


@dataclass(frozen=True, repr=False)
class Importance(Shown, Pictured):
    """The drop in a measure by each feature of a model; build it with [`xr.importance`][exactrank.importance]."""

    measure: Measure
    value: float  #: of the measure, on the data, as the model is
    queries: int  #: that count in its mean
    repeats: int
    seed: int
    per_feature: tuple[FeatureImportance, ...]  #: in the order of the model's features

    @property
    def verdict(self) -> str:
        """What was found, in plain words."""
        here, most, count = f"{self.measure} {self.value:.4f} on {self.queries:,} queries", self.ranked()[0], len(self.per_feature)
        idle = sum(feature.idle for feature in self.per_feature)
        if idle == count:
            return f"{here}: exchanging any of {count:,} features changes nothing."
        if most.drop <= 0:
            return f"{here}: exchanging no feature lowers it."
        clear = sum(feature.clear for feature in self.per_feature)
        rest = f"Features that cost more than {CLEAR:g} standard errors: {clear:,} of {count:,}; that change nothing: {idle:,}."
        return f"{here}: exchanging {most.feature} costs most, {most.drop:.4f}. {rest}"

    def ranked(self) -> list[FeatureImportance]:
        """The features, largest drop first; of equal drops the one that comes first in the model."""
        return sorted(self.per_feature, key=lambda feature: -feature.drop)

    def to_json(self) -> dict[str, Any]:
        """All of it, ready for ``json.dumps``; an error that cannot be known is None."""
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
        self, ax: "Axes | None" = None, path: str | os.PathLike[str] | None = None, *, features: int = SHOWN, force: bool = False
    ) -> "Panels":
        """Draw the ``features`` with the largest drops, a bar each, into ``ax`` or a new figure; returns the Axes.

        ``path`` also writes the figure, as PNG, SVG or PDF by the suffix; ``force`` replaces a file that is there.
        """
        if features < 1:
            raise DataError(f"features must be at least 1, got {features}")
        return self._plot(ax, path, force, features=features)

    def _size(self, **options: Any) -> tuple[float, float]:
        return 8.0, 1.6 + 0.28 * min(options.get("features", SHOWN), len(self.per_feature))

    def _draw(self, axes: "Axes", **options: Any) -> None:
        shown, count = self.ranked()[: options.get("features", SHOWN)], len(self.per_feature)
        places, drops = np.arange(len(shown)), [feature.drop for feature in shown]
        axes.barh(places, drops, color=COLOURS[0])
        reach = [0.0 if math.isnan(feature.error) else CLEAR * feature.error for feature in shown]
        axes.errorbar(drops, places, xerr=reach, fmt="none", ecolor=INK, elinewidth=1.0, capsize=2.0)
        axes.axvline(0.0, color=INK, linewidth=0.8)
        axes.set_yticks(places, [caption(feature.feature) for feature in shown])
        axes.invert_yaxis()
        axes.margins(y=0.02)
        which = f"all {count:,} features" if len(shown) == count else f"the {len(shown):,} of {count:,} features with the largest drops"
        axes.set_xlabel(f"drop of {self.measure} from {self.value:.4f}; lines: {CLEAR:g} standard errors to each side")
        axes.set_title(f"{which}, each exchanged within queries", wrap=True)

    def _columns(self) -> dict[str, Values]:
        return _known(self.per_feature)

    def _glance(self) -> Table:
        return small_table(self.verdict, list(_known(self.ranked()[:ROWS]).items()), len(self.per_feature))

    def __repr__(self) -> str:
        return f"Importance({self.verdict!r})"


def _known(features: Sequence[FeatureImportance]) -> dict[str, Values]:
    """What is known of them, column by column; only trees have gains and splits."""
    columns = by_column(features, "feature", "drop", "error", "gain", "splits")
    return {name: values for name, values in columns.items() if any(value is not None for value in values)}


def importance(
    model: "Model | Ranker",
    data: RankingData,
    measure: str | Measure | None = None,
    *,
    repeats: int = 5,
    seed: int = 0,
    threads: int | None = None,
) -> Importance:
    """How far ``measure`` falls on ``data`` when the values of one feature are exchanged at random within each query.

    ``model`` comes from [`xr.load`][exactrank.load] or is a ranker after ``fit``, of any kind. The measure is by default the
    one that it was trained on. Exchanges are drawn ``repeats`` times by ``seed``, and the drops are averaged.

    >>> X = [[3.0, 1.0], [2.0, 1.0], [1.0, 5.0], [9.0, 2.0], [4.0, 1.0], [2.0, 3.0]]
    >>> data = RankingData.from_arrays(X, [2, 1, 0, 1, 0, 0], group=[3, 3], feature_names=["bm25", "length"])
    >>> found = importance(Model(Linear(np.array([1.0, 0.0]))), data, "nDCG@10", repeats=100)
    >>> [(feature.feature, round(feature.drop, 2), round(feature.error, 2)) for feature in found.per_feature]
    [('bm25', 0.26, 0.04), ('length', 0.0, 0.0)]
    """
    check_data(data)
    check_count("repeats", repeats, 1, MOST_RESAMPLES)
    given = model_of(model)
    parsed = measure_of(given, None) if measure is None else parse_measure(measure)
    here = evaluate(parsed, data, given.predict(data, threads), threads=threads)
    counted = ~np.isnan(here.per_query[0]) & (here.weight > 0)
    if not np.any(counted):
        raise DataError(f"{parsed} skips every query of the data, so there is nothing to lose; give data with relevant documents")
    rows = aligned(data, given.scorer.feature_names, levels=given.scorer.levels) if given.scorer.feature_names else data
    lost = _lost(given.scorer, replace(rows, order=None), parsed, here.per_query[0], repeats, seed, threads)
    drops, weight = lost[:, counted] / repeats, here.weight[counted]  # (1)
    share, n = weight / weight.sum(), len(weight)
    drop = (drops * share).sum(axis=1)  # (2)
    around = (share * (drops - drop[:, None])) ** 2
    error = np.sqrt(around.sum(axis=1) * n / (n - 1)) if n > 1 else np.full(len(drop), np.nan)  # (3)
    trees: list[tuple[float | None, int | None]] = [(None, None)] * len(drop)
    if isinstance(given.scorer, Splitting):
        gains, splits = given.scorer.importance("gain"), given.scorer.importance("split")
        trees = [(float(gain), int(count)) for gain, count in zip(gains, splits, strict=True)]
    per_feature = zip(rows.feature_names, drop.tolist(), error.tolist(), trees, strict=True)
    found = tuple(FeatureImportance(name, own, err, *tree) for name, own, err, tree in per_feature)
    return Importance(parsed, here.means[str(parsed)], n, repeats, seed, found)


def _lost(
    scorer: Scorer, data: RankingData, measure: Measure, here: PerQuery, repeats: int, seed: int, threads: int | None
) -> npt.NDArray[np.float64]:
    """The sum over exchanges of what each query loses, features x queries; ``here`` are the values as they are."""
    X, lost = np.array(data.X), np.zeros((data.n_features, data.n_queries))  # one copy, of which a column changes at a time
    used = np.flatnonzero(scorer.weights) if isinstance(scorer, Linear) else np.arange(data.n_features)
    rng, query = np.random.default_rng(seed), np.repeat(np.arange(data.n_queries), data.sizes)
    for _ in range(repeats):
        order = np.lexsort((rng.random(len(query)), query))  # whose value each document gets: every order of a query as likely
        for j in used:
            own = data.X[:, j].copy()  # in one piece, so that it is quickly read
            exchanged = own[order]
            if np.array_equal(exchanged, own, equal_nan=True):
                continue
            X[:, j] = exchanged
            lost[j] += here - evaluate(measure, data, scorer.score(X, threads, data.offset), threads=threads).per_query[0]
            X[:, j] = own
    return lost
