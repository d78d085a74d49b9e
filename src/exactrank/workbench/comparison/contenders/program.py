"""A program in any language as a contender: it reads LETOR text and writes scores.

Its command is one line, such as

    ./rank --train {train} --valid {valid} --test {test} --out {scores} --seed {seed}

in which ``{train}``, ``{valid}`` and ``{test}`` are files that it finds, ``{scores}`` is the one that it has to write, a score a line
for the rows of ``{test}``; ``{valid_scores}`` may be another, for the rows of ``{valid}``. ``{measure}``, ``{seed}`` and ``{threads}``
are those of the comparison. The line is split into words as a shell would, but none is started: ``|``, ``>``, ``*`` and ``$`` mean nothing.
"""

import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exactrank.arrays import PerDocument
from exactrank.data.formats import write
from exactrank.data.ranking_data import RankingData
from exactrank.data.scores import read_scores
from exactrank.errors import DataError
from exactrank.workbench.comparison.contender import Contender, Fitted, Task
from exactrank.workbench.comparison.contenders.scores import GivenScores

#: Of what a program that failed said, so many lines are shown.
LAST_LINES = 5


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

    def fit(self, task: Task, settings: Mapping[str, Any]) -> Fitted:
        with tempfile.TemporaryDirectory(prefix="exactrank-") as folder:
            paths = {part: Path(folder) / f"{part}.txt" for part in ("train", "valid", "test", "scores", "valid_scores")}
            for part in ("train", "valid", "test"):
                if f"{{{part}}}" in self.command:
                    write(getattr(task.fold, part), paths[part])
            self._run({**paths, "measure": task.measure, "seed": task.seed, "threads": task.threads})
            scores = {"test": self._scores(paths["scores"], task.fold.test)}
            if "{valid_scores}" in self.command:
                scores["valid"] = self._scores(paths["valid_scores"], task.fold.valid)
        told = {"measure": task.measure, "seed": task.seed, "threads": task.threads}
        return GivenScores(
            {"command": self.command, **{word: value for word, value in told.items() if f"{{{word}}}" in self.command}}, scores
        )

    def _run(self, values: Mapping[str, Any]) -> None:
        words = shlex.split(self.command)
        for placeholder, value in values.items():
            words = [word.replace(f"{{{placeholder}}}", str(value)) for word in words]
        try:
            done = subprocess.run(words, check=False, capture_output=True, stdin=subprocess.DEVNULL)
        except OSError as error:
            raise DataError(f"{words[0]} cannot be started ({error.strerror}); check the command of {self.name}") from None
        if done.returncode != 0:
            raise DataError(f"{words[0]} ended with code {done.returncode}: {_last_lines(done.stderr or done.stdout)}")

    def _scores(self, path: Path, data: RankingData) -> PerDocument:
        if not path.exists():
            raise DataError(
                f"{self.name} ended well but wrote no scores; it must write one a line to the file that stands for {{{path.stem}}}"
            )
        try:
            return read_scores(path, data)[1][: data.n_documents]
        except DataError as error:
            raise DataError(f"the scores that {self.name} wrote: {error}") from None


def _last_lines(said: bytes) -> str:
    return "\n".join(said.decode("utf-8", "replace").rstrip().splitlines()[-LAST_LINES:]) or "it said nothing"
