"""``exactrank demo``: five methods compared on artificial data, with a report, in under a minute."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from exactrank.cli.common import Force, Json, Seed, app, command
from exactrank.cli.compare import AllThreads, Resume, bar, finish, interruptible, show

QUERIES = 300
METHODS = ("ridge", "directrank", "lambdarank", "lambdamart", "lightgbm")
MEASURES = ("nDCG@10", "nDCG@1", "AP(rel=3)")


@command(app)
def demo(
    report: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("exactrank-demo"),
    resume: Resume = False,
    force: Force = False,
    threads: AllThreads = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Compare five methods on artificial data: the table here, the report in a folder; takes under a minute."""
    from exactrank.compare.compare import compare
    from exactrank.compare.folder import workplace
    from exactrank.data.synthetic import CubicPolynomial

    source = CubicPolynomial(features=15, documents=25, noise=0.5, seed=seed, threads=threads)
    if not as_json:
        typer.echo(f"{QUERIES} artificial queries of {source.documents} documents; {', '.join(METHODS)}", err=True)
    with interruptible(report), workplace(report, resume, force) as place, bar(quiet=as_json) as told:
        found = compare(
            {"artificial": source.data(QUERIES)},
            METHODS,
            MEASURES,
            folds=3,
            trials=3,
            out=place,
            seed=seed,
            threads=threads,
            sources={"artificial": repr(source)},
            command=shlex.join(["exactrank", *sys.argv[1:]]),
            told=told,
        )
    show(found, report, as_json)
    finish(found)
