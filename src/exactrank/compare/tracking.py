"""Comparisons and tuned models in MLflow, which is optional: parameters, measures, models and the report.

A comparison is a run that holds the report and the tables, with a run of each method below it. Names in MLflow have no ``@`` and
parentheses; ``nDCG@10`` becomes ``nDCG_10``.

MLflow waits many minutes for a server that does not answer. Here it waits for seconds, unless the caller has set its environment
variables: they are set only during calls to it, and nothing else of MLflow's global state is changed.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from exactrank._support.libraries import library
from exactrank._support.text import clip
from exactrank.compare.results import FILES, Results
from exactrank.compare.schedule import MODELS
from exactrank.compare.standings import efforts, standings
from exactrank.errors import IncompatibleError

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

    from exactrank.compare.tune import Tuned

EXPERIMENT = "exactrank"
#: MLflow's variables for the seconds that it waits for an answer, and for its number of retries.
TIMEOUT, RETRIES = "MLFLOW_HTTP_REQUEST_TIMEOUT", "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
BEFORE, AFTERWARDS = {TIMEOUT: "5", RETRIES: "0"}, {TIMEOUT: "30", RETRIES: "1"}
#: Maximum length of a parameter's value in every store.
LONGEST = 500
#: Maximum length of MLflow's error messages in ours.
SHORT = 400


def log_comparison(comparison: Results, folder: Path, uri: str) -> None:
    """Log ``comparison``, whose files are in ``folder``."""
    with (
        _logging(uri, f"{folder} holds the comparison; the same command with --resume logs it again") as (client, experiment),
        _run(client, experiment, "compare", {}) as parent,
    ):
        _log_params(client, parent, {**comparison.run, "measures": ", ".join(comparison.measures.values())})
        for name in FILES:
            client.log_artifact(parent, str(folder / name))
        for method in comparison.methods:
            with _run(client, experiment, method.name, {"mlflow.parentRunId": parent}) as run:
                _log_method(client, run, comparison, method.name, folder)


def log_tuning(tuned: "Tuned", model: Path, uri: str) -> None:
    """Log the settings that tuning chose, the values of the trials, and the model."""
    with (
        _logging(uri, f"{model} holds the model") as (client, experiment),
        _run(client, experiment, f"tune {tuned.ranker.name}", {}) as run,
    ):
        _log_params(client, run, tuned.ranker.get_params())
        for step, trial in enumerate(tuned.trials):
            if trial.valid is not None:
                client.log_metric(run, "validation", trial.valid, step=step)
        client.log_artifact(run, str(model), "model")


def check_tracking(uri: str) -> None:
    """Raise if MLflow is not installed or cannot be reached: before the work, not after it."""
    with _connect(uri, BEFORE):
        pass


def _log_method(client: "MlflowClient", run: str, comparison: Results, method: str, folder: Path) -> None:
    for fit in (fit for fit in comparison.fits if fit.method == method):
        _log_params(client, run, {f"{fit.dataset}/{fit.fold}/{name}": value for name, value in fit.settings.items()})
        for name in fit.models:
            client.log_artifact(run, str(folder / MODELS / name), MODELS)
    for data in comparison.datasets:
        for measure in comparison.measures:
            (standing,) = (row for row in standings(comparison, data.name, measure) if row.method == method)
            for part, value in (("test", standing.mean), ("train", standing.train), ("validation", standing.valid)):
                if value == value:
                    client.log_metric(run, _name(f"{data.name}/{measure}/{part}"), value)
        (effort,) = (row for row in efforts(comparison, data.name) if row.method == method)
        client.log_metric(run, _name(f"{data.name}/seconds"), effort.seconds)
        client.log_metric(run, _name(f"{data.name}/memory"), float(effort.memory))
        if effort.failed:
            client.set_tag(run, _name(f"{data.name}/failed"), effort.failed)


@contextmanager
def _connect(uri: str, waits: Mapping[str, str]) -> Iterator[tuple["MlflowClient", str]]:
    """Connect a client and return it with the experiment to log to; ``waits`` are environment variables that the caller may override."""
    library("mlflow", "logs of runs", "mlflow")
    added = {name: value for name, value in waits.items() if name not in os.environ}
    os.environ.update(added)
    try:
        from mlflow.tracking import MlflowClient

        try:
            client = MlflowClient(uri)
            existing = client.get_experiment_by_name(EXPERIMENT)
            experiment = str(existing.experiment_id if existing is not None else client.create_experiment(EXPERIMENT))
        except Exception as error:  # of MLflow, its stores and their libraries
            message = clip(str(error), SHORT)
            raise IncompatibleError(f"MLflow cannot log to {uri}: {message}; start the server, or check the URI") from None
        yield client, experiment
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _logging(uri: str, saved: str) -> Iterator[tuple["MlflowClient", str]]:
    """Connect after the work; any failure becomes an `OSError` that names the results that are ``saved``."""
    try:
        with _connect(uri, AFTERWARDS) as connection:
            yield connection
    except Exception as error:  # as in `_connect`
        raise ConnectionError(f"MLflow did not take everything at {uri} ({clip(str(error), SHORT)}); {saved}") from None


@contextmanager
def _run(client: "MlflowClient", experiment: str, name: str, tags: Mapping[str, str]) -> Iterator[str]:
    run: str = client.create_run(experiment, tags=dict(tags), run_name=name).info.run_id
    try:
        yield run
    except BaseException:
        with suppress(Exception):  # the first error is the one to report
            client.set_terminated(run, "FAILED")
        raise
    client.set_terminated(run)


def _log_params(client: "MlflowClient", run: str, params: Mapping[str, object]) -> None:
    for name, value in params.items():
        client.log_param(run, _name(name), str(value)[:LONGEST])


def _name(text: str) -> str:
    """Return ``text`` as a name that MLflow accepts.

    >>> _name("web/nDCG@10/test")
    'web/nDCG_10/test'
    """
    return re.sub(r"[^\w. /-]+", "_", text).strip("_")
