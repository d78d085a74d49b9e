"""Off-policy evaluation: the measures of a ranker, estimated from clicks on the rankings of others.

Let gamma_d be the relevance of document d and lambda_d the discount of its rank by the new ranker. A measure that is linear in the grades
is sum_d lambda_d gamma_d, so an estimate is the measure itself on estimated grades. Over the impressions i of d, of weight w_i in all n_d,
clicked or not (c_i), at a rank with propensity theta_i, and t_i = max(theta_i, clip):

    ips            y_d = sum_i w_i c_i / t_i / n_d                                                              (1)
    snips          y_d = (1) / r_q, r_q = the sum of (1) over the query, whose weight is multiplied by r_q      (2)
    doubly-robust  y_d = m_d + sum_i w_i (c_i - theta_i m_d) / t_i / n_d                                        (3)

(1) is unbiased where nothing is clipped and every document was shown (Joachims, Swaminathan & Schnabel 2017). (2), self-normalized
(Swaminathan & Joachims 2015), gives the mean discount of what is relevant: it stays the same if all propensities are multiplied by a
number, and only such ratios can be estimated from clicks. (3) (Oosterhuis 2023) adds a model of relevance m: it is unbiased where (1) is,
whatever the model, and where the model is right, whatever is clipped or was never shown. A document that was never shown has grade 0 in
(1) and (2), and m_d in (3). Weights of queries are their impressions, and intervals are from bootstrap samples of queries.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank._support.arrays import PerDocument, Rows
from exactrank._support.text import did_you_mean
from exactrank.clicks.log import Clicks, sums_of
from exactrank.clicks.propensities import Given, Propensities, propensities
from exactrank.clicks.to_data import check_settings, pairs_of, places_of, relevance
from exactrank.data.immutable import seal
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError, IncompatibleError, MeasureError
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import Evaluation, checked_scores, evaluate as evaluate_grades
from exactrank.measures.parse import known_measures, listed_measures, parse_measure

ESTIMATORS = ("ips", "snips", "doubly-robust")


@dataclass(frozen=True, eq=False, repr=False)
class OffPolicyEvaluation(Evaluation):
    """An evaluation on grades estimated from clicks, and measures of the support in the log."""

    estimator: str
    clicks: float  #: the number of clicks, by weight
    effective_sample_size: float  #: the number of clicks of equal weight with the same variance: (sum of 1/t)^2 / sum of 1/t^2
    clipped: float  #: the share of clicks whose propensity is below ``clip``
    unseen: dict[str, float]  #: by measure: the share of all discounts that goes to documents that were never shown

    def gain_over(self, live: "OffPolicyEvaluation") -> "OffPolicyEvaluation":
        """Return the differences from another ranker's estimates, query by query, with their means and intervals."""
        comparable = self.estimator == live.estimator and list(self.measures) == list(live.measures)
        if not comparable or not np.array_equal(self.qid, live.qid) or not np.array_equal(self.weight, live.weight):
            raise IncompatibleError(
                "a gain is a difference of two estimates by the same estimator and measures, from the same clicks; evaluate both alike"
            )
        return replace(self, per_query=self.per_query - live.per_query)

    def __repr__(self) -> str:
        return super().__repr__().replace("Evaluation(", f"OffPolicyEvaluation({self.estimator}, ", 1)


def evaluate(
    log: Clicks,
    measures: str | Measure | list[str | Measure],
    features: RankingData,
    scores: npt.ArrayLike,
    propensity: Given | Propensities | None,
    *,
    estimator: str = "ips",
    clip: float = 0.05,
    baseline: npt.ArrayLike | None = None,
    unknown: str = "error",
    preset: str | None = None,
    complete: bool | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> OffPolicyEvaluation:
    """Estimate ``measures`` of ``scores`` on the queries that both the log and ``features`` have.

    Args:
        log: The clicks.
        measures: They must be linear in the grades, as ``DCG(gain='linear')@10`` is.
        features: All documents that the scores rank, with ids; the features and grades themselves are not used.
        scores: One per row of ``features``.
        propensity: As in `Clicks.to_data`.
        estimator: ``"ips"``, ``"snips"`` or ``"doubly-robust"``.
        clip: A smaller propensity counts as this in the weight of a click.
        baseline: For ``"doubly-robust"``: the relevance of each row by a model, from 0. By default it is a document's clicks over its
            expected looks, with one more look that is clicked as often as others of the query.
        unknown: Documents of these queries that are in the log but not in ``features``: ``"error"``, or ``"drop"`` to leave them out.
        preset: As in `er.evaluate`, as are the others.
        complete: See there.
        seed: See there.
        threads: See there.
    """
    check_data(features, name="features")
    check_linear(listed_measures(measures), preset)
    check_settings(clip, unknown)
    if estimator not in ESTIMATORS:
        raise DataError(f"{estimator!r} is not an estimator{did_you_mean(estimator, ESTIMATORS)}; use one of {', '.join(ESTIMATORS)}")
    if propensity is None:
        raise DataError("an estimate from clicks needs propensities; give propensity=clicks.propensities(), '1/k' or numbers by rank")
    if baseline is not None and estimator != "doubly-robust":
        raise DataError(f"a baseline is for estimator='doubly-robust', not for {estimator!r}; leave it out")
    curve = propensities(log, propensity, bootstrap=0)
    shared_log, queries, rows = _in_both(log, features)
    judged = _judgeable(features, queries)
    pair = pairs_of(shared_log, judged, unknown)
    click_sums = _ClickSums(shared_log, curve, clip, np.isin(np.arange(len(shared_log.cells.query)), pair))
    model = None if baseline is None else _checked_baseline(features, baseline)[rows]
    estimated_data = _estimate_grades(judged, click_sums, pair, estimator, model)
    settings: dict[str, Any] = {"preset": preset, "complete": complete, "threads": threads}
    ranked = features.group(checked_scores(features, scores))[rows]
    unseen = _unseen(measures, judged, pair, ranked, settings)
    if estimator == "snips":
        estimated_data, ranked = _with_clicks(estimated_data, ranked)
    evaluation = evaluate_grades(estimated_data, ranked, measures, seed=seed, **settings)
    about = (click_sums.clicks, click_sums.effective_sample_size, click_sums.clipped, unseen)
    return OffPolicyEvaluation(evaluation.measures, evaluation.per_query, evaluation.qid, evaluation.weight, seed, estimator, *about)


def check_linear(measures: list[str | Measure], preset: str | None = None) -> None:
    """Raise for a measure that clicks cannot estimate without bias."""
    for spec in measures:
        measure = parse_measure(spec, preset)
        if not measure.is_linear:
            raise MeasureError(
                f"{measure} is not linear in the grades, so clicks give no unbiased estimate of it;"
                f" use {' or '.join(linear_measures())}, with any discount and cutoff"
            )


def linear_measures() -> list[str]:
    """Return the measures that are linear in the grades, as they are or with a linear gain."""
    names = []
    for name in known_measures():
        kind = Measure.registry[name]
        settings: dict[str, Any] = {"gain": "linear"} if "gain" in kind.__dataclass_fields__ else {}
        measure = kind(k=10 if kind.has_cutoff else None, **settings)
        names += [str(measure)] if measure.is_linear else []
    return names


def _in_both(log: Clicks, data: RankingData) -> tuple[Clicks, Rows, Rows]:
    """Return the impressions of the queries of ``data``, and the numbers and the rows of these queries in ``data``."""
    place = places_of(log.queries, map(str, data.qid.tolist()))
    impressions = sums_of(log.query, log.weights, len(log.queries))
    queries = np.flatnonzero((place >= 0) & (impressions[place] > 0))
    if len(queries) == 0:
        raise DataError("no query of the log is in the data; give the documents of the same queries")
    shared_log = log.take(np.isin(log.query, place[queries]))
    for units, unit in ((shared_log.query, "query"), (shared_log.session, "session")):
        if units is not None and units.min() == units.max():
            raise DataError(f"the clicks are from one {unit} only, which does not tell how far an estimate may be off; give a larger log")
    return shared_log, queries, np.flatnonzero(np.isin(data.query_numbers, queries))


def _judgeable(data: RankingData, queries: Rows) -> RankingData:
    """Return the documents of ``queries`` without features."""
    if data.docid is None:
        raise DataError("the data has no document ids, by which the log names documents; add a column or a comment with them")
    return replace(data.without_features(), sample_weight=None, order=None).take_queries(queries)


def _checked_baseline(data: RankingData, baseline: npt.ArrayLike) -> PerDocument:
    model = data.group(checked_scores(data, baseline, "baseline"))
    bad = np.flatnonzero(~((model >= 0) & (model < np.inf)))
    if len(bad):
        raise DataError(
            f"the baseline of a document is {model[bad[0]]:g}; relevance is a number from 0, so rescale what your model predicts"
        )
    return model


class _ClickSums:
    """Sums of clicks by pair of the log's cells, and the quality of their weights; pairs that are not ``present`` do not count."""

    def __init__(self, log: Clicks, curve: Propensities, clip: float, present: npt.NDArray[np.bool_]) -> None:
        cells = log.cells
        theta = curve.at(cells.rank)
        weight = 1 / np.maximum(theta, clip)
        clicks = np.where(present[cells.pair], cells.clicks, 0.0)
        self.log, self.grade = log, relevance(log, curve, clip)
        self.shown, self.clicked = sums_of(cells.pair, cells.impressions), sums_of(cells.pair, clicks)
        self.looks = sums_of(cells.pair, cells.impressions * theta)
        self.retained = sums_of(cells.pair, cells.impressions * theta * weight) / np.maximum(self.shown, 1e-300)
        self.clicks = float(clicks.sum())
        if self.clicks == 0:
            raise DataError("no document of the data was clicked, so there is nothing to estimate from; give a larger log")
        self.effective_sample_size = float(np.square((clicks * weight).sum()) / (clicks * weight**2).sum())
        self.clipped = float(clicks[theta < clip].sum() / self.clicks)


def _estimate_grades(data: RankingData, click_sums: _ClickSums, pair: Rows, estimator: str, model: PerDocument | None) -> RankingData:
    """Return ``data`` with grades (1) or (3) and query weights."""

    def of_documents(values: PerDocument) -> PerDocument:
        return np.where(pair >= 0, values[pair], 0.0)

    query = data.query_numbers
    grades = of_documents(click_sums.grade)
    if estimator == "doubly-robust":
        if model is None:
            clicked, looks = of_documents(click_sums.clicked), of_documents(click_sums.looks)
            mean = sums_of(query, clicked) / np.maximum(sums_of(query, looks), 1e-300)
            model = (clicked + mean[query]) / (looks + 1)
        grades = grades + model * (1 - of_documents(click_sums.retained))
    return replace(data, y=seal(grades), query_weight=seal(sums_of(query, of_documents(click_sums.shown))))


def _with_clicks(data: RankingData, scores: PerDocument) -> tuple[RankingData, PerDocument]:
    """Return data with grades (2) from grades (1), and the scores, of the queries that have any relevance."""
    query = data.query_numbers
    total = sums_of(query, data.y)
    shares = data.y / np.where(total > 0, total, 1.0)[query]
    normalized = replace(data, y=seal(shares), query_weight=seal(data.weights * total))
    return normalized.take_queries(total > 0), scores[total[query] > 0]


def _unseen(measures: Any, data: RankingData, pair: Rows, scores: PerDocument, settings: dict[str, Any]) -> dict[str, float]:
    """Return, by measure, the share of documents never shown in the value when all grades are 1."""
    unseen_value, full_value = (
        evaluate_grades(replace(data, y=seal(np.asarray(y, np.float64))), scores, measures, **settings).means
        for y in (pair < 0, np.ones(len(pair)))
    )
    return {name: unseen_value[name] / full_value[name] if full_value[name] else 0.0 for name in full_value}
