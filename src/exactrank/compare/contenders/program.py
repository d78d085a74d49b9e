"""A program in any language as a contender: it reads LETOR text and writes scores.

Its command is one line, such as

    ./rank --train {train} --valid {valid} --test {test} --out {scores} --seed {seed}

in which ``{train}``, ``{valid}`` and ``{test}`` are files that it reads, and ``{scores}`` is the file that it has to write, with one score
per line for the rows of ``{test}``; it may also write ``{valid_scores}``, for the rows of ``{valid}``. ``{measure}``, ``{seed}`` and
``{threads}`` are those of the comparison. The line is split into words as a shell would, but no shell is started: ``|``, ``>``, ``*`` and
``$`` have no special meaning.

A program may run for ever, or print without end. It belongs to the process group of its fit, which is killed when the fit ends or its
time is up (`exactrank.compare.workers`). Only the end of its output is kept. Its scores must be a regular file of a plausible size.
"""

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import IO

from exactrank._support.arrays import PerDocument
from exactrank._support.files import scratch_folder
from exactrank._support.text import LONGEST
from exactrank.compare.contender import Contender, ContenderTask, Fitted
from exactrank.compare.contenders.scores import check_scores_file, precomputed_scores
from exactrank.compare.results import Settings
from exactrank.compare.workers import tie_to_parent
from exactrank.data.files import write
from exactrank.data.ranking_data import RankingData
from exactrank.data.scores import read_scores
from exactrank.errors import DataError

#: Number of last lines of a failed program that are shown.
LAST_LINES = 5
#: Seconds that a program may take by default.
LIMIT = 3600.0
#: Seconds to wait for the rest of the output after a program has ended; another process may hold the pipe open for ever.
PATIENCE = 1.0


@dataclass(frozen=True)
class Program(Contender):
    """A program, started by ``command`` with placeholders for files and settings."""

    name: str
    command: str

    def __post_init__(self) -> None:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise DataError(f"{self.command!r} is not a command ({error}); close the quotes") from None
        for placeholder in ("{test}", "{scores}"):
            if not any(placeholder in word for word in words):
                raise DataError(f"{self.command!r} has no {placeholder}; a program reads {{test}} and writes its scores to {{scores}}")

    @property
    def about(self) -> str:
        return self.command

    def limit(self, seconds: float | None) -> float:
        """Return the tuning budget, since a program can only tune itself within its one fit."""
        return seconds or LIMIT

    def fit(self, task: ContenderTask, settings: Settings) -> Fitted:
        values = {"measure": task.measure, "seed": task.seed, "threads": task.threads}
        with scratch_folder(task.scratch) as folder:
            paths = {part: folder.resolve() / f"{part}.txt" for part in ("train", "valid", "test", "scores", "valid_scores")}
            for part in ("train", "valid", "test"):
                if f"{{{part}}}" in self.command:
                    write(getattr(task.fold, part), paths[part])
            self._run({**paths, **values})
            scores = {"test": self._scores(paths["scores"], task.fold.test)}
            if "{valid_scores}" in self.command:
                scores["valid"] = self._scores(paths["valid_scores"], task.fold.valid)
        used = {name: value for name, value in values.items() if f"{{{name}}}" in self.command}
        return precomputed_scores({"command": self.command, **used}, scores)

    def _run(self, values: Mapping[str, object]) -> None:
        """Run the program to its end; if it fails, raise with the last lines of its output."""
        words = shlex.split(self.command)
        for placeholder, value in values.items():
            words = [word.replace(f"{{{placeholder}}}", str(value)) for word in words]
        try:
            program = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                preexec_fn=tie_to_parent,  # noqa: PLW1509 (a fit has no other thread that could hold a lock)
            )
        except (OSError, ValueError) as error:  # the latter for a NUL among the words
            raise DataError(f"{words[0]} cannot be started ({error}); check the command of {self.name}") from None
        assert program.stdout is not None
        assert program.stderr is not None
        output, errors = PipeTail(program.stdout), PipeTail(program.stderr)
        try:
            code = program.wait()
        except BaseException:
            program.kill()
            raise
        if code != 0:
            raise DataError(f"{words[0]} ended with code {code}: {errors.lines() or output.lines() or 'it printed nothing'}")

    def _scores(self, path: Path, data: RankingData) -> PerDocument:
        if not path.exists():
            raise DataError(
                f"{self.name} ended well but wrote no scores; it must write one per line to the file that stands for {{{path.stem}}}"
            )
        try:
            check_scores_file(path, data.n_documents)
            return read_scores(path, data)[1][: data.n_documents]
        except DataError as error:
            raise DataError(f"the scores that {self.name} wrote: {error}") from None


class PipeTail(Thread):
    """The end of the output of a pipe, which is read to its end so that no writer has to wait."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe, self._end = pipe, b""
        self.start()

    def run(self) -> None:
        """Read to the end."""
        with self._pipe as pipe:
            while part := pipe.read(1 << 16):
                self._end = (self._end + part)[-LONGEST:]

    def lines(self) -> str:
        """Return the last lines, or the end of a long one."""
        self.join(PATIENCE)
        return "\n".join(self._end.decode("utf-8", "replace").rstrip().splitlines()[-LAST_LINES:])
