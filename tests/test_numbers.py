"""Laws that every ranker keeps whatever the order of the rows and the units of features, weights and grades."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactrank as xr
from exactrank.rankers.content_order import in_content_order

from .test_rankers import EVERY_RANKER, quick


def odd_data(seed: int, holes: float = 0.02) -> xr.RankingData:
    """Queries of 1 to 9 documents with few grades, some documents twice in a query, missing values, weights of both kinds."""
    rng = np.random.default_rng(seed)
    sizes = np.append(rng.integers(1, 10, 14), 5)
    X = rng.standard_normal((sizes.sum(), 3)).astype(np.float32)
    y = np.digitize(X @ [1.0, -0.5, 0.2] + 0.5 * rng.standard_normal(len(X)), [0.0, 1.5])
    weight = rng.choice([0.1, 0.5, 3.0], len(X))
    X[rng.random(X.shape) < holes] = np.nan
    number, first = np.arange(len(X)), np.repeat(np.cumsum(sizes) - sizes, sizes)
    source = np.where(rng.random(len(X)) < 0.3, np.maximum(number - 1, first), number)
    given = {"sample_weight": weight[source], "query_weight": rng.choice([0.5, 1.0, 4.0], len(sizes))}
    return xr.RankingData.from_arrays(X[source], y[source], group=sizes, **given)


def shuffled(data: xr.RankingData, seed: int) -> xr.RankingData:
    """The documents of each query in another order."""
    query = np.repeat(np.arange(data.n_queries), np.diff(data.indptr))
    rows = np.lexsort((np.random.default_rng(seed).random(data.n_documents), query))
    return replace(data, X=data.X[rows], y=data.y[rows], sample_weight=data.sample_weight[rows])


@EVERY_RANKER
@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_rows_within_queries_changes_no_bit_of_a_model(name, seed):
    train, valid = odd_data(seed), odd_data(seed + 100)
    ours, theirs = (
        [
            quick(name, missing="mean").fit(shuffled(train, draw)).model_.scorer.to_record(),
            quick(name, missing="mean").fit(shuffled(train, draw), valid=shuffled(valid, draw)).model_.scorer.to_record(),
        ]
        for draw in (1, 2)
    )
    assert ours == theirs


@pytest.mark.parametrize("lambdas", ["sampled", lambda pairs: pairs.delta * np.maximum(0, 1 - pairs.lead) ** 3])
def test_nor_do_draws_and_lambda_functions_of_users_see_it(lambdas):
    train = odd_data(0, holes=0.0)
    ours, theirs = (quick("lambdamart", lambdas=lambdas).fit(shuffled(train, draw)).model_.scorer.text for draw in (1, 2))
    assert ours == theirs


@given(seed=st.integers(0, 10**6))
def test_content_order_forgets_where_rows_stood_and_leads_back(seed):
    data = odd_data(seed)
    ours, theirs = in_content_order(data), in_content_order(shuffled(data, seed))
    for name in ("X", "y", "sample_weight"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name), equal_nan=True)
        assert np.array_equal(ours.ungrouped(getattr(ours, name)), getattr(data, name), equal_nan=True)
    assert in_content_order(ours) is ours


def test_document_ids_move_along():
    X, y = [[1.0], [2.0], [3.0], [2.0]], [0, 1, 0, 0]
    data = xr.RankingData.from_arrays(X, y, group=[4], docid=["c", "a", "d", "b"])
    found = in_content_order(data)
    assert found.order is not None
    assert [found.docid[i] for i in range(4)] == [["c", "a", "d", "b"][row] for row in found.order]
    ranker = quick("ridge", measure="nDCG(ties='docid')@1").fit(data)
    assert ranker.model_.training["value"] == ranker.score(data)
