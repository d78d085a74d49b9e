"""``exactrank evaluate --clicks``: the value of rankings, estimated from a click log."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from exactrank.cli.clicks import find_propensities, read_log
from exactrank.cli.common import json_mean, json_number, print_json

if TYPE_CHECKING:
    from exactrank._support.arrays import PerDocument
    from exactrank.clicks.log import ClickColumns
    from exactrank.clicks.off_policy import OffPolicyEvaluation
    from exactrank.clicks.propensities import Propensities
    from exactrank.data.ranking_data import RankingData

DEFAULT = "DCG(gain='linear')@10"


class EvaluationSettings(TypedDict):
    """The settings that evaluations by grades and by clicks share."""

    preset: str | None
    complete: bool | None
    seed: int
    threads: int | None


Estimator = Literal["ips", "snips", "doubly-robust"]


@dataclass(frozen=True)
class ClickOptions:
    """The options about the log and the estimate."""

    log: Path
    columns: "ClickColumns"
    propensity: str
    estimator: Estimator
    clip: float
    unknown: str


def show_estimates(
    measures: list[str],
    data: "RankingData",
    rankings: Mapping[str, "Path | PerDocument"],
    options: ClickOptions,
    settings: EvaluationSettings,
    per_query: bool,
    as_json: bool,
) -> None:
    """Print the estimates of each ranking, and of the gains over the first."""
    from exactrank.data.scores import read_scores

    log = read_log(options.log, options.columns, settings["threads"])
    curve = find_propensities(log, options.propensity)
    evaluations = {}
    for name, ranking in rankings.items():
        rows, scores = read_scores(ranking, data) if isinstance(ranking, Path) else (data, ranking)
        evaluations[name] = log.evaluate(
            measures, rows, scores, curve, estimator=options.estimator, clip=options.clip, unknown=options.unknown, **settings
        )
    baseline, *candidates = evaluations
    gains = {name: evaluations[name].gain_over(evaluations[baseline]) for name in candidates}
    (_print_json if as_json else _print)(evaluations, gains, curve, per_query)


def _print_json(
    evaluations: Mapping[str, "OffPolicyEvaluation"], gains: Mapping[str, "OffPolicyEvaluation"], curve: "Propensities", per_query: bool
) -> None:
    first = next(iter(evaluations.values()))
    rankings: dict[str, dict[str, object]] = {}
    for name, evaluation in evaluations.items():
        rankings[name] = {}
        for measure, definition in evaluation.measures.items():
            record: dict[str, object] = {"definition": repr(definition), "never_shown": evaluation.unseen[measure]}
            record |= json_mean(evaluation.means[measure], evaluation.intervals[measure])
            if name in gains:
                record["gain"] = json_mean(gains[name].means[measure], gains[name].intervals[measure])
            if per_query:
                values = zip(evaluation.qid.tolist(), evaluation[measure].values, strict=True)
                record["per_query"] = {str(q): json_number(value) for q, value in values}
            rankings[name][measure] = record
    about = {name: getattr(first, name) for name in ("estimator", "clicks", "effective_sample_size", "clipped")}
    print_json(about | {"rankings": rankings} | curve.to_json())


def _print(
    evaluations: Mapping[str, "OffPolicyEvaluation"], gains: Mapping[str, "OffPolicyEvaluation"], curve: "Propensities", per_query: bool
) -> None:
    from exactrank.cli.terminal import PlainTable, show, show_per_query

    first = next(iter(evaluations.values()))
    for measure in first.measures if per_query else ():
        show_per_query(measure, first.qid.tolist(), {name: item[measure].values for name, item in evaluations.items()})
    gain_columns = [f"gain over {next(iter(evaluations))}", "95% interval"] if gains else []
    for measure in first.measures:
        table = PlainTable("ranking", "estimate", "95% interval", "never shown", *gain_columns, title=measure)
        for name, evaluation in evaluations.items():
            gain = _cells(gains[name], measure) if name in gains else ["", ""] if gains else []
            table.row(name, *_cells(evaluation, measure), f"{evaluation.unseen[measure]:.1%}", *gain)
        show(table)
    clicks = f"{first.clicks:,.10g} clicks on {len(first.qid):,} queries, worth {first.effective_sample_size:,.0f} of equal weight"
    show(f"{first.estimator} with propensities by {curve.method}: {clicks}; clipped: {first.clipped:.1%}")


def _cells(evaluation: "OffPolicyEvaluation", measure: str) -> list[str]:
    low, high = evaluation.intervals[measure]
    return [f"{evaluation.means[measure]:.4f}", f"{low:.4f} .. {high:.4f}"]
