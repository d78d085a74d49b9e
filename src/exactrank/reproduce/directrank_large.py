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

from exactrank.data.folds import Fold
from exactrank.reproduce.artificial import correlated_parts
from exactrank.reproduce.experiment import MICROSOFT, SIZES, YAHOO, AsYahooAndMicrosoft, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.linear_methods import METHODS, OURS, PARTS, Entries, Setting, by_part, entries, in_order
from exactrank.reproduce.structured_ndcg import signed_rank
from exactrank.table import Cell, Table

MEASURE = "nDCG@10"
NEAR = 0.005  #: of (1)
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
class DirectRankLarge(AsYahooAndMicrosoft, full=SIZES | {"features": 136, "starts": 20}):
    """All methods on both sets, or on the folds in ``data``."""

    paper = "Tan, Xia, Guo & Wang 2013"
    where = "Tables 5, 6 and 7"
    published = (
        "On Yahoo's and Microsoft's data linear DirectRank is above LambdaRank, SmoothGrad, AdaRank, coordinate ascent and RankBoost. The"
        " consistent RankCosine is level with it on Yahoo's and below it on Microsoft's."
    )

    mixed: bool = False
    starts: int = 2

    @property
    def stages(self) -> int:
        return len(METHODS) * (len(self.data) or 2)

    def run(self, tell: Tell = silent) -> Finding:
        setting, sets = Setting(MEASURE, self.starts, self.seed, self.threads), self._sets()
        found = {name: entries(name, METHODS, setting, folds, tell) for name, folds in sets}
        checks, tables = (checks_of(*each) for each in found.items()), [*(_table(*each) for each in found.items()), _statistics(sets)]
        panels = (by_part(name, MEASURE, each) for name, each in found.items())
        return self._finding((in_order(*each) for each in found.items()), checks, tables, panels)

    def _sets(self) -> list[tuple[str, list[Fold]]]:
        sets = super()._sets()
        if self.data or not self.mixed:
            return sets
        return [(name, [correlated_parts(fold, self.seed) for fold in folds]) for name, folds in sets]


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
