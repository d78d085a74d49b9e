"""Combinators, which make one run of several. Each takes runs and a recorder, and returns the result of one run.

map_iterates     a run whose iterates are converted, such as parameters to scorers
restarts         one of several independent runs
phases           runs that each begin at the iterate that the one before kept
trials           short runs of several settings, one of which goes on
cross_validate   verdicts on several candidates, by queries that they have not seen
bags             the mean of several models: of bootstrap samples, or cross-fitted

`exactrank.learning.training.selection` decides which run is kept.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from exactrank._support.arrays import PerQuery
from exactrank._support.threads import Pool
from exactrank.data.dataset import CachedScore, Dataset
from exactrank.data.folds import FoldNumbers, bootstrap_counts
from exactrank.learning.training.judge import Judge
from exactrank.learning.training.progress import It, Progress, Trained, Verdict
from exactrank.learning.training.run import Recorder, TrainingRun, identity
from exactrank.learning.training.selection import Choice, alternatives, choose, verdicts_by
from exactrank.measures.bound import mean_over_queries
from exactrank.models.base import Scorer
from exactrank.models.sum import mean_of

J = TypeVar("J")
Phase = Callable[[It, Recorder[It]], Trained[It]]  #: a run from a given iterate


def map_iterates(run: TrainingRun[J], view: Callable[[J], It], recorder: Recorder[It]) -> Trained[It]:
    """Return the result of ``run``, with its iterates converted by ``view``."""
    trained = run(recorder.part(view=view))
    iterate, alternatives = view(trained.iterate), trained.alternatives
    return Trained(iterate, trained.verdict, trained.steps, trained.trouble, trained.settings, alternatives=alternatives)


def restarts(
    runs: Sequence[TrainingRun[It]],
    recorder: Recorder[It],
    patience: int | None = None,
    ends: list[Trained[It]] | None = None,
    goes_on: bool = False,
    names: Sequence[str] = (),
    rule: Callable[[Sequence[Verdict]], Choice[int]] = choose,
) -> Trained[It]:
    """Train ``runs`` in turn and return the one that ``rule`` selects; ``patience`` ends after this number of runs without a better one.

    The result of each run is appended to ``ends``, for later ones to begin from; with ``goes_on`` they are reported as one run. The last
    trouble is reported, and the alternatives if the runs have ``names``.
    """
    ends = [] if ends is None else ends
    for number, run in enumerate(runs):
        ends.append(run(recorder.part(number, len(runs), goes_on=goes_on)))
        if patience is not None and number - choose_run(ends).best_number >= patience:
            break
    if not ends:
        raise ValueError("there must be a run")
    verdicts = [end.verdict for end in ends]
    number = rule(verdicts).number
    trained = replace(ends[number], steps=recorder.steps, trouble=ends[-1].trouble)
    if names and len(ends) > 1:
        return replace(trained, alternatives=alternatives(names[: len(ends)], verdicts, number))
    return trained


def start_names(count: int) -> list[str]:
    """Return names for runs with different starts."""
    return [f"start {number + 1}" for number in range(count)]


def choose_run(ends: Sequence[Trained[It]]) -> Choice[int]:
    """Return the choice of a run."""
    return choose([end.verdict for end in ends])


def phases(runs: Sequence[Phase[It]], start: It, recorder: Recorder[It]) -> Trained[It]:
    """Train ``runs``, each from the iterate that the one before kept, the first from ``start``; return the one to keep."""
    ends: list[Trained[It]] = []

    def next_phase(run: Phase[It], part: Recorder[It]) -> Trained[It]:
        return run(ends[-1].iterate if ends else start, part)

    return restarts([partial(next_phase, run) for run in runs], recorder, ends=ends, goes_on=True)


def trials(runs: Sequence[TrainingRun[It]], rest: Sequence[Phase[It]], recorder: Recorder[It], names: Sequence[str] = ()) -> Trained[It]:
    """Train ``runs``, which have ``names``, and return the one to keep; if each has a ``rest``, the best goes on with its own."""
    ends: list[Trained[It]] = []

    def go_on(part: Recorder[It]) -> Trained[It]:
        number = choose_run(ends).number
        return rest[number](ends[number].iterate, part)

    return restarts([*runs, *([go_on] if rest else [])], recorder, ends=ends, names=[*names, "the rest"] if names else ())


def cross_validate(
    runs: Callable[[Dataset], Sequence[TrainingRun[It]]], candidates: int, judge: Judge[It], folds: int, seed: int, recorder: Recorder[It]
) -> list[Verdict]:
    """Return the verdict on each of ``candidates`` by queries that it has not seen.

    ``runs`` returns the run of each candidate on data in which the queries of a fold have weight 0. Only the end of each run is reported,
    with the best value of the measure so far. If no query can judge, e.g. because only one has weight, all verdicts are equal. The expected
    steps are those of all folds and of one more run, since the chosen candidate is still to be trained on all queries.
    """
    (reported, _, selecting), data, weight = judge.measures, judge.task.data, judge.task.data.weights
    fold_numbers = FoldNumbers(data.n_queries, min(folds, data.n_queries), seed)
    fold = fold_numbers.of(0, data.n_queries)
    held_out = np.full((candidates, data.n_queries), np.nan)
    folds_used, steps, best = int(fold.max()) + 1, 0, None
    for fold_number in range(folds_used):
        if not np.any(weight[fold != fold_number] > 0):
            continue
        for number, run in enumerate(runs(data.reweigh(_WithoutFold(fold_numbers, fold_number)))):
            own_recorder: Recorder[It] = Recorder(recorder.journal, None, f"{recorder.place}/{fold_number}/{number}")  # reports to nobody
            new = own_recorder.place not in own_recorder.journal.entries
            trained = run(own_recorder)
            score, steps = CachedScore(judge.score(trained.iterate)), steps + trained.steps
            values = selecting.values(score)
            held_out[number, fold == fold_number] = values[fold == fold_number]
            goodness = mean_over_queries(values, weight)
            if best is None or goodness > best.goodness:
                best = Verdict(reported.mean(score), None, goodness)
            verdict = replace(best, goodness=goodness)
            expected = steps * (folds_used * candidates + 1) // (fold_number * candidates + number + 1)
            recorder.record(Progress(steps, expected, verdict.value), verdict, partial(identity, trained.iterate), new)
    return verdicts_by(held_out, weight)


@dataclass(frozen=True)
class _WithoutFold:
    """The weights of queries, with 0 for those of one fold."""

    fold_numbers: FoldNumbers
    fold: int

    def __call__(self, first: int, weights: PerQuery) -> PerQuery:
        return np.where(self.fold_numbers.of(first, len(weights)) == self.fold, 0.0, weights)


def bags(
    members: Sequence[TrainingRun[Scorer]],
    judge: Callable[[Scorer], Verdict],
    recorder: Recorder[Scorer],
    workers: int = 0,
    view: Callable[[Scorer], Scorer] = identity,
) -> Trained[Scorer]:
    """Return the mean of ``members`` after their conversion by ``view``; with ``workers`` they are trained in this number of threads."""
    scorers: list[Scorer] = []
    trouble = ""
    for number, trained in enumerate(_train_members(members, scorers, recorder, workers, view)):
        scorers.append(view(trained.iterate))
        trouble = trouble or trained.trouble
        mean, step = mean_of(scorers), number + 1 if workers else recorder.steps
        verdict = recorder.record_result(mean, judge, step, max(step, 1) * len(members) // (number + 1), f"mean {number}")
    return Trained(mean, verdict, recorder.steps, trouble)


def _train_members(
    members: Sequence[TrainingRun[Scorer]],
    scorers: Sequence[Scorer],
    recorder: Recorder[Scorer],
    workers: int,
    view: Callable[[Scorer], Scorer],
) -> Iterable[Trained[Scorer]]:
    """Train the members in order; meanwhile, the best model so far is the mean of the present one and the ``scorers`` before it."""
    if not workers:
        for number, member in enumerate(members):
            yield member(recorder.part(number, len(members), lambda scorer: mean_of([*scorers, view(scorer)]), latest=True))
        return
    keys = [f"{recorder.place}:member {number}" for number in range(len(members))]
    with Pool(workers) as pool:  # of members that are trained in parallel, only the results are kept
        entries = recorder.journal.entries
        jobs = {key: pool.submit(member, Recorder()) for key, member in zip(keys, members, strict=True) if key not in entries}
        try:
            for key in keys:
                if key in jobs:
                    entries[key] = jobs[key].result()
                yield entries[key]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def bootstrap(data: Dataset, rng: np.random.Generator) -> tuple[PerQuery, PerQuery]:
    """Return the weights of a bootstrap sample of the queries, and of those that it leaves out."""
    counts = bootstrap_counts(data.n_queries, rng)
    return data.weights * counts, data.weights * (counts == 0)
