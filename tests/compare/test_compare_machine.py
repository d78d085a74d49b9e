"""Comparisons that a machine's grades of further queries correct: the formula, letters, intervals that cover, the commands, bad input."""

import json
import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.compare.comparison import read_comparison
from exactrank.compare.contenders.scores import ScoresFile
from exactrank.compare.corrected import MachineValues
from exactrank.compare.standings import pairs, standings
from exactrank.compare.statistics import holm
from exactrank.data.folds import Fold
from exactrank.errors import DataError, ExactRankError
from exactrank.measures.machine_grades import corrected_mean
from tests.reference.machine_grades import slow_mean, slow_share

PEOPLE, QUERIES, DOCUMENTS = 30, 150, 8


@pytest.fixture(scope="module")
def judgments():
    """Grades of people, of a machine that overrates, and the rows that three systems rank alike, better and worse."""
    rng = np.random.default_rng(3)
    truth = np.clip(np.round(rng.gamma(0.7, 1.0, QUERIES * DOCUMENTS)), 0, 4)
    qid, docid = np.repeat(np.arange(QUERIES), DOCUMENTS), [f"d{i % DOCUMENTS}" for i in range(len(truth))]
    machine = er.RankingData.from_arrays(None, np.clip(truth + (rng.random(len(truth)) < 0.3), 0, 4), qid=qid, docid=docid)
    people = replace(machine, y=truth).take_queries(np.arange(PEOPLE))
    scores = {name: truth + rng.normal(0, noise, len(truth)) for name, noise in (("fair", 2.0), ("good", 1.0), ("like", 2.1))}
    return people, machine, scores


def compared(judgments, measures="nDCG@5", **options):
    people, machine, scores = judgments
    own = {name: values[: people.n_documents] for name, values in scores.items()}
    return er.compare_runs(people, own, measures, machine=(machine, scores), **options)


def values_of(judgments, measure="nDCG@5"):
    people, machine, scores = judgments
    human = {name: er.evaluate(people, s[: people.n_documents], measure)[measure].values for name, s in scores.items()}
    by_machine = {name: er.evaluate(machine, s, measure)[measure].values for name, s in scores.items()}
    return human, by_machine


def test_means_and_differences_are_those_of_the_formula(judgments):
    comparison, (human, by_machine) = compared(judgments), values_of(judgments)
    for standing in standings(comparison, "data", "nDCG@5"):
        h, m = human[standing.method], by_machine[standing.method]
        mean, error = slow_mean(h, m[:PEOPLE], m[PEOPLE:], slow_share(h, m[:PEOPLE], m[PEOPLE:]))
        assert standing.mean == pytest.approx(mean)
        assert standing.interval[1] - standing.mean == pytest.approx(1.99 * error, rel=0.03)
        assert standing.corrected.human.mean == pytest.approx(h.mean())
    found = pairs(comparison, "data", "nDCG@5")
    for pair, (a, b) in zip(found, combinations(human, 2), strict=True):
        d, m = human[a] - human[b], by_machine[a] - by_machine[b]
        mean, error = slow_mean(d, m[:PEOPLE], m[PEOPLE:], slow_share(d, m[:PEOPLE], m[PEOPLE:]))
        assert (pair.first, pair.second) == (a, b)
        assert pair.difference == pytest.approx(mean)
        assert (pair.interval[1] - pair.interval[0]) / 2 == pytest.approx(1.99 * error, rel=0.05)
        assert (pair.wins, pair.ties, pair.losses) == (np.sum(d > 0), np.sum(d == 0), np.sum(d < 0))
        assert pair.worth > PEOPLE
        assert (pair.p["t"] < 0.05) == (pair.interval[0] > 0 or pair.interval[1] < 0)
        assert pair.opposite.opposite == pair
    assert [pair.adjusted["t"] for pair in found] == holm([pair.p["t"] for pair in found]).tolist()


def test_letters_and_texts_are_of_the_corrected_differences(judgments, tmp_path):
    comparison = compared(judgments, ["nDCG@5", "RR"])
    better = {standing.method: standing.better_than for standing in standings(comparison, "data", "nDCG@5")}
    assert better == {"fair": "", "good": "ac", "like": ""}
    text = str(comparison)
    assert "t test" in text
    assert "120 further queries: as good as" in text
    assert "weighted kappa" in text
    assert "worth" in comparison.to_csv()
    comparison.write(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert "as good as" in page
    assert "corrected 95% interval" in page
    assert "bootstrap" not in page
    again = read_comparison(tmp_path)
    assert str(again) == text
    assert pairs(again, "data", "RR") == pairs(comparison, "data", "RR")


def test_without_a_machine_nothing_changes(judgments):
    people, _, scores = judgments
    plain = er.compare_runs(people, {name: values[: people.n_documents] for name, values in scores.items()})
    assert "randomization test" in str(plain)
    assert "machine" not in str(plain)
    assert "worth" not in plain.to_csv()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_machine_that_knows_nothing_is_left_out(seed):
    rng = np.random.default_rng(seed)
    human = {name: rng.random(40) for name in "ab"}
    constant = {name: np.full(40, 0.5) for name in "ab"}
    values = MachineValues(constant, {name: np.full(100, 0.5) for name in "ab"}, np.ones(100))
    (pair,) = values.pairs(human, np.ones(40), 0)
    assert pair.difference == pytest.approx(np.mean(human["a"] - human["b"]))
    assert pair.worth == pytest.approx(40)


@pytest.mark.parametrize("queries", [30, 60, 200])
def test_intervals_of_differences_cover(queries):
    """Two methods with a common part that the machine sees too: 95% within three standard errors of 200 simulations."""
    rng = np.random.default_rng(queries)

    def drawn(number):
        common, own = rng.beta(2.5, 1.5, number), 0.15 * rng.standard_normal((2, number)) + np.array([[0.05], [0.0]])
        truth = np.clip(common + own, 0, 1)
        return truth, np.clip(0.7 * truth + 0.25 + 0.05 * rng.standard_normal((2, number)), 0, 1)

    truth = np.subtract(*drawn(400_000)[0]).mean()
    means = []
    for _ in range(200):
        (human, machine), (_, further) = drawn(queries), drawn(1000)
        means.append(corrected_mean(*(np.subtract(*values) for values in (human, machine, further))))
    assert 0.90 <= np.mean([mean.interval[0] <= truth <= mean.interval[1] for mean in means]) <= 0.99
    assert np.mean([mean.worth / queries for mean in means]) > 1.2


@pytest.fixture
def files(judgments, tmp_path, monkeypatch):
    people, machine, scores = judgments
    for name, data in (("people", people), ("machine", machine)):
        ids = zip(np.repeat(data.qid, data.sizes).tolist(), data.docid.tolist(), data.y.tolist(), strict=True)
        (tmp_path / f"{name}.qrels").write_text("".join(f"{q} 0 {d} {grade:g}\n" for q, d, grade in ids))
    for name, values in scores.items():
        ids = zip(np.repeat(machine.qid, machine.sizes).tolist(), machine.docid.tolist(), values.tolist(), strict=True)
        (tmp_path / f"{name}.run").write_text("".join(f"{q} Q0 {d} 1 {score!r} {name}\n" for q, d, score in ids))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(code, *arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done.output


def test_the_commands_give_the_numbers_of_python(judgments, files):
    expected = {standing.method: standing.mean for standing in standings(compared(judgments), "data", "nDCG@5")}
    arguments = ["people.qrels", "good.run", "fair.run", "like.run", "--machine", "machine.qrels", "--measure", "nDCG@5"]
    runs = json.loads(called(0, "evaluate", *arguments, "--json"))
    for name, mean in expected.items():
        record = runs["runs"][name]["measures"]["nDCG@5"]
        assert record["mean"] == mean
        assert record["worth"] > record["human_queries"] == PEOPLE
    assert runs["machine"]["documents"] == PEOPLE * DOCUMENTS
    options = [word for name in expected for word in ("--run", f"{name}.run")]
    text = called(0, "compare", "people.qrels", *options, "--measure", "nDCG@5", "--machine", "machine.qrels")
    assert "as good as" in text
    assert all(f"{mean:.4f}" in text for mean in expected.values())
    assert er.compare_runs(er.read("people.qrels"), ["good.run"], machine=er.read("machine.qrels")).datasets[0].machine is not None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p, m, s: (p, m.take_queries(np.arange(PEOPLE, QUERIES)), s), "none of the queries"),
        (lambda p, m, s: (p, m.take_queries(np.arange(5, QUERIES)), s), "has not graded 5 of the 30 queries"),
        (lambda p, m, s: (p, m.take_queries(np.arange(PEOPLE)), s), "no query beyond"),
        (lambda p, m, s: (p.take_queries([0]), m, s), "1 queries are graded by people"),
        (lambda p, m, s: (p, m.take_queries(np.arange(PEOPLE + 1)), s), "1 queries are graded by the machine"),
        (lambda p, m, s: (p, m, {"good": s["good"]}), "no ranking called 'fair'"),
        (lambda p, m, s: (p, "grades", s), "machine"),
    ],
)
def test_what_cannot_be_corrected_is_refused(judgments, change, message):
    human, machine, rankings = change(*judgments)
    own = {name: values[: human.n_documents] for name, values in judgments[2].items()}
    rows = machine.n_documents if isinstance(machine, er.RankingData) else 1
    with pytest.raises(ExactRankError, match=message):
        er.compare_runs(human, own, machine=(machine, {name: values[:rows] for name, values in rankings.items()}))


def test_scores_of_the_human_rows_alone_rank_nothing_for_the_machine(judgments):
    people, machine, scores = judgments
    with pytest.raises(DataError, match="rows of data alone"):
        er.compare_runs(people, {"good": scores["good"][: people.n_documents]}, machine=machine)


def test_contradictory_grades_and_constant_judges(files):
    with open("machine.qrels", "a") as file:
        file.write("0 0 d1 4\n")
    assert "already has document 'd1'" in called(2, "evaluate", "people.qrels", "good.run", "fair.run", "--machine", "machine.qrels")
    constant = "".join(f"{q} 0 d{d} 1\n" for q in range(QUERIES) for d in range(DOCUMENTS))
    (files / "machine.qrels").write_text(constant)
    text = called(0, "evaluate", "people.qrels", "good.run", "fair.run", "--machine", "machine.qrels")
    assert f"as good as {PEOPLE} queries" in text


def test_queries_that_a_measure_skips_leave_no_mean():
    nothing = {"a": np.full(3, math.nan)}
    values = MachineValues(nothing, {"a": np.full(9, math.nan)}, np.ones(9))
    assert values.mean(nothing, np.ones(3), "a") is None


# ---- methods


@pytest.fixture(scope="module")
def learnable():
    """Grades of people of 24 queries, and of a machine of 60, that a feature predicts."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60 * DOCUMENTS, 2))
    truth = np.digitize(X[:, 0] + rng.normal(size=len(X)), [0, 1, 2])
    data = er.RankingData.from_arrays(X, truth, qid=np.repeat(np.arange(60), DOCUMENTS), feature_names=["good", "noise"])
    return data.take_queries(np.arange(24)), replace(data, y=np.clip(truth + (rng.random(len(X)) < 0.3), 0, 4).astype(float))


def test_models_of_all_divisions_rank_the_further_queries(learnable, tmp_path):
    people, machine = learnable
    comparison = er.compare(people, ["ridge", "mart(trees=2)"], ["nDCG@5"], folds=3, machine=machine, out=tmp_path, workers=1)
    assert not any(fit.failed for fit in comparison.fits)
    (data,) = comparison.datasets
    assert data.machine.further_qid == tuple(map(str, range(24, 60)))
    further, shared, human = [], [], []
    for fold in data.folds:
        (fit,) = (fit for fit in comparison.fits if (fit.fold, fit.method) == (fold.name, "ridge"))
        (model,) = {path for path in (tmp_path / "models").glob(f"data.{fold.name}.*") if "mart" not in path.name} or [None]
        values = er.evaluate(machine, er.load(model), "nDCG@5")["nDCG@5"].values
        tested = [int(qid) for qid in fold.test_qid]
        assert fit.machine["nDCG@5"] == (*values[tested], *values[24:])
        further.append(len(tested) / 24 * values[24:])
        shared += values[tested].tolist()
        human += fit.test["nDCG@5"]
    human, shared, further = np.array(human), np.array(shared), np.sum(further, axis=0)
    mean, _ = slow_mean(human, shared, further, slow_share(human, shared, further))
    (ridge, _) = standings(comparison, "data", "nDCG@5")
    assert ridge.mean == pytest.approx(mean)
    assert "36 further queries" in str(comparison)


def test_queries_that_a_division_trains_on_are_no_further_queries(learnable, tmp_path):
    _, machine = learnable
    parts = [machine.take_queries(np.arange(first, first + 12)) for first in (0, 12, 24)]
    comparison = er.compare(Fold("given", *parts), ["ridge"], ["nDCG@5"], machine=machine, workers=1)
    assert comparison.datasets[0].machine.further_qid == tuple(map(str, range(36, 60)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda people, machine: ({"a": people, "b": people}, machine), "one data set, and there are 2"),
        (lambda people, machine: (people, machine.take_queries(np.arange(24, 60))), "none of the queries"),
        (lambda people, machine: (people, machine.take_queries(np.arange(24))), "0 queries are graded by the machine alone"),
        (lambda people, machine: (people, replace(machine, feature_names=("good", "other"))), "other features"),
        (lambda people, machine: (people, [1, 2]), "machine"),
    ],
)
def test_a_machine_that_cannot_serve_is_refused_before_any_fit(learnable, change, message):
    data, machine = change(*learnable)
    with pytest.raises(ExactRankError, match=message):
        er.compare(data, ["ridge"], folds=3, machine=machine)


def test_scores_without_a_model_rank_nothing_for_the_machine(learnable, tmp_path):
    people, machine = learnable
    (tmp_path / "a.txt").write_text("1\n" * people.n_documents)
    comparison = er.compare(people, ["ridge", ScoresFile("file", str(tmp_path / "a.txt"))], folds=3, machine=machine, workers=1)
    assert {fit.method for fit in comparison.fits if fit.failed} == {"file"}
    assert "compare runs of all documents" in next(fit.failed for fit in comparison.fits if fit.failed)
