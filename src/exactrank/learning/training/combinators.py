"""Combinators: one run made of several. Each gets runs and a recorder, and gives what one run would.

seen       a run whose iterates stand for others, as parameters for scorers
restarts   one of several independent runs
phases     each begins at what the one before kept
trials     short runs of several settings, one of which goes on
by_folds   which of several candidates to keep, by queries that it has not seen
bags       the mean of several models: of bootstrap samples, or cross-fitted

Which run is kept is said in `exactrank.learning.training.selection`.
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
from exactrank.learning.training.run import Recorder, same
from exactrank.learning.training.selection import Choice, alternatives, choose, verdicts_by
from exactrank.measures.bound import means_over_queries
from exactrank.models.base import Scorer
from exactrank.models.sum import mean_of

J = TypeVar("J")
Part = Callable[[Recorder[It]], Trained[It]]
Phase = Callable[[It, Recorder[It]], Trained[It]]  #: a run from a given iterate


def seen(run: Part[J], view: Callable[[J], It], recorder: Recorder[It]) -> Trained[It]:
    """``run``, whose iterates are seen as what ``view`` makes of them."""
    trained = run(recorder.part(view=view))
    return Trained(
        view(trained.iterate), trained.verdict, trained.steps, trained.trouble, trained.chosen, alternatives=trained.alternatives
    )


def restarts(
    runs: Sequence[Part[It]],
    recorder: Recorder[It],
    patience: int | None = None,
    ends: list[Trained[It]] | None = None,
    goes_on: bool = False,
    names: Sequence[str] = (),
    rule: Callable[[Sequence[Verdict]], Choice[int]] = choose,
) -> Trained[It]:
    """The one to keep of ``runs`` by a ``rule``, one after the other; ``patience`` of them in a row without a better mean end it.

    The result of each is put into ``ends``, for later ones to begin from; with ``goes_on`` they are reported as one run. The last trouble
    is reported, and how close the runs are if they have ``names``.
    """
    ends = [] if ends is None else ends
    for number, run in enumerate(runs):
        ends.append(run(recorder.part(number, len(runs), goes_on=goes_on)))
        if patience is not None and number - chosen_of(ends).best_number >= patience:
            break
    if not ends:
        raise ValueError("there must be a run")
    verdicts = [end.verdict for end in ends]
    number = rule(verdicts).number
    trained = replace(ends[number], steps=recorder.made, trouble=ends[-1].trouble)
    compared = alternatives(names[: len(ends)], verdicts, number) if names and len(ends) > 1 else trained.alternatives
    return replace(trained, alternatives=compared)


def start_names(count: int) -> list[str]:
    """Return names for runs that differ in their start."""
    return [f"start {number + 1}" for number in range(count)]


def chosen_of(ends: Sequence[Trained[It]]) -> Choice[int]:
    """Return the number of the run to keep."""
    return choose([end.verdict for end in ends])


def phases(runs: Sequence[Phase[It]], start: It, recorder: Recorder[It]) -> Trained[It]:
    """The one to keep of ``runs``, each of which begins at the iterate that the one before kept, the first at ``start``."""
    ends: list[Trained[It]] = []

    def next_phase(run: Phase[It], part: Recorder[It]) -> Trained[It]:
        return run(ends[-1].iterate if ends else start, part)

    return restarts([partial(next_phase, run) for run in runs], recorder, ends=ends, goes_on=True)


def trials(tried: Sequence[Part[It]], rest: Sequence[Phase[It]], recorder: Recorder[It], names: Sequence[str] = ()) -> Trained[It]:
    """The one to keep of all ``tried``, which have ``names``; where there is a ``rest`` of each, it goes on with its own."""
    ends: list[Trained[It]] = []

    def go_on(part: Recorder[It]) -> Trained[It]:
        number = chosen_of(ends).number
        return rest[number](ends[number].iterate, part)

    return restarts([*tried, *([go_on] if rest else [])], recorder, ends=ends, names=[*names, "the rest"] if names else ())


def by_folds(
    runs: Callable[[Dataset], Sequence[Part[It]]], candidates: int, judge: Judge[It], folds: int, seed: int, recorder: Recorder[It]
) -> list[Verdict]:
    """The verdict on each of ``candidates`` by queries that it has not seen.

    ``runs`` gives the run of each candidate on data in which some queries, those of a fold, have weight 0. Only the end of each run is
    reported, with the best value of the measure so far. If no query can judge, e.g. because only one has weight, all are alike. The
    expected steps are those of all folds and of one more run, since the choice is still to be trained on all queries.
    """
    (asked, _, selects), data, weight = judge.measures, judge.task.data, judge.task.data.weights
    dealt = FoldNumbers(data.n_queries, min(folds, data.n_queries), seed)
    fold = dealt.of(0, data.n_queries)
    held_out = np.full((candidates, data.n_queries), np.nan)
    parts, made, best = int(fold.max()) + 1, 0, None
    for part in range(parts):
        if not np.any(weight[fold != part] > 0):
            continue
        for number, run in enumerate(runs(data.reweigh(_Without(dealt, part)))):
            own: Recorder[It] = Recorder(recorder.journal, None, f"{recorder.place}/{part}/{number}")  # kept, but told to nobody
            new = own.place not in own.journal.entries
            trained = run(own)
            score, made = CachedScore(judge.score(trained.iterate)), made + trained.steps
            found = selects.values(score)
            held_out[number, fold == part] = found[fold == part]
            goodness = float(means_over_queries(found[None], weight)[0])
            if best is None or goodness > best.goodness:
                best = Verdict(asked.mean(score), None, goodness)
            verdict = replace(best, goodness=goodness)
            foreseen = made * (parts * candidates + 1) // (part * candidates + number + 1)
            recorder.heard(Progress(made, foreseen, verdict.value), verdict, partial(same, trained.iterate), new)
    return verdicts_by(held_out, weight)


@dataclass(frozen=True)
class _Without:
    """The weights of some queries, 0 of those that are in the fold ``part``."""

    dealt: FoldNumbers
    part: int

    def __call__(self, first: int, weights: PerQuery) -> PerQuery:
        return np.where(self.dealt.of(first, len(weights)) == self.part, 0.0, weights)


def bags(
    members: Sequence[Part[Scorer]],
    judge: Callable[[Scorer], Verdict],
    recorder: Recorder[Scorer],
    workers: int = 0,
    view: Callable[[Scorer], Scorer] = same,
) -> Trained[Scorer]:
    """The mean of what ``view`` makes of ``members``. With ``workers`` they are trained in parallel, in as many threads."""
    done: list[Scorer] = []
    trouble = ""
    for number, trained in enumerate(_trained(members, done, recorder, workers, view)):
        done.append(view(trained.iterate))
        trouble = trouble or trained.trouble
        mean, step = mean_of(done), number + 1 if workers else recorder.made
        verdict = recorder.finished(mean, judge, step, max(step, 1) * len(members) // (number + 1), f"mean {number}")
    return Trained(mean, verdict, recorder.made, trouble)


def _trained(
    members: Sequence[Part[Scorer]], done: Sequence[Scorer], recorder: Recorder[Scorer], workers: int, view: Callable[[Scorer], Scorer]
) -> Iterable[Trained[Scorer]]:
    """The members in order; while one is trained, the best model of all is the mean of it and those before."""
    if not workers:
        for number, member in enumerate(members):
            yield member(recorder.part(number, len(members), lambda scorer: mean_of([*done, view(scorer)]), latest=True))
        return
    keys = [f"{recorder.place}:member {number}" for number in range(len(members))]
    with Pool(workers) as pool:  # of what is trained beside others, only the result is kept
        entries = recorder.journal.entries
        jobs = {key: pool.submit(member, Recorder()) for key, member in zip(keys, members, strict=True) if key not in entries}
        try:
            for key in keys:
                if key in jobs:
                    entries[key] = jobs[key].result()
                yield entries[key]  # type: ignore[misc]
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def bootstrap(data: Dataset, rng: np.random.Generator) -> tuple[PerQuery, PerQuery]:
    """The weights of a bootstrap sample of the queries, and of those that it left out."""
    drawn = bootstrap_counts(data.n_queries, rng)
    return data.weights * drawn, data.weights * (drawn == 0)
