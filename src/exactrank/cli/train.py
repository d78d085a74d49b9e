"""``exactrank train NAME``: a command for each ranker, built when it is called, because that imports numerical libraries.

The model so far is written whenever it improves, to a file beside the target, the checkpoint. At the end the finished model replaces the
target, and the checkpoint is removed; an interrupted run leaves the target as it was.
"""

import inspect
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.models import OptionInfo

from exactrank._support.text import printable
from exactrank.cli.cluster import Cuda, Dask, Workers, backend_at, shards_at
from exactrank.cli.common import Force, Json, Reading, Source, load_model, print_json, print_line, print_note, read
from exactrank.cli.guard import guard, report_errors
from exactrank.cli.help import TRAINING, Command, Group
from exactrank.cli.names import summary
from exactrank.cli.ranker_options import make_ranker, parameters
from exactrank.errors import IncompatibleError, InterruptedWarning, SettingError
from exactrank.rankers import RANKERS

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand, Context  # typer's own copy of click

    from exactrank._support.settings import Setting
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
    typer.Option(help="Validation data, which chooses the model to keep; like the training data it may be in several files."),
]


class Rankers(Group):
    """The commands that train, by the rankers' names."""

    def list_commands(self, ctx: "Context") -> list[str]:
        """Return the names of all rankers."""
        return list(RANKERS)

    def get_command(self, ctx: "Context", cmd_name: str) -> "ClickCommand | None":
        """Return the command as lists and completion show it, with a line about the ranker, which is not imported."""
        if cmd_name not in RANKERS:
            return None
        with report_errors():
            return Command(cmd_name, help=printable(summary(RANKERS, cmd_name)))

    def resolve_command(self, ctx: "Context", args: list[str]) -> "tuple[str | None, ClickCommand | None, list[str]]":
        """Return the ranker's name, the command that trains it, and its arguments."""
        if args[0] in RANKERS:
            return args[0], training_command(args[0]), args[1:]
        if not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(str(RANKERS.unknown(args[0], RANKERS)))
        return super().resolve_command(ctx, args)


def training_command(name: str) -> "ClickCommand":
    """Return the command that trains the ranker called ``name``, whose settings are its options."""
    with report_errors():
        ranker = RANKERS[name]
        application = typer.Typer(add_completion=False)
        application.command(name, cls=Command, help=printable(summary(RANKERS, name)))(guard(_trainer(ranker)))
        return typer.main.get_command(application)


def _trainer(ranker: "type[Ranker]") -> Callable[..., None]:
    """Return the function of the command."""

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
        **options: object,
    ) -> None:
        if start in words:
            options, start = options | {"start": start}, None
        elif words and start is not None and not Path(start).exists():
            raise SettingError(f"--start {start!r} is neither a model file nor one of {', '.join(words)}")
        job = TrainingJob(make_ranker(ranker, options), out, force, as_json, resume, None if start is None else Path(start))
        job.run(data, valid, reading, pairs, dask, workers, cuda)

    # The signature names the settings in place of **options; a setting called start shares its option with the model to start from.
    setting = ranker.settings.get("start")
    words = () if setting is None else setting.choices
    signature = inspect.signature(train)
    kind = inspect.Parameter.KEYWORD_ONLY
    fixed = {p.name: p.replace(kind=kind) for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD}
    fixed["start"] = fixed["start"].replace(annotation=Annotated[str | None, _start_option(setting)])
    settings = [parameter for parameter in parameters(ranker) if parameter.name != "start"]
    train.__signature__ = signature.replace(parameters=[*fixed.values(), *settings])  # type: ignore[attr-defined]
    return train


def _start_option(setting: "Setting | None") -> OptionInfo:
    """Return the option ``--start``: a model or, if a setting has that name, one of its words."""
    metavar, about = "MODEL", START
    if setting is not None:
        choices = f"[one of {', '.join(setting.choices)}; default: {setting.default}]"
        metavar, about = "WORD|MODEL", f"{setting.help} Or a model to continue from on other data. {choices}"
    option: OptionInfo = typer.Option(metavar=metavar, rich_help_panel=TRAINING, help=about)
    return option


@dataclass
class TrainingJob:
    """Training from files to a file."""

    ranker: "Ranker"
    out: Path
    force: bool
    as_json: bool
    resume: bool = False
    start: Path | None = None  #: the model to start from
    saved: "Model | None" = None  #: the model that this run left in the checkpoint

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
        """Read, train, write and report; if that is interrupted, say where the best model so far is."""
        from exactrank._support.files import whole_file

        self.ranker.goal()
        self.ranker.check_values()
        start = None if self.start is None else load_model(self.start)
        with self._lock():
            earlier = self._earlier_model()
            with whole_file(self.out, force=self.force or earlier is not None) as file:
                try:
                    with backend_at(dask, workers, cuda) as backend:
                        train = self._read_training_data(data, options, pairs, dask is not None or workers is not None)
                        self.ranker.set_params(backend=backend)
                        validation = None if valid is None else shards_at(valid, False, options) or read(valid, options)
                        self._fit(train, validation, earlier, start)
                        self.ranker.set_params(backend=None)
                except KeyboardInterrupt:
                    self._report_interruption()
                    raise typer.Exit(1) from None
                except IncompatibleError:  # other settings are needed, so there is nothing to continue
                    if self.checkpoint is not None and self.saved is not None:
                        self.checkpoint.unlink(missing_ok=True)
                    raise
                file.write(self.ranker.model_.to_bytes())
            if self.checkpoint is not None:
                self.checkpoint.unlink(missing_ok=True)
        self.report(self.out)

    def _read_training_data(self, data: Path, options: "ReadOptions", pairs: Path | None, clustered: bool) -> "RankingData | Shards":
        shards = shards_at(data, clustered, options)
        if shards is not None and pairs is not None:
            raise SettingError("--pairs puts pairs beside one file; write both into a cache with exactrank pairs, and train on that")
        return read(data, options, pairs) if shards is None else shards

    def _report_interruption(self) -> None:
        message = "there was no model yet, nothing was written"
        if self.checkpoint is not None and (self.saved or (self.resume and self.checkpoint.exists())):
            untouched = f", and {self.out} is as it was" if self.out.exists() else ""
            message = f"{self.checkpoint} holds the best model so far{untouched}; the same command with --resume continues"
        print_note(f"interrupted; {message}")

    @property
    def checkpoint(self) -> Path | None:
        """The file of the best model so far; None for standard output and for a folder."""
        from exactrank._support.files import is_stream

        return None if is_stream(self.out) or self.out.is_dir() else self.out.with_name(f"{self.out.name}.checkpoint")

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Raise if another process is training the same model: the two would write one checkpoint."""
        from exactrank._support.locks import exclusive
        from exactrank.errors import OutputExistsError

        with ExitStack() as stack:
            is_ours = True
            if self.checkpoint is not None:
                with suppress(OSError):  # a folder that cannot be written to is reported when the output is opened
                    is_ours = stack.enter_context(exclusive(self.checkpoint.with_name(f".{self.checkpoint.name}.lock")))
            if not is_ours:
                raise OutputExistsError(f"another process is training {self.out}; wait for its end, or choose another path")
            yield

    def _earlier_model(self) -> "Model | None":
        """Return the model to continue from; raise if an unfinished run would be lost."""
        from exactrank.errors import DataError, OutputExistsError
        from exactrank.loading import load
        from exactrank.models.model import Model

        if self.checkpoint is None:
            if self.resume:
                raise DataError(f"--resume continues from a file, but --out {self.out} is standard output; give a path")
            return None
        if self.resume:
            return next((load(path, kind=Model) for path in (self.checkpoint, self.out) if path.exists()), None)
        if self.checkpoint.exists() and not self.force:
            raise OutputExistsError(
                f"{self.checkpoint} holds a model whose training was interrupted; --resume continues it, --force begins again"
            )
        return None

    def _fit(
        self, train: "RankingData | Shards", valid: "RankingData | Shards | None", earlier: "Model | None", start: "Model | None"
    ) -> None:
        """Train; a checkpoint to continue from is never replaced by a worse model.

        Each warning of the training is shown once on stderr, in the words of the command line. NumPy's warnings about numbers mean nothing
        to a user, and an interruption is reported in more detail elsewhere.
        """
        floor = earlier if self.checkpoint is not None and self.checkpoint.exists() else None

        def save(model: "Model") -> None:
            if self.checkpoint is None or (floor is not None and not _is_no_worse(model, floor, self.ranker.goal())):
                return
            try:
                model.save(self.checkpoint, force=True)
            except OSError as error:  # such as a full disk: the previous checkpoint, if there is one, is still there
                warnings.warn(f"{self.checkpoint} could not be written ({error.strerror}); training continues", stacklevel=2)
                return
            self.saved = model

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.ranker.fit(train, valid=valid, progress=not self.as_json, checkpoint=save, resume=earlier, start=start)
        silent = RuntimeWarning, InterruptedWarning
        for message in dict.fromkeys(str(warning.message) for warning in caught if not issubclass(warning.category, silent)):
            print_note(message)
        if self.ranker.model_.training["interrupted"]:
            save(self.ranker.model_)
            if self.checkpoint is not None and self.saved is self.ranker.model_:
                self.report(self.checkpoint)
            raise KeyboardInterrupt

    def report(self, path: Path) -> None:
        """Print the values that the model at ``path`` reached."""
        from exactrank.cli.terminal import PlainTable, show
        from exactrank.models.sum import Sum
        from exactrank.models.tree_ensemble import TreeEnsemble

        model, goal = self.ranker.model_, self.ranker.goal()
        training = model.training
        values = {"training": training["value"], "validation": training["valid"]}
        if self.as_json:
            names = {"path": str(path), "ranker": self.ranker.name, "measure": model.measure}
            estimates = {name: training[name] for name in ("estimate", "interval", "constraints") if name in training}
            print_json(names | values | estimates | {"steps": training["steps"], "interrupted": training["interrupted"]})
            return
        columns = {name: f"{mean:.4f}" for name, mean in values.items() if mean is not None}
        if "estimate" in training:
            low, high = training["interval"]
            columns["out of fold"] = f"{training['estimate']:.4f} ({low:.3f}-{high:.3f})"
        table = PlainTable("measure", *columns, "definition")
        table.row(str(self.ranker.measure if not goal.constraints else goal.measure), *columns.values(), repr(goal.measure))
        for constraint in goal.constraints:
            reached = [f"{part[str(constraint)]:.4f}" for part in training["constraints"].values()]
            table.row(str(constraint), *reached, repr(constraint))
        show(table)
        if self.ranker.selection_.choice is not None:
            print_line(f"{self.ranker.selection_}")
        parts = model.scorer.parts if isinstance(model.scorer, Sum) else (model.scorer,)
        trees = sum(part.n_trees for part in parts if isinstance(part, TreeEnsemble))
        count = f", {trees:,} trees" if trees else ""
        print_line(f"{path}: {model.scorer.kind} model of {model.scorer.n_features:,} features{count}")


def _is_no_worse(model: "Model", earlier: "Model", goal: "Goal") -> bool:
    """Return whether ``model`` is as good as ``earlier``: by the constraints, then by validation if both have it, or else by training."""
    shortfall, earlier_shortfall = (_shortfall(candidate, goal) for candidate in (model, earlier))
    if shortfall != earlier_shortfall:
        return shortfall < earlier_shortfall
    for part in ("valid", "value"):
        value, earlier_value = model.training.get(part), earlier.training.get(part)
        if value is not None and earlier_value is not None:
            return bool(value >= earlier_value)
    return True


def _shortfall(model: "Model", goal: "Goal") -> float:
    """Return the sum of what a model lacks to satisfy the constraints on the training data, each as a share of its level."""
    reached = model.training.get("constraints", {}).get("value", {})
    return math.fsum(each.shortfall(reached[str(each)]) for each in goal.constraints if str(each) in reached)
