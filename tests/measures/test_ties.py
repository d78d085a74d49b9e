"""Ties where a measure chooses, in training, comparisons and tuning, and what their order may do to a reported value."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

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


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6), st.sampled_from(["nDCG@3", "AP", "RR", "P@2"]))
def test_tie_ranges_are_the_extremes_over_all_orders_of_tied_documents(documents, name):
    grades, scores = zip(*documents, strict=True)
    values = []
    for order in itertools.permutations(range(len(documents))):
        shuffled = er.RankingData.from_arrays(None, [grades[i] for i in order], qid=[1] * len(order))
        values.append(er.evaluate(shuffled, [scores[i] for i in order], name).means[name])
    evaluation = er.evaluate(er.RankingData.from_arrays(None, grades, qid=[1] * len(grades)), scores, name)
    assert evaluation.tie_ranges.get(name, (values[0], values[0])) == (min(values), max(values))


def test_evaluation_says_how_far_the_order_of_tied_documents_moves_a_mean():
    data = best_first(judged(queries=8))
    with pytest.warns(er.errors.EvaluationWarning, match=r"move the mean, 1\.0000, between 0\.\d+ and 1\.0000; nDCG\(ties='expected'\)@5"):
        er.evaluate(data, np.zeros(data.n_documents), "nDCG@5")
    comparison = er.compare_runs(data, {"constant": np.zeros(data.n_documents), "sorted": data.y}, ["nDCG@5", "AP(ties='expected')"])
    constant, ideal = comparison.fits
    assert list(constant.remarks) == ["nDCG@5"]
    assert not ideal.remarks
    assert f"constant: {constant.remarks['nDCG@5']}" in " ".join(comparison.to_text().split())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ties in ("expected", "pessimistic"):
            er.evaluate(data, np.zeros(data.n_documents), f"nDCG(ties='{ties}')@5")
        er.evaluate(data, data.y, "nDCG@5")  # only documents of equal grades tie


def test_evaluation_says_if_no_grade_reaches_the_threshold_of_relevance():
    grades = np.array([0.2, 0.9, 0.0, 0.4])
    data = er.RankingData.from_arrays(None, grades, qid=[1, 1, 2, 2])
    with pytest.warns(
        er.errors.EvaluationWarning, match=r"at least 1 as relevant, and the largest grade is 0\.9; .* e\.g\. AP\(rel=0\.5\)"
    ):
        assert er.evaluate(data, [1, 2, 2, 1], "AP").means["AP"] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        er.evaluate(data, [1, 2, 2, 1], ["AP(rel=0.4)", "nDCG@10"])
        er.evaluate(er.RankingData.from_arrays(None, np.zeros(4), qid=[1, 1, 2, 2]), [1, 2, 2, 1], "AP")  # nothing to tell apart
