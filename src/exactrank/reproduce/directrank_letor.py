"""DirectRank on the nine LETOR sets (Tan, Xia, Guo & Wang 2013, section 3.1.1, Figure 2, Tables 3, 4 and 11).

Linear models (and RankBoost) trained for NDCG@5, or for MAP where the name says so, and compared by NDCG@1 to NDCG@10, mean over five
folds. DirectRank takes the most likely point of the best interval (section 2.3) and starts several times; the start with the best MAP on
validation data is kept, as published. The iterate of a start, and the settings of the others, are chosen on validation data by the measure
that each is trained on (in the paper by MAP). Over n sets, the winning number of method i counts the methods that it beats,

    W_i = sum_j sum_k [NDCG_i(j) > NDCG_k(j)]                                                                   (1)

"On LETOR 3.0 datasets, DirectRank ranks highest on all NDCG levels. For LETOR 4.0 DirectRank wins except on NDCG@1": its winning number
is the largest of all. On six of the nine sets it "generally gives the best results", here: by the mean of NDCG@1 to NDCG@10 it is the
best on more than half. "DirectRank often achieves better training NDCG" (Table 11): NDCG@5 on training data is above that of the others.

The sets are public, but do not come with this package. Without ``data``, folders with Fold1, Fold2, ... as in LETOR, there are nine
artificial sets with the same numbers of grades, and of queries, documents and features up to ``queries``, ``documents`` and ``features``,
with as much noise as signal, and features that are not mixed. NDCG is LETOR's: ranks 1 and 2 count equally.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from exactrank._support.tables import Cell, Table
from exactrank.compare.statistics import winning_numbers
from exactrank.data.folds import Fold
from exactrank.measures.parse import parse_measure
from exactrank.rankers.adarank import AdaRank
from exactrank.rankers.base import Ranker
from exactrank.rankers.directrank import DirectRank
from exactrank.rankers.listnet import ListNet
from exactrank.rankers.rankboost import RankBoost
from exactrank.rankers.ranksvm import RankSVM
from exactrank.rankers.smoothrank import SmoothRank
from exactrank.rankers.svmmap import SVMMAP
from exactrank.reproduce.artificial import five_splits
from exactrank.reproduce.directrank_linear import OURS
from exactrank.reproduce.experiment import RANKS, OnFolds, Piece, Tell, Values, chosen, judged
from exactrank.reproduce.finding import Inequality, Panel, curves

NDCG, MAP = parse_measure("nDCG@5", "letor"), parse_measure("AP", "letor")
JUDGED = tuple(parse_measure(f"nDCG@{k}", "letor") for k in RANKS)
SHOWN = (1, 3, 5, 8, 10)  #: ranks of the winning numbers

METHODS: Mapping[str, Callable[..., Ranker]] = {
    OURS: lambda **s: DirectRank(measure=NDCG, bags=0, start="random", point="likelihood", **s),
    "SmoothRank": lambda **s: SmoothRank(measure=NDCG, **s),
    "ListNet": lambda **s: ListNet(measure=NDCG, **s),
    "AdaRank-MAP": lambda **s: AdaRank(measure=MAP, rest=0, **s),
    "AdaRank-NDCG": lambda **s: AdaRank(measure=NDCG, rest=0, **s),
    "SVM-MAP": lambda **s: SVMMAP(measure=MAP, **s),
    "RankBoost": lambda **s: RankBoost(measure=NDCG, **s),
    "RankSVM": lambda **s: RankSVM(measure=NDCG, loss="hinge", **s),
}
OLD, NEW = "as LETOR 3.0", "as LETOR 4.0"
#: LETOR 4.0 has no results of SmoothRank and SVM-MAP.
COMPARED: Mapping[str, tuple[str, ...]] = {NEW: tuple(method for method in METHODS if method not in ("SmoothRank", "SVM-MAP"))}
#: By group and method: winning numbers at each of `SHOWN`.
WINNING: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    OLD: {
        OURS: (33, 44, 44, 42, 48),
        "SmoothRank": (30, 31, 35, 33, 31),
        "ListNet": (27, 29, 28, 33, 30),
        "AdaRank-MAP": (25, 22, 23, 23, 24),
        "AdaRank-NDCG": (21, 14, 14, 14, 13),
        "SVM-MAP": (18, 20, 20, 17, 16),
        "RankBoost": (15, 17, 15, 19, 18),
        "RankSVM": (14, 18, 17, 15, 16),
    },
    NEW: {
        OURS: (8, 10, 10, 10, 10),
        "ListNet": (3, 6, 5, 7, 6),
        "AdaRank-MAP": (1, 3, 3, 2, 2),
        "AdaRank-NDCG": (4, 5, 5, 5, 5),
        "RankSVM": (4, 4, 3, 2, 3),
        "RankBoost": (9, 4, 4, 4, 4),
    },
}
#: Table 11: by set, the methods whose training NDCG@5 it shows, and what it is.
TRAINING: Mapping[str, Mapping[str, float]] = {
    "TD2003": {OURS: 0.453, "SmoothRank": 0.427, "AdaRank-NDCG": 0.313, "ListNet": 0.438, "RankBoost": 0.395},
    "TD2004": {OURS: 0.415, "SmoothRank": 0.366, "AdaRank-NDCG": 0.337, "ListNet": 0.354, "RankBoost": 0.407},
    "HP2003": {OURS: 0.916, "SmoothRank": 0.848, "AdaRank-NDCG": 0.813, "ListNet": 0.847, "RankBoost": 0.914},
    "MQ2007": {OURS: 0.446, "AdaRank-NDCG": 0.409, "ListNet": 0.420, "RankBoost": 0.442},
}
#: By set: its group, queries, documents per query (about), features and grades.
SETS: Mapping[str, tuple[str, int, int, int, int]] = {
    "TD2003": (OLD, 50, 1000, 64, 2),
    "TD2004": (OLD, 75, 1000, 64, 2),
    "HP2003": (OLD, 150, 1000, 64, 2),
    "HP2004": (OLD, 75, 1000, 64, 2),
    "NP2003": (OLD, 150, 1000, 64, 2),
    "NP2004": (OLD, 75, 1000, 64, 2),
    "OHSUMED": (OLD, 106, 152, 45, 3),
    "MQ2007": (NEW, 1692, 41, 46, 3),
    "MQ2008": (NEW, 784, 19, 46, 3),
}


@dataclass(frozen=True, eq=False)
class LetorTrial:
    """All methods on one set."""

    name: str
    group: str
    tested: Mapping[str, Values]  #: by method: NDCG@1 to NDCG@10, mean over test folds
    trained: Mapping[str, float]  #: by method: NDCG@5 on training data, mean over folds

    @property
    def best(self) -> str:
        """The method with the largest mean of NDCG@1 to NDCG@10."""
        return max(self.tested, key=lambda method: float(self.tested[method].mean()))


@dataclass(frozen=True, kw_only=True)
class DirectRankLETOR(OnFolds, name="directrank-letor", full={"documents": 1_000, "queries": 2_000, "folds": 5, "starts": 50}):
    """The sets called ``sets``, the first ``folds`` of five folds each; or those in ``data``, with all their folds."""

    paper = "Tan, Xia, Guo & Wang 2013"
    where = "Figure 2, Tables 3, 4 and 11"
    published = (
        "On LETOR's sets DirectRank has the largest winning numbers of all methods, except for NDCG@1 on LETOR 4.0. It is the best on six"
        " of nine sets, and its NDCG@5 on training data is above that of the others."
    )

    features: int = 64  #: maximum number per set
    documents: int = 40  #: maximum number per query
    noise: float = 1.0
    sets: tuple[str, ...] = tuple(SETS)
    queries: int = 300  #: maximum number per set
    folds: int = 5
    starts: int = 5

    @property
    def stages(self) -> int:
        return sum(len(self._methods(group)) for _, group, _ in self.trials)

    def _found(self, tell: Tell) -> Iterator[Piece]:
        trials = []
        for name, group, folds in self.trials:
            trials.append(self._trial(name, group, folds, tell))
            drawn = curves({method: values.tolist() for method, values in trials[-1].tested.items()})
            yield Panel(f"{name} ({group})" if group != name else name, "k", "NDCG@k, test data", drawn)
        groups = {group: [trial for trial in trials if trial.group == group] for _, group, _ in self.trials}
        yield from checks_of(groups)
        shown = [f"@{k}" for k in SHOWN]
        for group, each in groups.items():
            numbers, methods = [wins(each, k) for k in SHOWN], each[0].tested
            won = ", ".join(f"{number[OURS]} at {k}" for number, k in zip(numbers, SHOWN, strict=True))
            best = sum(trial.best == OURS for trial in each)
            yield (f"{group}: {OURS} wins {won}, of {len(each) * (len(methods) - 1)}; it is the best on {best} of {len(each)} sets.")
            theirs = WINNING.get(group, {})
            rows = [[method, *(number[method] for number in numbers), *theirs.get(method, ("",) * len(SHOWN))] for method in methods]
            columns = ("method", *shown, *(f"{at}, published" for at in shown))
            yield Table(f"Winning numbers, {group} ({len(each)} of them)", columns, rows)
        tested: list[list[Cell]] = []
        trained: list[list[Cell]] = []
        for trial in trials:
            tested += [[trial.name, method, *(values[k - 1] for k in SHOWN)] for method, values in trial.tested.items()]
            published = TRAINING.get(trial.name, {})
            trained += [[trial.name, method, value, published.get(method, "")] for method, value in trial.trained.items()]
        yield Table("NDCG, test data", ("set", "method", *shown), tested)
        yield Table("NDCG@5, training data", ("set", "method", "NDCG@5", "published"), trained)

    @cached_property
    def trials(self) -> list[tuple[str, str, list[Fold]]]:
        """Name, group and folds of each set."""
        if self.data:
            return [(name, "all sets", folds) for name, folds in self.given]
        drawn = []
        for number, name in enumerate(self.sets):
            group, queries, documents, features, grades = SETS[name]
            size = {"features": min(features, self.features), "documents": min(documents, self.documents), "grades": grades}
            source = self._source(**size, noise=self.noise, seed=self.seed * len(SETS) + number)
            drawn.append((name, group, five_splits(source.data(min(queries, self.queries)), self.seed)[: self.folds]))
        return drawn

    def _trial(self, name: str, group: str, folds: Sequence[Fold], tell: Tell) -> LetorTrial:
        tested, trained = {}, {}
        for method in self._methods(group):
            tell(f"{name}, {method}")
            pairs = [(self._trained(method, fold), fold) for fold in folds]
            tested[method] = np.mean([judged(ranker, fold.test, JUDGED).mean(axis=1) for ranker, fold in pairs], axis=0)
            trained[method] = float(np.mean([judged(ranker, fold.train, NDCG).mean() for ranker, fold in pairs]))
        return LetorTrial(name, group, tested, trained)

    def _trained(self, method: str, fold: Fold) -> Ranker:
        """DirectRank from each start, of which MAP chooses the best; the others from their only start."""
        first, starts = (self.seed * self.starts, self.starts) if method == OURS else (self.seed, 1)
        return chosen((METHODS[method](seed=first + number, threads=self.threads) for number in range(starts)), fold, by=MAP)

    def _methods(self, group: str) -> Sequence[str]:
        return COMPARED.get(group, tuple(METHODS))


def wins(trials: Sequence[LetorTrial], k: int) -> dict[str, int]:
    """(1), at rank k."""
    return winning_numbers({method: [float(trial.tested[method][k - 1]) for trial in trials] for method in trials[0].tested})


def checks_of(groups: Mapping[str, Sequence[LetorTrial]]) -> Iterator[Inequality]:
    """Winning numbers, sets on which it is the best, and training data."""
    for group, trials in groups.items():
        for k in SHOWN:
            if (group, k) != (NEW, 1):
                number = wins(trials, k)
                others = max(count for method, count in number.items() if method != OURS)
                yield Inequality(f"{group}: {OURS} has the largest winning number (NDCG@{k})", others, number[OURS])
    every = [trial for trials in groups.values() for trial in trials]
    best = sum(trial.best == OURS for trial in every)
    yield Inequality(f"{OURS} is the best on more than half of the sets (mean of NDCG@1 to 10)", len(every) / 2, best)
    for trial in every:
        for rival in TRAINING.get(trial.name, TRAINING["TD2003"] if trial.group not in (OLD, NEW) else ()):
            if rival != OURS:
                yield Inequality(
                    f"{trial.name}: {OURS} is above {rival} (NDCG@5, training data)", trial.trained[rival], trial.trained[OURS]
                )
