"""The command that asks whether a lambda function has a potential."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from exactrank.cli.common import Json, Reading, Seed, Source, Threads, command, load_model, print_json, read
from exactrank.cli.probe import probe

if TYPE_CHECKING:
    from exactrank.objectives.lambdas import Link
    from exactrank.objectives.score_space import Objective
    from exactrank.probe.forces import Forces, Quantity

QUESTIONS: "Final[dict[Quantity, str]]" = {
    "imbalance": "do the forces of a query sum to zero?",
    "asymmetry": "is the Jacobian symmetric?",
    "circulation": "is no work left over around closed paths?",
    "concavity": "is the Hessian positive semidefinite?",
    "rise": "do forces never grow along a path?",
}


class LambdaName(StrEnum):
    """The lambda functions."""

    LOGISTIC = "logistic"
    STEP = "step"
    SPRING = "spring"
    FINITE_DIFFERENCE = "finite-difference"


LINKS: "Final[dict[LambdaName, Link]]" = {
    LambdaName.LOGISTIC: "logistic",
    LambdaName.STEP: "step",
    LambdaName.SPRING: "spring",
}
Lambdas = Annotated[LambdaName, typer.Option(help="How a pair's force depends on its scores, or the measure's finite differences.")]
Measured = Annotated[str, typer.Option("--measure", "-m", help="Whose changes weigh the pairs, e.g. nDCG@10; none: all weigh the same.")]
Margin = Annotated[float, typer.Option(help="Step and spring forces act until scores are so far apart; the step of finite differences.")]
Neighbours = Annotated[int | None, typer.Option(min=1, help="Only documents at most so many ranks apart push each other.")]
Truncation = Annotated[int | None, typer.Option(min=1, help="One of a pair must be among the first so many ranks.")]


@command(probe)
def forces(
    data: Source,
    reading: Reading,
    lambdas: Lambdas = LambdaName.LOGISTIC,
    measure: Measured = "nDCG",
    margin: Margin = 1.0,
    neighbours: Neighbours = None,
    truncation: Truncation = None,
    model: Annotated[Path | None, typer.Option(help="Look around the scores of this model. \\[default: random scores]")] = None,
    queries: Annotated[int, typer.Option(min=1, help="Look at so many queries.")] = 20,
    seed: Seed = 0,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Ask whether a lambda function is the slope of a cost, and whether that is convex."""
    from exactrank.probe.forces import forces as examined

    objective = _objective(lambdas, measure, margin, neighbours, truncation)
    loaded = None if model is None else load_model(model)
    judged = read(data, reading)
    scores = None if loaded is None else loaded.predict(judged, threads)
    found = examined(objective, judged, scores, queries=queries, seed=seed, threads=threads)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)


def _objective(lambdas: LambdaName, measure: str, margin: float, neighbours: int | None, truncation: int | None) -> "Objective":
    from exactrank.errors import DataError
    from exactrank.measures.parse import parse_measure
    from exactrank.objectives.finite_difference import FiniteDifference
    from exactrank.objectives.lambdas import Lambdas as PairLambdas

    weighing = None if measure == "none" else parse_measure(measure)
    if lambdas in LINKS:
        return PairLambdas(weighing, LINKS[lambdas], margin, neighbours, truncation)
    if weighing is None or neighbours is not None or truncation is not None:
        raise DataError("--lambdas finite-difference has no pairs: it needs a --measure, and takes no --neighbours or --truncation")
    return FiniteDifference(weighing, margin)


def _print(found: "Forces") -> None:
    from exactrank.cli.terminal import Table, show
    from exactrank.probe.estimate import NIL

    table = Table("question", "answer", "at worst", "error", "query")
    for quantity, question in QUESTIONS.items():
        worst, answer = found.worst(quantity), found.nil(quantity)
        estimate = getattr(worst, quantity)
        said = {True: "yes", False: "no", None: "cannot be told"}[answer]
        size = f"{estimate.value:.2g}" if estimate.value >= NIL else f"<{NIL:.0e}"  # digits below would be those of rounding
        error = f"{estimate.error:.2g}" if estimate.error >= NIL else ""
        table.row(question, said, size, error, "" if answer else str(worst.query))
    how = f"{len(found.per_query):,} queries, {found.loops:,} closed paths, differentiated {'exactly' if found.exact else 'numerically'}"
    left_out = ", ".join(f"{count:,} ({reason})" for reason, count in found.left_out.items())
    show(table, how + (f"; left out: {left_out}" if left_out else ""), found.verdict)
