"""Cutoffs: the best by brute force, guarantees by simulation, and models, fusions and commands that apply them."""

import json
import math

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.cutoffs.cutoff import BY, LARGEST, comparable
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.models import Linear
from exactrank.serve.app import Rules, rank_documents
from exactrank.serve.models import ServedModel
from tests.reference import cutoffs as twin

mpl.use("Agg")
GOALS = {
    "F1": ("F", 1.0),
    "F0.5": ("F", 0.5),
    "utility(gain=1, cost=0.2)": ("utility", 1.0, 0.2),
    "utility(gain=0.3, cost=1)": ("utility", 0.3, 1.0),
}
GUARANTEES = {"recall >= 0.7": ("recall", 0.7, None), "recall >= 0.5 with probability 0.6": ("recall", 0.5, 0.6)}
SCORES = st.sampled_from([-1.5, -0.0, 0.0, 0.1, 0.3, 0.5, 2.0, -math.inf])  # ties, within queries and among them
QUERY = st.lists(st.tuples(SCORES, st.integers(0, 2)), min_size=1, max_size=6)
QUERIES = st.lists(QUERY, min_size=1, max_size=7).filter(
    lambda queries: any(grade > 0 for query in queries for _, grade in query) and any(s > -math.inf for query in queries for s, _ in query)
)


def problem_of(queries, weights=None):
    """Return data, scores, and the same for the twin."""
    rows = [row for query in queries for row in query]
    data = er.RankingData.from_arrays(None, [grade for _, grade in rows], group=[len(query) for query in queries], query_weight=weights)
    return data, [s for s, _ in rows], [([s for s, _ in query], [grade >= 1 for _, grade in query]) for query in queries]


# ---- the best


@given(QUERIES, st.sampled_from(sorted(GOALS)), st.sampled_from(BY), st.booleans(), st.data())
@settings(max_examples=150, deadline=None)
def test_the_cutoff_is_the_best_of_all(queries, goal, by, weighted, draw):
    weights = draw.draw(st.lists(st.sampled_from([1.0, 0.5, 3.0]), min_size=len(queries), max_size=len(queries))) if weighted else None
    data, scores, plain = problem_of(queries, weights)
    ours = er.cutoff(data, scores, goal, by, folds=0)
    best = twin.best(GOALS[goal], plain, weights or [1.0] * len(plain), by)
    assert ours.value == pytest.approx(best, abs=1e-9)
    kept = sum(np.isfinite(ours.apply(data, np.array(scores))))
    assert ours.documents == pytest.approx(kept / len(queries))


@given(QUERIES, st.sampled_from(sorted(GOALS)), st.sampled_from(BY[:-1]))
@settings(max_examples=40, deadline=None)
def test_micro_counts_all_documents_together(queries, goal, by):
    data, scores, plain = problem_of(queries)
    ours = er.cutoff(data, scores, goal, by, average="micro", folds=0)
    assert ours.value == pytest.approx(twin.best(GOALS[goal], plain, None, by, micro=True), abs=1e-9)


@given(QUERIES, st.sampled_from(sorted(GUARANTEES)), st.sampled_from(BY[:-1]))
@settings(max_examples=80, deadline=None)
def test_the_guarantee_takes_the_largest_threshold(queries, goal, by):
    data, scores, plain = problem_of(queries)
    threshold = twin.guaranteed(GUARANTEES[goal], plain, by)
    if threshold is None:
        with pytest.raises(IncompatibleError, match=r"no cutoff on the .* guarantees it"):
            er.cutoff(data, scores, goal, by, folds=0)
        return
    ours = er.cutoff(data, scores, goal, by, folds=0)
    assert (-ours.depth if by == "depth" else ours.threshold) == pytest.approx(threshold, abs=1e-9)
    assert ours.keep(np.array(scores), data.indptr).tolist() == [
        kept for query, _ in plain for kept in twin.kept_of(query, by, threshold - 1e-9, None)
    ]


@given(QUERIES, st.sampled_from(BY[:-1]))
@settings(max_examples=50, deadline=None)
def test_what_thresholds_are_of(queries, by):
    data, scores, plain = problem_of(queries)
    ours = comparable(np.array(scores), data.indptr, by)
    theirs = [-math.inf if x is None else x for query, _ in plain for x in twin.comparable(query, by)]
    assert ours == pytest.approx(np.array(theirs), abs=1e-12)


def test_a_document_at_the_threshold_is_kept_with_those_of_its_score():
    data = er.RankingData.from_arrays(None, [1, 0, 0], group=[3])
    best = er.cutoff(data, [0.5, 0.5, 0.1], "utility(gain=2, cost=1)", folds=0)
    assert best.value == 1.0
    assert best.keep(np.array([0.5, 0.5, 0.1]), data.indptr).tolist() == [True, True, False]
    exact = er.Cutoff("score", 0.5, None, "F1", "macro", 1, 0, None, None, (0, 1), 1, 1)
    assert exact.keep(np.array([0.5, np.nextafter(0.5, 0)]), np.array([0, 2])).tolist() == [True, False]


def test_the_sweep_has_the_value_of_every_threshold_and_threads_of_ten_thousand_changes():
    rng = np.random.default_rng(0)
    y, scores = rng.random(20_000) < 0.1, rng.random(20_000)
    data = er.RankingData.from_arrays(None, y, group=[100] * 200)
    best = er.cutoff(data, scores, "F1", folds=0)
    for number in (0, 5, 7_000, 20_000):
        threshold = best.sweep.thresholds[number] if number < 20_000 else math.inf
        kept, useful, relevant = (rows.reshape(200, 100).sum(axis=1) for rows in (scores >= threshold, (scores >= threshold) & y, y))
        assert best.sweep.values[number] == pytest.approx(np.mean(2 * useful / (kept + relevant)), abs=1e-12)


# ---- new queries


def drawn(n, seed):
    """Draw queries with scores that know something of relevance."""
    rng = np.random.default_rng(seed)
    y = rng.random((n, 12)) < rng.uniform(0.1, 0.5, (n, 1))
    y[:, 0] |= ~y.any(axis=1)
    return er.RankingData.from_arrays(None, y.ravel().astype(float), group=[12] * n), (y + rng.normal(size=y.shape)).ravel(), y


@pytest.mark.parametrize(("goal", "promise"), [("recall >= 0.8", 0.8), ("recall >= 0.75 with probability 0.9", 0.9)])
@pytest.mark.parametrize("by", ["score", "depth"])
def test_recall_is_as_guaranteed_on_new_queries(goal, promise, by):
    """Of 150 calibrations with 30 queries each; without the correction for finite n, or by the best of the past, it would be missed."""
    reached = []
    for seed in range(150):
        data, scores, _ = drawn(30, seed)
        best = er.cutoff(data, scores, goal, by, folds=0)
        fresh, new_scores, y = drawn(100, 10_000 + seed)
        kept = best.keep(new_scores, fresh.indptr).reshape(y.shape)
        recall = (kept & y).sum(axis=1) / y.sum(axis=1)
        reached.append(recall.mean() if "probability" not in goal else np.mean(recall >= 0.75))
    error = np.std(reached) / math.sqrt(len(reached))
    assert promise - 2 * error <= np.mean(reached) <= promise + 0.06


def test_cross_validation_is_less_flattered_than_the_best():
    gaps = []
    for seed in range(20):
        data, scores, _ = drawn(12, seed)
        best = er.cutoff(data, scores, "F1")
        assert best.interval[0] <= best.cross_validated <= best.interval[1]
        gaps.append(best.value - best.cross_validated)
    assert np.mean(gaps) > 0.01
    large, scores, _ = drawn(2000, 1)
    assert er.cutoff(large, scores, average="micro").cross_validated == pytest.approx(
        er.cutoff(large, scores, average="micro").value, abs=0.01
    )


# ---- bad input


def test_bad_input_is_refused_with_words():
    data, scores, _ = drawn(5, 0)
    for call, says in (
        (lambda: er.cutoff(data, scores, rel=2), "no document is relevant: no grade is at least rel=2, the largest is 1"),
        (lambda: er.cutoff(data, np.where(np.arange(60) == 14, np.nan, scores)), "a score of query '1' is nan"),
        (lambda: er.cutoff(data, np.full(60, -np.inf)), "no document was retrieved"),
    ):
        with pytest.raises(DataError, match=says):
            call()
    for call, says in (
        (
            lambda: er.cutoff(data, scores, "recall >= 0.9 with probability 0.95"),
            "of 5 queries, a probability of a recall of 0.9 of 0.8333 can be",
        ),
        (lambda: er.cutoff(data, scores, "recall >= 0.5", "score and depth"), "by a single threshold; give by='score'"),
        (lambda: er.cutoff(data, scores, "recall >= 0.5", average="micro"), "give average='macro'"),
        (
            lambda: er.cutoff(problem_of([[(0.5, 1)], [(0.2, 0)]], [1.0, 2.0])[0], [0.5, 0.2], average="micro"),
            "the queries have weights; take macro",
        ),
    ):
        with pytest.raises(IncompatibleError, match=says):
            call()
    for wrong, says in (
        ({"goal": "F0"}, "must be above 0"),
        ({"goal": "recall >= 1.5"}, "the recall must lie above 0"),
        ({"goal": "best"}, "goal 'best' is not one of a cutoff"),
        ({"by": "rank"}, "by='rank': expected one of score"),
        ({"average": "mean"}, "average='mean': expected macro"),
    ):
        with pytest.raises(SettingError, match=says):
            er.cutoff(data, scores, **wrong)


def test_constant_scores_keep_everything_or_nothing():
    data, _, _ = drawn(20, 0)
    everything = er.cutoff(data, np.ones(240), "utility(gain=1, cost=0.01)", folds=0)
    nothing = er.cutoff(data, np.ones(240), "utility(gain=0.01, cost=1)", folds=0)
    assert (everything.rule, everything.documents, everything.threshold) == ("everything", 12.0, -LARGEST)
    assert (nothing.rule, nothing.documents, nothing.value) == ("nothing", 0.0, 0.0)
    assert "keeps everything" in repr(everything)


# ---- application


def fused():
    """Return graded results of two systems, and the fusion of them."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 200)
    X = np.stack([y + rng.normal(size=200), y + rng.normal(size=200)], axis=1)
    data = er.RankingData.from_arrays(X, y, group=[10] * 20, feature_names=["bm25", "dense"], docid=[f"d{i}" for i in range(200)])
    return data, er.fuse(data, folds=0, bootstrap=0)


@pytest.mark.parametrize("by", BY)
def test_models_and_fusions_keep_what_the_cutoff_keeps_also_from_their_files(by, tmp_path):
    data, fusion = fused()
    model = er.Model(Linear(np.array([1.0, 0.5]), ("bm25", "dense")))
    for carrier, name in ((model, "model.json"), (fusion, "fusion.json")):
        scores = carrier.predict(data)
        best = er.cutoff(data, carrier, "F1", by, folds=2)
        carrier.with_cutoff(best).save(tmp_path / name)
        loaded = er.load(tmp_path / name)
        assert loaded.cutoff == best
        cut = loaded.predict(data)
        assert np.array_equal(cut, np.where(best.keep(scores, data.indptr), scores, -np.inf))
        assert 0 < np.isfinite(cut).sum() < 200
        assert np.array_equal(loaded.with_cutoff(None).predict(data), scores)
        record = json.loads((tmp_path / name).read_text())
        (tmp_path / "damaged.json").write_text(json.dumps(record | {"cutoff": record["cutoff"] | {"threshold": "high"}}))
        with pytest.raises(DataError, match="'cutoff' is damaged"):
            er.load(tmp_path / "damaged.json")
    if by == "score":
        assert np.array_equal(er.load(tmp_path / "model.json").predict(data.X), er.load(tmp_path / "model.json").predict(data))
    else:
        with pytest.raises(IncompatibleError, match="rows have no queries; give a RankingData"):
            er.load(tmp_path / "model.json").predict(data.X)


def test_fused_runs_leave_out_what_is_not_kept(tmp_path):
    data, fusion = fused()
    for column, name in enumerate(("bm25", "dense")):
        er.write_run(data, tmp_path / f"{name}.run", scores=data.X[:, column])
    runs = {name: tmp_path / f"{name}.run" for name in ("bm25", "dense")}
    short = fusion.with_cutoff(er.cutoff(data, fusion, by="depth", folds=0))
    assert len(short.apply(runs).score) == 20 * short.cutoff.depth < len(fusion.apply(runs).score)


def test_the_service_orders_what_is_kept(tmp_path):
    data, _ = fused()
    model = er.Model(Linear(np.array([1.0, 0.5]), ("bm25", "dense")))
    model.with_cutoff(er.cutoff(data, model, by="depth", folds=0)).save(tmp_path / "model.json")
    served = ServedModel.read(tmp_path / "model.json")
    rows = data.X[:10].tolist()
    answer = json.loads(rank_documents("web", served, json.dumps({"features": rows}).encode(), Rules()).body)
    assert answer["scores"] == model.predict(data.X[:10]).tolist()
    assert answer["order"] == np.argsort(-np.array(answer["scores"]))[: served.model.cutoff.depth].tolist()


def called(code, *arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)), env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done.output


def test_the_command_finds_attaches_and_draws_a_cutoff(tmp_path):
    data, fusion = fused()
    er.write(data, tmp_path / "test.csv")
    fusion.save(tmp_path / "fusion.json")
    scores = fusion.predict(data)
    (tmp_path / "scores.txt").write_text("".join(f"{score!r}\n" for score in scores.tolist()))
    cut = ("cutoff", tmp_path / "test.csv", tmp_path / "scores.txt")
    printed = called(0, *cut, "--attach", tmp_path / "fusion.json", "--out", tmp_path / "cut.json", "--plot", tmp_path / "cut.svg")
    best = er.cutoff(data, scores)
    assert f"keep {best.rule}" in printed
    assert er.load(tmp_path / "cut.json").cutoff == best
    assert (tmp_path / "cut.svg").stat().st_size > 1000
    assert json.loads(called(0, *cut, "--by", "depth", "--json"))["depth"] == er.cutoff(data, scores, by="depth").depth
    assert "--attach and --out go together" in called(2, *cut, "--attach", tmp_path / "fusion.json")
    assert "no cutoff on the score guarantees it" in called(2, *cut, "--goal", "recall >= 0.99")
    with pytest.raises(IncompatibleError, match="has no sweep to draw"):
        er.load(tmp_path / "cut.json").cutoff.figure()
