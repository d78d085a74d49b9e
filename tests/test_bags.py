"""Means of models: scorers of any kind as one, and bags of any ranker, by cross-fitting, by bootstrap and by draws."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as xr
from exactrank.data.folds import deal_folds
from exactrank.scorers.sum import mean_of

from .test_rankers import judged, rows
from .test_tree_ensemble import trained

NAMES = ("bm25", "clicks", "age", "length")
OFFSET = np.array([0.0, 1e9, 0.0, -3e7])


def linear(rng):
    return xr.Linear(rng.standard_normal(4), NAMES)


def network(rng, mean=0.0):
    return xr.Network(rng.standard_normal((2, 4)), rng.standard_normal(2), rng.standard_normal(2), np.full(4, mean), np.ones(4), NAMES)


def elsewhere(rng):
    return network(rng, rng.standard_normal())


def thresholds(rng):
    return xr.Thresholds.merged([(j % 4, rng.integers(-2, 3), rng.standard_normal()) for j in range(9)], 4, NAMES)


def trees(rng):
    return replace(xr.TreeEnsemble(trained(int(rng.integers(50)), categorical=False, num_leaves=4).model_to_string()), feature_names=NAMES)


KINDS = {"linear": linear, "network": network, "thresholds": thresholds, "trees": trees}
MADE = [*KINDS.values(), elsewhere]
POLICIES = {"error": None, "zero": None, "mean": np.array([0.5, 1e9 + 2, -1.0, -3e7])}


def scorers(seed, makers, policy, anchored):
    rng = np.random.default_rng(seed)
    made = [replace(make(rng), missing=policy, fill=POLICIES[policy]) for make in makers]
    return [scorer.anchored(OFFSET) for scorer in made] if anchored else made


def sample(seed, holes):
    rng = np.random.default_rng([seed, 1])
    X = rng.standard_normal((30, 4)).astype(np.float32)
    X[rng.random(X.shape) < (0.2 if holes else 0.0)] = np.nan
    return X


@given(
    seed=st.integers(0, 99),
    makers=st.lists(st.sampled_from(MADE), min_size=1, max_size=4) | st.sampled_from([[make] * 3 for make in MADE]),
    policy=st.sampled_from(list(POLICIES)),
    anchored=st.booleans(),
)
@settings(max_examples=60)
def test_the_mean_scores_the_mean_and_its_file_the_same(seed, makers, policy, anchored, tmp_path_factory):
    parts, X = scorers(seed, makers, policy, anchored), sample(seed, holes=policy != "error")
    mean, offset = mean_of(parts), OFFSET if anchored else None
    theirs = np.mean([part.score(X, 1, offset) for part in parts], axis=0)
    np.testing.assert_allclose(mean.score(X, 1, offset), theirs, rtol=1e-9, atol=1e-9)
    assert (mean.feature_names, mean.n_features) == (NAMES, 4)
    path = tmp_path_factory.mktemp("mean") / "m.json"
    xr.Model(mean).save(path)
    read = xr.load(path).scorer
    assert np.array_equal(read.score(X, 2, offset), mean.score(X, 1, offset))
    assert json.dumps(read.to_record()) == json.dumps(mean.to_record())


@pytest.mark.parametrize("makers", [[make] * 2 for make in MADE] + [[linear, elsewhere, thresholds]])
def test_the_mean_is_anchored_as_its_parts_are(makers):
    mean, X = mean_of(scorers(0, makers, "error", anchored=False)), sample(0, holes=False)
    assert np.array_equal(mean.anchored(OFFSET).score(X, 1, OFFSET), mean.score(X))


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_of_one_kind_is_of_that_kind(kind):
    assert mean_of(scorers(0, [KINDS[kind]] * 3, "error", False)).kind == kind
    assert mean_of(scorers(0, [KINDS[kind], elsewhere], "error", False)).kind == "sum"


def test_sums_in_a_mean_come_apart():
    rng = np.random.default_rng(0)
    one, two = mean_of([linear(rng), network(rng)]), trees(rng)
    mean = mean_of([one, two])
    assert mean.weights.tolist() == [0.25, 0.25, 0.5]
    X = sample(0, holes=False)
    np.testing.assert_allclose(mean.score(X), (one.score(X) + two.score(X)) / 2)


def test_a_sum_fills_missing_values_for_its_parts():
    parts, X = (xr.Linear(np.ones(4), NAMES), elsewhere(np.random.default_rng(0))), sample(0, holes=True)
    fill = np.array([1.0, 2.0, 3.0, 4.0])
    both = xr.Sum(parts, np.array([1.0, 1.0]))
    with pytest.raises(xr.DataError, match="values are missing"):
        both.score(X)
    filled = replace(both, missing="mean", fill=fill).score(X)
    assert np.array_equal(filled, both.score(np.where(np.isnan(X), fill, X).astype(np.float32)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weights": [1.0]}, "there are 1 weights for 2 parts"),
        ({"weights": [1.0, None]}, "weights: 1 has the value None"),
        ({"parts": []}, "parts: expected a list of scorers"),
        ({"parts": [{"kind": "sum"}]}, "none of which is a sum"),
        ({"parts": [{"kind": "tree"}, {"kind": "tree"}]}, r"parts\[0\]: the scorer's kind is 'tree'; known: linear"),
        ({"parts": [{"kind": "linear", "weights": [1.0]}, {"kind": "linear", "weights": [1.0, 2.0]}]}, "the parts read different features"),
        ({"missing": "skip"}, "missing='skip' is not a policy"),
    ],
)
def test_bad_records_are_refused_with_their_place(change, said):
    record = mean_of([linear(np.random.default_rng(0)), network(np.random.default_rng(1))]).to_record()
    with pytest.raises(xr.DataError, match=rf"^m\.json: .*{said}"):
        xr.Sum.from_record(record | change, "m.json")


def test_what_asks_for_weights_refuses_a_sum_with_words():
    data, parts = judged(), (xr.Linear(np.ones(4)), elsewhere(np.random.default_rng(0)))
    named = xr.Sum(tuple(replace(part, feature_names=data.feature_names) for part in parts), np.ones(2))
    for probe in (xr.optimality, xr.smoothness):
        with pytest.raises(xr.IncompatibleError, match="a sum model has no weight"):
            probe(xr.Model(named), data, measure="nDCG@5")
    assert len(xr.importance(xr.Model(named), data, measure="nDCG@5", repeats=2).per_feature) == 4


# ---- bags ----

TREES = {"trees": 12, "min_documents": 3, "threads": 1}
RANKERS = {
    "linear": lambda **more: xr.Ridge("nDCG@5", **more),
    "network": lambda **more: xr.RankNet("nDCG@5", hidden=2, max_iter=5, **more),
    "thresholds": lambda **more: xr.RankBoost("nDCG@5", max_iter=5, **more),
    "trees": lambda **more: xr.MART("nDCG@5", **TREES, **more),
}


@pytest.mark.parametrize("kind", RANKERS)
def test_cross_fitted_models_are_those_of_the_parts(kind):
    """Also out of fold: each row has the score of the model that did not see its query, in the caller's order."""
    X, y, qid = rows(queries=12, noise=1.0)
    order = np.random.default_rng(0).permutation(len(y))
    data = xr.RankingData.from_arrays(X[order], y[order], qid=qid[order])
    ranker = RANKERS[kind](bags=3, bagging="cross-fit", seed=5).fit(data)
    fold = deal_folds(data.n_queries, 3, 5)
    scores = list(members(ranker, kind, data, fold))
    folds = data.ungrouped(np.repeat(fold, data.sizes))
    np.testing.assert_allclose(ranker.out_of_fold_, np.choose(folds, scores), atol=1e-9)
    np.testing.assert_allclose(ranker.predict(data), np.mean(scores, axis=0), atol=1e-9)
    assert ranker.model_.training["value"] == ranker.score(data)
    assert not hasattr(RANKERS[kind]().fit(data), "out_of_fold_")


def members(ranker, kind, data, fold):
    """The scores of the models that the mean is of: of networks it is a sum, and others can be trained alone."""
    for part in range(3):
        if kind == "network":
            yield xr.Model(ranker.model_.scorer.parts[part]).predict(data)
        else:
            yield RANKERS[kind](seed=5).fit(data.take_queries(fold != part), valid=data.take_queries(fold == part)).predict(data)


@pytest.mark.parametrize("kind", RANKERS)
def test_bootstrapped_models_differ_and_their_mean_is_one(kind, tmp_path):
    data, valid = judged(queries=12, noise=1.0), judged(queries=12, noise=1.0, seed=1)
    one, three = (RANKERS[kind](bags=bags, bagging="bootstrap").fit(data, valid=valid) for bags in (1, 3))
    assert not np.allclose(one.predict(data), three.predict(data))
    assert three.model_.training["valid"] == three.score(valid)
    three.save(tmp_path / "m.json")
    assert np.array_equal(xr.load(tmp_path / "m.json").predict(valid), three.predict(valid))
    again = RANKERS[kind](bags=3, bagging="bootstrap").fit(data, valid=valid)
    assert np.array_equal(again.predict(data), three.predict(data))


def test_a_single_query_cannot_be_cross_fitted():
    data = xr.RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    with pytest.raises(xr.SettingError, match="cross-fitting needs at least 2 queries, and the data has 1; give bags=0"):
        xr.Ridge(bags=3).fit(data)
    assert xr.Ridge(bags=3, bagging="bootstrap").fit(data).score(data) == 1.0
