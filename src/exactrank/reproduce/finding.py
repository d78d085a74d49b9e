"""What an experiment leaves behind: what was published, what was found, and inequalities that say whether they agree.

Numbers of other data and other machines are never equal to the published ones; a finding is reproduced where the inequalities
that it comes down to hold again.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from exactrank.files import made_folder, whole_files
from exactrank.pictures import check_picture
from exactrank.reproduce.panels import Panel, draw
from exactrank.table import Table

SUFFIXES = (".md", ".json", ".png")


@dataclass(frozen=True)
class Check:
    """An inequality, ``less < more``, and in words what it says."""

    says: str
    less: float
    more: float

    @property
    def holds(self) -> bool:
        """Is it so?"""
        return self.less < self.more


@dataclass(frozen=True)
class Finding:
    """What was published, what was found, and whether the one holds in the other."""

    name: str
    paper: str
    published: str
    found: str
    checks: tuple[Check, ...]
    tables: tuple[Table, ...]
    panels: tuple[Panel, ...]
    configuration: str  #: of the experiment, with its scale and seed

    @property
    def holds(self) -> bool:
        """Do all inequalities hold?"""
        return all(check.holds for check in self.checks)

    @property
    def verdict(self) -> str:
        """What became of the published finding, which ..."""
        held = sum(check.holds for check in self.checks)
        if 0 < held < len(self.checks):
            return f"holds in part: {held} of {len(self.checks)} inequalities do"
        return "holds" if held else "does not hold"

    def to_json(self) -> dict[str, Any]:
        """All of it, ready for ``json.dumps``."""
        return asdict(self) | {"holds": self.holds, "checks": [asdict(check) | {"holds": check.holds} for check in self.checks]}

    def to_markdown(self) -> str:
        """All of it but the curves."""
        rows = [(check.says, check.less, check.more, _yes(check.holds)) for check in self.checks]
        checked = Table(f"The published finding {self.verdict}", ("checked", "less", "more", "less < more"), rows)
        parts = [f"# {self.name}", self.paper, f"**Published:** {self.published}", f"**Found:** {self.found}", f"`{self.configuration}`"]
        tables = [table.section() for table in (checked, *self.tables)]
        return "\n\n".join([*parts, *tables, f"![{self.name}]({self.name}.png)"]) + "\n"

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> tuple[Path, ...]:
        """NAME.md, NAME.json and NAME.png in ``folder``, which is made if it is not there: all of them or none."""
        with finding_files(self.name, Path(folder), force=force) as write:
            return write(self)

    def _write_to(self, report: BinaryIO, record: BinaryIO, picture: BinaryIO) -> None:
        draw(self.panels, picture)
        record.write((json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n").encode())
        report.write(self.to_markdown().encode())


@contextmanager
def finding_files(name: str, folder: Path, *, force: bool) -> Iterator[Callable[[Finding], tuple[Path, ...]]]:
    """What writes the finding of an experiment and says where, to files that are opened before the work."""
    targets = tuple(folder / f"{name}{suffix}" for suffix in SUFFIXES)
    check_picture(targets[-1])
    with made_folder(folder), whole_files(*targets, force=force) as files:

        def write(finding: Finding) -> tuple[Path, ...]:
            finding._write_to(*files)
            return targets

        yield write


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
