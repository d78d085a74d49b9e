"""Chooses defaults by nested cross-validation over training queries; test data is never read.

    python benchmarks/choose_defaults.py                                        all rankers, all sets
    python benchmarks/choose_defaults.py lambdamart --sets MQ2008 bent          one ranker on some sets
    python benchmarks/choose_defaults.py ridge --candidates "ridge(l2=0.5)"     more candidates than those listed here

Sets are the parts 1 to 4 of MQ2008, OHSUMED and ClueWeb09, the training part of LightGBM's example, and artificial ones: small and
larger, with little and much noise, linear and bent. The queries of each are divided into five folds. Every candidate is fitted to four,
once with a fifth of them as validation data and once cross-fitted to all (``bags=5``, unless it has its own setting or cross-fits by
itself), and evaluated on the fifth.

Differences from the ranker's defaults, query by query, are pooled: d_s, their mean on set s, has the standard error e_s, and

    difference = mean over sets of d_s,    its error e = sqrt(sum of e_s^2) / number of sets,    z = difference / e.

The row "best of the other sets" has, for each set, the candidate that is best on the others: the value of the choice on a set that did not
take part in it. The candidates of ``blend`` are rules, which choose members and weights; members are cross-fitted once for all rules.
"spare part" means members of ten parts, whose scores out of fold come from a part that did not decide when they stopped. `er.Blend` does
so, and the other rules are compared with its rule.
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
from study import (
    EXAMPLE,
    IN_PARTS,
    PARTS,
    Array,
    Score,
    artificial,
    cached_arrays,
    cross_fit_scores,
    join_sets,
    parser,
    part,
    select_names,
    values_of,
    version,
)
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
#: Sizes, features, noise and curvature; results are stored under these names.
ARTIFICIAL = {
    "linear, small": partial(artificial, 60, 30, 20, noise=1.0, bent=0.1, seed=1),
    "linear, noisy": partial(artificial, 500, 25, 40, noise=2.0, bent=0.2, seed=2),
    "bent": partial(artificial, 500, 25, 40, noise=0.6, bent=0.6, seed=3),
    "bent, small": partial(artificial, 80, 60, 100, noise=1.0, bent=0.5, seed=4),
}
#: More and more queries, to see from which number on one forest is as good as ten.
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
#: The candidates that each ranker's defaults are compared with.
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
#: The number of members of each family by default, the first ones.
BY_DEFAULT = {"trees": 2, "linear": 3}
#: Ways to compute scores out of fold: the number of parts, and how many of them are spared.
OUT_OF_FOLD = {", spare part": (10, 1), "": (5, 0)}


@dataclass(frozen=True)
class Fold:
    """A division of a set whose fold ``number`` is left out for evaluation."""

    set: str
    number: int
    train: er.RankingData
    test: er.RankingData
    checksum: str  #: of the set


@dataclass(frozen=True)
class Result:
    values: Array  #: one per query
    seconds: float  #: of the CPU


#: By the name of the set and the number of the fold.
Results = dict[tuple[str, int], Result]


def training_sets(folder: Path, tiny: bool, sizes: bool = False) -> dict[str, Callable[[], er.RankingData]]:
    """Return a function for each set that reads it without its test part."""
    if tiny or sizes:
        return dict(TINY if tiny else SIZES)
    real = {name: partial(four_parts, folder / name) for name in IN_PARTS}
    return {**real, "LightGBM's example": lambda: join_sets([er.read(folder / EXAMPLE / "rank.train.gz")]), **ARTIFICIAL}


def four_parts(folder: Path) -> er.RankingData:
    return join_sets([part(folder, number) for number in PARTS[:4]])


def folds_of(name: str, data: er.RankingData, numbers: Sequence[int]) -> list[Fold]:
    dealt = deal_folds(data.n_queries, FOLDS, seed=1)
    return [Fold(name, k, data.take_queries(dealt != k), data.take_queries(dealt == k), checksum(data)) for k in numbers]


def make_ranker(method: Method, **more: Any) -> Any:
    return RANKERS[method.name](**{**more, **method.settings}, threads=1)


def fit_method(method: Method, way: str, train: er.RankingData) -> Score:
    """Fit a model to ``train``; a candidate with a setting of bags is fitted as it is."""
    if way == CROSS_FITTED:
        return make_ranker(method, **({} if "bags" in method.settings or method.name in CROSS_FITTING else CROSS_FIT)).fit(train).predict
    held_out = deal_folds(train.n_queries, 5, seed=2) == 0
    return make_ranker(method).fit(train.take_queries(~held_out), valid=train.take_queries(held_out)).predict


def with_seconds(about: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of ``work`` in one thread, and its seconds of processor time."""
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = work() | {"seconds": time.process_time() - start}
    print(f"{about}: {result['seconds']:.1f} s", file=sys.stderr, flush=True)
    return result


class Study:
    """Candidates on folds; results are stored by the fold, all settings of the candidate and the version of the package."""

    def __init__(self, cache: Path, version: str) -> None:
        self.cache, self.version = cache, version
        self.failed: list[str] = []

    def cached_result(self, fold: Fold, method: Method, way: object, work: Callable[[], dict[str, Any]]) -> dict[str, Array]:
        """Return the result of ``work``, computed once; settings that the method leaves open count as the defaults of today."""
        of = [fold.checksum, fold.number, way, method.name, json_value(make_ranker(method).get_params()), self.version]
        about = f"{method}, {way}, {fold.set}, fold {fold.number}"
        return cached_arrays(self.cache, (fold.set, fold.number, way, method), of, partial(with_seconds, about, work))

    def evaluate(self, fold: Fold, candidate: str, way: str) -> Result:
        method = parse_method(candidate)

        def work() -> dict[str, Any]:
            return {"values": values_of(fold.test, fit_method(method, way, fold.train)(fold.test))}

        result = self.cached_result(fold, method, way, work)
        return Result(result["values"], float(result["seconds"]))

    def member(self, fold: Fold, candidate: str, parts: int, spare: int) -> Array:
        """Return the scores of a member of a blend, out of fold for the training queries, then for those left out; of deviation 1."""
        method = parse_method(candidate)

        def work() -> dict[str, Any]:
            def fit(seen: er.RankingData, chooses: er.RankingData) -> Score:
                return make_ranker(method).fit(seen, valid=chooses).predict

            return {"scores": np.concatenate(cross_fit_scores(fit, fold.train, fold.test, parts, spare))}

        return unit(self.cached_result(fold, method, f"member of {parts} parts, {spare} spare", work)["scores"], fold.train)

    def evaluate_all(self, folds: Sequence[Fold], candidates: Sequence[str], way: str) -> dict[str, Results]:
        """Evaluate all candidates on all folds; a candidate that fails on one is reported and left out."""
        results: dict[str, Results] = {}
        for candidate in candidates:
            try:
                results[candidate] = {(fold.set, fold.number): self.evaluate(fold, candidate, way) for fold in folds}
            except ExactRankError as error:
                self.failed.append(f"{candidate}, {way}: {error}")
        return results

    def rules(self, folds: Sequence[Fold]) -> dict[str, Results]:
        """Evaluate the rules of the blend on all folds; there are no results if a member fails."""
        results: dict[str, Results] = {name + note: {} for note in OUT_OF_FOLD for name in RULES}  # the default first
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
                    results[name + note][fold.set, fold.number] = Result(values, time.process_time() - start)
        return results


# A blend's scores are a vector as `Study.member` returns it, so weights chosen on the first part apply to both.
Families = Mapping[str, Sequence[Array]]


def unit(scores: Array, train: er.RankingData) -> Array:
    return scores / (deviation(scores[: train.n_documents], train.indptr) or 1.0)


def each_mean(families: Families, train: er.RankingData) -> list[Array]:
    return [unit(np.mean(own, axis=0), train) for own in families.values()]


def each_member(families: Families, train: er.RankingData) -> list[Array]:
    return [one for own in families.values() for one in own]


def equal(of: Callable[[Families, er.RankingData], list[Array]], families: Families, train: er.RankingData) -> Array:
    return np.mean(of(families, train), axis=0)


def searched_weights(
    of: Callable[[Families, er.RankingData], list[Array]], back: float, families: Families, train: er.RankingData
) -> Array:
    """Return scores by the weights that are best out of fold, by exact line searches, moved by the share ``back`` towards equal ones."""
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


#: The first, with a spare part, is the default, with which the others are compared.
RULES: dict[str, Rule] = {
    "default members, families searched": partial(default_members, partial(searched_weights, each_mean, 0.0)),
    "default members, families searched_weights, halfway back": partial(default_members, partial(searched_weights, each_mean, 0.5)),
    "default members, families equal": partial(default_members, partial(equal, each_mean)),
    "families equal": partial(equal, each_mean),
    "families searched": partial(searched_weights, each_mean, 0.0),
    "families searched_weights, halfway back": partial(searched_weights, each_mean, 0.5),
    "families searched_weights, three quarters back": partial(searched_weights, each_mean, 0.75),
    "members equal": partial(equal, each_member),
    "members searched": partial(searched_weights, each_member, 0.0),
    "members searched_weights, halfway back": partial(searched_weights, each_member, 0.5),
    "trees alone": partial(only, "trees"),
    "linear alone": partial(only, "linear"),
    "best member": best_member,
}


def by_set(results: Results) -> dict[str, Array]:
    """Return the values of all queries of each set."""
    names = dict.fromkeys(name for name, _ in results)
    return {name: np.concatenate([one.values for (own, _), one in results.items() if own == name]) for name in names}


def pooled(values: Mapping[str, Array], reference: Mapping[str, Array]) -> tuple[float, float]:
    """Return the mean over sets of the mean difference over queries, and its standard error."""
    differences = [own - reference[name] for name, own in values.items()]
    error = np.sqrt(sum(each.var(ddof=1) / len(each) for each in differences)) / len(differences)
    return float(np.mean([each.mean() for each in differences])), float(error)


def best_elsewhere(values: Mapping[str, Mapping[str, Array]], reference: str) -> dict[str, Array]:
    """Return, for each set, the values of the candidate that is best on all others."""

    def gain(candidate: str, left_out: str) -> float:
        candidate_values, other = ({name: each for name, each in values[one].items() if name != left_out} for one in (candidate, reference))
        return pooled(candidate_values, other)[0]

    names = list(values[reference])
    return {name: values[max(values, key=lambda candidate: gain(candidate, name))][name] for name in names}


def report(title: str, results_by_candidate: Mapping[str, Results], reference: str) -> None:
    """Print a table, the best first."""
    if reference not in results_by_candidate:
        return
    values = {candidate: by_set(results) for candidate, results in results_by_candidate.items()}
    seconds = {
        candidate: f"{np.mean([one.seconds for one in results.values()]):.1f}" for candidate, results in results_by_candidate.items()
    }
    if len(values[reference]) > 1 and len(values) > 1:
        values[OTHERS] = best_elsewhere(values, reference)
    names, rows = list(values[reference]), []
    for candidate in sorted(values, key=lambda candidate: -pooled(values[candidate], values[reference])[0]):
        means = [float(each.mean()) for each in values[candidate].values()]
        difference, error = pooled(values[candidate], values[reference])
        z = f"{difference / error:+.1f}" if error else ""
        shown = [f"{number:.4f}" for number in (np.mean(means), *means)]
        rows.append([candidate, shown[0], f"{difference:+.4f}", f"{error:.4f}", z, *shown[1:], seconds.get(candidate, "")])
    table(title, title, ["nDCG@10", "mean", f"to {reference}", "error", "z", *names, "s per fit"], rows)


def main(arguments: list[str] | None = None) -> int:
    options = parser(__doc__, "choose_defaults")
    options.add_argument("rankers", nargs="*", help=f"of {', '.join(CANDIDATES)} and blend; by default all")
    options.add_argument("--candidates", nargs="+", default=[], metavar="METHOD", help="more candidates, such as 'ridge(l2=0.5)'")
    options.add_argument("--only-candidates", action="store_true", help="leave out the candidates listed here except the defaults")
    options.add_argument("--folds", nargs="+", type=int, choices=range(FOLDS), default=range(FOLDS))
    options.add_argument("--ways", nargs="+", choices=(VALIDATED, CROSS_FITTED), default=(VALIDATED, CROSS_FITTED), help="to fit")
    options.add_argument("--sizes", action="store_true", help="artificial sets of 500 to 4,000 queries instead of all others")
    arguments_of_run = options.parse_args(arguments)
    sets = training_sets(arguments_of_run.data, arguments_of_run.tiny, arguments_of_run.sizes)
    rankers, names = (
        select_names(options, "ranker", arguments_of_run.rankers, [*CANDIDATES, "blend"]),
        select_names(options, "set", arguments_of_run.sets, sets),
    )
    folds = [fold for name in names for fold in folds_of(name, sets[name](), arguments_of_run.folds)]
    study = Study(arguments_of_run.cache, arguments_of_run.version or version())
    for ranker in rankers:
        if ranker == "blend":
            rules = study.rules(folds)
            report("blend: rules", rules, next(iter(rules), ""))
        listed = [] if arguments_of_run.only_candidates else [f"{ranker}({settings})" for settings in CANDIDATES.get(ranker, [])]
        further = [each for each in arguments_of_run.candidates if parse_method(each).name == ranker]
        for way in arguments_of_run.ways if ranker in CANDIDATES or further else ():
            report(f"{ranker}, {way}", study.evaluate_all(folds, [ranker, *listed, *further], way), ranker)
    print(*study.failed, sep="\n", file=sys.stderr)
    return int(bool(study.failed))


if __name__ == "__main__":
    sys.exit(main())
