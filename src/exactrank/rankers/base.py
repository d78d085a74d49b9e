"""What all rankers share: scikit-learn's conventions around one method that each ranker writes.

A ranker's constructor is its configuration and does nothing else. ``fit`` checks the data and fills missing values, ``_fit``
composes scorer, objective and optimizer, and the result is kept as a `Model` that knows where it came from. A ranker changes only when
its fit is done, and then all at once: so it may be fitted from several threads, and is in the end what the last of them found.
"""

import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from exactrank.arrays import PerDocument
from exactrank.data.ranking_data import RankingData
from exactrank.errors import IncompatibleError
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import evaluate
from exactrank.measures.parse import parse_measure
from exactrank.optimizers.base import Theta
from exactrank.rankers.restarts import goodness
from exactrank.rankers.search_space import Space
from exactrank.rankers.training_data import TrainingData, check_measure_tells_apart, judged, training_data
from exactrank.scorers.base import Scorer
from exactrank.scorers.linear import Linear
from exactrank.scorers.missing import PerFeature, TreeMissing
from exactrank.scorers.model import Model, plain
from exactrank.training import Listener, Progress, Trained

Checkpoint = Callable[[Model], None]
SECONDS_BETWEEN_CHECKPOINTS = 1.0
#: Training goes on between two checkpoints for at least this multiple of the time that the first took.
TIMES_BETWEEN_CHECKPOINTS = 20
#: What may change when training is taken up again: how long it goes on, and how.
_FREE_ON_RESUME = {"trees", "rounds", "patience", "threads"}
#: What a fit leaves on the ranker.
_FITTED = {"model_", "history_", "n_features_in_", "feature_names_in_"}


class Ranker(BaseEstimator, ABC):  # type: ignore[misc]
    """The base of all rankers; ``name`` is that of the command line, and ``space`` what tuning may choose from.

    Args:
        measure: The measure to train on, e.g. nDCG@10 or 'AP(rel=2)'.
        seed: Seed of everything random.
        threads: Native threads; results do not depend on it.
        missing: What a missing value is: an error, 0, or the feature's mean over the training data.
    """

    name: ClassVar[str]
    space: ClassVar[Space] = {}
    measure: str | Measure
    seed: int
    threads: int | None
    missing: TreeMissing

    model_: Model
    history_: tuple[Progress, ...]

    @abstractmethod
    def _fit(self, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        """Train on data that has something to learn and no missing values; ``valid`` has the same features."""

    def _go_on(self, start: Scorer, data: RankingData, valid: RankingData | None, listener: Listener | None) -> tuple[Scorer, Trained]:
        """Train on from ``start``, which an earlier run left; a ranker that cannot begins again, and arrives at the same."""
        return self._fit(data, valid, listener)

    def _scorer(self, data: RankingData, theta: Theta) -> Scorer:
        """The scorer with the parameters ``theta``."""
        return Linear(theta, data.feature_names)

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike | None = None,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        query_weight: npt.ArrayLike | None = None,
        valid: Any = None,
        listener: Listener | None = None,
        checkpoint: Checkpoint | None = None,
        resume: Model | None = None,
    ) -> Self:
        """Train on a `RankingData`, or on a matrix or frame with grades ``y`` and ``qid`` or ``group``.

        ``valid``, a `RankingData` or ``(X, y, qid)``, chooses the iterate to keep. ``listener`` hears of every step,
        ``checkpoint`` gets the best model so far, about once a second (more rarely where judging it takes long). Ctrl-C ends
        training; the best model so far is kept. ``resume``, a model that this ranker trained on the same data, is taken up: the
        result is that of a run without a break. The order of the rows within a query changes nothing in the model.
        """
        measure = parse_measure(self.measure)
        data = judged(X, y, qid=qid, group=group, sample_weight=sample_weight, query_weight=query_weight)
        given = training_data(data, valid, self.missing, self.threads)
        check_measure_tells_apart(measure, data, self.threads)
        own = copy(self)  # what a fit keeps on its way, another thread's fit of the same ranker does not see
        inputs = given.data, given.valid, own._heard(given, listener, checkpoint)
        scorer, trained = own._fit(*inputs) if resume is None else own._go_on(own._taken_up(resume, given), *inputs)
        if trained.trouble:
            warnings.warn(f"{trained.trouble}; the best model so far is kept", ConvergenceWarning, stacklevel=2)
        steps = trained.history[-1].step if trained.history else 0
        more = {"chosen": dict(trained.chosen)} if trained.chosen else {}
        model = own._model(given, scorer, own._reached(given, scorer, steps, trained.interrupted) | more)
        fitted = {"model_": model, "history_": trained.history, "n_features_in_": data.n_features}
        if isinstance(X, RankingData) or hasattr(X, "columns"):
            fitted["feature_names_in_"] = np.array(data.feature_names, object)
        self.__dict__ = {name: value for name, value in vars(self).items() if name not in _FITTED} | fitted  # all at once
        return self

    def predict(self, X: Any) -> PerDocument:
        """The score of each row of a `RankingData`, a frame or a matrix, in the caller's row order."""
        check_is_fitted(self, "model_")
        return self.model_.predict(X, self.threads)

    def score(
        self, X: Any, y: npt.ArrayLike | None = None, *, qid: npt.ArrayLike | None = None, group: npt.ArrayLike | None = None
    ) -> float:
        """The mean of the measure that was trained on."""
        check_is_fitted(self, "model_")
        measure = parse_measure(self.measure)
        data = judged(X, y, qid=qid, group=group)
        return evaluate(measure, data, self.predict(X), threads=self.threads).means[str(measure)]

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the model to a file that [`xr.load`][exactrank.load] reads."""
        check_is_fitted(self, "model_")
        self.model_.save(path, force)

    @property
    def weights_(self) -> PerFeature:
        """The weight of each feature, where the model is linear."""
        check_is_fitted(self, "model_")
        if not isinstance(self.model_.scorer, Linear):
            raise IncompatibleError(f"a {self.model_.scorer.kind} model has no weights; only linear ones do")
        return self.model_.scorer.weights

    def _model(self, given: TrainingData, scorer: Scorer, reached: dict[str, Any]) -> Model:
        made: Any = scorer  # of any kind: all know what stands for missing values
        whole: Scorer = replace(made, missing=self.missing, fill=given.fill).anchored(given.data.offset)
        measure, ranker = repr(parse_measure(self.measure)), type(self).__name__
        return Model(whole, measure, ranker, self.get_params(), given.facts, self.seed, training=reached)

    def _reached(self, given: TrainingData, scorer: Scorer, steps: int, interrupted: bool) -> dict[str, Any]:
        """What is said of training: the measure as asked, on the data as given."""
        value, valid = given.reached(parse_measure(self.measure), scorer, self.threads)
        return {"value": value, "valid": valid, "steps": steps, "interrupted": interrupted}

    def _taken_up(self, model: Model, given: TrainingData) -> Scorer:
        """The scorer of ``model``, which this ranker must have trained, with the same settings and on the same data."""
        ours = self._model(given, model.scorer, {})
        wanted = plain(ours.params) | {"ranker": ours.ranker, "measure": ours.measure, "data": ours.data}
        found = plain(model.params) | {"ranker": model.ranker, "measure": model.measure, "data": model.data}
        for name in ("ranker", *sorted(wanted.keys() - _FREE_ON_RESUME)):  # the settings of another ranker say nothing
            if found.get(name) != wanted[name]:
                told = f"the model was trained with {name}={found.get(name)}, not {wanted[name]}"
                raise IncompatibleError(f"{told}; resume with the same, or train anew")
        return model.scorer

    def _heard(self, given: TrainingData, listener: Listener | None, checkpoint: Checkpoint | None) -> Listener | None:
        """``listener``, which also sees to it that ``checkpoint`` gets each model that is better than all before."""
        if checkpoint is None:
            return listener
        best, saved, due = None, None, -np.inf

        def heard(progress: Progress) -> None:
            nonlocal best, saved, due
            best = progress if best is None or goodness(progress) > goodness(best) else best
            start = time.monotonic()
            if best is not saved and start > due:
                scorer = self._scorer(given.data, best.theta)
                checkpoint(self._model(given, scorer, self._reached(given, scorer, best.step, interrupted=True)))
                saved, now = best, time.monotonic()
                due = now + max(SECONDS_BETWEEN_CHECKPOINTS, TIMES_BETWEEN_CHECKPOINTS * (now - start))
            if listener is not None:
                listener(progress)

        return heard
