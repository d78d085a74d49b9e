"""Large-margin rankers: what they solve, what the data chooses for them, and what they say when the bound is of no use."""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import ClassVar
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import exactrank as er
from exactrank.errors import SettingError
from exactrank.learning.objectives.losses import PairHinge
from exactrank.learning.objectives.regularized_risk import RegularizedRisk
from exactrank.learning.objectives.structured import Structured
from exactrank.learning.optimizers.slopes import LBFGS
from exactrank.learning.training.combinators import cross_validate
from exactrank.learning.training.judge import Judge, Task
from exactrank.learning.training.progress import Trained, Verdict
from exactrank.learning.training.run import RootRecorder, Run
from exactrank.learning.training.selection import average, choose
from exactrank.models.architecture import LinearModel
from exactrank.models.linear import Linear
from exactrank.rankers import RANKERS
from exactrank.rankers.structuredrank import POWERS
from tests.killed import assert_resumed, killed, unbroken
from tests.learning.optimizers.convex_problems import states
from tests.rankers.test_rankers import judged, rows

SOLVERS = ("cutting-plane", "bundle", "subgradient", "conjugate")
RNG = np.random.default_rng
SEVERE = "nDCG(ties='pessimistic')@5"


def long_lists(queries=30, documents=60, features=5, seed=0):
    """A few good documents, which come first, and many bad ones, some of which look better: no perfect ranking is in reach."""
    rng = RNG(seed)
    X = rng.standard_normal((queries * documents, features))
    y = np.tile(np.arange(documents) < 3, queries).astype(int)
    X[:, 0] += 1.5 * y
    return er.RankingData.from_arrays(X, y, group=[documents] * queries)


def primal(ranker):
    return ranker.history_[-1].duality.primal


# ---- what is solved


@pytest.mark.parametrize("measure", ["nDCG@3", "AP", "RR", "P@2"])
def test_all_solvers_find_the_optimum(measure):
    data = judged(queries=20, noise=0.3)
    results = {
        solver: er.StructuredRank(measure, l2=0.5, bound="convex", solver=solver, tolerance=2e-5, max_iter=20_000) for solver in SOLVERS
    }
    values = {solver: primal(ranker.fit(data)) for solver, ranker in results.items()}
    for solver, ranker in results.items():
        assert ranker.history_[-1].duality.gap <= 2e-5, solver
        np.testing.assert_allclose(values[solver], values["cutting-plane"], rtol=1e-4)


@given(seed=st.integers(0, 100), solver=st.sampled_from(SOLVERS))
@settings(max_examples=8)
def test_the_dual_never_passes_the_primal_and_the_slack_bounds_the_loss(seed, solver):
    data = judged(queries=10, seed=seed)
    ranker = er.StructuredRank("nDCG@3", l2=0.1, bound="convex", solver=solver, max_iter=30).fit(data)
    duals = [progress.duality.dual for progress in ranker.history_]
    primals = [progress.duality.primal for progress in ranker.history_]
    assert max(duals) <= min(primals) + 1e-12
    best = er.evaluate(data, data.y, "nDCG@3").means["nDCG@3"]
    assert primals[-1] >= best - ranker.score(data) - 1e-12


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
@pytest.mark.parametrize("normalize", ["query", "pairs"])
def test_ranksvm_is_solved_to_its_gap(loss, normalize):
    data = judged(queries=15)
    ranker = er.RankSVM("nDCG@3", l2=0.05, loss=loss, normalize=normalize, tolerance=1e-4).fit(data)
    architecture = LinearModel().on(data)
    problem = RegularizedRisk(PairHinge(loss, normalize), architecture, data, 0.05)
    theta = architecture.theta_of(ranker.weights_)
    assert ranker.history_[-1].duality.gap <= 1e-4
    np.testing.assert_allclose(-problem.value_and_slope(theta)[0], primal(ranker), rtol=1e-9)
    if loss == "squared-hinge":
        best = states(LBFGS(tolerance=1e-14), problem, problem.center, 500)[-1].value
        assert 0 <= primal(ranker) + best <= 1e-4 * primal(ranker)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_ramp_never_ends_above_regression(solver):
    data = long_lists()
    ranker = er.StructuredRank("nDCG@5", l2=0.01, bound="ramp", solver=solver).fit(data)
    architecture = LinearModel().on(data)
    loss = Structured(er.parse_measure("nDCG@5"), bound="ramp")
    problem = ranker._problem(loss, architecture, data).at(0.01)
    start, end = (-problem.value_and_slope(theta)[0] for theta in (problem.center, architecture.theta_of(ranker.weights_)))
    assert end < start
    assert ranker.score(data) > 0.9 * er.Ridge("nDCG@5").fit(data).score(data)


@pytest.mark.parametrize("measure", ["nDCG@5", "AP"])
def test_the_published_ramp_is_centered_on_regression_in_its_own_units(measure):
    """And ours on weights whose scores at the first rank count as much as those of regression."""
    data = judged(queries=20)
    loss, architecture = Structured(er.parse_measure(measure), bound="ramp"), LinearModel().on(data)
    regression = architecture.theta_of(er.Ridge(l2=1e-3).fit(data).weights_)
    published, ours = (er.StructuredRank(measure, ramp=ramp)._problem(loss, architecture, data) for ramp in ("published", "path"))
    np.testing.assert_allclose(published.center, regression, rtol=1e-9)
    np.testing.assert_allclose(ours.center, regression / {"nDCG@5": 5, "AP": 1}[measure], rtol=1e-9)


@pytest.mark.parametrize("solver", ["cutting-plane", "bundle"])
def test_the_published_ramp_starts_anew_at_each_strength(solver):
    """So it does not matter which strengths are tried before one; on our path it does."""
    data, valid = judged(queries=15, noise=1.5), judged(queries=10, noise=1.5, seed=1)
    for ramp in ("published", "path"):
        ranker = er.StructuredRank("nDCG@3", bound="ramp", ramp=ramp, solver=solver).fit(data, valid=valid)
        chosen = ranker.model_.training["chosen"]["l2"]
        alone = clone(ranker).set_params(l2=chosen).fit(data, valid=valid)
        assert np.array_equal(ranker.weights_, alone.weights_) == (ramp == "published")


def test_a_network_learns_what_no_linear_model_can():
    X, _, qid = rows(queries=80)
    y = np.digitize(np.abs(X[:, 0]), [0.7, 1.4])
    data = er.RankingData.from_arrays(X, y, qid=qid)
    linear, network = (
        er.StructuredRank("nDCG@5", l2=1e-4, bound="convex", solver="subgradient", hidden=h, max_iter=100) for h in (None, 6)
    )
    with pytest.warns(ConvergenceWarning, match="best weights for the convex bound are 0"):
        linear.fit(data)
    assert network.fit(data).score(data) > linear.score(data) + 0.1
    assert network.model_.scorer.kind == "network"


def test_more_than_the_longest_list_is_the_longest_list():
    data = judged()
    fitted = [er.StructuredRank(f"nDCG@{k}", l2=0.1, bound="convex").fit(data).weights_ for k in (8, 1000)]
    assert np.array_equal(*fitted)


# ---- what the data chooses


def test_folds_choose_a_strength_and_the_model_is_the_one_of_that_strength():
    data = judged(queries=30)
    auto = er.RankSVM("nDCG@3").fit(data)
    assert set(auto.model_.training["chosen"]) == {"l2"}
    by_hand = er.RankSVM("nDCG@3", l2=auto.model_.training["chosen"]["l2"]).fit(data)
    assert np.array_equal(auto.weights_, by_hand.weights_)
    assert "chosen" not in by_hand.model_.training


def test_validation_data_chooses_all_that_is_left_open():
    data, valid = judged(queries=30), judged(queries=30, seed=1)
    ranker = er.StructuredRank("nDCG@3", A="auto", bound="auto").fit(data, valid=valid)
    chosen = ranker.model_.training["chosen"]
    assert (set(chosen), chosen["A"] in ("linear", "sqrt", "discount"), chosen["bound"] in ("convex", "ramp")) == (
        {"l2", "A", "bound"},
        True,
        True,
    )
    rivals = [er.StructuredRank("nDCG@3", A=A, bound=bound) for A in ("linear", "sqrt", "discount") for bound in ("convex", "ramp")]
    assert ranker.score(valid) == max(rival.fit(data, valid=valid).score(valid) for rival in rivals)
    assert ranker.score(valid) == max(progress.valid for progress in ranker.history_)


def test_folds_choose_the_power_of_a_shape():
    data = judged(queries=30)
    ranker = er.StructuredRank("nDCG@3", A="power", bound="convex", l2=0.1).fit(data)
    chosen = ranker.model_.training["chosen"]["A"]
    assert chosen in POWERS
    assert np.array_equal(ranker.weights_, er.StructuredRank("nDCG@3", A=chosen, bound="convex", l2=0.1).fit(data).weights_)
    others = [er.StructuredRank("nDCG@3", A=A, bound="convex", l2=0.1).fit(data).weights_ for A in POWERS if chosen != A]
    assert not any(np.array_equal(ranker.weights_, other) for other in others)


def test_a_table_or_a_power_may_be_given():
    data = judged()
    shapes = (("linear", 0.9), (1.0, 0.1), ([1, 2 / 3, 1 / 3], 0.1))  # A(1) is 3, 1 and 1
    linear, power, table = (er.StructuredRank("nDCG@3", l2=l2, A=A, bound="convex").fit(data).weights_ for A, l2 in shapes)
    assert power == pytest.approx(table, abs=1e-3)
    assert power == pytest.approx(3 * linear, abs=1e-3)
    by_name, by_table = (er.StructuredRank("nDCG@3", l2=0.1, A=A, bound="convex").fit(data) for A in ("linear", [3, 2, 1]))
    assert np.array_equal(by_name.weights_, by_table.weights_)


class Guess:
    """Three candidates, of which the second ranks every query well, whatever they were trained on; each takes two steps."""

    def __init__(self):
        self.data = er.RankingData.from_arrays(np.eye(2)[np.arange(40) % 2], np.arange(40) % 2, group=[2] * 20)
        self.judge = Judge(Task(er.parse_measure("nDCG@1"), self.data), lambda theta: lambda data: data.X @ theta)
        self.seen = []

    def __call__(self, data):
        self.seen.append(data.query_weight)
        return [partial(self.run, np.array(theta)) for theta in ([1.0, -1.0], [-1.0, 1.0], [0.0, 0.0])]

    def run(self, theta, recorder):
        recorder.journal.entries[recorder.place] = trained = Trained(theta, Verdict(0.0, None, 0.0), 2)
        return trained


def test_folds_hold_out_each_query_once_and_choose_the_best():
    guess, root = Guess(), RootRecorder()
    chosen = []

    def run(recorder):
        inner = recorder.part(view=Linear)
        chosen.append(choose(cross_validate(guess, 3, guess.judge, 5, 0, inner)).number)
        return Trained(inner.choice.candidate(), inner.choice.verdict)

    best = root.train(run).iterate
    assert chosen == [1]
    assert best.tolist() == [-1.0, 1.0]
    assert np.array_equal(sum(1 - seen for seen in guess.seen), np.ones(20))
    history = root.journal.history
    assert [progress.step for progress in history] == [2 * done for done in range(1, 16)]
    assert {progress.steps for progress in history} == {2 * 16}  # one more run is to come
    assert [progress.value for progress in history[:3]] == [0.0, 1.0, 1.0]  # that of the best so far


def test_a_single_query_of_weight_cannot_judge_and_the_first_is_taken():
    X, y, qid = rows(queries=2)
    ranker = er.RankSVM("nDCG@3").fit(X, y, qid=qid, query_weight=[1.0, 0.0])
    alone = er.RankSVM("nDCG@3", l2=ranker.model_.training["chosen"]["l2"]).fit(X, y, qid=qid, query_weight=[1.0, 0.0])
    assert np.array_equal(ranker.weights_, alone.weights_)


def test_ctrl_c_while_folds_choose_leaves_a_model():
    steps = []

    def stop(progress):
        steps.append(progress)
        if len(steps) == 3:
            raise KeyboardInterrupt

    data = judged()
    with pytest.warns(er.errors.InterruptedWarning, match="interrupted"):
        ranker = er.RankSVM("nDCG@3").fit(data, progress=stop)
    assert ranker.model_.training["interrupted"]
    assert ranker.model_.training["value"] == ranker.score(data)


def test_the_model_at_hand_is_that_of_the_choice_once_it_is_made():
    """What folds chose by is better on the training data than what the choice begins with, but no longer counts."""
    data, steps, models = judged(), [], []
    whole = er.RankSVM("nDCG@3").fit(data, progress=steps.append)
    begun = next(number for number, progress in enumerate(steps) if progress.duality)
    with patch.multiple("exactrank.learning.training.run", SECONDS_BETWEEN_CHECKPOINTS=0.0, TIMES_BETWEEN_CHECKPOINTS=0):
        er.RankSVM("nDCG@3").fit(data, checkpoint=models.append)
    assert len(models) == len(steps)
    assert max(progress.value for progress in steps[:begun]) > steps[begun].value
    assert [model.training["value"] for model in models[begun:]] == [progress.value for progress in steps[begun:]]
    assert np.array_equal(models[-1].predict(data), whole.predict(data))


def test_the_progress_of_folds_and_path_is_that_of_one_run():
    for valid in (None, judged(seed=1)):
        ranker = er.StructuredRank("nDCG@3").fit(judged(), valid=valid)
        steps = [progress.step for progress in ranker.history_]
        assert steps == sorted(steps)
        assert all(progress.step <= progress.steps for progress in ranker.history_)
        assert steps[-1] == ranker.model_.training["steps"]


@dataclass(frozen=True, eq=False)
class Told(Run):
    """A run that leaves its strength, the verdict and the iterate in a list."""

    told: ClassVar[list] = []

    def __call__(self, recorder):
        trained = super().__call__(recorder)
        self.told.append((self.problem.strength, trained.verdict, trained.iterate))
        return trained


def strengths_tried(ranker, data, valid):
    with patch("exactrank.rankers.large_margin.Run", Told), patch.object(Told, "told", []) as message:
        ranker.fit(data, valid=valid)
    return message


@pytest.mark.parametrize("patience", [1, 2, 3])
def test_patience_ends_the_path_after_that_many_strengths_that_are_no_better(patience):
    data, valid = judged(queries=6, seed=3, noise=2.0), judged(queries=6, seed=4, noise=2.0)
    every = strengths_tried(er.RankSVM("nDCG@3"), data, valid)
    assert len(every) == 9
    goodness = [verdict.goodness for _, verdict, _ in every]
    until = next(n for n in range(1, 10) if n - 1 - int(np.argmax(goodness[:n])) == patience or n == 9)
    assert until < 9, "else this test would say nothing"
    ranker = er.RankSVM("nDCG@3", patience=patience)
    tried = strengths_tried(ranker, data, valid)
    assert [l2 for l2, _, _ in tried] == [l2 for l2, _, _ in every[:until]]
    kept = average([verdict for _, verdict, _ in every[:until]]).number
    assert ranker.model_.training["chosen"] == {"l2": every[kept][0]}
    np.testing.assert_allclose(ranker.weights_, LinearModel().on(data).at(every[kept][2]).weights, rtol=1e-12)


def test_a_convex_path_goes_on_from_where_the_last_strength_ended():
    """The end of a strength is nearer to the next optimum than the start is: the path takes fewer steps than the strengths alone."""
    data, valid = judged(), judged(seed=1)
    path = er.RankSVM("nDCG@3").fit(data, valid=valid)
    alone = [er.RankSVM("nDCG@3", l2=l2).fit(data, valid=valid) for l2, _, _ in strengths_tried(er.RankSVM("nDCG@3"), data, valid)]
    assert path.model_.training["steps"] < sum(one.model_.training["steps"] for one in alone)


# ---- weights of queries


def doubled():
    """The same queries, one of which is there twice in the one and weighs twice in the other; no grades tie, whose order is drawn."""
    X, _, qid = rows(queries=6, seed=2)
    noisy = X[:, 0] + RNG(0).standard_normal(len(X))
    y = np.argsort(np.argsort(noisy.reshape(6, -1)), axis=1).ravel() / 2
    X, y, qid = (one[(qid != 2) | (np.arange(len(qid)) % 2 == 0)] for one in (X, y, qid))  # of other sizes, so that they differ in pairs
    again = qid == 2
    twice = er.RankingData.from_arrays(np.concatenate([X, X[again]]), np.concatenate([y, y[again]]), qid=np.append(qid, qid[again] + 10))
    return twice, er.RankingData.from_arrays(X, y, qid=qid, query_weight=1.0 + (np.arange(6) == 2))


@pytest.mark.parametrize(
    "ranker",
    [
        *(er.RankSVM("nDCG@3", l2=0.1, loss=loss, normalize=alike) for loss in ("hinge", "squared-hinge") for alike in ("query", "pairs")),
        er.StructuredRank("nDCG@3", l2=0.1, bound="convex"),
        er.SVMMAP(l2=0.1, bound="convex", solver="bundle"),
    ],
    ids=lambda ranker: "-".join(map(str, ranker.get_params().values())),
)  # fmt: skip
def test_a_query_of_twice_the_weight_is_one_that_is_there_twice(ranker):
    ranker.set_params(tolerance=1e-8, max_iter=5000)
    primals, weights = zip(*((primal(ranker.fit(data)), ranker.weights_) for data in doubled()), strict=True)
    assert primals[0] == pytest.approx(primals[1], rel=1e-7)
    np.testing.assert_allclose(*weights, rtol=1e-3, atol=1e-4)


def test_so_is_it_for_the_ramp():
    """Which has many optima, so the problem is compared and not the solution."""
    ramps = []
    for data in doubled():
        ranker, architecture = er.StructuredRank("nDCG@3", bound="ramp"), LinearModel().on(data)
        ramps.append(ranker._problem(Structured(er.parse_measure("nDCG@3"), bound="ramp"), architecture, data))
    np.testing.assert_allclose(ramps[0].center, ramps[1].center, rtol=1e-9)
    for theta in RNG(0).standard_normal((5, 4)):
        assert ramps[0].risk(theta)[0] == pytest.approx(ramps[1].risk(theta)[0], rel=1e-12)


# ---- resuming


def cases():
    """What is killed in its midst: every solver, a chosen and a given strength, folds and validation data."""
    data, valid = judged(queries=6), judged(queries=6, seed=1)
    made = {
        "ranksvm": {"measure": "nDCG@3"},
        "ranksvm hinge": {"measure": "nDCG@3", "loss": "hinge", "max_iter": 10},
        "svmmap": {"solver": "bundle", "bound": "convex", "max_iter": 8},
        "structuredrank kernel": {"measure": "nDCG@3", "kernel": "rbf", "max_iter": 4},
        "structuredrank network": {"measure": "nDCG@3", "solver": "subgradient", "hidden": 2, "max_iter": 4},
    }
    made |= {f"structuredrank {solver}": {"measure": "nDCG@3", "solver": solver, "max_iter": 6} for solver in SOLVERS}
    fixed = {f"structuredrank {solver} long": {"measure": "nDCG@3", "solver": solver, "l2": 0.01, "folds": 2} for solver in SOLVERS}
    rankers = {name: RANKERS[name.split()[0]](**given) for name, given in (made | fixed).items()}
    cross_validate = {f"{name} by folds": (clone(ranker).set_params(folds=2), data, None) for name, ranker in rankers.items()}
    return cross_validate | {f"{name} by validation": (rankers[name], data, valid) for name in made}


def test_a_killed_fit_is_resumed_to_the_bit(tmp_path):
    fitted = unbroken(cases())
    killed("tests.rankers.test_large_margin", fitted, tmp_path)
    for name, case in cases().items():
        assert_resumed(fitted[name], case, tmp_path / f"{name}.json")


# ---- a bound that is of no use


def test_a_convex_bound_that_collapses_is_told_with_its_remedy():
    data = long_lists()
    with pytest.warns(ConvergenceWarning, match=r"best weights for the convex bound are 0.*bound=\"ramp\""):
        convex = er.StructuredRank("nDCG@5", bound="convex").fit(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ramp = er.StructuredRank("nDCG@5", bound="ramp").fit(data)
        chosen = er.StructuredRank("nDCG@5", bound="auto").fit(data)
    on_others = {
        ranker: er.evaluate(long_lists(seed=1), ranker.predict(long_lists(seed=1)), SEVERE).means[SEVERE] for ranker in (convex, ramp)
    }
    assert on_others[ramp] > on_others[convex]
    assert chosen.model_.training["chosen"]["bound"] == "ramp"


def test_a_convex_bound_that_is_of_use_is_not_told_to_be_none():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        er.StructuredRank("nDCG@3", bound="convex").fit(judged(queries=30))
        er.StructuredRank("nDCG@3", bound="convex", l2=1e-3).fit(judged(queries=30))


# ---- bad settings


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"l2": 0.0}, SettingError, "l2=0.0 is out of range"),
        ({"l2": float("nan")}, SettingError, 'l2=nan is not "auto", or a number above 0'),
        ({"l2": "large"}, SettingError, 'l2=.large. is not "auto", or a number above 0'),
        ({"tolerance": 0.0}, SettingError, "tolerance"),
        ({"max_iter": 0}, SettingError, "max_iter=0 is out of range"),
        ({"patience": 0}, SettingError, "patience=0 is out of range"),
        ({"patience": 2}, SettingError, "patience=2 has no effect without validation data"),
        ({"patience": 2, "l2": 0.5}, SettingError, "patience=2 has no effect with l2=0.5"),
        ({"folds": 1}, SettingError, "folds=1 is out of range"),
        ({"folds": 3, "l2": 0.5}, SettingError, "folds=3 has no effect if nothing is left to choose"),
        ({"solver": "cutting_plane"}, SettingError, 'did you mean "cutting-plane"'),
        ({"bound": "tight"}, SettingError, "bound='tight' is not"),
        ({"slack": "loose"}, SettingError, "slack='loose' is not"),
        ({"A": "square"}, SettingError, "A='square'"),
        ({"A": -1.0}, SettingError, "A=-1.0"),
        ({"A": [1, 2]}, SettingError, "A is 1 at rank 1 and 2 after it"),
        ({"measure": "ERR"}, er.errors.IncompatibleError, "use nDCG, DCG, P, R, RBP, AP without cutoff, RR or Success"),
        ({"measure": "AP@10"}, er.errors.IncompatibleError, "AP without cutoff"),
        ({"measure": "AP", "A": "sqrt"}, SettingError, "A belongs to positional measures"),
        ({"hidden": 3}, SettingError, "hidden=3 has no effect with solver='cutting-plane'; leave it out, or give solver='subgradient'"),
        ({"hidden": 3, "solver": "subgradient", "bound": "ramp"}, SettingError, "bound='convex'"),
        ({"hidden": 3, "solver": "subgradient", "tolerance": 0.1}, SettingError, "tolerance=0.1 has no effect with hidden=3"),
        ({"bound": "ramp", "slack": "rescaled"}, SettingError, "slack='rescaled' has no effect with bound='ramp'"),
    ],
)
def test_bad_settings_are_named(arguments, error, says):
    with pytest.raises(error, match=says):
        er.StructuredRank(**({"bound": "convex"} | arguments)).fit(judged())


def test_folds_are_refused_beside_validation_data():
    with pytest.raises(SettingError, match="folds=3 has no effect if validation data chooses"):
        er.RankSVM(folds=3).fit(judged(), valid=judged(seed=1))


def test_what_folds_choose_needs_no_open_strength():
    """The bound is open, so folds do have an effect."""
    ranker = er.StructuredRank("nDCG@3", l2=0.1, folds=3).fit(judged())
    assert set(ranker.model_.training["chosen"]) == {"bound"}


def test_networks_and_rescaled_slacks_leave_no_bound_to_choose():
    for more in ({"hidden": 2, "solver": "subgradient", "max_iter": 2}, {"slack": "rescaled"}):
        assert "chosen" not in er.StructuredRank("nDCG@3", l2=0.1, **more).fit(judged()).model_.training


def test_svmmap_has_no_table():
    with pytest.raises(SettingError, match="SVMMAP has no setting 'A'"):
        er.SVMMAP(A="linear")
