"""Ties where a measure chooses: training, comparisons and tuning count them alike, whatever order the measure reports."""

from dataclasses import replace

import numpy as np
import pytest

import exactrank as er
from exactrank.compare.contenders.peer import StoppingMeasure
from exactrank.learning.training.judge import Judge, Task
from tests.rankers.test_rankers import judged

TIES = pytest.mark.parametrize(
    ("ties", "chosen_by"),
    [("input", "pessimistic"), ("docid", "pessimistic"), ("pessimistic", "pessimistic"), ("expected", "expected")],
)


def best_first(data):
    """``data`` whose rows and ids, which trec_eval reads backwards, are both in the best order; no feature tells documents apart."""
    y = np.concatenate([-np.sort(-grades) for grades in np.split(data.y, data.indptr[1:-1])])
    ids = [f"{9999 - row}" for row in range(data.n_documents)]
    return er.RankingData.from_arrays(np.zeros_like(data.X), y, group=data.sizes, docid=ids)


def tied(data, ties):
    return er.measures.NDCG(k=5, ties=ties).on(data).mean(np.zeros(data.n_documents))


def with_ids(data):
    return er.RankingData.from_arrays(data.X, data.y, group=data.sizes, docid=[f"{row}" for row in range(data.n_documents)])


@TIES
def test_training_selects_by_the_worst_order(ties, chosen_by):
    train, valid = with_ids(judged(queries=8)), best_first(judged(queries=8, seed=1))
    verdict = Judge(Task(er.measures.NDCG(k=5, ties=ties), train, valid), lambda _: lambda part: np.zeros(part.n_documents))(None, 0.0)
    assert verdict.goodness == tied(valid, chosen_by) < 1.0
    assert verdict.valid == tied(valid, ties)


@pytest.mark.parametrize("ranker", [er.DirectRank(restarts=1), er.LambdaMART(trees=3, min_documents=2)])
def test_a_ranker_trains_by_document_ids_as_by_the_worst_order(ranker):
    """The same model; what it reports breaks ties as asked."""
    data, valid = with_ids(judged(queries=12)), best_first(judged(queries=8, seed=1))
    by_id, worst = (
        ranker.__class__(**ranker.get_params() | {"measure": f"nDCG(ties='{ties}')@5"}).fit(data, valid=valid).model_
        for ties in ("docid", "pessimistic")
    )
    assert by_id.predict(data).tobytes() == worst.predict(data).tobytes()
    assert by_id.training["valid"] == tied(valid, "docid") == 1.0 > tied(valid, "pessimistic") == worst.training["valid"]


@TIES
def test_peers_in_a_comparison_keep_trees_by_the_worst_order(ties, chosen_by):
    train, valid = with_ids(judged(queries=8)), best_first(judged(queries=8, seed=1))
    judge = StoppingMeasure(er.measures.NDCG(k=5, ties=ties), train, valid, threads=1)
    judge(False, np.zeros(train.n_documents))
    assert judge(True, np.zeros(valid.n_documents)) == tied(valid, chosen_by)
    assert judge.curve.points[0].valid == tied(valid, ties)


@TIES
def test_trials_are_judged_by_the_worst_order(ties, chosen_by):
    train, valid = with_ids(judged(queries=8)), best_first(judged(queries=8, seed=1))
    tuned = er.tune(train, "ridge", replace(er.measures.NDCG(k=5), ties=ties), valid=valid, trials=1, workers=1)
    assert tuned.best.valid == tied(valid, chosen_by)
