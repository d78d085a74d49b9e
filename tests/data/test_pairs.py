"""Pairs of documents as input: objectives and the measure against all pairs one by one, laws, and every place that moves documents."""

import gzip
import pickle
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.data.ranking_data import checksum
from exactrank.learning.objectives.pair_exponential import PairExponential
from exactrank.models.thresholds import StepScores
from exactrank.rankers.training_data import in_content_order, join_queries
from tests.reference.preferences import all_pairs, pair_cost, share_in_order

QUARTERS = st.integers(-8, 8).map(lambda quarter: quarter / 4)  # many ties, and many pairs at a distance of exactly 1
PAIRED = [er.RankNet, er.LambdaRank, er.LambdaMART, er.RankSVM, er.RankBoost]


@st.composite
def problems(draw):
    """Grades, scores and given pairs (query, better, worse, weight) of a few queries."""
    sizes = draw(st.lists(st.integers(1, 11), min_size=1, max_size=4))
    ys = [draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)) for n in sizes]
    scores = [draw(st.lists(QUARTERS, min_size=n, max_size=n)) for n in sizes]
    pairs = []
    for q, n in enumerate(sizes):
        if n > 1:
            rows = st.lists(st.integers(0, n - 1), min_size=2, max_size=2, unique=True)
            weights = st.sampled_from([0.25, 1.0, 3.0])
            pairs += [(q, *rows, weight) for rows, weight in draw(st.lists(st.tuples(rows, weights), max_size=8))]
    return ys, scores, pairs


def made(ys, pairs):
    """The data, and of each query the number of its first row."""
    starts = np.cumsum([0, *map(len, ys)])
    data = er.RankingData.from_arrays(None, np.concatenate(ys), group=list(map(len, ys)))
    if not pairs:
        return data
    rows = [(starts[q] + b, starts[q] + w, weight) for q, b, w, weight in pairs]
    return er.pairs.with_pairs(data, dict(zip(("better", "worse", "weight"), zip(*rows, strict=True), strict=True)))


def of_query(pairs, q):
    return [(b, w, weight) for query, b, w, weight in pairs if query == q]


@given(problems(), st.sampled_from(["logistic", "step", "spring"]), st.integers(1, 3))
def test_ranknets_cost_is_that_of_every_pair(problem, link, threads):
    ys, scores, pairs = problem
    result = er.losses.slopes(made(ys, pairs), np.concatenate(scores), er.losses.Lambdas(link=link), threads)
    wanted = [pair_cost(all_pairs(y, of_query(pairs, q)), s, link) for q, (y, s) in enumerate(zip(ys, scores, strict=True))]
    np.testing.assert_allclose(result.values, [value for value, *_ in wanted], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.slope, np.concatenate([slope for _, slope, _ in wanted]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(result.curvature, np.concatenate([bend for *_, bend in wanted]), rtol=1e-12, atol=1e-12)


@given(problems(), st.sampled_from([None, 0.5]), st.sampled_from(["nDCG", "AP", "PairwiseCorrect"]))
def test_a_given_pair_counts_beside_a_measures_forces_as_its_share_of_the_weights(problem, near, measure):
    ys, scores, pairs = problem
    rule, s = er.losses.Lambdas(er.parse_measure(measure), near=near), np.concatenate(scores)
    result, bare = (er.losses.slopes(made(ys, some), s, rule) for some in (pairs, []))
    np.testing.assert_array_equal(result.values, bare.values)
    for q, start in enumerate(np.cumsum([0, *map(len, ys)])[:-1]):
        own = of_query(pairs, q)
        total = sum(weight for *_, weight in own)
        _, slope, curvature = pair_cost([(b, w, weight / total) for b, w, weight in own], scores[q], near=near or 0.0)
        here = slice(start, start + len(ys[q]))
        np.testing.assert_allclose(result.slope[here], bare.slope[here] + slope, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(result.curvature[here], bare.curvature[here] + curvature, rtol=1e-10, atol=1e-12)


@given(problems(), st.booleans())
def test_forces_are_normalized_with_those_of_given_pairs(problem, sampled):
    ys, scores, pairs = problem
    rule = er.losses.SampledLambdas(er.measures.NDCG(), samples=3) if sampled else er.losses.Lambdas(er.measures.NDCG())
    bare, scaled = (er.losses.slopes(made(ys, pairs), np.concatenate(scores), replace(rule, normalize=on)).slope for on in (False, True))
    assert np.all(np.sign(bare) * np.sign(scaled) >= 0)
    if len(pairs) == 1 and not any(len(set(y)) > 1 for y in ys):  # S is twice the one force
        size = np.abs(bare).sum()
        np.testing.assert_allclose(scaled, bare * np.log2(1 + size) / size, rtol=1e-12)


@given(problems(), st.sampled_from(["hinge", "squared-hinge"]), st.sampled_from(["query", "pairs"]))
def test_the_hinge_is_that_of_every_pair(problem, loss, normalize):
    ys, scores, pairs = problem
    result = er.losses.slopes(made(ys, pairs), np.concatenate(scores), er.losses.PairHinge(loss, normalize))
    each = [all_pairs(y, of_query(pairs, q)) for q, y in enumerate(ys)]
    totals = [sum(weight for *_, weight in own) for own in each]
    factor = 2 if loss == "squared-hinge" else 1  # the spring is half a squared hinge
    wanted = [pair_cost(own, s, "spring" if factor == 2 else "step") for own, s in zip(each, scores, strict=True)]
    share = [factor * (1 / total if normalize == "query" else len(ys) / sum(totals)) if total else 0.0 for total in totals]
    np.testing.assert_allclose(result.values, [w * v for w, (v, *_) in zip(share, wanted, strict=True)], rtol=1e-11, atol=1e-12)
    slope = np.concatenate([w * np.array(own) for w, (_, own, _) in zip(share, wanted, strict=True)])
    np.testing.assert_allclose(result.slope, slope, rtol=1e-11, atol=1e-12)


@given(problems())
def test_rankboosts_loss_and_edge_are_those_of_every_pair(problem):
    ys, scores, pairs = problem
    each = [all_pairs(y, of_query(pairs, q)) for q, y in enumerate(ys)]
    total = sum(weight for own in each for *_, weight in own)
    if not total:
        return
    x = np.random.default_rng(len(pairs)).normal(size=(sum(map(len, ys)), 1)).astype(np.float32)
    problem = PairExponential(replace(made(ys, pairs), X=x, feature_names=("a",)))
    with patch.object(StepScores, "at", lambda self, steps: np.concatenate(scores)):
        result = problem.best(np.empty(0))
    start, loss, edge = 0, 0.0, 0.0
    for own, s in zip(each, scores, strict=True):
        for b, w, weight in own:
            part = weight * np.exp(s[w] - s[b]) / total
            loss += part
            edge += part * (float(x[start + b, 0] > result.threshold) - float(x[start + w, 0] > result.threshold))
        start += len(s)
    assert result.loss == pytest.approx(loss, rel=1e-12)
    assert result.number < 0 or result.edge == pytest.approx(edge / loss, rel=1e-9, abs=1e-12)


@given(problems())
def test_pairwise_correct_is_the_weighted_share_of_pairs_in_order(problem):
    ys, scores, pairs = problem
    data, s = made(ys, pairs), np.concatenate(scores)
    result = er.evaluate(data, s, ["PairwiseCorrect(ties='expected', empty='skip')"]).per_query[0]
    wanted = [share_in_order(all_pairs(y, of_query(pairs, q)), own) for q, (y, own) in enumerate(zip(ys, scores, strict=True))]
    np.testing.assert_allclose(result, [np.nan if each is None else each for each in wanted], rtol=1e-12)
    bound, severe = (er.measures.PairwiseCorrect(ties=ties).on(data) for ties in ("input", "pessimistic"))
    assert np.all(severe.values(np.zeros(len(s)))[data.sizes == 2] <= 0.5)
    rows = np.stack([s, -s, s[::-1]])
    np.testing.assert_array_equal(bound.means(rows), [bound.mean(row) for row in rows])


@given(problems(), st.integers(0, 99))
def test_pairwise_correct_along_a_ray_is_that_of_the_scores_there(problem, seed):
    ys, scores, pairs = problem
    data, s = made(ys, pairs), np.concatenate(scores)
    direction = np.random.default_rng(seed).normal(size=len(s))
    steps = er.profile(data, s, direction, "PairwiseCorrect(ties='pessimistic')")
    for t in (-0.7, 0.1234, 1.9):
        value = er.evaluate(data, s + t * direction, "PairwiseCorrect(ties='pessimistic')").means.popitem()[1]
        assert steps(t) == pytest.approx(value, abs=1e-12)


@given(problems())
def test_an_exchange_changes_pairwise_correct_as_the_values_differ(problem):
    """The kernel's exchanges of any two, which weigh the pairs of a user's lambda function where they are asked of this kernel."""
    ys, _, pairs = problem
    data = made(ys, pairs)
    bound = er.measures.PairwiseCorrect().on(data)
    s = -np.concatenate([np.arange(len(y), dtype=float) for y in ys])  # in the order of the rows
    rule = _core.LambdaRule(bound.kernel, bound.grades, np.zeros(len(s)), "step", 1e9, 100, 100, 0.0)
    _, slope, _ = _core.answers(_core.lambdas(rule), s, data.indptr, np.ones(len(ys)), True, False, 1)
    wanted = np.zeros(len(s))
    for first, last in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        for i in range(first, last):
            for j in range(i + 1, last):
                t = s.copy()
                t[[i, j]] = t[[j, i]]
                delta = float((bound.values(t) - bound.values(s)).sum())
                wanted[i] -= delta
                wanted[j] += delta
    np.testing.assert_allclose(slope, wanted, atol=1e-12)


def test_the_kernel_of_pairs_reads_the_numbers_of_documents_alone():
    data = made([[0, 1, 0]], [(0, 0, 1, 1.0)])
    kernel, s = er.measures.PairwiseCorrect().on(data).kernel, np.arange(3.0)
    for grades in (data.y, np.array([np.nan] * 3), np.array([1.0, 2.0, 3.0]), np.array([-1.0, 0.0, 1.0]), np.full(3, 1e300)):
        with pytest.raises(ValueError, match="must be the numbers of the documents"):
            _core.evaluate(s, data.indptr, [(kernel, grades, None, False)], 1)


# ---- laws of whole fits


def graded(seed=0, queries=20, documents=7):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, 4)).astype(np.float32)
    y = np.clip(np.round(X @ [1.0, 0.5, 0.0, -1.0] + rng.normal(size=len(X))), 0, 3)
    return er.RankingData.from_arrays(X, y, qid=np.repeat(np.arange(queries), documents), docid=[f"d{i}" for i in range(len(X))])


def as_pairs(data):
    """The pairs of different grades as a frame."""
    rows = [
        (data.qid[q], data.docid[i], data.docid[j])
        for q in range(data.n_queries)
        for i in range(*data.indptr[q : q + 2])
        for j in range(*data.indptr[q : q + 2])
        if data.y[i] > data.y[j]
    ]
    return pd.DataFrame(rows, columns=["query_id", "better", "worse"])


def without_grades(data):
    return er.pairs.with_pairs(replace(data, y=np.zeros(data.n_documents)), as_pairs(data))


def small(kind, **more):
    quick = {er.LambdaMART: {"trees": 5, "min_documents": 3, "bags": 0}, er.RankBoost: {"max_iter": 20}, er.LambdaRank: {"max_iter": 5}}
    return kind("PairwiseCorrect", **quick.get(kind, {}), **more)


@pytest.mark.parametrize("more", [{}, {"solver": "sgd", "learning_rate": 0.01, "max_iter": 5}, {"hidden": 3, "max_iter": 20}])
def test_pairs_that_equal_the_order_of_the_grades_give_ranknets_own_model(more):
    data = graded()
    first, second = er.RankNet("PairwiseCorrect", **more).fit(data), er.RankNet("PairwiseCorrect", **more).fit(without_grades(data))
    np.testing.assert_allclose(first.predict(data), second.predict(data), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", [er.RankSVM, er.RankBoost])
def test_and_those_of_ranksvm_and_rankboost(kind):
    data = graded(1)
    first, second = small(kind).fit(data), small(kind).fit(without_grades(data))
    np.testing.assert_allclose(first.predict(data), second.predict(data), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", PAIRED, ids=lambda kind: kind.__name__)
def test_neither_the_order_of_pairs_nor_of_rows_nor_threads_change_a_bit(kind):
    data, rng = graded(2, 10), np.random.default_rng(0)
    pairs = as_pairs(data).sample(frac=0.5, random_state=0)
    pairs["weight"] = rng.uniform(0.5, 2, len(pairs))
    y = np.where(np.arange(data.n_documents) % 2, data.y, 1.0)  # some by grades, some by pairs
    shuffled = rng.permutation(data.n_documents)
    rows = er.RankingData.from_arrays(
        data.X[shuffled], y[shuffled], qid=data.qid.repeat(data.sizes)[shuffled], docid=[data.docid[i] for i in shuffled]
    )
    fits = [
        small(kind, threads=threads).fit(er.pairs.with_pairs(of, table)).predict(data.X)
        for of, table, threads in ((replace(data, y=y), pairs, 1), (replace(data, y=y), pairs[::-1], 3))
    ]
    np.testing.assert_array_equal(*fits)
    order = np.argsort([int(q) for q in rows.qid])  # the same queries, in the same order
    again = small(kind).fit(er.pairs.with_pairs(rows, pairs).take_queries(order)).predict(data.X)
    np.testing.assert_array_equal(fits[0], again)


def test_a_weight_may_be_split_into_several_pairs():
    data = replace(graded(3), y=np.zeros(140))
    pairs = as_pairs(graded(3))
    whole = er.pairs.with_pairs(data, pairs.assign(weight=2.0)).preferences
    split = er.pairs.with_pairs(data, pd.concat([pairs.assign(weight=0.5), pairs.assign(weight=1.5)])).preferences
    twice = er.pairs.with_pairs(er.pairs.with_pairs(data, pairs), pairs).preferences
    for other in (split, twice):
        for name in ("better", "worse", "weight"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(other, name))


def test_equal_pairs_are_added_up_the_same_way_in_any_order():
    two = er.RankingData.from_arrays(None, [0, 0], group=[2])
    orders = ([0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.3, 0.1])
    results = [er.pairs.with_pairs(two, {"better": [0] * 3, "worse": [1] * 3, "weight": weights}).preferences for weights in orders]
    assert len({float(each.weight[0]) for each in results}) == 1


def test_mixed_judgments_say_more_than_either():
    data = graded(4, 40)
    half = data.qid % 2 == 0
    pairs = as_pairs(data.take_queries(~half))
    mixed = er.pairs.with_pairs(replace(data, y=np.where(half.repeat(data.sizes), data.y, 0.0)), pairs)
    np.testing.assert_allclose(
        er.RankNet("PairwiseCorrect").fit(mixed).weights_, er.RankNet("PairwiseCorrect").fit(data).weights_, rtol=1e-5, atol=1e-6
    )


def test_sampled_lambdas_take_pairs_and_other_lambda_functions_refuse_them():
    data = without_grades(graded(5))
    assert small(er.LambdaMART, lambdas="sampled", samples=2).fit(data).score(data) > 0.6
    with pytest.raises(er.errors.IncompatibleError, match="LambdaRank with these settings learns from grades alone, and the data has"):
        small(er.LambdaRank, lambdas="finite-difference").fit(data)


BY_MEASURE = [partial(er.DirectRank, bags=0, start="zero"), er.CoordinateAscent, er.Composed]


@pytest.mark.parametrize("kind", BY_MEASURE, ids=["DirectRank", "CoordinateAscent", "Composed"])
def test_what_maximizes_the_measure_takes_pairs_where_it_counts_them(kind):
    data = graded(8, 15)
    on_grades, on_pairs = (kind("PairwiseCorrect").fit(of) for of in (data, without_grades(data)))
    np.testing.assert_allclose(on_pairs.weights_, on_grades.weights_, rtol=1e-9, atol=1e-12)
    with pytest.raises(
        er.errors.IncompatibleError, match=r"with these settings learns from grades alone.* pairs; train on PairwiseCorrect, make grades"
    ):
        kind("nDCG@5").fit(er.pairs.with_pairs(data, as_pairs(data)))


@pytest.mark.parametrize("start", ["auto", "ridge", "lambdarank"])
def test_directranks_weights_on_pairs_are_the_best_one_at_a_time(start):
    """Of all values that a single weight can have, from all pairs of documents one by one."""
    data = without_grades(graded(9, 12))
    ranker = er.DirectRank("PairwiseCorrect", bags=0, start=start, tolerance=0.0).fit(data)
    better, worse, query = data.preferences.better, data.preferences.worse, np.repeat(np.arange(data.n_queries), data.sizes)

    def value(scores):
        of = [[(b, w, 1.0) for b, w in zip(better, worse, strict=True) if query[b] == q] for q in range(data.n_queries)]
        return np.mean([share_in_order(pairs, scores) or 0.0 for pairs in of])

    best = value(data.X @ ranker.weights_)
    assert ranker.model_.training["value"] == pytest.approx(best)
    for column in data.X.T:
        lead, slope = (side[better] - side[worse] for side in (data.X @ ranker.weights_, column))
        crossings = np.unique(-lead[slope != 0] / slope[slope != 0])
        between = [crossings[0] - 1, *(crossings[1:] + crossings[:-1]) / 2, crossings[-1] + 1]
        ordered = lead[:, None] + slope[:, None] * between > 0
        shares = [ordered[query[better] == q].mean(axis=0) for q in np.unique(query[better])]
        assert np.sum(shares, axis=0).max() / data.n_queries <= best + 1e-9


def test_bags_and_constraints_of_pairs():
    data = without_grades(graded(10, 30))
    bagged = er.DirectRank("PairwiseCorrect", bags=4).fit(data)
    assert bagged.score(data) > 0.6
    assert er.DirectRank("PairwiseCorrect", bags=0, point="likelihood").fit(data).score(data) > 0.6
    rich = replace(data, extra_columns={"revenue": np.exp(data.X[:, 0].astype(float))})
    ranker = er.DirectRank("revenue@2 subject to PairwiseCorrect >= 0.62").fit(rich)
    assert er.evaluate(rich, ranker.predict(rich), "PairwiseCorrect").means["PairwiseCorrect"] >= 0.62


@pytest.mark.parametrize("kind", [er.Ridge, er.ListNet, er.SmoothRank, er.MART, er.Blend], ids=lambda kind: kind.__name__)
def test_others_refuse_pairs_by_name(kind):
    with pytest.raises(
        er.errors.IncompatibleError, match=rf"{kind.__name__} learns .* pairs; make grades of them with er.pairs.bradley_terry .*RankSVM"
    ):
        kind("PairwiseCorrect").fit(without_grades(graded()))


def test_a_measure_of_grades_has_nothing_to_select_by_without_grades():
    with pytest.raises(er.errors.DataError, match=r"nDCG@10 is the same for every ranking .* or PairwiseCorrect, which counts the pairs"):
        er.RankNet().fit(without_grades(graded()))


def test_bags_folds_and_resuming_know_pairs(tmp_path):
    data = without_grades(graded(6, 30))
    bagged = er.RankNet("PairwiseCorrect", bags=3).fit(data)
    assert bagged.estimate_.mean > 0.6
    valid = without_grades(graded(7, 30))
    assert er.RankSVM("PairwiseCorrect", l2=1.0).fit(data, valid=valid).model_.training["valid"] > 0.6
    assert checksum(data) != checksum(replace(data, preferences=None))


# ---- where documents move


@pytest.fixture
def data():
    """Interleaved queries, so that the rows of the data are not those of the caller."""
    rng = np.random.default_rng(0)
    qid = np.array([5, 3, 5, 3, 5, 9, 9, 3])
    made = er.RankingData.from_arrays(rng.normal(size=(8, 2)), rng.integers(0, 2, 8), qid=qid, docid=[f"r{i}" for i in range(8)])
    return er.pairs.with_pairs(made, PAIRS)


PAIRS = {"query_id": [5, 3, 5, 9], "better": ["r4", "r7", "r0", "r6"], "worse": ["r0", "r1", "r4", "r5"], "weight": [1.0, 2.0, 3.0, 4.0]}


def named(data):
    """The pairs by document ids."""
    pairs = data.preferences
    return sorted((data.docid[b], data.docid[w], weight) for b, w, weight in zip(pairs.better, pairs.worse, pairs.weight, strict=True))


ALL = [("r0", "r4", 3.0), ("r4", "r0", 1.0), ("r6", "r5", 4.0), ("r7", "r1", 2.0)]


def test_pairs_follow_their_documents(data):
    assert named(data) == named(in_content_order(data)) == named(pickle.loads(pickle.dumps(data))) == ALL
    assert named(data.take_queries([2, 0])) == [each for each in ALL if each[0] != "r7"]
    assert named(data.take_queries([1, 1])) == [("r7", "r1", 2.0)] * 2
    assert named(join_queries(data, data.take_queries([1]))) == sorted([*ALL, ("r7", "r1", 2.0)])
    alone = er.RankingData.from_arrays(None, [0, 1, 0], group=[2, 1])
    assert er.pairs.with_pairs(alone, {"better": [0], "worse": [1]}).take_queries([1]).preferences is None


def test_a_cache_keeps_pairs_and_other_formats_refuse_them(data, tmp_path):
    er.write(data, tmp_path / "a.xr")
    back = er.read(tmp_path / "a.xr")
    assert named(back) == ALL
    assert checksum(back) == checksum(data)
    er.write(replace(back, preferences=None), tmp_path / "b.xr")
    assert er.read(tmp_path / "b.xr").preferences is None
    for suffix in ("txt", "csv", "parquet"):
        with pytest.raises(er.errors.DataError, match=r"has 4 pairs, which only a cache keeps; write to a file \.xr"):
            er.write(data, tmp_path / f"a.{suffix}")
        assert not (tmp_path / f"a.{suffix}").exists()


def test_pairs_from_files(data, tmp_path):
    bare, frame = replace(data, preferences=None), pd.DataFrame(PAIRS)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress((tmp_path / "a.csv").read_bytes()))
    for name in ("a.csv", "a.tsv", "a.parquet", "a.csv.gz"):
        assert named(er.pairs.read_pairs(tmp_path / name, bare)) == ALL
    assert er.describe(data).pairs == 4


def test_rows_stand_for_documents_without_ids():
    data = er.RankingData.from_arrays(None, [0] * 4, qid=["b", "a", "b", "a"])
    result = er.pairs.with_pairs(data, {"better": [2, "1"], "worse": [0, 3.0]}).preferences
    assert [data.order[row] for row in result.better] == [2, 1]
    assert [data.order[row] for row in result.worse] == [0, 3]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({"query_id": [5], "better": ["r0"], "worse": ["r0"]}, "pair 0: 'r0' is paired with itself; give two different documents"),
        ({"query_id": [5], "better": ["r0"], "worse": ["r1"]}, "pair 0: query '5' has no document 'r1' in the data; check the ids"),
        ({"query_id": [8], "better": ["r0"], "worse": ["r1"]}, "pair 0: the data has no query '8'; check the ids"),
        ({"query_id": [5], "better": [None], "worse": ["r1"]}, "pair 0: an id is missing; give the query and both documents"),
        ({"query_id": [5], "better": ["r0"], "worse": ["r2"], "weight": [-1]}, "pair 0: the weight is -1; weights must be finite"),
        ({"query_id": [5], "better": ["r0"], "worse": ["r2"], "weight": [np.nan]}, "pair 0: the weight is nan; weights must be finite"),
        ({"query_id": [5], "better": ["r0"], "worse": ["r2"], "weight": ["x"]}, "pair 0: the weight is 'x'; weights must be finite"),
        ({"query_id": [5], "better": ["r0"]}, "the pairs: there is no column 'worse'; expected query_id, better, worse"),
        ({"better": ["r0"], "worse": ["r2"]}, "the pairs: there is no column 'query_id'"),
        ({"query_id": [], "better": [], "worse": []}, "the pairs: there are no pairs; give at least one, or leave them out"),
        ({"query_id": [5], "better": ["r0", "r2"], "worse": ["r2"]}, "the pairs: the columns are of different lengths"),
    ],
)
def test_wrong_pairs_are_refused_with_their_place(data, pairs, message):
    with pytest.raises(er.errors.DataError) as caught:
        er.pairs.with_pairs(data, pairs)
    assert str(caught.value).startswith(message)


def test_wrong_rows_and_files_are_refused(tmp_path):
    data = er.RankingData.from_arrays(None, [0, 0, 0], group=[2, 1])
    for row in (3, -1, "x", 0.5, None):
        with pytest.raises(er.errors.DataError, match="has no document ids, so give a row from 0 to 2"):
            er.pairs.with_pairs(data, {"better": [row], "worse": [1]})
    with pytest.raises(er.errors.DataError, match="the rows 0 and 2 belong to different queries"):
        er.pairs.with_pairs(data, {"better": [0], "worse": [2]})
    (tmp_path / "a.csv").write_text("better,worse\n0,1\n0\n")
    with pytest.raises(er.errors.DataError, match=r"a\.csv, line 3: has 1 cells; expected 2"):
        er.pairs.read_pairs(tmp_path / "a.csv", data)
    with pytest.raises(er.errors.DataError, match="are of different queries"):
        replace(data, preferences=er.pairs.Preferences(np.array([0]), np.array([2]), np.array([1.0])))
    with pytest.raises(er.errors.DataError, match="give two different rows"):
        er.pairs.Preferences(np.array([0]), np.array([0]), np.array([1.0]))
    with pytest.raises(er.errors.DataError, match="weight of pair 0 is inf"):
        er.pairs.Preferences(np.array([0]), np.array([1]), np.array([np.inf]))


def test_contradictions_and_cycles_are_no_errors():
    data = er.RankingData.from_arrays([[1.0], [2.0], [4.0]], [0] * 3, group=[3])
    cycle = er.pairs.with_pairs(data, {"better": [0, 1, 2, 1], "worse": [1, 2, 0, 0]})
    for kind in PAIRED:
        small(kind).fit(cycle)
    np.testing.assert_allclose(
        er.pairs.bradley_terry(er.pairs.with_pairs(data, {"better": [0, 1, 2], "worse": [1, 2, 0]})).strength, 0.0, atol=1e-12
    )


# ---- Bradley-Terry


@given(problems(), st.sampled_from([0.1, 1.0]))
@settings(max_examples=50)
def test_bradley_terry_is_where_ranknets_slope_is_that_of_the_prior(problem, prior):
    ys, _, pairs = problem
    if not pairs:
        return
    data = made(ys, pairs)
    result = er.pairs.bradley_terry(data, prior=prior)
    slope = er.losses.slopes(data, result.strength, er.losses.Lambdas()).slope
    np.testing.assert_allclose(slope, prior * result.strength, atol=1e-9)
    np.testing.assert_allclose(np.add.reduceat(result.strength, data.indptr[:-1]), 0.0, atol=1e-9)
    np.testing.assert_allclose(result.grades, 4 / (1 + np.exp(-result.strength)))
    assert result.judged.preferences is None
    np.testing.assert_allclose(result.error, standard_errors(ys, pairs, result.strength, prior), rtol=1e-9)


def standard_errors(ys, pairs, strength, prior):
    """Those of all documents, by the inverse of the whole curvature."""
    curvature, start = prior * np.eye(len(strength)), 0
    for q, y in enumerate(ys):
        for b, w, weight in all_pairs(y, of_query(pairs, q)):
            i, j = start + b, start + w
            chance = 1 / (1 + np.exp(strength[j] - strength[i]))
            curvature[np.ix_([i, j], [i, j])] += weight * chance * (1 - chance) * np.array([[1, -1], [-1, 1]])
        start += len(y)
    return np.sqrt(np.diag(np.linalg.inv(curvature)))


@given(problems())
@settings(max_examples=30)
def test_the_strengths_of_a_query_are_its_own_to_the_bit(problem):
    ys, _, pairs = problem
    if not pairs:
        return
    data = made(ys, pairs)
    together = er.pairs.bradley_terry(data)
    for q in {query for query, *_ in pairs}:
        alone, rows = er.pairs.bradley_terry(data.take_queries([q])), slice(*data.indptr[q : q + 2])
        np.testing.assert_array_equal(alone.strength, together.strength[rows])
        np.testing.assert_array_equal(alone.error, together.error[rows])


def test_pairs_without_weight_say_nothing():
    two = er.RankingData.from_arrays(None, [0, 0], group=[2])
    result = er.pairs.bradley_terry(er.pairs.with_pairs(two, {"better": [0], "worse": [1], "weight": [0]}), prior=0.25)
    assert result.strength.tolist() == [0.0, 0.0]
    assert result.error.tolist() == [2.0, 2.0]


def test_heavy_and_many_pairs_are_solved_as_well():
    """Weights over seven orders of magnitude, a chain, and a thousand documents in one query: one pass over the pairs per iteration."""
    rng, n = np.random.default_rng(0), 1000
    data = er.RankingData.from_arrays(None, np.zeros(n), group=[n])
    first, second = rng.integers(0, n, (2, 5 * n))
    random = {"better": first[first != second], "worse": second[first != second]}
    for pairs in (random, {"better": np.arange(1, n), "worse": np.arange(n - 1)}):
        weight = 10.0 ** rng.uniform(-3, 4, len(pairs["better"]))
        judged = er.pairs.with_pairs(data, pairs | {"weight": weight})
        strength = er.pairs.bradley_terry(judged).strength
        np.testing.assert_allclose(er.losses.slopes(judged, strength, er.losses.Lambdas()).slope, 0.1 * strength, atol=1e-9)


def test_the_standard_errors_are_those_of_many_simulated_judges():
    rng, true, weight, prior = np.random.default_rng(0), np.array([1.0, 0.0, -1.0]), 60, 1e-3
    data = er.RankingData.from_arrays(None, [0] * 3, group=[3])
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    results = []
    for _ in range(300):
        wins = rng.binomial(weight, 1 / (1 + np.exp(true[second] - true[first])))
        both = {"better": [*first, *second], "worse": [*second, *first], "weight": [*wins, *(weight - wins)]}
        results.append(er.pairs.bradley_terry(er.pairs.with_pairs(data, both), prior=prior))
    gap = np.array([each.strength[0] - each.strength[2] for each in results])
    assert abs(gap.mean() - 2.0) < 4 * gap.std() / np.sqrt(len(gap)) + 0.05
    assert np.mean(np.abs(gap - 2.0) < 2 * gap.std()) > 0.9


def test_grades_of_pairs_train_any_ranker():
    data = graded(8, 40)
    fitted = er.pairs.bradley_terry(without_grades(data))
    assert er.Ridge("nDCG@10").fit(fitted.judged).score(data) > er.Ridge("nDCG@10").fit(data).score(data) - 0.05
    assert list(fitted.to_frame().columns) == ["query_id", "doc_id", "strength", "error", "grade"]
    with pytest.raises(er.errors.DataError, match=r"no pairs to derive grades from; give it some with er\.pairs\.with_pairs or "):
        er.pairs.bradley_terry(data)
    for name in ("prior", "scale"):
        with pytest.raises(er.errors.SettingError, match=f"{name} must be a number above 0, got 0"):
            er.pairs.bradley_terry(without_grades(data), **{name: 0})


def test_weights_whose_squares_overflow_are_refused():
    data = er.RankingData.from_arrays(None, [0, 0, 0], group=[3])
    pairs = {"better": [0, 1], "worse": [1, 2]}
    assert np.all(np.isfinite(er.pairs.bradley_terry(er.pairs.with_pairs(data, pairs | {"weight": [1.0, 1e100]})).strength))
    with pytest.raises(er.errors.DataError, match=r"the weight of pair 1 is 1e\+150; give weights of at most 1e\+100"):
        er.pairs.bradley_terry(er.pairs.with_pairs(data, pairs | {"weight": [1.0, 1e150]}))
