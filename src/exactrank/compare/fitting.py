"""The work of the process of a fit: map the data, fit the contender, measure it and write the result.

A trial needs only the mean on validation data. Since it chooses settings, tied documents count in their worst order there
(`exactrank.measures.ties`).
"""

import json
import re
import resource
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash

from exactrank._support.arrays import PerDocument
from exactrank._support.files import scratch_folder, whole_file
from exactrank._support.pictures import outline
from exactrank._support.text import clip, log_traceback, reason_of
from exactrank.compare.contender import Contender, ContenderTask, Fitted
from exactrank.compare.divisions import PARTS, CachedDivision
from exactrank.compare.results import RANKS, FeatureWeights, Fit, Settings, Slice, Trial, write_record
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.learning.objectives.profile import profile
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import Result, measure_scores
from exactrank.measures.graded import NDCG
from exactrank.measures.ties import worst_tie_order

#: Columns of a drawn step function.
COLUMNS = 400
#: Text that stands in names of files as it is; file systems may ignore case, and how letters are composed.
PLAIN = re.compile(r"(?!fold\d)[a-z0-9_+-]+|Fold\d+", re.ASCII)
#: Maximum number of bytes of each part of such a name.
LONGEST = 48
#: Bytes per unit of ``ru_maxrss``.
MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, eq=False)
class FitJob:
    """A trial or a final fit, as a value that is sent to the process that does it."""

    dataset: str
    division: CachedDivision
    contender: Contender
    settings: Settings
    measures: Mapping[str, Measure]  #: the first is trained on
    seed: int
    threads: int
    result: Path  #: the file to write
    models: Path | None = None  #: the folder for the model; None for a trial
    number: int = 0  #: of a trial
    limit: float | None = None  #: seconds after which it is killed

    @property
    def is_trial(self) -> bool:
        """True for a trial of tuning."""
        return self.models is None

    def run(self) -> None:
        """Fit, measure and write the result; an error is a result too."""
        beginning = time.perf_counter()
        result: Trial | Fit
        try:
            division, name, scratch = self.division, next(iter(self.measures)), self.division.train.path.parent
            task = ContenderTask(self.dataset, division.read(), division.test.rows, name, self.seed, self.threads, scratch)
            started = time.perf_counter()
            fitted = self.contender.fit(task, self.settings)
            seconds = time.perf_counter() - started
            result = _measure_trial(self, task, fitted, seconds) if self.is_trial else _measure_fit(self, task, fitted, seconds)
        except Exception as error:  # of any library that takes part: it is reported, and the other fits go on
            log_traceback()
            result = self.failure(reason_of(error), time.perf_counter() - beginning)
        write_record(self.result, result)

    def failure(self, reason: str, seconds: float = 0.0) -> Trial | Fit:
        """Return the result of a fit that failed."""
        reason = clip(reason).strip() or "it gave no reason"
        if self.is_trial:
            return Trial(self.settings, None, seconds, reason)
        return Fit(self.dataset, self.division.name, self.contender.name, self.settings, self.settings, seconds=seconds, failed=reason)


def file_stem(dataset: str, fold: str, method: str) -> str:
    """Return a name for files, distinct for each three: a hash separates names that look the same, or the same to a file system.

    >>> file_stem("web", "Fold1", "ridge"), file_stem("web/2024", "Fold1", "Small trees")
    ('web.Fold1.ridge', 'web-2024.Fold1.Small-trees.8ded5a3d66cd')
    """
    names = (dataset, fold, method)
    readable = ".".join(re.sub(r"[^\w+-]+", "-", name).encode()[:LONGEST].decode(errors="ignore") for name in names)
    if all(PLAIN.fullmatch(name) and len(name) <= LONGEST for name in names):
        return readable
    return f"{readable}.{xxhash.xxh3_64(json.dumps(names).encode()).hexdigest()[:12]}"


def _measure_trial(job: FitJob, task: ContenderTask, fitted: Fitted, seconds: float) -> Trial:
    valid = task.fold.valid
    measure = next(iter(job.measures.values()))
    scores = fitted.scores("valid", valid)
    if scores is None:
        raise IncompatibleError(f"{job.contender.name} gives no scores for validation documents, so it cannot be tuned")
    strict_measure = worst_tie_order(measure)
    value = measure_scores(valid, scores, strict_measure, threads=job.threads).means[str(strict_measure)]
    if value != value:
        raise DataError(f"{measure} has no value on the validation part: it skips every query there; give others, or empty=0")
    return Trial(job.settings, value, seconds)


def _measure_fit(job: FitJob, task: ContenderTask, fitted: Fitted, seconds: float) -> Fit:
    fold = task.fold
    by_rank: dict[str, Measure] = {f"nDCG@{k}": NDCG(k=k) for k in RANKS}
    scores = {part: fitted.scores(part, getattr(fold, part)) for part in PARTS}
    train, valid = (_evaluate(job, getattr(fold, part), scores[part], job.measures) for part in ("train", "valid"))
    test_documents = fitted.documents.get("test", fold.test)  # a run may rank more than the part has
    test = _evaluate(job, test_documents, scores["test"], by_rank | dict(job.measures))
    if not test:
        raise IncompatibleError(f"{job.contender.name} gives no scores for test documents")
    remarks = next(iter(test.values())).evaluation.remarks
    by_machine = _evaluate_machine(job, fitted, fold.train, by_rank | dict(job.measures))
    models = _save(job, task, fitted)
    peak_memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return Fit(
        job.dataset,
        fold.name,
        job.contender.name,
        fitted.settings,
        job.settings,
        seconds=seconds,
        memory=peak_memory * MAXRSS_UNIT,
        train={name: result.mean for name, result in train.items()},
        valid={name: result.mean for name, result in valid.items()},
        test={name: tuple(result.values.tolist()) for name, result in test.items()},
        machine={name: tuple(result.values.tolist()) for name, result in by_machine.items()},
        curve=fitted.curve,
        weights=fitted.weights,
        slice=_slice(job, fold.valid, scores["valid"], fitted.weights),
        models=models,
        remarks={name: remarks[str(measure)] for name, measure in job.measures.items() if str(measure) in remarks},
    )


def _evaluate_machine(job: FitJob, fitted: Fitted, train: RankingData, measures: Mapping[str, Measure]) -> dict[str, Result]:
    """Return the results by a machine's grades, of the test queries and of further ones; none without a machine."""
    graded = job.division.read_machine(train)
    if graded is None:
        return {}
    results = _evaluate(job, graded, fitted.scores("machine", graded), measures)
    if not results:
        raise IncompatibleError(
            f"{job.contender.name} has scores of the data's documents alone, and none of those that a machine has graded; leave it out,"
            " or compare runs of all documents with er.compare_runs"
        )
    return results


def _evaluate(job: FitJob, data: RankingData, scores: PerDocument | None, measures: Mapping[str, Measure]) -> dict[str, Result]:
    """Return the results by the given names, two of which may stand for the same measure; none if there are no scores."""
    if scores is None:
        return {}
    evaluation = measure_scores(data, scores, list(measures.values()), threads=job.threads)
    return {name: evaluation[str(measure)] for name, measure in measures.items()}


def _save(job: FitJob, task: ContenderTask, fitted: Fitted) -> tuple[str, ...]:
    """Save the model and return the names of its files, which are complete when they appear in the folder of models."""
    if job.models is None:
        return ()
    job.models.mkdir(exist_ok=True)
    with scratch_folder(task.scratch) as folder:
        fitted.save(folder, file_stem(task.dataset, task.fold.name, job.contender.name))
        paths = sorted(folder.iterdir())
        for path in paths:
            if path.is_dir():  # as the models of some libraries are
                path.replace(job.models / path.name)
                continue
            with open(path, "rb") as content, whole_file(job.models / path.name, force=True) as file:
                shutil.copyfileobj(content, file)
    return tuple(path.name for path in paths)


def _slice(job: FitJob, data: RankingData, scores: PerDocument | None, weights: FeatureWeights | None) -> Slice | None:
    """Return the measure on validation data as multiples of the feature with the largest weight are added to the scores."""
    if scores is None or weights is None or not np.any(weights.values):
        return None
    feature = weights.names[int(np.argmax(np.abs(weights.values)))]
    direction = data.feature(feature)
    if not np.isfinite(direction).all() or not np.isfinite(scores).all() or not np.ptp(direction) or not np.ptp(scores):
        return None
    with np.errstate(all="ignore"):
        far = 2.0 * float(scores.std() / direction.std())
    if not 0.0 < far < np.inf:  # the squares of such numbers overflow or underflow
        return None
    measure = next(iter(job.measures.values()))
    try:
        steps = profile(data, scores, direction, measure, low=-far, high=far, threads=job.threads)
    except IncompatibleError:  # some measures have no exact steps for the way they break ties
        return None
    edges, low, high = (tuple(ends.tolist()) for ends in outline(steps.breakpoints, steps.values, np.linspace(-far, far, COLUMNS + 1)))
    return Slice(feature, "validation", edges, low, high)
