"""Artificial comparisons: methods of known order, without training anything."""

from dataclasses import replace

import numpy as np

from exactrank import parse_measure
from exactrank.compare.comparison import Comparison
from exactrank.compare.results import (
    RANKS,
    DataSummary,
    FeatureWeights,
    Fit,
    FoldSummary,
    MethodSummary,
    PartSummary,
    Point,
    Slice,
    Trial,
)

NAMES = ("lambdamart", "directrank", "lightgbm", "listnet", "ranknet", "svmmap", "xgboost", "catboost", "adarank", "rankboost")
NASTY = ("<b>&amp;\"'", "a<script>alert(1)</script>", "méthode n°3", "</script>", "{{ 7 * 7 }}", "x" * 70)


def make_comparison(
    *, methods=4, datasets=1, folds=1, queries=40, measures=("nDCG@10", "AP"), names=None, seed=0, trials=3, weighted=False
):
    """A comparison in which earlier methods are better; every third has no curve, every other no weights, the first two a slice."""
    names = tuple(names or (NAMES[i] if i < len(NAMES) else f"method-{i + 1}" for i in range(methods)))
    rng = np.random.default_rng(seed)
    data = tuple(_data(f"data-{i + 1}", folds, queries, weighted, rng) for i in range(datasets))
    fits = [_fit(d.name, fold, i, name, measures, trials, rng) for d in data for fold in d.folds for i, name in enumerate(names)]
    return Comparison(
        datasets=data,
        methods=tuple(_method(name, trials) for name in names),
        measures={name: repr(parse_measure(name)) for name in measures},
        baseline=names[-1],
        fits=tuple(fits),
        run={
            "seed": seed,
            "trials": trials,
            "workers": 2,
            "versions": {"exactrank": "0.1.0", "numpy": "2.0"},
            "date": "2026-01-31 12:00:00 UTC",
            "machine": "<x86_64> & 2 cores",
        },
        complete=True,
        seconds=123.4,
    )


def partial(comparison, fits):
    """As it stood when it was interrupted after so many fits."""
    return replace(comparison, fits=comparison.fits[:fits], complete=False)


def with_failure(comparison, method, reason="RuntimeError: no memory left at <0x1>"):
    """All fits of a method failed."""
    return replace(
        comparison,
        fits=tuple(
            Fit(dataset=fit.dataset, fold=fit.fold, method=method, failed=reason) if fit.method == method else fit
            for fit in comparison.fits
        ),
    )


def changed_fits(comparison, **changes):
    """All fits with some fields changed."""
    return replace(comparison, fits=tuple(replace(fit, **changes) for fit in comparison.fits))


def _data(name, folds, queries, weighted, rng):
    return DataSummary(
        name=name,
        source=f"/data/{name}.txt",
        queries=5 * queries * folds,
        documents=60 * queries * folds,
        features=20,
        grades={"0": 31 * queries * folds, "1": 20 * queries * folds, "2": 9 * queries * folds},
        folds=tuple(_fold(i, queries, weighted, rng) for i in range(folds)),
    )


def _fold(i, queries, weighted, rng):
    return FoldSummary(
        name=f"fold {i + 1}",
        train=PartSummary(3 * queries, 36 * queries),
        valid=PartSummary(queries, 12 * queries),
        test=PartSummary(queries, 12 * queries),
        test_qid=tuple(f"q{i * queries + j + 1}" for j in range(queries)),
        test_weight=tuple(rng.uniform(0.5, 2, queries).tolist()) if weighted else None,
        checksum=f"{rng.integers(2**63):016x}",
    )


def _method(name, trials):
    space = {"learning_rate": "0.02 to 0.3, logarithmic", "leaves": "4 to 63, logarithmic"} if trials else {}
    return MethodSummary(name=name, about=f"What {name} does in one line.", configuration=f"Ranker({name!r})", space=space)


def _fit(dataset, fold, i, method, measures, trials, rng):
    hard = np.random.default_rng(int(fold.checksum, 16)).uniform(0.2, 1.0, len(fold.test_qid))  # a query is hard for every method
    names = dict.fromkeys([*measures, *(f"nDCG@{k}" for k in RANKS)])
    level = {name: 0.75 - 0.03 * i + 0.002 * j for j, name in enumerate(names)}
    return Fit(
        dataset=dataset,
        fold=fold.name,
        method=method,
        settings={"learning_rate": 0.1 + i / 100, "leaves": 31, "seed": 7 + i, "hidden": None, "names": ["<a>", "b"]},
        tuned_settings={"learning_rate": 0.1 + i / 100} if trials else {},
        trials=tuple(_trial(t, i, level[measures[0]]) for t in range(trials)),
        seconds=float(rng.uniform(0.05, 90)),
        memory=int(rng.integers(10**8, 10**9)),
        train={name: level[name] + 0.05 for name in measures},
        valid={name: level[name] + 0.01 for name in measures},
        test={name: _per_query(level[name], hard, rng) for name in names},
        curve=() if i % 3 == 2 else _curve(level[measures[0]], rng),
        weights=_weights(i, rng) if i % 2 == 0 else None,
        slice=_slice(i, rng) if i < 2 else None,
    )


def _per_query(level, hard, rng):
    """Values between 0 and 1, some of them 0 for every method, and a skipped query."""
    values = np.clip(level * hard + rng.normal(0, 0.08, len(hard)), 0, 1)
    values[hard < 0.25] = 0
    return tuple(None if len(hard) > 10 and j == 3 else float(v) for j, v in enumerate(values))


def _trial(t, i, level):
    if t == 2:
        return Trial({"learning_rate": 1e9, "leaves": 4}, None, 0.2, failed="DataError: diverged & stopped")
    return Trial({"learning_rate": 0.1 + i / 100 + t / 10, "leaves": 31}, level + 0.01 - t / 100, 1.5 * (t + 1))


def _curve(level, rng):
    steps = np.arange(1, 61)
    rise = level * (1 - np.exp(-steps / 12))
    noise = rng.normal(0, 0.004, len(steps))
    return tuple(Point(int(s), 0.01 * float(s) ** 1.5, float(r) + 0.05, float(r + e)) for s, r, e in zip(steps, rise, noise, strict=True))


def _weights(i, rng):
    names = tuple('<1> & "co"' if j == 1 else f"x{j}" for j in range(1, 21))
    signed = i % 4 == 0
    values = rng.normal(0, 1, len(names)) if signed else rng.dirichlet(np.ones(len(names)))
    return FeatureWeights("weight x standard deviation" if signed else "gain", names, tuple(values.tolist()))


def _slice(i, rng):
    edges = np.concatenate([[-2.0], np.sort(rng.uniform(-2, 2, 59)), [2.0]])
    middle = (edges[1:] + edges[:-1]) / 2
    low = 0.7 - 0.03 * i - 0.05 * np.abs(middle - 0.1) + rng.normal(0, 0.003, len(middle))
    high = low + (0.004 if i else 0.0)
    feature = "whose name is longer than the axis of a chart, which must cut it short" if i else "x7"
    return Slice(feature, "test" if i else "validation", tuple(edges.tolist()), tuple(low.tolist()), tuple(high.tolist()))
