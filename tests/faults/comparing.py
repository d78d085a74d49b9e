"""A comparison with faults: what was finished stays, `--resume` comes to the same numbers, and files of the user's are left alone."""

import json
import signal
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.driver import Driver, Ended
from tests.faults.laws import check_honest
from tests.faults.operations import Operation
from tests.faults.shim import Fault

COMPARE = Operation(
    "compare", "compare {data} --methods ridge,rankcosine(max_iter=2) --folds 3 --out report --resume --threads 1", "report"
)
#: Of the user's, in the folder of the report.
OWN = {"notes.txt": b"mine", "data/train.txt": b"1 qid:1 1:1\n"}


@dataclass
class ComparisonBench:
    """The comparison, with what it finds when nothing goes wrong."""

    driver: Driver
    inputs: dict[str, Path]
    parent: Path
    operation: Operation = COMPARE

    def __post_init__(self) -> None:
        with TemporaryDirectory(dir=self.parent) as name:
            ended = self.run(_prepared(Path(name)), None)
            assert ended.code == 0, ended.err
            _check_own(Path(name))
            self.numbers, self.names = _numbers(Path(name)), _names(Path(name))

    def run(self, folder: Path, fault: Fault | None) -> Ended:
        """The comparison, or the rest of it."""
        return self.driver.run(*self.operation.arguments(self.inputs), at=folder, fault=fault)

    def struck(self, fault: Fault) -> bool:
        """Run with the fault, resume, and check the laws; whether it happened at all."""
        with TemporaryDirectory(dir=self.parent) as name:
            folder = _prepared(Path(name))
            ended = self.run(folder, fault)
            try:
                self._check(folder, fault, ended)
            except AssertionError as broken:
                raise AssertionError(f"compare, {fault}: {broken} (exit {ended.code}, {ended.err[-800:]!r})") from None
        return ended.count >= fault.n

    def _check(self, folder: Path, fault: Fault, ended: Ended) -> None:
        killed = ended.code == -signal.SIGKILL and fault.action == "kill"
        assert killed or ended.code in (0, 1, 2), "the exit code is not 0, 1 or 2"
        assert ended.count >= fault.n or ended.code == 0, "an error without a fault"
        check_honest(ended, killed)
        resumed = self.run(folder, None)
        assert resumed.code == 0, f"resuming fails: {resumed.err}"
        assert _numbers(folder) == self.numbers, "resuming comes to other numbers"
        assert _names(folder) == self.names, f"other files are left: {_names(folder) ^ self.names}"
        _check_own(folder)


def _prepared(folder: Path) -> Path:
    (folder / "tmp").mkdir()
    for name, content in OWN.items():
        (folder / "report" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "report" / name).write_bytes(content)
    return folder


def _check_own(folder: Path) -> None:
    for name, content in OWN.items():
        path = folder / "report" / name
        assert path.exists(), f"{name} of the user's is gone"
        assert path.read_bytes() == content, f"{name} of the user's was changed"


def _numbers(folder: Path) -> Any:
    """What the comparison found, without times and memory."""
    record = json.loads((folder / "report" / "comparison.json").read_bytes())
    return [(fit["method"], fit["fold"], fit["failed"], fit["test"]) for fit in record["fits"]]


def _names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
