"""Fusion for engines: what is tuned is what the engine computes, what is written is all that it needs, and what is chosen is held out."""

import json
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank import fuse
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.fusion.engines import ENGINES
from exactrank.fusion.normalize import cut_lists, parse_normalization
from tests.fusion.fuse_data import NAMES, random_systems, systems
from tests.reference import fuse as reference

QUICK = {"folds": 0, "bootstrap": 0}
single = np.float32


def combined(engine, weights, values):
    """One document's fused score, as the engine adds up."""
    if engine in ("vespa", "qdrant"):
        return sum(w * v for w, v in zip(weights, values, strict=True))
    total = single(0)
    for w, v in zip(weights, values, strict=True):
        total += single(w) * single(v)
    return total / (single(weights[0]) + single(weights[1])) if engine == "opensearch" else total


def twin(engine, normalize, X, indptr, weights, depth):
    """The engine's fused scores, one query and one system at a time."""
    name, k = parse_normalization(normalize)
    scores = np.full(len(X), -np.inf)
    for begin, end in pairwise(indptr):
        columns = []
        for j in range(2):
            there = [i for i in range(begin, end) if not np.isnan(X[i, j])]
            first = set(sorted(there, key=lambda i: -X[i, j])[:depth])
            columns.append([float(X[i, j]) if i in first else None for i in range(begin, end)])
        pool = [i for i in range(end - begin) if columns[0][i] is not None or columns[1][i] is not None]
        if engine == "vespa":
            columns = [[(c[i] or 0.0) if i in pool else None for i in range(end - begin)] for c in columns]
        made = [reference.normalized(c, name, "zero", k) for c in columns]
        for i in pool:
            scores[begin + i] = combined(engine, weights, (made[0][i], made[1][i]))
    return scores


CASES = [(name, how) for name, engine in ENGINES.items() for how in engine.normalizations]


@settings(max_examples=15)
@pytest.mark.parametrize(("engine", "how"), CASES)
@given(data=systems(), depth=st.integers(2, 7))
def test_scores_are_those_of_the_engine(engine, how, data, depth):
    """To the bit, in the engine's precision, ties and short lists included; and the value reported is that of these scores."""
    fusion = fuse(data, measure="nDCG@2", engine=engine, normalize=how, depth=depth, **QUICK)
    theirs = twin(engine, how, data.X, data.indptr, fusion.weights, depth)
    ours = fusion.predict(data)
    if how == "opensearch-z-score":  # its mean and deviation are rounded from sums in another order
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    else:
        assert ours.tolist() == theirs.tolist()
        assert er.evaluate(data, theirs, "nDCG@2").means["nDCG@2"] == pytest.approx(fusion.value, abs=1e-12)
    assert sum(map(abs, fusion.weights)) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_weights_of_a_grid_are_better(engine):
    data = random_systems(2, queries=30)
    fusion = fuse(data, measure="nDCG@5", engine=engine, depth=8, **QUICK)
    for w in np.linspace(0.005, 0.995, 100):
        tried = replace(fusion, weights=(1 - w, w)).predict(data)
        assert er.evaluate(data, tried, "nDCG@5").means["nDCG@5"] <= fusion.value + 1e-12
    assert fusion.depth == 8
    longer = fuse(data, measure="nDCG@5", engine=engine, **QUICK)
    assert (longer.depth, longer.engine) == (100, engine)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_weights_are_short_decimals_of_the_same_value(n):
    data = random_systems(n, queries=30)
    exact = fuse(data, normalize="none", absent="zero", cells=1, **QUICK)
    short = fuse(data, engine="qdrant", cells=1, **QUICK)
    assert short.value == pytest.approx(exact.value, abs=1e-12)
    assert all(len(repr(abs(w))) <= 11 for w in short.weights)
    assert sum(map(abs, short.weights)) == pytest.approx(1, abs=1e-15)
    signed = fuse(data, engine="qdrant", nonnegative=False, cells=1, **QUICK)
    assert sum(map(abs, signed.weights)) == pytest.approx(1, abs=1e-15)


def test_a_cut_list_is_a_shorter_list():
    data = random_systems(2)
    shorter = er.RankingData.from_arrays(cut_lists(data.X, data.indptr, 10), data.y, group=data.sizes, feature_names=NAMES[:2])
    assert fuse(data, depth=10).to_json() | {"depth": None} == fuse(shorter).to_json()
    assert fuse(data, depth=10**400, **QUICK).weights == fuse(data, **QUICK).weights


# ---- configurations


def configured(engine, parts=None, **more):
    fusion = fuse(random_systems(2), measure="nDCG@5", engine=engine, depth=9, **QUICK, **more)
    return fusion, fusion.configuration(parts)


def test_elasticsearch():
    parts = {"bm25": {"standard": {"query": {"match_all": {}}}}}
    fusion, text = configured("elasticsearch", parts)
    linear = json.loads(text)["retriever"]["linear"]
    assert (linear["rank_window_size"], json.loads(text)["size"]) == (9, 5)
    assert [each["weight"] for each in linear["retrievers"]] == list(fusion.weights)
    assert {each["normalizer"] for each in linear["retrievers"]} == {"minmax"}
    assert [each["retriever"] for each in linear["retrievers"]] == [parts["bm25"], "RETRIEVER of dense"]
    for how, name in (("elasticsearch-l2", "l2_norm"), ("none", "none")):
        _, text = configured("elasticsearch", normalize=how)
        assert json.loads(text)["retriever"]["linear"]["retrievers"][0]["normalizer"] == name
    fusion, text = configured("elasticsearch-rrf", normalize="elasticsearch-rrf(k=7)")
    rrf = json.loads(text)["retriever"]["rrf"]
    assert (rrf["rank_constant"], rrf["rank_window_size"]) == (7, 9)
    assert [each["weight"] for each in rrf["retrievers"]] == list(fusion.weights)


def test_opensearch():
    techniques = {"opensearch-min-max": "min_max", "opensearch-l2": "l2", "opensearch-z-score": "z_score"}
    for how, technique in techniques.items():
        fusion, text = configured("opensearch", {"dense": {"knn": {}}}, normalize=how)
        body = json.loads(text)
        assert body["query"] == {"hybrid": {"queries": ["QUERY of bm25", {"knn": {}}], "pagination_depth": 9}}
        (processor,) = body["search_pipeline"]["phase_results_processors"]
        assert processor["normalization-processor"]["normalization"] == {"technique": technique}
        assert processor["normalization-processor"]["combination"]["parameters"]["weights"] == list(fusion.weights)
        assert sum(fusion.weights) == pytest.approx(1, abs=1e-15)
    fusion, text = configured("opensearch-rrf")
    (processor,) = json.loads(text)["search_pipeline"]["phase_results_processors"]
    assert processor["score-ranker-processor"]["combination"] == {
        "technique": "rrf", "rank_constant": 60, "parameters": {"weights": list(fusion.weights)}
    }  # fmt: skip


def test_weights_of_one_system_alone_are_decimals():
    """OpenSearch reads 1.0, and not 1."""
    fusion = replace(configured("opensearch")[0], weights=(1.0, 0.0))
    assert re.search(r'"weights": \[\s*1\.0,\s*0\.0\s*\]', fusion.configuration())


def test_vespa():
    fusion, text = configured("vespa", {"bm25": "bm25(text)", "dense": "closeness(field, embedding)"})
    first, second = fusion.weights
    assert (
        text
        == f"""\
rank-profile hybrid {{
    function score_bm25() {{
        expression: bm25(text)
    }}
    function score_dense() {{
        expression: closeness(field, embedding)
    }}
    global-phase {{
        rerank-count: 18
        expression {{
            {first} * normalize_linear(score_bm25)
            + {second} * normalize_linear(score_dense)
        }}
    }}
}}
"""
    )
    fusion, text = configured("vespa", normalize="vespa-reciprocal-rank(k=20)", nonnegative=False)
    assert f"{fusion.weights[0]} * reciprocal_rank(score_bm25, 20)" in text
    with pytest.raises(IncompatibleError, match="would be functions of the same name in Vespa; rename them"):
        replace(fusion, systems=("a-b", "a.b")).configuration()


def test_weaviate():
    fusion, text = configured("weaviate", {"bm25": "red shoes"})
    assert json.loads(text) == {
        "hybrid": {"query": "red shoes", "alpha": fusion.weights[1], "fusionType": "relativeScoreFusion"}, "limit": 9
    }  # fmt: skip


def test_the_configuration_is_what_qdrant_runs():
    """Qdrant's client has the engine in Python: the formula ranks as we do."""
    qdrant = pytest.importorskip("qdrant_client", reason="qdrant-client is not installed")
    models, rng, points = qdrant.models, np.random.default_rng(3), 60
    client, vectors = qdrant.QdrantClient(":memory:"), {name: rng.normal(size=(points, 4)) for name in NAMES[:2]}
    space = {name: models.VectorParams(size=4, distance=models.Distance.DOT) for name in vectors}
    client.create_collection("c", vectors_config=space)
    client.upsert("c", [models.PointStruct(id=i, vector={n: v[i].tolist() for n, v in vectors.items()}) for i in range(points)])
    queries = {name: rng.normal(size=(8, 4)) for name in vectors}

    lists = {name: [client.query_points("c", query=q.tolist(), using=name, limit=points).points for q in queries[name]] for name in vectors}
    X = np.full((8 * points, 2), np.nan)
    for j, name in enumerate(vectors):
        for q, result in enumerate(lists[name]):
            X[[q * points + point.id for point in result], j] = [point.score for point in result]
    y = (X.sum(axis=1) + rng.normal(size=len(X)) > 2).astype(int)
    data = er.RankingData.from_arrays(X, y, group=[points] * 8, feature_names=NAMES[:2])
    fusion = fuse(data, engine="qdrant", depth=20, nonnegative=False, **QUICK)
    ours = fusion.predict(data).reshape(8, points)
    for q in range(8):
        parts = {name: {"query": queries[name][q].tolist(), "using": name} for name in vectors}
        body = json.loads(fusion.configuration(parts))
        prefetch = [models.Prefetch(**each) for each in body["prefetch"]]
        theirs = client.query_points("c", prefetch=prefetch, query=models.FormulaQuery(**body["query"]), limit=body["limit"]).points
        assert [point.id for point in theirs] == np.argsort(-ours[q], kind="stable")[: len(theirs)].tolist()
        np.testing.assert_allclose([point.score for point in theirs], -np.sort(-ours[q])[: len(theirs)], rtol=1e-5)


# ---- the choice of a normalization


def test_all_normalizations_are_tried_and_the_best_is_chosen():
    data = random_systems(2, queries=24)
    fusion = fuse(data, normalize="all", folds=4, bootstrap=20)
    worth = {row.name: row for row in fusion.normalizations}
    assert {"min-max", "z-score", "l2", "none", "rank", "reciprocal-rank(k=10)", "opensearch-min-max", "vespa-linear"} <= set(worth)
    best = max(worth.values(), key=lambda row: row.mean)
    assert worth[fusion.normalize].mean == best.mean
    for how, row in worth.items():
        alone = fuse(data, normalize=how, folds=4, bootstrap=0)
        assert alone.cross_validated == pytest.approx(row.mean, abs=1e-12)
        assert row.interval[0] <= row.mean <= row.interval[1]
        assert row.gain is None if how == fusion.normalize else row.gain == pytest.approx(best.mean - row.mean)
    chosen = fuse(data, normalize=fusion.normalize, folds=0, bootstrap=0)
    assert (fusion.weights, fusion.value) == (chosen.weights, chosen.value)
    assert fusion.cross_validated <= best.mean + 1e-12
    assert json.loads(json.dumps(fusion.to_json()))["normalizations"][0]["name"] == "min-max"


def test_the_choice_never_sees_the_held_out_fold():
    """By the definition: for each fold, the best of the others by weights tuned on neither, and its value there."""
    data, folds = random_systems(2, queries=12, seed=5), 3
    fusion = fuse(data, normalize="all", folds=folds, bootstrap=0)
    names = [row.name for row in fusion.normalizations]
    fold = er.data.folds.deal_folds(12, folds, 0)

    def values(how, *left_out):
        """Of all queries, by weights that were tuned without some folds."""
        kept = np.flatnonzero(~np.isin(fold, left_out))
        tuned = fuse(data.take_queries(kept), normalize=how, **QUICK)
        return er.evaluate(data, tuned.predict(data), "nDCG@10")["nDCG@10"].values

    honest, picked = np.empty(12), []
    for f in range(folds):
        inner = {}
        for how in names:
            parts = [values(how, f, g)[fold == g] for g in range(folds) if g != f]
            inner[how] = np.concatenate(parts).mean()
        best = next(how for how in names if inner[how] >= max(inner.values()) - 1e-12)
        picked.append(best)
        honest[fold == f] = values(best, f)[fold == f]
    assert len(set(picked)) > 1  # else it would not show
    assert fusion.cross_validated == pytest.approx(honest.mean(), abs=1e-12)


def test_an_engine_chooses_among_its_own():
    fusion = fuse(random_systems(3, queries=9), normalize="all", engine="opensearch", folds=3, bootstrap=0, cells=1)
    assert [row.name for row in fusion.normalizations] == ["opensearch-min-max", "opensearch-l2", "opensearch-z-score"]
    fusion = fuse(random_systems(2, queries=9), normalize="all", engine="elasticsearch-rrf", folds=3, bootstrap=0)
    assert [row.name for row in fusion.normalizations] == [f"elasticsearch-rrf(k={k})" for k in (60, 10, 1)]
    assert json.loads(fusion.configuration())["retriever"]["rrf"]["rank_constant"] == parse_normalization(fusion.normalize)[1]


# ---- bad input


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"engine": "elastic"}, DataError, r"there is no engine 'elastic' \(did you mean elasticsearch\?\); there are elasticsearch, "),
        ({"engine": "elasticsearch", "nonnegative": False}, IncompatibleError, r"takes no negative weights; .* that does: vespa, qdrant"),
        ({"engine": "weaviate", "nonnegative": False}, IncompatibleError, "weaviate takes no negative weights"),
        ({"engine": "opensearch", "normalize": "min-max"}, SettingError, "does not compute min-max, but opensearch-min-max, opensearch-l2"),
        ({"engine": "opensearch", "absent": "worst"}, SettingError, "opensearch computes absent='zero', not 'worst'; leave it out"),
        ({"engine": "elasticsearch", "depth": 9}, SettingError, "depth=9 is less than the 10 documents that nDCG@10 counts"),
        ({"depth": 9}, SettingError, "give a depth of at least 10, or a smaller cutoff"),
        ({"depth": 0}, SettingError, "depth must be at least 1, got 0"),
        ({"normalize": "all", "folds": 2}, SettingError, "give at least 3 folds, got 2"),
        ({"normalize": "all", "folds": 0}, SettingError, "give at least 3 folds, got 0"),
    ],
)
def test_what_does_not_go_together(arguments, error, message):
    with pytest.raises(error, match=message):
        fuse(random_systems(2, queries=5), **arguments)


def test_more_systems_than_an_engine_combines():
    with pytest.raises(IncompatibleError, match="weaviate combines 2 systems, got bm25, dense, rerank; leave some out"):
        fuse(random_systems(3, queries=5), engine="weaviate")


def test_weights_for_no_engine_have_no_configuration():
    with pytest.raises(IncompatibleError, match="not tuned for an engine; tune them with engine= one of elastic"):
        fuse(random_systems(2, queries=5), **QUICK).configuration()
