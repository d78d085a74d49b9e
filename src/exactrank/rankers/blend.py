"""Blend: the sum of several cross-fitted rankers, with exactly optimal weights on out-of-fold scores.

Each member is trained once for every part of the queries, on all others except one more that chooses its iterate. So the score of each
document comes from a model that has never seen its query, neither to learn nor to choose, and weights can be chosen by these scores.
Members whose models are of one kind form a family and count alike: few queries can weigh families, but not their members:

    s(x) = sum_f w_f s_f(x),    w_f >= 0,    s_f the mean of its members' scores, all of unit deviation within queries          (1)

Between two families the measure is a step function of their weights that is known exactly, so its maximum is found. With more families,
each is traded against the rest in turn. The model is one linear model, one forest, or the sum of both.
"""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from exactrank._support.arrays import PerDocument, PerQuery, Rows
from exactrank._support.numerics import matmul
from exactrank._support.settings import setting
from exactrank.data.alignment import name_list
from exactrank.data.dataset import Dataset
from exactrank.data.precision import Offset
from exactrank.data.ranking_data import RankingData
from exactrank.errors import ExactRankError, IncompatibleError, SettingError
from exactrank.learning.objectives.line_search import LineSearch
from exactrank.learning.objectives.step_function import SAME_VALUE
from exactrank.learning.objectives.within_query import deviation
from exactrank.learning.training.judge import Task
from exactrank.learning.training.progress import Trained
from exactrank.learning.training.run import Recorder
from exactrank.measures.bound import BoundMeasure
from exactrank.measures.ties import worst_tie_order
from exactrank.models.base import Scorer
from exactrank.models.estimators.adapter import is_estimator
from exactrank.models.missing import PerFeature, TreeMissing
from exactrank.models.sum import Sum, sum_of
from exactrank.rankers import RANKERS
from exactrank.rankers.base import Ranker
from exactrank.rankers.checks import Takes
from exactrank.rankers.division import Division, cross_fit, out_of_fold
from exactrank.rankers.foreign import Foreign
from exactrank.rankers.notation import parse_method, split_methods
from exactrank.rankers.numeric import NumericData

LINEAR = ("directrank", "lambdarank", "smoothrank(max_iter=10)")
FORESTS = ("mart(extra=True)", "lambdamart(lambdas='sampled', extra=True)")
#: The members of each named set, quick ones first.
SETS: Mapping[str, Sequence[str]] = {"linear": LINEAR, "trees": FORESTS, "all": (*LINEAR[:2], FORESTS[0], LINEAR[2], FORESTS[1])}
#: Maximum number of rounds of exchanges between families and the rest, and the minimum gain of a round.
ROUNDS, GAIN = 20, 1e-9

Weights = npt.NDArray[np.float64]  #: one per family


class Blend(Ranker):
    """The exactly weighted sum of several cross-fitted rankers.

    >>> from exactrank import RankingData
    >>> X, y = [[1.0, 0.0], [0.0, 1.0], [0.2, 0.1]] * 4, [0, 2, 1] * 4
    >>> blend = Blend(members="ridge, directrank", bags=3).fit(RankingData.from_arrays(X, y, group=[3] * 4))
    >>> blend.estimate_.mean, blend.model_.scorer.kind
    (1.0, 'linear')
    """

    name = "blend"
    takes = Takes(categories=True, shards=True)  # categories where one of its members does, shards where all do

    members: str | Sequence[object] = setting(
        default="all",
        help="What to blend: 'linear' (gives a linear model), 'trees' (a forest), 'all' (the sum of both), or rankers as they are"
        " written elsewhere, separated by commas; in Python also a list of rankers, ours and those of other libraries.",
        search=("all", "linear", "trees"),
    )
    weighting: Literal["exact", "equal"] = setting(
        default="exact", help="Weights of linear models, trees and networks: the best on out-of-fold scores, or equal ones."
    )
    bags: int | None = setting(
        default=10, help="Number of parts to divide the queries into; each ranker is trained once per part.", at_least=3, at_most=1000
    )
    bagging: ClassVar[Literal["cross-fit"]] = "cross-fit"  # type: ignore[misc]  # there is no other way
    seconds: float | None = setting(
        default=None, help="Stop after about this many seconds, with the rankers that are ready by then.", above=0, free=True
    )
    categorical: Sequence[str] = setting(
        default=(),
        help="Names of features whose values are categories (whole numbers from 0), not amounts. Trees split them; other members leave them"
        " out.",
    )
    missing: TreeMissing = setting(  # type: ignore[assignment]
        default="keep",
        help="How to treat a missing value: kept by trees, while the feature's mean in training stands for it in other members; or as an"
        " error, 0, or the mean in all of them.",
    )

    def check_values(self) -> None:
        """Raise if a setting, or one of a member, has a value that it may not have."""
        super().check_values()
        for member in self._members().values():
            member.check_values()

    def check_effects(self, data: Dataset, validated: bool = False) -> None:
        """Raise if a setting, or one of a member, has no effect on ``data``, or if no member takes categories that it has."""
        super().check_effects(data, validated)
        if unknown := [name for name in self.categorical if name not in data.feature_names]:
            names = name_list(list(data.feature_names))
            raise SettingError(f"Blend: categorical names {unknown[0]!r}, which is not a feature; there are {names}")
        members = self._members().values()
        if data.levels and not any(member.takes.categories for member in members):
            raise IncompatibleError(
                f"Blend: its members take numbers alone, and there are categories in {name_list(list(map(repr, data.levels)))}; encode"
                " them as numbers, leave them out, or blend a tree ranker too, as members='all' does"
            )
        for member in members:
            member.check_effects(data if member.takes.categories else data.without_levels(), validated=True)

    def check_shards(self, data: Dataset) -> None:
        """Raise if a member does not train on data in partitions, or its scores cannot be compared there."""
        super().check_shards(data)
        for name, member in self._members().items():
            if not member.takes.shards:
                raise IncompatibleError(f"Blend: {name} needs its data in one file; leave it out, or er.read one file")
            member.check_shards(data)
        if self.goal().measure.ties == "docid":
            raise IncompatibleError(f"Blend: {self.measure} ranks ties by document ids, which stay in their files; write nDCG, for example")

    def _members(self) -> dict[str, Ranker]:
        """Return the rankers by their notation."""
        entries = self.members
        if isinstance(entries, str):
            entries = SETS.get(entries) or split_methods(entries)
        members: dict[str, Ranker] = {}
        for entry in entries:
            name, ranker = (entry, _ranker(entry)) if isinstance(entry, str) else (repr(entry), entry)
            if not isinstance(ranker, Ranker) and is_estimator(ranker):
                ranker = Foreign(estimator=ranker)
                name = ranker.title
            if not isinstance(ranker, Ranker) or isinstance(ranker, Blend):
                raise SettingError(
                    f"Blend: {entry!r} cannot be blended; give rankers, e.g. 'lambdamart(leaves=7), ridge', or estimators of LightGBM,"
                    " XGBoost, CatBoost or scikit-learn"
                )
            if ranker.bags:
                raise SettingError(f"Blend: {name} has bags={ranker.bags}, but the blend cross-fits its members; leave bags out")
            measure = {} if not ranker.settings["measure"].is_default(ranker.measure) else {"measure": self.measure}
            seed = {"seed": self.seed} if ranker.settings["seed"].is_default(ranker.seed) else {}
            setting = ranker.settings.get("categorical")
            takes_ours = setting is not None and setting.is_default(vars(ranker)["categorical"])
            categorical = {"categorical": self.categorical} if takes_ours else {}
            if name in members:
                raise SettingError(f"Blend: {name} is named twice; name each once")
            members[name] = clone(ranker).set_params(bags=0, threads=self.threads, **measure, **seed, **categorical)
        if not members:
            raise SettingError("Blend: there are no members; give at least one")
        return members

    def train(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        return self._fit(task, recorder)

    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        start, data, members = time.monotonic(), task.data, self._members()
        judgments, parts = data.judgments(), Division.of(data, self.bags or 0, self.seed).part
        if data.levels:  # which every model that stands needs to read the table
            members = dict(sorted(members.items(), key=lambda member: not member[1].takes.categories))
        views, remarks = self._views(data, members)
        ready: list[_Member] = []
        blended: Trained[Scorer] | None = None
        failed: dict[str, ExactRankError] = {}
        for number, (name, ranker) in enumerate(members.items()):
            if data.levels and not ready and not ranker.takes.categories:
                break
            blend_so_far, view = blended, views[name]  # the result if training is interrupted
            part: Recorder[Scorer] = recorder.part(number, len(members), partial(_better, blend_so_far, view), latest=True)
            if self.seconds is not None:
                _end_at(start + self.seconds, part)
            try:
                trained, unseen = cross_fit(ranker, replace(task, data=view.data), self.bags or 0, part)
                scorer = view.scorer_of_table(trained.iterate)
            except _TimeUp:
                if not ready:
                    raise SettingError(self._too_short(name, part)) from None
                break
            except ExactRankError as error:
                remarks.append(f"{name} is left out of the blend: {error}")
                if not (
                    isinstance(error, IncompatibleError) and isinstance(self.members, str) and self.members in SETS
                ):  # members of a set may be unable to train on the measure
                    failed[name] = error
                continue
            ready.append(_Member(name, scorer, out_of_fold(view.data, unseen, self.threads), trained.trouble))
            blended = self._blend_members(task, judgments, parts, ready, recorder, len(members), remarks)
        for view in views.values():
            if view.data is not data:
                view.data.forget()
        if blended is None:
            raise next(iter(failed.values()))
        for name, reason in failed.items():
            warnings.warn(f"{name} is left out of the blend: {reason}", stacklevel=5)
        return blended

    def _views(self, data: Dataset, members: Mapping[str, Ranker]) -> "tuple[dict[str, NumericData], list[str]]":
        """Return the form of ``data`` that each of the ``members`` reads, and remarks."""
        categories = {*data.levels, *self.categorical}
        views: dict[tuple[bool, bool], NumericData] = {}
        views_of_members: dict[str, NumericData] = {}
        for name, member in members.items():
            takes = member.takes.categories, self.missing != "keep" or member.keeps_missing
            if takes not in views:
                views[takes] = NumericData.of(data, () if takes[0] else categories, keep=takes[1], threads=self.threads)
            views_of_members[name] = views[takes]
        remarks: list[str] = []
        if blind := [name for name, view in views_of_members.items() if view.names]:
            left_out = name_list([repr(name) for name in data.feature_names if name in categories])
            remarks.append(f"{', '.join(blind)}: without {left_out}, since categories are not amounts")
            warnings.warn(f"Blend: {remarks[0]}", stacklevel=6)
        if filled := [name for name, view in views_of_members.items() if view.form.fill_values is not None]:
            remarks.append(f"{', '.join(filled)}: the feature's mean stands for missing values")
        return views_of_members, remarks

    def complete_scorer(self, scorer: Scorer, fill: PerFeature | None, offset: Offset | None) -> Scorer:
        if self.missing != "keep":
            return super().complete_scorer(scorer, fill, offset)
        parts = scorer.parts if isinstance(scorer, Sum) else (scorer,)
        anchored = [_absolute(part, offset).with_offset(offset) for part in parts]
        return replace(scorer, parts=tuple(anchored)) if isinstance(scorer, Sum) else anchored[0]

    def _too_short(self, name: str, part: Recorder[Scorer]) -> str:
        completed = sum(key.startswith(f"{part.place}:mean ") for key in part.journal.entries)
        needs = "longer than that for the first part"
        if completed and self.seconds:
            needs = f"about {self.seconds * (self.bags or 0) / completed:.3g}"
        return f"Blend: seconds={self.seconds} is too short: {name} takes {needs}; allow more seconds, or give faster members"

    def _blend_members(
        self, task: Task, data: RankingData, part: Rows, ready: "Sequence[_Member]", recorder: Recorder[Scorer], members: int,
        remarks: Sequence[str],
    ) -> Trained[Scorer]:  # fmt: skip
        """Return the weighted sum of the members that are ``ready``; out-of-fold scores use weights chosen by the other parts.

        ``data`` has the grades of the documents, and ``part`` the part of each query.
        """
        measure = task.measure if data is task.data else replace(task.measure, column=None)  # the grades were read from the column
        bound = worst_tie_order(measure).on(data, threads=task.threads)
        families: dict[str, list[_Member]] = {}
        for member in ready:
            families.setdefault(member.scorer.kind, []).append(member.of_unit_deviation(data))
        scores = np.stack([np.mean([member.oof for member in family], axis=0) for family in families.values()])
        sizes = np.array([deviation(row, data.indptr) or 1.0 for row in scores])
        scores /= sizes[:, None]
        oof = np.full(data.n_documents, np.nan)
        for number in range(int(part.max()) + 1):
            rows = np.repeat(part == number, data.sizes)
            oof[rows] = matmul(self._weights(bound, scores, np.where(part == number, 0.0, bound.weights)), scores[:, rows])
        self.__dict__["oof_"] = oof
        weights = self._weights(bound, scores, bound.weights)
        shares = dict(zip(families, (weights / sizes).tolist(), strict=True))
        terms = [(member.scorer, shares[kind] / len(family)) for kind, family in families.items() for member in family]
        if not data.levels:  # a part of no weight may know the levels
            terms = [(scorer, weight) for scorer, weight in terms if weight]
        scorer = sum_of([scorer for scorer, _ in terms], [weight for _, weight in terms])
        place = len(ready)
        verdict = recorder.record_result(scorer, task.verdict, recorder.steps, recorder.steps * members // place, f"blend {place}")
        choices: dict[str, object] = {
            "weights": dict(zip(families, weights.tolist(), strict=True)),
            "members": [member.name for member in ready],
        }
        if remarks:
            choices["remarks"] = list(remarks)
        trouble = next((member.trouble for member in ready if member.trouble), "")
        return Trained(scorer, verdict, recorder.steps, trouble, choices)

    def _weights(self, bound: BoundMeasure, scores: npt.NDArray[np.float64], counted: PerQuery) -> Weights:
        """Return the best weights of (1) on queries with these weights, or equal ones by the setting."""
        equal = np.full(len(scores), 1 / len(scores))
        if self.weighting == "equal" or len(scores) == 1 or not np.any(counted > 0):
            return equal
        return best_weights(replace(bound, weights=counted), scores, equal)


@dataclass(frozen=True, eq=False)
class _Member:
    """A trained member."""

    name: str
    scorer: Scorer
    oof: PerDocument
    trouble: str

    def of_unit_deviation(self, data: RankingData) -> "_Member":
        size = deviation(self.oof, data.indptr) or 1.0
        return replace(self, scorer=sum_of([self.scorer], [1 / size]), oof=self.oof / size)


def _better(blended: Trained[Scorer] | None, view: NumericData, scorer: Scorer) -> Scorer:
    return view.scorer_of_table(scorer) if blended is None else blended.iterate


def _absolute(scorer: Scorer, offset: Offset | None) -> Scorer:
    """Return ``scorer`` with replacements of missing values in units of the features, not of differences from ``offset``."""
    if scorer.fill is None or offset is None:
        return scorer
    dataclass_scorer: Any = scorer
    return replace(dataclass_scorer, fill=scorer.fill + offset)  # type: ignore[no-any-return]


class _TimeUp(Exception):  # noqa: N818
    """The time limit has passed."""


def _end_at(end: float, recorder: Recorder[Scorer]) -> None:
    """Let the run of ``recorder`` raise `_TimeUp` at its first step after ``end``."""
    above: Callable[..., None] | None = recorder.above

    def check_time(*step: object) -> None:
        if above is not None:
            above(*step)
        if time.monotonic() > end:
            raise _TimeUp

    recorder.above = check_time


def _ranker(text: str) -> Ranker:
    """Return the ranker with the notation ``text``."""
    method = parse_method(text)
    return RANKERS[method.name](**method.settings)


def best_weights(bound: BoundMeasure, scores: npt.NDArray[np.float64], start: Weights) -> Weights:
    """Return the weights of the rows of ``scores``, at least 0 and of sum 1, that maximize the measure; optimal for two rows.

    With more rows, the search begins at the best of ``start`` and the single rows, and trades one row at a time against the
    rest, each exactly, until none gains. The value at the weights, as rounded, is at least that at ``start``, at each row, and in every
    interval between crossings. A tie that holds at a crossing alone does not count, since rounded weights would break it.

    >>> from exactrank import RankingData, parse_measure
    >>> data = RankingData.from_arrays(None, [0, 1, 2], group=[3])
    >>> best_weights(parse_measure("nDCG").on(data), np.array([[0.0, 0.5, 0.9], [0.0, 1.0, 0.2]]), np.full(2, 0.5)).round(3).tolist()
    [0.833, 0.167]
    """
    trade, rows = _Trade(bound, scores), np.eye(len(start))
    weights: Weights = max([start, *rows], key=trade.value)
    value = trade.value(weights)
    for _ in range(ROUNDS):
        before = value
        for row in range(len(rows)):
            traded = trade.best(weights, row)
            if (reached := trade.value(traded)) >= value - SAME_VALUE:
                weights, value = traded, reached
        if value <= before + GAIN:
            break
    return weights


class _Trade:
    """Exchanges of a row of ``scores`` with the rest, at the value that the measure has at rounded weights."""

    def __init__(self, bound: BoundMeasure, scores: npt.NDArray[np.float64]) -> None:
        self._bound, self._scores, self._search = bound, scores, LineSearch(bound)

    def value(self, weights: Weights) -> float:
        """Return the measure at ``weights``."""
        return self._bound.mean(matmul(weights, self._scores))

    def best(self, weights: Weights, row: int) -> Weights:
        """Return the best weights on the line from ``weights`` through those of ``row`` alone."""
        mixed, weight = matmul(weights, self._scores), float(weights[row])
        slopes, low = self._scores[row] - mixed, -weight / (1 - weight) if weight < 1 else 0.0
        self._search.start(mixed)
        interval = self._search.best(slopes, low, 1.0)
        best = _move(weights, row, interval.middle())
        if self.value(best) >= interval.value - SAME_VALUE:
            return best
        # Rounding has closed the interval: try the other intervals, best first.
        steps = self._search.profile(slopes, low, 1.0).part(low, 1.0)
        ends = np.concatenate([[low], np.clip(steps.breakpoints, low, 1.0), [1.0]])
        reached = self.value(best)
        for i in np.lexsort((-np.diff(ends), -steps.values)):
            if reached >= steps.values[i] - SAME_VALUE:
                break
            candidate = _move(weights, row, (ends[i] + ends[i + 1]) / 2)
            if (value := self.value(candidate)) > reached:
                best, reached = candidate, value
        return best


def _move(weights: Weights, row: int, share: float) -> Weights:
    """Return ``weights`` after a ``share`` of the way to ``row`` alone, at least 0 and of sum 1."""
    moved = np.maximum(weights + share * (np.eye(len(weights))[row] - weights), 0.0)
    return np.asarray(moved / moved.sum())
