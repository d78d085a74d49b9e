"""The result of an experiment: the published finding, ours, and inequalities that say whether they agree.

On other data and other machines the numbers never equal the published ones; a finding is reproduced if the inequalities
that it comes down to hold again.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from exactrank._support.files import output_folder, whole_files
from exactrank._support.pictures import check_picture
from exactrank._support.tables import Table

SUFFIXES = (".md", ".json", ".png")
ACROSS = 3  #: panels in a row


@dataclass(frozen=True)
class Inequality:
    """An inequality, ``left < right``, and what it says in words."""

    says: str
    left: float
    right: float

    @property
    def holds(self) -> bool:
        """True if the inequality holds."""
        return bool(self.left < self.right)


@dataclass(frozen=True)
class Curve:
    """Points that are joined."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None  #: the ends of an interval around each y
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Panel:
    """Curves that share their axes."""

    title: str
    x: str
    y: str
    curves: Sequence[Curve]
    log: str = ""  #: which axes are logarithmic: "x", "y" or "xy"
    mark: float | None = None  #: a vertical line at this x


def curves(by_label: Mapping[str, Iterable[float]], x: Iterable[float] | None = None) -> list[Curve]:
    """Curves over the same ``x``; without it, over the numbers of their points, from 1."""
    points = None if x is None else tuple(x)
    values = {label: tuple(y) for label, y in by_label.items()}
    return [Curve(label, points or tuple(range(1, len(y) + 1)), y) for label, y in values.items()]


@dataclass(frozen=True)
class Finding:
    """The published finding and ours, with the inequalities that compare them."""

    name: str
    paper: str
    published: str
    summary: str  #: of ours
    checks: tuple[Inequality, ...]
    tables: tuple[Table, ...]
    panels: tuple[Panel, ...]
    configuration: str  #: of the experiment, with its scale and seed

    @property
    def holds(self) -> bool:
        """True if all inequalities hold."""
        return all(check.holds for check in self.checks)

    @property
    def verdict(self) -> str:
        """A predicate of the published finding: "holds", "holds in part: ..." or "does not hold"."""
        count = sum(check.holds for check in self.checks)
        if 0 < count < len(self.checks):
            return f"holds in part: {count} of {len(self.checks)} inequalities hold"
        return "holds" if count else "does not hold"

    def to_json(self) -> dict[str, Any]:
        """The finding as a dictionary, ready for ``json.dumps``."""
        return asdict(self) | {"holds": self.holds, "checks": [asdict(check) | {"holds": check.holds} for check in self.checks]}

    def to_markdown(self) -> str:
        """Everything except the curves."""
        rows = [(check.says, check.left, check.right, "yes" if check.holds else "no") for check in self.checks]
        checked = Table(f"The published finding {self.verdict}", ("checked", "left", "right", "left < right"), rows)
        parts = [f"# {self.name}", self.paper, f"**Published:** {self.published}", f"**Found:** {self.summary}", f"`{self.configuration}`"]
        tables = [table.section() for table in (checked, *self.tables)]
        return "\n\n".join([*parts, *tables, f"![{self.name}]({self.name}.png)"]) + "\n"


@contextmanager
def finding_files(name: str, folder: Path, *, force: bool) -> Iterator[Callable[[Finding], tuple[Path, ...]]]:
    """A function that writes the finding of an experiment and returns the paths; the files are opened before the work starts."""
    targets = tuple(folder / f"{name}{suffix}" for suffix in SUFFIXES)
    check_picture(targets[-1])
    with output_folder(folder), whole_files(*targets, force=force) as (report, record, picture):

        def write(finding: Finding) -> tuple[Path, ...]:
            draw(finding.panels, picture)
            record.write((json.dumps(finding.to_json(), indent=2, allow_nan=False) + "\n").encode())
            report.write(finding.to_markdown().encode())
            return targets

        yield write


def draw(panels: Sequence[Panel], file: BinaryIO) -> None:
    """Write ``panels``, a few in a row, as a PNG picture."""
    from matplotlib.figure import Figure

    across = min(ACROSS, len(panels))
    down = -(-len(panels) // across)
    figure = Figure(figsize=(max(5.5, 4.2 * across), 3.6 * down), layout="constrained")
    places = figure.subplots(down, across, squeeze=False).ravel()
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(places, panels, strict=False):
        for curve in panel.curves:
            style: dict[str, Any] = {"marker": "." if len(curve.x) <= 20 else None, "linewidth": 1.2, "label": curve.label}
            if curve.low is None or curve.high is None:
                axes.plot(curve.x, curve.y, **style)
            else:
                ends = [np.subtract(curve.y, curve.low), np.subtract(curve.high, curve.y)]
                axes.errorbar(curve.x, curve.y, yerr=ends, elinewidth=0.8, capsize=2, **style)
        for axis in panel.log:
            axes.set(**{f"{axis}scale": "log"})
        if panel.mark is not None:
            axes.axvline(panel.mark, color="black", linewidth=0.6, linestyle=":")
        axes.set(xlabel=panel.x, ylabel=panel.y)
        axes.set_title(panel.title, fontsize="medium")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize="small", frameon=False)
    figure.savefig(file, format="png", dpi=150)
