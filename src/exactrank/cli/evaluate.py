"""The commands that score documents by a model, and that evaluate scores, runs and models."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from exactrank.cli.clicks import ClipOption, PropensityOption, UnknownOption
from exactrank.cli.cluster import Dask, Workers, backend_at, shards_at
from exactrank.cli.common import (
    AnyReading,
    Force,
    HighestGrade,
    Json,
    LogReading,
    Machine,
    Module,
    Reading,
    Seed,
    Source,
    Threads,
    UnjudgedOption,
    UnjudgedRule,
    json_mean,
    json_number,
    load_model,
    measure_option,
    optional_file,
    print_json,
    print_text,
    read,
    regular_file,
    report_file,
)
from exactrank.cli.off_policy import DEFAULT, ClickOptions, Estimator, EvaluationSettings, show_estimates

if TYPE_CHECKING:
    from exactrank._support.arrays import PerDocument
    from exactrank.compare.comparison import Comparison
    from exactrank.data.formats.base import ReadOptions
    from exactrank.data.ranking_data import RankingData
    from exactrank.measures.evaluate import Evaluation


class UnjudgedSettings(TypedDict):
    """Settings of an evaluation on documents that nobody has judged."""

    unjudged: UnjudgedRule
    highest_grade: float | None
    judged_only: bool


def predict(
    model: Annotated[Path, typer.Argument(help="A model of exactrank train, or JSON with weights by feature name.")],
    data: Source,
    reading: Reading,
    out: Annotated[
        Path | None, typer.Option(help="Where the scores go, as a TREC run if it ends in .run or .run.gz. [default: stdout]")
    ] = None,
    form: Annotated[str | None, typer.Option("--format", help="scores, one per line, or run. [default: by the name of --out]")] = None,
    tag: Annotated[str, typer.Option(help="The name of a run, in its last column.")] = "exactrank",
    depth: Annotated[int | None, typer.Option(min=1, help="Documents per query in a run. [default: all]")] = None,
    module: Module = None,
    force: Force = False,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Score documents by a model: one score per line in the order of DATA, or a TREC run."""
    from exactrank.data.formats.run_file import is_run_name, write_lines
    from exactrank.errors import SettingError

    if form not in (None, "scores", "run"):
        raise SettingError(f"--format {form!r} is not one of scores, run")
    as_run = form == "run" if form else out is not None and is_run_name(out)
    if not as_run and (depth is not None or tag != "exactrank"):
        raise SettingError("--depth and --tag have an effect on runs only; add --out NAME.run or --format run, or leave them out")
    if as_run and out is None and as_json:
        raise SettingError("--json prints scores, not a run; leave it out, or write the run to a file with --out")
    with optional_file(Path("-") if as_run and out is None else out, force) as file:
        rows = read(data, reading)
        scores = load_model(model, rows.n_features, module).predict(rows, threads)
        if file is not None and as_run:
            write_lines(file, rows, scores, tag, depth=depth, compress=out is not None and out.suffix == ".gz")
        elif file is not None:
            file.writelines(f"{score!r}\n".encode() for score in scores.tolist())
    if out is not None:
        report_file(out, int((scores > float("-inf")).sum()) if as_run else len(scores), as_json)
    elif as_json:
        print_json({"scores": [score if score > float("-inf") else None for score in scores.tolist()]})
    elif not as_run:
        print_text("\n".join(map(repr, scores.tolist())))


def evaluate(
    data: Source,
    reading: AnyReading,
    columns: LogReading,
    scores: Annotated[
        list[Path] | None,
        typer.Argument(help="Scores, one per line in the order of DATA, a TREC run, or a model; several are compared."),
    ] = None,
    measure: Annotated[
        list[str] | None,
        measure_option("The measures, e.g. nDCG@10, 'AP(rel=2)', ndcg_cut_10; repeatable. [default: nDCG@10, AP, RR]"),
    ] = None,
    feature: Annotated[str | None, typer.Option(help="Score by this feature of DATA instead of a file.")] = None,
    preset: Annotated[str | None, typer.Option(help="Conventions of letor, trec_eval, lightgbm, xgboost or sklearn.")] = None,
    complete: Annotated[
        bool | None, typer.Option("--complete/--retrieved-only", help="Count queries for which nothing was retrieved, or leave them out.")
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", "-q", help="Also show each query.")] = False,
    machine: Machine = None,
    unjudged: UnjudgedOption = "zero",
    highest_grade: HighestGrade = None,
    judged_only: Annotated[bool, typer.Option("--judged-only", help="Leave unjudged documents out of the ranking.")] = False,
    clicks: Annotated[Path | None, typer.Option(help="Estimate from this click log instead of the grades.")] = None,
    estimator: Annotated[Estimator | None, typer.Option(help="With --clicks: the estimator, by default ips.")] = None,
    propensity: PropensityOption = "harvest",
    clip: ClipOption = 0.05,
    unknown: UnknownOption = "error",
    seed: Seed = 0,
    threads: Threads = None,
    dask: Dask = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Evaluate scores, runs or models by any measures, with 95% intervals; every number is printed with its exact definition."""
    from exactrank.data.scores import read_scores
    from exactrank.errors import DataError
    from exactrank.measures.evaluate import evaluate as evaluate_measures, named_measures
    from exactrank.measures.parse import default_measures

    if clicks is None and estimator is not None:
        raise DataError(f"--estimator {estimator} estimates from clicks; add --clicks LOG, or leave it out")
    names, paths = measure or ([DEFAULT] if clicks else default_measures(preset)), scores or []
    named_measures(names, preset)
    if (not paths) == (feature is None):
        raise DataError("give a SCORES file or --feature NAME" + (", not both" if paths else " to say what ranks the documents"))
    if machine is not None and clicks is not None:
        raise DataError("--machine corrects the grades of DATA, which --clicks does not use; leave out one of them")
    about_unjudged: UnjudgedSettings = {"unjudged": unjudged, "highest_grade": highest_grade, "judged_only": judged_only}
    if (unjudged != "zero" or highest_grade is not None or judged_only) and (clicks is not None or len(paths) > 1):
        raise DataError("--unjudged, --highest-grade and --judged-only are for one ranking and grades; leave out --clicks, give one SCORES")
    settings: EvaluationSettings = {"preset": preset, "complete": complete, "seed": seed, "threads": threads}
    with ExitStack() as stack:
        files = [stack.enter_context(regular_file(path)) for path in paths]
        models = [_is_model(file) for file in files]
        shards = shards_at(data, dask is not None or workers is not None, replace(reading, keep_missing=True))
        if shards is not None:
            if machine is not None:
                raise DataError(f"{data} is in several files, and --machine corrects the means of data in one file; give one file")
            if len(paths) != 1 or not models[0]:
                raise DataError(f"{data} is in several files, which only a model can score where they lie; give one model")
            with backend_at(dask, workers) as backend:
                evaluation = evaluate_measures(shards, load_model(files[0]), names, backend=backend, **settings, **about_unjudged)
                _show_evaluation(evaluation, 0, per_query, as_json)
            return
        reading = replace(
            reading, columns=replace(reading.columns, graded=clicks is None), keep_missing=any(models) or reading.keep_missing
        )
        judged = read(data, reading)
        rankings: dict[str, Path | PerDocument] = {str(feature): _feature(judged, str(feature))} if feature is not None else {}
        for name, path, file, is_model in zip(_names(paths), paths, files, models, strict=True):
            rankings[name] = _predict(path, file, judged, threads) if is_model else file
        if clicks is not None:
            log_columns = replace(columns, query=reading.columns.query, doc=reading.columns.doc)
            options = ClickOptions(clicks, log_columns, propensity, estimator or "ips", clip, unknown)
            show_estimates(names, judged, rankings, options, settings, per_query, as_json)
        elif len(paths) > 1:
            from exactrank.compare.runs import compare_runs

            ranked = None if machine is None else _rank_machine_grades(machine, reading, rankings, files, models, threads)
            _show_comparison(compare_runs(judged, rankings, names, machine=ranked, dataset=data.name, **settings), per_query, as_json)
        else:
            (ranking,) = rankings.values()
            rows, values = read_scores(ranking, judged) if isinstance(ranking, Path) else (judged, ranking)
            ranked_by = files[0] if files else None
            graded = None if machine is None else _score_machine_grades(machine, reading, ranked_by, any(models), feature, threads)
            evaluation = evaluate_measures(rows, values, names, machine=graded, **settings, **about_unjudged)
            unjudged_documents = 0 if judged_only else rows.n_documents - judged.n_documents
            _show_evaluation(evaluation, unjudged_documents, per_query, as_json)


def _score_machine_grades(
    path: Path, reading: "ReadOptions", file: Path | None, is_model: bool, feature: str | None, threads: int | None
) -> "tuple[RankingData, PerDocument]":
    """Return the documents that a machine has graded, or the ranking has retrieved, and their scores."""
    from exactrank.data.scores import read_scores

    graded = read(path, reading)
    if file is None:
        return graded, _feature(graded, str(feature))
    return (graded, _predict(path, file, graded, threads)) if is_model else read_scores(file, graded)


def _rank_machine_grades(
    path: Path,
    reading: "ReadOptions",
    rankings: "Mapping[str, Path | PerDocument]",
    files: list[Path],
    models: list[bool],
    threads: int | None,
) -> "tuple[RankingData, dict[str, Path | PerDocument]]":
    """Return the documents that a machine has graded, and a ranking of them by each run or model."""
    graded = read(path, reading)
    ranked_by = zip(rankings, files, models, strict=True)
    return graded, {name: _predict(file, file, graded, threads) if is_model else file for name, file, is_model in ranked_by}


def _names(paths: list[Path]) -> list[str]:
    """Return the names of the rankings, by their files."""
    from exactrank.compare.runs import run_names
    from exactrank.errors import DataError

    names = run_names(paths)
    if len(set(names)) < len(names):
        raise DataError("a file is given twice, so there is nothing to compare; give each file once")
    return names


def _is_model(path: Path) -> bool:
    from exactrank._support.files import open_bytes
    from exactrank.data.scores import looks_like_model

    with open_bytes(path) as file:
        return looks_like_model(file.read(1 << 16))


def _predict(path: Path, file: Path, data: "RankingData", threads: int | None) -> "PerDocument":
    from exactrank.errors import IncompatibleError

    try:
        return load_model(file).predict(data, threads)
    except IncompatibleError as error:
        raise IncompatibleError(f"{path}: {error}") from None


def _feature(data: "RankingData", name: str) -> "PerDocument":
    """Return a feature as scores; a document without a value was not retrieved."""
    import numpy as np

    column = data.feature(name)
    return np.where(np.isnan(column), -np.inf, column)


def _show_evaluation(evaluation: "Evaluation", unjudged: int, per_query: bool, as_json: bool) -> None:
    """Print the values of one ranking, one row per measure; ``unjudged`` documents were retrieved without a grade."""
    if not as_json:
        _print_evaluation(evaluation, unjudged, per_query)
        return
    records: dict[str, dict[str, object]] = {}
    for name, definition in evaluation.measures.items():
        values = evaluation[name].values
        skipped = int((values != values).sum())
        mean = json_mean(evaluation.means[name], evaluation.intervals[name])
        records[name] = {"definition": repr(definition)} | mean | {"queries": len(values) - skipped, "skipped": skipped}
        if name in evaluation.tie_ranges:
            records[name]["tie_range"] = list(evaluation.tie_ranges[name])
        if evaluation.judged is not None:
            records[name]["coverage"] = json_number(evaluation.coverage[name])
        if evaluation.extremes is not None:
            records[name]["bounds"] = [json_number(end) for end in evaluation.bounds[name]]
        if per_query:
            records[name]["per_query"] = {str(q): json_number(v) for q, v in zip(evaluation.qid.tolist(), values, strict=True)}
    record: dict[str, object] = {"measures": records, "unjudged": unjudged}
    if evaluation.machine is not None:
        from exactrank.cli.machine_grades import json_correction

        record["machine"] = json_correction(evaluation.machine)
    print_json(record)


def _print_evaluation(evaluation: "Evaluation", unjudged: int, per_query: bool) -> None:
    from exactrank.cli.terminal import PlainTable, show, show_per_query
    from exactrank.data.scores import unjudged_rule

    if per_query:
        show_per_query(None, evaluation.qid.tolist(), {name: evaluation[name].values for name in evaluation})
    table = PlainTable("measure", "mean", "95% interval", "queries", *evaluation.judgment_cells, "definition")
    for name, definition in evaluation.measures.items():
        low, high = evaluation.intervals[name]
        evaluated = int((evaluation[name].values == evaluation[name].values).sum())
        cells = [column[name] for column in evaluation.judgment_cells.values()]
        table.row(name, f"{evaluation.means[name]:.4f}", f"{low:.4f} .. {high:.4f}", f"{evaluated:,}", *cells, repr(definition))
    show(table, *filter(None, [unjudged_rule({"": unjudged})]))
    if evaluation.machine is not None:
        from exactrank.cli.machine_grades import show_correction

        show_correction(evaluation.machine)


def _show_comparison(comparison: "Comparison", per_query: bool, as_json: bool) -> None:
    """Print several rankings: one row per ranking, one column per measure, and the letters of those it is significantly better than."""
    from exactrank._support.json_values import encode_record
    from exactrank.cli.machine_grades import json_corrected_mean, json_summary
    from exactrank.cli.terminal import show, show_per_query, width_and_color
    from exactrank.compare.standings import pairs, standings

    (data,) = comparison.datasets
    (fold,) = data.folds
    if as_json:
        unjudged: dict[str, object] = {fit.method: fit.settings["unjudged"] for fit in comparison.fits}
        letters: dict[str, str] = {}
        records: dict[str, dict[str, object]] = {fit.method: {} for fit in comparison.fits}
        for name, definition in comparison.measures.items():
            for fit, standing in zip(comparison.fits, standings(comparison, data.name, name), strict=True):
                record = {"definition": repr(definition)} | json_mean(standing.mean, standing.interval)
                record |= {"better_than": standing.better_than}
                if standing.corrected is not None:
                    record |= json_corrected_mean(standing.corrected)
                if per_query:
                    record["per_query"] = dict(zip(fold.test_qid, map(json_number, fit.test[name]), strict=True))
                records[fit.method][name], letters[fit.method] = record, standing.letter
        runs = {name: {"unjudged": unjudged[name], "measures": records[name], "letter": letters[name]} for name in records}
        pairs_of = {name: encode_record(pairs(comparison, data.name, name)) for name in comparison.measures}
        agreement = {} if data.machine is None else {"machine": json_summary(data.machine)}
        print_json({"runs": runs, "pairs": pairs_of} | agreement)
        return
    for name in comparison.measures if per_query else ():
        show_per_query(name, fold.test_qid, {fit.method: fit.test[name] for fit in comparison.fits})
    width, color = width_and_color()
    print_text(comparison.to_text(width, color=color))
    show(*(f"{name} is {definition}" for name, definition in comparison.measures.items()))
