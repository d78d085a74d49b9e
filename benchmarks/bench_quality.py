"""Claim: at their defaults the blend, and LambdaMART, rank unseen queries at least as well as LightGBM, XGBoost and CatBoost do.

Quality, not speed. This reads test data, and is run once when defaults are settled; they are chosen by choose_defaults.py, which never
does. From ``--data FOLDER`` (by default ``../shared/data``), and of each ``--more FOLDER`` that holds five parts:

- MQ2008, OHSUMED, ClueWeb09: fold k trains on the parts k, k + 1 and k + 2, validates on k + 3 and tests on k + 4, in a circle;
- LightGBM's example, of whose training queries a fifth validates; with ``--artificial FOLDER`` also letor.{train,vali,test}.npz.

Peers, as `er.compare` has them, grow at most 500 trees at their default settings, stopped early by nDCG@10 on validation data.
*Cross-fitted*: training and validation queries are dealt into five or ten parts; there is a model for each part, trained on the others and
stopped by it; their scores are divided by their standard deviation within queries, and averaged. The hardest bar is *the mean of the three
libraries, cross-fitted*, whose scores are divided and averaged in the same way. Every fit has one thread. Figures are the mean of nDCG@10
over test queries, 0 for those without relevant documents; p-values are of paired tests over the same queries.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from study import (
    EXAMPLE,
    IN_PARTS,
    MEASURE,
    Array,
    Score,
    artificial,
    cached_arrays,
    cross_fit_scores,
    five_folds,
    join_sets,
    parser,
    select_names,
    values_of,
    version,
)
from threadpoolctl import threadpool_limits
from timing import table

import exactrank as er
from exactrank._support.json_values import json_value
from exactrank.compare.contender import Contender, ContenderTask, Fitted
from exactrank.compare.contenders import as_contender
from exactrank.compare.contenders.peer import Peer
from exactrank.compare.contenders.ranker import RankerContender
from exactrank.compare.statistics import paired_t, randomization
from exactrank.data.folds import Fold, deal_folds
from exactrank.data.ranking_data import checksum
from exactrank.learning.objectives.within_query import deviation

#: By the convention of LETOR's scripts, for MQ2008, and what is published for it: the mean of the five folds.
LETOR = ("MeanNDCG", "nDCG@10", "AP")
PUBLISHED = {
    "RankSVM-Struct": ("0.4832", "0.2279", "0.4696"),
    "ListNet": ("-", "0.2303", "-"),
    "AdaRank-MAP": ("0.4915", "0.2288", "0.4764"),
    "AdaRank-NDCG": ("0.4950", "0.2307", "0.4824"),
    "RankBoost": ("0.4850", "0.2255", "0.4775"),
}
STRENGTHS = 10.0 ** np.arange(-3, 7)


class ScikitRidge(Contender):
    """scikit-learn's ridge regression of the grades on standardized features, of the strength that is best on validation data."""

    name = "scikit-learn's Ridge"
    about = "Ridge regression of scikit-learn"
    libraries = ("sklearn",)

    def __repr__(self) -> str:
        return f"ScikitRidge({STRENGTHS.tolist()})"

    def fit(self, task: ContenderTask, settings: Mapping[str, Any]) -> Fitted:
        train, valid = task.fold.train, task.fold.valid
        models = [make_pipeline(StandardScaler(), Ridge(alpha=alpha)).fit(train.values.astype(np.float64), train.y) for alpha in STRENGTHS]
        best = max(models, key=lambda model: values_of(valid, model.predict(valid.values)).mean())
        return Fitted({"alpha": best[-1].alpha}, lambda part, data: data.ungroup(np.asarray(best.predict(data.values), np.float64)))


@dataclass(frozen=True)
class Entry:
    """A row of the table: a method, as `er.compare` takes it, on all sets or on ``sets`` alone; or the mean of other rows.

    ``parts`` is the number of parts of a cross-fit, 0 without one.
    """

    method: str | Contender = ""
    parts: int = 0
    threads: int = 1
    sets: tuple[str, ...] = ()
    mean_of: tuple[str, ...] = ()


BLEND, LINEAR, FORESTS = "Blend", "Blend of linear members", "Blend of trees"
TWO, QUICK = "Blend, two threads", "Blend, seconds=10, two threads"
RMSE = "catboost(loss_function='QueryRMSE')"
#: Other libraries at the defaults that `er.compare` has for them, which but for the rates are their own; the same cross-fitted; and others.
PEERS = {"LightGBM": "lightgbm", "XGBoost": "xgboost", "CatBoost YetiRank": "catboost"}
CROSSED = {
    f"{name}, cross-fitted{', 10 parts' if parts == 10 else ''}": Entry(method, parts)
    for parts, methods in ((5, {**PEERS, "CatBoost QueryRMSE": RMSE}), (10, PEERS))
    for name, method in methods.items()
}
MEANS = {
    f"Mean of the three{end}": Entry(mean_of=tuple(f"{name}{end}" for name in PEERS))
    for end in (", cross-fitted", ", cross-fitted, 10 parts")
}
OTHERS = {
    **{name: Entry(method) for name, method in PEERS.items()},
    **CROSSED,
    **MEANS,
    "XGBoost, its own rate of 0.3": Entry("xgboost(eta=0.3)"),
    "CatBoost YetiRank, its own rate of 0.03": Entry("catboost(learning_rate=0.03, trees=1000)"),
    "CatBoost QueryRMSE": Entry(RMSE),
    "LightGBM xendcg": Entry("lightgbm(objective='rank_xendcg')"),
    ScikitRidge.name: Entry(ScikitRidge()),
}
ENTRIES = {
    BLEND: Entry("blend"),
    LINEAR: Entry("blend(members='linear')"),
    FORESTS: Entry("blend(members='trees')"),
    **{name: Entry(name.lower()) for name in ("LambdaMART", "DirectRank", "LambdaRank", "Ridge")},
    "DirectRankTrees": Entry("directrank-trees"),
    "CoordinateAscent, two starts": Entry("coordinate-ascent(restarts=2)"),
    **OTHERS,
    TWO: Entry("blend", threads=2, sets=("MQ2008",)),
    QUICK: Entry("blend(seconds=10)", threads=2, sets=("MQ2008",)),
}
#: What the blend is to reach on a set.
LEAST = {"MQ2008": 0.509, "OHSUMED": 0.456, "ClueWeb09": 0.290}


@dataclass(frozen=True)
class Result:
    """The results of an entry on the test queries of all folds of a set; seconds are those of single fits."""

    values: Array
    cpu: Array
    wall: Array
    letor: Array  #: the means of the five folds, by the measures of `LETOR`


#: By entry, then by set.
Results = Mapping[str, Mapping[str, Result]]


def example(folder: Path) -> list[Fold]:
    both = [er.read(folder / f"rank.{one}.gz") for one in ("train", "test")]
    train, test = (join_sets([one], max(each.n_features for each in both)) for one in both)
    held_out = deal_folds(train.n_queries, 5, seed=0) == 0
    return [Fold("1", train.take_queries(~held_out), train.take_queries(held_out), test)]


def given_parts(folder: Path) -> list[Fold]:
    loaded = (np.load(folder / f"letor.{one}.npz") for one in ("train", "vali", "test"))
    return [Fold("1", *(er.RankingData.from_arrays(each["X"], each["y"], qid=each["qid"]) for each in loaded))]


def tiny(seed: int) -> list[Fold]:
    data = artificial(30, 8, 4, noise=0.5, bent=0.3, seed=seed)
    thirds = [data.take_queries(np.arange(30) % 3 == k) for k in range(3)]
    return [Fold(str(k + 1), thirds[k], thirds[(k + 1) % 3], thirds[(k + 2) % 3]) for k in range(2)]


def readers_of(options: Any) -> dict[str, Callable[[], list[Fold]]]:
    """Return a function for each set that reads its folds."""
    if options.tiny:
        return {"tiny 1": partial(tiny, 1), "tiny 2": partial(tiny, 2)}
    readers = {folder.name: partial(five_folds, folder) for folder in (*(options.data / name for name in IN_PARTS), *options.more)}
    readers["LightGBM's example"] = partial(example, options.data / EXAMPLE)
    return readers | ({"artificial": partial(given_parts, options.artificial)} if options.artificial else {})


def scorer(contender: Contender, fold: Fold, threads: int) -> Score:
    """Return the scorer that ``contender`` learns from the training and validation part of ``fold``."""
    task = ContenderTask("", fold, np.arange(fold.test.n_documents), MEASURE, 0, threads)
    return partial(contender.fit(task, {}).scores, "test")


def fit_entry(entry: Entry, fold: Fold) -> dict[str, Any]:
    """Return scores and values of the test queries of ``fold``, and the seconds that fitting and scoring took."""
    contender, cpu, wall = as_contender(entry.method), time.process_time(), time.perf_counter()
    with threadpool_limits(entry.threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Failed to import numba")  # CatBoost would compile the measure
        if entry.parts:

            def fit(seen: er.RankingData, chooses: er.RankingData) -> Score:
                return scorer(contender, Fold(fold.name, seen, chooses, fold.test), entry.threads)

            scores = cross_fit_scores(fit, join_sets([fold.train, fold.valid]), fold.test, entry.parts)[1]
        else:
            scores = scorer(contender, fold, entry.threads)(fold.test)
    seconds = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return scored(fold, scores) | seconds


def scored(fold: Fold, scores: Array) -> dict[str, Any]:
    letor = [er.evaluate(fold.test, scores, name, preset="letor", threads=1)[name].mean for name in LETOR]
    return {"scores": scores, "values": values_of(fold.test, scores), "letor": letor}


def mean_of(members: list[dict[str, Any]], fold: Fold) -> dict[str, Any]:
    """Return what `fit_entry` does, for the mean of the scores of ``members`` after division by their deviation within queries."""
    scores = sum(member["scores"] / (deviation(member["scores"], fold.test.indptr) or 1.0) for member in members) / len(members)
    return scored(fold, scores) | {clock: sum(member[clock] for member in members) for clock in ("cpu", "wall")}


def identity(contender: Contender, own_version: str) -> list[Any]:
    """Return what distinguishes fits of a contender: its settings, and the version of its library."""
    if isinstance(contender, RankerContender):
        return [contender.fingerprint, json_value(contender.kind(**contender.params).get_params()), own_version]
    defaults = dict(contender.defaults) if isinstance(contender, Peer) else {}
    return [contender.fingerprint, defaults, [import_module(name).__version__ for name in contender.libraries]]


def run(sets: Mapping[str, list[Fold]], names: list[str], cache: Path, own_version: str) -> dict[str, dict[str, Result]]:
    """Every entry on every set; what is in ``cache`` is not fitted again."""
    results: dict[str, dict[str, Result]] = {name: {} for name in names}
    for title, folds in sets.items():
        sums = [[checksum(data) for data in (fold.train, fold.valid, fold.test)] for fold in folds]
        outcomes: dict[str, list[dict[str, Any]]] = {}
        for name in names:
            entry = ENTRIES[name]
            if (entry.sets and title not in entry.sets) or not set(entry.mean_of) <= outcomes.keys():
                continue
            if entry.mean_of:
                members = [[outcomes[member][k] for member in entry.mean_of] for k in range(len(folds))]
                outcomes[name] = [mean_of(scores, fold) for scores, fold in zip(members, folds, strict=True)]
            else:
                of = [identity(as_contender(entry.method), own_version), entry.parts, entry.threads]
                outcomes[name] = [
                    cached_arrays(cache, (title, fold.name, name), [*of, own], partial(fit_entry, entry, fold))
                    for fold, own in zip(folds, sums, strict=True)
                ]
            values = np.concatenate([outcome["values"] for outcome in outcomes[name]])
            cpu, wall = (np.array([outcome[clock] for outcome in outcomes[name]]) for clock in ("cpu", "wall"))
            results[name][title] = Result(values, cpu, wall, np.mean([outcome["letor"] for outcome in outcomes[name]], axis=0))
            print(f"{title}: {name}: {values.mean():.4f}, {cpu.mean():.1f} s per fit", file=sys.stderr, flush=True)
    return results


def difference(results: Results, first: str, second: str, title: str | None = None) -> Array:
    """By query, of the set ``title`` or of all sets that both were run on."""
    shared = [each for each in results[first] if each in results[second]] if title is None else [title]
    return np.concatenate([results[first][each].values - results[second][each].values for each in shared])


def quality(results: Results, sets: list[str]) -> list[list[str]]:
    rows = []
    for name, results_by_set in results.items():
        pooled = (
            f"{np.concatenate([results_by_set[title].values for title in sets]).mean():.4f}" if set(sets) <= set(results_by_set) else ""
        )
        rows.append([name, *(f"{results_by_set[title].values.mean():.4f}" if title in results_by_set else "" for title in sets), pooled])
    return rows


def differences(results: Results) -> list[list[str]]:
    """Of the blends and LambdaMART to every other library, over all queries."""
    rows = []
    for name in (BLEND, LINEAR, FORESTS, "LambdaMART"):
        for peer in (each for each in OTHERS if {each, name} <= results.keys()):
            d = difference(results, name, peer)
            rows.append([name, peer, f"{d.mean():+.4f}", f"{len(d):,}", f"{randomization(d):.2g}", f"{paired_t(d):.2g}"])
    return rows


Target = tuple[str, str, bool | None]  #: the target, the result, and whether it is met; None: missed by no more than chance may explain


def targets(results: Results) -> list[list[str]]:
    """All whose entries and sets were run."""
    shown = {True: "yes", False: "no", None: "within chance"}
    result = (*blend_targets(results), *level_targets(results), *time_targets(results))
    return [[target, what, shown[None if met is None else bool(met)]] for target, what, met in result]


def blend_targets(results: Results) -> Iterator[Target]:
    means = {(name, title): one.values.mean() for name, own in results.items() for title, one in own.items()}
    for name, titles in ((BLEND, LEAST), (LINEAR, ("MQ2008", "OHSUMED"))):
        for title in (each for each in titles if (name, each) in means):
            own = means[name, title]
            if name == BLEND:
                yield f"{name} on {title} at least {LEAST[title]}", f"{own:.4f}", own >= LEAST[title]
            if peers := {peer: means[peer, title] for peer in PEERS if (peer, title) in means}:
                best = max(peers, key=peers.__getitem__)
                yield f"{name} above every peer's default on {title}", f"{own:.4f}, {best} {peers[best]:.4f}", own > peers[best]
    gains = {peer: difference(results, BLEND, peer) for peer in (*PEERS, *CROSSED, *MEANS) if {BLEND, peer} <= results.keys()}
    for peer in (each for each in PEERS if each in gains):
        shown, mean, p = tested(gains[peer])
        yield f"{BLEND} above {peer}, all queries, p < 0.01", shown, mean > 0 and p < 0.01
    for bar, peers in (("the best peer cross-fitted", CROSSED), ("the mean of the three", MEANS)):
        if hardest := min((peer for peer in peers if peer in gains), key=lambda peer: gains[peer].mean(), default=None):
            shown, mean, _ = tested(gains[hardest])
            yield f"{BLEND} above {bar} ({hardest}), all queries", shown, mean > 0


def level_targets(results: Results) -> Iterator[Target]:
    for peer in (peer for peer in PEERS if {"LambdaMART", peer} <= results.keys()):
        shown, mean, p = tested(difference(results, "LambdaMART", peer))
        yield f"LambdaMART above {peer}, all queries, p < 0.05", shown, mean > 0 and p < 0.05
    pairs = {("LambdaMART", "LightGBM"): True, ("Ridge", ScikitRidge.name): True, ("DirectRank", "LambdaRank"): False}
    for (name, other), on_each in pairs.items():
        if {name, other} <= results.keys():
            for title in results[name] if on_each else (None,):
                shown, mean, p = tested(difference(results, name, other, title))
                met = None if mean < 0 and p >= 0.05 else mean >= 0
                yield f"{name} at least level with {other}, {title or 'all queries'}", shown, met


def time_targets(results: Results) -> Iterator[Target]:
    slowest = {name: results[name]["MQ2008"].wall.max() for name in (TWO, QUICK) if name in results}
    if TWO in slowest:
        yield f"{TWO}: a fold of MQ2008 below 60 s", f"{slowest[TWO]:.1f} s", slowest[TWO] < 60
    if QUICK in slowest:
        yield f"{QUICK}: kept within 10%", f"{slowest[QUICK]:.1f} s", slowest[QUICK] <= 11
    if len(slowest) == 2:
        shown, mean, _ = tested(difference(results, QUICK, TWO))
        yield f"{QUICK}: within 0.003 of the full one", shown, mean >= -0.003


def tested(d: Array) -> tuple[str, float, float]:
    """The mean of differences and its p-value by randomization, in words and as numbers."""
    mean, p = d.mean(), randomization(d)
    return f"{mean:+.4f} (p = {p:.2g})", mean, p


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__, "quality")
    options.add_argument(
        "--artificial", type=Path, default=os.environ.get("ARTIFICIAL") or None, help="folder with letor.{train,vali,test}.npz"
    )
    options.add_argument("--more", type=Path, nargs="+", default=[], metavar="FOLDER", help="other sets in five parts")
    options.add_argument("--only", nargs="+", metavar="CONTENDER", help="of the table; by default all")
    arguments_of_run = options.parse_args(arguments)
    if not (arguments_of_run.tiny or arguments_of_run.data.is_dir()):
        print(f"skipped: there is no {arguments_of_run.data}; give --data")
        return
    readers = readers_of(arguments_of_run)
    names, chosen = (
        select_names(options, "contender", arguments_of_run.only, ENTRIES),
        select_names(options, "set", arguments_of_run.sets, readers),
    )
    results = run({title: readers[title]() for title in chosen}, names, arguments_of_run.cache, arguments_of_run.version or version())
    results = {name: own for name, own in results.items() if own}
    sizes = {title: len(next(own[title] for own in results.values() if title in own).values) for title in chosen}
    header = ["test nDCG@10", *(f"{title} ({size:,} queries)" for title, size in sizes.items()), f"all {sum(sizes.values()):,}"]
    table("sets", "Test nDCG@10, queries without relevant documents counted as 0", header, quality(results, chosen))
    seconds = [[name, *(f"{own[title].cpu.mean():.1f}" if title in own else "" for title in chosen)] for name, own in results.items()]
    table("seconds", "Seconds of the CPU to fit and to score the test part, mean over folds", ["s a fit", *chosen], seconds)
    if "MQ2008" in chosen:
        rows = [[f"{name} (published)", *shown] for name, shown in PUBLISHED.items()]
        rows += [[name, *(f"{value:.4f}" for value in own["MQ2008"].letor)] for name, own in results.items()]
        table("letor", "MQ2008 by the convention of LETOR's scripts, mean of the five folds", ["", "MeanNDCG", "NDCG@10", "MAP"], rows)
    header = ["", "against", "difference of nDCG@10", "queries", "p (randomization)", "p (t)"]
    table("differences", "Paired differences over the queries of all sets", header, differences(results))
    table("targets", "Targets", ["target", "found", "met"], targets(results))


if __name__ == "__main__":
    sys.exit(main())
