"""Chooses defaults by nested cross-validation over training queries; test data is never read.

    python benchmarks/choose_defaults.py                                        all rankers, all sets
    python benchmarks/choose_defaults.py lambdamart --sets MQ2008 bent          one ranker on some sets
    python benchmarks/choose_defaults.py ridge --candidates "ridge(l2=0.5)"     more candidates than those listed here

Sets are the parts 1 to 4 of MQ2008, OHSUMED and ClueWeb09, the training part of LightGBM's example, and artificial ones: small and
larger, with little and much noise, linear and bent. The queries of each are dealt into five folds. Every candidate is fitted to four, once
with a fifth of them as validation data and once cross-fitted to all (``bags=5``, unless it says its own or cross-fits by itself), and
evaluated on the fifth.

What is pooled are differences to the ranker's defaults, query by query: d_s, their mean on set s, has the standard error e_s, and

    difference = mean over sets of d_s,    its error e = sqrt(sum of e_s^2) / number of sets,    z = difference / e.

The row "best of the other sets" takes, on each set, the candidate that is best on the others: what the choice itself is worth on a set
that had no part in it. For ``blend`` candidates are rules: which members, and with what weights; members are cross-fitted once for all
rules. "spare part": members of ten parts, whose scores out of fold come from a part that had no say in when they stopped; so `er.Blend` has
it, and the rest is compared with its rule.
"""

import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from study import EXAMPLE, IN_PARTS, PARTS, Array, Score, artificial, asked, cross_fitted, joined, kept, parser, part, values_of, version
from threadpoolctl import threadpool_limits
from timing import table

import exactrank as er
from exactrank._support.json_values import json_value
from exactrank.compare.contenders import Method, parse_method
from exactrank.data.folds import deal_folds
from exactrank.data.ranking_data import checksum
from exactrank.errors import ExactRankError
from exactrank.learning.objectives.within_query import deviation
from exactrank.rankers import RANKERS

FOLDS = 5
VALIDATED, CROSS_FITTED = "with validation data", "cross-fitted"
CROSS_FIT = {"bags": 5, "bagging": "cross-fit"}
#: Rankers that cross-fit by themselves.
CROSS_FITTING = ("blend", "mart", "lambdamart")
OTHERS = "best of the other sets"
#: Sizes, features, noise and how bent; what they are called is part of what results are kept by.
ARTIFICIAL = {
    "linear, small": partial(artificial, 60, 30, 20, noise=1.0, bent=0.1, seed=1),
    "linear, noisy": partial(artificial, 500, 25, 40, noise=2.0, bent=0.2, seed=2),
    "bent": partial(artificial, 500, 25, 40, noise=0.6, bent=0.6, seed=3),
    "bent, small": partial(artificial, 80, 60, 100, noise=1.0, bent=0.5, seed=4),
}
#: More and more queries: from which number on is one forest worth as much as ten?
SIZES = {
    f"{queries:,} queries": partial(artificial, queries, 20, 40, noise=1.0, bent=0.4, seed=queries)
    for queries in (500, 1_000, 2_000, 4_000)
}
TINY = {
    "tiny, linear": partial(artificial, 20, 8, 4, noise=0.5, bent=0.0, seed=1),
    "tiny, bent": partial(artificial, 25, 8, 4, noise=0.5, bent=1.0, seed=2),
}
RANDOM = "extra=True, query_fraction=0.7, feature_fraction=0.7"
ONE, BAGGED, LEVELS = "bags=0", "bags=10, bagging='cross-fit'", "shape='symmetric', leaves=16"
TREES = [
    f"{ONE}, shape='best-first', leaves=16",
    f"{ONE}, {LEVELS}",
    f"{ONE}, {LEVELS}, patience=100",
    f"{BAGGED}, shape='best-first', leaves=16",
    f"{BAGGED}, {LEVELS}",
    f"bags=5, bagging='cross-fit', {LEVELS}",
    f"{BAGGED}, {LEVELS}, learning_rate=0.1",
    f"{BAGGED}, {LEVELS}, learning_rate=0.03, trees=600",
]
#: What each ranker's defaults, which come first, are to be compared with.
CANDIDATES = {
    "ridge": [f"l2={l2}" for l2 in (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)],
    "directrank": [
        "bags=0",
        "bags=20, bagging='bootstrap'",
        "bags=50, bagging='bootstrap'",
        *(f"start='{start}'" for start in ("softmax", "ridge", "zero")),
        "max_iter=2",
        "max_iter=4",
        "share=1.0",
        "share=0.4",
        "point='likelihood'",
    ],
    "lambdarank": [
        *(f"l2={l2}" for l2 in (0.001, 0.005, 0.05, 0.2)),
        "truncation=10",
        "truncation=30",
        "near=0.01",
        "lambdas='sampled'",
        "start='random'",
        "solver='sgd'",
        "trial_iter=0",
        "polish='directrank'",
        "hidden=10",
    ],
    "smoothrank": [*(f"l2={l2}" for l2 in (0.0, 0.001, 0.01, 0.1)), "last=0.25", "last=0.015625", "first=4.0", "hidden=10"],
    "mart": TREES,
    "lambdamart": TREES,
    "torch": [
        "learning_rate=0.0003",
        "learning_rate=0.003",
        "hidden=(64, 32)",
        "hidden=(128, 64)",
        "hidden=(256, 128)",
        "dropout=0.2",
        "dropout=0.5",
        "weight_decay=0.1",
        "weight_decay=1.0",
        "batch_size=8",
        "batch_size=128",
        "transform='none'",
    ],
}
#: The members of a blend, by family.
FOREST = f"bags=0, leaves=16, learning_rate=0.05, {RANDOM}"
MEMBERS = {
    "trees": [f"mart({FOREST})", f"lambdamart({FOREST}, lambdas='sampled')", f"lambdamart({FOREST})"],
    "linear": ["smoothrank(max_iter=10)", "lambdarank", "directrank(bags=0)", "structuredrank"],
    "network": ["lambdarank(hidden=10)"],
}
#: How many of each family, the first ones, are members by default.
BY_DEFAULT = {"trees": 2, "linear": 3}
#: How out-of-fold scores come about: parts, and how many of them are spared.
OUT_OF_FOLD = {", spare part": (10, 1), "": (5, 0)}


@dataclass(frozen=True)
class Fold:
    """Fold ``number`` of a set left out: what is fitted, and what it is evaluated on."""

    set: str
    number: int
    train: er.RankingData
    test: er.RankingData
    checksum: str  #: of the set


@dataclass(frozen=True)
class Result:
    values: Array  #: one a query
    seconds: float  #: of the CPU


#: By the name of the set and the number of the fold.
Results = dict[tuple[str, int], Result]


def training_sets(folder: Path, tiny: bool, sizes: bool = False) -> dict[str, Callable[[], er.RankingData]]:
    """How each set is read, without its test part."""
    if tiny or sizes:
        return dict(TINY if tiny else SIZES)
    real = {name: partial(four_parts, folder / name) for name in IN_PARTS}
    return {**real, "LightGBM's example": lambda: joined([er.read(folder / EXAMPLE / "rank.train.gz")]), **ARTIFICIAL}


def four_parts(folder: Path) -> er.RankingData:
    return joined([part(folder, number) for number in PARTS[:4]])


def folds_of(name: str, data: er.RankingData, numbers: Sequence[int]) -> list[Fold]:
    dealt = deal_folds(data.n_queries, FOLDS, seed=1)
    return [Fold(name, k, data.take_queries(dealt != k), data.take_queries(dealt == k), checksum(data)) for k in numbers]


def made(method: Method, **more: Any) -> Any:
    return RANKERS[method.name](**{**more, **method.settings}, threads=1)


def fitted(method: Method, way: str, train: er.RankingData) -> Score:
    """One model of ``train``; a candidate that says its own bags is fitted as it is."""
    if way == CROSS_FITTED:
        return made(method, **({} if "bags" in method.settings or method.name in CROSS_FITTING else CROSS_FIT)).fit(train).predict
    held_out = deal_folds(train.n_queries, 5, seed=2) == 0
    return made(method).fit(train.take_queries(~held_out), valid=train.take_queries(held_out)).predict


def timed(about: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What ``work`` gives, by one thread, and its seconds of the CPU."""
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = work() | {"seconds": time.process_time() - start}
    print(f"{about}: {found['seconds']:.1f} s", file=sys.stderr, flush=True)
    return found


class Study:
    """Candidates on folds; results are kept by the fold, all settings of the candidate and the version of the package."""

    def __init__(self, cache: Path, version: str) -> None:
        self.cache, self.version = cache, version
        self.failed: list[str] = []

    def kept(self, fold: Fold, method: Method, way: object, work: Callable[[], dict[str, Any]]) -> dict[str, Array]:
        """Settings that the method leaves to the defaults count as what these are now."""
        of = [fold.checksum, fold.number, way, method.name, json_value(made(method).get_params()), self.version]
        about = f"{method}, {way}, {fold.set}, fold {fold.number}"
        return kept(self.cache, (fold.set, fold.number, way, method), of, partial(timed, about, work))

    def evaluated(self, fold: Fold, candidate: str, way: str) -> Result:
        method = parse_method(candidate)

        def work() -> dict[str, Any]:
            return {"values": values_of(fold.test, fitted(method, way, fold.train)(fold.test))}

        found = self.kept(fold, method, way, work)
        return Result(found["values"], float(found["seconds"]))

    def member(self, fold: Fold, candidate: str, parts: int, spare: int) -> Array:
        """Scores of a member of a blend: out of fold for the training queries, then for those left out; of deviation 1."""
        method = parse_method(candidate)

        def work() -> dict[str, Any]:
            def fit(seen: er.RankingData, chooses: er.RankingData) -> Score:
                return made(method).fit(seen, valid=chooses).predict

            return {"scores": np.concatenate(cross_fitted(fit, fold.train, fold.test, parts, spare))}

        return unit(self.kept(fold, method, f"member of {parts} parts, {spare} spare", work)["scores"], fold.train)

    def each(self, folds: Sequence[Fold], candidates: Sequence[str], way: str) -> dict[str, Results]:
        """All candidates on all folds; one that fails on any is told and left out."""
        found: dict[str, Results] = {}
        for candidate in candidates:
            try:
                found[candidate] = {(fold.set, fold.number): self.evaluated(fold, candidate, way) for fold in folds}
            except ExactRankError as error:
                self.failed.append(f"{candidate}, {way}: {error}")
        return found

    def rules(self, folds: Sequence[Fold]) -> dict[str, Results]:
        """The rules of the blend on all folds; where a member fails there are none."""
        found: dict[str, Results] = {name + note: {} for note in OUT_OF_FOLD for name in RULES}  # the default first
        for fold in folds:
            for note, (parts, spare) in OUT_OF_FOLD.items():
                try:
                    families = {name: [self.member(fold, one, parts, spare) for one in own] for name, own in MEMBERS.items()}
                except ExactRankError as error:
                    self.failed.append(f"blend, {fold.set}, fold {fold.number}: {error}")
                    return {}
                for name, rule in RULES.items():
                    start = time.process_time()
                    values = values_of(fold.test, rule(families, fold.train)[fold.train.n_documents :])
                    found[name + note][fold.set, fold.number] = Result(values, time.process_time() - start)
        return found


# A blend's scores are a vector as `Study.member` gives it, so what is chosen on the first part is done to both.
Families = Mapping[str, Sequence[Array]]


def unit(scores: Array, train: er.RankingData) -> Array:
    return scores / (deviation(scores[: train.n_documents], train.indptr) or 1.0)


def each_mean(families: Families, train: er.RankingData) -> list[Array]:
    return [unit(np.mean(own, axis=0), train) for own in families.values()]


def each_member(families: Families, train: er.RankingData) -> list[Array]:
    return [one for own in families.values() for one in own]


def equal(of: Callable[[Families, er.RankingData], list[Array]], families: Families, train: er.RankingData) -> Array:
    return np.mean(of(families, train), axis=0)


def searched(of: Callable[[Families, er.RankingData], list[Array]], back: float, families: Families, train: er.RankingData) -> Array:
    """Weights that are best out of fold, by exact line searches, and from there ``back`` towards equal ones."""
    scores = np.stack(of(families, train))
    systems = er.RankingData.from_arrays(scores[:, : train.n_documents].T, train.y, group=train.sizes)
    best = er.fuse(systems, normalize="none", folds=0, bootstrap=0, tolerance=1.0, threads=1).weights
    return (back / len(scores) + (1 - back) * np.array(best)) @ scores


def best_member(families: Families, train: er.RankingData) -> Array:
    return max(each_member(families, train), key=lambda scores: values_of(train, scores[: train.n_documents]).mean())


def only(family: str, families: Families, train: er.RankingData) -> Array:
    return np.mean(families[family], axis=0)


Rule = Callable[[Families, er.RankingData], Array]


def default_members(rule: Rule, families: Families, train: er.RankingData) -> Array:
    return rule({name: families[name][:count] for name, count in BY_DEFAULT.items()}, train)


#: The first, with a spare part, is what the others are compared with: the default.
RULES: dict[str, Rule] = {
    "default members, families searched": partial(default_members, partial(searched, each_mean, 0.0)),
    "default members, families searched, halfway back": partial(default_members, partial(searched, each_mean, 0.5)),
    "default members, families equal": partial(default_members, partial(equal, each_mean)),
    "families equal": partial(equal, each_mean),
    "families searched": partial(searched, each_mean, 0.0),
    "families searched, halfway back": partial(searched, each_mean, 0.5),
    "families searched, three quarters back": partial(searched, each_mean, 0.75),
    "members equal": partial(equal, each_member),
    "members searched": partial(searched, each_member, 0.0),
    "members searched, halfway back": partial(searched, each_member, 0.5),
    "trees alone": partial(only, "trees"),
    "linear alone": partial(only, "linear"),
    "best member": best_member,
}


def by_set(results: Results) -> dict[str, Array]:
    """The values of all queries of each set."""
    names = dict.fromkeys(name for name, _ in results)
    return {name: np.concatenate([one.values for (own, _), one in results.items() if own == name]) for name in names}


def pooled(values: Mapping[str, Array], reference: Mapping[str, Array]) -> tuple[float, float]:
    """The mean over sets of the mean difference over queries, and its standard error."""
    differences = [own - reference[name] for name, own in values.items()]
    error = np.sqrt(sum(each.var(ddof=1) / len(each) for each in differences)) / len(differences)
    return float(np.mean([each.mean() for each in differences])), float(error)


def best_elsewhere(values: Mapping[str, Mapping[str, Array]], reference: str) -> dict[str, Array]:
    """On each set the values of the candidate that is best on all others."""

    def gain(candidate: str, left_out: str) -> float:
        own, other = ({name: each for name, each in values[one].items() if name != left_out} for one in (candidate, reference))
        return pooled(own, other)[0]

    names = list(values[reference])
    return {name: values[max(values, key=lambda candidate: gain(candidate, name))][name] for name in names}


def report(title: str, found: Mapping[str, Results], reference: str) -> None:
    """One table, best first."""
    if reference not in found:
        return
    values = {candidate: by_set(results) for candidate, results in found.items()}
    seconds = {candidate: f"{np.mean([one.seconds for one in results.values()]):.1f}" for candidate, results in found.items()}
    if len(values[reference]) > 1 and len(values) > 1:
        values[OTHERS] = best_elsewhere(values, reference)
    names, rows = list(values[reference]), []
    for candidate in sorted(values, key=lambda candidate: -pooled(values[candidate], values[reference])[0]):
        own = [float(each.mean()) for each in values[candidate].values()]
        difference, error = pooled(values[candidate], values[reference])
        z = f"{difference / error:+.1f}" if error else ""
        shown = [f"{number:.4f}" for number in (np.mean(own), *own)]
        rows.append([candidate, shown[0], f"{difference:+.4f}", f"{error:.4f}", z, *shown[1:], seconds.get(candidate, "")])
    table(title, title, ["nDCG@10", "mean", f"to {reference}", "error", "z", *names, "s a fit"], rows)


def main(arguments: list[str] | None = None) -> int:
    options = parser(__doc__, "choose_defaults")
    options.add_argument("rankers", nargs="*", help=f"of {', '.join(CANDIDATES)} and blend; by default all")
    options.add_argument("--candidates", nargs="+", default=[], metavar="METHOD", help="further ones, such as 'ridge(l2=0.5)'")
    options.add_argument("--only-candidates", action="store_true", help="leave out those that are listed here, but for the defaults")
    options.add_argument("--folds", nargs="+", type=int, choices=range(FOLDS), default=range(FOLDS))
    options.add_argument("--ways", nargs="+", choices=(VALIDATED, CROSS_FITTED), default=(VALIDATED, CROSS_FITTED), help="to fit")
    options.add_argument("--sizes", action="store_true", help="artificial sets of 500 to 4,000 queries in the place of all others")
    given = options.parse_args(arguments)
    sets = training_sets(given.data, given.tiny, given.sizes)
    rankers, names = asked(options, "ranker", given.rankers, [*CANDIDATES, "blend"]), asked(options, "set", given.sets, sets)
    folds = [fold for name in names for fold in folds_of(name, sets[name](), given.folds)]
    study = Study(given.cache, given.version or version())
    for ranker in rankers:
        if ranker == "blend":
            rules = study.rules(folds)
            report("blend: rules", rules, next(iter(rules), ""))
        listed = [] if given.only_candidates else [f"{ranker}({settings})" for settings in CANDIDATES.get(ranker, [])]
        further = [each for each in given.candidates if parse_method(each).name == ranker]
        for way in given.ways if ranker in CANDIDATES or further else ():
            report(f"{ranker}, {way}", study.each(folds, [ranker, *listed, *further], way), ranker)
    print(*study.failed, sep="\n", file=sys.stderr)
    return int(bool(study.failed))


if __name__ == "__main__":
    sys.exit(main())
