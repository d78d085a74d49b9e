"""Laws of measures: they equal their definitions, whatever the ties, the cutoff and the policies."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.measures.families import Positional
from exactrank.measures.parse import known_measures
from tests.reference import measures as reference
from tests.strategies import GRADES, MEASURES, queries


def per_query(measure, y, s, qid, threads=1, docid=None):
    data = er.RankingData.from_arrays(None, y, qid=qid, docid=docid)
    return dict(zip(data.qid.tolist(), er.evaluate(data, s, measure, threads=threads).per_query[0], strict=True))


@settings(max_examples=600)
@given(measure=MEASURES, rows=queries())
def test_value_equals_definition(measure, rows):
    y, s, qid = rows
    ours = per_query(measure, y, s, qid)
    for q, value in ours.items():
        theirs = reference.query_value(measure, y[qid == q], s[qid == q])
        assert value == pytest.approx(theirs, rel=1e-12, abs=1e-12, nan_ok=True)


@settings(max_examples=300)
@given(measure=MEASURES, y=st.lists(GRADES, min_size=1, max_size=9))
def test_swap_deltas_equal_brute_force(measure, y):
    ours = measure.swap_deltas(y)
    before = reference.value(measure, y)
    for i in range(len(y)):
        for j in range(len(y)):
            swapped = list(y)
            swapped[i], swapped[j] = y[j], y[i]
            theirs = 0.0 if math.isnan(before) else reference.value(measure, swapped) - before
            assert ours[i, j] == pytest.approx(theirs, abs=1e-12)


@given(measure=MEASURES)
def test_repr_and_str_parse_back(measure):
    assert er.parse_measure(repr(measure)) == measure
    assert er.parse_measure(str(measure)) == measure


@given(y=st.lists(GRADES, min_size=1, max_size=40), k=st.integers(1, 50), gain=st.sampled_from(["exp2", "linear"]))
def test_ideal_order_is_worth_one(y, k, gain):
    measure = er.measures.NDCG(k=k, gain=gain, empty=1)
    assert per_query(measure, y, y, [0] * len(y))[0] == pytest.approx(1, abs=1e-15)


@settings(max_examples=50)
@given(measure=MEASURES, seed=st.integers(0, 1000))
def test_long_lists_and_threads(measure, seed):
    """Lists beyond the sorting network's limit, near-ties, unretrieved documents; the same bits for any number of threads."""
    rng = np.random.default_rng(seed)
    sizes = np.array([1, 5000, 16, 17, 33, 4096, 4097, 700])
    qid = np.repeat(np.arange(len(sizes)), sizes)
    y = rng.choice([-1.0, 0, 0, 0, 1, 2, 3], size=len(qid))
    s = rng.normal(size=len(qid)) + rng.integers(0, 2, len(qid)) * 1e9
    s[rng.random(len(qid)) < 0.05] = -math.inf  # not retrieved
    if measure.ties == "expected":
        s = np.where(rng.random(len(s)) < 0.1, np.round(s, 1), s)
    first, second = per_query(measure, y, s, qid, threads=1), per_query(measure, y, s, qid, threads=2)
    assert np.array_equal(list(first.values()), list(second.values()), equal_nan=True)
    if measure.ties != "expected":
        for q in (0, 2, 3, 4, 7):
            theirs = reference.query_value(measure, y[qid == q], s[qid == q])
            assert first[q] == pytest.approx(theirs, rel=1e-11, abs=1e-12, nan_ok=True)


@given(rows=queries(), measure=MEASURES, seed=st.integers(0, 100))
def test_order_of_queries_does_not_matter(rows, measure, seed):
    y, s, qid = rows
    renamed = np.random.default_rng(seed).permutation(4)[qid]
    order = np.argsort(renamed, kind="stable")
    before, after = per_query(measure, y, s, qid), per_query(measure, y[order], s[order], qid[order])
    assert {q: before[q] for q in sorted(before)} == pytest.approx({q: after[q] for q in sorted(after)}, abs=0, nan_ok=True)


def test_docid_ties_are_descending_and_single_precision():
    y, qid, docid = [0, 1, 2], [1, 1, 1], ["a", "c", "b"]
    ranked = [0.5, 0.5 + 1e-12, 0.5]
    measure = er.measures.RR(rel=2, ties="docid")
    assert per_query(measure, y, ranked, qid, docid=docid)[1] == 1 / 2
    with pytest.raises(er.errors.IncompatibleError, match="document ids"):
        per_query(measure, y, ranked, qid)


def test_ids_are_sorted_once(monkeypatch):
    data = er.RankingData.from_arrays(None, [0, 1, 1], qid=[1, 1, 1], docid=["b", "a", "c"])
    measure = er.measures.RR(ties="docid")
    first = er.evaluate(data, [0.0, 0.0, 0.0], measure).means
    monkeypatch.setattr("exactrank.data.formats.text_column.TextColumn.bytes_at", None)
    assert er.evaluate(data, [0.0, 0.0, 0.0], measure).means == first == {str(measure): 1.0}


def test_huge_grades_have_no_cap():
    data = er.RankingData.from_arrays(None, [40, 1000, 5000, 4999], qid=[1] * 4)
    assert er.evaluate(data, [1.0, 2.0, 3.0, 4.0], "nDCG@2").means["nDCG@2"] == pytest.approx(
        (0.5 + 1 / math.log2(3)) / (1 + 0.5 / math.log2(3))
    )
    assert er.evaluate(data, [1.0, 2.0, 4.0, 3.0], "nDCG@2").means["nDCG@2"] == 1


def test_overflow_is_explained_where_it_cannot_be_avoided():
    data = er.RankingData.from_arrays(None, [2000, 0], qid=[1, 1])
    with pytest.raises(er.errors.DataError, match="gain of grade 2000 overflows; use gain='linear'"):
        er.evaluate(data, [1.0, 0.0], "DCG")
    assert er.evaluate(data, [1.0, 0.0], "nDCG@99999999999999").means == {"nDCG@99999999999999": 1.0}


@pytest.mark.filterwarnings("error")
def test_nothing_but_skipped_queries_has_no_mean():
    data = er.RankingData.from_arrays(None, [0, 0], qid=[1, 2])
    result = er.evaluate(data, [1.0, 0.0], "RR(empty='skip')")["RR(empty='skip')"]
    assert math.isnan(result.mean)
    assert all(map(math.isnan, result.interval))


def test_infinitely_bad_is_not_retrieved():
    data = er.RankingData.from_arrays(None, [1, 1, 0], qid=[1] * 3)
    values = er.evaluate(data, [-np.inf, 1.0, 0.0], ["P@3", "R@3", "AP"]).means
    assert values == pytest.approx({"P@3": 1 / 3, "R@3": 1 / 2, "AP": 1 / 2})


def test_weighted_mean_and_skipped_queries():
    data = er.RankingData.from_arrays(None, [1, 0, 0, 1, 0], qid=[1, 1, 2, 3, 3], query_weight=[1.0, 5.0, 3.0])
    result = er.evaluate(data, [2.0, 1.0, 1.0, 1.0, 2.0], "RR(empty='skip')")["RR(empty='skip')"]
    assert result.mean == (1 * 1 + 3 * 0.5) / 4
    assert np.isnan(result.values[1])


def test_intervals_cover_the_mean_and_repeat():
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(200), 10)
    data = er.RankingData.from_arrays(None, rng.integers(0, 3, 2000), qid=qid)
    scores = rng.normal(size=2000)
    first, second = (er.evaluate(data, scores, ["nDCG@5", "AP"], seed=3).intervals for _ in range(2))
    assert first == second
    evaluation = er.evaluate(data, scores, "nDCG@5")
    low, high = evaluation["nDCG@5"].interval
    error = evaluation.per_query[0].std(ddof=1) / math.sqrt(200)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)
    assert low < evaluation.means["nDCG@5"] < high


def test_intervals_are_weighted():
    rng = np.random.default_rng(2)
    y, scores = rng.integers(0, 2, 600), rng.normal(size=600)
    qid = np.repeat(np.arange(60), 10)
    weight = np.repeat([1.0, 0.0], [40, 20])  # the last queries count for nothing
    low, high = er.evaluate(er.RankingData.from_arrays(None, y, qid=qid, query_weight=weight), scores, "AP")["AP"].interval
    alone = er.evaluate(er.RankingData.from_arrays(None, y[:400], qid=qid[:400]), scores[:400], "AP")["AP"].interval
    assert (low, high) == pytest.approx(alone, abs=0.02)
    whole = er.evaluate(er.RankingData.from_arrays(None, y, qid=qid), scores, "AP")["AP"].interval
    assert (low, high) != pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDCGG@10", "did you mean nDCG.*; there are AP, Bpref, DCG"),
        ("foo", "there are AP"),
        ("nDCG@0", "at least 1"),
        ("nDCG@ten", "not a whole number"),
        ("nDCG@-3", "at least 1"),
        ("AP(relevance=2)", "no setting 'relevance'; it has k, empty, ties, column, rel, norm"),
        ("AP(2)", "name=value"),
        ("nDCG(dcg='exp')@10", "not one of 'log2', 'exp-log2'"),
        ("nDCG(gain='cubic')", "not one of 'exp2'"),
        ("nDCG(empty=2)", "not one of 0, 1, 'skip'"),
        ("nDCG(ties='random')", "not one of 'input'"),
        ("Bpref@10", "has no cutoff"),
        ("P", "needs a cutoff"),
        ("RBP(p=1.5)", "between 0 and 1"),
        ("nDCG@10 AP", "not a measure"),
        ("AP(rel=__import__('os'))", "cannot read the settings"),
        ("AP(rel=1if 1 else 2)", "cannot read the settings \\(invalid decimal literal"),
        ("AP(rel='x')", "rel must be a number, got 'x'"),
        ("AP(rel=True)", "rel must be a number"),
        ("AUC(rel='x')", "rel must be a number"),
        ("RBP(p='x')", "p must be a number between 0 and 1"),
        ("ERR(max_grade=2000)", "max_grade must be a number between 0 and 1000"),
        ("nDCG(gain={})", "a table of numbers"),
        ("nDCG(gain={1: 'a'})", "a table of numbers"),
        ("nDCG(gain=3)", "a table of numbers"),
        ("nDCG(discount=[])", "a table of numbers"),
        ("nDCG(discount=[1, 'a'])", "a table of numbers"),
        ("nDCG(gain=cubic)", "gain='cubic' is not one of 'exp2', 'linear'"),
        ("nDCG(gain=f(x))@10", r"cannot read the settings \(the value of gain is not a number, a word, a list or a table\)"),
        ("AP(rel=two)", "rel must be a number, got 'two'"),
        ("nDCG(k=5)@10", "given twice"),
        (3, "is not a measure"),
        (None, "is not a measure"),
    ],
)
def test_bad_measures_are_explained(text, message):
    with pytest.raises(er.errors.MeasureError, match=message):
        er.parse_measure(text)


def test_words_need_no_quotes():
    assert er.parse_measure("nDCG(gain=linear)@10") == er.parse_measure("nDCG(gain='linear')@10") == er.measures.NDCG(gain="linear", k=10)
    assert er.parse_measure("nDCG(dcg=exp-log2)") == er.measures.NDCG()
    assert er.parse_measure("AP(empty=skip, ties=expected)") == er.measures.AP(empty="skip", ties="expected")


def test_names_of_trec_eval_are_its_measures_and_nothing_else_is():
    """Letter by letter; in any other case, or with @k or settings, names are ours."""
    for theirs, ours in {"ndcg_cut_10": "nDCG@10", "ndcg_cut.10": "nDCG@10", "ndcg": "nDCG", "P_5": "P@5", "map_cut_7": "AP@7"}.items():
        assert er.parse_measure(theirs) == er.parse_measure(theirs, "trec_eval") == er.parse_measure(ours, "trec_eval")
        assert repr(er.parse_measure(theirs)).count("ties='docid'") == 1
    assert er.parse_measure("NDCG") == er.parse_measure("nDCG") == er.measures.NDCG()
    assert er.parse_measure("ndcg@10") == er.measures.NDCG(k=10)
    assert er.parse_measure("map(rel=2)") == er.measures.AP(rel=2)
    assert er.parse_measure("map", "xgboost") == er.parse_measure("AP", "xgboost")  # which has a map of its own
    with pytest.raises(er.errors.MeasureError, match=r"'P_5' is a measure of trec_eval, not of lightgbm; leave the preset out"):
        er.parse_measure("P_5", "lightgbm")
    with pytest.raises(er.errors.MeasureError, match="cutoff k must be a whole number of at least 1, got 0"):
        er.parse_measure("ndcg_cut_0")
    with pytest.raises(er.errors.MeasureError, match="there is no measure 'ndcg_cut'"):
        er.parse_measure("ndcg_cut")
    data = er.RankingData.from_arrays(None, [1, 0], group=[2])
    with pytest.raises(er.errors.IncompatibleError, match=r"as in trec_eval's names such as ndcg\) needs document ids.*or write nDCG"):
        er.evaluate(data, [1, 2], "ndcg")


def test_notation_of_ir_measures():
    assert er.parse_measure("nDCG(dcg='exp-log2')@10") == er.measures.NDCG(k=10)
    assert er.parse_measure("nDCG(dcg='log2')@10") == er.measures.NDCG(k=10, gain="linear")
    assert er.parse_measure("nDCG(gains={0: 0, 1: 3, 2: 9})@5") == er.measures.NDCG(k=5, gain={0: 0, 1: 3, 2: 9})
    assert er.parse_measure("MAP(rel=2)") == er.measures.AP(rel=2)
    assert er.parse_measure("wta") == er.measures.Success(k=1)
    assert er.parse_measure("auc") == er.measures.PairwiseCorrect(rel=1)
    assert er.parse_measure("Precision@5") == er.measures.Precision(k=5)
    assert known_measures() == [
        "AP",
        "Bpref",
        "DCG",
        "ERR",
        "Judged",
        "MeanNDCG",
        "nDCG",
        "P",
        "PairwiseCorrect",
        "R",
        "RBP",
        "RR",
        "Success",
        "Total",
    ]


@pytest.mark.parametrize("scores", [[1.0, np.nan, 0.0], [1.0, np.inf, 0.0]])
def test_bad_score_names_the_callers_row(scores):
    data = er.RankingData.from_arrays(None, [1, 0, 1], qid=[2, 1, 2])
    with pytest.raises(er.errors.DataError, match="score of row 1 is"):
        er.evaluate(data, scores, "AP")


def test_wrong_number_of_scores():
    data = er.RankingData.from_arrays(None, [1, 0, 1], qid=[2, 1, 2])
    with pytest.raises(er.errors.DataError, match=r"shape \(2,\) for 3 documents"):
        er.evaluate(data, [1.0, 2.0], "AP")


@pytest.mark.parametrize("measures", [None, 3, [], [3]])
def test_things_that_are_no_measures(measures):
    data = er.RankingData.from_arrays(None, [1, 0, 1], qid=[2, 1, 2])
    with pytest.raises(er.errors.MeasureError, match="measure"):
        er.evaluate(data, [1.0, 2.0, 3.0], measures)


def test_a_new_measure_needs_only_usefulness_and_discounts():
    @dataclass(frozen=True, repr=False)
    class Ripeness(Positional):
        name: ClassVar[str] = "Ripeness"
        length: int | None = None

        def usefulness(self, y):
            return np.sqrt(np.maximum(y, 0))

        def discounts(self, n):
            return np.full(self.length or n, 0.5)

    try:
        data = er.RankingData.from_arrays(None, [4, 0, 9], qid=[1, 1, 1])
        assert er.evaluate(data, [3.0, 2.0, 1.0], "ripeness@2").means == {"ripeness@2": 1.0}
        with pytest.raises(er.errors.MeasureError, match=r"Ripeness\.discounts must give 2 finite numbers, got shape \(1,\)"):
            er.evaluate(data, [3.0, 2.0, 1.0], "Ripeness(length=1)@2")
    finally:
        del er.Measure.registry.builtin["ripeness"]


def test_err_refuses_grades_beyond_its_scale():
    data = er.RankingData.from_arrays(None, [7, 0], qid=[2, 1])
    with pytest.raises(er.errors.DataError, match=r"ERR\(max_grade=7\)"):
        er.evaluate(data, [1.0, 2.0], "ERR")
    assert er.evaluate(data, [1.0, 2.0], "ERR(max_grade=7)")["ERR(max_grade=7)"].values[0] == 127 / 128
