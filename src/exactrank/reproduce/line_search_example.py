"""The worked example of the exact line search (Tan, Xia, Guo & Wang 2013, section 2.2, Figure 1, Tables 1 and 2).

Two queries of five documents, with the grades 1 2 0 1 2 and 0 0 2 1 1, and NDCG@3 along one weight. Each document is a line

    s_j(alpha) = a_j alpha + b_j                                                                                (1)

and where the order of the first three changes there is a jumping point: p_1 .. p_5 of the first query, p_6 .. p_12 of the second.
The figure gives no numbers for its lines. `LINES` are some that cross in the order of both tables, with p_3 and p_10 next to each
other and NDCG@3 largest between p_3 and p_5, as the text says. Everything else follows: the tables show who is ahead between
jumping points, and for the first query the text gives NDCG@3 before p_3, 0.889, and after it, 1. Ranks there begin at 0, with
a discount of 1 / log2(1 + rank), so the first two count alike, as LETOR has it.

Tables 1 and 2 list the documents behind the first three in no order: where one of them comes in, it changes places with the one
that goes out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from exactrank.data.ranking_data import RankingData
from exactrank.measures.parse import parse_measure
from exactrank.objectives.line_search import line_search
from exactrank.objectives.profile import profile
from exactrank.objectives.step_function import Floats, StepFunction
from exactrank.probe.jumping_points import jumping_points
from exactrank.reproduce.experiment import Experiment, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Curve, Panel
from exactrank.table import Cell, Table

K = 3
MEASURE = parse_measure(f"nDCG@{K}", "letor")
EXACT = 5e-4  #: published values have three decimals


@dataclass(frozen=True, eq=False)
class Lines:
    """A query of the example."""

    grades: tuple[int, ...]
    a: tuple[float, ...]  #: slopes of (1)
    b: tuple[float, ...]
    first: int  #: the number of its first jumping point
    published: tuple[str, ...]  #: the documents in order, from left to right

    @property
    def data(self) -> RankingData:
        """The query alone."""
        return RankingData.from_arrays(None, self.grades, group=[len(self.grades)])

    def profile(self) -> StepFunction:
        """NDCG@3 along the weight."""
        return profile(MEASURE, self.data, self.b, self.a)

    def crossings(self) -> Floats:
        """Where any two lines meet, from left to right."""
        a, b = np.array(self.a), np.array(self.b)
        i, j = np.triu_indices(len(a), 1)
        meet = a[i] != a[j]
        return np.unique((b[j] - b[i])[meet] / (a[i] - a[j])[meet])

    def order(self, alpha: float) -> list[int]:
        """The documents by their scores."""
        return list(np.argsort(-(np.array(self.a) * alpha + np.array(self.b)), kind="stable"))

    def points(self) -> list[float]:
        """The jumping points, by looking at the order on both sides of each crossing."""
        at = self.crossings()
        between = [at[0] - 1, *((at[1:] + at[:-1]) / 2), at[-1] + 1]
        tops = [self.order(alpha)[:K] for alpha in between]
        return [float(p) for p, before, after in zip(at, tops[:-1], tops[1:], strict=True) if before != after]

    def columns(self) -> Iterator[str]:
        """The documents in order, as the published tables list them."""
        points = self.points()
        shown = self.order(points[0] - 1)
        yield _word(shown)
        for low, high in zip(points, [*points[1:], points[-1] + 2], strict=True):
            for rank, document in enumerate(self.order((low + high) / 2)[:K]):
                was = shown.index(document)
                shown[rank], shown[was] = shown[was], shown[rank]
            yield _word(shown)


LINES: Mapping[str, Lines] = {
    "q1": Lines((1, 2, 0, 1, 2), (-0.5, 0, 0, 0, 1), (9, 8, 4, 1, 0), 1, ("12345", "21345", "21543", "25143", "52143", "52341")),
    "q2": Lines(
        (0, 0, 2, 1, 1), (-8, 0, 0, 2, 1), (16, 12, 4, -2, -8), 6,
        ("12345", "21345", "23145", "23415", "24315", "42315", "42513", "45213"),
    ),
}  # fmt: skip
BEST = "p3", "p5"  #: NDCG@3 is largest between them
BEFORE, AFTER = 0.889, 1.0  #: NDCG@3 of the first query, before p3 and after it


@dataclass(frozen=True, kw_only=True)
class LineSearchExample(Experiment):
    """The example; it has one size, and nothing in it is random."""

    paper = "Tan, Xia, Guo & Wang 2013"
    where = "Figure 1, Tables 1 and 2"
    published = (
        "Two queries of five documents have 5 and 7 jumping points, and NDCG@3 is largest between p3 and p5. At p3 that of the first query"
        " rises from 0.889 to 1."
    )

    @property
    def stages(self) -> int:
        return 1

    def run(self, tell: Tell = silent) -> Finding:
        tell("exact line search of two queries")
        points = {f"p{lines.first + i}": p for lines in LINES.values() for i, p in enumerate(lines.points())}
        whole = (LINES["q1"].profile() + LINES["q2"].profile()) * 0.5
        tables = [*(_table(name, lines) for name, lines in LINES.items()), _merged(points, whole)]
        return self._finding(_said(points, whole), checks_of(LINES), tables, _panels(points, whole))


def checks_of(queries: Mapping[str, Lines]) -> list[Check]:
    """All that the paper says of the example."""
    checks = []
    for name, lines in queries.items():
        count, cells = int(jumping_points(MEASURE, lines.data, lines.b, lines.a)[0]), _unlike(lines)
        checks.append(Check(f"{name}: as many jumping points as published (difference < 1)", abs(count - len(lines.published) + 1), 1))
        checks.append(Check(f"{name}: the documents are in the published order (cells that differ < 1)", cells, 1))
    first, second = queries.values()
    third = first.points()[2]
    near = first.points()[1] + 1e-9, third + 1e-9
    for value, at, when in zip((BEFORE, AFTER), near, ("before", "after"), strict=True):
        says = f"q1: NDCG@3 right {when} p3 is {value:g} (difference < {EXACT:g})"
        checks.append(Check(says, abs(first.profile()(at) - value), EXACT))
    return [*checks, *_best(first, second)]


def _best(first: Lines, second: Lines) -> list[Check]:
    """The best interval, by the step function and by the line search."""
    low, high = first.points()[2], first.points()[4]
    both = RankingData.from_arrays(None, (*first.grades, *second.grades), group=[5, 5])
    found = line_search(MEASURE, both, (*first.b, *second.b), (*first.a, *second.a)).interval
    off = max(abs(found.low - low), abs(found.high - high))
    return [Check(f"the exact line search finds the interval from {BEST[0]} to {BEST[1]} (its ends are off by < {EXACT:g})", off, EXACT)]


def _unlike(lines: Lines) -> int:
    """In how many cells the table is another than the published one."""
    return sum(a != b for a, b in zip_longest("".join(lines.columns()), "".join(lines.published)))


def _word(documents: Sequence[int]) -> str:
    return "".join(str(document + 1) for document in documents)


def _table(name: str, lines: Lines) -> Table:
    columns = list(lines.columns())
    numbers = range(lines.first, lines.first + len(columns) - 1)
    rows: list[list[Cell]] = [[str(rank), *(f"d{name[1]}{column[rank]}" for column in columns)] for rank in range(5)]
    f, points = lines.profile(), lines.points()
    values = [f(points[0] - 1), *(f(p + 1e-9) for p in points)]
    return Table(f"Documents of {name}", ("rank", f"< p{lines.first}", *(f"> p{i}" for i in numbers)), [*rows, ["NDCG@3", *values]])


def _merged(points: Mapping[str, float], whole: StepFunction) -> Table:
    order = sorted(points, key=lambda name: points[name])
    rows = [(name, points[name], whole(points[name] - 1e-9), whole(points[name] + 1e-9)) for name in order]
    return Table("Both queries", ("jumping point", "alpha", "NDCG@3 before", "NDCG@3 after"), rows)


def _said(points: Mapping[str, float], whole: StepFunction) -> str:
    best, order = whole.best(), sorted(points, key=lambda name: points[name])
    low, high = (min(points, key=lambda name: abs(points[name] - end)) for end in (best.low, best.high))
    return f"From left to right there are {', '.join(order)}; NDCG@3 is largest, {best.value:.4f}, between {low} and {high}."


def _panels(points: Mapping[str, float], whole: StepFunction) -> list[Panel]:
    ends = min(points.values()) - 1, max(points.values()) + 1
    drawn = [_lines(name, lines, ends) for name, lines in LINES.items()]
    x = np.linspace(*ends, 800)
    steps = Curve("both queries", tuple(x.tolist()), tuple(whole(x).tolist()))
    return [*drawn, Panel("NDCG@3", "alpha", "NDCG@3, mean of both queries", (steps,))]


def _lines(name: str, lines: Lines, ends: tuple[float, float]) -> Panel:
    given = enumerate(zip(lines.a, lines.b, strict=True), 1)
    curves = (Curve(f"d{name[1]}{number}", ends, (a * ends[0] + b, a * ends[1] + b)) for number, (a, b) in given)
    return Panel(name, "alpha", "score", tuple(curves))
