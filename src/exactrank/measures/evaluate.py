"""Evaluation of scored data by measures: `er.evaluate`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, Protocol, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import wrong_kind
from exactrank._support.arrays import Ids, PerDocument, PerQuery
from exactrank._support.tables import Table, Tabular, Values
from exactrank.data.backend import Backend
from exactrank.data.dataset import Dataset
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.data.sharded import open_shards
from exactrank.data.shards import Shards
from exactrank.data.validation import floats_of
from exactrank.errors import DataError, EvaluationWarning, IncompatibleError, warn_caller
from exactrank.measures.base import Measure
from exactrank.measures.binary import threshold_remarks
from exactrank.measures.bootstrap import bootstrap_intervals
from exactrank.measures.bound import means_over_queries, values_of, values_over
from exactrank.measures.coverage import MeasuredQueries, condensed_values, coverage_measures, coverage_remarks
from exactrank.measures.goal import parse_goal
from exactrank.measures.machine_grades import Correction, correct
from exactrank.measures.parse import find_preset, listed_measures
from exactrank.measures.ties import TIE_ORDERS, tie_remarks
from exactrank.measures.unjudged import UnjudgedBound, highest_grade as checked_highest

if TYPE_CHECKING:
    from exactrank.clicks.log import Clicks
    from exactrank.clicks.propensities import Given, Propensities

Unjudged = Literal["zero", "bounds"]
QUICK = 20_000  #: maximum number of queries for which notebooks show intervals


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Mapping[str, "Result"], Tabular):
    """Results by the names of the measures, as they were given; intervals are computed on first use."""

    measures: Mapping[str, Measure]
    per_query: npt.NDArray[np.float64]  #: measures x queries, NaN where a query was skipped
    qid: Ids
    weight: PerQuery
    seed: int
    machine: Correction | None = field(default=None, kw_only=True)  #: of the means, by a machine's grades of more queries
    #: Smallest and largest mean over all orders of tied documents, of the measures that this order moves.
    tie_ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict, kw_only=True)
    remarks: Mapping[str, str] = field(default_factory=dict, kw_only=True)  #: by measure: why the mean may not say what it seems to
    judged: npt.NDArray[np.float64] | None = field(default=None, kw_only=True)  #: shares of judged documents, as `per_query`; None: all
    #: Smallest and largest values over all grades of unjudged documents, 2 x measures x queries.
    extremes: npt.NDArray[np.float64] | None = field(default=None, kw_only=True)

    @property
    def means(self) -> dict[str, float]:
        """Weighted mean over queries of each measure, corrected if a machine graded more queries."""
        if self.machine is not None:
            return {name: corrected.mean for name, corrected in self.machine.means.items()}
        return dict(zip(self.measures, means_over_queries(self.per_query, self.weight).tolist(), strict=True))

    @cached_property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """95% interval of each mean: by the bootstrap, or that of the correction."""
        if self.machine is not None:
            return {name: corrected.interval for name, corrected in self.machine.means.items()}
        ends = bootstrap_intervals(self.per_query, self.weight, seed=self.seed)
        return {name: (low, high) for name, (low, high) in zip(self.measures, ends.tolist(), strict=True)}

    @property
    def coverage(self) -> dict[str, float]:
        """Share of judged documents among those that count for each measure: the weighted mean over queries of ``Judged@k``."""
        if self.judged is None:
            return dict.fromkeys(self.measures, 1.0)
        return dict(zip(self.measures, means_over_queries(self.judged, self.weight).tolist(), strict=True))

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest mean over all grades of unjudged documents; without ``unjudged='bounds'`` an error."""
        if self.extremes is None:
            raise DataError("bounds were not asked for; evaluate with unjudged='bounds'")
        ends = [means_over_queries(rows, self.weight).tolist() for rows in self.extremes]
        return {name: (low, high) for name, low, high in zip(self.measures, *ends, strict=True)}

    def __getitem__(self, name: str) -> "Result":
        if name not in self.measures:
            raise KeyError(f"{name!r} was not evaluated; there are {', '.join(self.measures)}")
        return Result(name, self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.measures)

    def __len__(self) -> int:
        return len(self.measures)

    def __float__(self) -> float:
        """Return the mean of the only measure."""
        if len(self) != 1:
            raise TypeError(f"{self!r} has {len(self)} means; take one by its name, e.g. evaluation.means[{next(iter(self))!r}]")
        return next(iter(self.means.values()))

    def _columns(self) -> dict[str, Values]:
        values = dict(zip(self.measures, self.per_query, strict=True))
        return {"query_id": self.qid, "query_weight": self.weight} | values

    def _glance(self) -> Table:
        counted = np.sum(~np.isnan(self.per_query), axis=1).tolist()
        ends = [f"{low:.4f} to {high:.4f}" for low, high in self.intervals.values()] if len(self.qid) <= QUICK else ["-"] * len(self)
        columns = {"measure": list(self.means), "mean": list(self.means.values()), "95% interval": ends, "queries": counted}
        columns |= {name: list(cells.values()) for name, cells in self.judgment_cells.items()}
        return Table(repr(self), tuple(columns), list(zip(*columns.values(), strict=True))).head()

    @property
    def judgment_cells(self) -> dict[str, dict[str, str]]:
        """Columns of tables on missing judgments, by measure: none if all documents are judged."""
        shares = {} if self.judged is None else {"judged": {name: f"{100 * share:.0f}%" for name, share in self.coverage.items()}}
        ranges = (
            {} if self.extremes is None else {"bounds": {name: f"{low:.4f} .. {high:.4f}" for name, (low, high) in self.bounds.items()}}
        )
        return shares | ranges

    def __repr__(self) -> str:
        return "Evaluation(" + ", ".join(f"{name}={mean:.4f}" for name, mean in self.means.items()) + ")"


@dataclass(frozen=True, repr=False)
class Result:
    """The result of one measure of an evaluation; its ``repr`` is the mean with its interval."""

    name: str
    evaluation: Evaluation

    def __repr__(self) -> str:
        low, high = self.interval
        return f"{self.name} {self.mean:.4f} [{low:.4f}, {high:.4f}]"

    @property
    def measure(self) -> Measure:
        """Measure, whose ``repr`` is its definition."""
        return self.evaluation.measures[self.name]

    @property
    def mean(self) -> float:
        """Weighted mean over queries."""
        return self.evaluation.means[self.name]

    @property
    def interval(self) -> tuple[float, float]:
        """95% interval of the mean: by the bootstrap, or that of the correction."""
        return self.evaluation.intervals[self.name]

    @property
    def values(self) -> PerQuery:
        """Value of each query, NaN if it was skipped."""
        return np.asarray(self.evaluation.per_query[self._row])

    @property
    def coverage(self) -> float:
        """Share of judged documents among those that count."""
        return self.evaluation.coverage[self.name]

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest mean over all grades of unjudged documents."""
        return self.evaluation.bounds[self.name]

    @property
    def bounds_by_query(self) -> tuple[PerQuery, PerQuery]:
        """Smallest and largest value of each query over all grades of unjudged documents."""
        _ = self.bounds
        assert self.evaluation.extremes is not None
        lower, upper = self.evaluation.extremes[:, self._row]
        return lower, upper

    @property
    def _row(self) -> int:
        return list(self.evaluation.measures).index(self.name)


def evaluate(
    data: RankingData | Shards,
    scores: "npt.ArrayLike | Predicts",
    measures: str | Measure | Sequence[str | Measure],
    *,
    preset: str | None = None,
    complete: bool | None = None,
    seed: int = 0,
    threads: int | None = None,
    backend: Backend | None = None,
    clicks: "Clicks | None" = None,
    propensity: "Given | Propensities | None" = None,
    estimator: str | None = None,
    clip: float = 0.05,
    baseline: npt.ArrayLike | None = None,
    unknown: str = "error",
    machine: "RankingData | tuple[RankingData, npt.ArrayLike] | None" = None,
    unjudged: Unjudged = "zero",
    highest_grade: float | None = None,
    judged_only: bool = False,
) -> Evaluation:
    """Evaluate ``scores``, one per row in the caller's order, by each of ``measures``.

    A score of -inf means that the document was not retrieved: it has no rank, but counts among the documents that could have been
    found. With ``complete=False`` queries without any retrieved document are left out (trec_eval without -c). The mean
    over queries is weighted by ``data.query_weight``; ``preset`` supplies the conventions of another tool. For data
    in several files (`er.read_shards`) ``scores`` is a model, which scores each file where it lies, by the ``backend``.

    With ``clicks`` the grades of ``data`` are not used: the value is estimated from a click log by ``estimator``, and the other
    settings are those of [`Clicks.evaluate`][exactrank.clicks.Clicks.evaluate].

    ``machine`` has the grades of a machine, such as a language model, for the queries of ``data`` and for more, beside scores of its rows;
    no scores are needed if ``scores`` is a model. The means are corrected for the errors that the machine makes on the queries of ``data``,
    whose grades are trusted; `Evaluation.machine` says what its grades are worth.

    A grade below 0 means that nobody has judged the document, which then gains nothing. ``unjudged="bounds"`` adds the smallest and the
    largest value for all grades that such documents can have, up to ``highest_grade`` (default: the largest of the data):
    `Evaluation.bounds`. ``judged_only=True`` leaves them out of the ranking (condensed lists). `Evaluation.coverage` is the share of
    judged documents among those that count.

    An `EvaluationWarning` says if the order of tied documents moves a mean, if no document is relevant by the measure's threshold, or if
    less than 80% of the documents that count are judged.

    >>> data = RankingData.from_arrays(None, [0, 2, 1, 0], qid=["a", "a", "a", "b"])
    >>> evaluate(data, [0.3, 0.2, 0.1, 0.9], ["nDCG@10", "RR"])
    Evaluation(nDCG@10=0.3295, RR=0.2500)
    """
    check_data(data, Shards)
    if machine is not None and (clicks is not None or isinstance(data, Shards)):
        raise DataError("machine corrects means over human grades of data in one file; leave out clicks, and read the data with er.read")
    if clicks is not None:
        if isinstance(data, Shards):
            raise DataError("clicks are joined with the documents of one file; give data from er.read, not from er.read_shards")
        about_clicks = {"estimator": estimator or "ips", "clip": clip, "baseline": baseline, "unknown": unknown}
        general = {"preset": preset, "complete": complete, "seed": seed, "threads": threads}
        return clicks.evaluate(measures, data, floats_of("scores", scores), propensity, **about_clicks, **general)
    if clicks is None and judged_only and unjudged == "bounds":
        raise DataError("judged_only leaves unjudged documents out, so they have no bounds; give judged_only or unjudged='bounds'")
    if estimator is not None or propensity is not None or baseline is not None:
        raise DataError("estimator, propensity and baseline are those of an estimate from clicks; give clicks= too, or leave them out")
    evaluation = measure_scores(
        data, scores, measures, preset=preset, complete=complete, seed=seed, threads=threads, backend=backend, machine=machine,
        unjudged=unjudged, highest_grade=highest_grade, judged_only=judged_only,
    )  # fmt: skip
    for remark in evaluation.remarks.values():
        warn_caller(remark, EvaluationWarning)
    return evaluation


def measure_scores(
    data: RankingData | Shards,
    scores: "npt.ArrayLike | Predicts",
    measures: str | Measure | Sequence[str | Measure],
    *,
    preset: str | None = None,
    complete: bool | None = None,
    seed: int = 0,
    threads: int | None = None,
    backend: Backend | None = None,
    machine: "RankingData | tuple[RankingData, npt.ArrayLike] | None" = None,
    unjudged: Unjudged = "zero",
    highest_grade: float | None = None,
    judged_only: bool = False,
) -> Evaluation:
    """Evaluate as `evaluate` does from grades, without a warning: `Evaluation.remarks` has them."""
    named, counts = named_measures(measures, preset), counts_all(preset, complete)
    if isinstance(data, Shards):
        if unjudged != "zero" or judged_only:
            raise DataError("unjudged and judged_only are for data in one file; read it with er.read, not with er.read_shards")
        return _measure_shards(open_shards(data, backend), scores, named, counts, seed, threads)
    if backend is not None and backend.kernels:
        raise IncompatibleError(f"er.evaluate computes nothing by {backend!r}; leave out backend, or use exactrank.torch.evaluate")

    def numbers_of(data: RankingData, scores: "npt.ArrayLike | Predicts") -> PerDocument:
        return data.group(checked_scores(data, scores.predict(data) if _is_model(scores) else scores))

    def in_orders(data: RankingData, scores: PerDocument) -> MeasuredQueries:
        bound = [measure.on(data, threads=threads) for measure in named.values()]
        return values_of([order(measure) if order else measure for measure in bound for order in TIE_ORDERS], scores)

    def values(data: RankingData, scores: PerDocument) -> MeasuredQueries:
        return condensed_values(data, scores, in_orders) if judged_only else in_orders(data, scores)

    check_unjudged_rule(unjudged, highest_grade)
    numbers = numbers_of(data, scores)
    evaluation = _evaluation(named, data, values(data, numbers), counts, seed)
    if unjudged == "bounds":
        highest = checked_highest(data, highest_grade)
        sides = zip(*(UnjudgedBound.pair(measure, highest) for measure in named.values()), strict=True)
        bounds = [values_of([bound.on(data, threads=threads) for bound in side], numbers) for side in sides]
        evaluation = replace(evaluation, extremes=np.stack([_with_gaps(ends, counts) for ends in bounds]))
    if data.y.min() < 0:
        answers = values_of([measure.on(data, threads=threads) for measure in coverage_measures(named)], numbers)
        evaluation = _with_coverage(evaluation, answers, counts, with_remarks=unjudged == "zero" and not judged_only)
    if machine is None:
        return evaluation
    graded, its_scores = machine if isinstance(machine, tuple) else (machine, scores)
    check_data(graded, name="machine")
    by_machine = _evaluation(named, graded, values(graded, numbers_of(graded, its_scores)), counts, seed)
    return replace(evaluation, machine=correct(named, data, evaluation.per_query, graded, by_machine.per_query, seed=seed))


def _measure_shards(
    data: Dataset, scores: "npt.ArrayLike | Predicts", measures: Mapping[str, Measure], count_all: bool, seed: int, threads: int | None
) -> Evaluation:
    """Evaluate a model where the data lie."""
    if not _is_model(scores):
        raise DataError("with data in several files, scores must be a model; give an object with a method predict")
    predict = partial(_predict, scores)
    by_order = [replace(measure.over(data, threads=threads), adjust=order) for measure in measures.values() for order in TIE_ORDERS]
    evaluation = _evaluation(measures, data, values_over(by_order, predict), count_all, seed)
    if data.grades_and_pairs[0].min() >= 0:
        return evaluation
    shares = [measure.over(data, threads=threads) for measure in coverage_measures(measures)]
    return _with_coverage(evaluation, values_over(shares, predict), count_all)


def _evaluation(
    measures: Mapping[str, Measure],
    data: Dataset,
    answers: MeasuredQueries,
    count_all: bool,
    seed: int,
) -> Evaluation:
    """Return the evaluation of values and numbers of retrieved documents, both with a row for each of `TIE_ORDERS` of each measure.

    Without ``count_all`` queries without a retrieved document are skipped.
    """
    values, *extremes = (_with_gaps(answers, count_all)[place :: len(TIE_ORDERS)] for place in range(len(TIE_ORDERS)))
    for (name, measure), row in zip(measures.items(), values, strict=True):
        if np.isinf(row).any():
            grade = "the largest grade" if measure.column is not None else f"grade {data.grades_and_pairs[0].max():g}"
            raise DataError(f"{name} is infinite: the gain of {grade} overflows; use gain='linear', or nDCG, which has no limit")
    ends = zip(*(means_over_queries(rows, data.weights).tolist() for rows in extremes), strict=True)
    tie_ranges = {name: (low, high) for name, (low, high) in zip(measures, ends, strict=True) if low < high}
    evaluation = Evaluation(measures, values, data.qid, data.weights, seed, tie_ranges=tie_ranges)
    return replace(evaluation, remarks=tie_remarks(evaluation.means, tie_ranges, measures) | threshold_remarks(measures, data))


def check_unjudged_rule(unjudged: Unjudged, highest_grade: float | None) -> None:
    """Raise unless the rule for unjudged documents is one of the two, and the highest grade has an effect."""
    if unjudged not in ("zero", "bounds") or (unjudged == "zero" and highest_grade is not None):
        raise DataError(f"unjudged={unjudged!r} and highest_grade={highest_grade!r}: give unjudged='bounds' for bounds, or leave both out")


def _with_gaps(answers: MeasuredQueries, count_all: bool) -> npt.NDArray[np.float64]:
    """Return the values; without ``count_all``, NaN for queries without a retrieved document."""
    values, retrieved = answers
    return values if count_all else np.where(retrieved == 0, np.nan, values)


def _with_coverage(evaluation: Evaluation, answers: MeasuredQueries, count_all: bool, with_remarks: bool = True) -> Evaluation:
    """Return the evaluation with the shares of judged documents, and remarks on those that are low."""
    covered = replace(evaluation, judged=_with_gaps(answers, count_all=False))  # what was not retrieved has no coverage
    remarks = coverage_remarks(covered.measures, covered.coverage) if with_remarks else {}
    merged = {name: f"{covered.remarks[name]}; {remark}" if name in covered.remarks else remark for name, remark in remarks.items()}
    return replace(covered, remarks={**covered.remarks, **merged})


def named_measures(measures: str | Measure | Sequence[str | Measure], preset: str | None) -> dict[str, Measure]:
    """Return the measures to evaluate, by the names as written; a goal with constraints stands for all its measures."""
    goals = [(str(measure), parse_goal(measure, preset)) for measure in listed_measures(measures)]
    return {str(measure) if goal.constraints else text: measure for text, goal in goals for measure in goal.measures}


@runtime_checkable
class Predicts(Protocol):
    """A model or a ranker."""

    def predict(self, X: RankingData) -> PerDocument:
        """Return the score of each row."""


def _is_model(scores: "npt.ArrayLike | Predicts") -> TypeGuard[Predicts]:
    return callable(getattr(scores, "predict", None))


def _predict(model: Predicts, data: RankingData) -> PerDocument:
    return model.predict(data)


def counts_all(preset: str | None, complete: bool | None) -> bool:
    """Return whether queries without a retrieved document count: ``complete`` or, for None, the rule of the preset."""
    return complete if complete is not None else preset is None or find_preset(preset).complete


def checked_scores(data: RankingData, scores: object, name: str = "scores") -> PerDocument:
    """Return ``scores`` as doubles; raise unless there is one per document."""
    numbers = floats_of(name, scores)
    if numbers.ndim == 0:
        raise wrong_kind(name, scores, f"one number per row, of the {data.n_documents:,} documents")
    checked = np.ascontiguousarray(numbers)
    if checked.shape != (data.n_documents,):
        raise DataError(f"{name} has shape {checked.shape} for {data.n_documents} documents; give one number per row")
    return checked
