"""``exactrank evaluate --clicks``: what rankings would be worth, estimated from a click log."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exactrank.cli.clicks import asked_propensities, read_log
from exactrank.cli.common import number, print_json

if TYPE_CHECKING:
    from exactrank._support.arrays import PerDocument
    from exactrank.clicks.log import ClickColumns
    from exactrank.clicks.off_policy import OffPolicyEvaluation
    from exactrank.clicks.propensities import Propensities
    from exactrank.data.ranking_data import RankingData

DEFAULT = "DCG(gain='linear')@10"


class ValueEstimator(StrEnum):
    """How clicks are turned into an estimate."""

    IPS = "ips"
    SNIPS = "snips"
    DOUBLY_ROBUST = "doubly-robust"


@dataclass(frozen=True)
class FromClicks:
    """What the options say about the log."""

    log: Path
    columns: "ClickColumns"
    propensity: str
    estimator: ValueEstimator
    clip: float
    unknown: str


def show_estimates(
    measures: list[str],
    data: "RankingData",
    rankings: Mapping[str, "Path | PerDocument"],
    given: FromClicks,
    settings: Mapping[str, Any],
    per_query: bool,
    as_json: bool,
) -> None:
    """The estimates of each ranking, and of the gains over the first."""
    from exactrank.data.scores import read_scores

    log = read_log(given.log, given.columns, settings["threads"])
    curve = asked_propensities(log, given.propensity)
    found = {}
    for name, ranking in rankings.items():
        rows, scores = read_scores(ranking, data) if isinstance(ranking, Path) else (data, ranking)
        about: dict[str, Any] = {"estimator": given.estimator.value, "clip": given.clip, "unknown": given.unknown}
        found[name] = log.evaluate(measures, rows, scores, curve, **about, **settings)
    first, *others = found
    gains = {name: found[name].gain_over(found[first]) for name in others}
    if as_json:
        _print_json(found, gains, curve, per_query)
    else:
        _print(found, gains, curve, per_query)


def _print_json(
    found: Mapping[str, "OffPolicyEvaluation"], gains: Mapping[str, "OffPolicyEvaluation"], curve: "Propensities", per_query: bool
) -> None:
    one = next(iter(found.values()))
    rankings: dict[str, Any] = {}
    for name, each in found.items():
        rankings[name] = {}
        for measure, definition in each.measures.items():
            own: dict[str, Any] = {"definition": repr(definition), "never_shown": each.unseen[measure]} | _mean(each, measure)
            own |= {"gain": _mean(gains[name], measure)} if name in gains else {}
            values = zip(each.qid.tolist(), each[measure].values, strict=True)
            own |= {"per_query": {str(q): number(value) for q, value in values}} if per_query else {}
            rankings[name][measure] = own
    about = {"estimator": one.estimator, "clicks": one.clicks, "effective_sample_size": one.effective_sample_size, "clipped": one.clipped}
    print_json(about | {"rankings": rankings} | curve.to_json())


def _mean(found: "OffPolicyEvaluation", measure: str) -> dict[str, Any]:
    return {"mean": number(found.means[measure]), "interval": [number(end) for end in found.intervals[measure]]}


def _print(
    found: Mapping[str, "OffPolicyEvaluation"], gains: Mapping[str, "OffPolicyEvaluation"], curve: "Propensities", per_query: bool
) -> None:
    from exactrank.cli.terminal import PlainTable, show

    one = next(iter(found.values()))
    for measure in one.measures if per_query else ():
        rows = PlainTable("query", *found, title=measure)
        for q, *values in zip(one.qid.tolist(), *(each[measure].values for each in found.values()), strict=True):
            rows.row(str(q), *(f"{value:.4f}" for value in values))
        show(rows)
    against = [f"gain over {next(iter(found))}", "95% interval"] if gains else []
    for measure in one.measures:
        table = PlainTable("ranking", "estimate", "95% interval", "never shown", *against, title=measure)
        for name, each in found.items():
            gain = _shown(gains[name], measure) if name in gains else ["", ""] if gains else []
            table.row(name, *_shown(each, measure), f"{each.unseen[measure]:.1%}", *gain)
        show(table)
    clicks = f"{one.clicks:,.10g} clicks on {len(one.qid):,} queries, worth {one.effective_sample_size:,.0f} of equal weight"
    show(f"{one.estimator} with propensities by {curve.method}: {clicks}; clipped: {one.clipped:.1%}")


def _shown(found: "OffPolicyEvaluation", measure: str) -> list[str]:
    low, high = found.intervals[measure]
    return [f"{found.means[measure]:.4f}", f"{low:.4f} .. {high:.4f}"]
