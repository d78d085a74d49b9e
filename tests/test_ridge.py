"""Ridge regression: weighted least squares about the weighted means of queries."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as xr

from .test_rankers import rows


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
    weighed = xr.Ridge(l2=0.1).fit(X, y, qid=qid, **weight)
    copied = xr.Ridge(l2=0.1).fit(X[copies], y[copies], qid=names)
    np.testing.assert_allclose(weighed.weights_, copied.weights_, rtol=1e-6, atol=1e-9)
    assert not np.allclose(weighed.weights_, xr.Ridge(l2=0.1).fit(X, y, qid=qid).weights_) or len(set(times)) == 1


def test_documents_without_weight_do_not_count():
    X, y, qid = rows()
    weight = np.where((np.arange(len(y)) % 3 == 0) | (qid == 2), 0.0, 1.0)
    kept = weight > 0
    weighed, without = xr.Ridge().fit(X, y, qid=qid, sample_weight=weight), xr.Ridge().fit(X[kept], y[kept], qid=qid[kept])
    np.testing.assert_allclose(weighed.weights_, without.weights_, rtol=1e-9)


def test_the_penalty_shrinks():
    X, y, qid = rows()
    norms = [np.linalg.norm(xr.Ridge(l2=l2).fit(X, y, qid=qid).weights_) for l2 in (1e-3, 1.0, 100.0)]
    assert norms == sorted(norms, reverse=True)
    with pytest.raises(xr.SettingError, match="l2=0 is out of range"):
        xr.Ridge(l2=0).fit(X, y, qid=qid)
