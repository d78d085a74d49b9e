"""``exactrank power``: the smallest difference of two rankings that the queries show, and the number of queries that a difference takes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.common import Json, Reading, Seed, Source, Threads, measure_option, print_json, read

if TYPE_CHECKING:
    from exactrank._support.arrays import PerQuery
    from exactrank.compare.statistics import Pair

MULTIPLES = (1, 2, 4, 8)  #: of the number of queries, in the table


@dataclass(frozen=True)
class _Plan:
    """Numbers of queries and the differences that they show, of two rankings."""

    pair: "Pair"
    deviation: float
    detectable: dict[int, float]  #: the smallest difference that is found, by the number of queries
    needed: dict[float, int]  #: the number of queries, by the difference


def power(
    data: Source,
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="Scores, one per line in the order of DATA, or a TREC run.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Those of the ranking that it is compared with.")],
    reading: Reading,
    measure: Annotated[str, measure_option("The measure, e.g. nDCG@10.")] = "nDCG@10",
    difference: Annotated[
        list[float] | None, typer.Option(help="A difference that would matter: how many queries does it take? Repeatable.")
    ] = None,
    power: Annotated[float, typer.Option(help="The probability of finding the difference.")] = 0.8,
    level: Annotated[float, typer.Option(help="The level of the test.")] = 0.05,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Say how many queries a difference of two rankings takes, by the differences per query so far."""
    import numpy as np

    from exactrank.compare.runs import compare_runs, run_names
    from exactrank.compare.statistics import all_pairs

    judged = read(data, reading)
    names = run_names([first, second])
    comparison = compare_runs(judged, dict(zip(names, (first, second), strict=True)), measure, dataset=data.name, threads=threads)
    (measure_name,) = comparison.measures
    values = {fit.method: np.array(fit.test[measure_name], np.float64) for fit in comparison.fits}
    (pair,) = all_pairs(values, weight=judged.query_weight, seed=seed)
    plan = _plan(values[names[0]] - values[names[1]], judged.query_weight, pair, difference or [], power, level)
    if as_json:
        print_json(_record(plan, power, level))
    else:
        _print(plan, measure_name, power, level)


def _plan(d: "PerQuery", weight: "PerQuery | None", pair: "Pair", differences: list[float], power: float, level: float) -> _Plan:
    from exactrank.compare.sample_size import detectable_difference, sample_size
    from exactrank.compare.statistics import observations, spread

    counts = [factor * pair.queries for factor in MULTIPLES]
    detectable = {count: detectable_difference(d, count, power, level=level, weight=weight) for count in counts}
    needed = {size: sample_size(d, size, power, level=level, weight=weight) for size in differences}
    return _Plan(pair, spread(observations(d, weight)), detectable, needed)


def _record(plan: _Plan, power: float, level: float) -> dict[str, object]:
    return {
        "first": plan.pair.first,
        "second": plan.pair.second,
        "queries": plan.pair.queries,
        "difference": plan.pair.difference,
        "interval": list(plan.pair.interval),
        "deviation": plan.deviation,
        "power": power,
        "level": level,
        "detectable": [{"queries": count, "difference": size} for count, size in plan.detectable.items()],
        "needed": [{"difference": size, "queries": count} for size, count in plan.needed.items()],
    }


def _print(plan: _Plan, measure: str, power: float, level: float) -> None:
    from exactrank.cli.terminal import PlainTable, show

    pair, (low, high) = plan.pair, plan.pair.interval
    difference = f"{pair.first} - {pair.second}: {pair.difference:+.4f} ({low:+.4f} .. {high:+.4f}) {measure}"
    caption = f"found with a probability of {power:g} by a test at the level {level:g}"
    detectable = PlainTable("queries", "smallest difference", caption=caption)
    for count, size in plan.detectable.items():
        detectable.row(f"{count:,}", f"{size:.4f}")
    show(f"{difference} of {pair.queries:,} queries, with a standard deviation of {plan.deviation:.4f}", detectable)
    if plan.needed:
        needed = PlainTable("difference", "queries needed")
        for size, count in plan.needed.items():
            needed.row(f"{size:g}", f"{count:,}")
        show(needed)
