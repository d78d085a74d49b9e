"""``exactrank cutoff``: the best threshold or depth of a ranking, and models and fusions that apply it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from exactrank.cli.common import (
    AnyReading,
    Force,
    Json,
    Seed,
    Source,
    optional_file,
    picture,
    print_json,
    print_line,
    read,
    regular_file,
)

if TYPE_CHECKING:
    from exactrank.cutoffs.cutoff import Cutoff
    from exactrank.fusion.fusion import Fusion
    from exactrank.models.model import Model


def cutoff(
    data: Source,
    scores: Annotated[Path, typer.Argument(help="Scores, one per line in the order of DATA, or a TREC run, as of predict and fuse apply.")],
    reading: AnyReading,
    goal: Annotated[
        str,
        typer.Option(
            metavar="GOAL",
            help="What is best: F1, 'utility(gain=1, cost=0.2)', 'recall >= 0.9' or 'recall >= 0.9 with probability 0.95'.",
        ),
    ] = "F1",
    by: Annotated[str, typer.Option(help="What the cutoff is on: score, z-score, softmax, margin, depth, or 'score and depth'.")] = "score",
    average: Annotated[str, typer.Option(help="macro, the mean over queries, or micro, over all documents together.")] = "macro",
    rel: Annotated[float, typer.Option(help="The smallest grade of a relevant document.")] = 1,
    folds: Annotated[int, typer.Option(help="Folds of the cross-validation by query; 0: none.")] = 5,
    attach: Annotated[Path | None, typer.Option(help="Write this model or fusion with the cutoff to --out.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where the model or the fusion with the cutoff goes.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the value of every threshold: .png, .svg or .pdf.")] = None,
    force: Force = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Find the best cutoff of a ranking: which documents to show or to pass on."""
    from exactrank.cutoffs.search import cutoff as find_cutoff
    from exactrank.data.scores import read_scores
    from exactrank.errors import DataError

    if (attach is None) != (out is None):
        raise DataError("--attach and --out go together: the model or fusion, and the file that it goes to with the cutoff")
    with optional_file(out, force) as file, picture(plot, force) as draw, regular_file(scores) as ranking:
        carrier = None if attach is None else _carrier(attach)
        rows, values = read_scores(ranking, read(data, reading))
        best = find_cutoff(rows, values, goal, by, average=average, rel=rel, folds=folds, seed=seed)
        if file is not None and carrier is not None:
            file.write(carrier.with_cutoff(best).to_bytes())
        if draw is not None:
            draw(best.figure())
    if as_json:
        print_json(best.to_record())
        return
    _print(best)
    if out is not None:
        print_line(f"{out}: {attach} with the cutoff")


def _carrier(path: Path) -> "Model | Fusion":
    """Load the model or the fusion that gets the cutoff."""
    from exactrank.errors import IncompatibleError
    from exactrank.fusion.fusion import Fusion
    from exactrank.loading import load
    from exactrank.models.model import Model

    loaded = load(path)
    if not isinstance(loaded, Model | Fusion):
        raise IncompatibleError(f"{path} is neither a model nor a fusion; give a file of exactrank train or fuse --save")
    return loaded


def _print(best: "Cutoff") -> None:
    print_line(f"keep {best.rule}: {best.documents:.2f} documents per query")
    over = "queries" if best.average == "macro" else "documents"
    print_line(f"{best.quantity}: {best.value:.4f} over the {over} that it was chosen by")
    if best.cross_validated is not None:
        interval = "" if best.interval is None else f" ({best.interval[0]:.4f} .. {best.interval[1]:.4f})"
        print_line(f"held out: {best.cross_validated:.4f}{interval}")
