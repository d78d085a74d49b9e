"""Weights by query: exact per segment, kept only where they win on held-out queries, and applied as they were tuned."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.fusion.by_query import QueryFeature, move_weights, read_query_features, tune_moves
from exactrank.fusion.preparation import problem_of

MEASURE = er.measures.NDCG(k=3)


def hybrid(queries=60, seed=0, noise=0.6):
    """Queries of two intents: BM25 ranks those for a brand, the dense retriever those for advice; the features of each query."""
    rng = np.random.default_rng(seed)
    intents = np.array(["brand", "advice"])[np.arange(queries) % 2]
    grades = rng.integers(0, 3, (queries, 8))
    signal = grades + noise * rng.normal(size=grades.shape)
    other = rng.normal(size=grades.shape)
    is_brand = (intents == "brand")[:, None]
    X = np.stack([np.where(is_brand, signal, other).ravel(), np.where(is_brand, other, signal).ravel()], axis=1)
    qid = np.repeat([f"q{number}" for number in range(queries)], 8)
    data = er.RankingData.from_arrays(X, grades.ravel(), qid=qid, feature_names=["bm25", "dense"])
    by = {f"q{number}": {"intent": intent, "length": float(rng.integers(1, 9))} for number, intent in enumerate(intents)}
    return data, by


def only(by, *names):
    return {query: {name: row[name] for name in names} for query, row in by.items()}


def fit(data, by, **options):
    return er.fuse(data, measure=MEASURE, by=by, bootstrap=0, folds=3, threads=1, **options)


def test_segments_that_differ_get_weights_of_their_own():
    data, by = hybrid()
    plain, fusion = er.fuse(data, measure=MEASURE, bootstrap=0, folds=3), fit(data, only(by, "intent"))
    assert fusion.by.is_kept
    assert fusion.by.gain > 0.05
    assert fusion.cross_validated == pytest.approx(plain.cross_validated + fusion.by.gain)
    assert fusion.weights_for({"intent": "brand"})["bm25"] > 0.8
    assert fusion.weights_for({"intent": "advice"})["bm25"] < 0.2
    assert fusion.weights_for({"intent": "unheard of"}) == dict(zip(fusion.systems, fusion.weights, strict=True)) == plain.weights_for({})
    scores = fusion.predict(data, only(by, "intent"))
    assert er.evaluate(data, scores, str(MEASURE)).means[str(MEASURE)] == pytest.approx(fusion.value, abs=1e-12)


@pytest.mark.parametrize("values", [["same"] * 60, [2.0] * 60, [f"unique {number}" for number in range(60)]])
def test_a_feature_that_tells_no_queries_apart_returns_the_global_weights(values):
    data, _ = hybrid()
    fusion = fit(data, {f"q{number}": {"feature": value} for number, value in enumerate(values)})
    plain = er.fuse(data, measure=MEASURE, bootstrap=0, folds=3)
    assert not fusion.by.is_kept
    assert replace(fusion, by=None, sweep=None) == replace(plain, sweep=None)


def test_a_feature_that_means_nothing_is_not_kept():
    data, by = hybrid(noise=0.2)
    both_alike = replace(
        data, X=np.stack([data.X.sum(axis=1), np.random.default_rng(1).normal(size=len(data.X))], axis=1).astype(np.float32)
    )
    fusion = fit(both_alike, only(by, "length"))
    assert not fusion.by.is_kept
    assert "not kept" in fusion.by.remark


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_the_weights_of_each_segment_are_its_global_optimum(seed):
    data, by = hybrid(queries=12, seed=seed, noise=1.5)
    fusion = er.fuse(data, measure=MEASURE, bootstrap=0, folds=0)
    feature = QueryFeature.of("intent", [by[str(query)]["intent"] for query in data.qid.tolist()])
    z = np.array([feature.encode(by[str(query)]["intent"], str(query)) for query in data.qid.tolist()])
    problem = problem_of(data, MEASURE, "min-max", "worst", threads=1)
    moves = tune_moves(problem, np.array(fusion.weights), z, problem.data.weights)
    weights = move_weights(np.array(fusion.weights), moves, z, nonnegative=True)
    values = problem.per_query(np.repeat(weights, problem.data.sizes, axis=0).T)
    for intent in ("brand", "advice"):
        queries = np.array([by[str(query)]["intent"] == intent for query in data.qid.tolist()])
        alone = er.fuse(data.take_queries(np.flatnonzero(queries)), measure=MEASURE, bootstrap=0, folds=0)
        assert np.mean(values[queries]) == pytest.approx(alone.value, abs=1e-9)


def test_no_step_of_a_number_is_better_than_the_one_found():
    data, by = hybrid(queries=20, noise=1.0)
    lengths = [by[str(query)]["length"] for query in data.qid.tolist()]
    feature = QueryFeature.of("length", lengths)
    z = np.array([feature.encode(length, "q") for length in lengths])
    problem, start = problem_of(data, MEASURE, "min-max", "worst", threads=1), np.array([0.5, 0.5])
    moves = tune_moves(problem, start, z, problem.data.weights)

    def value(step):
        weights = start + z * (step * np.array([1.0, -1.0]))
        return np.mean(problem.per_query(np.repeat(weights, problem.data.sizes, axis=0).T)) if weights.min() >= 0 else -1.0

    assert value(moves[0, 0]) >= max(value(step) for step in np.linspace(-0.5, 0.5, 2001)) - 1e-12
    assert value(moves[0, 0]) > value(0.0)


def test_a_number_beyond_the_range_of_training_counts_as_its_end():
    feature = QueryFeature.of("length", [1.0, 2.0, 3.0])
    assert feature.encode(99.0, "q") == feature.encode(3.0, "q") != feature.encode(1.0, "q") == feature.encode(-5.0, "q")


def test_a_file_an_engine_and_runs_have_the_weights_of_each_query(tmp_path):
    data, by = hybrid()
    intents = only(by, "intent")
    fusion = fit(data, intents, engine="elasticsearch")
    fusion.save(tmp_path / "fusion.json")
    loaded = er.load(tmp_path / "fusion.json")
    assert loaded.by == fusion.by
    assert loaded.predict(data, intents).tobytes() == fusion.predict(data, intents).tobytes()
    weights = fusion.weights_for({"intent": "brand"})
    for name in fusion.systems:
        assert f'"weight": {weights[name]}' in fusion.configuration(query={"intent": "brand"})
    with pytest.raises(er.errors.DataError, match=r"the weights depend on intent of the query; give by="):
        fusion.predict(data)
    with pytest.raises(er.errors.DataError, match=r"the weights depend on intent"):
        fusion.configuration()
    with pytest.raises(er.errors.DataError, match=r"by has no features of query 'q1'"):
        fusion.predict(data, {"q0": {"intent": "brand"}})


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ({}, r"by has no features of query 'q0'; give those of every query"),
        ({f"q{n}": {"length": n} if n else {} for n in range(60)}, r"query 'q0' has no 'length'; give every query the same features"),
        ({f"q{n}": {"length": float("nan")} for n in range(60)}, r"query 'q0': length is nan; give a finite number or a text"),
    ],
)
def test_bad_features_of_queries_are_refused(by, message):
    with pytest.raises(er.errors.DataError, match=message):
        fit(hybrid()[0], by)


def test_weights_by_query_need_folds_and_one_normalization():
    data, by = hybrid()
    for options in ({"folds": 2}, {"normalize": "all"}, {"measure": "nDCG@3 subject to R@3 >= 0.1"}):
        with pytest.raises(er.errors.SettingError, match="by chooses weights by query on held-out queries"):
            er.fuse(data, by=by, **{"measure": MEASURE, "folds": 3} | options)


def test_features_of_queries_are_read_from_csv(tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text("query_id,length,intent\nq1,3,brand\nq2,4.5,\n")
    assert read_query_features(path) == {"q1": {"length": 3.0, "intent": "brand"}, "q2": {"length": 4.5, "intent": ""}}
    for text, message in (
        ("", "expected a header with query_id"),
        ("qid,length\nq1,3\n", "expected a header with query_id"),
        ("query_id,length\nq1,3,4\n", ":2: has another number of columns"),
        ("query_id,length\nq1,3\nq1,4\n", "query 'q1' occurs twice"),
    ):
        path.write_text(text)
        with pytest.raises(er.errors.DataError, match=message):
            read_query_features(path)
