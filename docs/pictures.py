"""The pictures of the documentation, drawn by the library on the data of the pages that show them: ``make pictures``.

``python docs/pictures.py [NAME ...]`` writes all of them, or some, to docs/img. The same versions of the libraries give the same bytes.
"""

import os
import re
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ["SOURCE_DATE_EPOCH"] = "0"  # the date that matplotlib writes into a picture

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

import exactrank as er
from exactrank._support.pictures import COLORS, QUIET, picture_style
from exactrank.compare.statistics import all_pairs
from exactrank.data.synthetic import CubicPolynomial

FOLDER = Path(__file__).parent / "img"
BLUE, ORANGE, GOLD, GREY = COLORS[0], COLORS[1], COLORS[4], QUIET
PATH, NUMBER = re.compile(r'(?<= d=")[^"]+'), re.compile(r"\d+\.\d{3,}")
PICTURES: dict[str, Callable[[Path], None]] = {}


def picture(name: str) -> Callable[[Callable[[Path], None]], Callable[[Path], None]]:
    """Registers what writes the picture ``name`` to a path."""

    def registered(write: Callable[[Path], None]) -> Callable[[Path], None]:
        PICTURES[name] = write
        return write

    return registered


@contextmanager
def panels(path: Path, width: float, height: float, *shape: int, **grid: Any) -> Iterator[Any]:
    """The axes of a new figure, which is written to ``path`` in the end."""
    figure = Figure(figsize=(width, height), layout="constrained")
    yield figure.subplots(*shape, **grid)
    figure.savefig(path, dpi=150)


def linear_example() -> tuple[er.RankingData, np.ndarray]:
    """The data of line-search.md, and scores of a linear model whose first weight is too small."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    y = np.digitize(X @ [2.0, -1.0, 0.5, 0.0, 0.0] + rng.normal(size=3000), [1.0, 2.5, 4.0])
    data = er.RankingData.from_arrays(X, y, qid=np.arange(3000) // 20)
    return data, data.X @ [1.0, -1.0, 0.5, 0.0, 0.0]


def bent_example() -> list[er.RankingData]:
    """Training, validation and test data whose fourth feature counts by its distance from 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 5))
    good = X @ [2.0, -1.0, 0.5, 0.0, 0.0] + 2 * np.abs(X[:, 3]) + rng.normal(size=8000)
    data = er.RankingData.from_arrays(X, np.digitize(good, [2.0, 3.5, 5.0]), qid=np.arange(8000) // 20)
    return [data.take_queries(part) for part in np.split(np.arange(400), [200, 300])]


@picture("step-function.png")
def step_function(path: Path) -> None:
    """README.md, index.md and line-search.md: the measure for every value of one weight, and its top seen closer."""
    data, scores = linear_example()
    f = er.profile(data, scores, data.X[:, 0], "nDCG@5")
    best = f.best()
    with panels(path, 9, 3.4, 1, 2, width_ratios=[3, 2]) as (whole, near):
        for axes, low, high in ((whole, -2.0, 4.0), (near, best.middle() - 0.05, best.middle() + 0.05)):
            f.plot(axes, low=low, high=high, color=BLUE, label="nDCG@5, exactly")
            axes.axvspan(best.low, best.high, color=ORANGE, alpha=0.3, linewidth=1)
            axes.plot(best.middle(), best.value, "o", color=ORANGE, label=f"best: {best.value:.4f} at +{best.middle():.3f}")
            axes.set_xlabel("change of the first weight")
        whole.plot(0.0, f(0.0), "s", color="black", label=f"the model: {f(0.0):.4f}")
        whole.axvspan(best.middle() - 0.05, best.middle() + 0.05, color=GREY, alpha=0.2, linewidth=0)
        whole.set_ylabel("nDCG@5")
        whole.set_title(f"{len(f.breakpoints):,} steps, each known exactly")
        near.set_title("around the best interval")
        whole.legend(loc="lower right")


@picture("lines.svg")
def lines(path: Path) -> None:
    """line-search.md: the scores of one query's documents are lines, and the measure steps where two of them cross."""
    grades, slopes, scores = np.array([2, 1, 0, 1, 0]), np.array([1.2, 0.1, -0.7, 0.6, -0.1]), np.array([-0.6, 0.35, 0.8, -0.2, 0.55])
    data = er.RankingData.from_arrays(slopes[:, None], grades, group=[5])
    f = er.profile(data, scores, slopes, "nDCG@3")
    alpha = np.array([-0.2, 1.6])
    with panels(path, 7, 5, 2, 1, sharex=True, height_ratios=[3, 2]) as (above, below):
        for grade, slope, score in zip(grades, slopes, scores, strict=True):
            above.plot(alpha, score + alpha * slope, color=[GREY, GOLD, ORANGE][grade], linewidth=1.8)
            above.annotate(f"grade {grade}", (alpha[1], score + alpha[1] * slope), (4, -3), textcoords="offset points", fontsize="small")
        for point in f.breakpoints[(f.breakpoints > alpha[0]) & (f.breakpoints < alpha[1])]:
            for axes in (above, below):
                axes.axvline(point, color=BLUE, linewidth=0.7, linestyle=":")
        f.plot(below, low=alpha[0], high=alpha[1], color=BLUE, linewidth=1.8)
        above.set_ylabel("score of each document")
        below.set_ylabel("nDCG@3")
        below.set_xlabel(r"change $\alpha$ of the weight")
        below.set_xlim(*alpha)


@picture("fusion.png")
def fusion(path: Path) -> None:
    """README.md, index.md and fuse.md: the measure against the weight of two retrievers."""
    rng = np.random.default_rng(7)
    rows: list[pd.DataFrame] = []
    for query in range(60):
        grade = rng.choice(3, size=60, p=[0.8, 0.15, 0.05])
        both = {"bm25": 12 + 2 * (grade + rng.normal(size=60)), "dense": 0.6 + 0.1 * (0.8 * grade + rng.normal(size=60))}
        results = {name: np.where((-s).argsort().argsort() < 40, s, np.nan) for name, s in both.items()}
        rows.append(pd.DataFrame({"query_id": query, "relevance": grade, **results}))
    er.fuse(er.systems_from_frame(pd.concat(rows), ["bm25", "dense"]), measure="nDCG@10").plot(path=path)


@picture("judgments.svg")
def judgments(path: Path) -> None:
    """judgments-tutorial.md: the measure against the weight, by people, by a machine, and corrected; the page has the data."""
    rng = np.random.default_rng(7)
    grade = rng.choice(4, size=(2000, 20), p=[0.6, 0.2, 0.13, 0.07])
    bm25, dense = (gain * grade + 1.2 * rng.normal(size=grade.shape) for gain in (0.8, 1.1))
    flatters = (bm25 > 1.5) & (rng.random(grade.shape) < 0.6)
    by_machine = np.clip(grade + flatters - (rng.random(grade.shape) < 0.1), 0, 3)

    def data(grades: np.ndarray, queries: int) -> er.RankingData:
        X = np.stack([scores[:queries].ravel() for scores in (bm25, dense)], axis=1)
        return er.RankingData.from_arrays(X, grades[:queries].ravel(), group=[20] * queries, feature_names=["bm25", "dense"])

    people, machine, truth = data(grade, 40), data(by_machine, 2000), data(grade, 2000)
    curves = {
        "2,000 queries by the machine": (er.fuse(machine, folds=0, bootstrap=0), GREY),
        "40 queries by people": (er.fuse(people, folds=0, bootstrap=0), ORANGE),
        "corrected": (er.fuse(people, machine=machine, folds=0, bootstrap=0), BLUE),
        "what people would say of all": (er.fuse(truth, folds=0, bootstrap=0), "black"),
    }
    weights = np.linspace(0, 1, 801)
    with panels(path, 8, 4) as axes:
        for name, (fusion, color) in curves.items():
            axes.plot(weights, fusion.sweep.steps(weights), color=color, linewidth=1.2, label=name)
            axes.plot(fusion.weights[1], fusion.value, "o", color=color)
        axes.set_xlabel("weight of the dense retriever (that of BM25 is 1 minus this)")
        axes.set_ylabel("nDCG@10, mean over queries")
        axes.legend(loc="lower center")


@picture("two-measures.png")
def two_measures(path: Path) -> None:
    """two-measures.md: the front of relevance and revenue over the weights of a linear model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 4))
    y = np.digitize(X @ [1.0, 0.5, 0.0, 0.0] + rng.normal(size=1200), [0.5, 1.5, 2.5])
    revenue = np.exp(X @ [-0.3, 0.0, 0.8, 0.0])
    data = er.RankingData.from_arrays(X, y, group=[20] * 60, extra_columns={"revenue": revenue})
    er.pareto(data, er.DirectRank("nDCG@10", bags=0).fit(data), ["nDCG@10", "revenue@10"]).plot(path=path)


@picture("three-systems.png")
def three_systems(path: Path) -> None:
    """hybrid-tutorial.md: the measure over all weights of three systems, and the certified optimum."""
    rng = np.random.default_rng(4)
    grade = rng.choice(4, size=(120, 80), p=[0.7, 0.15, 0.1, 0.05])
    age = rng.exponential(90, size=grade.shape) / (1 + 0.7 * grade)
    bm25 = 11 + 2.5 * (0.6 * grade + rng.normal(size=grade.shape))
    dense = 0.7 + 0.1 * (0.7 * grade + rng.normal(size=grade.shape))
    results = [np.where((-s).argsort(axis=1).argsort(axis=1) < 40, s, np.nan) for s in (bm25, dense)]
    systems = [*results, np.where(np.isnan(results).all(axis=0), np.nan, 0.5 ** (age / 30))]
    frame = pd.DataFrame({"query_id": np.repeat(np.arange(120), 80), "relevance": grade.ravel()})
    names = ["bm25", "dense", "recency"]
    frame[names] = np.stack([s.ravel() for s in systems], axis=1)
    data = er.systems_from_frame(frame[frame["query_id"] < 90], names)
    tuned = er.fuse(data, measure="nDCG@10", bootstrap=0)
    steps = 50
    weights = np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
    measure = tuned.measure.on(data)
    values = [measure.mean(data.group(replace(tuned, weights=tuple(w)).predict(data))) for w in weights]
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]])
    with panels(path, 5.6, 4.2) as axes:
        x, y = (weights @ corners).T
        axes.figure.colorbar(axes.tricontourf(x, y, values, levels=16, cmap="Blues"), label="nDCG@10", shrink=0.7)
        axes.plot(*(np.array(tuned.weights) @ corners), "o", color=ORANGE, label=f"best: {tuned.value:.4f}")
        axes.plot(*corners.mean(axis=0), "D", color="black", label="equal weights")
        for name, corner, shift in zip(names, corners, [(0, -14), (0, -14), (0, 6)], strict=True):
            axes.annotate(f"{name} alone", corner, shift, textcoords="offset points", ha="center")
        axes.set_aspect("equal")
        axes.axis("off")
        axes.legend(loc="upper right")


@picture("optimality.png")
def optimality(path: Path) -> None:
    """optimality.md: the weights that someone set by hand, refuted."""
    data = CubicPolynomial(documents=10, features=5, noise=0.5).data(60)
    model = er.Model(er.models.Linear(np.array([-0.1, -0.8, 0.2, -0.2, -0.4]), data.feature_names))
    er.inspect.optimality(data, model, measure="nDCG@5").plot(path=path, weights=2)


@picture("smoothness.png")
def smoothness(path: Path) -> None:
    """smoothness.md: one weight of a linear model at a time, on more and more queries."""
    data = CubicPolynomial(documents=20, features=6, noise=0.5).data(400)
    model = er.Model(er.models.Linear(np.array([0.2, -0.5, 0.1, -0.02, -0.2, -0.3]), data.feature_names))
    er.inspect.smoothness(data, model, measure="nDCG@10", samples=[20, 100]).plot(path=path)


@picture("propensities.svg")
def propensities(path: Path) -> None:
    """clicks.md: how likely each rank is looked at, by what a log tells and by what is true."""
    simulated_clicks = er.clicks.simulate_clicks(CubicPolynomial(features=10, documents=20, document_ids=True).data(100), sessions=200)
    with panels(path, 6.5, 3.6) as axes:
        axes.plot(simulated_clicks.propensities.rank, simulated_clicks.propensities.value, "x", color=ORANGE, label="truth", zorder=3)
        simulated_clicks.clicks.propensities("harvest", seed=0).plot(axes)


@picture("importance.svg")
def importance(path: Path) -> None:
    """importance.md: what each feature is worth to a linear model."""
    source = CubicPolynomial(documents=20, features=6, noise=0.5)
    model = er.DirectRank(measure="nDCG@10").fit(source.data(200)).model_
    er.inspect.importance(source.data(200, 201), model, "nDCG@10").plot(path=path)


@picture("forces.svg")
def forces(path: Path) -> None:
    """forces.md: the force on one document while another one passes its neighbors."""
    data = er.RankingData.from_arrays(None, [3, 2, 1, 0, 0], group=[5])
    scores, moved = np.array([0.5, 1.5, -0.5, 0.9, -1.2]), np.linspace(-2.5, 2.5, 401)
    with panels(path, 9, 3.4, 1, 2, sharex=True) as both:
        for axes, measure, name in zip(
            both, (None, er.measures.NDCG()), ("RankNet: all pairs have the same weight", "LambdaRank: pairs weighted by nDCG"), strict=True
        ):
            rule = er.losses.Lambdas(measure)
            results = [er.losses.slopes(data, np.concatenate([scores[:4], [at]]), rule).slope for at in moved]
            for place, color in ((0, BLUE), (2, GOLD)):
                force = np.array(results)[:, place]
                force[1:][np.abs(np.diff(force)) > 0.02 * np.ptp(force) + 1e-3] = np.nan
                axes.plot(moved, force, color=color, label=f"on the document of grade {data.y[place]:.0f}, at {scores[place]:g}")
            for score in scores[:4]:
                axes.axvline(score, color=GREY, linewidth=0.7, linestyle=":")
            axes.set_title(name)
            axes.set_xlabel("score of the document that moves")
        both[0].set_ylabel("force")
        both[0].legend()


@picture("lambda-functions.svg")
def lambda_functions(path: Path) -> None:
    """lambda-functions.md: the force of a pair by the lead of its better document."""
    data, lead = er.RankingData.from_arrays(None, [1, 0], group=[2]), np.linspace(-3, 3, 241)
    with panels(path, 7, 3.2) as axes:
        for link, style in (("logistic", "-"), ("step", "--"), ("spring", "-.")):
            rule = er.losses.Lambdas(None, link=link)
            axes.plot(lead, [er.losses.slopes(data, np.array([d, 0.0]), rule).slope[0] for d in lead], style, linewidth=1.8, label=link)
        axes.axvline(1.0, color=GREY, linewidth=0.8, linestyle=":")
        axes.annotate("margin = 1", (1.0, 3.2), (4, 0), textcoords="offset points", fontsize="small", color=GREY)
        axes.set_xlabel("lead of the better document, $s_i - s_j$")
        axes.set_ylabel("force of the pair")
        axes.legend()


@picture("differences.svg")
def differences(path: Path) -> None:
    """statistics.md: the differences of two rankers, query by query, and what chance alone would make of their mean."""
    train, valid, _ = bent_example()
    rankers = {"network": er.ListNet(hidden=10), "ListNet": er.ListNet()}
    values = {name: er.evaluate(valid, ranker.fit(train).predict(valid), "nDCG@5").per_query[0] for name, ranker in rankers.items()}
    values["ridge"] = er.evaluate(valid, er.Ridge().fit(train).predict(valid), "nDCG@5").per_query[0]
    (pair,) = all_pairs({name: values[name] for name in ("ListNet", "ridge")})
    (other,) = all_pairs({name: values[name] for name in ("network", "ListNet")})
    rng = np.random.default_rng(0)
    with panels(path, 9, 4.6, 2, 2) as rows:
        for (left, right), result in zip(rows, (other, pair), strict=True):
            d = values[result.first] - values[result.second]
            left.stairs(np.sort(d)[::-1], fill=True, color=BLUE)
            left.axhline(0, color="black", linewidth=0.6)
            left.set_title(f"{result.first} against {result.second}: {result.wins} wins, {result.ties} ties, {result.losses} losses")
            left.set_ylabel("difference in nDCG@5")
            chance = (rng.choice([-1, 1], size=(20000, len(d))) * d).mean(axis=1)
            right.hist(chance, bins=60, color=GREY, alpha=0.6, histtype="stepfilled")
            right.axvline(d.mean(), color=ORANGE, linewidth=1.8)
            right.set_title(f"mean {result.difference:+.4f}, p = {result.p['randomization']:.2g}")
            right.set_yticks([])
            right.locator_params(axis="x", nbins=5)
        rows[1][0].set_xlabel("queries, sorted by their difference")
        rows[1][1].set_xlabel("mean difference by chance (grey) and as observed (orange)")


@picture("peeking.svg")
def peeking(path: Path) -> None:
    """statistics.md: intervals of a mean difference that is 0, as queries come in."""
    rng = np.random.default_rng(211)  # one of the few in a hundred in which it is easy to see
    d = np.clip(0.15 * rng.standard_normal(400), -1, 1)
    queries = np.arange(10, 401, 2)
    always = np.array([er.statistics.always_valid(d[:n]).interval for n in queries])
    deviations = np.array([d[:n].std(ddof=1) / np.sqrt(n) for n in queries])
    means = np.array([d[:n].mean() for n in queries])
    with panels(path, 8, 3.6) as axes:
        axes.fill_between(queries, always[:, 0], always[:, 1], color=BLUE, alpha=0.25, linewidth=0, label="always-valid interval")
        axes.fill_between(
            queries, means - 1.96 * deviations, means + 1.96 * deviations, color=GREY, alpha=0.5, linewidth=0, label="t interval"
        )
        axes.plot(queries, means, color=ORANGE, label="mean so far")
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_ylim(-0.16, 0.16)
        axes.set_xlabel("queries")
        axes.set_ylabel("difference in nDCG@10")
        axes.legend(loc="upper right")


@picture("cutoffs.png")
def cutoffs(path: Path) -> None:
    """cutoffs.md: the value of every threshold, for a utility and for a guarantee."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 5))
    y = X @ [2.0, -1.0, 0.5, 0.0, 0.0] + rng.normal(size=8000) > 2.5
    qid = np.repeat(np.arange(400), 20)
    train, valid = (er.RankingData.from_arrays(X[rows], y[rows], qid=qid[rows]) for rows in (qid < 200, qid >= 200))
    model = er.Ridge().fit(train).model_
    with panels(path, 9, 3.6, 1, 2) as (left, right):
        er.cutoff(valid, model, "utility(gain=1, cost=0.2)").plot(left)
        er.cutoff(valid, model, "recall >= 0.9 with probability 0.95").plot(right)
        left.set_ylim(-0.2, None)


@picture("measures.svg")
def measures(path: Path) -> None:
    """measures.md: the worth of each rank, relative to the first."""
    rank = np.arange(1, 16)
    worth = {
        "nDCG: 1 / log2(1 + r)": 1 / np.log2(1 + rank),
        "nDCG, discount='letor'": np.where(rank < 2, 1, 1 / np.log2(np.maximum(rank, 2))),
        "RR, ERR: 1 / r": 1 / rank,
        "RBP: 0.8^(r - 1)": 0.8 ** (rank - 1.0),
        "P@10": 1.0 * (rank <= 10),
    }
    with panels(path, 7, 3.4) as axes:
        for (name, values), mark in zip(worth.items(), "os^Dv", strict=True):
            axes.plot(rank, values, marker=mark, markersize=4, linewidth=1, label=name)
        axes.set_xlabel("rank")
        axes.set_ylabel("worth of the rank")
        axes.legend()


@picture("evaluation.svg")
def evaluation(path: Path) -> None:
    """evaluate.md: the values of all queries behind a mean, and its interval."""
    data = CubicPolynomial(documents=20, features=10, noise=0.5).data(500)
    with panels(path, 9, 3, 1, 2, sharex=True, sharey=True) as both:
        for j, axes in enumerate(both):
            result = er.evaluate(data, data.ungroup(data.X[:, j]), "nDCG@10")["nDCG@10"]
            axes.hist(result.values, bins=np.linspace(0, 1, 26), color=BLUE, alpha=0.75)
            axes.axvspan(*result.interval, color=ORANGE, alpha=0.3, linewidth=0, label="95% interval of the mean")
            axes.axvline(result.mean, color=ORANGE, linewidth=1.5, label=f"mean {result.mean:.4f}")
            axes.set_title(f"ranked by feature {j + 1}")
            axes.set_xlabel("nDCG@10 of a query")
            axes.legend()
        both[0].set_ylabel("queries")


@picture("trees.svg")
def trees(path: Path) -> None:
    """trees.md: training and validation measure by the number of trees."""
    train, valid, _ = bent_example()
    history = er.LambdaMART("nDCG@5", trees=150, patience=150, learning_rate=0.1).fit(train, valid=valid).history_
    step, value, held = (np.array([getattr(one, name) for one in history]) for name in ("step", "value", "valid"))
    with panels(path, 7, 3.2) as axes:
        axes.plot(step, value, label="training queries")
        axes.plot(step, held, label="validation queries")
        best = int(np.argmax(held))
        axes.plot(step[best], held[best], "o", color="black", label=f"kept: {step[best]} trees")
        axes.set_xlabel("trees")
        axes.set_ylabel("nDCG@5")
        axes.legend(loc="lower right")


@picture("large-margin.svg")
def large_margin(path: Path) -> None:
    """large-margin.md: primal and dual meet at the optimum."""
    train, _, _ = bent_example()
    history = er.StructuredRank("nDCG@5", l2=1.0, bound="convex", tolerance=1e-6).fit(train).history_
    known = [one for one in history if one.duality is not None and one.step > 0]  # the dual of no planes at all is far below
    passes = [one.step for one in known]
    with panels(path, 9, 3.2, 1, 2) as (bounds, gap):
        bounds.plot(passes, [one.duality.primal for one in known], "o-", label="primal: the weights so far")
        bounds.plot(passes, [one.duality.dual for one in known], "s-", label="dual: no weights come below")
        bounds.set_ylabel("objective (1)")
        bounds.legend()
        gap.semilogy(passes, [one.duality.gap for one in known], "o-")
        gap.axhline(1e-6, color=GREY, linestyle=":", label="tolerance")
        gap.set_ylabel("gap, as a share of the primal")
        gap.legend()
        for axes in (bounds, gap):
            axes.set_xlabel("passes over the data")


@picture("gradient-training.svg")
def gradient_training(path: Path) -> None:
    """gradient-training.md: what a network learns of a feature that bends, and a linear model does not."""
    train, valid, _ = bent_example()
    with panels(path, 9, 3.2, 1, 2) as (curve, score):
        for hidden, color, name in ((None, GREY, "linear"), (10, BLUE, "10 hidden units")):
            ranker = er.LambdaRank("nDCG@5", hidden=hidden).fit(train, valid=valid)
            curve.plot([one.step for one in ranker.history_], [one.valid for one in ranker.history_], color=color, label=name)
            X = np.zeros((201, 5), np.float32)
            X[:, 3] = np.linspace(-3, 3, 201)
            s = ranker.model_.predict(X)
            score.plot(X[:, 3], (s - s.min()) / max(np.ptp(s), 1e-9), color=color, label=name)
        score.plot(X[:, 3], np.abs(X[:, 3]) / 3, "--", color=ORANGE, linewidth=1, label="as the data was made")
        curve.set_xlabel("epoch")
        curve.set_ylabel("nDCG@5 on validation queries")
        score.set_xlabel("value of the fourth feature")
        score.set_ylabel("score, scaled to 0..1")
        curve.legend()
        score.legend()


@picture("conventions.svg")
def conventions(path: Path) -> None:
    """conventions.md: one ranking, and its nDCG@3 by the conventions of six tools."""
    scores = [0.9, 0.5, 0.5, 0.1, 0.8, 0.7]
    data = er.RankingData.from_arrays(None, [1, 0, 3, 0, 0, 0], qid=[1, 1, 1, 1, 2, 2], docid=list("abcdef"))
    presets = [None, "letor", "trec_eval", "lightgbm", "xgboost", "sklearn"]
    values = [er.evaluate(data, scores, "nDCG@3", preset=preset).means["nDCG@3"] for preset in presets]
    with panels(path, 7, 2.6) as axes:
        bars = axes.barh([preset or "exactrank" for preset in presets], values, color=[BLUE, *[GREY] * 5])
        axes.bar_label(bars, fmt="%.4f", padding=3)
        axes.invert_yaxis()
        axes.set_xlabel("nDCG@3 of the same scores")
        axes.set_xlim(0, 1)


@picture("layers.svg")
def layers(path: Path) -> None:
    """architecture.md: the layers of the package, from the contract of import-linter; ``tests/docs/test_pages.py`` compares the two."""
    names = package_layers()
    figure = Figure(figsize=(5.5, 0.34 * len(names)), layout="constrained")
    axes = figure.subplots()
    for level, row in enumerate(reversed(names)):
        width = 4 / len(row)
        for i, name in enumerate(row):
            axes.add_patch(Rectangle((i * width, level), width - 0.05, 0.85, facecolor=BLUE, alpha=0.15))
            axes.text((i + 0.5) * width - 0.025, level + 0.42, name, ha="center", va="center")
    axes.annotate("", (4.2, 0), (4.2, len(names) - 0.15), arrowprops={"arrowstyle": "->", "color": GREY})
    axes.text(4.3, len(names) / 2, "imports", color=GREY, rotation=90, va="center")
    axes.set_xlim(0, 4.5)
    axes.set_ylim(0, len(names))
    axes.axis("off")
    figure.savefig(path, metadata={"Description": " > ".join(" | ".join(row) for row in names)})


def package_layers() -> list[list[str]]:
    """Return the packages of each layer, from the uppermost to the lowest, as pyproject.toml has them."""
    contracts = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    uppermost_first = next(contract["layers"] for contract in contracts if contract["name"] == "imports point one way")
    return [re.findall(r"exactrank\.(\w+)", layer) for layer in uppermost_first]


@picture("report.png")
def report(path: Path) -> None:
    """README.md, index.md and compare.md: the first picture in the report of a comparison, as Chromium shows it."""
    from playwright.sync_api import sync_playwright

    data = CubicPolynomial(documents=20, features=10, noise=0.5).data(200)
    methods = ["ridge", "listnet", "directrank", "lambdarank", "network=lambdarank(hidden=10)", "lambdamart"]
    comparison = er.compare({"web": data}, methods, ["nDCG@10", "AP"], folds=3)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        page_file = Path(folder) / "report.html"
        comparison.write_report(page_file)
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"] if os.geteuid() == 0 else [])
        page = browser.new_page(viewport={"width": 1000, "height": 800})
        page.goto(page_file.as_uri())
        page.locator("#differences").screenshot(path=path)
        browser.close()


def shrink(made: Path) -> None:
    """A palette of 256 colors for PNG, and two decimals in the paths of SVG: what nobody sees is not kept."""
    if made.suffix == ".png":
        Image.open(made).convert("RGB").quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(made, optimize=True)
    else:
        short = PATH.sub(
            lambda path: NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), path[0]), made.read_text()
        )
        made.write_text(short)


def main(names: list[str]) -> None:
    """Draw the pictures with these names, or all."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, mpl.rc_context({"svg.hashsalt": "exactrank", "svg.fonttype": "none"}), picture_style():
        for name in names or PICTURES:
            path = Path(folder) / name
            PICTURES[name](path)
            shrink(path)
            shutil.copy(path, FOLDER / name)


if __name__ == "__main__":
    main(sys.argv[1:])
