"""Validation data as the rankers of LightGBM and XGBoost take it, and PyTerrier, which calls them so."""

import numpy as np
import pandas as pd
import pyterrier as pt
import pytest
from sklearn.base import clone

import exactrank as er
from tests.rankers.test_rankers import quick, rows

X, Y, QID = rows()
VALID = rows(seed=1)
FRAME, VALID_FRAME = (pd.DataFrame(x, columns=list("abcd")).assign(qid=q) for x, q in ((X, QID), (VALID[0], VALID[2])))
SIZES = np.full(12, 8)


@pytest.mark.parametrize("name", ["ridge", "lambdarank", "lambdamart", "blend"])
def test_eval_set_is_what_valid_is(name):
    theirs = quick(name).fit(X, Y, qid=QID, valid=VALID)
    for more in (
        {"eval_set": [VALID[:2]], "eval_group": [SIZES]},
        {"eval_set": [VALID[:2]], "eval_qid": [VALID[2]]},
        {"eval_set": VALID[:2], "eval_qid": [[f"q{q}" for q in VALID[2]]]},
    ):
        ours = quick(name).fit(X, Y, group=SIZES, **more)
        assert ours.model_.training == theirs.model_.training
        assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert quick(name).fit(FRAME, Y, eval_set=[(VALID_FRAME, VALID[1])]).model_.training == theirs.model_.training


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"eval_group": [SIZES]}, "eval_group is given without eval_set"),
        ({"eval_qid": [QID]}, "eval_qid is given without eval_set"),
        ({"eval_set": [VALID[:2]]}, "give either qid"),
        (
            {"eval_set": [VALID[:2]] * 2, "eval_group": [SIZES] * 2},
            "got 2 sets; one set chooses the iterate to keep, so give the validation",
        ),
        ({"eval_set": [VALID], "eval_group": [SIZES]}, r"must hold one pair, as \[\(X, y\)\]"),
        ({"eval_set": [VALID[:2]], "eval_group": SIZES}, "eval_group must hold one list, as eval_set does, got 12"),
        ({"eval_set": [VALID[:2]], "eval_group": [SIZES + 1]}, "sizes that add up to 96 rows"),
        ({"eval_set": [VALID[:2]], "eval_qid": [VALID[2]], "valid": VALID}, "both given"),
    ],
)
def test_eval_sets_that_cannot_be_meant_are_refused(more, message):
    with pytest.raises(er.errors.DataError, match=message):
        er.Ridge().fit(X, Y, group=SIZES, **more)


def results(x, qid, seed):
    """A PyTerrier frame of results with features, in no order, and its judgments."""
    frame = pd.DataFrame({"qid": [f"q{q}" for q in qid], "docno": [f"d{i}" for i in range(len(qid))], "features": list(x)})
    frame = frame.assign(query="words", rank=0, score=0.0)
    return frame.sample(frac=1, random_state=seed).reset_index(drop=True)


def test_pyterrier_trains_and_applies_a_ranker():
    train, valid = results(X, QID, 0), results(VALID[0], VALID[2], 1)
    qrels, valid_qrels = (
        pd.DataFrame({"qid": [f"q{q}" for q in qid], "docno": [f"d{i}" for i in range(len(qid))], "label": y})
        for y, qid in ((Y, QID), VALID[1:])
    )
    ranker = er.LambdaMART("nDCG@5", trees=20, min_documents=1, query_fraction=1.0)  # a share of the queries depends on their order
    pipe = pt.ltr.apply_learned_model(clone(ranker), form="ltr")
    pipe.fit(train, qrels, valid, valid_qrels)
    ranked = pipe.transform(valid)
    theirs = ranker.fit(X, Y, qid=QID, valid=VALID)
    by_document = ranked.set_index("docno").loc[[f"d{i}" for i in range(len(VALID[0]))]]
    assert by_document["score"].to_numpy() == pytest.approx(theirs.predict(VALID[0]), rel=1e-9)
    assert all(own["score"].is_monotonic_decreasing for _, own in ranked.sort_values(["qid", "rank"]).groupby("qid"))
