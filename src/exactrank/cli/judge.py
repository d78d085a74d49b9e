"""The command that plans which documents to judge."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from exactrank.cli.common import Force, HighestGrade, Json, Threads, measure_option, optional_file, print_json, report_file
from exactrank.cli.fuse import Absent, Normalize, Runs, named_runs

if TYPE_CHECKING:
    from exactrank._support.arrays import PerDocument
    from exactrank.data.ranking_data import RankingData
    from exactrank.fusion.judging import JudgingPlan

SHOWN = 10  #: documents of a plan that are printed


def judge(
    run: Runs = None,
    judged: Annotated[
        list[Path] | None,
        typer.Option(help="Judgments so far: a plan with grades or ratings of Quepid (.csv), of OpenSearch (.json), or qrels; repeatable."),
    ] = None,
    measure: Annotated[str, measure_option("The measure that decides, e.g. nDCG@10 or P@5.")] = "nDCG@10",
    decide: Annotated[
        Literal["weight", "run"] | None,
        typer.Option(help="Decide on the weight of two runs, or on the best run. [default: weight for two runs, otherwise run]"),
    ] = None,
    normalize: Normalize = None,
    absent: Absent = None,
    highest_grade: HighestGrade = None,
    epsilon: Annotated[float, typer.Option(min=0.0, help="A loss of this size does not matter: the decision is certain then.")] = 0.0,
    limit: Annotated[int | None, typer.Option(min=1, help="Number of documents in the plan. [default: all]")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the plan to this file: JSON if it ends in .json, otherwise CSV.")] = None,
    export: Annotated[
        Path | None, typer.Option(help="Write all judgments so far to this file: .csv for Quepid, .json for OpenSearch.")
    ] = None,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Plan which documents to judge so that the best weight or run becomes certain; continue with --judged."""
    from exactrank.data.formats.judgment_files import merge_judgments, read_judgments, write_judgments
    from exactrank.errors import DataError, SettingError
    from exactrank.fusion.judging import judging_plan
    from exactrank.fusion.systems import systems_to_judge

    runs = named_runs(run or [])
    if len(runs) < 2:
        raise DataError("a decision is between at least two runs; give --run NAME=FILE for each")
    kind = decide or ("weight" if len(runs) == 2 else "run")
    if kind == "run" and (normalize is not None or absent is not None):
        raise SettingError("--normalize and --absent are for the weight of two runs; leave them out")
    grades = merge_judgments({str(path): read_judgments(path) for path in judged or []})
    data = systems_to_judge(grades, runs)
    fusing = {name: value for name, value in (("normalize", normalize), ("absent", absent)) if value is not None}
    rankings = None if kind == "weight" else _rankings(data)
    with optional_file(out, force) as file:
        plan = judging_plan(
            data, rankings, measure=measure, highest_grade=highest_grade, epsilon=epsilon, limit=limit, threads=threads, **fusing
        )
        if file is not None and out is not None:
            file.write(plan.to_bytes(out))
    if export is not None:
        report_file(export, write_judgments(export, data, force), as_json)
    if as_json:
        print_json(plan.to_json())
        return
    _print(plan, out)


def _rankings(data: "RankingData") -> "dict[str, PerDocument]":
    """Return each system's scores; a document without one was not retrieved."""
    import numpy as np

    columns = {name: data.feature(name) for name in data.feature_names}
    return {name: np.where(np.isnan(column), -np.inf, column) for name, column in columns.items()}


def _print(plan: "JudgingPlan", out: Path | None) -> None:
    from exactrank.cli.terminal import PlainTable, show

    if plan.is_certain:
        state = f"The decision is certain: no grades of unjudged documents make another one better by more than {plan.epsilon:g}."
    else:
        state = f"By {plan.measure}, {plan.rival} may be better by {plan.regret:.4f}. Judge these first:"
    show(f"Best so far: {plan.choice}. {state}")
    if not plan.is_certain:
        table = PlainTable("query", "document", "why", "priority")
        for query, document, why, priority in list(zip(plan.qid, plan.docid, plan.why, plan.priority.tolist(), strict=True))[:SHOWN]:
            table.row(str(query), document, why, f"{priority:.2g}")
        show(table)
    place = f" in {out}" if out is not None else ""
    show(f"{len(plan.docid):,} of the {plan.pool:,} documents of the pool are to be judged{place}.")
