"""The linear methods of Tan, Xia, Guo & Wang (2013), section 3.1.2, and what becomes of them on a set.

DirectRank is theirs: one weight after the other, from random starts, the middle of the best interval, the best iterate of all starts by
validation data. SmoothGrad (Le & Smola 2007) is the convex bound on the measure, solved by a bundle, with the strength and A(r) that are
best on validation data. AdaRank is as published but for one thing: features may be taken upside down, since those of artificial
data have no right side up. Coordinate ascent and RankBoost are RankLib's, RankCosine is the variant that is consistent with NDCG.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from exactrank.arrays import PerQuery
from exactrank.data.folds import Fold
from exactrank.measures.evaluate import evaluate
from exactrank.rankers.adarank import AdaRank
from exactrank.rankers.base import Ranker
from exactrank.rankers.coordinate_ascent import CoordinateAscent
from exactrank.rankers.directrank import DirectRank
from exactrank.rankers.lambdarank import LambdaRank
from exactrank.rankers.rankboost import RankBoost
from exactrank.rankers.rankcosine import RankCosine
from exactrank.rankers.structuredrank import StructuredRank
from exactrank.reproduce.chosen import fitted
from exactrank.reproduce.experiment import Tell
from exactrank.reproduce.panels import Curve, Panel

OURS, BAGS = "DirectRank", "DirectRank, 20 bags"
PARTS = ("training", "validation", "test")


@dataclass(frozen=True)
class Setting:
    """What all methods share; DirectRank and coordinate ascent begin ``starts`` times."""

    measure: str
    starts: int
    seed: int
    threads: int | None


def directrank(setting: Setting) -> Ranker:
    """As published, for large sets."""
    return DirectRank(measure=setting.measure, bags=0, start="random", restarts=setting.starts, seed=setting.seed, threads=setting.threads)


METHODS: Mapping[str, Callable[[Setting], Ranker]] = {
    OURS: directrank,
    "LambdaRank": lambda s: LambdaRank(measure=s.measure, seed=s.seed, threads=s.threads),
    "SmoothGrad": lambda s: StructuredRank(measure=s.measure, bound="convex", A="auto", solver="bundle", seed=s.seed, threads=s.threads),
    "AdaRank": lambda s: AdaRank(measure=s.measure, rest=0, seed=s.seed, threads=s.threads),
    "coordinate ascent": lambda s: CoordinateAscent(measure=s.measure, restarts=s.starts, seed=s.seed, threads=s.threads),
    "RankBoost": lambda s: RankBoost(measure=s.measure, seed=s.seed, threads=s.threads),
    "RankCosine": lambda s: RankCosine(measure=s.measure, consistent=True, seed=s.seed, threads=s.threads),
    BAGS: lambda s: DirectRank(measure=s.measure, bags=20, seed=s.seed, threads=s.threads),
}


@dataclass(frozen=True, eq=False)
class Entry:
    """One method on one set."""

    means: tuple[float, ...]  #: of each of `PARTS`; over folds where there are several
    test: PerQuery  #: of all folds
    seconds: float  #: of training

    @classmethod
    def of(cls, ranker: Ranker, fold: Fold, by: str) -> "Entry":
        """``ranker`` on a fold, judged by the measure ``by``."""
        start = time.perf_counter()
        fitted(ranker, fold.train, fold.valid)
        taken = time.perf_counter() - start
        parts = fold.train, fold.valid, fold.test
        values = [evaluate(by, part, ranker.predict(part), threads=ranker.threads).per_query[0] for part in parts]
        return cls(tuple(float(each.mean()) for each in values), values[-1], taken)

    @classmethod
    def pooled(cls, entries: Sequence["Entry"]) -> "Entry":
        """All folds as one."""
        means = np.mean([entry.means for entry in entries], axis=0)
        return cls(tuple(means.tolist()), np.concatenate([entry.test for entry in entries]), sum(entry.seconds for entry in entries))


Entries = Mapping[str, Entry]  #: by method


def entries(name: str, methods: Iterable[str], setting: Setting, folds: Sequence[Fold], tell: Tell) -> dict[str, Entry]:
    """All ``methods`` on the set called ``name``; a number after ``@`` is a cutoff of the measure, in training alone."""
    found = {}
    for method in methods:
        tell(f"{name}, {setting.measure}, {method}")
        kind, _, cutoff = method.partition("@")
        given = replace(setting, measure=f"{setting.measure}@{cutoff}") if cutoff else setting
        found[method] = Entry.pooled([Entry.of(METHODS[kind](given), fold, setting.measure) for fold in folds])
    return found


def in_order(name: str, found: Entries) -> str:
    """Which method is best on test data, and which come after it, in a sentence."""
    order = sorted(found, key=lambda method: -found[method].means[-1])
    return f"{name}, test data, from the best to the worst: " + ", ".join(f"{m} {found[m].means[-1]:.4f}" for m in order) + "."


def by_part(name: str, measure: str, found: Entries) -> Panel:
    """Each method on each of `PARTS`."""
    curves = (Curve(method, (1.0, 2.0, 3.0), entry.means) for method, entry in found.items())
    return Panel(name, "training (1), validation (2) and test data (3)", measure, tuple(curves))
