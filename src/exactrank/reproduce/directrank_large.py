"""Linear DirectRank against other linear methods on large sets (Tan, Xia, Guo & Wang 2013, section 3.1.2, Tables 5, 6 and 7).

The methods are those of `exactrank.reproduce.linear_methods`, by nDCG@10. "DirectRank yields a general best performance", on
training, validation and test data; "consistent-RankCosine has a performance close to DirectRank on Yahoo data, and DirectRank's
advantage looks better on Microsoft data". Where a published mean of DirectRank is above that of another method, ours must be; and

    | nDCG@10 of DirectRank - nDCG@10 of RankCosine | < 1/200   on Yahoo's test data                            (1)

Their sets are too large to come along (Table 5). Here they are noisy cubic polynomials with as many documents a query, whose features are
not mixed, since half of the methods move one weight at a time (``mixed`` mixes them, `artificial.correlated`); or ``data``: folders
with Fold1, Fold2, ... as Microsoft's set has them, whose test queries are pooled. Nothing is checked of ``BAGS``, the mean of 20 models of
bootstrap samples that `exactrank.rankers.directrank` is by default on little data.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from exactrank.data.folds import Fold
from exactrank.data.synthetic import CubicPolynomial
from exactrank.reproduce.artificial import Sizes, correlated_parts, three_parts
from exactrank.reproduce.experiment import OnFolds, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.linear_methods import METHODS, OURS, PARTS, Entries, Setting, entries
from exactrank.reproduce.panels import Curve, Panel
from exactrank.reproduce.structured_ndcg import signed_rank
from exactrank.table import Cell, Table

MEASURE = "nDCG@10"
NEAR = 0.005  #: of (1)
YAHOO, MICROSOFT = "as Yahoo", "as Microsoft"
NONE = float("nan")

#: By set and method: NDCG@10 of each of `PARTS`; what is not published is NaN.
PUBLISHED: Mapping[str, Mapping[str, tuple[float, ...]]] = {
    YAHOO: {
        OURS: (0.762, 0.757, 0.760),
        "LambdaRank": (NONE, NONE, 0.757),
        "SmoothGrad": (0.741, 0.738, 0.739),
        "AdaRank": (0.728, 0.723, 0.729),
        "coordinate ascent": (0.750, 0.744, 0.745),
        "RankBoost": (0.734, 0.730, 0.732),
        "RankCosine": (0.762, 0.755, 0.761),
    },
    MICROSOFT: {
        OURS: (0.467, 0.465, 0.459),
        "SmoothGrad": (0.460, 0.455, 0.450),
        "AdaRank": (0.368, 0.365, 0.365),
        "coordinate ascent": (0.462, 0.460, 0.457),
        "RankCosine": (0.451, 0.439, 0.437),
    },
}
#: By set: features, training queries, documents, documents a query.
STATISTICS: Mapping[str, tuple[str, str, str, str]] = {
    YAHOO: ("519", "19k", "473k", "about 23"),
    MICROSOFT: ("136", "31k", "2M", "about 72"),
}


@dataclass(frozen=True, kw_only=True)
class DirectRankLarge(OnFolds):
    """Both sets, of ``documents`` a query in Microsoft's and a third as many in Yahoo's; or the folds in ``data``."""

    name: ClassVar[str] = "directrank-large"
    paper: ClassVar[str] = "Tan, Xia, Guo & Wang 2013"
    where: ClassVar[str] = "Tables 5, 6 and 7"
    published: ClassVar[str] = (
        "On Yahoo's and Microsoft's data linear DirectRank is above LambdaRank, SmoothGrad, AdaRank, coordinate ascent and RankBoost. The"
        " consistent RankCosine is level with it on Yahoo's and below it on Microsoft's."
    )

    documents: int = 72
    noise: float = 1.0
    mixed: bool = False
    yahoo: Sizes = (2_000, 1_000, 2_000)
    microsoft: Sizes = (1_000, 500, 1_000)
    starts: int = 2

    @classmethod
    def full(cls, seed: int = 0) -> Self:
        return cls(seed=seed, features=136, yahoo=(19_944, 2_994, 6_983), microsoft=(18_919, 6_306, 6_306), starts=20)

    @property
    def stages(self) -> int:
        return len(METHODS) * (len(self.data) or 2)

    def run(self, tell: Tell = silent) -> Finding:
        setting = Setting(MEASURE, self.starts, self.seed, self.threads)
        sets = self.given or [(YAHOO, [self._yahoo()]), (MICROSOFT, [self._drawn(self.documents, self.microsoft)])]
        found = {name: entries(name, METHODS, setting, folds, tell) for name, folds in sets}
        checks = [check for name, each in found.items() for check in checks_of(name, each)]
        tables = [*(_table(name, each) for name, each in found.items()), _statistics(sets)]
        return self._finding(" ".join(_said(*each) for each in found.items()), checks, tables, [_panel(*each) for each in found.items()])

    def _yahoo(self) -> Fold:
        return self._drawn(max(1, self.documents // 3), self.yahoo)

    def _drawn(self, documents: int, sizes: Sizes) -> Fold:
        source = CubicPolynomial(self.features, documents, noise=self.noise, seed=self.seed, threads=self.threads)
        parts = three_parts(source, sizes)
        return correlated_parts(parts, self.seed) if self.mixed else parts


def checks_of(name: str, found: Entries) -> Iterator[Check]:
    """What the tables say: of other sets, what they say of Microsoft's."""
    tables = PUBLISHED.get(name, PUBLISHED[MICROSOFT])
    for i, part in enumerate(PARTS):
        for method, means in tables.items():
            if means[i] < tables[OURS][i]:
                yield Check(f"{name}: {OURS} is above {method} ({part} data)", found[method].means[i], found[OURS].means[i])
    if name == YAHOO:
        apart = abs(found[OURS].means[-1] - found["RankCosine"].means[-1])
        yield Check(f"{name}: RankCosine is level with {OURS} (test data, difference < {NEAR:g})", apart, NEAR)


def _said(name: str, found: Entries) -> str:
    order = sorted(found, key=lambda method: -found[method].means[-1])
    return f"{name}, test data, from the best to the worst: " + ", ".join(f"{m} {found[m].means[-1]:.4f}" for m in order) + "."


def _table(name: str, found: Entries) -> Table:
    rows: list[list[Cell]] = []
    for method, entry in found.items():
        p = "" if method == OURS else f"{signed_rank(found[OURS].test, entry.test):.2g}"
        theirs = PUBLISHED.get(name, {}).get(method, ("", "", ""))
        rows.append([method, *entry.means, p, *("" if value != value else value for value in theirs)])
    return Table(f"{name}, {MEASURE}", ("method", *PARTS, f"p, {OURS} ahead", *(f"{part}, published" for part in PARTS)), rows)


def _statistics(sets: Sequence[tuple[str, Sequence[Fold]]]) -> Table:
    """Of the training data of the first fold."""
    rows: list[list[Cell]] = []
    for name, (fold, *_) in sets:
        train = fold.train
        shown = train.n_features, train.n_queries, train.n_documents, train.n_documents / train.n_queries
        rows.append([name, *shown, ", ".join(STATISTICS.get(name, ()))])
    return Table("The sets", ("set", "features", "training queries", "documents", "documents a query", "published"), rows)


def _panel(name: str, found: Entries) -> Panel:
    curves = (Curve(method, (1.0, 2.0, 3.0), entry.means) for method, entry in found.items())
    return Panel(name, "training (1), validation (2) and test data (3)", MEASURE, tuple(curves))
