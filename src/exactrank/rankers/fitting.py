"""The steps of a fit, which all rankers share: prepare data, train, report."""

import warnings
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

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
from exactrank.learning.training.judge import Task
from exactrank.learning.training.progress import History, Listener, Progress, Trained, line_of
from exactrank.learning.training.run import Journal, RootRecorder
from exactrank.learning.training.selection import Selection
from exactrank.measures.evaluate import Result
from exactrank.models.base import Scorer
from exactrank.models.model import Model
from exactrank.rankers.checks import check_shards, check_start, check_takes_shards
from exactrank.rankers.division import estimate_by_models, estimate_by_scores, filled_scores
from exactrank.rankers.training_data import (
    TrainingData,
    WithGrades,
    check_measure_distinguishes,
    join_queries,
    to_ranking_data,
    training_data,
    with_features_of,
)

if TYPE_CHECKING:
    from exactrank.rankers.base import Ranker

Checkpoint = Callable[[Model], None]
Valid = RankingData | Shards | tuple[Table, npt.ArrayLike, npt.ArrayLike]
#: The attributes that a fit sets on the ranker.
FITTED = {"model_", "history_", "selection_", "n_features_in_", "feature_names_in_", "oof_", "valid_oof_", "estimate_"}


def dataset_for(ranker: "Ranker", X: Table, valid: Valid | None, **judgments: npt.ArrayLike | None) -> Dataset:
    """Return the arguments of ``fit`` as a dataset that ``ranker`` can train on."""
    if isinstance(X, Shards):
        check_takes_shards(ranker)
        data = dataset_of(X, ranker.backend)
        ranker.check_shards(data)
        check_shards(ranker, data, valid is not None)
        ranker.check_effects(data, valid is not None)
        return data
    if isinstance(valid, Shards):
        raise IncompatibleError("valid is in several files, and the training data is not; read both with er.read_shards, or er.read")
    data = to_ranking_data(X, **judgments)
    ranker.check_effects(data, valid is not None)
    return data


def prepare(ranker: "Ranker", data: Dataset, X: Table, valid: Valid | None, start: Model | None) -> TrainingData:
    """Return ``data`` and validation data: checked, with missing values filled, and sorted by content."""
    measure = ranker.goal().measure
    held_out: Dataset | tuple[Table, npt.ArrayLike, npt.ArrayLike] | None
    if valid is None or isinstance(valid, tuple):
        held_out = valid
    else:
        held_out = dataset_of(valid, ranker.backend)
        held_out = held_out if ranker.takes.sharded_validation else held_out.gather()
    if measure.column is not None:  # every objective then learns from it
        data = data.transform(WithGrades(measure))
        held_out = held_out if held_out is None or isinstance(held_out, tuple) else held_out.transform(WithGrades(measure))
    if start is not None:
        check_start(ranker, start.scorer)
        data = data if isinstance(X, Shards) else with_features_of(start.scorer, X, data.gather(), valid)
    scorer = None if start is None else start.scorer
    training = training_data(data, held_out, ranker.missing, ranker.threads, scorer, measure.column)
    check_measure_distinguishes(measure, data, ranker.threads)
    return replace(training, joint=join_queries(training.data, training.valid)) if ranker.cross_fits(data) else training


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of training by a ``trainer``, with its history."""

    trainer: "Ranker"
    trained: Trained[Scorer]
    root: RootRecorder
    journal: Journal


def trainer_of(ranker: "Ranker", data: Dataset, goes_on: bool) -> "Ranker":
    """Return a copy of ``ranker`` with its open settings resolved, so that several threads may fit the same ranker."""
    trainer, settings = copy(ranker), {name: value for name, value in vars(ranker).items() if name not in FITTED}
    trainer.__dict__ = settings | ranker.resolve_settings(data, goes_on)
    return trainer


def train(
    ranker: "Ranker",
    trainer: "Ranker",
    training: TrainingData,
    progress: bool | Listener,
    checkpoint: Checkpoint | None,
    resume: Model | None,
) -> Outcome:
    """Train on the prepared data, with progress and checkpoints, and warn of trouble; models have the settings of the ``ranker``."""
    if checkpoint is not None and not callable(checkpoint):
        raise wrong_kind("checkpoint", checkpoint, "a function that is called with the model so far, and may save it")
    goal = ranker.goal()
    valid = None if trainer.cross_fits(training.data) else training.valid
    data = with_kernels(training.joint.gather(), ranker.backend) if training.joint.is_local else training.joint
    task = Task(goal.measure, data, valid, ranker.threads, start=training.start, constraints=goal.constraints)
    journal = Journal() if resume is None else ranker.journal_of(resume, training)
    save = None if checkpoint is None else partial(_save_checkpoint, ranker, training, checkpoint)
    with progress_listener(progress, type(ranker).__name__, partial(_line, str(goal.measure), ranker.backend)) as listener:
        root = RootRecorder(listener, save, journal)
        trained = root.train(partial(trainer.train, task))
    if trained.trouble:
        warnings.warn(f"{trained.trouble}; the best model so far is kept", ConvergenceWarning, stacklevel=3)
    if root.interrupted:
        warnings.warn("training was interrupted; the best model so far is kept", InterruptedWarning, stacklevel=3)
    return Outcome(trainer, trained, root, journal)


def report(ranker: "Ranker", outcome: Outcome, training: TrainingData, X: Table) -> dict[str, object]:
    """Return the attributes that a fit sets on its ranker."""
    trained, root, measure = outcome.trained, outcome.root, ranker.goal().measure
    estimate, fitted = estimate_of(outcome.trainer, training)
    facts: dict[str, object] = {"chosen": dict(trained.settings)} if trained.settings else {}
    if estimate is not None:
        facts |= {"estimate": estimate.mean, "interval": list(estimate.interval)}
    fitted |= {"history_": History(outcome.journal.history, str(measure)), "selection_": Selection(trained.alternatives, str(measure))}
    fitted["n_features_in_"] = training.original.n_features
    if isinstance(X, RankingData | Shards) or hasattr(X, "columns"):
        fitted["feature_names_in_"] = np.array(training.original.feature_names, object)
    model = model_of(ranker, training, trained.iterate, trained.steps, root.interrupted, **facts)
    fitted["model_"] = replace(model, run=to_record(vars(root.resumable))) if root.interrupted else model
    training.forget()
    return fitted


def estimate_of(trainer: "Ranker", training: TrainingData) -> tuple[Result | None, dict[str, object]]:
    """Return the measure of cross-fitted models on queries that they have not seen, and the attributes about it."""
    measure, threads = trainer.goal().measure, trainer.threads
    oof, unseen, estimate = vars(trainer).get("oof_"), vars(trainer).get("unseen"), None
    fitted: dict[str, object] = {}
    if oof is not None and not np.isnan(oof).any():
        estimate = estimate_by_scores(training, oof, measure, threads)
        if training.data.is_local:
            fitted["oof_"] = training.data.gather().ungroup(oof[: training.data.n_documents])
            if training.valid is not None:
                fitted["valid_oof_"] = training.valid.gather().ungroup(oof[training.data.n_documents :])
    elif unseen is not None:
        estimate = estimate_by_models(training, unseen, measure, threads)
    return estimate, fitted if estimate is None else fitted | {"estimate_": estimate}


def model_of(ranker: "Ranker", training: TrainingData, scorer: Scorer, steps: int, interrupted: bool, **facts: object) -> Model:
    """Return the model of ``scorer`` with ``facts`` about its training, and its values on the original data."""
    values: dict[str, float | None] = {"value": None, "valid": None}
    constraints: dict[str, Mapping[str, float]] = {}
    for name, data in (("value", training.original), ("valid", training.original_valid)):
        if data is not None and not (name == "valid" and training.joint is not training.data):
            values[name], of_constraints = values_of_goal(ranker, scorer, data, training)
            constraints |= {name: of_constraints} if of_constraints else {}
    facts |= {"constraints": constraints} if constraints else {}
    record = {**values, "steps": steps, "interrupted": interrupted, **facts}
    complete = ranker.complete_scorer(scorer, training.fill, training.data.offset)
    params = {name: value for name, value in ranker.get_params().items() if name != "backend"}  # which does not affect the model
    return Model(complete, repr(ranker.goal()), type(ranker).__name__, params, training.facts, ranker.seed, training=record)


def values_of_goal(ranker: "Ranker", scorer: Scorer, data: Dataset, training: TrainingData) -> tuple[float, Mapping[str, float]]:
    """Return the measure of ``scorer`` on original ``data``, and the measures of constraints."""
    goal, score = ranker.goal(), partial(filled_scores, scorer, training.fill, ranker.threads)
    constraints = {str(limit): limit.measure.over(data, threads=ranker.threads).mean(score) for limit in goal.constraints}
    return goal.measure.over(data, threads=ranker.threads).mean(score), constraints


def journal_of(ranker: "Ranker", model: Model, training: TrainingData) -> Journal:
    """Return the journal of ``model``, which the same ``ranker`` must have trained, with the same settings and on the same data."""
    identity = {"ranker": type(ranker).__name__, "measure": repr(ranker.goal()), "data": training.facts}
    expected = json_object(ranker.get_params()) | identity
    actual = json_object(model.params) | {"ranker": model.ranker, "measure": model.measure, "data": model.data}
    free = {name for name, setting in ranker.settings.items() if setting.free}
    for name in ("ranker", *sorted(expected.keys() - free)):  # the settings of another ranker say nothing
        if actual.get(name) != expected[name]:
            trouble = f"the model was trained with {name}={actual.get(name)}, not {expected[name]}"
            raise IncompatibleError(f"{trouble}; resume with the same settings, or train anew")
    return Journal() if model.run is None else Journal(**from_record(model.run, "the checkpoint"))


def _save_checkpoint(
    ranker: "Ranker", training: TrainingData, checkpoint: Checkpoint, scorer: Scorer, steps: int, journal: Journal
) -> None:
    """Call ``checkpoint`` with a model of the best scorer so far and the journal to resume from."""
    checkpoint(replace(model_of(ranker, training, scorer, steps, interrupted=True), run=to_record(vars(journal))))


def _line(measure: str, backend: Backend | None, progress: Progress) -> ProgressLine:
    """Return the line of a progress bar; on a cluster also with the number of workers and of bytes sent."""
    line, status = line_of(measure, progress), "" if backend is None else backend.status
    return replace(line, activity=f"{line.activity}, {status}") if status else line
