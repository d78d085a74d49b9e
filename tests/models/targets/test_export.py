"""What all exports share: plain terms score as the model does, refusals name the remedy, and checks find what differs."""

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank.errors import IncompatibleError
from exactrank.models.network import Network
from exactrank.models.plain_tree import PlainTree, table_of
from exactrank.models.sum import sum_of
from exactrank.models.targets import TARGETS
from exactrank.models.targets.plain import plain
from tests import ROOT
from tests.reference.trees import booster_of

FEATURES = ("bm25", "dense", "age")


def rows_of(seed, count=40, holes=0.0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, 3)).round(1).astype(np.float32)
    rows[rng.random(rows.shape) < holes] = np.nan
    return rows


def data_of(seed, holes=0.0):
    rows = rows_of(seed, 60, holes)
    grades = (np.nan_to_num(rows).sum(axis=1) + np.random.default_rng(seed).normal(size=60) > 0.5).astype(int)
    return er.RankingData.from_arrays(rows, grades, group=[6] * 10, feature_names=FEATURES)


def thresholds_of(seed):
    rng = np.random.default_rng(seed)
    steps = [(j, t, v) for j in range(3) for t, v in zip(rng.normal(size=j * 3).round(1), rng.normal(size=j * 3), strict=True)]
    return er.models.Thresholds.from_steps(steps or [(0, 0.0, 1.0)], 3, FEATURES)


def scorers(seed, missing="keep"):
    """One scorer of each kind; trees treat a missing value as ``missing`` says."""
    rng, data = np.random.default_rng(seed), data_of(seed)
    trees = er.LambdaMART(trees=4, leaves=4, min_documents=1, missing=missing, seed=seed % 1000).fit(data).model_.scorer
    linear = er.models.Linear(rng.normal(size=3), FEATURES)
    units = [rng.normal(size=size) for size in ((4, 3), 4, 4, 3)]
    network = er.models.Network(*units, rng.uniform(0.5, 2, 3), FEATURES)
    kinds = [linear, network, thresholds_of(seed), trees]
    return [*kinds, sum_of(kinds, rng.normal(size=4).tolist()), sum_of([linear, trees], [0.5, 2.0])]


def plain_scores(terms, rows):
    """The formula of plain terms, one row after the other."""
    filled = np.where(np.isnan(rows), terms.fill, rows.astype(np.float64))
    results = []
    for row, whole in zip(rows, filled, strict=True):
        score = terms.constant
        if terms.linear is not None:
            score += float(sum(w * x for w, x in zip(terms.linear, whole, strict=True)))
        if terms.units is not None:
            score += float(terms.units.output @ np.tanh(terms.units.weights @ whole + terms.units.bias))
        for tree in terms.trees:
            node = 0 if len(tree.feature) else -1
            while node >= 0:
                x = row[tree.feature[node]]
                left = tree.missing_left[node] if np.isnan(x) else float(x) <= tree.threshold[node]
                node = int((tree.left if left else tree.right)[node])
            score += float(tree.leaf[~node])
        results.append(score)
    return np.array(results)


@given(st.integers(0, 10**6))
def test_plain_terms_score_as_the_model_does(seed):
    rows = rows_of(seed)
    for scorer in scorers(seed):
        terms = plain(er.Model(scorer))
        np.testing.assert_allclose(plain_scores(terms, rows), scorer.score(rows), rtol=1e-12, atol=1e-12)
        for tree in terms.trees:
            assert sorted(tree.preorder()) == list(range(-len(tree.leaf), len(tree.feature)))
            leaves = tree.leaf_of(len(rows), lambda node, tree=tree: rows[:, tree.feature[node]].astype(float) <= tree.threshold[node])
            alone = plain_scores(replace(terms, constant=0.0, linear=None, units=None, trees=(tree,)), rows)
            np.testing.assert_array_equal(tree.leaf[leaves], alone)


@given(st.integers(0, 10**6), st.sampled_from(["keep", "zero", "mean"]))
def test_missing_values_go_where_the_model_sends_them(seed, missing):
    ranker = er.LambdaMART(trees=4, leaves=4, min_documents=1, bags=0, missing=missing).fit(data_of(seed, holes=0.3))
    terms, rows = plain(ranker.model_), rows_of(seed + 1, holes=0.3)
    np.testing.assert_allclose(plain_scores(terms, rows), ranker.predict(rows), rtol=1e-12, atol=1e-12)
    linear = er.models.Linear(np.ones(3), FEATURES, missing="zero" if missing == "keep" else missing, fill=ranker.model_.scorer.fill)
    both = er.models.Sum((linear, ranker.model_.scorer), np.array([1.0, 0.5]))
    np.testing.assert_allclose(plain_scores(plain(er.Model(both)), rows), both.score(rows), rtol=1e-12, atol=1e-12)
    assert terms.missing in {"keep": ("keep", "zero"), "zero": ("zero",), "mean": ("mean",)}[missing]


@pytest.mark.parametrize("seed", range(3))
def test_what_trees_take_for_zero_goes_where_zero_goes(seed):
    least, trees = np.float32(1e-35), scorers(seed)[3]
    values = [0, 1e-40, -1e-40, *(np.nextafter(end, np.float32(to)) for end in (least, -least) for to in (np.inf, end, -np.inf))]
    rows = np.array(list(product(values, repeat=3)), np.float32)
    np.testing.assert_array_equal(plain_scores(plain(er.Model(trees)), rows), trees.score(rows))


def test_what_stands_for_missing_values_is_a_float_as_features_are():
    linear = er.models.Linear(np.ones(3), FEATURES, missing="mean", fill=np.array([0.1, 0.2, 1 / 3]))
    holes = np.full((1, 3), np.nan, np.float32)
    np.testing.assert_array_equal(plain_scores(plain(er.Model(linear)), holes), linear.score(holes))


@pytest.mark.parametrize("threshold", [1e-35, 1e-40, 0.0, -0.0, -1e-40, -1e-35])
def test_tiny_values_are_zeros_to_trees_as_to_lightgbm(threshold):
    table = er.LambdaMART(trees=1, leaves=2, min_documents=1, bags=0).fit(data_of(1)).model_.scorer.table
    scorer = er.models.TreeEnsemble(replace(table, threshold=np.array([float(np.float32(threshold))])))
    tiny = np.float32([1e-35, 1e-36, 1e-45, 0.0])
    rows = np.tile(np.concatenate([tiny, -tiny, np.nextafter(tiny, np.float32(1)), np.nextafter(-tiny, np.float32(-1))]), (3, 1)).T
    np.testing.assert_array_equal(plain_scores(plain(er.Model(scorer)), rows), booster_of(scorer).predict(rows, raw_score=True))


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_split_of_what_is_missing_from_what_is_there_has_a_finite_threshold(is_ours):
    """LightGBM's is infinite."""
    rows = rows_of(0, 60, holes=0.3)
    data = er.RankingData.from_arrays(rows, np.isnan(rows[:, 0]).astype(int), group=[6] * 10, feature_names=FEATURES)
    scorer = er.LambdaMART(trees=2, leaves=2, min_documents=1, bags=0, missing="keep").fit(data).model_.scorer
    assert np.all(scorer.table.threshold == np.finfo(np.float32).max)
    if not is_ours:
        scorer = replace(scorer, table=replace(scorer.table, threshold=np.full(len(scorer.table.threshold), np.inf)))
    terms, most = plain(er.Model(scorer)), np.finfo(np.float32).max
    assert all(np.all(np.isfinite(tree.threshold)) for tree in terms.trees)
    ends = np.array([[most, 0, 0], [-most, 0, 0], [np.nan, 0, 0], [0, 0, 0]], np.float32)
    np.testing.assert_array_equal(plain_scores(terms, ends), scorer.score(ends))


@given(st.integers(0, 10**6), st.sampled_from(["zero", "mean"]))
def test_the_parts_of_a_sum_fill_missing_values_themselves(seed, missing):
    rankers = er.Ridge(missing=missing), er.LambdaMART(trees=4, leaves=4, min_documents=1, bags=0, missing=missing)
    both = sum_of([ranker.fit(data_of(seed, holes=0.3)).model_.scorer for ranker in rankers], [0.5, 2.0])
    rows = rows_of(seed + 1, holes=0.3)
    np.testing.assert_allclose(plain_scores(plain(er.Model(both)), rows), both.score(rows), rtol=1e-12, atol=1e-12)


def test_offsets_are_in_the_numbers():
    rng = np.random.default_rng(0)
    near = rng.normal(size=(60, 3)) * [1, 1, 100] + [0, 0, 1e9]  # which float32 cannot tell apart
    data = er.RankingData.from_arrays(near, (near[:, 2] > 1e9 + 5).astype(int), group=[6] * 10, feature_names=FEATURES)
    assert data.offset is not None
    for ranker in (er.Ridge(), er.RankBoost(), er.LambdaMART(trees=3, min_documents=1), er.LambdaRank(hidden=2, max_iter=3)):
        terms = plain(ranker.fit(data).model_)
        np.testing.assert_allclose(plain_scores(terms, near), ranker.predict(data), rtol=1e-6, atol=1e-6)


class Halves(er.targets.Target):
    """A target whose engine halves every score, and reads nothing but weights."""

    name, suffix, kinds = "halves", ".txt", ("linear",)
    names = re.compile("[a-z0-9]+")

    def write(self, terms):
        return " ".join(map(repr, terms.linear.tolist())), ["scores are halved"]

    def scores(self, content, rows, features):
        return rows @ np.array([float(word) for word in content.split()]) / 2


def test_a_check_says_what_differs():
    data = data_of(1)
    model = er.Ridge(measure="nDCG@3").fit(data)
    export = er.export(model, Halves())
    result = export.check(data)
    assert export.remarks == ("scores are halved",)
    assert (result.documents, result.queries, str(result.measure)) == (60, 10, "nDCG@3")
    assert result.beyond_rounding == np.count_nonzero(model.predict(data))
    assert result.largest == pytest.approx(np.abs(model.predict(data)).max() / 2)
    assert result.changed_top == 0
    assert result.of_model == result.of_export == pytest.approx(model.score(data))


@pytest.mark.parametrize(
    ("scorer", "says"),
    [
        (4, "cannot express hidden units; train a linear model"),
        (5, "cannot express trees"),
        (er.models.Linear(np.ones(1), ("BM25",)), "cannot have a feature called 'BM25'; rename"),
        (er.models.Linear(np.ones(1), ("a",), missing="mean", fill=np.ones(1)), r"\(missing='mean'\); train with missing='zero'"),
    ],
)
def test_what_a_target_cannot_express_is_refused(scorer, says):
    scorer = scorers(0)[scorer] if isinstance(scorer, int) else scorer
    with pytest.raises(IncompatibleError, match=says):
        er.export(scorer, Halves())


@pytest.mark.parametrize("name", TARGETS)
def test_the_documentation_says_what_a_target_can_do(name):
    page = (ROOT / "docs" / "deploy" / "index.md").read_text()
    target = TARGETS[name]()
    cells = next([cell.strip() for cell in line.split("|")[2:-1]] for line in page.split("\n") if re.match(rf"\|[^|]*\| \[?`{name}`", line))
    kinds = [*target.kinds, *(["sums"] if target.adds else [])]
    assert cells[1:] == [", ".join(kinds), "single" if target.precision is np.float32 else "double", ", ".join(target.missing)]


def test_an_unknown_target_or_setting_is_named():
    with pytest.raises(er.errors.DataError, match="no export target 'solar'"):
        er.export(er.models.Linear(np.ones(1)), "solar")
    with pytest.raises(er.errors.SettingError, match="already exists"):
        er.export(er.models.Linear(np.ones(1)), Halves(), model_name="a")


def stump(value=1.0):
    """A tree with one split, of two features."""
    left, right = np.array([1, -1, -1]), np.array([2, -1, -1])
    return table_of([PlainTree(np.zeros(3, int), np.full(3, 0.5), left, right, np.array([0.0, 1.0, value]))], 2)


LARGE = np.array([1e300, 1.0])
OVERFLOWS = {
    "the weight in a hidden unit of feature 'b'": Network(
        np.array([[1.0, 1e300]]), np.zeros(1), np.ones(1), np.zeros(2), np.array([1.0, 1e-300]), ("a", "b")
    ),
    "the bias of a hidden unit": Network(np.full((1, 2), 1e200), np.zeros(1), np.ones(1), np.full(2, 1e200), np.ones(2), ("a", "b")),
    "the constant": er.models.Linear(LARGE, ("a", "b"), offset=LARGE),
    "the weight of feature 'a'": er.models.Sum(
        (er.models.Linear(LARGE, ("a", "b")), er.models.TreeEnsemble(stump(), ("a", "b"))), np.array([1e300, 1.0])
    ),
    "the value of a leaf": er.models.Sum(
        (er.models.Linear(np.ones(2), ("a", "b")), er.models.TreeEnsemble(stump(1e300), ("a", "b"))), np.array([1.0, 1e300])
    ),
    "a threshold of feature 'a'": er.models.Thresholds(
        (np.array([1.7e308]), np.empty(0)), (np.ones(1), np.empty(0)), ("a", "b"), offset=np.array([1.7e308, 0.0])
    ),
    "the fill value of feature 'a'": er.models.Linear(np.ones(2), ("a", "b"), missing="mean", fill=np.array([1e300, 0.0])),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("what", OVERFLOWS)
def test_numbers_that_overflow_are_refused(what, target):
    """No target writes inf or NaN: the place is named before any of them writes."""
    with pytest.raises(IncompatibleError, match=f"{what} overflows when .* similar scales"):
        er.export(OVERFLOWS[what], target)


def test_a_constant_that_overflows_in_a_leaf_is_refused():
    terms = plain(er.Model(er.models.TreeEnsemble(stump(1.7e308), ("a", "b"))))
    with pytest.raises(IncompatibleError, match="the value of a leaf overflows"):
        replace(terms, constant=1.7e308).without_constant()
