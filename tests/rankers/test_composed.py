"""Composed: any family of scorers, objective and optimizer that go together; those that do not are refused with what would do."""

import json

import numpy as np
import pytest
from sklearn.base import clone

import exactrank as er
from exactrank import optimizers
from exactrank.learning.objectives.score_space import by_query
from tests.rankers.test_gradient_rankers import judged, springs

NDCG = er.measures.NDCG(k=5)
SMOOTH = {
    "Lambdas": er.losses.Lambdas(),
    "ListNet": er.losses.ListNetLoss(),
    "ListMLE": er.losses.ListMLELoss(),
    "RankCosine": er.losses.RankCosineLoss(),
    "SmoothMeasure": er.losses.SmoothMeasure(NDCG),
    "ApproxNDCG": er.losses.ApproxNDCGLoss(NDCG),
    "PairHinge": er.losses.PairHinge(),
}
FORCES = {
    "Lambdas of nDCG": er.losses.Lambdas(NDCG),
    "FiniteDifference": er.losses.FiniteDifference(NDCG),
    "PairForces": er.losses.PairForces(springs, NDCG),
    "SampledLambdas": er.losses.SampledLambdas(NDCG, samples=3),
}
ALONG_SLOPES = {"SGD": optimizers.SGD(0.01), "Adam": optimizers.Adam(0.03)}
BY_VALUES = {
    "StepSearch": optimizers.StepSearch(),
    "SPSA": optimizers.SPSA(),
    "FDSA": optimizers.FDSA(),
}
ALONG_LINES = {"CoordinateSearch": optimizers.CoordinateSearch(), "Powell": optimizers.Powell()}
FAMILIES = {"linear": er.models.LinearModel(), "network": er.models.NetworkModel(3)}


def fitted(objective, optimizer, family="linear", **settings):
    ranker = er.Composed("nDCG@5", scorer=FAMILIES[family], objective=objective, optimizer=optimizer, **({"max_iter": 30} | settings))
    return ranker.fit(judged())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("optimizer", [*ALONG_SLOPES.values(), optimizers.LBFGS()], ids=[*ALONG_SLOPES, "LBFGS"])
@pytest.mark.parametrize("objective", SMOOTH.values(), ids=SMOOTH)
def test_every_smooth_objective_goes_with_every_slope(family, optimizer, objective):
    ranker = fitted(objective, optimizer, family)
    assert ranker.score(judged()) > ranker.history_[0].value + 0.1


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("optimizer", ALONG_SLOPES.values(), ids=ALONG_SLOPES)
@pytest.mark.parametrize("objective", FORCES.values(), ids=FORCES)
def test_forces_are_followed_by_what_asks_for_no_value_of_theirs(family, optimizer, objective):
    assert fitted(objective, optimizer, family, max_iter=20).score(judged(seed=2)) > 0.7
    with pytest.raises(er.errors.IncompatibleError, match=r"LBFGS asks for value_and_slope; ForceProblem has .*use SGD, Adam"):
        fitted(objective, optimizers.LBFGS(), family)


@pytest.mark.parametrize("optimizer", BY_VALUES.values(), ids=BY_VALUES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_measure_is_climbed_by_its_values(family, optimizer):
    start = fitted(None, optimizer, family, max_iter=1)
    assert fitted(None, optimizer, family, max_iter=60).score(judged()) > max(0.6, start.history_[0].value)


@pytest.mark.parametrize("optimizer", ALONG_LINES.values(), ids=ALONG_LINES)
def test_a_linear_model_climbs_a_measure_exactly_along_lines(optimizer):
    ranker = fitted(NDCG, optimizer)
    assert ranker.score(judged()) > 0.95
    gains = [weight.gain for weight in er.inspect.optimality(judged(), ranker.model_).per_weight]
    assert max(gains) < 1e-6 or isinstance(optimizer, optimizers.Powell)
    with pytest.raises(er.errors.IncompatibleError, match=r"asks for at and dimension; Measured has .*; use StepSearch, SPSA or FDSA"):
        fitted(NDCG, optimizer, "network")


def test_along_lines_parameters_are_in_units_of_the_features():
    """The same problem in other units is the same search, and its values those of the model."""
    X, y, qid = judged().X, judged().y, np.repeat(np.arange(40), 12)
    ours, theirs = (
        er.Composed("nDCG@5", optimizer=optimizers.CoordinateSearch()).fit(x, y, qid=qid) for x in (X, X * np.float32([1024, 0.25, 8]))
    )
    assert ours.predict(X).tobytes() == theirs.predict(X * np.float32([1024, 0.25, 8])).tobytes()
    assert ours.history_[-1].value == ours.score(X, y, qid=qid)


@pytest.mark.parametrize(
    ("recipe", "ranker"),
    [
        (er.Composed(objective=er.losses.ListNetLoss(), optimizer=optimizers.LBFGS(), l2=0.001), er.ListNet()),
        (
            er.Composed(objective=er.losses.Lambdas(), optimizer=optimizers.SGD(0.01), l2=0.01),
            er.RankNet(solver="sgd", learning_rate=0.01),
        ),
        (
            er.Composed(scorer=er.models.NetworkModel(4), objective=er.losses.ListMLELoss(), optimizer=optimizers.Adam(0.01), l2=0.01),
            er.ListMLE(hidden=4, solver="adam", learning_rate=0.01),
        ),
        (
            er.Composed(objective=er.losses.ApproxNDCGLoss(er.measures.NDCG(k=10)), optimizer=optimizers.LBFGS(), start="ridge", l2=0.001),
            er.ApproxNDCG(),
        ),
        (
            er.Composed(objective=er.losses.Lambdas(er.measures.NDCG()), optimizer=optimizers.Adam(0.01), l2=0.02),
            er.LambdaRank(start="random", learning_rate=0.01),
        ),
    ],
    ids=["ListNet", "RankNet", "ListMLE", "ApproxNDCG", "LambdaRank"],
)
def test_the_gradient_rankers_are_recipes_of_it(recipe, ranker):
    for valid in (None, judged(seed=1)):
        first, second = (made.set_params(max_iter=8).fit(judged(), valid=valid) for made in (recipe, ranker))
        assert first.predict(judged()).tobytes() == second.predict(judged()).tobytes()
        assert first.history_ == second.history_


class GradeSpread:
    """An objective that a user writes, in Python: scores that vary with the grades."""

    def on(self, data):
        def answer(number, scores):
            grades = data.y[data.indptr[number] : data.indptr[number + 1]]
            pull = grades - grades.mean() - (scores - scores.mean())
            return -float(pull @ pull) / 2, pull, np.ones(len(scores))

        return by_query(answer)


class Drawn(GradeSpread):
    """The same, but drawn at random."""

    def with_draws(self, number):
        return self


def test_what_is_drawn_at_random_has_no_value_to_go_up_a_line_by():
    with pytest.raises(er.errors.IncompatibleError, match="LBFGS asks for value_and_slope; ForceProblem has"):
        fitted(Drawn(), optimizers.LBFGS())
    assert fitted(Drawn(), optimizers.Adam(0.03)).score(judged()) > 0.8


def test_an_objective_of_ones_own_trains_with_everything_that_rankers_have():
    ranker = er.Composed("nDCG@5", objective=GradeSpread(), optimizer=optimizers.LBFGS(), bags=3).fit(judged())
    assert ranker.score(judged(seed=2)) > 0.9
    assert np.all(np.isfinite(ranker.oof_))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "adam"}, "optimizer='adam' is not Optimizer"),
        ({"scorer": 10}, "scorer=10 is not LinearModel or NetworkModel"),
        ({"objective": "nDCG"}, "objective='nDCG' is not Objective, Measure or None"),
        ({"l2": 0.1}, "l2=0.1 has no effect on a measure"),
        ({"l2": 0.1, "objective": NDCG}, "l2=0.1 has no effect on a measure"),
        ({"solver": "adam"}, "Composed has no setting 'solver'"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(er.errors.SettingError, match=message):
        er.Composed(**settings).fit(judged())


def test_a_network_has_no_ridge_regression_to_start_from():
    with pytest.raises(er.errors.IncompatibleError, match="cannot start a network of 3 units; start at random"):
        er.Composed(scorer=er.models.NetworkModel(3), optimizer=optimizers.SPSA(), start="ridge").fit(judged())


def test_it_is_an_estimator_whose_model_says_what_it_was_made_of(tmp_path):
    ranker = clone(er.Composed(objective=er.losses.ListNetLoss(), optimizer=optimizers.Adam(0.03), max_iter=3)).fit(judged())
    ranker.save(tmp_path / "m.json")
    assert er.load(tmp_path / "m.json").predict(judged()).tobytes() == ranker.predict(judged()).tobytes()
    record = json.loads((tmp_path / "m.json").read_text())
    assert record["ranker"] == "Composed"
    assert record["params"]["objective"] == "ListNetLoss(target='softmax')"
