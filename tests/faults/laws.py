"""What must be true after a fault: the old file or the new one, whole; no leftovers that a next run does not sweep; an honest end."""

import re
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import exactrank as er
from tests.driver import Driver, Ended
from tests.faults.operations import Operation
from tests.faults.shim import Fault

OLD = b"what stood here before\n"
BYSTANDER = "notes.txt"  #: a file of the user's in the same folder
MOST_LINES = 6  #: of an error
PROBE = re.compile(r"[a-z0-9_]{8}")  #: names that `tempfile` gives to files by which it probes a folder


@dataclass
class Bench:
    """One operation, with the driver that runs it, its inputs, and what it writes when nothing goes wrong."""

    operation: Operation
    driver: Driver
    inputs: dict[str, Path]
    parent: Path
    new: bytes = field(init=False)

    def __post_init__(self) -> None:
        with self.folder() as folder:
            ended = self.run(folder, None)
            assert ended.code == 0, ended.err
            self.new = (folder / self.operation.out).read_bytes()

    def folder(self) -> "Folder":
        """A fresh folder of a user's."""
        return Folder(self.parent, self.operation.out)

    def run(self, folder: Path, fault: Fault | None) -> Ended:
        """The operation."""
        return self.driver.run(*self.operation.arguments(self.inputs), at=folder, fault=fault)

    def is_new(self, folder: Path) -> bool:
        """Whether the whole new file is there."""
        out = folder / self.operation.out
        if self.operation.exact:
            return out.read_bytes() == self.new
        with suppress(er.errors.ExactRankError):
            return bool(er.load(out))
        return False

    def struck(self, fault: Fault) -> bool:
        """Run with the fault and check the laws; whether it happened at all."""
        with self.folder() as folder:
            ended = self.run(folder, fault)
            happened = ended.count >= fault.n
            try:
                self._check(folder, fault, ended, happened)
            except AssertionError as broken:
                raise AssertionError(f"{self.operation.name}, {fault}: {broken} (exit {ended.code}, {ended.err[-800:]!r})") from None
        return happened

    def _check(self, folder: Path, fault: Fault, ended: Ended, happened: bool) -> None:
        content = (folder / self.operation.out).read_bytes()
        assert content == OLD or self.is_new(folder), "neither the old file nor the new one"
        killed = ended.code == -signal.SIGKILL and fault.action == "kill"
        assert killed or ended.code in (0, 1, 2), "the exit code is not 0, 1 or 2"
        assert happened or ended.code == 0, "an error without a fault"
        assert ended.code != 0 or content != OLD, "success without the new file"
        check_honest(ended, killed)
        if not killed and fault.kind != "unlink":
            check_clean(folder, self.operation.out, "" if ended.code == 0 else self.operation.kept)
        if left(folder, self.operation.out):
            self._check_again(folder)

    def _check_again(self, folder: Path) -> None:
        """A second run without a fault succeeds and leaves nothing of the first."""
        again = self.run(folder, None)
        assert again.code == 0, f"a second run fails: {again.err}"
        assert self.is_new(folder), "a second run writes something else"
        check_clean(folder, self.operation.out)


class Folder(TemporaryDirectory[str]):
    """A folder with an old output, a file of the user's, and a place for temporary files."""

    def __init__(self, parent: Path, out: str) -> None:
        super().__init__(dir=parent)
        for name, content in ((out, OLD), (BYSTANDER, b"mine")):
            (Path(self.name) / name).write_bytes(content)
        (Path(self.name) / "tmp").mkdir()

    def __enter__(self) -> Path:  # type: ignore[override]
        return Path(super().__enter__())


def check_honest(ended: Ended, killed: bool = False) -> None:
    """Errors are a few lines of our own, never a traceback, and there is one where the exit code is not 0."""
    lines = ended.err.splitlines()
    assert "Traceback" not in ended.err, "a traceback"
    assert len(lines) <= MOST_LINES, "too many lines on stderr"
    if ended.code != 0 and not killed:
        assert any(line.startswith("exactrank: ") and len(line) > len("exactrank: ") + 5 for line in lines), "no error that says anything"


def check_clean(folder: Path, out: str, expected: str = "") -> None:
    """Nothing is left beside the output, what was there before, and what is kept on purpose."""
    assert (folder / BYSTANDER).read_bytes() == b"mine", "another file was changed"
    results = [name for name in left(folder, out) if name != expected]
    assert not results, f"leftovers: {results}"


def left(folder: Path, out: str) -> list[str]:
    """All files and folders but the output and what was there before."""
    paths = (path for path in folder.rglob("*") if path.name not in (out, BYSTANDER, "tmp") and not _is_of_tempfile(path))
    return sorted(str(path.relative_to(folder)) for path in paths)


def _is_of_tempfile(path: Path) -> bool:
    """Is it what Python itself writes, to see whether it can, and removes at once?"""
    return path.parent.name == "tmp" and PROBE.fullmatch(path.name) is not None and path.is_file() and b"blat".startswith(path.read_bytes())
