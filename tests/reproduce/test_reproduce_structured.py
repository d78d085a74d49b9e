"""The experiments with large margins: their inequalities can fail, and they say what the rankers do."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.data.synthetic import CubicPolynomial
from exactrank.learning.optimizers.base import Duality
from exactrank.reproduce import find_experiment
from exactrank.reproduce.artificial import five_splits, mix_features, three_parts
from exactrank.reproduce.experiment import signed_rank
from exactrank.reproduce.structured_bounds import FACTORS, Bounds, Solved, agree, arrives
from exactrank.reproduce.structured_ndcg import METHODS, OURS, RIDGES, BoundContest

PARTS = ("train", "vali", "test")


def fold_of(folder, number, parts):
    """Write a fold."""
    (folder / f"Fold{number}").mkdir(parents=True)
    for name, part in zip(PARTS, parts, strict=True):
        er.write(part, folder / f"Fold{number}" / f"{name}.txt")


def drawn(queries, first=1, documents=12):
    return CubicPolynomial(features=4, documents=documents, grades=3, seed=5).data(queries, first)


# ---- structured NDCG against its rivals


@given(st.lists(st.integers(1, 99), min_size=1, max_size=8, unique=True), st.integers(0, 255))
def test_signed_ranks_by_hand(sizes, signs):
    """Of all ways to choose the signs, the share whose positive ranks sum to as much."""
    difference = np.array([size if signs >> i & 1 else -size for i, size in enumerate(sizes)], float)
    ranks = np.argsort(np.argsort(sizes)) + 1
    observed = ranks[difference > 0].sum()
    sums = [np.dot(each, ranks) for each in product((0, 1), repeat=len(ranks))]
    assert signed_rank(difference, np.zeros(len(ranks))) == pytest.approx(min(1.0, 2 * np.mean(np.array(sums) >= observed)))


@settings(max_examples=30)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=6))
def test_only_one_of_two_is_ahead(differences):
    ours, theirs = np.array(differences, float), np.zeros(len(differences))
    assert max(signed_rank(ours, theirs), signed_rank(theirs, ours)) == 1
    assert 0 < min(signed_rank(ours, theirs), signed_rank(theirs, ours)) <= 1


def test_structured_ndcg_is_ahead_where_it_is():
    rng = np.random.default_rng(0)
    low = rng.random((10, 60))
    high = low + 0.1 * rng.random((10, 60))
    ahead, behind, equal = (
        BoundContest("", {method: ours if method == OURS else theirs for method in METHODS})
        for ours, theirs in ((high, low), (low, high), (low, low))
    )
    assert [check.holds for check in ahead.checks()] == [True] * 6 + [False]
    for contest in (behind, equal):
        assert [check.holds for check in contest.checks()] == [False] * 7


def test_what_is_shown_is_what_rankers_trained_for_each_k_score():
    result = find_experiment("structured-ndcg")(features=6, documents=15, web_1=(20, 10, 40), web_2=(5, 5, 5)).run()
    parts = three_parts(CubicPolynomial(6, 10), (20, 10, 40))
    train, valid, test = (mix_features(part, 0) for part in (parts.train, parts.valid, parts.test))
    rows = {row[0]: row[1:5] for row in result.tables[0].rows}
    for measure in ("nDCG@2", "nDCG@5", "nDCG@10"):
        rankers = er.StructuredRank(measure=measure, bound="convex"), er.RankSVM(measure=measure, loss="hinge")
        ours, svm = (ranker.fit(train, valid=valid).score(test) for ranker in rankers)
        whole = er.RankingData.from_arrays(train.X, train.y, group=[train.n_documents], feature_names=train.feature_names)
        plain, centered = (
            max((er.Ridge(measure=measure, l2=ridge).fit(part) for ridge in RIDGES), key=lambda ranker: ranker.score(valid)).score(test)
            for part in (whole, train)
        )
        assert rows[measure] == pytest.approx([ours, plain, centered, svm])
    discount, either = (er.StructuredRank(measure="nDCG@10", **settings).fit(train, valid=valid).score(test)
                        for settings in ({"bound": "convex", "A": "discount"}, {"bound": "auto"}))  # fmt: skip
    assert result.tables[0].rows[9][5:] == pytest.approx([result.tables[0].rows[9][1], discount, either])


def test_folds_of_a_folder_are_pooled(tmp_path):
    folds = [(drawn(15), drawn(10, 20), drawn(5, 40)), (drawn(15, 50), drawn(10, 70), drawn(15, 90))]
    for name, numbers in (("both", (1, 2)), ("first", (1,)), ("second", (2,))):
        for number in numbers:
            fold_of(tmp_path / name, number, folds[number - 1])
    kind = find_experiment("structured-ndcg")
    both, first, second = (kind(data=(str(tmp_path / name),), threads=1).run() for name in ("both", "first", "second"))
    means = [np.array([row[1:8] for row in found.tables[0].rows[:10]]) for found in (both, first, second)]
    np.testing.assert_allclose(means[0], (5 * means[1] + 15 * means[2]) / 20)
    assert not np.allclose(means[1], means[2])


# ---- the convex bound and the ramp


@given(st.integers(5, 30), st.integers(0, 9), st.integers(1, 3))
def test_five_splits_test_each_query_once(queries, seed, train):
    data = er.RankingData.from_arrays(None, np.zeros(queries), qid=np.arange(queries))
    splits = five_splits(data, seed, train)
    for split in splits:
        assert sorted([*split.train.qid, *split.valid.qid, *split.test.qid]) == list(range(queries))
    for part, times in (("train", train), ("valid", 4 - train), ("test", 1)):
        seen = [query for split in splits for query in getattr(split, part).qid]
        assert sorted(seen) == sorted(list(range(queries)) * times)
    assert all(set(split.valid.qid).isdisjoint(split.test.qid) for split in splits)


@pytest.mark.parametrize("broken", [None, 0, 1, 2, 3, 4, 5])
def test_each_inequality_of_the_bounds_can_fail(broken):
    values = {"ramp": 0.5, "ramp, ours": 0.5, "convex": 0.3, "regression": 0.4, "RankSVM": 0.45, "RankBoost": 0.35}
    if broken in (1, 2, 3, 4):
        values[["convex", "regression", "RankSVM", "RankBoost"][broken - 1]] = 0.6
    losses = np.outer([0.3 if broken == 5 else 2.0, 0.7, 0.4], np.ones(len(FACTORS)))
    duals = np.array([[0.8, 0.7999], [0.8, 0.79 if broken == 0 else 0.7998]])
    by_method = {method: np.full((10, 6), value) for method, value in values.items()}
    bounds = Bounds("", (1.0, 0.1), np.full(2, 0.8), duals, by_method, losses)
    assert [check.holds for check in bounds.checks()] == [i != broken for i in range(6)]


def test_bounds_bound():
    panels = (
        find_experiment("structured-bounds")(features=5, documents=12, queries=20, noises=(1.0,), strengths=(1.0,), threads=1).run().panels
    )
    for panel in panels[1::2]:
        convex, ramp, loss = (np.array(curve.y) for curve in panel.curves)
        assert np.all(convex > ramp)
        assert np.all(ramp >= loss)
        np.testing.assert_allclose(loss, loss[0])
        assert ramp[0] > ramp[-1]


@pytest.mark.parametrize("learnable", [True, False])
def test_the_convex_bound_collapses_only_where_there_is_nothing_to_learn(tmp_path, learnable):
    rng = np.random.default_rng(0)
    y = np.repeat([2, 1] + [0] * 28, 50)
    X = rng.standard_normal((len(y), 2)) + (10 * y[:, None] if learnable else 0)
    data = er.RankingData.from_arrays(X, y, qid=np.tile(np.arange(50), 30))
    split = five_splits(data, 0)[0]
    fold_of(tmp_path, 1, (split.train, split.valid, split.test))
    collapsed, better, *_ = find_experiment("structured-bounds")(data=(str(tmp_path),), strengths=(0.1,)).run().checks
    assert collapsed.holds != learnable
    assert collapsed.right <= 1 + 1e-9
    if learnable:
        assert better.left > 0.99


# ---- times


def solved(solver="bundle", l2=1.0, taken=2.0, primal=1.0, gap=5e-4):
    return Solved(solver, l2, (0.5 * taken, taken), (Duality(9.0, 0.0), Duality(primal, primal * (1 - gap))))


@pytest.mark.parametrize("broken", [None, 0, 1, 2])
def test_each_inequality_of_the_times_can_fail(broken):
    each = [solved(gap=2e-3 if broken == 0 else 5e-4), solved(taken=901.0 if broken == 1 else 2.0)]
    same = agree([solved(), solved(primal=1.002 if broken == 2 else 1.0005), solved(primal=1.0003)])
    assert [check.holds for check in (*arrives(each), *arrives(each[::-1]))] == [i != broken for i in (0, 1)] * 2
    assert same.holds == (broken != 2)


def test_all_solvers_are_followed_to_the_gap():
    result = find_experiment("structured-times")(features=5, documents=10, queries=20, strengths=(10.0, 1.0), repeats=2).run()
    assert [[curve.label for curve in panel.curves] for panel in result.panels] == [
        ["cutting-plane", "bundle", "subgradient", "conjugate"]
    ] * 2
    for curve in (curve for panel in result.panels for curve in panel.curves):
        assert np.all(np.diff(curve.x) > 0)
        assert curve.y[-1] <= 1e-3 < curve.y[-2]
    assert {row[0] for row in result.tables[0].rows} == {"10", "1"}
    assert result.holds
