"""LambdaRank, RankNet and SPSA:4 by nDCG@10, with linear nets (Yue & Burges 2007, Table 1).

SPSA climbs nDCG@10 itself, by slopes estimated from four of its values; RankNet and LambdaRank follow slopes of their own. The
published table is of web data with 367 features; here it is artificial data with mixed features (`artificial.correlated`). Learning
rates are chosen on validation data; SPSA's gains are those that the optimizer chooses by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from exactrank.data.folds import Fold
from exactrank.rankers.base import Ranker
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.rankers.ranknet import RankNet
from exactrank.rankers.spsarank import SPSARank
from exactrank.reproduce.artificial import Sizes, correlated_parts, three_parts
from exactrank.reproduce.chosen import as_published, chosen
from exactrank.reproduce.experiment import Experiment, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.panels import Curve, Panel
from exactrank.table import Cell, Table

PUBLISHED = {"LambdaRank": (0.721, 0.713, 0.707), "RankNet": (0.715, 0.709, 0.699), "SPSA:4": (0.690, 0.682, 0.677)}
SPSA_EVALUATIONS = 4


@dataclass(frozen=True, kw_only=True)
class SPSATable(Experiment, full={"queries": (10_000, 5_000, 10_000), "epochs": 300, "steps": 2_000}):
    """The three rankers; SPSA makes ``steps`` steps, the others as many ``epochs`` as they need."""

    paper = "Yue & Burges 2007"
    where = "Table 1"
    published = "On web data, with linear nets, SPSA:4 is below RankNet, and RankNet below LambdaRank, by NDCG@10."

    queries: Sizes = (2_000, 1_000, 2_000)
    rates: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    epochs: int = 40
    steps: int = 500

    @property
    def stages(self) -> int:
        return 2 * len(self.rates) + 1

    def run(self, tell: Tell = silent) -> Finding:
        fold = correlated_parts(three_parts(self._source(), self.queries), self.seed)
        rankers = self._trained(fold, tell)
        means = {name: tuple(ranker.score(part) for part in (fold.train, fold.valid, fold.test)) for name, ranker in rankers.items()}
        found = f"{_said(means)} {_passing(rankers['SPSA:4'], means['RankNet'][1])}"
        return self._finding(found, _checks(means), [_table(means)], [_panel(rankers["SPSA:4"], means)])

    def _trained(self, fold: Fold, tell: Tell) -> dict[str, Ranker]:
        follow = {kind.__name__: chosen((self._ranker(kind, rate) for rate in self.rates), fold, tell) for kind in (LambdaRank, RankNet)}
        spsa = SPSARank(evaluations=SPSA_EVALUATIONS, max_iter=self.steps, seed=self.seed, threads=self.threads)
        return follow | {"SPSA:4": chosen([spsa], fold, tell)}

    def _ranker(self, kind: type[LambdaRank] | type[RankNet], rate: float) -> Ranker:
        return as_published(kind, learning_rate=rate, max_iter=self.epochs, seed=self.seed, threads=self.threads)


Means = Mapping[str, tuple[float, ...]]  #: by ranker: on training, validation and test data


def _checks(means: Means) -> list[Check]:
    pairs = (("SPSA:4", "RankNet"), ("RankNet", "LambdaRank"))
    return [Check(f"{worse} is below {better} on test data", means[worse][-1], means[better][-1]) for worse, better in pairs]


def _said(means: Means) -> str:
    order = sorted(means, key=lambda name: means[name][-1])
    return "On test data, from the worst to the best: " + ", ".join(f"{name} {means[name][-1]:.4f}" for name in order) + "."


def _passing(spsa: Ranker, level: float) -> str:
    """When SPSA comes above RankNet on validation data."""
    above = [progress.step for progress in spsa.history_ if progress.valid is not None and progress.valid > level]
    if not above:
        return "On validation data SPSA:4 never comes above RankNet."
    return f"On validation data SPSA:4 comes above RankNet after {SPSA_EVALUATIONS * above[0]:,} evaluations."


def _table(means: Means) -> Table:
    rows: list[list[Cell]] = [[name, *means[name], *PUBLISHED[name]] for name in PUBLISHED]
    parts = ("training", "validation", "test")
    return Table("nDCG@10, linear nets", ("method", *parts, *(f"{part}, published" for part in parts)), rows)


def _panel(spsa: Ranker, means: Means) -> Panel:
    """How SPSA rises, and how high the others are, on validation data."""
    steps = [progress for progress in spsa.history_ if progress.valid is not None]
    x = tuple(float(SPSA_EVALUATIONS * progress.step) for progress in steps)
    rising = Curve("SPSA:4", x, tuple(float(progress.valid or 0.0) for progress in steps))
    levels = (Curve(name, (x[0], x[-1]), (means[name][1],) * 2) for name in ("RankNet", "LambdaRank"))
    return Panel("linear nets, correlated features", "evaluations of nDCG@10 for slopes", "nDCG@10, validation data", (rising, *levels))
