"""The base of all rankers: scikit-learn's conventions around one method that each ranker implements.

A ranker's constructor is its configuration and does nothing else. ``fit`` checks the settings and the data and fills missing values;
``_fit`` composes scorer, objective and optimizer into a run (`exactrank.learning.training`). The result is a `Model`, which records its
origin. A ranker changes only when its fit ends, and then all at once. So several threads may fit it, and the result of the last remains.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from exactrank._support.arrays import PerDocument, Table
from exactrank._support.settings import SOME, VALID, Configured, setting
from exactrank.data.backend import Backend
from exactrank.data.dataset import Dataset
from exactrank.data.folds import BootstrapWeights
from exactrank.data.precision import Offset
from exactrank.data.ranking_data import RankingData
from exactrank.data.shards import Shards
from exactrank.errors import DataError, ExactRankError, SettingError
from exactrank.learning.training.combinators import bags
from exactrank.learning.training.judge import Task
from exactrank.learning.training.progress import History, Listener, Trained
from exactrank.learning.training.run import Journal, Recorder
from exactrank.learning.training.selection import Selection
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import Result
from exactrank.measures.goal import Goal
from exactrank.measures.parse import parse_measure
from exactrank.models.base import Scorer
from exactrank.models.linear import Linear
from exactrank.models.missing import Missing, PerFeature
from exactrank.models.model import Model
from exactrank.rankers import checks, fitting
from exactrank.rankers.checks import Takes
from exactrank.rankers.cross_validation import Unscored, is_cross_validated
from exactrank.rankers.division import cross_fit, out_of_fold
from exactrank.rankers.fitting import FITTED, Checkpoint
from exactrank.rankers.training_data import QID, TrainingData, read_eval_set, split_qid, to_ranking_data

if TYPE_CHECKING:
    from sklearn.utils import Tags


class Ranker(Configured, BaseEstimator, ABC):  # type: ignore[misc]
    """The base of all rankers; ``name`` is its name on the command line, and ``space`` the search space of tuning."""

    #: The metadata that scikit-learn passes by default if routing is enabled.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    name: ClassVar[str]
    #: Modules that its fit imports; a comparison imports them once, before any fit.
    libraries: ClassVar[tuple[str, ...]] = ()
    takes: ClassVar[Takes] = Takes()

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
    backend: Backend | None = setting(
        default=None,
        help="What computes: this process, or a cluster by er.DaskBackend(client); for DirectRank and trees a GPU by er.CudaBackend().",
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

    def resolve_auto(self, data: Dataset) -> Mapping[str, object]:
        """Return the values on ``data`` of settings such as "auto"."""
        return {}

    def resolve_settings(self, data: Dataset, goes_on: bool) -> dict[str, object]:
        """Return the values of all open settings (None) that depend on ``data``; training that continues a model trains one model."""
        one_model = {"bags": 0} if goes_on and self.bags is None else {}
        ranker = copy(self)
        ranker.__dict__ |= one_model
        return {name: value for name, value in ranker.resolve_auto(data).items() if getattr(ranker, name) is None} | one_model

    def ineffective_settings(self, data: Dataset, validated: bool = False) -> dict[str, str]:
        """Return the settings that have no effect on ``data`` beside the others, with the reasons; ``fit`` refuses them."""
        return self.without_effect(**self.resolve_auto(data), **{VALID: validated or self.cross_fits(data)})

    @property
    def keeps_missing(self) -> bool:
        """True if the ranker learns from missing values without replacing them."""
        return "keep" in self.settings["missing"].choices

    @property
    def learns_pairs(self) -> bool:
        """True if the ranker, with these settings, learns from pairs of documents besides grades."""
        if self.takes.pairs == "by measure":
            return any(measure.counts_pairs for measure in self.goal().measures)
        return self.takes.pairs

    def check_effects(self, data: Dataset, validated: bool = False) -> None:
        """Raise if a setting has no effect on ``data``, or contradicts another, or if some of the data would be ignored."""
        checks.check_settings(self, data, validated)
        checks.check_takes(self, data)

    def check_shards(self, data: Dataset) -> None:
        """Raise if a setting is incompatible with ``data`` in several files."""

    def goal(self) -> Goal:
        """Return the measure to maximize and its constraints; constraints that the ranker cannot keep are an error."""
        return checks.checked_goal(self)

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
        if eval_set is not None and valid is not None:
            raise DataError("valid and eval_set are both given, and are the same thing; leave out one of them")
        valid = read_eval_set(eval_set, eval_group, eval_qid) if valid is None else valid
        judgments = {"y": y, "qid": qid, "group": group, "sample_weight": sample_weight, "query_weight": query_weight}
        data = fitting.dataset_for(self, X, valid, **judgments)
        trainer = fitting.trainer_of(self, data, start is not None)
        training = fitting.prepare(trainer, data, X, valid, start)
        outcome = fitting.train(self, trainer, training, progress, checkpoint, resume)
        fitted = fitting.report(self, outcome, training, X)
        self.__dict__ = {name: value for name, value in vars(self).items() if name not in FITTED} | fitted  # all at once
        return self

    def complete_scorer(self, scorer: Scorer, fill: PerFeature | None, offset: Offset | None) -> Scorer:
        """Return ``scorer`` with the offset of the features and the values that replace missing ones."""
        dataclass_scorer: Any = scorer
        complete: Scorer = replace(dataclass_scorer, missing=self.missing, fill=fill).with_offset(offset)
        return complete

    def journal_of(self, model: Model, training: TrainingData) -> Journal:
        """Return the journal of ``model``, from which training resumes."""
        return fitting.journal_of(self, model, training)

    def train(self, task: Task, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """Train one model, or the mean of several."""
        count = self.bag_count(task.data)
        if not count:
            return self._fit(task, recorder)
        if self.cross_fits(task.data):
            trained, unseen = cross_fit(self, task, count, recorder)
            if task.data.is_local:
                self.__dict__["oof_"] = out_of_fold(task.data, unseen, self.threads)
            else:  # scores of documents stay where the documents are
                self.__dict__["unseen"] = unseen
            return trained
        return bags([partial(self._member, task, number) for number in range(count)], task.verdict, recorder)

    def bag_count(self, data: Dataset) -> int:
        """Return the number of models whose mean is taken; 0 if there is a single model."""
        count: Any = self.resolve_auto(data).get("bags", self.bags)
        return int(count or 0)

    def cross_fits(self, data: Dataset) -> bool:
        """Return whether a model is trained for each part of the queries, on the other parts."""
        return bool(self.bag_count(data)) and self.bagging == "cross-fit"

    def _member(self, task: Task, number: int, recorder: Recorder[Scorer]) -> Trained[Scorer]:
        """Train the model of a bag with that number, on a bootstrap sample of the queries."""
        sample = task.data.reweigh(BootstrapWeights((self.seed, number), task.data.n_queries))
        return self._fit(replace(task, bag=number, bags=self.bag_count(task.data), data=sample), recorder)

    @property
    def runs_in_threads(self) -> bool:
        """True if several models may be trained at the same time, in threads of this process."""
        return self.backend is None or not self.backend.kernels

    @property
    def is_scale_free(self) -> bool:
        """True if the scale of scores has no meaning."""
        return True

    def set_params(self, **params: object) -> Self:
        """Change settings; unknown names are an error with a hint."""
        self.check_names(name for name in params if "__" not in name)
        super().set_params(**params)
        return self

    def predict(self, X: Table) -> PerDocument:
        """Return the score of each row of a `RankingData`, a frame or a matrix, in the caller's row order."""
        check_is_fitted(self, "model_")
        rows = X if QID in self.model_.scorer.feature_names else split_qid(X)[0]
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
        """Return the mean of ``measure`` over queries, by default of the measure that the ranker was trained on.

        Measures weigh queries, not documents: ``sample_weight`` is there for scikit-learn's Pipeline, which names it, and must be None.
        """
        check_is_fitted(self, "model_")
        try:
            if sample_weight is not None:
                raise SettingError("score: measures do not weigh single documents; leave out sample_weight, or give a query_weight")
            data = to_ranking_data(X, y, qid=qid, group=group, query_weight=query_weight)
            bound = (self.goal().measure if measure is None else parse_measure(measure)).on(data, threads=self.threads)
            return bound.mean(data.group(self.predict(X)))
        except ExactRankError as error:
            if not is_cross_validated():
                raise
            return Unscored(error)  # type: ignore[return-value]

    def __sklearn_tags__(self) -> "Tags":
        """Return scikit-learn's description of a ranker."""
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the model to a file that [`er.load`][exactrank.load] reads."""
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
