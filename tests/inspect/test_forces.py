"""Which lambda functions have a potential: those that are known to, those that are known not to, and brute force."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from typer.testing import CliRunner

import exactrank as er
from exactrank import _core
from exactrank.cli import app
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.inspect.circulation import OTHER_PIECES, Triangle, circulation
from exactrank.inspect.force_field import ForceField, Jacobian, jacobian, numerical_jacobian, pair_jacobian
from exactrank.inspect.forces import LOOPS, MOST_DOCUMENTS, forces
from exactrank.learning.objectives.lambdas import FiniteDifference, Lambdas
from exactrank.learning.objectives.losses import ListMLELoss
from exactrank.learning.objectives.own_lambdas import DocumentForces, PairForces
from tests.strategies import GRADES, MEASURES

NDCG = er.measures.NDCG()
LINKS = st.sampled_from(["logistic", "step", "spring"])
MARGINS = st.sampled_from([0.0, 0.3, 1.0])
SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def places(draw, least=2, most=7):
    """(y, s): grades, and scores without ties, in no order."""
    y = np.array(draw(st.lists(GRADES, min_size=least, max_size=most)))
    return y, np.random.default_rng(draw(SEEDS)).normal(size=len(y))


def judged(seed=0, queries=4, documents=6, grades=4):
    """Queries of several grades."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([rng.permutation(np.arange(documents) % grades) for _ in range(queries)])
    return er.RankingData.from_arrays(rng.normal(size=(len(y), 2)), y, group=[documents] * queries)


def settled(field, s):
    """Is no score so near a jump that differences would be taken in steps of rounding?"""
    return field.distance_to_jump(s).min() > 1e-6


# ---- the Jacobian


@given(places(), st.one_of(st.none(), MEASURES), LINKS, MARGINS, st.sampled_from([None, 1, 2]), st.sampled_from([None, 1, 3]))
@settings(max_examples=50)
def test_the_exact_jacobian_equals_finite_differences(place, measure, link, margin, neighbors, truncation):
    (y, s), objective = place, Lambdas(measure, link, margin, neighbors, truncation)
    field = ForceField(objective, y)
    assume(settled(field, s))
    ours, theirs = pair_jacobian(objective, y, s), numerical_jacobian(field, s)
    assert ours == pytest.approx(theirs.matrix, rel=1e-5, abs=1e-6 * max(1.0, np.abs(ours).max()))


@given(places(), st.one_of(st.none(), MEASURES), LINKS)
@settings(max_examples=60)
def test_the_jacobian_of_pairs_is_that_of_springs(place, measure, link):
    """Symmetric, without a change where all scores move together, and never positive."""
    (y, s), objective = place, Lambdas(measure, link)
    result = jacobian(ForceField(objective, y), s)
    assert result.error is None
    assert result.asymmetry.value == 0
    assert result.concavity.value < 1e-12
    assert np.abs(result.matrix.sum(axis=1)).max() <= 1e-12 * max(1.0, np.abs(result.matrix).max())


def test_steps_are_too_short_for_a_change_of_order():
    """Two documents 1e-7 apart: a step of the usual length would cross, and see the jump."""
    y, s = np.array([2.0, 0.0, 1.0]), np.array([0.0, 1e-7, 0.5])
    result = numerical_jacobian(ForceField(Lambdas(NDCG), y), s)
    assert result.matrix == pytest.approx(pair_jacobian(Lambdas(NDCG), y, s), abs=1e-6)
    assert result.asymmetry.nil


def test_a_jump_that_nobody_knows_of_is_seen_as_an_error():
    y, s = np.array([1.0, 0.0]), np.array([0.5 + 2e-5, 0.0])
    for pulls in (lambda pairs: pairs.lead < 0.5, lambda pairs: pairs.lead > 0.5):
        field = ForceField(PairForces(pulls, NDCG), y)
        beside, on = numerical_jacobian(field, s), numerical_jacobian(field, np.array([0.5, 0.0]))
        assert (beside.concavity.nil, on.concavity.nil) == (True, None)  # shorter steps do not reach it; all reach this


def test_an_error_beside_nothing_tells_nothing():
    assert Jacobian(np.zeros((2, 2)), np.ones((2, 2)), 0.0).asymmetry.nil is None
    assert Jacobian(np.zeros((2, 2)), None, 0.0).asymmetry.nil is True


@pytest.mark.parametrize("objective", [Lambdas(NDCG, near=0.5), Lambdas(NDCG, normalize=True)])
def test_weights_that_change_with_the_scores_are_differentiated(objective):
    """The closed form takes weights for constant while the order stays; near and normalize change them."""
    y, s = np.array([2.0, 0.0, 1.0, 0.0]), np.array([0.1, 1.3, -0.4, 0.7])
    field = ForceField(objective, y)
    result, step = jacobian(field, s), 1e-5 * np.eye(4)
    theirs = ((field(s + step) - field(s - step)) / 2e-5).T
    assert result.error is not None
    assert result.matrix == pytest.approx(theirs, abs=1e-6)
    assert not forces(judged(), objective, queries=1).exact


# ---- the diagonal term of section 4


@given(places(), st.one_of(st.none(), MEASURES), LINKS, st.sampled_from([0.1, 2.0]))
@settings(max_examples=40)
def test_the_diagonal_term_adds_to_the_diagonal_alone(place, measure, link, strength):
    (y, s), plain = place, Lambdas(measure, link)
    drawn = replace(plain, score_l2=strength)
    forces_of = [ForceField(objective, y)(s[None, :])[0] for objective in (plain, drawn)]
    assert forces_of[1] == pytest.approx(forces_of[0] - strength * s, rel=1e-12, abs=1e-12)
    added = pair_jacobian(drawn, y, s) - pair_jacobian(plain, y, s)
    assert added == pytest.approx(-strength * np.eye(len(y)), abs=1e-12)


@pytest.mark.parametrize("force", [lambda pairs: 10 + np.tanh(pairs.lead), lambda pairs: 1 / (1 + pairs.lead**2)])
def test_the_diagonal_term_makes_a_cost_convex(force):
    """By Gershgorin a strength of 2 (n - 1) max |force'| is enough."""
    results = {strength: forces(judged(), PairForces(force, NDCG, score_l2=strength), queries=2) for strength in (0.0, 0.01, 10.0)}
    assert [results[strength].convex for strength in results] == [False, False, True]
    assert [each.potential for each in results.values()] == [True] * 3
    assert [each.sums_to_zero for each in results.values()] == [True, False, False]


def test_the_diagonal_term_gives_no_potential_to_forces_without_one():
    """It is the slope of a cost itself, so what work it leaves over is nothing."""
    result = forces(judged(documents=8), Lambdas(NDCG, score_l2=100.0))
    assert (result.symmetric, result.nil("concavity"), result.conservative, result.convex) == (True, True, False, False)


# ---- work around closed paths


@given(places(least=3), st.one_of(st.none(), MEASURES), LINKS, SEEDS)
@settings(max_examples=20)
def test_work_equals_a_slow_sum(place, measure, link, seed):
    y, s = place
    field = ForceField(Lambdas(measure, link), y)
    triangle = Triangle.around(s, np.random.default_rng(seed))
    ours, shares = triangle.integral(field), (np.arange(1500) + 0.5) / 1500
    work = force = 0.0
    for i in range(3):
        p, way = triangle.corners[i], triangle.corners[(i + 1) % 3] - triangle.corners[i]
        there = field(p + shares[:, None] * way)
        work += float(np.mean(there @ way))
        force += float(np.mean(np.linalg.norm(there[:, triangle.moving], axis=1)) * np.linalg.norm(way))
    size = max(force, 1e-12)
    assert ours.work / size == pytest.approx(work / size, abs=0.01)
    assert ours.force / size == pytest.approx(force / size, abs=0.01)


@given(places(), LINKS, MARGINS, SEEDS)
@settings(max_examples=40)
def test_unit_weights_do_no_work_and_other_pieces_agree(place, link, margin, seed):
    y, s = place
    field = ForceField(Lambdas(None, link, margin), y)
    triangle = Triangle.around(s, np.random.default_rng(seed))
    result, again = triangle.integral(field), triangle.integral(field, OTHER_PIECES)
    assert abs(result.work) <= 1e-7 * result.force + 1e-12
    assert result.force == pytest.approx(again.force, rel=1e-6, abs=1e-12)
    assert triangle.rise(field) <= 1e-9


class HiddenStep:
    """Two documents with a constant force until the lead is 0.5, which the field does not say."""

    knows_all_jumps = False
    jumps = (0.0,)

    def __call__(self, scores):
        pull = (scores[:, 0] - scores[:, 1] < 0.5).astype(float)
        return np.column_stack([pull, -pull])


def test_a_jump_that_nobody_knows_of_is_no_work():
    """It may lie so near the end of a piece that both quadratures miss it, and agree."""
    results = [circulation(HiddenStep(), np.array([0.3, -0.2]), 3, np.random.default_rng(seed)).work.nil for seed in range(150)]
    assert set(results) <= {True, None}


# ---- known lambda functions


@given(SEEDS, LINKS, st.sampled_from([0.3, 1.0]), st.integers(2, 4))
@settings(max_examples=15, deadline=None)
def test_unit_weights_have_a_convex_potential(seed, link, margin, grades):
    result = forces(judged(seed, grades=grades), Lambdas(None, link, margin), seed=seed % 100)
    assert (result.sums_to_zero, result.symmetric, result.conservative, result.potential, result.convex) == (True,) * 5
    assert result.exact
    assert "A potential exists, convex" in result.verdict


@pytest.mark.parametrize("link", ["logistic", "step", "spring"])
@pytest.mark.parametrize("measure", ["nDCG", "nDCG@3", "AP(rel=2)", "ERR"])
def test_weights_of_a_measure_have_no_potential(measure, link):
    result = forces(judged(documents=8), Lambdas(er.parse_measure(measure), link))
    assert (result.sums_to_zero, result.symmetric, result.nil("concavity")) == (True, True, True)
    assert (result.conservative, result.potential, result.convex) == (False, False, False)
    assert result.worst("circulation").circulation.value > 0.01
    assert "while the order of the documents stays the Jacobian is symmetric, but around closed paths" in result.verdict


def test_pairs_chosen_by_rank_have_no_potential():
    for limited in (Lambdas(neighbors=1), Lambdas(truncation=2)):
        result = forces(judged(), limited)
        assert (result.symmetric, result.conservative) == (True, False)


def test_two_documents_always_have_a_potential():
    """A pair's weight does not change when the two exchange ranks: it takes a third document for that."""
    result = forces(judged(documents=2, grades=2), Lambdas(NDCG))
    assert (result.potential, result.convex) == (True, True)


def test_finite_differences_are_constant_within_an_order_and_have_no_potential():
    result = forces(judged(), FiniteDifference(NDCG))
    assert (result.exact, result.sums_to_zero, result.symmetric, result.conservative) == (False, True, True, False)
    assert result.worst("asymmetry").asymmetry.value == 0


@given(SEEDS)
@settings(max_examples=10, deadline=None)
def test_a_likelihood_has_a_convex_potential_whatever_it_draws(seed):
    """ListMLE orders documents of one grade at random, which must be the same all along a path."""
    result = forces(judged(seed), ListMLELoss(), queries=2)
    assert (result.exact, result.sums_to_zero, result.potential, result.convex) == (False, True, True, True)


# ---- lambda functions of one's own


def test_own_springs_have_a_convex_potential():
    result = forces(judged(), PairForces(lambda pairs: np.maximum(0, 1 - pairs.lead) ** 2, NDCG), queries=2)
    assert (result.exact, result.potential, result.convex) == (False, True, True)


def test_own_lambdas_that_are_not_symmetric_are_caught():
    def chased(query):
        """Each document follows the one above it, which does not care."""
        force = np.roll(query.s, 1) * query.y
        return force - force.mean()

    result = forces(judged(), DocumentForces(chased, NDCG), queries=2)
    assert (result.sums_to_zero, result.symmetric, result.potential, result.convex) == (True, False, False, False)
    assert result.worst("asymmetry").asymmetry.value > 0.1
    assert "the Jacobian is not symmetric" in result.verdict


@pytest.mark.parametrize(
    ("force", "semidefinite"),
    [
        (lambda pairs: np.exp(pairs.lead), False),
        (lambda pairs: 10 + np.tanh(pairs.lead), False),
        (lambda pairs: pairs.lead > 0, True),  # constant in each order: only a change of order shows it
    ],
)
def test_forces_that_grow_with_the_lead_have_a_potential_that_is_not_convex(force, semidefinite):
    result = forces(judged(), PairForces(force, NDCG), queries=2)
    assert (result.potential, result.convex) == (True, False)
    assert (result.nil("concavity"), result.nil("rise")) == (semidefinite, False)
    assert "A potential exists, not convex" in result.verdict


def test_where_jumps_are_unknown_it_cannot_be_told():
    result = forces(judged(), PairForces(lambda pairs: pairs.lead < 0.5, NDCG), queries=2)
    assert (result.conservative, result.potential) == (None, None)
    assert "cannot be decided" in result.verdict
    assert forces(judged(), Lambdas(None, "step", 0.5), queries=2).potential is True


@dataclass(frozen=True)
class Lifted:
    """All documents are pushed up."""

    def on(self, data):
        def answer(number, scores):
            return 0.0, np.ones(len(scores)), np.zeros(len(scores))

        return _core.called(answer)


def test_forces_that_do_not_sum_to_zero_are_caught():
    result = forces(judged(), Lifted(), queries=2)
    assert result.sums_to_zero is False
    assert result.worst("imbalance").imbalance.value == 1.0
    assert "do not sum to zero: they sum to up to 1 of their size" in result.verdict


# ---- which queries, and where


def test_which_queries_are_looked_at():
    sizes = [3, 3, 3, 3, 3, MOST_DOCUMENTS + 1]
    y = np.concatenate([np.arange(size) % 3 for size in sizes])
    y[:3] = 1  # the first query has one grade
    data = er.RankingData.from_arrays(None, y, qid=np.repeat(["a", "b", "c", "d", "e", "f"], sizes))
    scores = np.random.default_rng(0).normal(size=len(y))
    scores[3] = scores[4]  # the second ties
    result = forces(data, Lambdas(), scores, queries=2)
    assert result.left_out == {"one grade": 1, "scores where forces jump": 1, f"more than {MOST_DOCUMENTS} documents": 1, "not needed": 1}
    assert len(result.per_query) == 2
    assert {query.query for query in result.per_query} < {"c", "d", "e"}
    assert result.loops == 2 * LOOPS
    both = {query.query for seed in range(8) for query in forces(data, Lambdas(), scores, queries=2, seed=seed).per_query}
    assert both == {"c", "d", "e"}


def test_scores_are_in_the_order_of_the_rows():
    data, scores = judged(), np.random.default_rng(0).normal(size=24)
    mixed = np.argsort(np.tile(np.arange(6), 4), kind="stable")  # the first documents of all queries, then the second ...
    interleaved = er.RankingData.from_arrays(None, data.y[mixed], qid=np.repeat(data.qid, 6)[mixed])
    ours, theirs = forces(interleaved, Lambdas(NDCG), scores[mixed]), forces(data, Lambdas(NDCG), scores)
    assert ours.per_query == theirs.per_query
    assert ours.per_query != forces(interleaved, Lambdas(NDCG), scores).per_query


def test_seed_and_threads():
    data = judged(queries=8)
    first = forces(data, Lambdas(NDCG), queries=3, threads=1)
    assert first == forces(data, Lambdas(NDCG), queries=3, threads=2)
    assert first.per_query != forces(data, Lambdas(NDCG), queries=3, seed=1).per_query
    scores = np.random.default_rng(0).normal(size=48)
    here, there = (forces(data, Lambdas(NDCG), scores, seed=seed).per_query for seed in (0, 1))
    assert [query.concavity for query in here] == [query.concavity for query in there]
    assert [query.circulation for query in here] != [query.circulation for query in there]
    weighted = replace(data, query_weight=np.arange(1.0, 9.0))
    assert first.per_query == forces(weighted, Lambdas(NDCG), queries=3).per_query


def test_what_is_refused():
    data = judged()
    with pytest.raises(IncompatibleError, match="'nDCG' is not a lambda function"):
        forces(data, "nDCG")
    with pytest.raises(SettingError, match="queries must be at least 1, got 0"):
        forces(data, Lambdas(), queries=0)
    with pytest.raises(DataError, match="one number per row"):
        forces(data, Lambdas(), np.zeros(3))
    with pytest.raises(DataError, match="finite scores"):
        forces(data, Lambdas(), np.append(np.arange(23.0), -np.inf))
    with pytest.raises(DataError, match="4 with scores where forces jump; give other data, or scores=None"):
        forces(data, Lambdas(), np.zeros(24))
    with pytest.raises(DataError, match="no force acts on any document of the 4 queries"):
        forces(data, Lambdas(er.parse_measure("AP(rel=9)")))
    with pytest.raises(DataError, match="sum to"):
        forces(data, DocumentForces(lambda query: query.y, NDCG))


def test_json_has_everything():
    result = forces(judged(), Lambdas(NDCG))
    plain = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert plain["jacobian"] == "exact"
    assert plain["lambdas"] == repr(Lambdas(NDCG))
    assert (plain["potential"], plain["symmetric"], plain["verdict"]) == (False, True, result.verdict)
    assert [q["circulation"]["value"] for q in plain["per_query"]] == [q.circulation.value for q in result.per_query]
    assert repr(result) == f"Forces({result.verdict!r})"


# ---- the command


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Runs ``exactrank inspect forces`` beside data and a model."""
    monkeypatch.chdir(tmp_path)
    er.write(judged(documents=5), "data.txt")
    (tmp_path / "model.json").write_text('{"1": 1, "2": -0.5}')

    def run(*words):
        result = CliRunner().invoke(app, ["inspect", "forces", *words], env={"COLUMNS": "200"})
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    return run


@pytest.mark.parametrize(
    ("words", "objective"),
    [
        (("-m", "none"), Lambdas()),
        (("--measure", "nDCG@2", "--lambdas", "spring", "--margin", "0.5"), Lambdas(er.measures.NDCG(k=2), "spring", 0.5)),
        (("--neighbors", "1", "--truncation", "2"), Lambdas(NDCG, neighbors=1, truncation=2)),
        (("-m", "AP", "--lambdas", "finite-difference", "--margin", "0.2"), FiniteDifference(er.measures.AP(), 0.2)),
    ],
)
def test_command_prints_what_the_library_finds(command, words, objective):
    result = command("data.txt", *words, "--model", "model.json", "--queries", "2", "--seed", "3", "--json", "--threads", "1")
    assert result.exit_code == 0
    data = er.read("data.txt")
    theirs = forces(data, objective, er.load("model.json").predict(data), queries=2, seed=3)
    assert json.loads(result.stdout) == json.loads(json.dumps(theirs.to_json()))


def test_command_for_people(command):
    ranknet, lambdarank = command("data.txt", "--measure", "none"), command("data.txt", "--queries", "3")
    assert (ranknet.exit_code, lambdarank.exit_code) == (0, 0)
    assert "A potential exists, convex" in ranknet.stdout
    assert "There is no potential" in lambdarank.stdout
    assert "3 queries, 15 closed paths, differentiated exactly; left out: 1 (not needed)" in lambdarank.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("data.txt", "--lambdas", "magnetic"), "magnetic"),
        (("data.txt", "--measure", "nonsense"), "nonsense"),
        (("data.txt", "--lambdas", "step", "--margin", "-1"), "margin must be a number of at least 0"),
        (("data.txt", "--lambdas", "finite-difference", "-m", "none"), "it needs a --measure"),
        (("data.txt", "--lambdas", "finite-difference", "--neighbors", "1"), "neither --neighbors nor --truncation"),
        (("data.txt", "--queries", "0"), "--queries"),
        (("nowhere.txt",), "nowhere.txt does not exist"),
        (("data.txt", "--model", "nowhere.json"), "nowhere.json does not exist"),
        (("data.txt", "--model", "model.json", "--features", "3"), "it has besides 3"),
    ],
)
def test_command_with_bad_input(command, words, message):
    result = command(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
