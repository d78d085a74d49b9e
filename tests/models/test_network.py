"""Networks and linear models as functions of flat parameters: scores, slopes, passes of updates, files."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.learning.objectives.lambdas import FiniteDifference, Lambdas
from exactrank.learning.objectives.losses import ApproxNDCGLoss, ListMLELoss, ListNetLoss, RankCosineLoss, SmoothMeasure
from exactrank.learning.objectives.parametric import ForceProblem, Parametric
from exactrank.learning.objectives.score_space import slopes
from exactrank.models.architecture import LinearModel, NetworkModel, form_of
from exactrank.models.linear import Linear
from exactrank.models.model import Model
from exactrank.models.network import Network
from exactrank.reproduce.ranknet_speedup import RankNetTraining
from tests.reference import lambdas as reference

HIDDEN = st.sampled_from([None, 1, 3, 8, 10, 17])
SMOOTH = [
    Lambdas(),
    Lambdas(link="spring"),
    ListNetLoss(),
    ListMLELoss(),
    RankCosineLoss(),
    SmoothMeasure(er.measures.NDCG(k=3)),
    ApproxNDCGLoss(er.measures.NDCG(), 2.0),
]
FORCES = [
    *SMOOTH,
    Lambdas(er.measures.NDCG(k=5)),
    Lambdas(er.measures.AP()),
    Lambdas(er.measures.ERR()),
    FiniteDifference(er.measures.NDCG()),
]


def judged(queries=7, features=5, seed=0, weighted=False):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, queries)
    X = rng.standard_normal((sizes.sum(), features)) * 3 + 7
    weight = rng.random(queries) + 0.1 if weighted else None
    return er.RankingData.from_arrays(X, rng.integers(0, 4, len(X)), group=sizes, query_weight=weight)


@given(HIDDEN, st.integers(1, 12), st.integers(0, 99))
def test_scores_are_those_of_units_one_by_one(hidden, features, seed):
    data = judged(features=features, seed=seed)
    made = form_of(hidden).on(data)
    theta = np.random.default_rng(seed).standard_normal(made.size)
    scores = made.scores(theta, data.X)
    if hidden is None:
        assert scores == pytest.approx((data.X.astype(float) / made.scale) @ theta, rel=1e-12, abs=1e-12)
    else:
        assert scores == pytest.approx(reference.network(theta, data.X, made.mean, made.scale, hidden), rel=1e-12, abs=1e-12)
    assert np.array_equal(made.at(theta).score(data.X), scores), "the scorer is the very function that was trained"
    rows = np.random.default_rng(seed).permutation(data.n_documents)
    assert np.array_equal(made.scores(theta, data.X[rows], threads=2), scores[rows]), "a score does not depend on its neighbors"


def test_features_are_standardized_once():
    X = np.array([[1.0, 5.0, 1e8], [3.0, 5.0, 1e8], [5.0, 5.0, 1e8]], np.float32)
    made = LinearModel().on(er.RankingData.from_arrays(X, [0, 1, 2], group=[3]))
    assert made.mean.tolist() == [3.0, 5.0, 1e8]
    assert made.scale == pytest.approx([math.sqrt(8 / 3), 5.0, 1e8])


@pytest.mark.parametrize("hidden", [None, 3, 10])
@pytest.mark.parametrize("objective", FORCES, ids=repr)
def test_slopes_go_back_to_the_parameters(objective, hidden):
    """The chain rule: slopes by scores times finite differences of the scores."""
    data = judged(weighted=True)
    made = form_of(hidden).on(data)
    theta = np.random.default_rng(1).standard_normal(made.size) / 2
    _, ours = Parametric(objective, made, data).value_and_slope(theta)
    by_score = slopes(data, made.scores(theta, data.X), objective).slope / data.query_weight.sum()
    theirs = [by_score @ (made.scores(theta + 1e-6 * e, data.X) - made.scores(theta - 1e-6 * e, data.X)) / 2e-6 for e in np.eye(made.size)]
    assert ours == pytest.approx(theirs, abs=1e-8)


@pytest.mark.parametrize("hidden", [None, 3, 10])
@pytest.mark.parametrize("objective", SMOOTH, ids=repr)
def test_slopes_are_finite_differences_of_the_value(objective, hidden):
    data = judged(weighted=True)
    made = form_of(hidden).on(data)
    theta = np.random.default_rng(1).standard_normal(made.size) / 2
    problem = Parametric(objective, made, data, l2=0.3)
    value, slope = problem.value_and_slope(theta)
    assert value == pytest.approx(problem.value(theta), rel=1e-13)
    theirs = [(problem.value(theta + 1e-6 * e) - problem.value(theta - 1e-6 * e)) / 2e-6 for e in np.eye(made.size)]
    assert slope == pytest.approx(theirs, abs=2e-8)


@pytest.mark.parametrize("hidden", [None, 10])
def test_parts_add_up_on_any_number_of_threads(hidden):
    data = judged(queries=1500)  # more than one block
    made = form_of(hidden).on(data)
    theta = np.random.default_rng(1).standard_normal(made.size)
    one, two = (Parametric(Lambdas(er.measures.NDCG()), made, data, threads=threads) for threads in (1, 2))
    assert one.value_and_slope(theta)[1].tobytes() == two.value_and_slope(theta)[1].tobytes()
    halves = [one.slope_of(theta, np.arange(begin, begin + 750)) for begin in (0, 750)]
    assert np.mean([slope for _, slope in halves], axis=0) == pytest.approx(one.value_and_slope(theta)[1], rel=1e-9, abs=1e-12)


@settings(max_examples=25)
@given(HIDDEN, st.integers(0, 99), st.sampled_from([0.0, 2.0]))
def test_a_pass_is_an_update_a_query(hidden, seed, l2):
    data = judged(seed=seed, weighted=True)
    made = form_of(hidden).on(data)
    rng = np.random.default_rng(seed)
    theta, order, rate = rng.standard_normal(made.size), rng.permutation(data.n_queries), 0.1
    problem = Parametric(Lambdas(er.measures.NDCG(k=3)), made, data, l2=l2)
    theirs = theta
    for q in order:
        theirs = theirs + rate * problem.slope_of(theirs, np.array([q]))[1]
    assert problem.pass_over(theta, order, rate) == pytest.approx(theirs, rel=1e-9, abs=1e-12)


@settings(max_examples=25)
@given(HIDDEN, st.integers(0, 99))
def test_ranknet_pair_by_pair_and_factorised_are_one(hidden, seed):
    """V1 and V2 of Burges, Ragno & Le (2006), section 5."""
    data = judged(seed=seed, weighted=True)
    made = form_of(hidden).on(data)
    rng = np.random.default_rng(seed)
    theta, order = rng.standard_normal(made.size), rng.permutation(data.n_queries)
    problem = RankNetTraining(Lambdas(), made, data, l2=0.5)
    assert problem.pass_over(theta, order, 0.05) == pytest.approx(problem.pass_over_pairs(theta, order, 0.05), rel=1e-10, abs=1e-13)


def test_a_judge_stands_for_the_value():
    data = judged()
    objective = Lambdas(er.measures.NDCG())
    parametric = Parametric(objective, LinearModel().on(data), data)
    problem, order = ForceProblem(objective, LinearModel().on(data), data, lambda theta: 7.0), np.arange(7)
    assert problem.value(np.zeros(5)) == 7.0
    assert problem.pass_over(np.ones(5), order, 0.1).tobytes() == parametric.pass_over(np.ones(5), order, 0.1).tobytes()
    assert problem.with_draws(3) is problem
    with pytest.raises(er.errors.SettingError, match="l2 must be"):
        Parametric(Lambdas(), LinearModel().on(data), data, l2=-1.0)


@given(HIDDEN, st.integers(0, 99))
def test_scores_are_linear_in_the_linear_weights(hidden, seed):
    data, rng = judged(seed=seed), np.random.default_rng(seed)
    made = form_of(hidden).on(data)
    theta, direction = rng.standard_normal((2, made.size))
    features, weights = made.linear_features(theta, data), made.linear_weights(theta)
    assert (features.n_features, features.sizes.tolist()) == (len(weights), data.sizes.tolist())
    other = rng.standard_normal(len(weights))
    for chosen in (weights, other):
        moved = made.with_linear_weights(theta, chosen)
        np.testing.assert_allclose(made.scores(moved, data.X), features.X.astype(float) @ chosen, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(made.linear_weights(moved), chosen, rtol=1e-12)
    np.testing.assert_allclose(made.linear_weights(theta + direction), weights + made.linear_weights(direction), rtol=1e-9, atol=1e-12)


@given(HIDDEN, st.integers(0, 99))
def test_scores_of_each_are_the_scores_to_the_bit(hidden, seed):
    data = judged(seed=seed)
    made = form_of(hidden).on(data)
    thetas = np.random.default_rng(seed).standard_normal((19, made.size))
    assert [each.tobytes() for each in made.scores_of_each(thetas, data.X)] == [made.scores(theta, data.X).tobytes() for theta in thetas]


def test_a_form_says_what_its_parameters_are():
    data, weights = judged(), np.arange(5.0)
    made, plain = LinearModel().on(data), LinearModel(standardize=False).on(data)
    assert made.at(made.theta_of(weights)).weights == pytest.approx(weights)
    assert plain.theta_of(weights).tolist() == plain.at(weights).weights.tolist() == weights.tolist()
    assert made.linear
    network = NetworkModel(hidden=3).on(data)
    assert not network.linear
    with pytest.raises(er.errors.IncompatibleError, match="cannot start a network of 3 units"):
        network.theta_of(weights)


@pytest.mark.parametrize("hidden", [0, -3, True, 2.5])
def test_hidden_units_are_a_number_of_at_least_one(hidden):
    with pytest.raises(er.errors.DataError, match="hidden must be a number of units from 1 to 100,000, or None"):
        form_of(hidden).on(judged())


# ---- the scorer and its file ----


def a_network(**more):
    rng = np.random.default_rng(3)
    return Network(
        rng.standard_normal((4, 2)), rng.standard_normal(4), rng.standard_normal(4), np.array([1.0, 2.0]), np.array([0.5, 3.0]), **more
    )


def test_scores_are_activations_times_outputs():
    net, X = a_network(), np.random.default_rng(0).standard_normal((30, 2)).astype(np.float32)
    assert net.activations(X).shape == (30, 4)
    assert net.activations(X) @ net.output == pytest.approx(net.score(X), rel=1e-13)


@pytest.mark.parametrize("names", [(), ("bm25", "length")])
def test_a_network_comes_back_from_its_file(tmp_path, names):
    net = a_network(feature_names=names, missing="mean", fill=np.array([0.1, 0.2]))
    Model(net).save(tmp_path / "net.json")
    X = np.array([[0.3, np.nan], [1.0, 2.0], [np.nan, np.nan]], np.float32)
    again = er.load(tmp_path / "net.json").scorer
    assert np.array_equal(again.score(X), net.score(X))
    assert np.array_equal(net.score(X)[:1], net.score(np.array([[0.3, 0.2]], np.float32)))
    assert (again.feature_names, again.n_hidden, again.n_features) == (names, 4, 2)


def test_missing_values_are_an_error_or_filled():
    X = np.array([[0.3, np.nan]], np.float32)
    with pytest.raises(er.errors.DataError, match="1 values are missing"):
        a_network().score(X)
    assert np.array_equal(a_network(missing="zero").score(X), a_network().score(np.array([[0.3, 0.0]], np.float32)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weights": []}, "expected a list of numbers for each hidden unit"),
        ({"weights": [[1.0, 2.0], [1.0]]}, "the lists of the hidden units differ in length"),
        ({"weights": [[1.0, 2.0]]}, r"weights have shape \(1, 2\) for 4 outputs"),
        ({"bias": [1.0, "x", 1.0, 1.0]}, "bias: 1 has the value 'x'"),
        ({"scale": [1.0, 0.0]}, r"scale\[1\] is 0.0; scales are above 0"),
        ({"mean": {"a": 1.0, "b": 2.0}}, "mean and scale name different features"),
        ({"output": None}, "output: expected numbers"),
        ({"missing": "sometimes"}, "'sometimes' is not a policy"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, change, said):
    Model(a_network()).save(tmp_path / "net.json")
    record = json.loads((tmp_path / "net.json").read_text())
    record["scorer"] |= change
    (tmp_path / "bad.json").write_text(json.dumps(record))
    with pytest.raises(er.errors.DataError, match=rf"bad\.json: .*{said}"):
        er.load(tmp_path / "bad.json")


def test_a_linear_model_stays_linear():
    data = judged()
    assert isinstance(LinearModel().on(data).at(np.ones(5)), Linear)
    assert isinstance(form_of(2).on(data).at(np.ones(14)), Network)
