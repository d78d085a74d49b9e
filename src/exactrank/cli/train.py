"""``exactrank train NAME``: a command for each ranker, made when it is asked for, since that imports numerical libraries.

The model so far is written whenever it improves, to a file of its own beside the target, the checkpoint. The target is replaced at
the end by the finished model, and the checkpoint removed; a run that is broken off leaves the target as it was.
"""

import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from exactrank._support.text import printable
from exactrank.cli.cluster import Cuda, Dask, Workers, backend_at, shards_at
from exactrank.cli.common import Force, Json, Reading, Source, load_model, print_json, read, say, tell
from exactrank.cli.guard import guarded, line_and_code
from exactrank.cli.help import TRAINING, Command, Group
from exactrank.cli.ranker_options import Declared, command_of, given_settings, parameters
from exactrank.errors import ExactRankError, IncompatibleError, InterruptedWarning, SettingError
from exactrank.rankers import RANKERS

if TYPE_CHECKING:
    from exactrank.data.formats.base import ReadOptions
    from exactrank.data.ranking_data import RankingData
    from exactrank.data.shards import Shards
    from exactrank.measures.goal import Goal
    from exactrank.models.model import Model
    from exactrank.rankers.base import Ranker

Out = Annotated[Path, typer.Option(help="Where the model goes; - is standard output.")]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        rich_help_panel=TRAINING,
        help="Continue from the checkpoint or the model that is there; the result is that of an uninterrupted run.",
    ),
]
START = "Continue from this model on other data: trees are added to its trees, parameters start from its own."
Pairs = Annotated[
    Path | None,
    typer.Option(
        help="Pairs of documents that a judge has put into an order: a table with the columns query_id, better, worse and weight."
    ),
]
Valid = Annotated[
    Path | None,
    typer.Option(help="Validation data, which chooses the model to keep; beside training data in several files it may be in several too."),
]


class Rankers(Group):
    """The commands, by the rankers' names."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All rankers."""
        return list(RANKERS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command that trains one."""
        from typer.main import get_command

        if cmd_name not in RANKERS:
            return None
        try:
            about, train = _trainer(cmd_name)
        except (OSError, MemoryError) as error:  # what is known of the method could not be read
            line, code = line_and_code(error)
            tell(line)
            raise typer.Exit(code) from None
        alone = typer.Typer(add_completion=False)
        alone.command(cmd_name, cls=Command, help=printable(about))(guarded(train))
        return get_command(alone)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the first word names, and the other words."""
        if args[0] not in RANKERS and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(str(RANKERS.unknown(args[0], RANKERS)))
        return super().resolve_command(ctx, args)


def _trainer(name: str) -> tuple[str, Callable[..., None]]:
    """A line about the ranker called ``name``, and what trains it; of one that another package adds and that cannot be imported, why."""
    try:
        command = command_of(name)
    except ExactRankError as error:
        reason = error

        def refuse() -> None:
            raise reason

        return str(reason), refuse

    def train(
        data: Source,
        out: Out,
        reading: Reading,
        valid: Valid = None,
        pairs: Pairs = None,
        force: Force = False,
        resume: Resume = False,
        as_json: Json = False,
        start: str | None = None,
        dask: Dask = None,
        workers: Workers = None,
        cuda: Cuda = False,
        **options: Any,
    ) -> None:
        ranker = RANKERS[name]
        if start in words:
            options, start = options | {"start": start}, None
        elif words and start is not None and not Path(start).exists():
            raise SettingError(f"--start {start!r} is neither a model file nor one of {', '.join(words)}")
        job = TrainingJob(ranker(**given_settings(ranker, options)), out, force, as_json, resume, None if start is None else Path(start))
        job.run(data, valid, reading, pairs, dask, workers, cuda)

    # The signature names the settings in place of **options; one that is called start shares its option with the model to start from.
    setting = next((one for one in command.options if one.name == "start"), None)
    words = () if setting is None else setting.choices
    signature = inspect.signature(train)
    own = {p.name: p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD}
    own["start"] = own["start"].replace(annotation=Annotated[str | None, _start_option(setting)])
    settings = parameters([one for one in command.options if one is not setting])
    train.__signature__ = signature.replace(parameters=[*own.values(), *settings])  # type: ignore[attr-defined]
    return command.about, train


def _start_option(setting: Declared | None) -> Any:
    """``--start``: a model or, where a setting has that name, one of its words."""
    if setting is None:
        return typer.Option(metavar="MODEL", rich_help_panel=TRAINING, help=START)
    choices = f"[one of {', '.join(setting.choices)}; default: {setting.default}]"
    about = f"{setting.help} Or a model to continue from on other data. {choices}"
    return typer.Option(metavar="WORD|MODEL", rich_help_panel=TRAINING, help=about)


@dataclass
class TrainingJob:
    """One training run from files to a file."""

    ranker: "Ranker"
    out: Path
    force: bool
    as_json: bool
    resume: bool = False
    start: Path | None = None  #: the model to start from
    kept: "Model | None" = None  #: what this run left in the checkpoint

    def run(
        self,
        data: Path,
        valid: Path | None,
        options: "ReadOptions",
        pairs: Path | None = None,
        dask: str | None = None,
        workers: int | None = None,
        cuda: bool = False,
    ) -> None:
        """Read, train, write, report; where that is interrupted say what is kept."""
        from exactrank._support.files import whole_file

        self.ranker.goal()
        self.ranker.check_values()
        start = None if self.start is None else load_model(self.start)
        with self._alone():
            earlier = self._earlier()
            with whole_file(self.out, force=self.force or earlier is not None) as file:
                try:
                    with backend_at(dask, workers, cuda) as backend:
                        given = self._given(data, options, pairs, dask is not None or workers is not None)
                        self.ranker.set_params(backend=backend)
                        chooses = None if valid is None else shards_at(valid, False, options) or read(valid, options)
                        self._fit(given, chooses, earlier, start)
                        self.ranker.set_params(backend=None)
                except KeyboardInterrupt:
                    told = "there was no model yet, nothing was written"
                    if self.checkpoint is not None and (self.kept or (self.resume and self.checkpoint.exists())):
                        untouched = f", and {self.out} is as it was" if self.out.exists() else ""
                        told = f"{self.checkpoint} holds the best model so far{untouched}; the same command with --resume goes on"
                    tell(f"interrupted; {told}")
                    raise typer.Exit(1) from None
                except IncompatibleError:  # other settings are needed, so there is nothing to go on with
                    if self.checkpoint is not None and self.kept is not None:
                        self.checkpoint.unlink(missing_ok=True)
                    raise
                file.write(self.ranker.model_.to_bytes())
            if self.checkpoint is not None:
                self.checkpoint.unlink(missing_ok=True)
        self.report(self.out)

    def _given(self, data: Path, options: "ReadOptions", pairs: Path | None, clustered: bool) -> "RankingData | Shards":
        """What to train on."""
        shards = shards_at(data, clustered, options)
        if shards is not None and pairs is not None:
            raise SettingError("--pairs puts pairs beside one file; write both into a cache with exactrank pairs, and train on that")
        return read(data, options, pairs) if shards is None else shards

    @property
    def checkpoint(self) -> Path | None:
        """Where the best model so far is kept; standard output has no such place, nor has a folder."""
        from exactrank._support.files import is_stream

        return None if is_stream(self.out) or self.out.is_dir() else self.out.with_name(f"{self.out.name}.checkpoint")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raise where another run is training the same model: the two would write one checkpoint."""
        from exactrank._support.locks import exclusive
        from exactrank.errors import OutputExistsError

        with ExitStack() as held:
            ours = True
            if self.checkpoint is not None:
                with suppress(OSError):  # a folder that cannot be written to is told when the output is opened
                    ours = held.enter_context(exclusive(self.checkpoint.with_name(f".{self.checkpoint.name}.lock")))
            if not ours:
                raise OutputExistsError(f"another process is training {self.out}; wait for its end, or choose another path")
            yield

    def _earlier(self) -> "Model | None":
        """What to go on from; raise where an unfinished run would be forgotten."""
        from exactrank.errors import DataError, OutputExistsError
        from exactrank.loading import load
        from exactrank.models.model import Model

        if self.checkpoint is None:
            if self.resume:
                raise DataError(f"--resume goes on from a file, but --out {self.out} is standard output; give a path")
            return None
        if self.resume:
            return next((load(path, kind=Model) for path in (self.checkpoint, self.out) if path.exists()), None)
        if self.checkpoint.exists() and not self.force:
            raise OutputExistsError(
                f"{self.checkpoint} holds a model whose training was interrupted; --resume goes on with it, --force begins again"
            )
        return None

    def _fit(
        self, train: "RankingData | Shards", valid: "RankingData | Shards | None", earlier: "Model | None", start: "Model | None"
    ) -> None:
        """Train; a checkpoint that is taken up is never replaced by a model that is worse.

        What training warned of is said on stderr, once, in the words of the command line. NumPy's words on numbers say nothing to
        a user, and of an interruption more is said than this.
        """
        floor = earlier if self.checkpoint is not None and self.checkpoint.exists() else None

        def keep(model: "Model") -> None:
            if self.checkpoint is None or (floor is not None and not _no_worse(model, floor, self.ranker.goal())):
                return
            try:
                model.save(self.checkpoint, force=True)
            except OSError as error:  # such as a full disk: the one before, if there is one, is still there
                warnings.warn(f"{self.checkpoint} could not be written ({error.strerror}); training goes on", stacklevel=2)
                return
            self.kept = model

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.ranker.fit(train, valid=valid, progress=not self.as_json, checkpoint=keep, resume=earlier, start=start)
        silent = RuntimeWarning, InterruptedWarning
        for message in dict.fromkeys(str(warning.message) for warning in caught if not issubclass(warning.category, silent)):
            tell(message)
        if self.ranker.model_.training["interrupted"]:
            keep(self.ranker.model_)
            if self.checkpoint is not None and self.kept is self.ranker.model_:
                self.report(self.checkpoint)
            raise KeyboardInterrupt

    def report(self, path: Path) -> None:
        """Say what was reached by the model at ``path``."""
        from exactrank.cli.terminal import PlainTable, show

        model, goal = self.ranker.model_, self.ranker.goal()
        training = model.training
        reached = {"training": training["value"], "validation": training["valid"]}
        if self.as_json:
            named = {"path": str(path), "ranker": self.ranker.name, "measure": model.measure}
            estimated = {name: training[name] for name in ("estimate", "interval", "constraints") if name in training}
            print_json(named | reached | estimated | {"steps": training["steps"], "interrupted": training["interrupted"]})
            return
        shown = {name: f"{mean:.4f}" for name, mean in reached.items() if mean is not None}
        if "estimate" in training:
            low, high = training["interval"]
            shown["out of fold"] = f"{training['estimate']:.4f} ({low:.3f}-{high:.3f})"
        table = PlainTable("measure", *shown, "definition")
        table.row(str(self.ranker.measure if not goal.constraints else goal.measure), *shown.values(), repr(goal.measure))
        for each in goal.constraints:
            table.row(str(each), *(f"{part[str(each)]:.4f}" for part in training["constraints"].values()), repr(each))
        show(table)
        if self.ranker.selection_.chosen is not None:
            say(f"{self.ranker.selection_}")
        say(f"{path}: {model.scorer.kind} model of {model.scorer.n_features:,} features")


def _no_worse(model: "Model", earlier: "Model", goal: "Goal") -> bool:
    """By how much the constraints are missed in training; where that is the same, by validation if both have it, else by training."""
    missed, before = (_missed(each, goal) for each in (model, earlier))
    if missed != before:
        return missed < before
    for part in ("valid", "value"):
        ours, theirs = model.training.get(part), earlier.training.get(part)
        if ours is not None and theirs is not None:
            return bool(ours >= theirs)
    return True


def _missed(model: "Model", goal: "Goal") -> float:
    """By how much a model misses the constraints on the training data, each as a share of its level."""
    reached = model.training.get("constraints", {}).get("value", {})
    return math.fsum(each.shortfall(reached[str(each)]) for each in goal.constraints if str(each) in reached)
