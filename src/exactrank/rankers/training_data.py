"""Training data: checked, grouped by query, without missing values, in an order of its content.

Weights have mean 1, so no model depends on their unit. Nor does a model depend on the order of the rows. Training meets ties: documents of
equal grade in ListMLE's ideal ranking, of equal score before the first tree has grown. To break them by row number would give another
model for the same documents in another order. So the documents of each query are sorted by a hash of features, grade and weight,

    h(i) = xxh3(x_i, y_i, w_i),    64 bits                                                                      (1)

(and by the weights of the pairs that a document wins and loses, if there are pairs). The order is random, but the same for the same
documents. It does not change if a feature is multiplied by a power of two: x is divided by the power of two next above the largest value
of its column, which loses no bits. Documents of equal hash are equal, and it does not matter which of them comes first. So everything
that follows, sums of floating-point numbers included, has the same bits for any order of the rows.
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
from exactrank._support.arrays import Ids, Matrix, PerDocument, Rows, Table
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
    """The data that a ranker trains on, and validation data, if there is any, both as prepared and as the caller gave them."""

    data: Dataset
    joint: Dataset  #: `data`, joined with the validation data if parts of both are held out in turn
    valid: Dataset | None  #: with the same features
    fill: PerFeature | None  #: replaces missing values in both
    original: Dataset  #: `data` before its preparation, in the caller's order
    original_valid: Dataset | None
    facts: Mapping[str, object]  #: about the original data, and about the model that training continues
    start: Scorer | None = None  #: the scorer of that model, for the features of `data`

    @property
    def original_joint(self) -> Dataset:
        """`joint` before its preparation."""
        return self.original if self.joint is self.data else join_queries(self.original, self.original_valid)

    def in_original_order(self, scores: PerDocument) -> tuple[RankingData, PerDocument]:
        """Return `joint` and the ``scores`` of its documents in the caller's order, which may break ties."""
        if self.joint is self.data or self.valid is None or self.original_valid is None:
            return self.data.restore_order(self.original, scores)
        first, last = np.split(scores, [self.data.n_documents])
        data, first = self.data.restore_order(self.original, first)
        valid, last = self.valid.restore_order(self.original_valid, last)
        return join_queries(data, valid).gather(), np.concatenate([first, last])

    def forget(self) -> None:
        """Free the memory of what is remembered of the data."""
        for data in (self.data, self.original, self.valid, self.original_valid):
            if data is not None:
                data.forget()


def to_ranking_data(
    X: Table,
    y: npt.ArrayLike | None = None,
    *,
    qid: npt.ArrayLike | None = None,
    group: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    query_weight: npt.ArrayLike | None = None,
) -> RankingData:
    """Return ``X`` if it is a `RankingData`; otherwise make one of its rows, grades ``y``, and ``qid``, ``group`` or the column ``qid``."""
    if isinstance(X, RankingData):
        arguments = {"y": y, "qid": qid, "group": group, "sample_weight": sample_weight, "query_weight": query_weight}
        names = [name for name, value in arguments.items() if value is not None]
        if names:
            raise DataError(f"RankingData holds {', '.join(names)} already; leave {'them' if len(names) > 1 else 'it'} out")
        return X
    if y is None:
        raise DataError("there are no grades; give y and qid (or group), or a RankingData")
    X, column = split_qid(X)
    if column is not None and (qid is not None or group is not None):
        raise DataError(f"X has a column {QID!r}, and {'group' if qid is None else 'qid'} is given too; leave out one of them")
    qid = column if qid is None else qid
    if qid is None and group is None:
        raise DataError(_missing_queries(X))
    return RankingData.from_arrays(X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight)


def read_eval_set(
    eval_set: Sequence[tuple[Table, npt.ArrayLike]] | tuple[Table, npt.ArrayLike] | None,
    eval_group: Sequence[npt.ArrayLike] | None,
    eval_qid: Sequence[npt.ArrayLike] | None,
) -> tuple[Table, npt.ArrayLike, npt.ArrayLike] | None:
    """Return ``eval_set``, as rankers of LightGBM and XGBoost have it, in the form ``(X, y, qid)``; None if there is none.

    >>> read_eval_set([([[1.0], [2.0], [3.0]], [0, 1, 0])], [[2, 1]], None)[2].tolist()
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
    for name, lists in (("eval_group", eval_group), ("eval_qid", eval_qid)):
        if lists is not None and len(lists) != 1:
            raise DataError(f"{name} must hold one list, as eval_set does, got {len(lists)}; give e.g. {name}=[...]")
    data = to_ranking_data(X, y, qid=None if eval_qid is None else eval_qid[0], group=None if eval_group is None else eval_group[0])
    return split_qid(X)[0], y, data.ungroup(data.query_numbers)


def split_qid(X: Table) -> tuple[Table, Ids | None]:
    """Return a frame without its column of query ids, and these ids; a table without such a column stays as it is, with None."""
    if not hasattr(X, "columns") or QID not in list(X.columns):
        return X, None
    table = table_of(X, "X")
    return table.drop(QID).to_native(), table.get_column(QID).to_numpy()


def _missing_queries(X: Table) -> str:
    """Return the error text for rows without query ids."""
    remedy = "give either qid (one query id per row) or group (the size of each query)"
    renamed = [str(name) for name in getattr(X, "columns", ()) if str(name).endswith(f"__{QID}")]
    if renamed:
        return f"{remedy}; the column {renamed[0]!r} is taken for a feature: give the ColumnTransformer verbose_feature_names_out=False"
    return (
        f"{remedy}, or a frame with a column {QID!r}; scikit-learn passes qid through pipelines and cross-validation only after"
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
    """Check ``data`` and ``valid``, a dataset or ``(X, y, qid)``, fill missing values unless they are kept, and sort by content.

    If training continues from the scorer ``start``, its values replace missing ones. ``column`` is the column that grades were read from.
    """
    form = FeatureForm(data.feature_names, data.offset, data.levels)
    original_valid = None if valid is None else align_validation(valid, form)
    facts = data.ask(DescribeData(thread_count(threads), missing == "mean"))
    facts.check_something_to_learn(data)
    fill = facts.fill(data, missing) if start is None else start.fill
    prepared_data, prepared_valid = prepare_dataset(data, facts, missing, fill, column), None
    if original_valid is not None:
        facts_of_valid = original_valid.ask(DescribeData(thread_count(threads), False))
        prepared_valid = prepare_dataset(original_valid, facts_of_valid, missing, fill, column)
    start_hash = {} if start is None else {"start": xxh3_128_hexdigest(json.dumps(start.to_record()).encode())}
    return TrainingData(
        data=prepared_data,
        joint=prepared_data,
        valid=prepared_valid,
        fill=fill,
        original=data,
        original_valid=original_valid,
        facts={"queries": data.n_queries, "documents": data.n_documents, "checksum": data.checksum} | start_hash,
        start=None if start is None else start.relative_to(data.offset, data.feature_names),
    )


def with_features_of(start: Scorer, X: Table, data: RankingData, valid: object) -> RankingData:
    """Return ``data`` with the features and levels of the scorer ``start``: by name if both have names, otherwise by position."""
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
class FeatureForm:
    """The form of the features of training data, to which validation data is brought."""

    feature_names: tuple[str, ...]
    offset: Offset | None
    levels: Levels

    def __call__(self, data: RankingData) -> RankingData:
        """Return ``data`` with these features, as differences from the same offset."""
        return align_features(data, self.feature_names, "the training data", self.levels).relative_to(self.offset)


def align_validation(valid: Dataset | tuple[Table, npt.ArrayLike, npt.ArrayLike], form: FeatureForm) -> Dataset:
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
    """The facts about all data that the preparation of any part depends on."""

    low: Matrix
    high: Matrix
    holes: npt.NDArray[np.int64]  #: missing values of each column
    grades: tuple[float, float]  #: the lowest and the highest
    huge: tuple[int, float] | None  #: the row and the value of a grade that is too large to train on
    is_mixed: bool  #: a query has documents of different grades, or pairs
    varies: bool  #: a feature varies within such a query
    sums: Sequence[PerFeature]  #: sums of the columns over wide blocks, if means are wanted
    heaviest: float  #: the largest weight of a document

    def check_grades(self) -> None:
        """Raise for a grade that is too large to train on."""
        if self.huge is not None:
            row, grade = self.huge
            raise DataError(
                f"grade of row {row} is {grade:g}; training takes grades of at most 2^53 in size, beyond which whole numbers are no longer"
                " exact; scale them down"
            )

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

    def fill(self, data: Dataset, missing: TreeMissing) -> PerFeature | None:
        """Return the value of each feature that replaces missing ones."""
        if missing == "mean":
            return mean_values(self.sums, data.n_documents - self.holes, data.offset)
        return np.zeros(data.n_features) if missing == "zero" else None


@dataclass(frozen=True)
class DescribeData:
    """The question for the `Facts` of data; with sums if ``means`` of the columns are wanted."""

    threads: int
    means: bool

    def ask(self, part: Part) -> Facts:
        """Return the facts of ``part``."""
        data = part.data
        low, high, holes, *_ = _core.summarize_columns(data.X, self.threads)
        grades, mixed = data.grades_and_pairs[0], np.flatnonzero(mixed_queries(data))
        varies = any(np.any(rows != rows[0]) for rows in (data.X[data.indptr[q] : data.indptr[q + 1]] for q in mixed))
        sums = sorted_sums(data.X, data.indptr[wide_blocks(data.indptr)]) if self.means else []
        heaviest = 0.0 if data.sample_weight is None else float(data.sample_weight.max())
        extremes = float(grades[:, 0].min()), float(grades[:, 1].max())
        return Facts(low, high, holes, extremes, _find_huge_grade(part), bool(len(mixed)), varies, sums, heaviest)

    def combine(self, answers: Sequence[Facts]) -> Facts:
        """Return the facts of all parts."""
        return Facts(
            np.min([part.low for part in answers], axis=0),
            np.max([part.high for part in answers], axis=0),
            np.sum([part.holes for part in answers], axis=0),
            (min(part.grades[0] for part in answers), max(part.grades[1] for part in answers)),
            next((part.huge for part in answers if part.huge is not None), None),
            any(part.is_mixed for part in answers),
            any(part.varies for part in answers),
            [block for part in answers for block in part.sums],
            max(part.heaviest for part in answers),
        )


def _find_huge_grade(part: Part) -> tuple[int, float] | None:
    """Return the row and the value of the first grade that is too large to train on; None if there is none."""
    data, rows = part.data, np.flatnonzero(np.abs(part.data.y) > LARGEST_GRADE)[:1]
    if not len(rows):
        return None
    return part.first_document + int(rows[0] if data.order is None else data.order[rows[0]]), data.y[rows[0]]


def join_queries(first: Dataset, second: Dataset | None) -> Dataset:
    """Return the queries of both datasets, which have the same features, without ids and comments."""
    if second is None:
        return first
    parts = [replace(part.gather(), qid=np.arange(part.n_queries)) for part in (first, second)]
    weights = np.concatenate([part.weights for part in parts])
    return replace(concatenate(parts), qid=np.arange(len(weights)), query_weight=weights)


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


def check_measure_distinguishes(measure: Measure, data: Dataset, threads: int | None) -> None:
    """Raise if all rankings of ``data`` have the same value: for each query, the best and the worst order of grades do."""
    if measure.counts_pairs and data.preferences is not None:
        return
    over = replace(measure, ties="input").over(data, threads=threads)
    best, worst = over.values(measure.grades), over.values(measure.negated_grades)
    overflows, differs = bool(np.isinf(best).any()), bool(np.any(best != worst, where=~np.isnan(best)))
    if differs and not overflows:
        return
    ranges = data.ask(EachPart(partial(_range, measure)))
    lowest, highest = min(low for low, _ in ranges), max(high for _, high in ranges)
    if overflows:
        raise DataError(f"{measure} is infinite: the gain of grade {highest:g} overflows; use gain='linear', or nDCG, which has no limit")
    raise DataError(
        f"nothing to learn: {measure} is the same for every ranking of every query; choose a measure that counts"
        f" grades such as these ({lowest:g} to {highest:g}) and lists this long (up to {data.longest})"
        + ("" if data.preferences is None else ", or PairwiseCorrect, which counts the pairs that are given")
    )


def _range(measure: Measure, part: Part) -> tuple[float, float]:
    """Return the lowest and the highest grade that ``measure`` reads in a part."""
    y = measure.grades(part.data)
    return float(y.min()), float(y.max())


@dataclass(frozen=True)
class WithGrades:
    """The transformation of data whose grades become those that ``measure`` reads."""

    measure: Measure

    def __call__(self, data: RankingData) -> RankingData:
        return replace(data, y=self.measure.grades(data))


def prepare_dataset(data: Dataset, facts: Facts, missing: TreeMissing, fill: PerFeature | None, column: str | None) -> Dataset:
    """Return ``data`` with ``fill`` instead of missing values, the documents of each query in content order, and weights of mean 1.

    For the order, weights are divided by a power of two, so that the largest lies between 1/2 and 1: no sum overflows, and no quotient
    loses digits. Their sum, which rounds, is taken in an order that depends on nothing else.
    """
    facts.check_grades()
    if missing == "error":
        refuse_holes(facts.holes, data.feature_names)
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
    units = units_of(facts.low, facts.high, facts.holes, None if fill is None else stand_ins(fill, data.offset))
    global_facts = GlobalFacts(facts.grades, data.longest, data.preferences is not None, column)
    return data.transform(Preparation(units, fill, queries, documents), None if weights is None else queries.of(weights), global_facts)


def _block_weights(unit: "WeightUnit", part: Part) -> list[float]:
    """Return the sum of the documents' weights over each wide block of queries, added up from the smallest on."""
    ends, weights = part.data.indptr[wide_blocks(part.data.indptr)].tolist(), unit.of(np.asarray(part.data.sample_weight))
    return [float(np.sort(weights[start:end]).sum()) for start, end in pairwise(ends)]


@dataclass(frozen=True)
class WeightUnit:
    """The divisors of weights: a power of two, then their mean."""

    exponent: int = 0
    mean: float = 1.0

    def of(self, weight: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the weights in this unit."""
        return np.asarray(np.ldexp(weight, self.exponent) / self.mean)


@dataclass(frozen=True, eq=False)
class Preparation:
    """The transformation of a part in `prepare_dataset`, which depends on facts about all parts."""

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


def in_content_order(data: RankingData, fill_values: Matrix | None = None, units: npt.NDArray[np.int32] | None = None) -> RankingData:
    """Return ``data`` with the documents of each query sorted by (1); its ``order`` still holds the caller's rows.

    If ``fill_values`` are given, one number per feature, they replace missing values. ``units`` are the units of the columns, which
    depend on all parts of the data.

    >>> data = RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], group=[3])
    >>> ordered = in_content_order(data)
    >>> ordered.X[:, 0].tolist(), ordered.order.tolist()
    ([3.0, 1.0, 2.0], [2, 0, 1])
    """
    has_holes = fill_values is not None and bool(np.any(_core.summarize_columns(data.X, thread_count(None))[2]))
    fill_values = fill_values if has_holes else None
    rows = content_order(data, fill_values, units)
    if fill_values is None and bool(np.all(rows[1:] > rows[:-1])):
        return data
    X = take_rows(data.X, rows)
    if fill_values is not None:
        fill_in(X, fill_values)
    ordered = replace(
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
    return ordered if data.by_column is None else ordered.with_columns(data.by_column.reorder(rows, fill_values))


def content_order(data: RankingData, fill_values: Matrix | None = None, units: npt.NDArray[np.int32] | None = None) -> Rows:
    """Return the rows of ``data``, query by query, in the order of their hashes; missing values count as ``fill_values``."""
    numbers = [data.y] if data.sample_weight is None else [data.y, data.sample_weight]
    numbers += [values for _, values in sorted(data.extra_columns.items())]
    numbers += [] if data.preferences is None else data.preferences.wins_and_losses(data.n_documents)
    if units is None:
        low, high, holes, _ = _core.summarize_columns(data.X, thread_count(None))
        units = units_of(low, high, holes, fill_values)
    rows = empty_document_array((data.n_documents,), np.int64, data.X)
    _core.content_order(data.X, units, fill_values, numbers, data.indptr, rows, thread_count(None))
    return seal(rows)


def units_of(low: Matrix, high: Matrix, holes: npt.NDArray[np.int64], fill_values: Matrix | None) -> npt.NDArray[np.int32]:
    """Return the power of two next above the largest absolute value of each column, as the bits of a float's exponent.

    Columns lie between ``low`` and ``high``, and have this number of ``holes``, which ``fill_values`` replace.
    """
    largest = np.maximum(np.abs(low), np.abs(high))
    if fill_values is not None:
        largest = np.where(holes > 0, np.maximum(largest, np.abs(fill_values)), largest)
    return np.left_shift(np.frexp(np.where(np.isfinite(largest), largest, 1.0))[1], 23, dtype=np.int32)
