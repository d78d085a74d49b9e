"""What an experiment leaves behind: what was published, what was found, and inequalities that say whether they agree.

Numbers of other data and other machines are never equal to the published ones; a finding is reproduced where the inequalities
that it comes down to hold again.
"""

import json
import os
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from exactrank.files import refuse_existing, whole_file
from exactrank.workbench.pictures import check_picture
from exactrank.workbench.reproduce.panels import Panel, draw
from exactrank.workbench.table import Table

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
        targets = check_targets(self.name, Path(folder), force)
        Path(folder).mkdir(parents=True, exist_ok=True)
        with ExitStack() as files:
            report, record, picture = (files.enter_context(whole_file(path, force=force)) for path in targets)
            draw(self.panels, picture)
            record.write((json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n").encode())
            report.write(self.to_markdown().encode())
        return targets


def check_targets(name: str, folder: Path, force: bool) -> tuple[Path, ...]:
    """Where the finding of an experiment goes; raise before the work where it could not be kept."""
    targets = tuple(folder / f"{name}{suffix}" for suffix in SUFFIXES)
    check_picture(targets[-1])
    for path in () if force else targets:
        refuse_existing(path)
    return targets


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
