"""A program in any language as a contender: it reads LETOR text and writes scores.

Its command is one line, such as

    ./rank --train {train} --valid {valid} --test {test} --out {scores} --seed {seed}

in which ``{train}``, ``{valid}`` and ``{test}`` are files that it finds, ``{scores}`` is the one that it has to write, one score per
line for the rows of ``{test}``; ``{valid_scores}`` may be another, for the rows of ``{valid}``. ``{measure}``, ``{seed}`` and
``{threads}`` are those of the comparison. The line is split into words as a shell would, but no shell is started: ``|``, ``>``, ``*`` and
``$`` have no special meaning.

A program is not trusted to end, or to print little. It belongs to the process group of its fit, which is killed when the fit ends or its
time is over (`exactrank.compare.workers`). Only the end of what it prints is kept. Its scores must be a regular file of
a plausible size.
"""

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import IO, Any, cast

from exactrank._support.arrays import PerDocument
from exactrank._support.files import scratch_folder
from exactrank._support.text import LONGEST
from exactrank.compare.contender import Contender, ContenderTask, Fitted
from exactrank.compare.contenders.scores import GivenScores, check_scores_file
from exactrank.compare.workers import tie_to_parent
from exactrank.data.files import write
from exactrank.data.ranking_data import RankingData
from exactrank.data.scores import read_scores
from exactrank.errors import DataError

#: How many of the last lines of a failed program are shown.
LAST_LINES = 5
#: Seconds that a program may take where nobody says otherwise.
LIMIT = 3600.0
#: Seconds that are waited for the rest of the output once a program has ended; another process may hold it open for ever.
PATIENCE = 1.0


@dataclass(frozen=True)
class Program(Contender):
    """The program that ``command`` starts, with placeholders for files and settings."""

    name: str
    command: str

    def __post_init__(self) -> None:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise DataError(f"{self.command!r} is not a command ({error}); close the quotes") from None
        for needed in ("{test}", "{scores}"):
            if not any(needed in word for word in words):
                raise DataError(f"{self.command!r} has no {needed}; a program reads {{test}} and writes its scores to {{scores}}")

    @property
    def about(self) -> str:
        return self.command

    def limit(self, seconds: float | None) -> float:
        """A program tunes itself, if at all, in its one fit: a budget of seconds is one for that."""
        return seconds or LIMIT

    def fit(self, task: ContenderTask, settings: Mapping[str, Any]) -> Fitted:
        told = {"measure": task.measure, "seed": task.seed, "threads": task.threads}
        with scratch_folder(task.scratch) as folder:
            paths = {part: folder.resolve() / f"{part}.txt" for part in ("train", "valid", "test", "scores", "valid_scores")}
            for part in ("train", "valid", "test"):
                if f"{{{part}}}" in self.command:
                    write(getattr(task.fold, part), paths[part])
            self._run({**paths, **told})
            scores = {"test": self._scores(paths["scores"], task.fold.test)}
            if "{valid_scores}" in self.command:
                scores["valid"] = self._scores(paths["valid_scores"], task.fold.valid)
        used = {word: value for word, value in told.items() if f"{{{word}}}" in self.command}
        return GivenScores({"command": self.command, **used}, scores)

    def _run(self, values: Mapping[str, Any]) -> None:
        """Run the program to its end; raise with the last lines that it said where it fails."""
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
        output, errors = Tail(cast(IO[bytes], program.stdout)), Tail(cast(IO[bytes], program.stderr))
        try:
            code = program.wait()
        except BaseException:
            program.kill()
            raise
        if code != 0:
            raise DataError(f"{words[0]} ended with code {code}: {errors.lines() or output.lines() or 'it said nothing'}")

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


class Tail(Thread):
    """The end of what comes from a pipe, which is read so that nobody who writes to it has to wait."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe, self._kept = pipe, b""
        self.start()

    def run(self) -> None:
        """Read to the end."""
        with self._pipe as pipe:
            while part := pipe.read(1 << 16):
                self._kept = (self._kept + part)[-LONGEST:]

    def lines(self) -> str:
        """The last lines; of a long one the end."""
        self.join(PATIENCE)
        return "\n".join(self._kept.decode("utf-8", "replace").rstrip().splitlines()[-LAST_LINES:])
