"""DirectRank on the nine LETOR sets (Tan, Xia, Guo & Wang 2013, section 3.1.1, Figure 2, Tables 3, 4 and 11).

Linear models (and RankBoost) trained for NDCG@5, or for MAP where the name says so, and compared by NDCG@1 to NDCG@10, mean over five
folds. DirectRank takes the most likely point of the best interval (section 2.3) and starts several times; MAP on validation data chooses
the start and its iterate, as published. The settings of the others are chosen there by the measure that each is trained on (in the paper
by MAP). Over n sets, the winning number of method i counts the methods that it beats,

    W_i = sum_j sum_k [NDCG_i(j) > NDCG_k(j)]                                                                   (1)

On six of the nine sets it "generally gives the best results", here: on more than half, by the mean of NDCG@1 to NDCG@10.

What choosing a start by MAP is worth, for NDCG and for MAP, is seen beside the mean of all S starts, that of the better half by MAP on
validation data, and the deviation of starts drawn by lot in each of F folds,

    s = 1/F sqrt(sum_f 1/(S - 1) sum_i (NDCG_fi - mean_i NDCG_fi)^2)                                            (2)

The sets are public, but do not come with this package. Folders with their features, queries and folds are recognized, and
compared with LETOR's official baselines too. Without ``data``, folders with Fold1, Fold2, ... as in LETOR, there are nine
artificial sets with the same numbers of grades, and of queries, documents and features up to ``queries``, ``documents`` and ``features``,
with as much noise as signal, and features that are not mixed. NDCG is LETOR's: ranks 1 and 2 count equally.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from exactrank._support.tables import Cell, Table
from exactrank.compare.statistics import winning_numbers
from exactrank.data.folds import Fold
from exactrank.errors import DataError
from exactrank.measures.parse import parse_measure
from exactrank.rankers.adarank import AdaRank
from exactrank.rankers.base import Ranker
from exactrank.rankers.directrank import DirectRank
from exactrank.rankers.listnet import ListNet
from exactrank.rankers.rankboost import RankBoost
from exactrank.rankers.ranksvm import RankSVM
from exactrank.rankers.smoothrank import SmoothRank
from exactrank.rankers.svmmap import SVMMAP
from exactrank.reproduce.artificial import SPLITS, five_splits
from exactrank.reproduce.directrank_linear import OURS
from exactrank.reproduce.experiment import PUBLISHED, RANKS, OnFolds, Piece, Tell, Values, fit_ranker, query_values
from exactrank.reproduce.finding import Inequality, Panel, curves

BAGS = "DirectRank, ours"  #: the mean of 20 models of bootstrap samples, from a softmax regression
NDCG, MAP = parse_measure("nDCG@5", "letor"), parse_measure("AP", "letor")
JUDGED = tuple(parse_measure(f"nDCG@{k}", "letor") for k in RANKS)
SHOWN = (1, 3, 5, 8, 10)  #: ranks of the winning numbers

#: As published, except for those called ours: DirectRank chooses iterates and starts by MAP, AdaRank takes features as they are.
METHODS: Mapping[str, Callable[..., Ranker]] = {
    OURS: lambda **s: DirectRank(measure=NDCG, bags=0, start="random", point="plackett-luce", selection="AP", **s),
    "SmoothRank": lambda **s: SmoothRank(measure=NDCG, **s),
    "ListNet": lambda **s: ListNet(measure=NDCG, **s),
    "AdaRank-MAP": lambda **s: AdaRank(measure=MAP, rest=0, standardize=False, **s),
    "AdaRank-NDCG": lambda **s: AdaRank(measure=NDCG, rest=0, standardize=False, **s),
    "SVM-MAP": lambda **s: SVMMAP(measure=MAP, **s),
    "RankBoost": lambda **s: RankBoost(measure=NDCG, **s),
    "RankSVM": lambda **s: RankSVM(measure=NDCG, loss="hinge", **s),
}
OLD, NEW = "as LETOR 3.0", "as LETOR 4.0"
TABLES = {OLD: "Table 3: winning numbers", NEW: "Table 4: winning numbers"}
#: LETOR 4.0 has no results of SmoothRank and SVM-MAP.
COMPARED: Mapping[str, tuple[str, ...]] = {NEW: tuple(method for method in METHODS if method not in ("SmoothRank", "SVM-MAP"))}
LETOR = PUBLISHED["LETOR"]
WINNING: Mapping[str, Mapping[str, Sequence[int]]] = {OLD: LETOR["Table 3"], NEW: LETOR["Table 4"]}  #: at each of `SHOWN`
TRAINING: Mapping[str, Mapping[str, float]] = LETOR["Table 11"]  #: NDCG@5 by set and method
OFFICIAL: Mapping[str, Mapping[str, Sequence[float]]] = LETOR["official"]  #: NDCG@1 to NDCG@10 by set and baseline
#: By set: its group, queries, documents per query (about), features and grades.
SETS: Mapping[str, tuple[str, int, int, int, int]] = {name: tuple(facts) for name, facts in LETOR["sets"].items()}


def recognize(name: str, folds: Sequence[Fold]) -> tuple[str, str]:
    """Return the name and the group of a LETOR set by its features and queries; other sets keep the ``name`` of their folder."""
    features, queries = folds[0].train.n_features, sum(fold.test.n_queries for fold in folds)
    for title, (group, count, _, width, _) in SETS.items():
        if (width == features and count == queries) or title == name:
            if (len(folds), features, queries) != (SPLITS, width, count):
                raise DataError(
                    f"{name}: {title} has {SPLITS} folds, {width} features and {count} test queries, got {len(folds)}, {features} and"
                    f" {queries}; give all of LETOR's folds, or give the folder another name"
                )
            return (title if width < 64 else name), group  # sets of the same size are only known by the names of their folders
    return name, "all sets"


@dataclass(frozen=True, eq=False)
class LetorTrial:
    """The values of each method on one set."""

    name: str
    group: str
    tested: Mapping[str, Values]  #: by method: NDCG@1 to NDCG@10, mean over test folds
    trained: Mapping[str, float]  #: by method: NDCG@5 on training data, mean over folds
    started: Values  #: NDCG@1 to NDCG@10 and MAP on test data from each start of DirectRank: folds x starts x measures
    validated: Values  #: MAP on validation data from each start: folds x starts

    @property
    def best(self) -> str:
        """The published method with the largest mean of NDCG@1 to NDCG@10."""
        return max(self.methods, key=lambda method: float(self.tested[method].mean()))

    @property
    def methods(self) -> list[str]:
        """The methods of the paper."""
        return [method for method in self.tested if method != BAGS]

    @property
    def starts(self) -> Iterator[list[Cell]]:
        """Rows of a table that show what choosing a start is worth, with (2)."""
        deviation = np.sqrt(self.started.var(axis=1, ddof=1).sum(axis=0)) / len(self.started)
        order = np.argsort(-self.validated, axis=1, kind="stable")[:, :, None]
        ordered = np.take_along_axis(self.started, order, axis=1)
        rows = {"chosen, by MAP on validation data": ordered[:, 0].mean(axis=0)}
        rows["better half by MAP on validation data"] = ordered[:, : ordered.shape[1] // 2].mean(axis=(0, 1))
        rows |= {"all": ordered.mean(axis=(0, 1)), "standard deviation, by lot": deviation}
        for words, row in rows.items():
            yield [self.name, words, *(float(row[k - 1]) for k in SHOWN), float(row[-1])]


@dataclass(frozen=True, kw_only=True)
class DirectRankLETOR(OnFolds, name="directrank-letor", full={"documents": 1_000, "queries": 2_000, "folds": 5, "starts": 50}):
    """The sets called ``sets``, the first ``folds`` of five folds each; or those in ``data``, with all their folds."""

    features: int = 64  #: maximum number per set
    documents: int = 40  #: maximum number per query
    noise: float = 1.0
    sets: tuple[str, ...] = tuple(SETS)
    queries: int = 300  #: maximum number per set
    folds: int = 5
    starts: int = 5

    def _pieces(self, tell: Tell) -> Iterator[Piece]:
        trials = []
        for name, group, folds in self.trials:
            trials.append(self._trial(name, group, folds, tell))
            series = curves({method: values.tolist() for method, values in trials[-1].tested.items()})
            yield Panel(f"{name} ({group})" if group != name else name, "k", "NDCG@k, test data", series)
        groups = {group: [trial for trial in trials if trial.group == group] for _, group, _ in self.trials}
        yield from checks_of(groups)
        ranks = [f"@{k}" for k in SHOWN]
        for group, members in groups.items():
            numbers, methods = [wins(members, k) for k in SHOWN], members[0].methods
            wins_at = ", ".join(f"{number[OURS]} at {k}" for number, k in zip(numbers, SHOWN, strict=True))
            best = sum(trial.best == OURS for trial in members)
            yield f"{group}: {OURS} wins {wins_at}, of {len(members) * (len(methods) - 1)}; it is the best on {best} sets."
            theirs = WINNING.get(group, {})
            rows = [[method, *(number[method] for number in numbers), *theirs.get(method, ("",) * len(SHOWN))] for method in methods]
            columns = ("method", *ranks, *(f"{at}, published" for at in ranks))
            yield Table(f"{TABLES.get(group, 'Winning numbers')}, {group} ({len(members)} of them)", columns, rows)
        tested: list[list[Cell]] = []
        trained: list[list[Cell]] = []
        for trial in trials:
            tested += [[trial.name, method, *(values[k - 1] for k in SHOWN)] for method, values in trial.tested.items()]
            published = TRAINING.get(trial.name, {})
            trained += [[trial.name, method, value, published.get(method, "")] for method, value in trial.trained.items()]
            for method, values in OFFICIAL.get(trial.name, {}).items():
                tested.append([trial.name, f"{method}, official", *(values[k - 1] for k in SHOWN)])
        yield Table("Figure 2: NDCG, test data", ("set", "method", *ranks), tested)
        if self.starts > 1:
            rows = [row for trial in trials for row in trial.starts]
            yield Table(f"{OURS} from its {self.starts} starts, test data", ("set", "starts", *ranks, "MAP"), rows)
        yield Table("Table 11: NDCG@5, training data", ("set", "method", "NDCG@5", "published"), trained)

    @cached_property
    def trials(self) -> list[tuple[str, str, list[Fold]]]:
        """Name, group and folds of each set."""
        if self.data:
            return [(*recognize(name, folds), folds) for name, folds in self.folders]
        trials = []
        for number, name in enumerate(self.sets):
            group, queries, documents, features, grades = SETS[name]
            size = {"features": min(features, self.features), "documents": min(documents, self.documents), "grades": grades}
            source = self._source(**size, noise=self.noise, seed=self.seed * len(SETS) + number)
            trials.append((name, group, five_splits(source.data(min(queries, self.queries)), self.seed)[: self.folds]))
        return trials

    def _trial(self, name: str, group: str, folds: Sequence[Fold], tell: Tell) -> LetorTrial:
        tested, trained, started, validated = {}, {}, np.zeros(0), np.zeros(0)
        for method in (*COMPARED.get(group, tuple(METHODS)), BAGS):
            tell(f"{name}, {method}")
            rankers = [self._train(method, fold) for fold in folds]
            pairs = [(max(each, key=partial(map_on_validation, fold)), fold) for each, fold in zip(rankers, folds, strict=True)]
            tested[method] = np.mean([on_test(fold, ranker) for ranker, fold in pairs], axis=0)[: len(RANKS)]
            trained[method] = float(np.mean([query_values(ranker, fold.train, NDCG).mean() for ranker, fold in pairs]))
            if method == OURS:
                started, validated = (
                    np.array([[value(fold, ranker) for ranker in each] for each, fold in zip(rankers, folds, strict=True)])
                    for value in (on_test, map_on_validation)
                )
        return LetorTrial(name, group, tested, trained, started, validated)

    def _train(self, method: str, fold: Fold) -> list[Ranker]:
        """Train DirectRank from each start, or another method from its only start."""
        if method == BAGS:
            return [fit_ranker(DirectRank(measure=NDCG, seed=self.seed, threads=self.threads), fold.train, fold.valid)]
        first, starts = (self.seed * self.starts, self.starts) if method == OURS else (self.seed, 1)
        rankers = (METHODS[method](seed=first + number, threads=self.threads) for number in range(starts))
        return [fit_ranker(ranker, fold.train, fold.valid) for ranker in rankers]


def map_on_validation(fold: Fold, ranker: Ranker) -> float:
    """Return MAP on validation data."""
    return float(query_values(ranker, fold.valid, MAP).mean())


def on_test(fold: Fold, ranker: Ranker) -> Values:
    """Return NDCG@1 to NDCG@10 and MAP on test data."""
    return np.asarray(query_values(ranker, fold.test, (*JUDGED, MAP)).mean(axis=1))


def wins(trials: Sequence[LetorTrial], k: int) -> dict[str, int]:
    """Return (1) at rank k."""
    return winning_numbers({method: [float(trial.tested[method][k - 1]) for trial in trials] for method in trials[0].methods})


def checks_of(groups: Mapping[str, Sequence[LetorTrial]]) -> Iterator[Inequality]:
    """Yield winning numbers, sets on which it is the best, official baselines, and training data."""
    for group, trials in groups.items():
        for k in SHOWN:
            if (group, k) != (NEW, 1):
                number = wins(trials, k)
                largest = max(count for method, count in number.items() if method != OURS)
                yield Inequality(f"{group}: {OURS} has the largest winning number (NDCG@{k})", largest, number[OURS])
    all_trials = [trial for trials in groups.values() for trial in trials]
    best = sum(trial.best == OURS for trial in all_trials)
    yield Inequality(f"{OURS} is the best on more than half of the sets (mean of NDCG@1 to 10)", len(all_trials) / 2, best)
    for trial in all_trials:
        for k in SHOWN if trial.name in OFFICIAL else ():
            if (trial.group, k) != (NEW, 1):
                value, method = max((values[k - 1], method) for method, values in OFFICIAL[trial.name].items())
                says = f"{trial.name}: {OURS} is above the official baselines, of which {method} is the best (NDCG@{k})"
                yield Inequality(says, value, float(trial.tested[OURS][k - 1]))
        for rival in TRAINING.get(trial.name, TRAINING["TD2003"] if trial.group not in (OLD, NEW) else ()):
            if rival != OURS:
                yield Inequality(
                    f"{trial.name}: {OURS} is above {rival} (NDCG@5, training data)", trial.trained[rival], trial.trained[OURS]
                )
