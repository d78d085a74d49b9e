"""How long the linear methods train (Tan, Xia, Guo & Wang 2013, section 3.3, Table 13).

The methods are those of `exactrank.reproduce.linear_methods`, on data as Yahoo's, on one thread, from one start. Their programs
were of many hands: DirectRank and SmoothGrad in C++, AdaRank, coordinate ascent and RankBoost in Java, RankCosine in MATLAB. Here all
are of one hand, so that what the order of the times says of the methods is not what it says of the programs. It is their order that
is checked: SmoothGrad is faster than DirectRank, and the others are slower.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exactrank.reproduce.artificial import Sizes, three_parts
from exactrank.reproduce.directrank_large import MEASURE
from exactrank.reproduce.experiment import YAHOO, OnFolds, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.linear_methods import OURS, Entries, Setting, entries
from exactrank.reproduce.panels import Curve, Panel
from exactrank.table import Cell, Table

FASTER = "SmoothGrad"
#: Hours, on one core.
PUBLISHED: Mapping[str, float] = {
    OURS: 3.3,
    FASTER: 0.3,
    "AdaRank": 11.8,
    "coordinate ascent": 45.3,
    "RankBoost": 24.5,
    "RankCosine": 120.0,
}


@dataclass(frozen=True, kw_only=True)
class DirectRankTimes(OnFolds, full={"features": 136, "queries": (19_944, 2_994, 6_983)}):
    """On ``queries`` queries for training and validation; or the folds in ``data``."""

    paper = "Tan, Xia, Guo & Wang 2013"
    where = "Table 13"
    published = (
        "On Yahoo's data DirectRank trains in 3.3 hours, SmoothGrad in 0.3, all others in 11.8 or more. Those are AdaRank (11.8), RankBoost"
        " (24.5), coordinate ascent (45.3) and the consistent RankCosine (5 days)."
    )

    documents: int = 24
    noise: float = 1.0
    queries: Sizes = (2_000, 1_000, 1_000)
    threads: int | None = 1

    @property
    def stages(self) -> int:
        return len(PUBLISHED) * (len(self.data) or 1)

    def run(self, tell: Tell = silent) -> Finding:
        sets = self.given or [(YAHOO, [three_parts(self._source(noise=self.noise), self.queries)])]
        setting = Setting(MEASURE, 1, self.seed, self.threads)
        found = [(name, entries(name, PUBLISHED, setting, folds, tell)) for name, folds in sets]
        checks, tables = (checks_of(*each) for each in found), (_table(*each) for each in found)
        return self._finding((_said(*each) for each in found), checks, tables, (_panel(*each) for each in found))


def checks_of(name: str, found: Entries) -> Iterator[Check]:
    """The published order."""
    ours = found[OURS].seconds
    yield Check(f"{name}: {FASTER} is faster than {OURS} (seconds)", found[FASTER].seconds, ours)
    for method in PUBLISHED:
        if method not in (OURS, FASTER):
            yield Check(f"{name}: {OURS} is faster than {method} (seconds)", ours, found[method].seconds)


def _said(name: str, found: Entries) -> str:
    order = sorted(found, key=lambda method: found[method].seconds)
    return f"{name}, from the fastest to the slowest: " + ", ".join(f"{m} {found[m].seconds:.2g} s" for m in order) + "."


def _table(name: str, found: Entries) -> Table:
    ours = found[OURS].seconds
    rows: list[list[Cell]] = [
        [method, entry.seconds, entry.seconds / ours, PUBLISHED[method] / PUBLISHED[OURS], entry.means[-1]]
        for method, entry in found.items()
    ]
    columns = ("method", "seconds", f"times {OURS}'s", f"times {OURS}'s, published", f"{MEASURE}, test data")
    return Table(f"{name}, one thread", columns, rows)


def _panel(name: str, found: Entries) -> Panel:
    """A point a method: what its time buys."""
    curves = (Curve(method, (entry.seconds,) * 2, entry.means[::2]) for method, entry in found.items())
    return Panel(name, "seconds of training", f"{MEASURE}, training and test data", tuple(curves), log="x")
