"""DirectRank on measures that count every rank: ERR and MAP (Tan, Xia, Guo & Wang 2013, section 3.1.2, Table 8).

All methods of `exactrank.reproduce.linear_methods` that their table has are trained on ERR and on average precision, on data
as Yahoo's. They replaced Algorithm 2 by a brute force search there, which here is not needed, or cut the measure at rank 10 in
training (DirectRank@10). "A competitive performance compared to LambdaRank and better performance than other baselines"; with the cut
"a performance moderately better than coordinate ascent". Level with LambdaRank is

    | ERR of DirectRank - ERR of LambdaRank | < 1/200   on test data                                            (1)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exactrank.reproduce.artificial import Sizes, three_parts
from exactrank.reproduce.directrank_large import NEAR, NONE
from exactrank.reproduce.experiment import YAHOO, OnFolds, Tell, silent
from exactrank.reproduce.finding import Check, Finding
from exactrank.reproduce.linear_methods import OURS, Entries, Setting, by_part, entries, in_order
from exactrank.table import Cell, Table

CUT = f"{OURS}@10"
CLIMBER, LEVEL = "coordinate ascent", "LambdaRank"

#: By measure and method, on test data; what is not published is NaN.
PUBLISHED: Mapping[str, Mapping[str, float]] = {
    "ERR": {OURS: 0.454, CUT: 0.452, LEVEL: 0.456, "AdaRank": 0.430, CLIMBER: 0.444, "RankBoost": 0.424},
    "AP": {OURS: 0.853, CUT: 0.850, LEVEL: NONE, "AdaRank": 0.841, CLIMBER: 0.849, "RankBoost": 0.848},
}


@dataclass(frozen=True, kw_only=True)
class DirectRankERRMAP(OnFolds, full={"features": 136, "queries": (19_944, 2_994, 6_983), "starts": 20}):
    """On ``queries`` queries for training, validation and test; or the folds in ``data``."""

    paper = "Tan, Xia, Guo & Wang 2013"
    where = "Table 8"
    published = (
        "By ERR and MAP DirectRank is above AdaRank, coordinate ascent and RankBoost, and level with LambdaRank. Cut at rank 10 it is"
        " moderately better than coordinate ascent."
    )

    features: int = 30
    documents: int = 24
    noise: float = 1.0
    queries: Sizes = (800, 400, 1_000)
    starts: int = 1

    @property
    def stages(self) -> int:
        return sum(map(len, PUBLISHED.values())) * (len(self.data) or 1)

    def run(self, tell: Tell = silent) -> Finding:
        sets = self.given or [(YAHOO, [three_parts(self._source(noise=self.noise), self.queries)])]
        found = []
        for name, folds in sets:
            for measure, methods in PUBLISHED.items():
                setting = Setting(measure, self.starts, self.seed, self.threads)
                found.append((name, measure, entries(name, methods, setting, folds, tell)))
        said = (in_order(f"{name}, {measure}", each) for name, measure, each in found)
        panels = (by_part(f"{name}, {measure}", measure, each) for name, measure, each in found)
        return self._finding(said, (checks_of(*each) for each in found), (_table(*each) for each in found), panels)


def checks_of(name: str, measure: str, found: Entries) -> Iterator[Check]:
    """Above all but LambdaRank, and level with that; cut at rank 10, above coordinate ascent."""
    test = {method: entry.means[-1] for method, entry in found.items()}
    for rival in ("AdaRank", CLIMBER, "RankBoost"):
        yield Check(f"{name}: {OURS} is above {rival} ({measure}, test data)", test[rival], test[OURS])
    yield Check(f"{name}: {CUT} is above {CLIMBER} ({measure}, test data)", test[CLIMBER], test[CUT])
    if measure == "ERR":
        apart = abs(test[OURS] - test[LEVEL])
        yield Check(f"{name}: {LEVEL} is level with {OURS} ({measure}, test data, difference < {NEAR:g})", apart, NEAR)


def _table(name: str, measure: str, found: Entries) -> Table:
    rows: list[list[Cell]] = []
    for method, theirs in PUBLISHED[measure].items():
        rows.append([method, *found[method].means, theirs if name == YAHOO and theirs == theirs else ""])
    return Table(f"{name}, {measure}", ("method", "training", "validation", "test", "test, published"), rows)
