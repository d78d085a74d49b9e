"""``exactrank train NAME``: a command for each ranker, made when it is asked for, since that imports numerical libraries.

The model so far is written whenever it improves, so a process that is killed leaves a whole model or none.
"""

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from exactrank.cli.common import (
    DocColumn,
    Features,
    Force,
    Json,
    QueryColumn,
    RelevanceColumn,
    Source,
    app,
    guarded,
    print_json,
    read,
    read_options,
    say,
    tell,
)
from exactrank.rankers import RANKERS, find_ranker
from exactrank.text import printable

if TYPE_CHECKING:
    from exactrank.data.format import ReadOptions
    from exactrank.rankers.base import Ranker
    from exactrank.scorers.model import Model
    from exactrank.training import Listener, Progress

Out = Annotated[Path, typer.Option(help="Where the model goes.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the model that is there, to the same result as without a break.")]
Valid = Annotated[Path | None, typer.Option(help="Validation data, which chooses the model to keep.")]


class Rankers(TyperGroup):
    """The commands, by the rankers' names."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All rankers."""
        return list(RANKERS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command that trains one."""
        return _command(cmd_name) if cmd_name in RANKERS else None


app.add_typer(typer.Typer(cls=Rankers), name="train", help="Train a ranker on the measure you report.", no_args_is_help=True)


@dataclass
class Job:
    """One training run from files to a file."""

    ranker: "Ranker"
    out: Path
    force: bool
    as_json: bool
    resume: bool = False

    def run(self, data: Path, valid: Path | None, options: "ReadOptions") -> None:
        """Read, train, write, report; Ctrl-C keeps what there is."""
        from exactrank.files import refuse_existing
        from exactrank.measures.parse import parse_measure
        from exactrank.scorers.model import load

        parse_measure(self.ranker.measure)
        begun = self.resume and self.out.exists()
        if not self.force and not begun:
            refuse_existing(self.out)
        earlier = load(self.out) if begun else None
        try:
            train = read(data, options)
            held_out = None if valid is None else read(valid, options)

            def checkpoint(model: "Model") -> None:
                nonlocal begun
                model.save(self.out, force=self.force or begun)
                begun = True

            with _bar(self.ranker, quiet=self.as_json) as listener, _troubles_told():
                self.ranker.fit(train, valid=held_out, listener=listener, checkpoint=checkpoint, resume=earlier)
            self.ranker.save(self.out, force=True)
        except KeyboardInterrupt:
            kept = f"{self.out} holds the best model so far" if begun else "there was no model yet, nothing was written"
            tell(f"interrupted; {kept}")
            raise typer.Exit(0 if begun else 1) from None
        self.report()

    def report(self) -> None:
        """Say what was reached."""
        model = self.ranker.model_
        reached = model.training
        if reached["interrupted"]:
            tell(f"interrupted; {self.out} holds the best model so far")
        if self.as_json:
            named = {"path": str(self.out), "ranker": self.ranker.name, "measure": model.measure}
            found = {"training": reached["value"], "validation": reached["valid"]}
            print_json(named | found | {"steps": reached["steps"], "interrupted": reached["interrupted"]})
        else:
            _print_reached(model, str(self.ranker.measure), self.out)


def _command(name: str) -> Any:
    """The command that trains the ranker called ``name``."""
    from typer.main import get_command

    from exactrank.cli.ranker_options import plain_values, ranker_options

    ranker = find_ranker(name)

    def train(
        data: Source,
        out: Out,
        valid: Valid = None,
        force: Force = False,
        resume: Resume = False,
        features: Features = None,
        query_column: QueryColumn = "query_id",
        doc_column: DocColumn = "doc_id",
        relevance_column: RelevanceColumn = "relevance",
        as_json: Json = False,
        **options: Any,
    ) -> None:
        job = Job(ranker(**plain_values(options)), out, force, as_json, resume)
        job.run(data, valid, read_options(True, query_column, doc_column, relevance_column, job.ranker.threads, features))

    _replace_catch_all(train, ranker_options(ranker))
    alone = typer.Typer(add_completion=False)
    alone.command(name, help=(ranker.__doc__ or "").partition("\n")[0])(guarded(train))
    return get_command(alone)


def _replace_catch_all(function: Callable[..., None], options: list[inspect.Parameter]) -> None:
    """Give ``function``, whose last parameter is ``**options``, the signature that names them."""
    signature = inspect.signature(function)
    own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    function.__signature__ = signature.replace(parameters=[*own[:5], *options, *own[5:]])  # type: ignore[attr-defined]


@contextmanager
def _troubles_told() -> Iterator[None]:
    """Say on stderr what training warned of, once, in the words of the command line; NumPy's words on numbers say nothing to a user."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught if not issubclass(warning.category, RuntimeWarning)):
        tell(message)


@contextmanager
def _bar(ranker: "Ranker", *, quiet: bool) -> Iterator["Listener"]:
    """A bar on stderr, where someone watches it, with the measure as it stands."""
    from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn, TimeRemainingColumn

    from exactrank.cli.terminal import progress_bar, words

    shown = words(ranker.name), BarColumn(), MofNCompleteColumn(), words()
    with progress_bar(*shown, TimeElapsedColumn(), words("left"), TimeRemainingColumn(), quiet=quiet) as bar:
        task = bar.add_task("", total=None)

        def show(progress: "Progress") -> None:
            measured = f"{ranker.measure} {progress.value:.4f}" + ("" if progress.valid is None else f", validation {progress.valid:.4f}")
            gap = "" if progress.duality is None else f", gap {progress.duality.gap:.1e}"
            bar.update(task, completed=progress.step, total=progress.steps, description=printable(measured + gap))

        yield show


def _print_reached(model: "Model", measure: str, out: Path) -> None:
    from exactrank.cli.terminal import Table, show

    reached = {"training": model.training["value"], "validation": model.training["valid"]}
    shown = {name: f"{mean:.4f}" for name, mean in reached.items() if mean is not None}
    table = Table("measure", *shown, "definition")
    table.row(measure, *shown.values(), model.measure or "")
    show(table)
    say(f"{out}: {model.scorer.kind} model of {model.scorer.n_features:,} features")
