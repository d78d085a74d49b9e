"""Combinators: one run made of several. Each gets runs and a recorder, and gives what one run would.

seen       a run whose iterates stand for others, as parameters for scorers
restarts   the best of runs that know nothing of each other
phases     each begins where the best of the one before ended
trials     short runs of several settings, of which the best goes on
by_folds   which of several candidates is best on queries that it has not seen
bags       the mean of several models: of bootstrap samples, or cross-fitted
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from exactrank.arrays import PerQuery
from exactrank.data.folds import deal_folds
from exactrank.data.ranking_data import RankingData
from exactrank.measures.bound import means_over_queries
from exactrank.scorers.base import Scorer
from exactrank.scorers.mean import mean_of
from exactrank.threads import Pool
from exactrank.training.judge import Judge
from exactrank.training.progress import It, Progress, Trained, Verdict
from exactrank.training.recorder import Recorder

J = TypeVar("J")
Part = Callable[[Recorder[It]], Trained[It]]


def seen(run: Part[J], view: Callable[[J], It], recorder: Recorder[It]) -> Trained[It]:
    """``run``, whose iterates are seen as what ``view`` makes of them."""
    trained = run(recorder.seen_as(view))
    return Trained(view(trained.iterate), trained.verdict, trained.steps, trained.trouble, trained.chosen)


def restarts(runs: Sequence[Part[It]], recorder: Recorder[It], patience: int | None = None) -> Trained[It]:
    """The best of ``runs``, one after the other; ``patience`` of them in turn that are no better end it. The last one's trouble is told."""
    best, stale, last = None, 0, None
    for number, run in enumerate(runs):
        last = run(recorder.part(number, len(runs)))
        better = best is None or last.verdict.goodness > best.verdict.goodness
        best, stale = (last, 0) if better or best is None else (best, stale + 1)
        if patience is not None and stale >= patience:
            break
    if best is None or last is None:
        raise ValueError("there must be a run")
    return replace(best, steps=recorder.made, trouble=last.trouble)


def phases(runs: Sequence[Callable[[It, Recorder[It]], Trained[It]]], start: It, recorder: Recorder[It]) -> Trained[It]:
    """The best of ``runs``, each of which begins where the best of the one before ended, the first at ``start``."""
    reached = start

    def one(run: Callable[[It, Recorder[It]], Trained[It]], part: Recorder[It]) -> Trained[It]:
        nonlocal reached
        trained = run(reached, part)
        reached = trained.iterate
        return trained

    return restarts([partial(one, run) for run in runs], recorder)


def trials(tried: Sequence[Part[It]], rest: Callable[[int, It], Part[It]] | None, recorder: Recorder[It]) -> Trained[It]:
    """The best of all ``tried``; where there is a ``rest`` the best of them goes on with it, by its number and iterate."""
    ends: list[Trained[It]] = []

    def one(run: Part[It], part: Recorder[It]) -> Trained[It]:
        ends.append(run(part))
        return ends[-1]

    def last(part: Recorder[It]) -> Trained[It]:
        best = max(range(len(ends)), key=lambda number: ends[number].verdict.goodness)
        return rest(best, ends[best].iterate)(part)  # type: ignore[misc]

    return restarts([*(partial(one, run) for run in tried), *([] if rest is None else [last])], recorder)


def by_folds(
    runs: Callable[[RankingData], Sequence[Part[It]]], candidates: int, judge: Judge[It], folds: int, seed: int, recorder: Recorder[It]
) -> int:
    """The number of the one of ``candidates`` that is best on queries it has not seen.

    ``runs`` gives the run of each candidate on data of which some queries, those of a fold, weigh nothing. Only the end of each run is
    told, with what the measure is at the best so far. Where no query can judge, as when a single one has weight, it is the first. The
    steps that are foreseen are those of all folds and of one more run, since the choice is yet to be trained on all queries.
    """
    data, weight = judge.data, judge.data.weights
    fold = deal_folds(data.n_queries, min(folds, data.n_queries), seed)
    held_out = np.full((candidates, data.n_queries), np.nan)
    parts, made, best = int(fold.max()) + 1, 0, None
    for part in range(parts):
        seen = np.where(fold == part, 0.0, weight)
        if not np.any(seen > 0):
            continue
        for number, run in enumerate(runs(replace(data, query_weight=seen))):
            own = recorder.quiet(part).quiet(number)
            new = own.entry is None
            trained = run(own)
            scores, made = judge.scores(trained.iterate, data), made + trained.steps
            found = judge.severe.values(scores)
            held_out[number, fold == part] = found[fold == part]
            goodness = float(means_over_queries(found[None], weight)[0])
            if best is None or goodness > best.goodness:
                best = Verdict(judge.asked.mean(scores), None, goodness)
            verdict = replace(best, goodness=goodness)
            foreseen = made * (parts * candidates + 1) // (part * candidates + number + 1)
            recorder.heard(Progress(made, foreseen, verdict.value), verdict, partial(_same, trained.iterate), new)
    means = means_over_queries(held_out, weight)
    return 0 if np.isnan(means).all() else int(np.nanargmax(means))


def bags(
    members: Sequence[Part[Scorer]], judge: Callable[[Scorer], Verdict], recorder: Recorder[Scorer], workers: int = 0
) -> Trained[Scorer]:
    """The mean of ``members``. With ``workers`` they are trained beside each other in as many threads."""
    done: list[Trained[Scorer]] = []
    count = len(members)
    for number, trained in enumerate(_trained(members, done, recorder, workers)):
        done.append(trained)
        mean = mean_of([one.iterate for one in done])
        new = not recorder.remembers(f"mean {number}")
        verdict = recorder.remembered(f"mean {number}", partial(judge, mean))
        step = recorder.made if not workers else number + 1
        steps = max(step, 1) * count // (number + 1)
        recorder.heard(Progress(step, steps, verdict.value, verdict.valid), verdict, partial(_same, mean), new)
    trouble = next((one.trouble for one in done if one.trouble), "")
    return Trained(mean, verdict, recorder.made, trouble)


def _trained(
    members: Sequence[Part[Scorer]], done: Sequence[Trained[Scorer]], recorder: Recorder[Scorer], workers: int
) -> Iterable[Trained[Scorer]]:
    """The members in order; while one is trained, the best model of all is the mean of it and those before."""
    if not workers:
        for number, member in enumerate(members):
            yield member(recorder.part(number, len(members), lambda scorer: mean_of([*(one.iterate for one in done), scorer]), latest=True))
        return
    with Pool(workers) as pool:
        jobs = [pool.submit(_apart, member, recorder, number) for number, member in enumerate(members)]
        try:
            for number, job in enumerate(jobs):
                yield recorder.remembered(f"member {number}", job.result)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _apart(member: Part[Scorer], recorder: Recorder[Scorer], number: int) -> Trained[Scorer]:
    found = recorder.journal.entries.get(f"{recorder.place}:member {number}")
    return found if isinstance(found, Trained) else member(recorder.apart(number))


def _same(iterate: It) -> It:
    return iterate


def bootstrap(data: RankingData, rng: np.random.Generator) -> tuple[PerQuery, PerQuery]:
    """The weights of a bootstrap sample of the queries, and of those that it left out."""
    drawn = np.bincount(rng.integers(0, data.n_queries, data.n_queries), minlength=data.n_queries)
    return data.weights * drawn, data.weights * (drawn == 0)
