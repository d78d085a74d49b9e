"""Hybrid search: the exactly best weights for a sum of several systems' scores (`er.fuse`).

A hybrid search ranks documents by a weighted sum of the scores of BM25, a dense retriever, a reranker ...,

    s = sum_j w_j x_j,   x_j the scores of system j, made comparable (`normalize.py`).                   (1)

Between two sets of weights the measure is a step function that is known exactly, so for two systems one sweep over all weights
finds the global optimum, with proof; for more systems see `search.py` and `certificate.py`. A grid of
weights, the usual way elsewhere, sees only a few points of that function.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import check_count, check_number
from exactrank._support.arrays import PerQuery, Rows
from exactrank._support.progress_bars import Advance, ProgressLine, progress_listener, step_listener
from exactrank.data.folds import bootstrap_counts, deal_folds
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.data.shards import Shards
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.fusion.bounds import curve_bounds
from exactrank.fusion.by_query import ByQuery, tune_by_query
from exactrank.fusion.certificate import Certificate, certifiable, certify
from exactrank.fusion.choose import choose
from exactrank.fusion.engines import ENGINES
from exactrank.fusion.engines.base import DEPTH, SearchEngine
from exactrank.fusion.fusion import Fusion
from exactrank.fusion.normalize import ABSENT, cut_lists, parse_normalization, takes_constant
from exactrank.fusion.preparation import check_relevance, check_systems, problem_of, with_grades_of
from exactrank.fusion.problem import FusionProblem, QuerySteps, Segment, Sweep, Weights, all_weights, best_weights, weighted_sum
from exactrank.fusion.resample import Pair, bootstrap_intervals_of, compare_rankings
from exactrank.fusion.search import ascend, best_of, flat_range, tune_weights
from exactrank.fusion.systems import select_systems, systems_in_shards
from exactrank.learning.objectives.step_function import SAME_VALUE
from exactrank.measures.base import Measure
from exactrank.measures.bootstrap import MOST_RESAMPLES
from exactrank.measures.corrected_queries import ROUNDS, STABLE, CorrectedQueries
from exactrank.measures.evaluate import Unjudged, check_unjudged_rule
from exactrank.measures.goal import Goal, infeasible, parse_goal

CONSTANTS = (60, 10, 1)  #: of reciprocal ranks, where all normalizations are tried
#: All normalizations whose rankings differ by more than rounding.
ALL_NORMALIZATIONS = (
    "min-max",
    "z-score",
    "l2",
    "none",
    "rank",
    "reciprocal-rank",
    "opensearch-min-max",
    "opensearch-z-score",
    "vespa-linear",
)
DECIMALS = range(2, 10)  #: of weights in a configuration


def fuse(
    data: RankingData | Shards,
    *,
    machine: RankingData | None = None,
    systems: Sequence[str] | None = None,
    measure: str | Measure = "nDCG@10",
    engine: str | None = None,
    depth: int | None = None,
    normalize: str | None = None,
    absent: str | None = None,
    nonnegative: bool = True,
    by: ByQuery | None = None,
    folds: int = 5,
    bootstrap: int = 200,
    tolerance: float = 1e-3,
    cells: int | None = None,
    unjudged: Unjudged = "zero",
    highest_grade: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | Callable[[Advance], None] = False,
) -> Fusion:
    """Tune the weights of several systems, one per feature of ``data`` (NaN: not retrieved), for ``measure``.

    ``systems`` names the features to fuse (default: all); of data in several files (`er.read_shards`) only these are read into memory.
    ``engine`` names the search engine to tune for, which decides how scores are made comparable, and whose configuration
    `Fusion.configuration` writes: elasticsearch, elasticsearch-rrf, opensearch, opensearch-rrf, vespa, qdrant or weaviate. ``depth`` is
    the maximum number of documents of each system's list (default: all; 100 for an engine).

    ``normalize`` makes scores comparable (default: min-max, or the engine's first): none, min-max, z-score, l2, rank,
    reciprocal-rank(k=60), an engine's own, or all, to choose by cross-validation. ``absent`` sets the score of a document from a
    system that did not retrieve it: worst (the default), zero, zero-score, or drop to rank only documents that all retrieved.

    ``by`` has features of each query, by its id: ``{"q1": {"length": 3, "intent": "brand"}}``. The weights then depend on them, if that
    wins on held-out queries; `Fusion.by` says by how much. Texts are segments with weights of their own.

    ``folds`` and ``bootstrap`` (0: none) give the cross-validated value and 95% intervals. Three systems are searched until the
    certified gap is at most ``tolerance`` or ``cells`` triangles were examined (default: as many as take a few seconds).

    ``measure`` may have constraints, as in ``nDCG@10 subject to revenue@10 >= 0.31``: for two systems the result is the global optimum of
    the weights that satisfy them, for more a local one, without a certificate.

    ``machine`` has a machine's grades, such as a language model's, of the queries of ``data`` and of further ones, with the scores of the
    same systems. The weights then maximize the mean of all these queries as the grades of people correct it
    (`exactrank.measures.corrected_queries`), and cross-validation, intervals and gains are corrected, too; `Fusion.machine` says what the
    machine's grades are worth. Their weight is chosen at equal weights of the systems, and again at the best weights until it is stable;
    where it is 0, the result is that of ``data`` alone.

    ``unjudged="bounds"`` adds the smallest and the largest value at each weight of two systems for all grades that unjudged documents
    (grade below 0) can have, up to ``highest_grade`` (default: the largest of the data): `Fusion.bounds`.

    ``progress=True`` shows the current step in a terminal or a notebook; a function is called with an `Advance` before each step.

    >>> X = [[3.0, 0.1], [2.0, 0.9], [1.0, 0.8], [9.0, 0.7], [8.0, 0.9], [1.0, 0.2]]
    >>> data = RankingData.from_arrays(X, [0, 1, 0, 0, 1, 0], group=[3, 3], feature_names=["bm25", "dense"])
    >>> fusion = fuse(data, folds=2)
    >>> fusion.value, fusion.optimum
    (1.0, 'global')
    """
    check_data(data, Shards)
    goal, target = parse_goal(measure), None if engine is None else ENGINES[engine]
    corrected = None if machine is None else _corrected_queries(data, machine, systems, goal)
    normalizations, absent_rule = _normalizations(target, normalize, folds), _absent_rule(target, absent)
    depth = DEPTH if depth is None and target else depth
    parsed = goal.measure
    if by is not None and corrected is not None:
        raise SettingError("by chooses weights by query by the grades of people alone; leave out machine, or by")
    if by is not None and (goal.constraints or len(normalizations) > 1 or folds < 3):
        raise SettingError(
            "by chooses weights by query on held-out queries, for one measure and one normalization; leave out constraints, give normalize,"
            " and at least 3 folds"
        )
    _check(parsed, target, depth, nonnegative, folds, bootstrap, cells, tolerance)
    check_unjudged_rule(unjudged, highest_grade)
    if unjudged == "bounds" and machine is not None:
        raise DataError("bounds are over unknown grades of people, and machine corrects for others; leave out one of them")
    judged: RankingData | Shards = data if corrected is None else corrected.data
    if isinstance(judged, Shards):
        judged = systems_in_shards(judged, systems, [term.column for term in goal.measures if term.column is not None])
    names = judged.feature_names if systems is None else systems
    lists, *constraint_lists = (_system_lists(with_grades_of(judged, term)[0], names, target, depth) for term in goal.measures)
    check_systems(lists, folds)
    with progress_listener(progress, "fuse", lambda advance: ProgressLine(None, advance.running[0])) as listener:
        begin = step_listener(listener, 3 + (len(normalizations) > 1) + (by is not None))
        begin(f"normalizing scores of {lists.n_documents:,} documents")
        problems = {
            name: _goal_problem([lists, *constraint_lists], goal, name, absent_rule, nonnegative, threads, corrected)
            for name in normalizations
        }
        check_relevance(problems[normalizations[0]], lists)

        combine = (target and target.combine) or weighted_sum
        fold, draws = _folds_and_draws(lists.n_queries, corrected, folds, bootstrap, seed)
        if len(normalizations) > 1:
            begin(f"comparing {len(normalizations)} normalizations")
        choice = choose(problems, combine, fold, draws, seed) if len(normalizations) > 1 else None
        normalization = choice.name if choice else normalizations[0]
        begin("tuning the weights")
        problem, trainings, best = _tune(problems[normalization], fold, folds, tolerance, cells, seed)
        if isinstance(data, RankingData) and corrected is not None and problem.machine_weight == 0:  # the machine's grades add nothing
            fusion = fuse(
                data, systems=systems, measure=measure, engine=engine, depth=depth, normalize=normalize, absent=absent,
                nonnegative=nonnegative, folds=folds, bootstrap=bootstrap, tolerance=tolerance, cells=cells, seed=seed, threads=threads,
            )  # fmt: skip
            return replace(fusion, machine=problem.corrected_mean(problem.per_query(best.weights), 0.0))
        measured = problem if combine is weighted_sum else problem.with_combine(combine)
        weights = _in_decimals(measured, best.weights) if target else best.weights
        constraints = _constraint_values(measured, goal, weights)
        in_sample, held_out = measured.per_query(weights), np.full(len(fold), np.nan)
        for f, fold_weights in zip(trainings, best.fold_weights, strict=True):
            held_out[fold == f] = measured.per_query(fold_weights)[fold == f]
        held_out = choice.held_out if choice else held_out
        by_query = None
        if by is not None:
            begin("tuning weights by query")
            by_query = tune_by_query(problem, combine, weights, by, fold, draws, seed)
            in_sample, held_out = (by_query.in_sample, by_query.held_out) if by_query.weights.is_kept else (in_sample, held_out)
        begin("finding intervals")
        bounds = None
        if unjudged == "bounds":
            segment = best.sweep or Segment(np.eye(len(names))[0], np.eye(len(names))[-1])
            bounds = curve_bounds(
                lists, parsed, segment, normalization, absent_rule, nonnegative=nonnegative, highest=highest_grade, threads=threads
            )
        return Fusion(
            systems=lists.feature_names,
            weights=tuple(weights.tolist()),
            normalize=normalization,
            absent=absent_rule,
            measure=parsed,
            value=problem.mean(in_sample),
            interval=best.interval,
            bootstrap_interval=bootstrap_intervals_of(problem, best.weights, draws, best.segments),
            cross_validated=problem.mean(held_out) if folds else None,
            optimum="global" if best.sweep else "certified" if best.certificate else "local",
            certificate=best.certificate,
            comparison=compare_rankings(lists, measured, in_sample, held_out if folds else None, draws),
            sweep=best.sweep,
            engine=engine,
            depth=depth,
            normalizations=choice.comparison if choice else (),
            constraints=constraints,
            by=None if by_query is None else by_query.weights,
            machine=None if corrected is None else problem.corrected_mean(held_out if folds else in_sample, problem.machine_weight),
            bounds=bounds,
        )


def _corrected_queries(data: RankingData | Shards, machine: RankingData, systems: Sequence[str] | None, goal: Goal) -> CorrectedQueries:
    """Return the queries of people and of a machine, with the same systems."""
    check_data(machine, name="machine")
    if not isinstance(data, RankingData):
        raise IncompatibleError("machine corrects the grades of data in one file; read the data with er.read")
    if goal.constraints:
        raise IncompatibleError(
            f"the mean is corrected by the machine's grades, but {goal.constraints[0]} would not be; leave out one of them"
        )
    if systems is None and machine.feature_names == data.feature_names:
        return CorrectedQueries.of(data, machine)
    names = data.feature_names if systems is None else systems
    return CorrectedQueries.of(select_systems(data, names), select_systems(machine, names))


def _folds_and_draws(
    queries: int, corrected: CorrectedQueries | None, folds: int, bootstrap: int, seed: int
) -> tuple[Rows, npt.NDArray[np.float64]]:
    """Return the fold of each query, and how often each bootstrap sample draws it; the same of a query of people and its twin."""
    if corrected is None:
        rng = np.random.default_rng([seed, 2])
        fold = deal_folds(queries, folds, seed) if folds else np.zeros(0, np.int64)
        return fold, np.array([bootstrap_counts(queries, rng) for _ in range(bootstrap)], np.float64)
    numbers = min(corrected.people, corrected.further)
    if folds > numbers:
        raise DataError(f"{numbers} queries cannot form {folds} folds; give folds={numbers} or less, or 0 for none")
    fold, draws = _folds_and_draws(corrected.people, None, folds, bootstrap, seed)
    further_fold, further_draws = _folds_and_draws(corrected.further, None, folds, bootstrap, seed)
    return corrected.by_query(fold, further_fold), corrected.by_query(draws, further_draws)


def _goal_problem(
    lists: Sequence[RankingData],
    goal: Goal,
    normalization: str,
    absent: str,
    nonnegative: bool,
    threads: int | None,
    corrected: CorrectedQueries | None,
) -> FusionProblem:
    """Return the problem of the goal's measure, with those of its constraints; ``lists`` have the grades that each reads."""
    problem, *limits = (
        problem_of(data, replace(measure, column=None), normalization, absent, nonnegative, threads)
        for data, measure in zip(lists, goal.measures, strict=True)
    )
    problem = replace(problem, limits=tuple(zip(limits, goal.constraints, strict=True)), corrected=corrected)
    return problem if corrected is None else problem.with_best_machine_weight(np.full(problem.systems, 1 / problem.systems))


def _constraint_values(problem: FusionProblem, goal: Goal, weights: Weights) -> dict[str, float]:
    """Return the value of each constraint's measure; raise if one is violated."""
    values = {}
    for limit, constraint in problem.limits:
        value = limit.value(weights, limit.data.weights)
        if constraint.shortfall(value) > 0:
            raise infeasible(goal, constraint, value, is_extreme=problem.systems == 2 and len(problem.limits) == 1)
        values[str(constraint)] = value
    return values


def _system_lists(data: RankingData, systems: Sequence[str], engine: SearchEngine | None, depth: int | None) -> RankingData:
    """Return the systems' lists, cut at ``depth``."""
    lists = select_systems(data, systems)
    if engine and engine.systems and len(lists.feature_names) > engine.systems:
        raise IncompatibleError(f"{engine.name} combines {engine.systems} systems, got {', '.join(lists.feature_names)}; leave some out")
    return lists if depth is None else replace(lists, X=cut_lists(lists.X, lists.indptr, depth))


def _normalizations(engine: SearchEngine | None, normalize: str | None, folds: int) -> list[str]:
    """Return the normalizations to compare: the caller's one, or all that the engine computes."""
    available = ALL_NORMALIZATIONS if engine is None else tuple(engine.normalizations)
    if normalize is None:
        return [available[0]]
    if normalize == "all":
        if folds < 3:
            raise SettingError(f"normalize='all' chooses by cross-validation within cross-validation; give at least 3 folds, got {folds}")
        return [text for name in available for text in ([f"{name}(k={k})" for k in CONSTANTS] if takes_constant(name) else [name])]
    name, _ = parse_normalization(normalize)
    if engine and name not in available:
        raise SettingError(f"{engine.name} does not compute {name}, but {', '.join(available)}; give one of them, or leave normalize out")
    return [normalize]


def _absent_rule(engine: SearchEngine | None, absent: str | None) -> str:
    """Return the rule for the score of a document from a system that did not retrieve it."""
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
    """Raise if settings are invalid, alone or together."""
    if engine and not nonnegative and not engine.signed:
        signed = ", ".join(name for name, candidate in ENGINES.items() if candidate.signed)
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
    """Round the weights to the fewest decimals that keep their value; the absolute values still add up to 1."""
    value = problem.value(weights, problem.query_weights())
    for digits in DECIMALS:
        short = np.round(weights, digits)
        largest = int(np.argmax(np.abs(short)))
        rest = np.abs(np.delete(short, largest)).sum()
        short[largest] = np.copysign(np.round(1 - rest, digits), short[largest])
        if problem.value(short, problem.query_weights()) >= value - SAME_VALUE:
            break
    return short


@dataclass(frozen=True, eq=False)
class _Best:
    """The best weights on all queries, their certificate, and the best weights of each fold of cross-validation."""

    weights: Weights
    interval: tuple[Pair, ...]
    fold_weights: Sequence[Weights]
    segments: Sequence[QuerySteps] = ()  #: all weights of two systems
    sweep: Sweep | None = None
    certificate: Certificate | None = None


def _tune(
    problem: FusionProblem, fold: Rows, folds: int, tolerance: float, cells: int | None, seed: int
) -> tuple[FusionProblem, list[int], _Best]:
    """Return the problem, the folds without which there is something to train on, and the best weights.

    A machine's grades get the best machine weight at the best weights, which are then sought again until it is stable.
    """
    segments = [QuerySteps.of(problem, start, end) for start, end in all_weights(2, problem.nonnegative)] if problem.systems == 2 else []
    for rounds_left in reversed(range(1 if problem.corrected is None else ROUNDS)):
        trainings = {f: weights for f in range(folds) if problem.has_queries(weights := problem.query_weights(fold != f))}
        best = _best(problem, segments, list(trainings.values()), tolerance, cells, seed)
        if not rounds_left:
            break
        again = problem.with_best_machine_weight(best.weights)
        if abs(again.machine_weight - problem.machine_weight) < STABLE:
            break
        problem = again
    return problem, list(trainings), best


def _best(
    problem: FusionProblem,
    segments: Sequence[QuerySteps],
    trainings: Sequence[PerQuery],
    tolerance: float,
    cells: int | None,
    seed: int,
) -> _Best:
    """Return the global optimum of two systems by their ``segments``, or the end of coordinate ascent of more; certified if possible."""
    even = problem.query_weights()
    if problem.systems == 2:
        sweep = best_of(steps.sweep(even) for steps in segments)
        ends = zip(*(sweep.weights(alpha).tolist() for alpha in (sweep.best.low, sweep.best.high)), strict=True)
        interval = tuple((min(pair), max(pair)) for pair in ends)
        fold_weights = best_weights(segments, trainings, problem.threads)
        return _Best(sweep.weights(sweep.best.middle()), interval, fold_weights, segments, sweep)
    weights, *fold_weights = tune_weights(problem, [even, *trainings], seed)
    weights, certificate = ascend(problem, weights, even), None
    if problem.systems == 3 and not problem.limits and certifiable(problem):
        weights, certificate = certify(problem, weights, tolerance=tolerance, cells=cells)
    interval = tuple(flat_range(problem, weights, j) for j in range(problem.systems))
    return _Best(weights, interval, fold_weights, certificate=certificate)
