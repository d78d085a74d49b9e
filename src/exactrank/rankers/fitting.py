"""The steps of a fit that all rankers share: prepare data, train, report."""

import warnings
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from exactrank._support.arguments import wrong_kind
from exactrank._support.arrays import Table
from exactrank._support.json_values import json_object
from exactrank._support.progress_bars import ProgressLine, progress_listener
from exactrank._support.serialize import from_record, to_record
from exactrank.data.backend import Backend
from exactrank.data.dataset import Dataset
from exactrank.data.ranking_data import RankingData
from exactrank.data.sharded import dataset_of, with_kernels
from exactrank.data.shards import Shards
from exactrank.errors import IncompatibleError, InterruptedWarning
from exactrank.learning.training.history import History
from exactrank.learning.training.judge import Task
from exactrank.learning.training.progress import Listener, Progress, Trained, line_of
from exactrank.learning.training.run import Journal, Root
from exactrank.learning.training.selection import Selection
from exactrank.measures.evaluate import Result
from exactrank.models.base import Scorer
from exactrank.models.model import Model
from exactrank.rankers.checks import check_shards, check_start, check_takes_shards
from exactrank.rankers.division import estimated, estimated_by_scores, filled_scores
from exactrank.rankers.training_data import (
    GradedBy,
    TrainingData,
    check_measure_tells_apart,
    joined,
    judged,
    training_data,
    with_features_of,
)

if TYPE_CHECKING:
    from exactrank.rankers.base import Ranker

Checkpoint = Callable[[Model], None]
Valid = RankingData | Shards | tuple[Table, npt.ArrayLike, npt.ArrayLike]
#: What a fit leaves on the ranker.
FITTED = {"model_", "history_", "selection_", "n_features_in_", "feature_names_in_", "oof_", "valid_oof_", "estimate_"}


def dataset_for(ranker: "Ranker", X: Table, valid: Valid | None, **judgments: npt.ArrayLike | None) -> Dataset:
    """Return what a caller gave as a dataset that ``ranker`` can train on."""
    if isinstance(X, Shards):
        check_takes_shards(ranker)
        data = dataset_of(X, ranker.backend)
        ranker.check_shards(data)
        check_shards(ranker, data, valid is not None)
        ranker.check_effects(data, valid is not None)
        return data
    if isinstance(valid, Shards):
        raise IncompatibleError("valid is in several files, and the training data is not; read both with er.read_shards, or er.read")
    data = judged(X, **judgments)
    ranker.check_effects(data, valid is not None)
    return data


def prepare(ranker: "Ranker", data: Dataset, X: Table, valid: Valid | None, start: Model | None) -> TrainingData:
    """Return ``data`` and validation data, checked, filled and put into an order of their content."""
    measure = ranker.goal().measure
    held_out: Dataset | tuple[Table, npt.ArrayLike, npt.ArrayLike] | None
    held_out = valid if valid is None or isinstance(valid, tuple) else validation_for(ranker, valid)
    if measure.column is not None:  # every objective then learns from it
        data = data.transform(GradedBy(measure))
        held_out = held_out if held_out is None or isinstance(held_out, tuple) else held_out.transform(GradedBy(measure))
    if start is not None:
        check_start(ranker, start.scorer)
        data = data if isinstance(X, Shards) else with_features_of(start.scorer, X, data.gather(), valid)
    scorer = None if start is None else start.scorer
    given = training_data(data, held_out, ranker.missing, ranker.threads, scorer, measure.column)
    check_measure_tells_apart(measure, data, ranker.threads)
    return replace(given, learnt=joined(given.data, given.valid)) if ranker.cross_fits(data) else given


def validation_for(ranker: "Ranker", valid: RankingData | Shards) -> Dataset:
    """Return validation data as a dataset, in this process if ``ranker`` wants it so."""
    data = dataset_of(valid, ranker.backend)
    return data if ranker.takes.sharded_validation else data.gather()


@dataclass(frozen=True, eq=False)
class Outcome:
    """A model that has been trained, and how, by a ``trainer``."""

    trainer: "Ranker"
    trained: Trained[Scorer]
    root: Root
    journal: Journal


def trainer_of(ranker: "Ranker", data: Dataset, goes_on: bool) -> "Ranker":
    """Return a copy of ``ranker`` without open settings; what a fit keeps there, another thread's fit of the same ranker does not see."""
    trainer, settings = copy(ranker), {name: value for name, value in vars(ranker).items() if name not in FITTED}
    trainer.__dict__ = settings | ranker.resolved_settings(data, goes_on)
    return trainer


def train(
    ranker: "Ranker",
    trainer: "Ranker",
    given: TrainingData,
    progress: bool | Listener,
    checkpoint: Checkpoint | None,
    resume: Model | None,
) -> Outcome:
    """Train on the data ``given``, with progress and checkpoints; warn of trouble. Models have the settings of the ``ranker``."""
    if checkpoint is not None and not callable(checkpoint):
        raise wrong_kind("checkpoint", checkpoint, "a function that is called with the model so far, and may save it")
    goal = ranker.goal()
    valid = None if trainer.cross_fits(given.data) else given.valid
    learnt = with_kernels(given.learnt.gather(), ranker.backend) if given.learnt.is_local else given.learnt
    task = Task(goal.measure, learnt, valid, ranker.threads, start=given.start, constraints=goal.constraints)
    journal = Journal() if resume is None else ranker.journal_of(resume, given)
    keep = None if checkpoint is None else partial(_keep, ranker, given, checkpoint)
    with progress_listener(progress, type(ranker).__name__, partial(_line, str(goal.measure), ranker.backend)) as listener:
        root = Root(listener, keep, journal)
        trained = root.train(partial(trainer.trained, task))
    if trained.trouble:
        warnings.warn(f"{trained.trouble}; the best model so far is kept", ConvergenceWarning, stacklevel=3)
    if root.interrupted:
        warnings.warn("training was interrupted; the best model so far is kept", InterruptedWarning, stacklevel=3)
    return Outcome(trainer, trained, root, journal)


def report(ranker: "Ranker", outcome: Outcome, given: TrainingData, X: Table) -> dict[str, Any]:
    """Return the attributes that a fit leaves on its ranker."""
    trained, root, measure = outcome.trained, outcome.root, ranker.goal().measure
    estimate, fitted = estimate_of(outcome.trainer, given)
    facts: dict[str, Any] = {"chosen": dict(trained.chosen)} if trained.chosen else {}
    if estimate is not None:
        facts |= {"estimate": estimate.mean, "interval": list(estimate.interval)}
    fitted |= {"history_": History(outcome.journal.history, str(measure)), "selection_": Selection(trained.alternatives, str(measure))}
    fitted["n_features_in_"] = given.given.n_features
    if isinstance(X, RankingData | Shards) or hasattr(X, "columns"):
        fitted["feature_names_in_"] = np.array(given.given.feature_names, object)
    model = model_of(ranker, given, trained.iterate, trained.steps, root.interrupted, **facts)
    fitted["model_"] = replace(model, run=to_record(vars(root.resumable))) if root.interrupted else model
    given.forget()
    return fitted


def estimate_of(trainer: "Ranker", given: TrainingData) -> tuple[Result | None, dict[str, Any]]:
    """Return the measure of cross-fitted models on queries that they have not seen, and what is kept of both."""
    measure, threads = trainer.goal().measure, trainer.threads
    oof, unseen, estimate = vars(trainer).get("oof_"), vars(trainer).get("unseen"), None
    fitted: dict[str, Any] = {}
    if oof is not None and not np.isnan(oof).any():
        estimate = estimated_by_scores(given, oof, measure, threads)
        if given.data.is_local:
            fitted["oof_"] = given.data.gather().ungroup(oof[: given.data.n_documents])
            if given.valid is not None:
                fitted["valid_oof_"] = given.valid.gather().ungroup(oof[given.data.n_documents :])
    elif unseen is not None:
        estimate = estimated(given, unseen, measure, threads)
    return estimate, fitted if estimate is None else fitted | {"estimate_": estimate}


def model_of(ranker: "Ranker", given: TrainingData, scorer: Scorer, steps: int, interrupted: bool, **facts: object) -> Model:
    """The model of ``scorer``, with ``facts`` of its training, and what it reaches on the data as given: ties may go by that order."""
    reached: dict[str, float | None] = {"value": None, "valid": None}
    constraints: dict[str, Mapping[str, float]] = {}
    for name, data in (("value", given.given), ("valid", given.given_valid)):
        if data is not None and not (name == "valid" and given.learnt is not given.data):
            reached[name], of_constraints = values_of_goal(ranker, scorer, data, given)
            constraints |= {name: of_constraints} if of_constraints else {}
    facts |= {"constraints": constraints} if constraints else {}
    training = {**reached, "steps": steps, "interrupted": interrupted, **facts}
    whole = ranker.with_stand_ins(scorer, given.fill, given.data.offset)
    params = {name: value for name, value in ranker.get_params().items() if name != "backend"}  # where it was trained says nothing of it
    return Model(whole, repr(ranker.goal()), type(ranker).__name__, params, given.facts, ranker.seed, training=training)


def values_of_goal(ranker: "Ranker", scorer: Scorer, data: Dataset, given: TrainingData) -> tuple[float, Mapping[str, float]]:
    """Return the measure of ``scorer`` on ``data`` as it was given, and the measures of constraints."""
    goal, score = ranker.goal(), partial(filled_scores, scorer, given.fill, ranker.threads)
    constraints = {str(one): one.measure.over(data, threads=ranker.threads).mean(score) for one in goal.constraints}
    return goal.measure.over(data, threads=ranker.threads).mean(score), constraints


def journal_of(ranker: "Ranker", model: Model, given: TrainingData) -> Journal:
    """What there is to resume from in ``model``, which ``ranker`` must have trained, with the same settings and on the same data."""
    ours = {"ranker": type(ranker).__name__, "measure": repr(ranker.goal()), "data": given.facts}
    wanted = json_object(ranker.get_params()) | ours
    theirs = json_object(model.params) | {"ranker": model.ranker, "measure": model.measure, "data": model.data}
    free = {name for name, one in ranker.settings.items() if one.free}
    for name in ("ranker", *sorted(wanted.keys() - free)):  # the settings of another ranker say nothing
        if theirs.get(name) != wanted[name]:
            trouble = f"the model was trained with {name}={theirs.get(name)}, not {wanted[name]}"
            raise IncompatibleError(f"{trouble}; resume with the same settings, or train anew")
    return Journal() if model.run is None else Journal(**from_record(model.run, "the checkpoint"))


def _keep(ranker: "Ranker", given: TrainingData, checkpoint: Checkpoint, scorer: Scorer, steps: int, journal: Journal) -> None:
    """Give ``checkpoint`` a model of the best scorer so far, with what to resume from."""
    checkpoint(replace(model_of(ranker, given, scorer, steps, interrupted=True), run=to_record(vars(journal))))


def _line(measure: str, backend: Backend | None, progress: Progress) -> ProgressLine:
    """What a progress bar says; on a cluster also how many workers there are, and how much goes through the network."""
    line, status = line_of(measure, progress), "" if backend is None else backend.status
    return replace(line, activity=f"{line.activity}, {status}") if status else line
