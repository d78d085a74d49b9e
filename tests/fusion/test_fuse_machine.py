"""Weights that maximize a mean that a machine's grades correct: brute force, a machine without weight, commands, bad input."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank.cli import app
from exactrank.errors import ExactRankError
from exactrank.fusion.normalize import normalize_systems
from exactrank.measures.bound import mean_over_queries
from exactrank.measures.corrected_queries import STABLE, CorrectedQueries
from tests.reference.machine_grades import slow_mean, slow_share
from tests.reference.profile import crossings

PEOPLE, QUERIES, DOCUMENTS = 20, 80, 8


def judgments(seed=0, systems=2, people=PEOPLE):
    """Grades of people of the first queries, and of a machine that overrates of all, with scores of systems."""
    rng = np.random.default_rng(seed)
    truth = np.clip(np.round(rng.gamma(0.7, 1.0, QUERIES * DOCUMENTS)), 0, 4)
    X = np.stack([truth + rng.normal(0, noise, len(truth)) for noise in (2.0, 2.5, 3.0)[:systems]], axis=1)
    qid, docid = np.repeat(np.arange(QUERIES), DOCUMENTS), [f"d{i % DOCUMENTS}" for i in range(len(truth))]
    names = ["bm25", "dense", "sparse"][:systems]
    machine = er.RankingData.from_arrays(X, np.clip(truth + (rng.random(len(X)) < 0.3), 0, 4), qid=qid, docid=docid, feature_names=names)
    return replace(machine, y=truth).take_queries(np.arange(people)), machine


def slow_mean_at(people, machine, weights, share=None):
    """The corrected nDCG@5 of the weighted sum of normalized scores, and the machine weight."""
    values = []
    for data in (people, machine):
        scores, _ = normalize_systems(data.X, data.indptr, "min-max", "worst")
        values.append(er.evaluate(data, weights[0] * scores[0] + weights[1] * scores[1], "nDCG@5")["nDCG@5"].values)
    human, by_machine = values
    shared, further = by_machine[: people.n_queries], by_machine[people.n_queries :]
    best = slow_share(human, shared, further)
    return slow_mean(human, shared, further, best if share is None else share)[0], best


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_the_signed_mean_is_the_corrected_mean(seed, share):
    rng = np.random.default_rng(seed)
    people, machine = judgments(people=int(rng.integers(2, 20)))
    weigh = rng.random() < 0.5
    people = replace(people, query_weight=rng.integers(0, 3, people.n_queries) + 0.5) if weigh else people
    queries = CorrectedQueries.of(people, machine)
    assert (queries.data.n_queries, queries.further) == (QUERIES + people.n_queries, QUERIES - people.n_queries)
    values = rng.random(queries.data.n_queries)
    values[rng.random(len(values)) < 0.1] = np.nan
    n = queries.people
    if min(np.sum(~np.isnan(values[:n] + values[n : 2 * n])), np.sum(~np.isnan(values[2 * n :]))) < 2:
        return
    signed = queries.weights(share, queries.data.weights, np.isnan(values))
    ours = mean_over_queries(values, signed)
    assert ours == pytest.approx(queries.mean(values, queries.data.weights, share).mean)
    assert signed.sum() == pytest.approx(signed[:n].sum())
    np.testing.assert_array_equal(signed[n : 2 * n], -share * signed[:n])


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_brute_force_over_all_breakpoints(seed):
    people, machine = judgments(seed)
    fusion = er.fuse(people, machine=machine, measure="nDCG@5", bootstrap=0, folds=2)
    share = fusion.machine.machine_weight
    points = {0.0, 1.0}
    for data in (people, machine):
        scores, _ = normalize_systems(data.X, data.indptr, "min-max", "worst")
        for begin, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
            points |= crossings(scores[0][begin:end], (scores[1] - scores[0])[begin:end])
    points = np.array(sorted(point for point in points if 0 <= point <= 1))
    theirs = [slow_mean_at(people, machine, (1 - alpha, alpha), share)[0] for alpha in (points[1:] + points[:-1]) / 2]
    assert fusion.value == pytest.approx(max(theirs))
    value, best_share = slow_mean_at(people, machine, fusion.weights, share)
    assert fusion.value == pytest.approx(value)
    assert abs(best_share - share) < STABLE  # the machine weight is the best one at the optimum
    assert fusion.optimum == "global"


def test_held_out_values_are_corrected():
    people, machine = judgments(1)
    fusion = er.fuse(people, machine=machine, measure="nDCG@5", folds=4, bootstrap=20)
    assert fusion.cross_validated == pytest.approx(fusion.machine.mean)
    assert fusion.machine.human_queries == PEOPLE
    assert fusion.machine.worth > PEOPLE
    rows = {row.name: row for row in fusion.comparison}
    assert rows["tuned, held out"].interval == fusion.machine.interval
    mean, _ = slow_mean_at(people, machine, (1.0, 0.0), fusion.machine.machine_weight)
    assert rows["bm25"].mean == pytest.approx(mean)
    assert rows["bm25"].gain == pytest.approx(rows["tuned, held out"].mean - mean, abs=0.02)  # with a machine weight of its own
    assert all(low <= weight <= high for weight, (low, high) in zip(fusion.weights, fusion.bootstrap_interval, strict=True))


@pytest.mark.parametrize("systems", [2, 3])
def test_a_machine_without_weight_leaves_the_result_of_people_to_the_bit(systems):
    people, machine = judgments(2, systems)
    constant = replace(machine, y=np.ones(machine.n_documents))
    options = {"measure": "nDCG@5", "folds": 3, "bootstrap": 10}
    ours, theirs = er.fuse(people, machine=constant, **options), er.fuse(people, **options)
    assert ours.machine.machine_weight == 0
    assert "add nothing" in repr(ours)
    for field in fields(theirs):
        if field.name not in ("machine", "sweep"):
            assert getattr(ours, field.name) == getattr(theirs, field.name), field.name


def test_three_systems_and_all_normalizations():
    people, machine = judgments(3, 3)
    fusion = er.fuse(people, machine=machine, measure="nDCG@5", folds=3, bootstrap=5, normalize="all")
    assert fusion.optimum == "local"
    assert len(fusion.normalizations) > 5
    assert fusion.value >= fusion.comparison[0].mean
    engine = er.fuse(people, machine=machine, systems=["bm25", "dense"], engine="opensearch", folds=3, bootstrap=5)
    assert engine.machine.worth > PEOPLE


def test_a_file_keeps_the_correction(tmp_path):
    fusion = er.fuse(*judgments()[:1], machine=judgments()[1], folds=2, bootstrap=0)
    fusion.save(tmp_path / "fusion.json")
    assert er.load(tmp_path / "fusion.json").machine == fusion.machine
    assert "machine" not in er.fuse(judgments()[0], folds=2, bootstrap=0).to_json()


def test_the_command_gives_the_numbers_of_python(tmp_path, monkeypatch):
    people, machine = judgments()
    monkeypatch.chdir(tmp_path)
    for name, data in (("people", people), ("machine", machine)):
        rows = zip(np.repeat(data.qid, data.sizes).tolist(), data.docid.tolist(), data.y.tolist(), strict=True)
        (tmp_path / f"{name}.qrels").write_text("".join(f"{q} 0 {d} {grade:g}\n" for q, d, grade in rows))
    for j, name in enumerate(machine.feature_names):
        rows = zip(np.repeat(machine.qid, machine.sizes).tolist(), machine.docid.tolist(), machine.X[:, j].tolist(), strict=True)
        (tmp_path / f"{name}.run").write_text("".join(f"{q} Q0 {d} 1 {score!r} {name}\n" for q, d, score in rows))

    def called(code, *options):
        done = CliRunner().invoke(app, ["fuse", "people.qrels", "--run", "bm25.run", "--run", "dense.run", *options])
        assert done.exit_code == code, done.output
        return done.output

    expected = er.fuse(people, machine=machine, bootstrap=10)
    record = json.loads(called(0, "--machine", "machine.qrels", "--bootstrap", "10", "--json"))
    assert record["value"] == pytest.approx(expected.value)
    assert record["machine"]["machine_weight"] == pytest.approx(expected.machine.machine_weight)
    assert "as good as" in called(0, "--machine", "machine.qrels", "--bootstrap", "10")
    assert "no query beyond those of people" in called(2, "--machine", "people.qrels")
    with open("machine.qrels", "a") as file:
        file.write("0 0 d1 4\n")
    assert "d1" in called(2, "--machine", "machine.qrels")


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda p, m: (p, m.take_queries(np.arange(PEOPLE, QUERIES))), {}, "none of the queries"),
        (lambda p, m: (p, m.take_queries(np.arange(5, QUERIES))), {}, "has not graded 5 of the 20 queries"),
        (lambda p, m: (p, m.take_queries(np.arange(PEOPLE))), {}, "no query beyond"),
        (lambda p, m: (p, m.take_queries(np.arange(PEOPLE + 1))), {}, "1 queries are graded by the machine alone"),
        (lambda p, m: (p.take_queries([0]), m), {}, "1 queries are graded by people"),
        (lambda p, m: (p.take_queries([0, 1, 2]), m), {"folds": 5}, "3 queries cannot form 5 folds"),
        (lambda p, m: (p, replace(m, feature_names=("bm25", "other"))), {}, "'dense'"),
        (lambda p, m: (p, m), {"measure": "nDCG@5 subject to R@5 >= 0.1"}, "would not be"),
        (lambda p, m: (p, m), {"by": {}}, "leave out machine, or by"),
        (lambda p, m: (p, "grades"), {}, "machine"),
    ],
)
def test_what_cannot_be_corrected_is_refused(change, options, message):
    people, machine = change(*judgments())
    with pytest.raises(ExactRankError, match=message):
        er.fuse(people, machine=machine, **options)
