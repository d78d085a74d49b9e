"""The same curves on data as of web search, and a section of them blown up (Yue & Burges 2007, section 5.3, Figures 4 and 5).

Output weights of a two-layer LambdaRank net move by up to 100% of their values. "Relatively smooth on a macro scale. The inherent
discontinuity of NDCG is observable only at a local scale": with the roughness of `exactrank.reproduce.smoothness`, of the
curve in the middle,

    roughness on a grid of 2% < 1/10,    roughness of all steps within 2% of the weight > 1                     (1)

"The curves still contain numerous smaller local optima even when averaged over 10,000 queries": each has more than 10 maxima, which
are counted exactly. Their data from the web is not public: here it is artificial, with mixed features (`artificial.correlated`).
The workshop paper of the same year shows both as its Figure 3.
"""

from dataclasses import dataclass

import numpy as np

from exactrank.data.folds import Fold
from exactrank.objectives.step_function import SAME_VALUE, Floats
from exactrank.probe.smoothness import Roughness
from exactrank.reproduce.artificial import correlated_parts
from exactrank.reproduce.experiment import Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Curve, Panel
from exactrank.reproduce.smoothness import NEAR, Around, SmoothWithQueries, roughness
from exactrank.table import Table

NUMEROUS = 10  #: maxima
SECTION = 2.0  #: percent of the weight, in the section that is blown up
POINTS = 801  #: of a curve there


@dataclass(frozen=True)
class BlownUp:
    """One weight's curve."""

    weight: str
    whole: float  #: roughness on the grid
    section: float  #: roughness of all steps near the trained weight
    maxima: int
    steps: int
    largest: float  #: of the steps, by the span of the curve
    near: tuple[float, ...]  #: its values at `POINTS` points of the section

    @classmethod
    def of(cls, around: Around, weight: str) -> "BlownUp":
        """The curve of ``weight`` on all queries."""
        curve = next(each for each in around.found.whole if each.weight.name == weight)
        f = around.found.profile(weight)
        first, last = np.searchsorted(f.breakpoints, [-SECTION, SECTION])
        sizes = np.abs(np.diff(f.values))
        return cls(
            weight,
            whole=roughness(np.array(curve.values)),
            section=roughness(f.values[first : last + 1]),
            maxima=Roughness.of(f.values).maxima,
            steps=int(np.sum(sizes > SAME_VALUE)),
            largest=float(sizes.max(initial=0.0)) / (curve.span or 1.0),
            near=tuple(f(section_grid()).tolist()),
        )


@dataclass(frozen=True, kw_only=True)
class SmoothOnWeb(SmoothWithQueries, full={"features": 367, "rates": (1e-4, 1e-3, 3e-3, 1e-2), "epochs": 300}):
    """A net of ``hidden`` units, trained on ``queries`` queries and looked at on these."""

    paper = "Yue & Burges 2007"
    where = "Figures 4 and 5 (workshop paper: Figure 3)"
    published = "On web data NDCG is relatively smooth on a macro scale, but has numerous small local optima, even with 10,000 queries."

    documents: int = 26
    samples: tuple[int, ...] = ()
    hidden: tuple[int | None, ...] = (10,)

    def run(self, tell: Tell = silent) -> Finding:
        around = self._around(self.hidden[0], tell)
        curves = [BlownUp.of(around, curve.weight.name) for curve in around.curves(around.sizes[-1])]
        near = Panel(f"within {SECTION:g}%", "change of the weight (%)", str(around.found.measure), _drawn(curves), mark=0.0)
        return self._finding(_said(curves), checks_of(curves), [_table(curves)], [*around.panels(), near])

    def _fold(self) -> Fold:
        return correlated_parts(super()._fold(), self.seed)


def section_grid() -> Floats:
    """Percentages at which the section is drawn."""
    return np.linspace(-SECTION, SECTION, POINTS)


def checks_of(curves: list[BlownUp]) -> list[Check]:
    """(1), and numerous maxima."""
    whole, section = (float(np.median([getattr(curve, name) for curve in curves])) for name in ("whole", "section"))
    return [
        Check(f"on a grid of 2% the middle curve is smooth (roughness < {NEAR:g})", whole, NEAR),
        Check(f"within {SECTION:g}% it is not (1 < roughness of all steps)", 1.0, section),
        Check(f"every curve has numerous maxima (more than {NUMEROUS})", float(NUMEROUS), float(min(curve.maxima for curve in curves))),
    ]


def _said(curves: list[BlownUp]) -> str:
    whole, section, largest = (float(np.median([getattr(curve, name) for curve in curves])) for name in ("whole", "section", "largest"))
    return (
        f"The roughness of the middle curve is {whole:.3f} on the grid and {section:.1f} within {SECTION:g}% of the weight; curves have"
        f" {min(curve.maxima for curve in curves):,} maxima or more, and their largest steps are {largest:.2%} of the span."
    )


def _table(curves: list[BlownUp]) -> Table:
    columns = ("weight", "roughness, grid of 2%", f"roughness within {SECTION:g}%", "maxima", "steps", "largest step / span")
    rows = [(curve.weight, curve.whole, curve.section, curve.maxima, curve.steps, curve.largest) for curve in curves]
    return Table("Curves of the output weights", columns, rows)


def _drawn(curves: list[BlownUp]) -> tuple[Curve, ...]:
    x = tuple(section_grid().tolist())
    return tuple(Curve(curve.weight, x, curve.near) for curve in curves)
