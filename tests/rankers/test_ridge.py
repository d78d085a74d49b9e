"""Ridge regression: weighted least squares about the weighted means of queries."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.data.folds import FoldNumbers
from exactrank.learning.objectives.ridge import ridge_paths, ridge_weights
from exactrank.learning.objectives.within_query import center
from exactrank.rankers.ridge import STRENGTHS
from tests.rankers.test_rankers import rows


@given(seed=st.integers(0, 99), of_queries=st.booleans(), features=st.sampled_from([3, 200]))
@settings(max_examples=20)
def test_a_weight_of_two_is_a_copy(seed, of_queries, features):
    """Of a document, or of a whole query; with fewer features than documents and with more."""
    X, y, qid = rows(queries=6, features=features, seed=seed)
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 4, 6)[qid] if of_queries else rng.integers(1, 4, len(y))
    copies = np.repeat(np.arange(len(y)), times)
    number = np.concatenate([np.arange(each) for each in times])  # of the copy
    names = qid[copies] + 100 * number * of_queries
    weight = {"query_weight": times[::8].astype(float)} if of_queries else {"sample_weight": times.astype(float)}
    weighed = er.Ridge(l2=0.1).fit(X, y, qid=qid, **weight)
    copied = er.Ridge(l2=0.1).fit(X[copies], y[copies], qid=names)
    np.testing.assert_allclose(weighed.weights_, copied.weights_, rtol=1e-6, atol=1e-9)
    assert not np.allclose(weighed.weights_, er.Ridge(l2=0.1).fit(X, y, qid=qid).weights_) or len(set(times)) == 1


def test_documents_without_weight_do_not_count():
    X, y, qid = rows()
    weight = np.where((np.arange(len(y)) % 3 == 0) | (qid == 2), 0.0, 1.0)
    kept = weight > 0
    weighed = er.Ridge(l2=0.1).fit(X, y, qid=qid, sample_weight=weight)
    without = er.Ridge(l2=0.1).fit(X[kept], y[kept], qid=qid[kept])
    np.testing.assert_allclose(weighed.weights_, without.weights_, rtol=1e-9)


def test_the_penalty_shrinks():
    X, y, qid = rows()
    norms = [np.linalg.norm(er.Ridge(l2=l2).fit(X, y, qid=qid).weights_) for l2 in (1e-3, 1.0, 100.0)]
    assert norms == sorted(norms, reverse=True)
    with pytest.raises(er.errors.SettingError, match="l2=0 is out of range"):
        er.Ridge(l2=0).fit(X, y, qid=qid)


def wide(queries=16, features=100, seed=0):
    """Two features that tell, and many that do not: without a penalty those decide."""
    X, _, qid = rows(queries=queries, features=features, seed=seed)
    goodness = X[:, 0] + X[:, 1] + np.random.default_rng(seed).standard_normal(len(X))
    return er.RankingData.from_arrays(X, np.digitize(goodness, [0.5, 1.5]), qid=qid)


@given(seed=st.integers(0, 99), features=st.sampled_from([3, 60]))
@settings(max_examples=15)
def test_all_strengths_at_once_are_each_alone(seed, features):
    """With fewer features than documents and with more; a constant feature gets no weight."""
    rng = np.random.default_rng(seed)
    X, y, qid = rows(queries=6, features=features, seed=seed)
    X[:, 1] = 7.0
    data = er.RankingData.from_arrays(X, y, qid=qid, query_weight=rng.random(6))
    (result,) = ridge_paths(data, STRENGTHS)
    for ours, l2 in zip(result, STRENGTHS, strict=True):
        np.testing.assert_allclose(ours, ridge_weights(data, l2), rtol=1e-6, atol=1e-9)
    assert not result[:, 1].any()


@given(seed=st.integers(0, 99), features=st.sampled_from([3, 60]))
@settings(max_examples=15)
def test_a_fold_is_left_out(seed, features):
    """What is left is ridge regression on the other queries, in units of all."""
    X, y, qid = rows(queries=6, features=features, seed=seed)
    data, dealt = er.RankingData.from_arrays(X, y, qid=qid), FoldNumbers(6, 3, seed)
    fold = dealt.of(0, 6)
    unit = np.sqrt(np.sum(center(data.X, data.indptr) ** 2, axis=0))
    for part, result in enumerate(ridge_paths(data, STRENGTHS, dealt)):
        seen = data.take_queries(fold != part)
        Z = center(seen.X, seen.indptr) / unit
        for ours, l2 in zip(result, STRENGTHS, strict=True):
            theirs = np.linalg.solve(Z.T @ Z + l2 * np.eye(features), Z.T @ center(seen.y, seen.indptr)) / unit
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


def test_the_measure_chooses_the_strength():
    """By folds or validation data; the model is that of the strength as given, to the bit."""
    train, valid, test = wide(), wide(40, seed=1), wide(100, seed=2)
    weak = er.Ridge("nDCG@5", l2=1e-3).fit(train).score(test)
    for chooses in (None, valid):
        ranker = er.Ridge("nDCG@5").fit(train, valid=chooses)
        l2 = ranker.model_.training["chosen"]["l2"]
        assert 0.5 < l2 <= 100
        assert ranker.weights_.tolist() == er.Ridge("nDCG@5", l2=l2).fit(train).weights_.tolist()
        assert ranker.score(test) > weak + 0.05
    assert "chosen" not in er.Ridge(l2=1.0).fit(train).model_.training
    fooled = er.Ridge("nDCG@5").fit(train, valid=train).model_.training["chosen"]["l2"]
    assert fooled < 0.1  # queries that were learnt from would ask for hardly any penalty


@pytest.mark.parametrize("group", [[3], [2, 1], [1, 2]])
def test_few_queries_get_a_strength_too(group):
    model = er.Ridge("nDCG").fit([[1.0, 0.0], [0.0, 1.0], [0.2, 0.5]], [0, 1, 2], group=group)
    assert np.all(np.isfinite(model.weights_))
    assert min(STRENGTHS) <= model.model_.training["chosen"]["l2"] <= max(STRENGTHS)
