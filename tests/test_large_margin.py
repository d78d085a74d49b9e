"""Large-margin rankers: what they solve, what the data chooses for them, and what they say when the bound is of no use."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import exactrank as xr
from exactrank.objectives.measured import Measured
from exactrank.objectives.pair_hinge import PairHinge
from exactrank.objectives.regularised_risk import RegularisedRisk
from exactrank.objectives.structured import Structured
from exactrank.optimizers.lbfgs import LBFGS
from exactrank.optimizers.strongly_convex import StronglyConvex
from exactrank.rankers.by_folds import by_folds
from exactrank.scorers.architecture import LinearModel
from exactrank.training import Trained, train

from .test_rankers import judged, rows

SOLVERS = ("cutting_plane", "bundle", "subgradient", "conjugate")
RNG = np.random.default_rng
SEVERE = "nDCG(ties='pessimistic')@5"


def long_lists(queries=30, documents=60, features=5, seed=0):
    """A few good documents, which come first, and many bad ones, some of which look better: no perfect ranking is in reach."""
    rng = RNG(seed)
    X = rng.standard_normal((queries * documents, features))
    y = np.tile(np.arange(documents) < 3, queries).astype(int)
    X[:, 0] += 1.5 * y
    return xr.RankingData.from_arrays(X, y, group=[documents] * queries)


def primal(ranker):
    return ranker.history_[-1].duality.primal


# ---- what is solved


@pytest.mark.parametrize("measure", ["nDCG@3", "AP", "RR", "P@2"])
def test_all_solvers_find_the_optimum(measure):
    data = judged(queries=20, noise=0.3)
    found = {
        solver: xr.StructuredRank(measure, lam=0.5, bound="convex", solver=solver, tolerance=2e-5, max_passes=20_000) for solver in SOLVERS
    }
    values = {solver: primal(ranker.fit(data)) for solver, ranker in found.items()}
    for solver, ranker in found.items():
        assert ranker.history_[-1].duality.gap <= 2e-5, solver
        np.testing.assert_allclose(values[solver], values["cutting_plane"], rtol=1e-4)


@given(seed=st.integers(0, 100), solver=st.sampled_from(SOLVERS))
@settings(max_examples=8)
def test_the_dual_never_passes_the_primal_and_the_slack_bounds_the_loss(seed, solver):
    data = judged(queries=10, seed=seed)
    ranker = xr.StructuredRank("nDCG@3", lam=0.1, bound="convex", solver=solver, max_passes=30).fit(data)
    duals = [progress.duality.dual for progress in ranker.history_]
    primals = [progress.duality.primal for progress in ranker.history_]
    assert max(duals) <= min(primals) + 1e-12
    best = xr.evaluate("nDCG@3", data, data.y).means["nDCG@3"]
    assert primals[-1] >= best - ranker.score(data) - 1e-12


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("normalise", ["query", "pairs"])
def test_ranksvm_is_solved_to_its_gap(loss, normalise):
    data = judged(queries=15)
    ranker = xr.RankSVM("nDCG@3", lam=0.05, loss=loss, normalise=normalise, tolerance=1e-4).fit(data)
    architecture = LinearModel().on(data)
    problem = RegularisedRisk.of(PairHinge(loss, normalise), architecture, data, 0.05)
    theta = architecture.theta_of(ranker.weights_)
    assert ranker.history_[-1].duality.gap <= 1e-4
    np.testing.assert_allclose(-problem.value_and_slope(theta)[0], primal(ranker), rtol=1e-9)
    if loss == "squared_hinge":
        best = train(LBFGS(tolerance=1e-14), problem, problem.centre, rng=RNG(0), max_steps=500).value
        assert 0 <= primal(ranker) + best <= 1e-4 * primal(ranker)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_ramp_never_ends_above_regression(solver):
    data = long_lists()
    ranker = xr.StructuredRank("nDCG@5", lam=0.01, bound="ramp", solver=solver).fit(data)
    architecture = LinearModel().on(data)
    loss = Structured(xr.parse_measure("nDCG@5"), bound="ramp")
    problem = ranker._problem(loss, architecture, data).at(0.01)
    start, end = (-problem.value_and_slope(theta)[0] for theta in (problem.centre, architecture.theta_of(ranker.weights_)))
    assert end < start
    assert ranker.score(data) > 0.9 * xr.Ridge("nDCG@5").fit(data).score(data)


def test_a_network_learns_what_no_linear_model_can():
    X, _, qid = rows(queries=80)
    y = np.digitize(np.abs(X[:, 0]), [0.7, 1.4])
    data = xr.RankingData.from_arrays(X, y, qid=qid)
    linear, network = (
        xr.StructuredRank("nDCG@5", lam=1e-4, bound="convex", solver="subgradient", hidden=h, max_passes=100) for h in (None, 6)
    )
    with pytest.warns(ConvergenceWarning, match="best weights for the convex bound are 0"):
        linear.fit(data)
    assert network.fit(data).score(data) > linear.score(data) + 0.1
    assert network.model_.scorer.kind == "network"


def test_more_than_the_longest_list_is_the_longest_list():
    data = judged()
    fitted = [xr.StructuredRank(f"nDCG@{k}", lam=0.1, bound="convex").fit(data).weights_ for k in (8, 1000)]
    assert np.array_equal(*fitted)


# ---- what the data chooses


def test_folds_choose_a_strength_and_the_model_is_the_one_of_that_strength():
    data = judged(queries=30)
    auto = xr.RankSVM("nDCG@3").fit(data)
    assert set(auto.model_.training["chosen"]) == {"lam"}
    by_hand = xr.RankSVM("nDCG@3", lam=auto.model_.training["chosen"]["lam"]).fit(data)
    assert np.array_equal(auto.weights_, by_hand.weights_)
    assert "chosen" not in by_hand.model_.training


def test_validation_data_chooses_all_that_is_left_open():
    data, valid = judged(queries=30), judged(queries=30, seed=1)
    ranker = xr.StructuredRank("nDCG@3", A="auto", bound="auto").fit(data, valid=valid)
    chosen = ranker.model_.training["chosen"]
    assert (set(chosen), chosen["A"] in ("linear", "sqrt", "discount"), chosen["bound"] in ("convex", "ramp")) == (
        {"lam", "A", "bound"},
        True,
        True,
    )
    rivals = [xr.StructuredRank("nDCG@3", A=A, bound=bound) for A in ("linear", "sqrt", "discount") for bound in ("convex", "ramp")]
    assert ranker.score(valid) == max(rival.fit(data, valid=valid).score(valid) for rival in rivals)
    assert ranker.score(valid) == max(progress.valid for progress in ranker.history_)


def test_a_table_may_be_given():
    data = judged()
    by_name, by_table = (xr.StructuredRank("nDCG@3", lam=0.1, A=A, bound="convex").fit(data) for A in ("linear", [3, 2, 1]))
    assert np.array_equal(by_name.weights_, by_table.weights_)


class Guess:
    """Three candidates, of which the second ranks every query well, whatever they were trained on."""

    def __init__(self, stop_at=None):
        self.data = xr.RankingData.from_arrays(np.eye(2)[np.arange(40) % 2], np.arange(40) % 2, group=[2] * 20)
        self.measured = Measured(xr.parse_measure("nDCG@1").on(self.data), LinearModel().on(self.data))
        self.seen = []
        self.stop_at = stop_at

    def __call__(self, data):
        self.seen.append(data.query_weight)
        for number, theta in enumerate([[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]]):
            if (len(self.seen), number) == self.stop_at:
                raise KeyboardInterrupt
            yield np.array(theta)


def test_folds_hold_out_each_query_once_and_choose_the_best():
    guess, heard = Guess(), []
    assert by_folds(guess, 3, guess.measured, 5, 0, heard.append) == 1
    assert np.array_equal(sum(1 - seen for seen in guess.seen), np.ones(20))
    assert [(progress.step, progress.steps) for progress in heard] == [(step, 15) for step in range(1, 16)]
    assert [progress.value for progress in heard] == 5 * [0.0, 1.0, 0.0]
    assert all(progress.theta.tolist() == [-1.0, 1.0] for progress in heard[1:])


def test_a_single_query_of_weight_cannot_judge_and_the_first_is_taken():
    X, y, qid = rows(queries=2)
    ranker = xr.RankSVM("nDCG@3").fit(X, y, qid=qid, query_weight=[1.0, 0.0])
    alone = xr.RankSVM("nDCG@3", lam=ranker.model_.training["chosen"]["lam"]).fit(X, y, qid=qid, query_weight=[1.0, 0.0])
    assert np.array_equal(ranker.weights_, alone.weights_)


def test_an_interrupted_choice_keeps_the_best_model_so_far():
    guess = Guess(stop_at=(2, 2))
    found = by_folds(guess, 3, guess.measured, 5, 0, None)
    assert isinstance(found, Trained)
    assert (found.interrupted, found.theta.tolist(), found.value) == (True, [-1.0, 1.0], 1.0)
    first = Guess(stop_at=(1, 0))
    with pytest.raises(KeyboardInterrupt):
        by_folds(first, 3, first.measured, 5, 0, None)


def test_ctrl_c_while_folds_choose_leaves_a_model():
    def stop(progress):
        if progress.step == 3:
            raise KeyboardInterrupt

    data = judged()
    ranker = xr.RankSVM("nDCG@3").fit(data, listener=stop)
    assert ranker.model_.training["interrupted"]
    assert ranker.model_.training["value"] == ranker.score(data)


class Stopped(xr.RankSVM):
    """Ctrl-C comes in the third problem that it solves, in the middle of a step."""

    def _optimizer(self, problem):
        solver, begun = StronglyConvex(), []

        class Solver:
            def init(self, problem, theta, rng):
                return solver.init(problem, theta, rng)

            def resumed(self, problem, state, rng):
                begun.append(problem)
                return solver.resumed(problem, state, rng)

            def step(self, problem, state):
                if len(begun) == 2:
                    raise KeyboardInterrupt
                return solver.step(problem, state)

        return Solver()


def test_ctrl_c_within_a_problem_ends_the_choice_too():
    data, heard = judged(), []
    ranker = Stopped("nDCG@3").fit(data, listener=heard.append)
    assert ranker.model_.training["interrupted"]
    assert len(heard) == len(ranker.history_) == 2
    assert ranker.score(data) == max(progress.value for progress in heard)


# ---- a bound that is of no use


def test_a_convex_bound_that_collapses_is_told_with_its_remedy():
    data = long_lists()
    with pytest.warns(ConvergenceWarning, match=r"best weights for the convex bound are 0.*bound=\"ramp\""):
        convex = xr.StructuredRank("nDCG@5", bound="convex").fit(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ramp = xr.StructuredRank("nDCG@5", bound="ramp").fit(data)
        chosen = xr.StructuredRank("nDCG@5", bound="auto").fit(data)
    on_others = {
        ranker: xr.evaluate(SEVERE, long_lists(seed=1), ranker.predict(long_lists(seed=1))).means[SEVERE] for ranker in (convex, ramp)
    }
    assert on_others[ramp] > on_others[convex]
    assert chosen.model_.training["chosen"]["bound"] == "ramp"


def test_a_convex_bound_that_is_of_use_is_not_told_to_be_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xr.StructuredRank("nDCG@3", bound="convex").fit(judged(queries=30))
        xr.StructuredRank("nDCG@3", bound="convex", lam=1e-3).fit(judged(queries=30))


# ---- bad settings


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"lam": 0.0}, xr.DataError, "lam must be a number above 0"),
        ({"lam": -1.0}, xr.DataError, "lam must be a number above 0"),
        ({"lam": float("nan")}, xr.DataError, "lam must be a number above 0"),
        ({"lam": "large"}, xr.DataError, "lam must be a number above 0"),
        ({"tolerance": 0.0}, xr.DataError, "tolerance"),
        ({"max_passes": 0}, xr.DataError, "max_passes must be at least 1"),
        ({"patience": 0}, xr.DataError, "patience must be at least 1"),
        ({"folds": 1}, xr.DataError, "folds must be at least 2"),
        ({"solver": "simplex"}, xr.DataError, "'cutting_plane', 'bundle', 'subgradient', 'conjugate'"),
        ({"bound": "tight"}, xr.DataError, "bound='tight' is not one of"),
        ({"slack": "loose"}, xr.DataError, "slack='loose' is not one of"),
        ({"A": "square"}, xr.DataError, "A='square'"),
        ({"A": [1, 2]}, xr.DataError, "A is 1 at rank 1 and 2 after it"),
        ({"measure": "ERR"}, xr.IncompatibleError, "use nDCG, DCG, P, R, RBP, AP without cutoff, RR or Success"),
        ({"measure": "AP@10"}, xr.IncompatibleError, "AP without cutoff"),
        ({"measure": "AP", "A": "sqrt"}, xr.IncompatibleError, "A belongs to positional measures"),
        ({"hidden": 3}, xr.IncompatibleError, 'solver="subgradient"'),
        ({"hidden": 3, "solver": "subgradient", "bound": "ramp"}, xr.IncompatibleError, 'bound="convex"'),
        ({"bound": "ramp", "slack": "rescaled"}, xr.IncompatibleError, "slack"),
    ],
)
def test_bad_settings_are_named(given, error, says):
    with pytest.raises(error, match=says):
        xr.StructuredRank(**({"bound": "convex"} | given)).fit(judged())
