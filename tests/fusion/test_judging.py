"""Judging plans: the pool of all weights, the order, when a decision is certain, and judgments of other tools, in and out."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank import _core
from exactrank.data.formats.judgment_files import merge_judgments
from exactrank.measures.unjudged import difference_bounds


def first_documents(scores, k):
    order = sorted((i for i in range(len(scores)) if scores[i] > -np.inf), key=lambda i: (-scores[i], i))
    return set(order[:k])


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([-1, 0, 1]), st.booleans()), min_size=1, max_size=8), st.integers(1, 4))
def test_the_pool_has_what_is_first_at_any_weight_and_nothing_else(lines, k):
    """Slopes differ by 1 or 2, so that all crossings are exact."""
    start = np.array([s / 4 if retrieved else -np.inf for s, _, retrieved in lines])
    slope = np.array([float(t) if retrieved else 0.0 for _, t, retrieved in lines])
    pairs = itertools.permutations([i for i in range(len(lines)) if lines[i][2]], 2)
    points = {(start[i] - start[j]) / (slope[j] - slope[i]) for i, j in pairs if slope[i] != slope[j]}
    points = sorted({0.0, 1.0} | {point for point in points if 0 <= point <= 1})
    points += [(low + high) / 2 for low, high in itertools.pairwise(points)]
    theirs = set().union(*(first_documents(start + alpha * slope, k) for alpha in points))
    ours = _core.members_along(start, slope, np.array([0, len(lines)]), 0.0, 1.0, k, 1)
    assert set(np.flatnonzero(ours)) == theirs


def partly_judged(seed=0, queries=10, documents=8, judged=0.5):
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, size=queries * documents, p=[0.5, 0.2, 0.2, 0.1]).astype(float)
    X = (truth[:, None] * [0.6, 0.8] + rng.normal(0, 1, (len(truth), 2))).astype(np.float32)
    y = np.where(rng.random(len(truth)) < judged, truth, -1.0)
    ids = [f"d{i}" for i in range(len(y))]
    qid = np.repeat([f"q{q}" for q in range(queries)], documents)
    return er.RankingData.from_arrays(X, y, qid=qid, docid=ids, feature_names=["bm25", "dense"]), truth


def rankings_of(data):
    return {"bm25": data.ungroup(data.X[:, 0]), "dense": data.ungroup(data.X[:, 1])}


@pytest.mark.parametrize("measure", ["nDCG@3", "R@3", "P@2", "RR@4", "DCG@3"])
def test_regret_is_the_largest_loss_over_all_grades(measure):
    data, _ = partly_judged(queries=2, documents=4)
    plan = er.judging.plan(data, rankings_of(data), measure=measure, highest_grade=3)
    k = int(measure[-1])
    pool = [first_documents(scores[rows], k) for rows in (slice(0, 4), slice(4, 8)) for scores in rankings_of(data).values()]
    pool = [row + 4 * (place // 2) for place, rows in enumerate(pool) for row in rows]
    unknown = np.intersect1d(np.flatnonzero(data.y < 0), pool)
    losses = []
    for grades in itertools.product(range(4), repeat=len(unknown)):
        y = data.y.copy()
        y[unknown] = grades
        means = {name: er.evaluate(replace(data, y=y), scores, measure).means[measure] for name, scores in rankings_of(data).items()}
        losses.append(max(means.values()) - means[plan.choice])
    assert plan.regret == pytest.approx(max(losses), abs=1e-12)
    assert plan.is_certain == (max(losses) <= 1e-12)


@pytest.mark.parametrize("decide", ["weight", "run"])
def test_judging_along_the_plan_makes_the_choice_certain(decide):
    data, truth = partly_judged(1)
    for _ in range(200):
        plan = er.judging.plan(data, rankings_of(data) if decide == "run" else None, measure="nDCG@3", highest_grade=3, limit=3)
        if plan.is_certain:
            break
        assert plan.priority[0] > 0
        assert np.all(np.diff(plan.priority) <= 0)
        y = data.y.copy()
        rows = [int(document[1:]) for document in plan.docid]
        assert np.all(y[rows] < 0)
        y[rows] = truth[rows]
        data = replace(data, y=y)
    assert plan.is_certain
    assert np.any(data.y < 0)  # not everything had to be judged
    if decide == "run":
        true = {name: er.evaluate(replace(data, y=truth), scores, "nDCG@3").means["nDCG@3"] for name, scores in rankings_of(data).items()}
        assert plan.choice == max(true, key=true.get)


def test_priority_is_the_expected_narrowing_of_the_bounds():
    data, _ = partly_judged(2, queries=3, documents=5, judged=0.3)
    measure, rankings = er.parse_measure("P@2"), rankings_of(data)
    plan = er.judging.plan(data, rankings, measure=measure, highest_grade=3)
    assert not plan.is_certain

    def width(y):
        scores = [data.group(rankings[name]) for name in (plan.rival, plan.choice)]
        lower, upper = difference_bounds(measure, replace(data, y=y), *scores, 3)
        return np.mean(upper - lower)

    judged = np.append(data.y[data.y >= 0], [0, 3])
    for document, priority in zip(plan.docid, plan.priority, strict=True):
        row = int(document[1:])
        expected = np.mean([width(np.where(np.arange(len(data.y)) == row, grade, data.y)) for grade in judged])
        assert priority == pytest.approx(width(data.y) - expected, abs=1e-12)


def test_an_outcome_can_be_certain_before_anything_else_is_judged():
    data, truth = partly_judged(3)
    everything = replace(data, y=truth)
    plan = er.judging.plan(everything, rankings_of(everything))
    assert plan.is_certain
    assert len(plan.docid) == 0
    assert "certain" in repr(plan)
    assert er.judging.plan(data, rankings_of(data), epsilon=1.0).is_certain


# ---- files


def test_a_plan_is_filled_in_and_read_back(tmp_path):
    data, _ = partly_judged(4)
    plan = er.judging.plan(data, measure="nDCG@3")
    plan.write(tmp_path / "plan.csv")
    header, first, *rest = (tmp_path / "plan.csv").read_text().splitlines()
    assert header == "query,document,why,priority,grade"
    (tmp_path / "judged.csv").write_text("\n".join([header, first + "2", *rest]))
    judgments = er.judging.read_judgments(tmp_path / "judged.csv")
    assert judgments.by_query == {plan.qid[0]: {plan.docid[0]: 2.0}}
    plan.write(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["documents"][0]["document"] == plan.docid[0]
    with pytest.raises(er.errors.OutputExistsError):
        plan.write(tmp_path / "plan.json")


@pytest.mark.parametrize("name", ["ratings.csv", "judgments.json"])
def test_judgments_for_other_tools_come_back(tmp_path, name):
    data, _ = partly_judged(5, queries=2)
    assert er.judging.write_judgments(tmp_path / name, data) == np.sum(data.y >= 0)
    judgments = er.judging.read_judgments(tmp_path / name)
    theirs = {(q, d): y for q, d, y in zip(np.repeat(data.qid, data.sizes), data.docid.tolist(), data.y, strict=True) if y >= 0}
    assert {(q, d): y for q, d, y in zip(judgments.qid, judgments.docid, judgments.grade, strict=True)} == theirs
    text = (tmp_path / name).read_text()
    assert text.startswith("query,docid,rating\n") if name.endswith("csv") else json.loads(text)["type"] == "IMPORT_JUDGMENT"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "query,document\nq,d\n", "no column 'grade'"),
        ("a.csv", "", "no column 'query'"),
        ("a.csv", "query,docid,rating\nq,d,good\n", "grade 'good' is not a number"),
        ("a.csv", "query,docid,rating\nq,d,-1\n", "grade '-1' is not a number of at least 0"),
        ("a.csv", "query,docid,rating\nq,d\n", ":2: has 2 columns instead of 3"),
        ("a.csv", "query,docid,rating\nq,d,\n", "no document has a grade"),
        ("a.csv", "query,docid,rating\nq,d,1\nq,d,2\n", ":3: query 'q', document 'd' has the grades 1 and 2"),
        ("a.json", "{}", "as OpenSearch imports judgments"),
        ("a.json", "nothing", "as OpenSearch imports judgments"),
        ("a.json", '{"judgmentRatings": [{"query": "q", "ratings": [3]}]}', "as OpenSearch imports judgments"),
    ],
)
def test_bad_judgments_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(er.errors.DataError, match=message):
        er.judging.read_judgments(tmp_path / name)


def test_files_that_contradict_each_other_are_refused(tmp_path):
    for name, grade in (("a.csv", 1), ("b.csv", 2)):
        (tmp_path / name).write_text(f"query,docid,rating\nq,d,{grade}\n")
    sources = {name: er.judging.read_judgments(tmp_path / name) for name in ("a.csv", "b.csv")}
    with pytest.raises(er.errors.DataError, match=r"b\.csv: query 'q', document 'd' has the grade 2, and 1 elsewhere"):
        merge_judgments(sources)


def test_bad_plans_are_refused():
    data, _ = partly_judged()
    both = rankings_of(data)
    for arguments, message in [
        ({"rankings": {"bm25": both["bm25"]}}, "at least two rankings"),
        ({"rankings": both, "systems": ["bm25", "dense"]}, "give one of them"),
        ({"systems": ["bm25"]}, "that of two systems, got bm25"),
        ({"measure": "AP"}, "no exact algorithm"),
        ({"measure": "nDCG(ties='docid')@5"}, "give ties='input'"),
        ({"limit": 0}, "limit=0"),
        ({"highest_grade": 1}, "highest_grade=1"),
        ({"absent": "none"}, "absent='none'"),
        ({"epsilon": -1}, "epsilon"),
    ]:
        with pytest.raises(er.errors.ExactRankError, match=message):
            er.judging.plan(data, **arguments)
    with pytest.raises(er.errors.DataError, match="nothing is judged"):
        er.judging.plan(replace(data, y=np.full(data.n_documents, -1.0)))
