"""Bounds over the grades of unjudged documents: equal to trying all grades, only narrower with more judgments, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.data.formats.trec import Judgments, RetrievalRun
from exactrank.measures import AP, DCG, ERR, NDCG, RBP, RR, Judged, Precision, Recall, Success, Total
from exactrank.measures.unjudged import UnjudgedBound, difference_bounds
from tests.reference import unjudged as slow

HIGHEST = 3
K, MAYBE_K = st.integers(1, 6), st.one_of(st.none(), st.integers(1, 6))
REL = st.sampled_from([1, 2, 0, 4])
TABLE = {0.0: 0.0, 1.0: 2.0, 2.0: 3.0, 3.0: 10.0}
COMPARED = st.one_of(
    st.builds(NDCG, k=MAYBE_K, gain=st.sampled_from(["exp2", "linear", TABLE]), discount=st.sampled_from(["log2", "letor", (1.0, 0.5)])),
    st.builds(NDCG, k=K, short=st.just("zero")),
    st.builds(DCG, k=MAYBE_K, gain=st.sampled_from(["exp2", "linear", {0: 1, 1: 3, 2: 0, 3: 6}])),
    st.builds(Precision, k=K, rel=REL, norm=st.sampled_from(["cutoff", "list"])),
    st.builds(Recall, k=K, rel=REL),
    st.builds(RBP, k=MAYBE_K, rel=REL),
    st.builds(RR, k=MAYBE_K, rel=REL),
    st.builds(Success, k=K, rel=REL),
    st.builds(Total, k=K),
)
MEASURES = st.one_of(
    COMPARED,
    st.builds(NDCG, k=MAYBE_K, empty=st.just(1)),
    st.builds(AP, k=MAYBE_K, rel=REL, norm=st.sampled_from(["total", "cutoff"]), empty=st.sampled_from([0, 1])),
    st.builds(Recall, k=K, empty=st.just(1)),
    st.builds(ERR, k=MAYBE_K),
)
SCORES = st.one_of(st.integers(0, 5).map(float), st.just(-np.inf))


@st.composite
def lists(draw, rankings=1, most_unjudged=4):
    """Grades of up to 8 documents, of which few are unjudged, and their scores by each ranking."""
    n = draw(st.integers(1, 8))
    unjudged = draw(st.sets(st.integers(0, n - 1), max_size=min(n, most_unjudged)))
    grades = [-1.0 if i in unjudged else float(draw(st.integers(0, HIGHEST))) for i in range(n)]
    return grades, *(draw(st.lists(SCORES, min_size=n, max_size=n)) for _ in range(rankings))


def one_query(grades, **columns):
    return er.RankingData.from_arrays(None, grades, qid=np.zeros(len(grades)), **columns)


def bounds(measure, grades, scores):
    evaluation = er.evaluate(one_query(grades), scores, measure, unjudged="bounds", highest_grade=HIGHEST)
    return evaluation.bounds[str(measure)]


@given(MEASURES, lists())
def test_bounds_are_those_of_all_grades(measure, case):
    grades, scores = case
    theirs = slow.values(measure, grades, scores, range(HIGHEST + 1))
    assert bounds(measure, grades, scores) == pytest.approx((min(theirs), max(theirs)), abs=1e-12)


@settings(max_examples=30)
@given(st.sampled_from([NDCG(k=3), NDCG(gain="linear"), AP(), RR(), ERR(k=4)]), lists(most_unjudged=3))
def test_grades_between_whole_ones_reach_no_further(measure, case):
    grades, scores = case
    low, high = bounds(measure, grades, scores)
    for value in slow.values(measure, grades, scores, np.arange(0, HIGHEST + 0.1, 0.25)):
        assert low - 1e-12 <= value <= high + 1e-12


@given(COMPARED, lists(rankings=2))
def test_bounds_of_differences_are_those_of_all_grades(measure, case):
    grades, first, second = case
    theirs = slow.differences(measure, grades, first, second, range(HIGHEST + 1))
    ours = difference_bounds(measure, one_query(grades), np.array(first), np.array(second), HIGHEST)
    assert np.concatenate(ours) == pytest.approx([min(theirs), max(theirs)], abs=1e-12)


def test_the_largest_ndcg_may_be_between_the_extreme_grades():
    grades = [1.0, -1.0, 1.0]
    _, high = bounds(NDCG(gain="linear"), grades, [3, 2, 1])
    assert high == 1.0 > max(slow.values(NDCG(gain="linear"), grades, [3, 2, 1], [0, HIGHEST]))


@given(MEASURES, lists(), st.data())
def test_more_judgments_never_widen_bounds(measure, case, data):
    grades, scores = case
    low, high = bounds(measure, grades, scores)
    unjudged = [i for i, y in enumerate(grades) if y < 0]
    if unjudged:
        grades = list(grades)
        grades[data.draw(st.sampled_from(unjudged))] = float(data.draw(st.integers(0, HIGHEST)))
        closer_low, closer_high = bounds(measure, grades, scores)
        assert low - 1e-12 <= closer_low <= closer_high <= high + 1e-12


def random_data(seed, queries=40, documents=12, judged=0.5):
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, size=queries * documents, p=[0.6, 0.2, 0.15, 0.05]).astype(float)
    y = np.where(rng.random(len(truth)) < judged, truth, -1.0)
    qid = np.repeat(np.arange(queries), documents)
    data = er.RankingData.from_arrays(None, y, qid=qid, docid=[f"d{i}" for i in range(len(y))])
    return data, truth, np.round(rng.normal(size=(2, len(y))), 1)


@pytest.mark.parametrize("measure", ["nDCG@5", "nDCG(ties='docid')@5", "AP", "R@5", "RR", "P@5", "RBP", "ERR", "nDCG(empty=1)@3"])
def test_the_true_mean_lies_within_the_bounds(measure):
    data, truth, (scores, _) = random_data(0)
    evaluation = er.evaluate(data, scores, measure, unjudged="bounds")
    (low, high), true = evaluation.bounds[measure], er.evaluate(replace(data, y=truth), scores, measure)[measure]
    assert low < true.mean < high
    lower, upper = evaluation[measure].bounds_by_query
    assert np.all(lower <= true.values + 1e-12)
    assert np.all(true.values <= upper + 1e-12)


def test_the_true_difference_lies_within_its_bounds_which_are_narrower_than_those_of_each():
    data, truth, (first, second) = random_data(1)
    for measure in [NDCG(k=5), NDCG(k=5, ties="docid"), Recall(k=5), RR(), Precision(k=5, norm="list")]:
        low, high = difference_bounds(measure, data, first, second, HIGHEST)
        a, b = (er.evaluate(replace(data, y=truth), scores, measure)[str(measure)].values for scores in (first, second))
        assert np.all(low <= a - b + 1e-12)
        assert np.all(a - b <= high + 1e-12)
        (low_a, high_a), (low_b, high_b) = (
            er.evaluate(data, scores, measure, unjudged="bounds")[str(measure)].bounds_by_query for scores in (first, second)
        )
        assert np.mean(high - low) < np.mean(high_a - low_b - (low_a - high_b))


@pytest.mark.parametrize("measure", [NDCG(k=4), NDCG(), Recall(k=3), AP(), AP(k=4), RR(), DCG(k=3), NDCG(k=4, gain="linear")])
def test_along_a_line_bounds_are_those_of_each_point(measure):
    data, _, (scores, slopes) = random_data(2, queries=15)
    for bound in UnjudgedBound.pair(measure, HIGHEST):
        curve = er.profile(data, scores, slopes, bound, low=-1.0, high=1.0)
        points = np.concatenate([curve.breakpoints[::9], (curve.breakpoints[:-1:7] + curve.breakpoints[1::7]) / 2])
        values = [bound.on(data).mean(data.group(scores + alpha * slopes)) for alpha in points]
        assert curve(points) == pytest.approx(values, abs=1e-9)


def test_rbp_bounds_differ_by_its_residual():
    """Moffat & Zobel 2008: what the unjudged documents, and those beyond the list, could still add; here the list has all documents."""
    grades = [1.0, -1.0, 0.0, -1.0]
    low, high = bounds(RBP(p=0.8), grades, [4, 3, 2, 1])
    assert low == pytest.approx(0.2)
    assert high - low == pytest.approx(0.2 * (0.8 + 0.8**3))


# ---- coverage and condensed lists


def test_judged_is_that_of_ir_measures():
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(0)
    qrels = {f"q{q}": {f"d{d}": int(rng.integers(0, 3)) for d in range(8) if rng.random() < 0.6} | {"d0": 1} for q in range(20)}
    run = {q: {f"d{d}": float(rng.random()) for d in range(int(rng.integers(1, 12)))} for q in qrels}
    theirs = ir_measures.calc_aggregate([ir_measures.Judged @ 5, ir_measures.Judged @ 10], qrels, run)
    judgments = Judgments(*zip(*((q, d, y) for q, grades in qrels.items() for d, y in grades.items()), strict=True))
    judgments = replace(judgments, grade=np.array(judgments.grade, float))
    rows = [(q, d, s) for q, scores in run.items() for d, s in scores.items()]
    retrieved = RetrievalRun([r[0] for r in rows], [r[1] for r in rows], np.array([r[2] for r in rows]), "run")
    data = er.from_trec(judgments, [retrieved])
    ours = er.evaluate(data, np.where(np.isnan(data.X[:, 0]), -np.inf, data.X[:, 0]), ["Judged@5", "Judged@10"]).means
    assert ours == pytest.approx({str(name): value for name, value in theirs.items()})


def test_coverage_is_that_of_the_documents_that_count():
    data = one_query([1, -1, 0, -1, 2])
    scores = [5, 4, 3, 2, -np.inf]
    with pytest.warns(er.errors.EvaluationWarning, match=r"only 67% of the documents that count for nDCG@3 are judged"):
        evaluation = er.evaluate(data, scores, ["nDCG@3", "Judged@3"])
    assert evaluation.coverage == pytest.approx({"nDCG@3": 2 / 3, "Judged@3": 2 / 3})
    assert er.evaluate(one_query([1, 0]), [2, 1], "nDCG").coverage == {"nDCG": 1.0}
    assert "67%" in evaluation._glance().text()


def test_judged_only_leaves_unjudged_documents_out():
    data, _, (scores, _) = random_data(3)
    judged = data.y >= 0
    without = er.RankingData.from_arrays(None, data.y[judged], qid=np.repeat(data.qid, data.sizes)[judged])
    measures = ["nDCG(short='zero')@9", "MeanNDCG", "P(norm='list')@9", "AP", "Bpref"]
    ours, theirs = er.evaluate(data, scores, measures, judged_only=True), er.evaluate(without, scores[judged], measures)
    assert np.array_equal(ours.per_query, theirs.per_query)
    assert ours.coverage["AP"] == pytest.approx(judged.mean())


def test_a_query_that_nobody_judged_is_skipped_in_condensed_lists():
    data = er.RankingData.from_arrays(None, [1, 0, -1], qid=[1, 1, 2])
    values = er.evaluate(data, [2, 1, 3], "RR", judged_only=True)["RR"].values
    assert values[0] == 1.0
    assert np.isnan(values[1])


# ---- refusals


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("MeanNDCG", "no exact algorithm; there is one for DCG, nDCG"),
        ("Bpref", "no exact algorithm"),
        ("nDCG(ties='expected')@5", "give ties='input'"),
        ("nDCG(ties='pessimistic')@5", "give ties='input'"),
        ("nDCG(discount=[0.5, 1])@5", "do not be negative or rise"),
        ("nDCG(gain={0: -1, 1: 1, 2: 2, 3: 3})@5", "need gains that are finite, at least 0"),
        ("Total(column='price')@5", "reads the column"),
    ],
)
def test_measures_without_bounds_are_refused(measure, message):
    data = one_query([1.0, -1.0, 0.0], extra_columns={"price": [1.0, 2.0, 3.0]})
    with pytest.raises(er.errors.MeasureError, match=message):
        er.evaluate(data, [3, 2, 1], measure, unjudged="bounds", highest_grade=HIGHEST)


def test_bad_input_is_refused():
    data, scores = one_query([1.0, -1.0, 0.0]), [3, 2, 1]
    for highest in (0.5, -1, np.nan, np.inf, True, "3"):
        with pytest.raises(er.errors.DataError, match="highest_grade"):
            er.evaluate(data, scores, "nDCG", unjudged="bounds", highest_grade=highest)
    for grades, what in (([-1, -1, -1], "nothing is judged"), ([0, -1, 0], "no judged document is relevant")):
        with pytest.raises(er.errors.DataError, match=f"{what}.*give highest_grade"):
            er.evaluate(one_query(grades), scores, "nDCG", unjudged="bounds")
    for empty, measure in (("'skip'", "nDCG"), ("1", "DCG")):
        with pytest.raises(er.errors.DataError, match=r"whether query '0.0' has anything relevant depends"):
            er.evaluate(one_query([0, -1, 0]), scores, f"{measure}(empty={empty})", unjudged="bounds", highest_grade=2)
    with pytest.raises(er.errors.DataError, match="give judged_only or unjudged"):
        er.evaluate(data, scores, "nDCG", unjudged="bounds", judged_only=True)
    with pytest.raises(er.errors.DataError, match="leave both out"):
        er.evaluate(data, scores, "nDCG", highest_grade=3)
    with pytest.raises(er.errors.DataError, match="unjudged='nothing'"):
        er.evaluate(data, scores, "nDCG", unjudged="nothing")
    with pytest.raises(er.errors.DataError, match="judged_only leaves nothing"):
        er.evaluate(one_query([-1, -1]), [2, 1], "nDCG", judged_only=True)
    with pytest.raises(er.errors.DataError, match="bounds were not asked for"):
        _ = er.evaluate(one_query([1, 0]), [2, 1], "nDCG").bounds
    for measure in (AP(), ERR(), Judged()):
        with pytest.raises(er.errors.MeasureError, match="difference of two rankings have no exact algorithm"):
            difference_bounds(measure, data, np.zeros(3), np.ones(3), HIGHEST)
