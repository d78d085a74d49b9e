"""Means of models: scorers of any kind as one, and bags of any ranker, by cross-fitting, by bootstrap and by draws."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.learning.objectives.within_query import deviation
from exactrank.models.sum import mean_of
from exactrank.rankers.training_data import deal_parts, mixed_queries
from tests.models.test_tree_ensemble import ensemble, trained
from tests.rankers.test_rankers import judged, rows

NAMES = ("bm25", "clicks", "age", "length")
OFFSET = np.array([0.0, 1e9, 0.0, -3e7])


def linear(rng):
    return er.models.Linear(rng.standard_normal(4), NAMES)


def network(rng, mean=0.0):
    return er.models.Network(
        rng.standard_normal((2, 4)), rng.standard_normal(2), rng.standard_normal(2), np.full(4, mean), np.ones(4), NAMES
    )


def elsewhere(rng):
    return network(rng, rng.standard_normal())


def thresholds(rng):
    return er.models.Thresholds.from_steps([(j % 4, rng.integers(-2, 3), rng.standard_normal()) for j in range(9)], 4, NAMES)


def trees(rng):
    return ensemble(trained(int(rng.integers(50)), categorical=False, num_leaves=4).model_to_string(), NAMES)


KINDS = {"linear": linear, "network": network, "thresholds": thresholds, "trees": trees}
MADE = [*KINDS.values(), elsewhere]
POLICIES = {"error": None, "zero": None, "mean": np.array([0.5, 1e9 + 2, -1.0, -3e7])}


def scorers(seed, makers, policy, anchored):
    rng = np.random.default_rng(seed)
    made = [replace(make(rng), missing=policy, fill=POLICIES[policy]) for make in makers]
    return [scorer.with_offset(OFFSET) for scorer in made] if anchored else made


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
    er.Model(mean).save(path)
    read = er.load(path).scorer
    assert np.array_equal(read.score(X, 2, offset), mean.score(X, 1, offset))
    assert json.dumps(read.to_record()) == json.dumps(mean.to_record())


@pytest.mark.parametrize("makers", [[make] * 2 for make in MADE] + [[linear, elsewhere, thresholds]])
def test_the_mean_is_anchored_as_its_parts_are(makers):
    mean, X = mean_of(scorers(0, makers, "error", anchored=False)), sample(0, holes=False)
    assert np.array_equal(mean.with_offset(OFFSET).score(X, 1, OFFSET), mean.score(X))


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_of_one_kind_is_of_that_kind(kind):
    assert mean_of(scorers(0, [KINDS[kind]] * 3, "error", False)).kind == kind
    assert mean_of(scorers(0, [KINDS[kind], elsewhere], "error", False)).kind == ("network" if kind == "network" else "sum")


def test_sums_in_a_mean_come_apart():
    rng = np.random.default_rng(0)
    first, second = mean_of([linear(rng), network(rng)]), trees(rng)
    mean = mean_of([first, second])
    assert [part.kind for part in mean.parts] == ["linear", "network", "trees"]
    X = sample(0, holes=False)
    np.testing.assert_allclose(mean.score(X), (first.score(X) + second.score(X)) / 2)


def test_a_sum_fills_missing_values_for_its_parts():
    parts, X = (er.models.Linear(np.ones(4), NAMES), elsewhere(np.random.default_rng(0))), sample(0, holes=True)
    fill = np.array([1.0, 2.0, 3.0, 4.0])
    both = er.models.Sum(parts, np.array([1.0, 1.0]))
    with pytest.raises(er.errors.DataError, match="values are missing"):
        both.score(X)
    filled = replace(both, missing="mean", fill=fill).score(X)
    assert np.array_equal(filled, both.score(np.where(np.isnan(X), fill, X).astype(np.float32)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1.0]}, "there are 1 weights for 2 parts"),
        ({"weights": [1.0, None]}, "weights: 1 has the value None"),
        ({"parts": []}, "parts: expected a list of scorers"),
        ({"parts": [{"kind": "sum"}]}, "none of which is a sum"),
        ({"parts": [{"kind": "tree"}, {"kind": "tree"}]}, r"parts\[0\]: the scorer's kind is 'tree'; known: deep, kernel, linear"),
        ({"parts": [{"kind": "linear", "weights": [1.0]}, {"kind": "linear", "weights": [1.0, 2.0]}]}, "the parts read different features"),
        ({"missing": "skip"}, "missing='skip' is not a policy"),
    ],
)
def test_bad_records_are_refused_with_their_place(change, message):
    record = mean_of([linear(np.random.default_rng(0)), network(np.random.default_rng(1))]).to_record()
    with pytest.raises(er.errors.DataError, match=rf"^m\.json: .*{message}"):
        er.models.Sum.from_record(record | change, "m.json")


def test_what_asks_for_weights_refuses_a_sum_with_words():
    data, parts = judged(), (er.models.Linear(np.ones(4)), elsewhere(np.random.default_rng(0)))
    named = er.models.Sum(tuple(replace(part, feature_names=data.feature_names) for part in parts), np.ones(2))
    for probe in (er.inspect.optimality, er.inspect.smoothness):
        with pytest.raises(er.errors.IncompatibleError, match="a sum model has no weight"):
            probe(data, er.Model(named), measure="nDCG@5")
    assert len(er.inspect.importance(data, er.Model(named), measure="nDCG@5", repeats=2).per_feature) == 4


# ---- bags ----

TREES = {"trees": 12, "min_documents": 3, "feature_fraction": 1.0, "query_fraction": 1.0, "threads": 1}
RANKERS = {
    "linear": lambda **more: er.Ridge("nDCG@5", **more),
    "network": lambda **more: er.RankNet("nDCG@5", hidden=2, max_iter=5, **more),
    "thresholds": lambda **more: er.RankBoost("nDCG@5", max_iter=5, **more),
    "trees": lambda **more: er.MART("nDCG@5", **TREES, **more),
}


def shuffled(queries=14):
    X, y, qid = rows(queries=queries, noise=1.0)
    order = np.random.default_rng(0).permutation(len(y))
    return er.RankingData.from_arrays(X[order], y[order], qid=qid[order])


@pytest.mark.parametrize("bags", [2, 3, 4])
@pytest.mark.parametrize("kind", RANKERS)
def test_cross_fitted_models_are_those_of_the_parts(kind, bags):
    """Each is trained on all parts but two, chosen by one and asked about the other; of two parts in all one does both."""
    data = shuffled()
    ranker = RANKERS[kind](bags=bags, bagging="cross-fit", seed=5).fit(data)
    part, scores = deal_parts(mixed_queries(data), bags, 5), []
    for number in range(bags):
        scored = part == (number + (bags > 2)) % bags
        chooses = part == number
        if kind == "network":  # a network in a bag begins elsewhere than one alone
            start = 2 * number
            units = slice(start, start + 2)
            net = ranker.model_.scorer
            one = er.Model(replace(net, weights=net.weights[units], bias=net.bias[units], output=bags * net.output[units])).predict(data)
        else:
            alone = RANKERS[kind](seed=5).fit(data.take_queries(~(chooses | scored)), valid=data.take_queries(chooses))
            one = alone.predict(data) / deviation(data.group(alone.predict(data)), data.indptr)
        scores.append(one)
        asked = data.ungroup(np.repeat(scored, data.sizes))
        np.testing.assert_allclose(ranker.oof_[asked] - ranker.oof_[asked][0], one[asked] - one[asked][0], atol=1e-6)
    np.testing.assert_allclose(ranker.predict(data), np.mean(scores, axis=0), atol=1e-6)
    assert ranker.model_.training["value"] == ranker.score(data)
    assert ranker.estimate_.mean == er.evaluate(data, ranker.oof_, "nDCG@5")["nDCG@5"].mean == ranker.model_.training["estimate"]
    assert not hasattr(RANKERS[kind]().fit(data), "oof_")


@pytest.mark.parametrize("kind", RANKERS)
def test_scores_out_of_fold_know_nothing_of_their_query(kind):
    """Other grades of a query change models, but not what is said of it out of fold: no model that scores it learnt or chose by it."""
    data, query = shuffled(), 3
    rows = slice(*data.indptr[query : query + 2])
    grades = data.y.copy()
    grades[rows] = grades[rows][::-1] * 2 + 1
    other = replace(data, y=grades)
    first, second = (RANKERS[kind](bags=4, bagging="cross-fit").fit(each) for each in (data, other))
    np.testing.assert_allclose(data.group(first.oof_)[rows], data.group(second.oof_)[rows], rtol=1e-9)
    assert not np.array_equal(first.oof_, second.oof_)
    assert not np.array_equal(first.predict(data), second.predict(data))


def test_validation_data_are_learnt_from_where_parts_choose():
    data, valid = judged(queries=10, noise=1.0), judged(queries=8, noise=1.0, seed=1)
    both = er.RankingData.from_arrays(
        np.concatenate([data.X, valid.X]), np.concatenate([data.y, valid.y]), group=np.concatenate([data.sizes, valid.sizes])
    )
    first, second = er.Ridge("nDCG@5", bags=4).fit(data, valid=valid), er.Ridge("nDCG@5", bags=4).fit(both)
    np.testing.assert_allclose(first.predict(valid), second.predict(valid), rtol=1e-9)
    assert len(first.oof_) == data.n_documents
    assert first.estimate_.mean == pytest.approx(second.estimate_.mean)
    assert first.model_.training["valid"] is None
    np.testing.assert_allclose(np.concatenate([first.oof_, first.valid_oof_]), second.oof_, rtol=1e-9)
    assert not hasattr(second, "valid_oof_")


def test_scores_out_of_fold_of_validation_data_are_in_the_order_of_its_rows():
    data, valid = shuffled(), shuffled()
    rows = valid.group(np.arange(valid.n_documents))
    other = er.RankingData.from_arrays(valid.values, valid.y, group=valid.sizes)
    first, second = (er.Ridge("nDCG@5", bags=4).fit(data, valid=each) for each in (valid, other))
    np.testing.assert_allclose(first.valid_oof_[rows], second.valid_oof_)
    assert not np.array_equal(first.valid_oof_, second.valid_oof_)


def test_every_part_has_queries_that_can_judge():
    """Also where most queries have a single grade; and there are fewer parts where few have several."""
    X, y, qid = rows(queries=30, noise=1.0)
    data = er.RankingData.from_arrays(X, np.where(qid < 25, 0, y), qid=qid)
    part = deal_parts(mixed_queries(data), 4, 0)
    assert all(np.any(data.y[np.repeat(part == number, data.sizes)]) for number in range(4))
    assert set(deal_parts(mixed_queries(data), 20, 0)) == set(range(5))
    assert np.isfinite(er.Ridge("nDCG(empty='skip')@5", bags=20).fit(data).estimate_.mean)


@pytest.mark.parametrize("kind", RANKERS)
def test_bootstrapped_models_differ_and_their_mean_is_one(kind, tmp_path):
    data, valid = judged(queries=12, noise=1.0), judged(queries=12, noise=1.0, seed=1)
    first, three = (RANKERS[kind](bags=bags, bagging="bootstrap").fit(data, valid=valid) for bags in (1, 3))
    assert not np.allclose(first.predict(data), three.predict(data))
    assert three.model_.training["valid"] == three.score(valid)
    three.save(tmp_path / "m.json")
    assert np.array_equal(er.load(tmp_path / "m.json").predict(valid), three.predict(valid))
    again = RANKERS[kind](bags=3, bagging="bootstrap").fit(data, valid=valid)
    assert np.array_equal(again.predict(data), three.predict(data))


def test_a_single_query_cannot_be_cross_fitted():
    data = er.RankingData.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.2, 0.0]], [0, 1, 0], group=[3])
    with pytest.raises(
        er.errors.SettingError, match="cross-fitting needs at least 2 queries with different grades, and the data has 1; give bags=0"
    ):
        er.Ridge(bags=3).fit(data)
    assert er.Ridge(bags=3, bagging="bootstrap").fit(data).score(data) == 1.0


def test_an_estimate_does_not_outlive_its_fit():
    ranker, data = er.Ridge(bags=3), judged()
    assert hasattr(ranker.fit(data), "estimate_")
    ranker.set_params(bags=0).fit(data)
    assert not hasattr(ranker, "oof_")
    assert not hasattr(ranker, "estimate_")
    assert "estimate" not in ranker.model_.training
