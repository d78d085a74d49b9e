"""What all rankers share: scikit-learn's conventions around one method that each ranker writes.

A ranker's constructor is its configuration and does nothing else. ``fit`` checks the settings and the data and fills missing values,
``_fit`` composes scorer, objective and optimizer into a run (`exactrank.training`), and the result is kept as a `Model` that knows where it
came from. A ranker changes only when its fit is done, and then all at once: so it may be fitted from several threads, and is in the end
what the last of them found.
"""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from exactrank.arguments import wrong_kind
from exactrank.arrays import PerDocument, Table
from exactrank.bars import ProgressLine, heard
from exactrank.data.alignment import listed
from exactrank.data.precision import Offset
from exactrank.data.ranking_data import RankingData
from exactrank.engine.engine import Engine, LocalEngine, Partitioned, forget, partitioned, reweighed, scored
from exactrank.engine.partitions import Shards
from exactrank.engine.selection import Mask, in_one
from exactrank.errors import DataError, ExactRankError, IncompatibleError, InterruptedWarning, SettingError
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import Result, evaluate
from exactrank.measures.goal import Goal, parse_goal
from exactrank.measures.parse import parse_measure
from exactrank.objectives.partitioned_search import Drawn
from exactrank.objectives.within_query import deviation_of
from exactrank.rankers.cross_validation import Unscored, is_cross_validated
from exactrank.rankers.division import Division, Unseen, estimated, estimated_by_scores, filled_scores, out_of_fold
from exactrank.rankers.partitioned_data import graded_by, partitioned_training_data
from exactrank.rankers.training_data import (
    QID,
    TrainingData,
    check_measure_tells_apart,
    held_out,
    joined,
    judged,
    mixed_queries,
    parted,
    training_data,
    with_features_of,
)
from exactrank.scorers.base import Scorer
from exactrank.scorers.linear import Linear
from exactrank.scorers.missing import Missing, PerFeature
from exactrank.scorers.model import Model, plain
from exactrank.scorers.sum import sum_of
from exactrank.settings import SOME, VALID, Configured, setting
from exactrank.stored import from_record, to_record
from exactrank.threads import thread_count
from exactrank.training.ahead import running_ahead
from exactrank.training.combinators import bags
from exactrank.training.history import History
from exactrank.training.judge import Task
from exactrank.training.progress import Listener, Progress, Trained, line_of
from exactrank.training.run import Journal, Recorder, Root
from exactrank.training.selection import Selection

if TYPE_CHECKING:
    from sklearn.utils import Tags

Checkpoint = Callable[[Model], None]
#: What a fit leaves on the ranker.
_FITTED = {"model_", "history_", "selection_", "n_features_in_", "feature_names_in_", "oof_", "valid_oof_", "estimate_"}


#: With fewer values per thread, waiting for each other takes threads longer than the work.
CELLS_PER_THREAD = 1_000_000
#: Rankers that train on data in several files, for those that do not.
PARTITIONED = "LambdaMART, MART, DirectRankTrees, or any ranker of a linear model or a network"


def _line(measure: str, engine: Engine | None, progress: Progress) -> ProgressLine:
    """What a progress bar says; on a cluster also how many work, and how much goes through the network."""
    line = line_of(measure, progress)
    return line if engine is None else replace(line, doing=f"{line.doing}, {engine.told}")


def _scores(scorer: Scorer, threads: int | None, data: RankingData) -> PerDocument:
    return scorer.score(data.X, threads)


class Ranker(Configured, BaseEstimator, ABC):  # type: ignore[misc]
    """The base of all rankers; ``name`` is its name on the command line, and ``space`` what tuning may choose from."""

    #: Which metadata scikit-learn hands on where routing is enabled, without being asked to.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    name: ClassVar[str]
    #: Modules that its fit imports; a comparison imports them once, before any fit.
    libraries: ClassVar[tuple[str, ...]] = ()
    #: The kinds of scorer that ``fit(start=...)`` can go on from.
    goes_on_from: ClassVar[tuple[type[Scorer], ...]] = ()
    #: Does it honour weights of single documents (``sample_weight``)? Else it refuses them.
    weighs_documents: ClassVar[bool] = False
    #: Can it keep constraints on other measures? Else it refuses them.
    takes_constraints: ClassVar[bool] = False
    #: Does it take features that are categories? Else it refuses them.
    takes_categories: ClassVar[bool] = False
    #: Does it learn from pairs of documents that are given beside the grades, or does its measure have to count them? Else it refuses them.
    takes_pairs: ClassVar[bool | Literal["by measure"]] = False
    #: Does it train on data in several files, and then also honour weights of single documents, and look at validation data in parts?
    takes_partitions: ClassVar[bool] = False
    weighs_partitioned_documents: ClassVar[bool] = False
    validates_partitions: ClassVar[bool] = True

    measure: str | Measure = setting(default="nDCG@10", help="Measure to train on, e.g. nDCG@10 or 'AP(rel=2)'.", kw_only=False)
    bags: int | None = setting(
        default=0, help="Train this number of models and take their mean; 0 trains one.", at_least=0, at_most=1 << 20
    )
    bagging: Literal["cross-fit", "bootstrap"] = setting(
        default="cross-fit",
        help="What each model of a bag is trained on: all parts of the queries except two, one of which chooses its iterate while the other"
        " evaluates it; or a bootstrap sample of the queries.",
        only={"bags": SOME},
    )
    seed: int = setting(default=0, help="Seed of all random choices.", at_least=0, at_most=2**63 - 1)
    threads: int | None = setting(
        default=None,
        help="Number of native threads; by default one per core. Results do not depend on it.",
        at_least=1,
        at_most=4096,
        free=True,
    )
    engine: Engine | None = setting(
        default=None,
        help="Who answers for data in several files (xr.read_shards): by default this process, or a cluster by xr.DaskEngine(client).",
        free=True,
    )
    missing: Missing = setting(default="error", help="How to treat a missing value: as an error, 0, or the feature's mean in training.")

    model_: ClassVar[Model]
    history_: ClassVar[History]
    selection_: ClassVar[Selection]
    oof_: ClassVar[PerDocument]
    valid_oof_: ClassVar[PerDocument]
    estimate_: ClassVar[Result]

    @abstractmethod
    def _fit(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """Train one model."""

    def _comes_to(self, data: RankingData) -> Mapping[str, Any]:
        """The values that settings such as "auto" take on ``data``."""
        return {}

    def _resolved(self, data: RankingData, goes_on: bool) -> dict[str, Any]:
        """The values of all settings that are open (None) and depend on ``data``; what goes on from a model is one model."""
        one = copy(self)
        given = {"bags": 0} if goes_on and self.bags is None else {}
        one.__dict__ |= given
        return {name: value for name, value in one._comes_to(data).items() if getattr(one, name) is None} | given

    def idle(self, data: RankingData, validated: bool = False) -> dict[str, str]:
        """The settings that would have no effect on ``data`` with the others as they are, each with the reason; ``fit`` refuses them."""
        return self.without_effect(**self._comes_to(data), **{VALID: validated or self._cross_fits(data)})

    @property
    def keeps_missing(self) -> bool:
        """Can it learn from data with missing values as they are?"""
        return "keep" in self.settings["missing"].choices

    @property
    def _learns_pairs(self) -> bool:
        """Do the settings allow pairs that are given beside the grades?"""
        if self.takes_pairs == "by measure":
            return any(each.counts_pairs for each in self.goal().measures)
        return self.takes_pairs

    def check_effects(self, data: RankingData, validated: bool = False) -> None:
        """Raise if on ``data`` a setting has no effect, or contradicts another, or if weights would be ignored."""
        name = type(self).__name__
        for trouble in self.idle(data, validated).values():
            raise SettingError(f"{name}: {trouble}")
        if self.bags == 1 and self.bagging == "cross-fit":
            raise SettingError(f"{name}: bags=1 leaves no queries to train on; give bags=0 for one model, or at least 2")
        if self._cross_fits(data) and isinstance(data, Partitioned):
            if validated:
                raise SettingError(f"{name}: cross-fitted models of data in several files learn from it alone; leave out valid, or bags")
        elif self._cross_fits(data) and len(mixed_queries(data)) < 2:
            raise SettingError(f"{name}: cross-fitting needs at least 2 queries with different grades, and the data has 1; give bags=0")
        if data.sample_weight is not None and not self.weighs_documents:
            raise SettingError(
                f"{name} cannot weigh single documents; leave out sample_weight, give a query_weight, or use Ridge, MART,"
                " LambdaMART or DirectRankTrees"
            )
        if data.preferences is not None and not self._learns_pairs:
            how = f"{name} with these settings" if self.takes_pairs else name
            counted = "train on PairwiseCorrect, " if self.takes_pairs == "by measure" else ""
            raise IncompatibleError(
                f"{how} learns from grades alone, and the data has {len(data.preferences):,} pairs; {counted}make grades of them with"
                " xr.bradley_terry (exactrank pairs --bradley-terry), or use RankNet, LambdaRank, LambdaMART, RankSVM or RankBoost"
            )
        if data.levels and not self.takes_categories:
            raise IncompatibleError(
                f"{name} takes numbers alone, and {listed(list(map(repr, data.levels)))} hold categories; encode them as numbers, leave"
                " them out, or use a tree ranker: LambdaMART, MART or DirectRankTrees"
            )
        if data.levels and self.missing in ("zero", "mean"):
            raise SettingError(
                f"{name}: missing={self.missing!r} would put a level in the place of a missing one, and"
                f" {listed(list(map(repr, data.levels)))} hold categories; leave missing at its default"
            )

    def fit(
        self,
        X: Table,
        y: npt.ArrayLike | None = None,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        query_weight: npt.ArrayLike | None = None,
        valid: RankingData | Shards | tuple[Table, npt.ArrayLike, npt.ArrayLike] | None = None,
        eval_set: Sequence[tuple[Table, npt.ArrayLike]] | tuple[Table, npt.ArrayLike] | None = None,
        eval_group: Sequence[npt.ArrayLike] | None = None,
        eval_qid: Sequence[npt.ArrayLike] | None = None,
        progress: bool | Listener = False,
        checkpoint: Checkpoint | None = None,
        resume: Model | None = None,
        start: Model | None = None,
    ) -> Self:
        """Train on a `RankingData`, on `Shards`, or on a matrix or frame with grades ``y`` and ``qid`` or ``group``.

        ``valid``, a `RankingData` or ``(X, y, qid)``, or `Shards` beside `Shards`, chooses the iterate to keep; a cross-fitted ranker
        learns from it too, since its own parts choose. Then ``oof_`` holds the score of each row by a model that has never seen its
        query, neither to learn nor to choose, ``valid_oof_`` the same of the validation data, and ``estimate_`` the measure of all these
        scores, with its interval. ``eval_set=[(X, y)]`` with ``eval_group`` or ``eval_qid`` is the same as ``valid``, in the form that
        other libraries' rankers take. ``progress=True`` shows a progress bar in a terminal or a notebook; a function is called with the
        `Progress` after every step instead.
        ``checkpoint`` is called with the best model so far, about once a second (less often if evaluating it takes long). Ctrl-C ends
        training; the best model so far is kept, with a warning. ``resume`` continues a checkpoint of this ranker, or a model whose training
        was interrupted, on the same data: the result is the same as without the break. ``start`` continues from a model of any data with
        the same features: trees are added to its trees, and parameters start from its own. The order of the rows within a query does not
        affect the model.
        """
        self.check_values()
        goal = self.goal()
        measure = goal.measure
        if eval_set is not None and valid is not None:
            raise DataError("valid and eval_set are both given, and are the same thing; leave out one of them")
        valid = held_out(eval_set, eval_group, eval_qid) if valid is None else valid
        own_valid: Any = valid
        if isinstance(X, Shards):
            data = cast(RankingData, self._partitioned(X))
            own_valid = self._valid_of(valid, cast(Partitioned, data)) if isinstance(valid, Shards) else valid
        else:
            if isinstance(valid, Shards):
                raise IncompatibleError(
                    "valid is in several files, and the training data is not; read both with xr.read_shards, or xr.read"
                )
            data = judged(X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight)
        self.check_effects(data, valid is not None)
        if measure.column is not None:  # every objective then learns from it
            data = graded_by(measure, data)
            own_valid = graded_by(measure, own_valid) if isinstance(own_valid, RankingData | Partitioned) else own_valid
        if start is not None:
            self._check_start(start.scorer)
            data = data if isinstance(X, Shards) else with_features_of(start.scorer, X, data, valid)
        made: Callable[..., TrainingData] = partitioned_training_data if isinstance(data, Partitioned) else training_data
        given = made(data, own_valid, self.missing, self.threads, None if start is None else start.scorer)
        check_measure_tells_apart(measure, data, self.threads)
        own = copy(self)  # what a fit keeps on its way, another thread's fit of the same ranker does not see
        own.__dict__ = {name: value for name, value in vars(self).items() if name not in _FITTED} | self._resolved(data, start is not None)
        cross_fits = own._cross_fits(data)
        if cross_fits:
            given = replace(given, learnt=joined(given.data, given.valid))
        task = Task(
            measure,
            given.learnt,
            None if cross_fits else given.valid,
            self.threads,
            start=given.start,
            constraints=goal.constraints,
        )
        journal = Journal() if resume is None else self._journal(resume, given)
        if checkpoint is not None and not callable(checkpoint):
            raise wrong_kind("checkpoint", checkpoint, "a function that is called with the model so far, and may save it")
        keep = None if checkpoint is None else partial(self._keep, given, checkpoint)
        with heard(progress, type(self).__name__, partial(_line, str(measure), self.engine)) as listener:
            root = Root(listener, keep, journal)
            trained = root.train(partial(own._trained, task))
        if trained.trouble:
            warnings.warn(f"{trained.trouble}; the best model so far is kept", ConvergenceWarning, stacklevel=2)
        if root.interrupted:
            warnings.warn("training was interrupted; the best model so far is kept", InterruptedWarning, stacklevel=2)
        said: dict[str, Any] = {"chosen": dict(trained.chosen)} if trained.chosen else {}
        selection = Selection(trained.alternatives, str(measure))
        fitted: dict[str, Any] = {"history_": History(journal.history, str(measure)), "selection_": selection}
        fitted["n_features_in_"] = data.n_features
        if isinstance(X, RankingData | Shards) or hasattr(X, "columns"):
            fitted["feature_names_in_"] = np.array(data.feature_names, object)
        oof, unseen, estimate = vars(own).get("oof_"), vars(own).get("unseen"), None
        if oof is not None and not np.isnan(oof).any():
            if isinstance(data, Partitioned):
                estimate = estimated_by_scores(given, oof, measure, self.threads)
            else:
                estimate = evaluate(measure, *given.as_given(oof), threads=self.threads)[str(measure)]
                fitted["oof_"] = given.data.ungrouped(oof[: data.n_documents])
                if given.valid is not None:
                    fitted["valid_oof_"] = given.valid.ungrouped(oof[data.n_documents :])
        elif unseen is not None:
            estimate = estimated(given, unseen, measure, self.threads)
        if estimate is not None:
            fitted["estimate_"] = estimate
            said |= {"estimate": estimate.mean, "interval": list(estimate.interval)}
        model = self._model(given, trained.iterate, trained.steps, root.interrupted, **said)
        fitted["model_"] = replace(model, run=to_record(vars(root.resumable))) if root.interrupted else model
        forget(data, given.data, given.valid, given.given_valid)
        self.__dict__ = {name: value for name, value in vars(self).items() if name not in _FITTED} | fitted  # all at once
        return self

    def goal(self) -> Goal:
        """What to maximise; an error where there are constraints that the ranker cannot keep."""
        goal = parse_goal(self.measure)
        if goal.constraints and not self.takes_constraints:
            raise IncompatibleError(
                f"{type(self).__name__} cannot keep {' and '.join(map(str, goal.constraints))}: it follows a stand-in for the"
                " measure, not the measure itself; use DirectRank, or tune the weights of several systems with xr.fuse"
            )
        return goal

    def _partitioned(self, shards: Shards) -> Partitioned:
        """``shards`` with the engine that answers for them, once it is clear that this ranker can train so."""
        if not self.takes_partitions:
            raise IncompatibleError(f"{type(self).__name__} needs its data in one file; xr.read one, or use {PARTITIONED}")
        data = partitioned(shards, LocalEngine() if self.engine is None else self.engine)
        self.check_partitions(data)
        return data

    def _valid_of(self, shards: Shards, data: Partitioned) -> RankingData | Partitioned:
        """Validation data in several files, read as one where this ranker wants it so."""
        valid = partitioned(shards, data.engine)
        return valid if self.validates_partitions else in_one(valid)

    def check_partitions(self, data: Partitioned) -> None:
        """Raise where a setting does not go with data in partitions."""
        if data.described[0].weighs_documents and not self.weighs_partitioned_documents:
            raise IncompatibleError(
                f"{type(self).__name__} cannot weigh single documents of data in several files; leave out sample_weight, give a"
                " query_weight, or use Ridge"
            )

    def _check_start(self, scorer: Scorer) -> None:
        """Raise where training cannot go on from ``scorer``."""
        name, kinds = type(self).__name__, " or ".join(kind.kind for kind in self.goes_on_from)
        if not kinds:
            raise IncompatibleError(f"{name} begins anew on any data, so it takes no start; leave it out")
        if not isinstance(scorer, self.goes_on_from):
            raise IncompatibleError(f"{name} goes on from a {kinds} model, and the start is a {scorer.kind} model; train it anew")
        if self.bags:
            raise SettingError(f"{name}: start is one model, and {self.bags} bags are to be trained; give bags=0")
        own = self.settings.get("start")
        if own is not None and not own.is_default(vars(self)["start"]):
            raise SettingError(f"{name}: start={vars(self)['start']!r} is set, and fit got a model to start from; leave out one of them")
        if scorer.missing != self.missing:
            raise SettingError(f"{name}: missing={self.missing!r}, but the model to start from has {scorer.missing!r}; give the same")

    def _trained(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """One model, or the mean of several."""
        count = self._bag_count(task.data)
        if not count:
            return self._fit(task, recorder)
        if self._cross_fits(task.data):
            trained, unseen = self.cross_fitted(task, count, recorder)
            if isinstance(task.data, Partitioned):  # of which nobody keeps a number per document
                self.__dict__["unseen"] = unseen
            else:
                self.__dict__["oof_"] = out_of_fold(task.data, unseen, self.threads)
            return trained
        return bags([partial(self._member, task, number) for number in range(count)], task.verdict, recorder)

    def _bag_count(self, data: RankingData) -> int:
        """The number of models whose mean is taken; 0 if there is one."""
        count: int = self._comes_to(data).get("bags", self.bags)
        return count

    def _cross_fits(self, data: RankingData) -> bool:
        return bool(self._bag_count(data)) and self.bagging == "cross-fit"

    def _member(self, task: Task, number: int, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """The model of a bag with that number: of a bootstrap sample of the queries."""
        drawn = reweighed(task.data, Drawn((self.seed, number), task.data.n_queries))
        return self._fit(replace(task, bag=number, bags=self._bag_count(task.data), data=drawn), recorder)

    def cross_fitted(self, task: Task, count: int, recorder: Recorder[Scorer]) -> tuple[Trained[Scorer], Unseen]:
        """The mean of models that have each seen all parts of the queries except two, and each with the part that it says more about.

        One of the two parts chooses the model's iterate; the other is scored by the model, which has never seen it. With two parts
        in all, the one that chooses is scored too. Scores have unit deviation within queries if their scale has no meaning.
        """
        data, division = task.data, Division.of(task.data, count, self.seed)
        part, parts, unseen = division.part, division.count, dict[int, tuple[Mask, Scorer]]()
        workers = self._workers(task, parts)
        alone = task if workers == 1 else replace(task, threads=thread_count(task.threads) // workers)
        ranker = self if workers == 1 else copy(self).set_params(threads=alone.threads)

        def member(number: int, recorder: Recorder[Scorer]) -> Trained[Scorer]:
            chooses, scored = part == number, part == (number + (parts > 2)) % parts
            learnt, valid = division.take(~(chooses | scored)), division.take(chooses)
            if isinstance(valid, Partitioned) and not self.validates_partitions:
                valid = in_one(valid)
            trained = ranker._fit(replace(alone, data=learnt, valid=valid, bag=number, bags=parts), recorder)
            unseen[number] = scored, comparable(trained.iterate)
            forget(learnt, valid)
            return trained

        def comparable(scorer: Scorer) -> Scorer:
            size = deviation_of(data, partial(_scores, scorer, alone.threads)) if self._is_scale_free else 0.0
            return sum_of([scorer], [1 / size]) if size > 0 else scorer

        with running_ahead([partial(member, number) for number in range(parts)], recorder, workers) as members:
            trained = bags(members, task.verdict, recorder, view=comparable)
        return trained, [unseen[number] for number in range(parts)]

    def _workers(self, task: Task, parts: int) -> int:
        """The number of models that are trained at the same time: one if the kernels of each can use all threads."""
        if isinstance(task.data, Partitioned) or not self.runs_in_threads:
            return 1
        threads_per_model = 1 + task.data.n_documents * task.data.n_features // CELLS_PER_THREAD
        return max(1, min(parts, thread_count(task.threads) // threads_per_model))

    @property
    def runs_in_threads(self) -> bool:
        """May several models be trained at the same time, in threads of this process?"""
        return vars(self).get("device") is None

    @property
    def _is_scale_free(self) -> bool:
        """May scores be multiplied by any positive number?"""
        return True

    def set_params(self, **params: object) -> Self:
        """Change settings, as scikit-learn's searches do."""
        self.check_names(name for name in params if "__" not in name)
        super().set_params(**params)
        return self

    def predict(self, X: Table) -> PerDocument:
        """The score of each row of a `RankingData`, a frame or a matrix, in the caller's row order."""
        check_is_fitted(self, "model_")
        rows = X if QID in self.model_.scorer.feature_names else parted(X)[0]
        return self.model_.predict(rows, self.threads)

    def score(
        self,
        X: Table,
        y: npt.ArrayLike | None = None,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        sample_weight: None = None,
        query_weight: npt.ArrayLike | None = None,
        measure: str | Measure | None = None,
    ) -> float:
        """The mean over queries of ``measure``, by default the one the ranker was trained on.

        Measures weigh queries, not documents: ``sample_weight`` is there for scikit-learn's Pipeline, which names it, and must be None.
        """
        check_is_fitted(self, "model_")
        try:
            if sample_weight is not None:
                raise SettingError("score: measures do not weigh single documents; leave out sample_weight, or give a query_weight")
            data = judged(X, y, qid=qid, group=group, query_weight=query_weight)
            bound = (self.goal().measure if measure is None else parse_measure(measure)).on(data, threads=self.threads)
            return bound.mean(data.grouped(self.predict(X)))
        except ExactRankError as error:
            if not is_cross_validated():
                raise
            return Unscored(error)  # type: ignore[return-value]

    def __sklearn_tags__(self) -> "Tags":
        """What scikit-learn wants to know of a ranker."""
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the model to a file that [`xr.load`][exactrank.load] reads."""
        check_is_fitted(self, "model_")
        self.model_.save(path, force)

    @property
    def weights_(self) -> PerFeature:
        """The weight of each feature, if the model is linear."""
        check_is_fitted(self, "model_")
        if not isinstance(self.model_.scorer, Linear):
            trouble = f"weights_: a {self.model_.scorer.kind} model has no weights; only linear models do"
            raise AttributeError(trouble)  # noqa: TRY004  (so that hasattr, dir and scikit-learn's HTML go on)
        return self.model_.scorer.weights

    def _model(self, given: TrainingData, scorer: Scorer, steps: int, interrupted: bool, **said: object) -> Model:
        """The model of ``scorer``; what is said of training is the measure as asked, on the data as given: ties may go by that order."""
        goal, threads = self.goal(), self.threads
        reached: dict[str, float | None] = {"value": None, "valid": None}
        constraints: dict[str, dict[str, float]] = {}
        for name, part, as_given in (("value", given.data, given.given), ("valid", given.valid, given.given_valid)):
            if part is not None and as_given is not None and not (name == "valid" and given.learnt is not given.data):
                if isinstance(part, Partitioned):
                    scores = scored(as_given, partial(filled_scores, scorer, given.fill, threads))
                else:
                    scores = as_given.grouped(part.ungrouped(scorer.score(part.X, threads)))
                reached[name] = goal.measure.on(as_given, threads=threads).mean(scores)
                if goal.constraints:
                    values = {str(each): each.measure.on(as_given, threads=threads).mean(scores) for each in goal.constraints}
                    constraints[name] = values
        said |= {"constraints": constraints} if constraints else {}
        training = {**reached, "steps": steps, "interrupted": interrupted, **said}
        whole = self._with_stand_ins(scorer, given.fill, given.data.offset)
        params = {name: value for name, value in self.get_params().items() if name != "engine"}  # where it was trained says nothing of it
        return Model(whole, repr(goal), type(self).__name__, params, given.facts, self.seed, training=training)

    def _with_stand_ins(self, scorer: Scorer, fill: PerFeature | None, offset: Offset | None) -> Scorer:
        """The ``scorer`` of whole features, of any kind, which knows what stands for missing values."""
        made: Any = scorer
        whole: Scorer = replace(made, missing=self.missing, fill=fill).anchored(offset)
        return whole

    def _journal(self, model: Model, given: TrainingData) -> Journal:
        """What there is to resume from in ``model``, which this ranker must have trained, with the same settings and on the same data."""
        ours = {"ranker": type(self).__name__, "measure": repr(self.goal()), "data": given.facts}
        wanted = plain(self.get_params()) | ours
        found = plain(model.params) | {"ranker": model.ranker, "measure": model.measure, "data": model.data}
        free = {name for name, one in self.settings.items() if one.free}
        for name in ("ranker", *sorted(wanted.keys() - free)):  # the settings of another ranker say nothing
            if found.get(name) != wanted[name]:
                told = f"the model was trained with {name}={found.get(name)}, not {wanted[name]}"
                raise IncompatibleError(f"{told}; resume with the same settings, or train anew")
        return Journal() if model.run is None else Journal(**from_record(model.run, "the checkpoint"))

    def _keep(self, given: TrainingData, checkpoint: Checkpoint, scorer: Scorer, steps: int, journal: Journal) -> None:
        """Give ``checkpoint`` a model of the best scorer so far, with what to resume from."""
        checkpoint(replace(self._model(given, scorer, steps, interrupted=True), run=to_record(vars(journal))))
