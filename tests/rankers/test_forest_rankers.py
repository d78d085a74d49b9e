"""Forests through the rankers: settings do what they say, and data that is hard on trees is learned from, or refused with words."""

from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.exceptions import ConvergenceWarning

import exactrank as er
from exactrank.data.dataset import Part
from exactrank.errors import DataError, SettingError
from exactrank.learning.objectives.score_space import by_query
from exactrank.learning.trees.bins import SAMPLE, Layout

PLAIN = {"min_documents": 1, "min_curvature": 0.0, "feature_fraction": 1.0, "query_fraction": 1.0, "bags": 0, "threads": 1}
SEEDS = st.integers(0, 2**32 - 1)


def data_of(X, y=None, seed=0, **more):
    rng = np.random.default_rng(seed)
    X = np.asarray(X, np.float32)
    y = rng.integers(0, 4, len(X)) if y is None else y
    sizes = np.full(len(X) // 5 + (len(X) % 5 > 0), 5)
    sizes[-1] = len(X) - 5 * (len(sizes) - 1)
    return er.RankingData.from_arrays(X, y, group=sizes, **more)


def noise(rows=60, features=3, seed=0, missing=0.0, levels=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)) if levels is None else rng.integers(0, levels, (rows, features)).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def mart(**more):
    return er.MART("nDCG@3", **(PLAIN | {"trees": 4, "learning_rate": 0.5} | more))


@dataclass(frozen=True)
class Forces:
    """An objective whose slopes and curvatures are the same for all scores."""

    slope: float = 1.0
    curvature: float = 1.0
    conservative = False

    def on(self, data):
        def answer(number, scores):
            side = np.where(data.y[data.indptr[number] : data.indptr[number + 1]] > 1, 1.0, -1.0)
            return 0.0, self.slope * side, np.full(len(scores), self.curvature)

        return by_query(answer)


# ---- predictions


MEASURE = er.measures.NDCG(k=3, ties="expected")  #: which does not depend on the order of documents


def assert_reported_as_scored(ranker, data, valid):
    """The measure that was reported after each tree is that of the model's scores by the trees so far."""
    steps = []
    table = ranker.fit(data, valid=valid, progress=steps.append).model_.scorer.table
    for count in range(1, table.n_trees + 1):
        ours = [MEASURE.on(judged).mean(table.first(count).native.scores(judged.X, 1)) for judged in (data, valid)]
        assert ours == pytest.approx([steps[count - 1].value, steps[count - 1].valid], abs=1e-12)


def measured(**more):
    return er.MART(MEASURE, **(PLAIN | {"trees": 6, "learning_rate": 0.5} | more))


@given(SEEDS, st.sampled_from([2, 5, 255, 3000]), st.sampled_from(["best-first", "symmetric"]), st.sampled_from([None, 2, 4]))
@settings(max_examples=30)
def test_a_forest_is_judged_as_it_scores(seed, bins, shape, levels):
    """With missing values, and with categories, of which validation data has others."""
    names = {"feature_names": ["a", "b", "c"]}
    X, other = (noise(50, 3, seed + more, missing=0.2, levels=levels) for more in (0, 1))
    X[:, 2], other[:, 2] = np.arange(50) % 6, np.arange(50) % 8
    ranker = measured(bins=bins, shape=shape, categorical=["c"])
    assert_reported_as_scored(ranker, data_of(X, seed=seed, **names), data_of(other, seed=seed, **names))


@pytest.mark.parametrize("shape", ["best-first", "symmetric"])
def test_missing_values_that_only_validation_data_has_are_judged_as_they_score(shape):
    X, holes = noise(200), noise(200, seed=3)
    y, truth = (np.digitize(x[:, 0] + 0.3 * x[:, 1], [-1, 0.5, 1.5]) for x in (X, holes))
    holes[np.random.default_rng(0).random(holes.shape) < 0.5] = np.nan
    assert_reported_as_scored(measured(shape=shape), data_of(X, y), data_of(holes, truth))


def test_a_category_that_is_not_known_goes_where_missing_ones_go():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (100, 1)).astype(float)
    ranker = mart(categorical=["f"]).fit(data_of(X, X[:, 0] % 3, feature_names=["f"]))
    unknown = ranker.predict(np.array([[7], [1e6], [4e9], [-1], [np.nan], [2.5e9]], np.float32))
    assert len(set(unknown.tolist())) == 1


def test_categories_of_large_numbers_are_refused_before_training():
    """A model would take hundreds of megabytes per split."""
    names = {"feature_names": ["a", "b"]}
    X = np.column_stack([np.arange(60), np.arange(60) % 3])
    mart(categorical=["b"]).fit(data_of(X + np.array([0, 2**20 - 3]), **names))
    with pytest.raises(DataError, match=r"'b' has the category 1,048,576, but .* number them from 0 on, below 1,048,576"):
        mart(categorical=["b"]).fit(data_of(X + np.array([0, 2**20 - 2]), **names))


def test_a_level_of_a_symmetric_tree_has_one_set_of_categories():
    """Of the setting and of the data; a feature of 40 categories of which some have a single document, and an unknown bin."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"query_id": np.arange(400) // 8, "x": rng.standard_normal(400), "size": rng.integers(0, 5, 400)})
    frame["color"] = np.array([f"color {number}" for number in range(40)])[np.minimum(rng.geometric(0.1, 400) - 1, 39)]
    frame["relevance"] = (frame["size"] % 2 + frame["color"].str.endswith(("3", "5", "8")) + (frame["x"] > 0)).astype(int)
    data = er.RankingData.from_frame(frame)
    table = mart(trees=3, bins=20, categorical=["size"], shape="symmetric", leaves=32).fit(data).model_.scorer.table
    splits, features = table.start[1], data.feature_names
    assert {features[number] for number in table.feature} == {"x", "size", "color"}
    choices = []
    for feature, place in zip(table.feature[:splits].tolist(), table.threshold[:splits].tolist(), strict=True):
        sets = table.set_start[int(place) : int(place) + 2].tolist() if features[feature] != "x" else []
        choices.append((feature, table.sets[slice(*sets)].tobytes() if sets else place))
    levels = [choice for choice, _ in groupby(choices)]  # splits are listed level by level
    assert len(levels) == len(set(levels)) < splits / 2


# ---- data


@pytest.mark.parametrize("kind", [er.MART, er.LambdaMART, er.DirectRankTrees])
@pytest.mark.parametrize("case", ["missing", "small"])
def test_features_without_a_split_are_named_as_the_reason(kind, case):
    """All values are missing, or leaves would be too small."""
    X, least = (np.full((60, 2), np.nan), 1) if case == "missing" else (noise(60), 31)
    more = {"trees": 3, "min_documents": least, "query_fraction": 0.9 if kind is er.DirectRankTrees else 1.0}
    with pytest.warns(ConvergenceWarning, match="no split is possible"):
        ranker = kind("nDCG@3", **(PLAIN | more)).fit(data_of(X))
    assert not ranker.predict(data_of(X)).any()


def test_constant_features_are_refused():
    with pytest.raises(DataError, match="nothing to learn"):
        mart().fit(data_of(np.ones((60, 2))))


def test_a_feature_that_is_constant_or_missing_is_split_between_both():
    """Beside another one, whose cuts lie below its value."""
    X = np.column_stack([np.where(np.arange(60) % 3 == 0, np.nan, 5.0), np.arange(60) % 2])
    is_missing = np.isnan(X[:, 0])
    scores = mart(trees=1).fit(data_of(X, is_missing * 2)).predict(X)
    assert scores[is_missing].min() > scores[~is_missing].max()


def test_more_bins_than_values_change_nothing():
    data = data_of(noise(levels=7))
    theirs = mart(bins=7).fit(data).predict(data)
    for bins in (8, 255, 65_536):
        assert np.array_equal(mart(bins=bins).fit(data).predict(data), theirs)


def test_more_leaves_than_documents_give_each_its_leaf():
    data = data_of(np.arange(60)[:, None], np.arange(60) % 4)
    ranker = mart(trees=1, learning_rate=1.0, leaves=1 << 17).fit(data)
    np.testing.assert_allclose(ranker.predict(data), data.y - data.y.mean(), atol=1e-9)


def test_the_largest_force_may_pull_down():
    """The unit that forces are rounded to holds it."""
    data = data_of(np.arange(60)[:, None], np.where(np.arange(60) < 2, 0, 3))
    ranker = mart(trees=1, learning_rate=1.0).fit(data)
    np.testing.assert_allclose(ranker.predict(data), data.y - data.y.mean(), atol=1e-9)


def test_documents_of_weight_0_are_not_there():
    X, y = noise(60), np.random.default_rng(1).integers(0, 4, 60)
    weight = np.tile([1.0, 2.0, 1.0, 0.0, 3.0], 12)
    ours = mart().fit(data_of(X, y, sample_weight=weight))
    X[weight == 0], y[weight == 0] = 1e6, 3
    theirs = mart().fit(data_of(X, y, sample_weight=weight))
    kept = data_of(noise(60, seed=4))
    assert [len(ours.model_.scorer.table.leaf_value)] == [len(theirs.model_.scorer.table.leaf_value)]
    assert ours.model_.scorer.table.cover.sum() == theirs.model_.scorer.table.cover.sum() == 4 * 48
    assert np.isfinite(ours.predict(kept)).all()


@given(SEEDS, st.booleans(), st.sampled_from(["best-first", "symmetric"]))
@settings(max_examples=15)
def test_a_weight_is_as_many_copies_to_the_bit_where_forces_are_whole(seed, of_queries, shape):
    """Of a document or of a whole query, for a full tree. Other forces are rounded, so that near ties may be split otherwise.

    Weights are divided by their mean, which is a power of two here.
    """
    X, y, rng = noise(seed=seed), np.random.default_rng(seed).integers(0, 4, 60), np.random.default_rng(seed + 1)
    times = np.repeat(rng.permutation([1, 1, 2, 4] * 3), 5) if of_queries else rng.permutation([1, 1, 2, 4] * 15)
    copies = np.repeat(np.arange(60), times)
    number = np.concatenate([np.arange(each) for each in times])  # of the copy
    qid = copies // 5 + 12 * number * of_queries
    order = np.argsort(qid, kind="stable")
    weight = {"query_weight": times[::5].astype(float)} if of_queries else {"sample_weight": times.astype(float)}
    copied = er.RankingData.from_arrays(X[copies][order].astype(np.float32), y[copies][order], qid=qid[order])
    ranker = er.LambdaMART("nDCG@3", lambdas=Forces(slope=3.0), trees=1, leaves=31, shape=shape, **PLAIN)
    ours, theirs, plain = (ranker.fit(data).model_.scorer for data in (data_of(X, y, **weight), copied, data_of(X, y)))
    assert np.array_equal(ours.table.feature, theirs.table.feature)
    assert np.array_equal(ours.score(X), theirs.score(X))
    assert not np.array_equal(ours.table.gain, plain.table.gain)


def test_weights_that_are_all_0_are_refused():
    with pytest.raises(DataError, match="weight"):
        mart().fit(data_of(noise(), sample_weight=np.zeros(60)))


@given(SEEDS, st.sampled_from([1.0, 3.0, 1000.0]))
@settings(max_examples=15)
def test_an_objective_without_curvature_counts_as_one_of_curvature_1(seed, heaviest):
    """Whatever the weights of documents."""
    weight = np.where(np.arange(60) % 7 == 0, heaviest, 1.0)
    data = data_of(noise(seed=seed), seed=seed, sample_weight=weight)
    ours, theirs = (er.LambdaMART("nDCG@3", lambdas=Forces(curvature=h), trees=2, **PLAIN).fit(data) for h in (0.0, 1.0))
    assert ours.model_.scorer.n_trees == theirs.model_.scorer.n_trees
    assert np.array_equal(ours.predict(data), theirs.predict(data))


@pytest.mark.parametrize("levels", [2, 3])
def test_few_distinct_documents_are_told_apart_however_many_there_are(levels):
    """The sample that bins come from draws documents by their features, so that equal ones are in it together or not at all."""
    rows = 2 * SAMPLE
    for offset in range(4):
        X = (np.arange(rows) % levels + 10.0 * offset)[:, None]
        data = er.RankingData.from_arrays(
            X.astype(np.float32), np.arange(rows) % levels, group=[levels] * (rows // levels) + [1] * (rows % levels)
        )
        scores = er.MART("nDCG@3", trees=1, **PLAIN).fit(data).predict(data)
        assert len(np.unique(scores)) == levels


def test_a_document_unlike_all_others_has_a_bin_of_its_own():
    """Where few documents are distinct."""
    X = np.arange(2 * SAMPLE)[:, None] % 2.0
    X[0] = 7
    data = er.RankingData.from_arrays(X.astype(np.float32), np.zeros(len(X)), group=[len(X)])
    assert Layout.of(Part(data), data.n_documents, 255, (), 1).cuts.tolist() == [0.5, 4.0]


# ---- forces


def test_forces_of_0_end_training_with_a_reason():
    data = data_of(noise())
    with pytest.warns(ConvergenceWarning, match="no split is possible|no force"):
        ranker = er.LambdaMART("nDCG@3", lambdas=Forces(slope=0.0), trees=3, **PLAIN).fit(data)
    assert not ranker.predict(data).any()


@pytest.mark.parametrize("forces", [Forces(slope=np.nan), Forces(curvature=np.nan), Forces(slope=np.inf)])
def test_forces_that_are_not_finite_name_the_objective(forces):
    with pytest.raises(DataError, match="Forces gives forces that are not finite numbers after 0 trees"):
        er.LambdaMART("nDCG@3", lambdas=forces, trees=3, **PLAIN).fit(data_of(noise()))


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_the_size_of_forces_does_not_matter(scale):
    """If slopes and curvatures are large or small together, as in other units, the trees are the same."""
    data = data_of(noise())
    ours = er.LambdaMART("nDCG@3", lambdas=Forces(scale, scale), trees=2, **PLAIN).fit(data).predict(data)
    theirs = er.LambdaMART("nDCG@3", lambdas=Forces(), trees=2, **PLAIN).fit(data).predict(data)
    np.testing.assert_allclose(ours, theirs, rtol=1e-2)


# ---- settings


def learnable(seed):
    X = noise(seed=seed)
    return data_of(X, np.digitize(X[:, 0], [-1, 0, 1]))


def first_tree(ranker, data):
    table = ranker.fit(data).model_.scorer.table
    splits, leaves = slice(0, table.start[1]), slice(0, table.start[1] + 1)
    return table.feature[splits], table.gain[splits], table.leaf_value[leaves], table.cover[leaves]


@given(SEEDS, st.floats(0.01, 1.0))
@settings(max_examples=15)
def test_max_step_bounds_outputs(seed, step):
    values = first_tree(mart(trees=1, learning_rate=0.5, max_step=step), learnable(seed))[2]
    assert np.abs(values).max() <= 0.5 * step


@given(SEEDS, st.floats(0.1, 10.0))
@settings(max_examples=15)
def test_min_gain_keeps_the_splits_that_gain_more(seed, least):
    data = learnable(seed)
    all_gains = first_tree(mart(trees=1), data)[1]
    gains = first_tree(mart(trees=1, min_gain=least), data)[1]
    assert (gains >= np.float32(least)).all()
    assert gains[0] == all_gains[0]
    with pytest.warns(ConvergenceWarning, match="no split is possible"):
        mart(trees=1, min_gain=2.0 * float(all_gains[0])).fit(data)


@given(SEEDS)
@settings(max_examples=15)
def test_path_smoothing_draws_outputs_towards_those_above(seed):
    """From none to all: the outputs come together, at the root's, which is 0 for residuals of a mean."""
    data = learnable(seed)
    spreads = [np.ptp(first_tree(mart(trees=1, leaves=2, path_smoothing=s), data)[2]) for s in (0.0, 1.0, 30.0, 1e9)]
    assert spreads[0] > spreads[1] > spreads[2] > spreads[3]
    assert spreads[3] < 1e-5


@given(SEEDS, st.integers(1, 25))
@settings(max_examples=15)
def test_min_documents_and_depth_bound_leaves(seed, least):
    data = learnable(seed)
    assert first_tree(mart(trees=1, min_documents=least), data)[3].min() >= least
    for shape in ("best-first", "symmetric"):
        assert len(first_tree(mart(trees=1, depth=2, leaves=31, shape=shape), data)[2]) <= 4


@given(SEEDS)
@settings(max_examples=15)
def test_l1_and_l2_make_outputs_smaller(seed):
    data = learnable(seed)
    plain = np.abs(first_tree(mart(trees=1, leaves=2), data)[2]).sum()
    assert np.abs(first_tree(mart(trees=1, leaves=2, l2=9.0), data)[2]).sum() < plain
    assert np.abs(first_tree(mart(trees=1, leaves=2, l1=1.0), data)[2]).sum() < plain


@given(SEEDS, st.sampled_from(["best-first", "symmetric"]))
@settings(max_examples=25)
def test_only_features_of_a_group_meet_on_a_path(seed, shape):
    """Those not named are a group, too."""
    names = ["a", "b", "c", "d"]
    data = data_of(noise(features=4, seed=seed), seed=seed, feature_names=names)
    table = mart(interactions=[["a", "b"], ["b", "c"]], leaves=12, shape=shape).fit(data).model_.scorer.table
    for tree in range(table.n_trees):
        for path in paths(table, int(table.start[tree]), 0):
            assert path <= {0, 1} or path <= {1, 2} or path <= {3}


def paths(table, begin, node):
    """The features on each path from a node to a leaf."""
    if node < 0:
        return [set()]
    feature = int(table.feature[begin + node])
    return [{feature} | path for side in (table.left, table.right) for path in paths(table, begin, int(side[begin + node]))]


@pytest.mark.parametrize("setting", [{"interactions": [["a", "q"]]}, {"monotone": {"q": 1}}, {"categorical": ["q"]}])
def test_settings_that_name_an_unknown_feature_say_so(setting):
    with pytest.raises(SettingError, match=f"{next(iter(setting))} names 'q', which is not a feature"):
        mart(**setting).fit(data_of(noise(features=2), feature_names=["a", "b"]))


@given(SEEDS, st.sampled_from([-1, 1]), st.sampled_from(["best-first", "symmetric"]), st.sampled_from([0.0, 5.0]))
@settings(max_examples=25)
def test_scores_rise_or_fall_with_a_monotone_feature(seed, direction, shape, smoothing):
    data = data_of(noise(seed=seed, missing=0.1), seed=seed, feature_names=["a", "b", "c"])
    ranker = mart(monotone={"b": direction}, leaves=12, shape=shape, path_smoothing=smoothing).fit(data)
    probes = np.repeat(data.X[:10], 30, axis=0)
    probes[:, 1] = np.tile(np.linspace(-3, 3, 30), 10)
    changes = np.diff(ranker.predict(probes).reshape(10, 30), axis=1)
    assert (direction * changes >= -1e-12).all()


DRAWN = [({"extra": True}, "best-first"), ({"split_noise": 1.0}, "best-first"), ({"node_features": 0.4}, "best-first")]
DRAWN += [({"extra": True}, "symmetric"), ({"split_noise": 1.0}, "symmetric")]


@pytest.mark.parametrize(("setting", "shape"), DRAWN)
def test_what_is_drawn_is_the_same_for_the_same_seed_and_differs_otherwise(setting, shape):
    data = data_of(noise(features=4))
    plain, ours, again, other = (
        mart(shape=shape, seed=seed, **more).fit(data).predict(data) for seed, more in ((0, {}), (0, setting), (0, setting), (1, setting))
    )
    assert np.array_equal(ours, again)
    assert not np.array_equal(ours, other)
    assert not np.array_equal(ours, plain)
