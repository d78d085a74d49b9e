"""The commands that score documents by a model, and that evaluate scores, runs and models."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from exactrank.cli.clicks import ClipOption, PropensityOption, Unknown, UnknownOption
from exactrank.cli.cluster import Dask, Workers, backend_at, shards_at
from exactrank.cli.common import (
    AnyReading,
    Force,
    Json,
    LogReading,
    Module,
    Reading,
    Seed,
    Source,
    Threads,
    load_model,
    measure_option,
    number,
    on_disk,
    optional_file,
    print_json,
    read,
    report_written,
    write,
)
from exactrank.cli.off_policy import DEFAULT, FromClicks, ValueEstimator, show_estimates

if TYPE_CHECKING:
    from exactrank._support.arrays import PerDocument
    from exactrank.compare.comparison import Comparison
    from exactrank.data.ranking_data import RankingData
    from exactrank.data.shards import Shards
    from exactrank.measures.evaluate import Evaluation
    from exactrank.models.model import Model


def predict(
    model: Annotated[Path, typer.Argument(help="A model of exactrank train, or JSON with weights by feature name.")],
    data: Source,
    reading: Reading,
    out: Annotated[
        Path | None, typer.Option(help="Where the scores go, as a TREC run if it ends in .run or .run.gz. [default: stdout]")
    ] = None,
    form: Annotated[str | None, typer.Option("--format", help="scores, one a line, or run. [default: by the name of --out]")] = None,
    tag: Annotated[str, typer.Option(help="What a run is called, in its last column.")] = "exactrank",
    depth: Annotated[int | None, typer.Option(min=1, help="Documents of a query in a run. [default: all]")] = None,
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
    ranked = form == "run" if form else out is not None and is_run_name(out)
    if not ranked and (depth is not None or tag != "exactrank"):
        raise SettingError("--depth and --tag are those of a run; write one with --out NAME.run or --format run, or leave them out")
    if ranked and out is None and as_json:
        raise SettingError("--json prints scores, not a run; leave it out, or write the run to a file with --out")
    with optional_file(Path("-") if ranked and out is None else out, force) as file:
        rows = read(data, reading)
        scores = load_model(model, rows.n_features, module).predict(rows, threads)
        if file is not None and ranked:
            write_lines(file, rows, scores, tag, depth=depth, packed=out is not None and out.suffix == ".gz")
        elif file is not None:
            file.writelines(f"{score!r}\n".encode() for score in scores.tolist())
    if out is not None:
        report_written(out, len(scores), as_json)
    elif as_json:
        print_json({"scores": scores.tolist()})
    elif not ranked:
        write("\n".join(map(repr, scores.tolist())))


def evaluate(
    data: Source,
    reading: AnyReading,
    columns: LogReading,
    scores: Annotated[
        list[Path] | None,
        typer.Argument(
            help="What ranks the documents: one score per line in the order of DATA, a TREC run, or a model; several are compared."
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        measure_option("e.g. nDCG@10, 'AP(rel=2)', ndcg_cut_10; repeatable. [default: nDCG@10, AP, RR]"),
    ] = None,
    feature: Annotated[str | None, typer.Option(help="Score by this feature of DATA instead of a file.")] = None,
    preset: Annotated[str | None, typer.Option(help="Conventions of letor, trec_eval, lightgbm, xgboost or sklearn.")] = None,
    complete: Annotated[
        bool | None, typer.Option("--complete/--retrieved-only", help="Count queries with nothing retrieved, or leave them out.")
    ] = None,
    per_query: Annotated[bool, typer.Option("--per-query", "-q", help="Also show each query.")] = False,
    clicks: Annotated[Path | None, typer.Option(help="Estimate from this click log instead of the grades.")] = None,
    estimator: Annotated[ValueEstimator | None, typer.Option(help="With --clicks: how the estimate is made; ips if not given.")] = None,
    propensity: PropensityOption = "harvest",
    clip: ClipOption = 0.05,
    unknown: UnknownOption = Unknown.ERROR,
    seed: Seed = 0,
    threads: Threads = None,
    dask: Dask = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Evaluate scores, runs or models by any measures, with 95% intervals; every number is printed with its exact definition."""
    from exactrank.errors import DataError
    from exactrank.measures.evaluate import named_measures
    from exactrank.measures.parse import default_measures

    if clicks is None and estimator is not None:
        raise DataError(f"--estimator {estimator} estimates from clicks; give --clicks LOG too, or leave it out")
    asked, given = measure or ([DEFAULT] if clicks else default_measures(preset)), scores or []
    named_measures(asked, preset)
    if (not given) == (feature is None):
        raise DataError("give a SCORES file or --feature NAME" + (", not both" if given else " to say what ranks the documents"))
    settings: dict[str, Any] = {"preset": preset, "complete": complete, "seed": seed, "threads": threads}
    with ExitStack() as opened:
        files = [opened.enter_context(on_disk(path)) for path in given]
        models = [_is_model(file) for file in files]
        shards = shards_at(data, dask is not None or workers is not None, replace(reading, keep_missing=True))
        if shards is not None:
            if len(given) != 1 or not models[0]:
                raise DataError(f"{data} is in several files, which only a model can score where they lie; give one model")
            with backend_at(dask, workers) as backend:
                _show_evaluation(asked, shards, load_model(files[0]), settings | {"backend": backend}, per_query, as_json)
            return
        named = replace(reading.columns, graded=clicks is None)
        judged = read(data, replace(reading, columns=named, keep_missing=any(models) or reading.keep_missing))
        rankings: list[Path | PerDocument] = [
            _predicted(path, file, judged, threads) if model else file for path, file, model in zip(given, files, models, strict=True)
        ]
        if clicks is not None:
            log_columns = replace(columns, query=named.query, doc=named.doc)
            about = FromClicks(clicks, log_columns, propensity, estimator or ValueEstimator.IPS, clip, unknown.value)
            ranked = _named(given, rankings) if given else {str(feature): _feature(judged, str(feature))}
            show_estimates(asked, judged, ranked, about, settings, per_query, as_json)
        elif len(given) > 1:
            from exactrank.compare.runs import compare_runs

            found = compare_runs(judged, _named(given, rankings), asked, dataset=data.name, **settings)
            _show_comparison(found, per_query, as_json)
        else:
            _show_evaluation(asked, judged, rankings[0] if rankings else _feature(judged, str(feature)), settings, per_query, as_json)


def _named(given: list[Path], rankings: "list[Path | PerDocument]") -> "dict[str, Path | PerDocument]":
    """The rankings by the names of their files."""
    from exactrank.compare.runs import run_names
    from exactrank.errors import DataError

    named = dict(zip(run_names(given), rankings, strict=True))
    if len(named) < len(given):
        raise DataError("a file is there twice, so there is nothing to compare; give each once")
    return named


def _is_model(path: Path) -> bool:
    from exactrank._support.files import open_bytes
    from exactrank.data.scores import looks_like_model

    with open_bytes(path) as file:
        return looks_like_model(file.read(1 << 16))


def _predicted(path: Path, file: Path, data: "RankingData", threads: int | None) -> "PerDocument":
    from exactrank.errors import IncompatibleError

    try:
        return load_model(file).predict(data, threads)
    except IncompatibleError as error:
        raise IncompatibleError(f"{path}: {error}") from None


def _feature(data: "RankingData", name: str) -> "PerDocument":
    """A feature as scores; where it is missing the document was not retrieved."""
    import numpy as np

    column = data.feature(name)
    return np.where(np.isnan(column), -np.inf, column)


def _show_evaluation(
    measures: list[str],
    data: "RankingData | Shards",
    ranking: "Path | PerDocument | Model",
    settings: Mapping[str, Any],
    per_query: bool,
    as_json: bool,
) -> None:
    """One ranking, measure by measure."""
    from exactrank.data.scores import read_scores
    from exactrank.measures.evaluate import evaluate as evaluated

    rows, values = read_scores(ranking, cast("RankingData", data)) if isinstance(ranking, Path) else (data, ranking)
    result = evaluated(rows, values, measures, **settings)
    unjudged = 0 if rows is data else rows.n_documents - data.n_documents  # type: ignore[union-attr]
    if not as_json:
        _print_evaluation(result, per_query, unjudged)
        return
    found: dict[str, Any] = {}
    for name in result:
        each = result[name].values
        skipped = int((each != each).sum())
        counts = {"queries": len(each) - skipped, "skipped": skipped}
        found[name] = _as_json(repr(result.measures[name]), result.means[name], result.intervals[name]) | counts
        if per_query:
            found[name]["per_query"] = {str(q): number(v) for q, v in zip(result.qid.tolist(), each, strict=True)}
    print_json({"measures": found, "unjudged": unjudged})


def _as_json(definition: str, mean: float, interval: tuple[float, float]) -> dict[str, Any]:
    return {"definition": definition, "mean": number(mean), "interval": [number(end) for end in interval]}


def _print_evaluation(result: "Evaluation", per_query: bool, unjudged: int) -> None:
    from exactrank.cli.terminal import PlainTable, show
    from exactrank.data.scores import unjudged_rule

    if per_query:
        rows = PlainTable("query", *result)
        for q, values in zip(result.qid.tolist(), result.per_query.T, strict=True):
            rows.row(str(q), *map(_shown, values))
        show(rows)
    table = PlainTable("measure", "mean", "95% interval", "queries", "definition")
    for name, measure in result.measures.items():
        low, high = result.intervals[name]
        counted = int((result[name].values == result[name].values).sum())
        table.row(name, f"{result.means[name]:.4f}", f"{low:.4f} .. {high:.4f}", f"{counted:,}", repr(measure))
    show(table, *filter(None, [unjudged_rule({"": unjudged})]))


def _show_comparison(found: "Comparison", per_query: bool, as_json: bool) -> None:
    """Several rankings: one row for each, one column per measure, and the letters of those it is significantly better than."""
    from exactrank.cli.terminal import PlainTable, show, width_and_color
    from exactrank.compare.results import to_record
    from exactrank.compare.standings import pairs, standings

    (data,) = found.datasets
    (fold,) = data.folds
    if as_json:
        runs: dict[str, Any] = {fit.method: {"unjudged": fit.settings["unjudged"], "measures": {}} for fit in found.fits}
        for name, definition in found.measures.items():
            for fit, own in zip(found.fits, standings(found, data.name, name), strict=True):
                means = _as_json(definition, own.mean, own.interval) | {"better_than": own.better_than}
                each = {"per_query": dict(zip(fold.test_qid, map(number, fit.test[name]), strict=True))} if per_query else {}
                runs[fit.method] |= {"letter": own.letter}
                runs[fit.method]["measures"][name] = means | each
        print_json({"runs": runs, "pairs": {name: to_record(pairs(found, data.name, name)) for name in found.measures}})
        return
    for name in found.measures if per_query else ():
        rows = PlainTable("query", *(fit.method for fit in found.fits), title=name)
        for q, *values in zip(fold.test_qid, *(fit.test[name] for fit in found.fits), strict=True):
            rows.row(q, *map(_shown, values))
        show(rows)
    width, color = width_and_color()
    write(found.to_text(width, color=color))
    show(*(f"{name} is {definition}" for name, definition in found.measures.items()))


def _shown(value: float | None) -> str:
    return "skipped" if value is None or value != value else f"{value:.4f}"
