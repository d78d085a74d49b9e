"""Hybrid search: the best weights for a sum of several systems' scores, found exactly (`er.fuse`).

A hybrid search ranks documents by a weighted sum of the scores of BM25, a dense retriever, a reranker ...,

    s = sum_j w_j x_j,   x_j the scores of system j, made comparable (`normalize.py`).                   (1)

Between two sets of weights the measure is a step function that is known exactly, so for two systems one sweep over all weights
finds the global optimum, with proof; for more systems see `search.py` and `certificate.py`. A grid of
weights, the usual way elsewhere, sees only a few points of that function.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from exactrank._support.arguments import check_count, check_number
from exactrank._support.arrays import PerQuery
from exactrank._support.progress_bars import Advance, ProgressLine, progress_listener, step_listener
from exactrank.data.folds import bootstrap_counts, deal_folds
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.data.shards import Shards
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.fusion.certificate import Certificate, certifiable, certified
from exactrank.fusion.choose import choose
from exactrank.fusion.contenders import check_relevance, check_systems, problem_of, regraded
from exactrank.fusion.engines import ENGINES
from exactrank.fusion.engines.base import DEPTH, SearchEngine
from exactrank.fusion.fusion import Fusion
from exactrank.fusion.normalize import ABSENT, cut, parse_normalization, takes_constant
from exactrank.fusion.problem import FusionProblem, QuerySteps, Sweep, Weights, all_weights, best_weights, weighted_sum
from exactrank.fusion.resample import Pair, bootstrapped, compared
from exactrank.fusion.search import ascended, best_of, flat_range, tuned
from exactrank.fusion.systems import select_systems, systems_in_shards
from exactrank.learning.objectives.step_function import SAME_VALUE
from exactrank.measures.base import Measure
from exactrank.measures.bound import mean_over_queries
from exactrank.measures.evaluate import MOST_RESAMPLES
from exactrank.measures.goal import Goal, infeasible, parse_goal

CONSTANTS = (60, 10, 1)  #: of reciprocal ranks, where all normalizations are tried
#: All that differ by more than rounding.
EACH = ("min-max", "z-score", "l2", "none", "rank", "reciprocal-rank", "opensearch-min-max", "opensearch-z-score", "vespa-linear")
DECIMALS = range(2, 10)  #: of weights in a configuration


def fuse(
    data: RankingData | Shards,
    *,
    systems: Sequence[str] | None = None,
    measure: str | Measure = "nDCG@10",
    engine: str | None = None,
    depth: int | None = None,
    normalize: str | None = None,
    absent: str | None = None,
    nonnegative: bool = True,
    folds: int = 5,
    bootstrap: int = 200,
    tolerance: float = 1e-3,
    cells: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | Callable[[Advance], None] = False,
) -> Fusion:
    """Tune the weights of several systems, one per feature of ``data`` (NaN: not retrieved), for ``measure``.

    ``systems`` names the features to fuse (default: all); of data in several files (`er.read_shards`) only these are brought to memory.
    ``engine`` names the search engine to tune for, which decides how scores are made comparable, and whose configuration
    `Fusion.configuration` writes: elasticsearch, elasticsearch-rrf, opensearch, opensearch-rrf, vespa, qdrant or weaviate. ``depth`` is
    the maximum number of documents of each system's list (default: all; 100 for an engine).

    ``normalize`` makes scores comparable (default: min-max, or the engine's first): none, min-max, z-score, l2, rank,
    reciprocal-rank(k=60), an engine's own, or all, to choose by cross-validation. ``absent`` says what a document gets from a
    system that did not retrieve it: worst (the default), zero, zero-score, or drop to rank only documents that all retrieved.

    ``folds`` and ``bootstrap`` (each 0: none) give the cross-validated value and 95% intervals. Three systems are searched until the
    certified gap is at most ``tolerance`` or ``cells`` triangles were examined (default: as many as take a few seconds).

    ``measure`` may have constraints, as in ``nDCG@10 subject to revenue@10 >= 0.31``: for two systems the result is the global optimum of
    the weights that keep them, for more a local one, without a certificate.

    ``progress=True`` shows in a terminal or a notebook what is being done; a function is called with an `Advance` before each step.

    >>> X = [[3.0, 0.1], [2.0, 0.9], [1.0, 0.8], [9.0, 0.7], [8.0, 0.9], [1.0, 0.2]]
    >>> data = RankingData.from_arrays(X, [0, 1, 0, 0, 1, 0], group=[3, 3], feature_names=["bm25", "dense"])
    >>> fusion = fuse(data, folds=2)
    >>> fusion.value, fusion.optimum
    (1.0, 'global')
    """
    check_data(data, Shards)
    goal, target = parse_goal(measure), None if engine is None else ENGINES[engine]
    tried, rule = _normalizations(target, normalize, folds), _absent(target, absent)
    depth = DEPTH if depth is None and target else depth
    parsed = goal.measure
    _check(parsed, target, depth, nonnegative, folds, bootstrap, cells, tolerance)
    if isinstance(data, Shards):
        data = systems_in_shards(data, systems, [each.column for each in goal.measures if each.column is not None])
    named = data.feature_names if systems is None else systems
    chosen, *others = (_chosen(regraded(data, each)[0], named, target, depth) for each in goal.measures)
    check_systems(chosen, folds)
    with progress_listener(progress, "fuse", lambda advance: ProgressLine(None, advance.running[0])) as listener:
        begin = step_listener(listener, 4 if len(tried) > 1 else 3)
        begin(f"normalizing scores of {chosen.n_documents:,} documents")
        problems = {how: _posed(chosen, others, goal, how, rule, nonnegative, threads) for how in tried}
        check_relevance(problems[tried[0]], chosen)

        queries, weight, combine = chosen.n_queries, chosen.weights, (target and target.combine) or weighted_sum
        fold = deal_folds(queries, folds, seed) if folds else np.zeros(0, np.int64)
        rng = np.random.default_rng([seed, 2])
        draws = np.array([bootstrap_counts(queries, rng) for _ in range(bootstrap)], np.float64)
        if len(tried) > 1:
            begin(f"comparing {len(tried)} normalizations")
        choice = choose(problems, combine, fold, draws, seed) if len(tried) > 1 else None
        how = choice.name if choice else tried[0]
        problem = problems[how]
        measured = problem if combine is weighted_sum else problem.combined(combine)

        begin("tuning the weights")
        trainings = {f: others for f in range(folds) if problem.counts(others := weight * (fold != f))}
        found = _best(problem, list(trainings.values()), tolerance, cells, seed)
        weights = _in_decimals(measured, found.weights) if target else found.weights
        reached = _reached(measured, goal, weights)
        in_sample, held_out = measured.per_query(weights), np.full(len(fold), np.nan)
        for f, elsewhere in zip(trainings, found.elsewhere, strict=True):
            held_out[fold == f] = measured.per_query(elsewhere)[fold == f]
        held_out = choice.held_out if choice else held_out
        begin("finding intervals")
        return Fusion(
            systems=chosen.feature_names,
            weights=tuple(weights.tolist()),
            normalize=how,
            absent=rule,
            measure=parsed,
            value=mean_over_queries(in_sample, weight),
            interval=found.interval,
            bootstrap_interval=bootstrapped(problem, found.weights, draws, found.swept),
            cross_validated=mean_over_queries(held_out, weight) if folds else None,
            optimum="global" if found.sweep else "certified" if found.certificate else "local",
            certificate=found.certificate,
            comparison=compared(chosen, measured, in_sample, held_out if folds else None, draws),
            sweep=found.sweep,
            engine=engine,
            depth=depth,
            normalizations=choice.worth if choice else (),
            constraints=reached,
        )


def _posed(
    chosen: RankingData, others: Sequence[RankingData], goal: Goal, how: str, absent: str, nonnegative: bool, threads: int | None
) -> FusionProblem:
    """The problem of the goal's measure, with those of its constraints, each on data with the grades that it reads."""
    own, *rest = (
        problem_of(data, replace(measure, column=None), how, absent, nonnegative, threads)
        for data, measure in zip([chosen, *others], goal.measures, strict=True)
    )
    return replace(own, limits=tuple(zip(rest, goal.constraints, strict=True)))


def _reached(problem: FusionProblem, goal: Goal, weights: Weights) -> dict[str, float]:
    """What the measure of each constraint is; an error where one is missed."""
    reached = {}
    for other, constraint in problem.limits:
        value = other.value(weights, other.data.weights)
        if constraint.shortfall(value) > 0:
            raise infeasible(goal, constraint, value, is_extreme=problem.systems == 2 and len(problem.limits) == 1)
        reached[str(constraint)] = value
    return reached


def _chosen(data: RankingData, systems: Sequence[str], engine: SearchEngine | None, depth: int | None) -> RankingData:
    """The systems' lists, as long as they are looked at."""
    chosen = select_systems(data, systems)
    if engine and engine.systems and len(chosen.feature_names) > engine.systems:
        raise IncompatibleError(f"{engine.name} combines {engine.systems} systems, got {', '.join(chosen.feature_names)}; leave some out")
    return chosen if depth is None else replace(chosen, X=cut(chosen.X, chosen.indptr, depth))


def _normalizations(engine: SearchEngine | None, normalize: str | None, folds: int) -> list[str]:
    """What is tried: what is asked for, or all that the engine has."""
    own = EACH if engine is None else tuple(engine.normalizations)
    if normalize is None:
        return [own[0]]
    if normalize == "all":
        if folds < 3:
            raise SettingError(f"normalize='all' chooses by cross-validation within cross-validation; give at least 3 folds, got {folds}")
        return [each for name in own for each in ([f"{name}(k={k})" for k in CONSTANTS] if takes_constant(name) else [name])]
    name, _ = parse_normalization(normalize)
    if engine and name not in own:
        raise SettingError(f"{engine.name} does not compute {name}, but {', '.join(own)}; give one of them, or leave normalize out")
    return [normalize]


def _absent(engine: SearchEngine | None, absent: str | None) -> str:
    """What a document gets from a system that did not retrieve it."""
    if absent is not None and absent not in ABSENT:
        raise SettingError(f"absent={absent!r} is not one of {', '.join(ABSENT)}")
    if engine and absent not in (None, engine.absent):
        raise SettingError(f"{engine.name} computes absent={engine.absent!r}, not {absent!r}; leave it out")
    return engine.absent if engine else absent or ABSENT[0]


def _check(
    measure: Measure,
    engine: SearchEngine | None,
    depth: int | None,
    nonnegative: bool,
    folds: int,
    bootstrap: int,
    cells: int | None,
    tolerance: float,
) -> None:
    """Raise if settings make no sense, alone or together."""
    if engine and not nonnegative and not engine.signed:
        signed = ", ".join(name for name, each in ENGINES.items() if each.signed)
        raise IncompatibleError(
            f"{engine.name} takes no negative weights; leave out nonnegative=False (--allow-negative), or tune for one that does: {signed}"
        )
    if depth is not None:
        check_count("depth", depth, 1)
    if depth is not None and measure.k is not None and depth < measure.k:
        raise SettingError(
            f"depth={depth} is less than the {measure.k} documents that {measure} counts, which lists of that depth need not fill; "
            f"give a depth of at least {measure.k}, or a smaller cutoff"
        )
    check_count("bootstrap", bootstrap, 0, MOST_RESAMPLES)
    check_count("folds", folds, 0)
    if folds == 1:
        raise DataError(f"folds={folds} leaves no queries to tune on; give at least 2, or 0 for no cross-validation")
    if cells is not None:
        check_count("cells", cells, 1)
    check_number("tolerance", tolerance)


def _in_decimals(problem: FusionProblem, weights: Weights) -> Weights:
    """The weights with as few decimals as their value allows; absolute values add up to 1 as they are written."""
    value = problem.value(weights, problem.data.weights)
    for digits in DECIMALS:
        short = np.round(weights, digits)
        largest = int(np.argmax(np.abs(short)))
        others = np.abs(np.delete(short, largest)).sum()
        short[largest] = np.copysign(np.round(1 - others, digits), short[largest])
        if problem.value(short, problem.data.weights) >= value - SAME_VALUE:
            break
    return short


@dataclass(frozen=True, eq=False)
class _Best:
    """The best weights on all queries, how good they are known to be, and the best on other query weights."""

    weights: Weights
    interval: tuple[Pair, ...]
    elsewhere: Sequence[Weights]
    swept: Sequence[QuerySteps] = ()  #: all weights, of two systems
    sweep: Sweep | None = None
    certificate: Certificate | None = None


def _best(problem: FusionProblem, trainings: Sequence[PerQuery], tolerance: float, cells: int | None, seed: int) -> _Best:
    """Of two systems the global optimum; of more where coordinate ascent ends, of three certified where that can be done."""
    even = problem.data.weights
    if problem.systems == 2:
        swept = [QuerySteps.of(problem, start, end) for start, end in all_weights(2, problem.nonnegative)]
        sweep = best_of(steps.sweep(even) for steps in swept)
        ends = zip(*(sweep.weights(alpha).tolist() for alpha in (sweep.best.low, sweep.best.high)), strict=True)
        interval = tuple((min(pair), max(pair)) for pair in ends)
        elsewhere = best_weights(swept, trainings, problem.threads)
        return _Best(sweep.weights(sweep.best.middle()), interval, elsewhere, swept, sweep)
    weights, *elsewhere = tuned(problem, [even, *trainings], seed)
    weights, certificate = ascended(problem, weights, even), None
    if problem.systems == 3 and not problem.limits and certifiable(problem):
        weights, certificate = certified(problem, weights, tolerance=tolerance, cells=cells)
    interval = tuple(flat_range(problem, weights, j) for j in range(problem.systems))
    return _Best(weights, interval, elsewhere, certificate=certificate)
