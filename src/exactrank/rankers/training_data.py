"""Data as rankers get it: grouped by query, with something to learn, without missing values.

Weights have mean 1: no model depends on the unit in which they were given. Nor does it depend on where a row stood. Training meets ties:
documents of equal grade in ListMLE's ideal ranking, of equal score before the first tree has grown. Whatever breaks them by the row's
place would give another model for the same documents in another order. So the documents of each query are sorted by a hash of features,
grade and weight,

    h(i) = xxh3(x_i, y_i, w_i),    64 bits                                                                      (1)

(and by the weights of the pairs that it wins and loses, where some are given), which draws an order at random, but the same one for the
same documents. It is also the same in units that are other powers of two: x is divided by the power of two next above the largest of its
column, by its bits, which loses none. Documents of equal hash are equal, and it does not matter which of them comes first. So all that
follows, sums of floating-point numbers included, has the same bits for any order of the rows.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_128_hexdigest

from exactrank import _core
from exactrank._support.arrays import Matrix, PerDocument, Rows, Table
from exactrank._support.threads import thread_count
from exactrank.data.alignment import align_features
from exactrank.data.blocks import wide_blocks
from exactrank.data.dataset import Dataset, EachBlock, EachPart, GlobalFacts, Mask, Part
from exactrank.data.extra_columns import take_extra_columns
from exactrank.data.folds import deal_folds
from exactrank.data.frame import table_of
from exactrank.data.immutable import seal
from exactrank.data.levels import Levels
from exactrank.data.precision import Offset
from exactrank.data.ranking_data import RankingData
from exactrank.data.scratch_arrays import empty_document_array, take_numbers, take_rows
from exactrank.data.shards import concatenate
from exactrank.data.validation import check_numbers
from exactrank.errors import DataError, IncompatibleError
from exactrank.measures.base import Measure
from exactrank.models.base import Scorer
from exactrank.models.missing import PerFeature, TreeMissing, fill_in, mean_values, refuse_holes, sorted_sums, stand_ins

LARGEST_GRADE = 2.0**53
QID = "qid"  #: the column of a frame that holds query ids, as XGBoost's ranker takes it


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a ranker trains on and, if there is validation data, selects by."""

    data: Dataset
    learnt: Dataset  #: `data`, and the validation data too where parts of both choose
    valid: Dataset | None  #: with the same features
    fill: PerFeature | None  #: what stands for missing values in both
    given: Dataset  #: what `data` was, in the caller's order
    given_valid: Dataset | None
    facts: Mapping[str, Any]  #: of the data as it was given, and of the model to go on from
    start: Scorer | None = None  #: that model's scorer, for the features of `data`

    @property
    def given_learnt(self) -> Dataset:
        """What `learnt` was."""
        return self.given if self.learnt is self.data else joined(self.given, self.given_valid)

    def as_given(self, scores: PerDocument) -> tuple[RankingData, PerDocument]:
        """The data learnt from in the order in which they were given, by which ties may go, with ``scores`` of what is learnt from."""
        if self.learnt is self.data or self.valid is None or self.given_valid is None:
            return self.data.restore_order(self.given, scores)
        first, rest = np.split(scores, [self.data.n_documents])
        (data, scores_of_data), (valid, rest) = self.data.restore_order(self.given, first), self.valid.restore_order(self.given_valid, rest)
        return joined(data, valid).gather(), np.concatenate([scores_of_data, rest])

    def forget(self) -> None:
        """Give back what is remembered of the data."""
        for data in (self.data, self.given, self.valid, self.given_valid):
            if data is not None:
                data.forget()


def judged(
    X: Table,
    y: npt.ArrayLike | None = None,
    *,
    qid: npt.ArrayLike | None = None,
    group: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    query_weight: npt.ArrayLike | None = None,
) -> RankingData:
    """``X`` itself where it is a `RankingData`, else its rows with grades ``y`` and ``qid``, ``group`` or a frame's column ``qid``."""
    if isinstance(X, RankingData):
        given = {"y": y, "qid": qid, "group": group, "sample_weight": sample_weight, "query_weight": query_weight}
        besides = [name for name, value in given.items() if value is not None]
        if besides:
            raise DataError(f"RankingData holds {', '.join(besides)} already; leave {'them' if len(besides) > 1 else 'it'} out")
        return X
    if y is None:
        raise DataError("there are no grades; give y and qid (or group), or a RankingData")
    X, own = parted(X)
    if own is not None and (qid is not None or group is not None):
        raise DataError(f"X has a column {QID!r}, and {'group' if qid is None else 'qid'} is given too; leave out one of them")
    qid = own if qid is None else qid
    if qid is None and group is None:
        raise DataError(_no_queries(X))
    return RankingData.from_arrays(X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight)


def held_out(
    eval_set: Sequence[tuple[Table, npt.ArrayLike]] | tuple[Table, npt.ArrayLike] | None,
    eval_group: Sequence[npt.ArrayLike] | None,
    eval_qid: Sequence[npt.ArrayLike] | None,
) -> tuple[Table, npt.ArrayLike, npt.ArrayLike] | None:
    """What LightGBM's and XGBoost's rankers call ``eval_set``, as ``(X, y, qid)``; None where it is not given.

    >>> held_out([([[1.0], [2.0], [3.0]], [0, 1, 0])], [[2, 1]], None)[2].tolist()
    [0, 0, 1]
    """
    if eval_set is None:
        if eval_group is not None or eval_qid is not None:
            raise DataError(f"{'eval_qid' if eval_group is None else 'eval_group'} is given without eval_set; give both, or neither")
        return None
    sets = [eval_set] if isinstance(eval_set, tuple) else list(eval_set)
    if len(sets) != 1 or len(sets[0]) != 2:
        what = "pairs (X, y)" if len(sets) == 1 else f"{len(sets)} sets"
        raise DataError(
            f"eval_set must hold one pair, as [(X, y)], got {what}; one set chooses the iterate to keep, so give the validation set alone"
        )
    X, y = sets[0]
    for name, given in (("eval_group", eval_group), ("eval_qid", eval_qid)):
        if given is not None and len(given) != 1:
            raise DataError(f"{name} must hold one list, as eval_set does, got {len(given)}; give e.g. {name}=[...]")
    data = judged(X, y, qid=None if eval_qid is None else eval_qid[0], group=None if eval_group is None else eval_group[0])
    return parted(X)[0], y, data.ungroup(np.repeat(np.arange(data.n_queries), data.sizes))


def parted(X: Table) -> tuple[Table, npt.NDArray[Any] | None]:
    """A frame without its column of query ids, and those ids; what has no such column is as it was, without ids."""
    if not hasattr(X, "columns") or QID not in list(X.columns):
        return X, None
    table = table_of(X, "X")
    return table.drop(QID).to_native(), table.get_column(QID).to_numpy()


def _no_queries(X: Table) -> str:
    """What to do where nothing says which row belongs to which query."""
    needed = "give either qid (one query id per row) or group (the size of each query)"
    renamed = [str(name) for name in getattr(X, "columns", ()) if str(name).endswith(f"__{QID}")]
    if renamed:
        return f"{needed}; the column {renamed[0]!r} is taken for a feature: give the ColumnTransformer verbose_feature_names_out=False"
    return (
        f"{needed}, or a frame with a column {QID!r}; scikit-learn passes qid through pipelines and cross-validation only after"
        " sklearn.set_config(enable_metadata_routing=True), and such a column always"
    )


def training_data(
    data: Dataset,
    valid: Dataset | tuple[Table, npt.ArrayLike, npt.ArrayLike] | None,
    missing: TreeMissing,
    threads: int | None,
    start: Scorer | None = None,
    column: str | None = None,
) -> TrainingData:
    """``data`` and ``valid``, a dataset or ``(X, y, qid)``, checked and with missing values filled, unless they are kept.

    Where there is a scorer to ``start`` from, what it fills in stands for missing values. ``column`` is what grades were read from.
    """
    form = Form(data.feature_names, data.offset, data.levels)
    given_valid = None if valid is None else validation(valid, form)
    facts = data.ask(FactsOf(thread_count(threads), missing == "mean"))
    facts.check_something_to_learn(data)
    if missing == "error":
        facts.check_complete(data.feature_names)
    fill = facts.fill(data, missing) if start is None else start.fill
    ready = prepared(data, facts, fill, column)
    return TrainingData(
        data=ready,
        learnt=ready,
        valid=None if given_valid is None else _prepared_valid(given_valid, missing, fill, threads, column),
        fill=fill,
        given=data,
        given_valid=given_valid,
        facts={"queries": data.n_queries, "documents": data.n_documents, "checksum": data.checksum} | facts_of_start(start),
        start=None if start is None else start.relative_to(data.offset, data.feature_names),
    )


def _prepared_valid(valid: Dataset, missing: TreeMissing, fill: PerFeature | None, threads: int | None, column: str | None) -> Dataset:
    facts = valid.ask(FactsOf(thread_count(threads), False))
    facts.check_grades()
    if missing == "error":
        facts.check_complete(valid.feature_names)
    return prepared(valid, facts, fill, column)


def facts_of_start(start: Scorer | None) -> dict[str, str]:
    """What a model says of the one that its training began with."""
    return {} if start is None else {"start": xxh3_128_hexdigest(json.dumps(start.to_record()).encode())}


def with_features_of(start: Scorer, X: Table, data: RankingData, valid: object) -> RankingData:
    """``data`` with the features of the model to go on from: by name where both have names, else by position; with its levels."""
    names = start.feature_names
    if data.n_features != start.n_features:
        raise IncompatibleError(
            f"the data has {data.n_features:,} features, and the model to start from has {start.n_features:,}; give the same ones"
        )
    if (not names or names == data.feature_names) and start.levels == data.levels:
        return data
    if not isinstance(X, RankingData) and not hasattr(X, "columns"):
        return replace(data, feature_names=names, levels=start.levels)
    if isinstance(valid, tuple) and not hasattr(valid[0], "columns"):
        raise IncompatibleError("the model to start from has its features in another order; give valid as a RankingData or a frame too")
    return align_features(data, names or data.feature_names, "the model to start from", start.levels)


@dataclass(frozen=True)
class Form:
    """The features of the training data, which validation data is given too."""

    feature_names: tuple[str, ...]
    offset: Offset | None
    levels: Levels

    def __call__(self, data: RankingData) -> RankingData:
        """Return ``data`` with these features, kept as differences from the same offset."""
        return align_features(data, self.feature_names, "the training data", self.levels).relative_to(self.offset)


def validation(valid: Dataset | tuple[Table, npt.ArrayLike, npt.ArrayLike], form: Form) -> Dataset:
    """Return the validation data, a dataset or ``(X, y, qid)``, with the features of the training data."""
    if isinstance(valid, tuple) and len(valid) == 3:
        X, y, qid = valid
        if not hasattr(X, "columns"):
            offset = np.zeros(len(form.feature_names)) if form.offset is None else form.offset
            return RankingData.from_arrays(X, y, qid=qid, feature_names=form.feature_names, offset=offset)
        return form(RankingData.from_arrays(X, y, qid=qid))
    if isinstance(valid, tuple) or not hasattr(valid, "transform"):
        raise DataError(f"valid must be a RankingData or (X, y, qid), got {type(valid).__name__}")
    return valid.transform(form)


@dataclass(frozen=True, eq=False)
class Facts:
    """What has to be known of all of the data before any part of it can be prepared."""

    low: Matrix
    high: Matrix
    holes: npt.NDArray[np.int64]  #: missing values of each column
    grades: tuple[float, float]  #: the least and the largest
    huge: tuple[int, float] | None  #: a grade that is too large to train on, with its row
    is_mixed: bool  #: has a query documents of different grades, or pairs?
    varies: bool  #: does a feature vary within such a query?
    sums: Sequence[PerFeature]  #: of the columns, by wide blocks, where means are wanted
    heaviest: float  #: weight of a document

    @classmethod
    def of(cls, parts: "Sequence[Facts]") -> "Facts":
        """Return the facts of all ``parts``."""
        return cls(
            np.min([part.low for part in parts], axis=0),
            np.max([part.high for part in parts], axis=0),
            np.sum([part.holes for part in parts], axis=0),
            (min(part.grades[0] for part in parts), max(part.grades[1] for part in parts)),
            next((part.huge for part in parts if part.huge is not None), None),
            any(part.is_mixed for part in parts),
            any(part.varies for part in parts),
            [block for part in parts for block in part.sums],
            max(part.heaviest for part in parts),
        )

    def check_grades(self) -> None:
        """Raise for a grade that is too large to train on."""
        if self.huge is not None:
            check_grades(self.huge[1], where=f"grade of row {self.huge[0]}")

    def check_something_to_learn(self, data: Dataset) -> None:
        """Raise if every ranking is as good as any other, or no model can distinguish documents."""
        self.check_grades()
        if data.n_features == 0:
            raise DataError("nothing to learn: the data has no features; give X, or runs that become features")
        if not self.is_mixed:
            raise DataError(
                f"nothing to learn: every query has documents of a single grade ({data.n_queries:,} queries),"
                " so each ranking is as good as any other; give queries with documents of different grades, or pairs of documents"
            )
        if not self.varies:
            raise DataError(
                f"nothing to learn: all {data.n_features:,} features are constant within each query, so no model can distinguish"
                " documents; give features that differ between the documents of a query"
            )

    def check_complete(self, names: tuple[str, ...]) -> None:
        """Raise if values are missing."""
        refuse_holes(self.holes, names)

    def fill(self, data: Dataset, missing: TreeMissing) -> PerFeature | None:
        """Return what stands for missing values of each feature."""
        if missing == "mean":
            return mean_values(self.sums, data.n_documents - self.holes, data.offset)
        return np.zeros(data.n_features) if missing == "zero" else None

    def units(self, stands: Matrix | None) -> npt.NDArray[np.int32]:
        """Return the units of the columns, in which ``stands`` are instead of missing values."""
        largest = np.maximum(np.abs(self.low), np.abs(self.high))
        if stands is not None:
            largest = np.where(self.holes > 0, np.maximum(largest, np.abs(stands)), largest)
        return units_for(largest)


@dataclass(frozen=True)
class FactsOf:
    """Asks each part for its `Facts`; for sums if ``means`` of the columns are wanted."""

    threads: int
    means: bool

    def ask(self, part: Part) -> Facts:
        """Return those of ``part``."""
        data = part.data
        low, high, holes, *_ = _core.summarize_columns(data.X, self.threads)
        grades, mixed = data.grades_and_pairs[0], np.flatnonzero(mixed_queries(data))
        varies = any(np.any(rows != rows[0]) for rows in (data.X[data.indptr[q] : data.indptr[q + 1]] for q in mixed))
        sums = sorted_sums(data.X, data.indptr[wide_blocks(data.indptr)]) if self.means else []
        heaviest = 0.0 if data.sample_weight is None else float(data.sample_weight.max())
        extremes = float(grades[:, 0].min()), float(grades[:, 1].max())
        return Facts(low, high, holes, extremes, self._huge(part), bool(len(mixed)), varies, sums, heaviest)

    def _huge(self, part: Part) -> tuple[int, float] | None:
        data = part.data
        rows = np.flatnonzero(np.abs(data.y) > LARGEST_GRADE)[:1]
        return (
            None if not len(rows) else (part.first_document + int(rows[0] if data.order is None else data.order[rows[0]]), data.y[rows[0]])
        )

    def combine(self, answers: Sequence[Facts]) -> Facts:
        """Return those of all parts."""
        return Facts.of(answers)


def check_grades(*grades: float, where: str = "a grade") -> None:
    """Raise for a grade that is too large to train on."""
    for grade in grades:
        if abs(grade) > LARGEST_GRADE:
            raise DataError(
                f"{where} is {grade:g}; training takes grades of at most 2^53 in size, beyond which whole numbers are no longer exact;"
                " scale them down"
            )


def joined(first: Dataset, second: Dataset | None) -> Dataset:
    """The queries of both, which have the same features, without their ids and comments."""
    if second is None:
        return first
    both = [replace(part.gather(), qid=np.arange(part.n_queries)) for part in (first, second)]
    weights = np.concatenate([part.weights for part in both])
    return replace(concatenate(both), qid=np.arange(len(weights)), query_weight=weights)


def mixed_queries(data: Dataset) -> Mask:
    """Return which queries have documents of different grades, or pairs."""
    grades, pairs = data.grades_and_pairs
    return np.asarray((grades[:, 0] < grades[:, 1]) | pairs)


def deal_parts(mixed: Mask, parts: int, seed: int) -> Rows:
    """Return the part of each query, drawn at random; each part has some of the ``mixed`` queries, if there are as many."""
    part = np.zeros(len(mixed), np.int64)
    for number, group in enumerate((mixed, ~mixed)):
        part[group] = deal_folds(int(group.sum()), min(parts, int(mixed.sum())), seed + number)
    return part


def check_measure_tells_apart(measure: Measure, data: Dataset, threads: int | None) -> None:
    """Raise where every ranking of ``data`` is worth the same: the best and the worst order of grades are, for every query."""
    if measure.counts_pairs and data.preferences is not None:
        return
    over = replace(measure, ties="input").over(data, threads=threads)
    best, worst = over.values(measure.grades), over.values(measure.negated_grades)
    overflows, differs = bool(np.isinf(best).any()), bool(np.any(best != worst, where=~np.isnan(best)))
    if differs and not overflows:
        return
    ranges = data.ask(EachPart(partial(_range, measure)))
    least, most = min(low for low, _ in ranges), max(high for _, high in ranges)
    if overflows:
        raise DataError(f"{measure} is infinite: the gain of grade {most:g} overflows; use gain='linear', or nDCG, which has no limit")
    raise DataError(
        f"nothing to learn: {measure} is the same for every ranking of every query; choose a measure that counts"
        f" grades such as these ({least:g} to {most:g}) and lists this long (up to {data.longest})"
        + ("" if data.preferences is None else ", or PairwiseCorrect, which counts the pairs that are given")
    )


def _range(measure: Measure, part: Part) -> tuple[float, float]:
    """The least and the largest grade that ``measure`` reads in a part."""
    y = measure.grades(part.data)
    return float(y.min()), float(y.max())


@dataclass(frozen=True)
class GradedBy:
    """Data with what ``measure`` reads for its grades."""

    measure: Measure

    def __call__(self, data: RankingData) -> RankingData:
        return replace(data, y=self.measure.grades(data))


def prepared(data: Dataset, facts: Facts, fill: PerFeature | None, column: str | None = None) -> Dataset:
    """``data`` with ``fill`` instead of missing values, the documents of each query in content order, and weights of mean 1.

    The order goes by weights that are near 1 by a power of two, the largest from 1/2 to 1: so no sum overflows, and no quotient loses
    digits. Their sum, which rounds, is taken in an order that depends on nothing else.
    """
    queries, documents, weights = WeightUnit(), WeightUnit(), data.query_weight
    if weights is not None:
        check_numbers("query_weight", weights)
        queries = WeightUnit(-int(np.frexp(weights.max())[1]))
        queries = replace(queries, mean=float(queries.of(weights).mean()))
    if data.weighs_documents:
        check_numbers("sample_weight", np.array([facts.heaviest]))
        documents = WeightUnit(-int(np.frexp(facts.heaviest)[1]))
        sums = data.ask(EachBlock(partial(_block_weights, documents)))
        documents = replace(documents, mean=math.fsum(sums) / data.n_documents)
    units = facts.units(None if fill is None else stand_ins(fill, data.offset))
    whole = GlobalFacts(facts.grades, data.longest, data.preferences is not None, column)
    return data.transform(Prepared(units, fill, queries, documents), None if weights is None else queries.of(weights), whole)


def _block_weights(unit: "WeightUnit", part: Part) -> list[float]:
    """Return the sum of the documents' weights over each wide block of queries, added up from the smallest on."""
    ends, weights = part.data.indptr[wide_blocks(part.data.indptr)].tolist(), unit.of(np.asarray(part.data.sample_weight))
    return [float(np.sort(weights[start:end]).sum()) for start, end in pairwise(ends)]


@dataclass(frozen=True)
class WeightUnit:
    """What weights are divided by: a power of two, then their mean."""

    exponent: int = 0
    mean: float = 1.0

    def of(self, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the weights in this unit."""
        return np.asarray(np.ldexp(weight, self.exponent) / self.mean)


@dataclass(frozen=True, eq=False)
class Prepared:
    """What `prepared` does to the queries of a part, with facts about all of them."""

    units: npt.NDArray[np.int32]
    fill: PerFeature | None
    queries: WeightUnit
    documents: WeightUnit

    def __call__(self, data: RankingData) -> RankingData:
        near_one: dict[str, Any] = {}
        if data.query_weight is not None:
            near_one["query_weight"] = self.queries.of(data.query_weight)
        if data.sample_weight is not None:
            near_one["sample_weight"] = replace(self.documents, mean=1.0).of(data.sample_weight)
        weighed = replace(data, **near_one).with_columns(data.by_column) if near_one else data
        ordered = in_content_order(weighed, None if self.fill is None else stand_ins(self.fill, data.offset), self.units)
        if ordered.sample_weight is None:
            return ordered
        weight = replace(self.documents, exponent=0).of(ordered.sample_weight)
        return replace(ordered, sample_weight=weight).with_columns(ordered.by_column)


def in_content_order(data: RankingData, stands: Matrix | None = None, units: npt.NDArray[np.int32] | None = None) -> RankingData:
    """``data`` with the documents of each query by (1), or ``data`` itself where they are; ``order`` still leads to the caller's rows.

    Missing values are replaced by ``stands``, one number per feature, where these are given. ``units`` are those of the columns of the
    whole that ``data`` is a part of.

    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], group=[3])
    >>> found = in_content_order(data)
    >>> found.X[:, 0].tolist(), found.order.tolist()
    ([3.0, 1.0, 2.0], [2, 0, 1])
    """
    has_holes = stands is not None and bool(np.any(_core.summarize_columns(data.X, thread_count(None))[2]))
    stands = stands if has_holes else None
    rows = content_order(data, stands, units)
    if stands is None and bool(np.all(rows[1:] > rows[:-1])):
        return data
    X = take_rows(data.X, rows)
    if stands is not None:
        fill_in(X, stands)
    found = replace(
        data,
        X=seal(X),
        y=seal(take_numbers(data.y, rows, data.X)),
        docid=None if data.docid is None else data.docid.take(rows),
        comment=None if data.comment is None else data.comment.take(rows),
        sample_weight=None if data.sample_weight is None else data.sample_weight[rows],
        extra_columns=take_extra_columns(data.extra_columns, rows),
        order=rows if data.order is None else seal(take_numbers(data.order, rows, data.X)),
        preferences=None if data.preferences is None else data.preferences.renumber(np.argsort(rows)),
    )
    return found if data.by_column is None else found.with_columns(data.by_column.reorder(rows, stands))


def content_order(data: RankingData, stands: Matrix | None = None, units: npt.NDArray[np.int32] | None = None) -> Rows:
    """The rows of ``data``, query by query, in the order of their hashes; ``stands`` are what missing values count as."""
    numbers = [data.y] if data.sample_weight is None else [data.y, data.sample_weight]
    numbers += [values for _, values in sorted(data.extra_columns.items())]
    numbers += [] if data.preferences is None else data.preferences.wins_and_losses(data.n_documents)
    units, rows = units_of(data, stands) if units is None else units, empty_document_array((data.n_documents,), np.int64, data.X)
    _core.content_order(data.X, units, stands, numbers, data.indptr, rows, thread_count(None))
    return seal(rows)


def units_of(data: RankingData, stands: Matrix | None) -> npt.NDArray[np.int32]:
    """The power of two next above each column's largest size, where the exponent of a float has its bits."""
    low, high, holes, _ = _core.summarize_columns(data.X, thread_count(None))
    if stands is not None:
        low, high = np.where(holes > 0, np.minimum(low, stands), low), np.where(holes > 0, np.maximum(high, stands), high)
    return units_for(np.maximum(np.abs(low), np.abs(high)))


def units_for(largest: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """The same, of the largest sizes."""
    return np.left_shift(np.frexp(np.where(np.isfinite(largest), largest, 1.0))[1], 23, dtype=np.int32)
