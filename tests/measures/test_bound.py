"""A measure on some data: values, means and differences are those of single evaluations, and nothing is made twice."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.measures.bound import mean_over_queries, means_over_queries, values_of
from tests.strategies import MEASURES, queries

TIES = st.sampled_from(["input", "pessimistic", "expected"])


def judged(seed, weighted=True):
    """Queries of whole scores, so that documents tie, and with ids, in another order than they were given."""
    rng = np.random.default_rng(seed)
    qid, y = rng.integers(0, 4, 20), rng.integers(0, 4, 20)
    weight = rng.integers(0, 3, 20)[qid] + (qid == qid[0]) if weighted else None
    return er.RankingData.from_arrays(None, y, qid=qid, docid=rng.permutation(20).astype(str), query_weight=weight)


@given(MEASURES, st.booleans(), st.integers(0, 200), st.booleans())
def test_values_and_means_are_the_evaluations_to_the_bit(measure, by_docid, seed, weighted):
    data, rng = judged(seed, weighted), np.random.default_rng(seed)
    chosen = replace(measure, ties="docid") if by_docid else measure
    rows, bound = rng.integers(-1, 2, (3, 20)) + 2.0**-30 * rng.integers(0, 2, (3, 20)), chosen.on(data)
    theirs = [er.evaluate(data, data.ungroup(scores), chosen)[str(chosen)] for scores in rows]
    assert [bound.values(scores).tobytes() for scores in rows] == [each.values.tobytes() for each in theirs]
    if np.isnan(theirs[0].mean):
        for ask in (lambda: bound.mean(rows[0]), lambda: bound.means(rows)):
            with pytest.raises(er.errors.DataError, match="no query counts"):
                ask()
        return
    assert [bound.mean(scores) for scores in rows] == [each.mean for each in theirs] == bound.means(rows).tolist()
    assert chosen.over(data).upper_bound >= max(each.mean for each in theirs)


@given(queries(max_documents=12), st.lists(st.tuples(MEASURES, st.lists(TIES, max_size=2)), min_size=1, max_size=3))
def test_measures_that_break_ties_in_different_ways_rank_once_with_the_bits_of_each_alone(rows, asked):
    y, scores, qid = rows
    data = er.RankingData.from_arrays(None, y, qid=qid)
    bound = [each for measure, ties in asked for one in [measure.on(data, threads=1)] for each in (one, *map(one.with_ties, ties))]
    together, retrieved = values_of(bound, data.group(scores))
    for each, values, ranked in zip(bound, together, retrieved, strict=True):
        alone = each.measure.on(data, threads=1)
        assert values.tobytes() == alone.values(data.group(scores)).tobytes()
        assert np.array_equal(ranked, values_of([alone], data.group(scores))[1][0])


@pytest.mark.parametrize("threads", [1, 2])
def test_long_queries_with_ties_near_ties_and_documents_without_a_rank(threads):
    """Beyond the sorting network's limit too, and where ties reach over the cutoff; some queries have no ties."""
    rng = np.random.default_rng(4)
    groups = [5000, 300, 40, 3, 1, 700] * 3
    data = er.RankingData.from_arrays(None, rng.integers(0, 4, sum(groups)), group=groups)
    tied = rng.choice([-np.inf, 0.0, -0.0, 1.0, 1.0 + 2**-40, 2.0], sum(groups))
    scores = np.where(np.repeat(np.arange(18) % 4 == 0, groups), rng.permutation(sum(groups)), tied)
    kinds = [er.parse_measure(name).on(data, threads=threads) for name in ("nDCG@10", "AP", "RR@200", "Bpref", "ERR")]
    bound = [kind.with_ties(ties) for kind in kinds for ties in ("pessimistic", "input", "expected", "pessimistic")]
    assert values_of(bound, scores)[0].tobytes() == b"".join(each.values(scores).tobytes() for each in bound)
    assert not np.array_equal(bound[0].values(scores), bound[1].values(scores))


@given(MEASURES, st.sampled_from(["input", "pessimistic", "expected", "docid"]), st.integers(0, 200))
def test_two_measures_at_once_are_each_alone(measure, ties, seed):
    data, scores = judged(seed), np.random.default_rng(seed).integers(-1, 2, 20) * (1 + 2.0**-30)
    first, second = replace(measure, empty=0).on(data), replace(measure, empty=0, ties=ties).on(data)
    assert [each.tobytes() for each in values_of([first, second], scores)[0]] == [each.values(scores).tobytes() for each in (first, second)]
    assert first.with_ties(ties).mean(scores) == second.mean(scores)


def test_one_kernel_may_read_different_grades():
    data, scores = judged(3), np.arange(20.0)
    kernel, grades = er.measures.NDCG(k=3).kernel(data.y, data.longest)
    asked = [(kernel, given, None, False) for given in (grades, 3.0 - grades)]
    together, *apart = (_core.evaluate(scores, data.indptr, some, 1)[0] for some in (asked, asked[:1], asked[1:]))
    assert together.tolist() == [value for values in apart for value in values]


def test_other_weights_count_and_what_was_made_is_shared():
    data, scores = judged(3), np.random.default_rng(0).standard_normal(20)
    bound = er.measures.NDCG(k=3, ties="docid").on(data, threads=1)
    weights = np.array([0.0, 1.0, 0.0, 3.0])
    other = replace(bound, weights=weights)
    values = bound.values(scores)
    assert other.mean(scores) == (values[1] + 3 * values[3]) / 4 == er.measures.NDCG(k=3, ties="docid").on(data, weights).mean(scores)
    assert other.kernel is bound.kernel
    assert other.tie_key is bound.tie_key is er.measures.RR(ties="docid").on(replace(data, y=data.y + 1)).tie_key


def test_ids_rank_tied_documents_from_last_to_first():
    data = er.RankingData.from_arrays(None, [0, 1, 0], group=[3], docid=["b", "c", "a"])
    assert data.docid.places_from_last.tolist() == [-1.0, -2.0, 0.0]
    assert er.measures.RR(ties="docid").on(data).mean(np.zeros(3)) == 1.0
    with pytest.raises(er.errors.IncompatibleError, match="needs document ids"):
        er.measures.RR(ties="docid").on(replace(data, docid=None))


def test_the_most_is_known_where_every_query_has_a_best_ranking_of_1():
    data = er.RankingData.from_arrays(None, [0, 1, 2, 0, 0], group=[3, 2])
    assert er.measures.NDCG(empty="skip").over(data).upper_bound == 1.0
    assert er.measures.NDCG().over(data).upper_bound == 0.5
    assert er.measures.DCG().over(data).upper_bound == np.inf


def test_a_score_that_is_no_number_names_the_row_as_it_was_given():
    data = er.RankingData.from_arrays(None, [0, 1, 2], qid=[1, 2, 1])
    with pytest.raises(er.errors.DataError, match="score of row 2 is nan"):
        er.measures.NDCG().on(data).mean(np.array([0.0, np.nan, 0.0]))


def test_weights_near_the_largest_number_do_not_overflow():
    values, weight = np.array([[0.0, 1.0, np.nan], [1.0, 1.0, 1.0]]), np.array([1e308, 1e308, 1e308])
    assert means_over_queries(values, weight).tolist() == [0.5, 1.0]
    assert mean_over_queries(values[0], weight) == 0.5


def test_means_of_any_number_of_rows_are_those_of_each():
    rng = np.random.default_rng(0)
    data = er.RankingData.from_arrays(None, rng.integers(0, 3, 12), group=[4, 3, 5], query_weight=[1.0, 2.0, 0.5])
    bound = er.measures.NDCG(k=3, ties="pessimistic").on(data)
    for rows in (2, 3, 2, 1, 3):
        scores = rng.integers(0, 4, (rows, 12)).astype(float)
        assert bound.means(scores).tolist() == [bound.mean(each) for each in scores]


def test_an_evaluation_by_a_single_measure_is_a_number():
    data = er.RankingData.from_arrays(None, [1, 0], qid=[1, 1])
    assert float(er.evaluate(data, [2, 1], "hit@5")) == 1.0
