"""DirectRank: exact coordinate ascent on the measure, its starts, its bags, and the points it takes."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from sklearn.linear_model import Ridge

import exactrank as er
from exactrank.learning.objectives.ideal_likelihood import IdealLikelihood
from exactrank.learning.objectives.linear_profile import LinearProfile
from exactrank.learning.objectives.profile import GivenWeights
from exactrank.learning.objectives.ridge import ridge_weights
from exactrank.learning.objectives.softmax import InDeviations, SoftmaxLikelihood
from exactrank.learning.objectives.step_function import Interval
from exactrank.learning.objectives.within_query import center, deviation
from exactrank.learning.optimizers.slopes import maximum
from exactrank.learning.training.combinators import bootstrap
from exactrank.rankers.training_data import check_measure_distinguishes
from tests.rankers.test_rankers import judged, mean, rows
from tests.strategies import MEASURES


def one_run(**more):
    return er.DirectRank(**({"measure": "nDCG@5", "bags": 0} | more))


def tells_apart(measure, data):
    with contextlib.suppress(er.errors.DataError):
        check_measure_distinguishes(measure, data, 1)
        return True
    return False


@settings(max_examples=40)
@given(measure=MEASURES, seed=st.integers(0, 99), start=st.sampled_from(["softmax", "zero", "random", "ridge"]))
def test_the_training_measure_never_falls(measure, seed, start):
    X, y, qid = rows(seed=seed, queries=5, documents=9, features=3)
    data = er.RankingData.from_arrays(X, np.where(np.arange(45) % 9 == 0, 3, y), qid=qid)  # something to find in every query
    assume(tells_apart(measure, data))
    history = one_run(measure=measure, start=start, seed=seed, max_iter=4).fit(data).history_
    values = [progress.value for progress in history]
    assert values == sorted(values)


@pytest.mark.parametrize("measure", ["nDCG@5", "AP", "ERR@3", "RR", "P@3", "PairwiseCorrect", "nDCG(ties='expected')@5"])
def test_it_ends_where_no_single_weight_can_be_bettered(measure):
    data = judged(queries=8)
    model = one_run(measure=measure, tolerance=0).fit(data)
    here = mean(measure, data, model.predict(data))
    for column in data.X.T:
        assert er.profile(data, model.predict(data), column, measure).best().value <= here + 1e-9


@pytest.mark.parametrize(
    "more",
    [
        {"order": "random"},
        {"order": "greedy"},
        {"solver": "powell"},
        {"point": "likelihood"},
        {"point": "plackett-luce"},
        {"restarts": 3},
    ],
)
def test_every_way_learns_and_is_the_same_for_any_number_of_threads(more):
    data = judged(queries=40, noise=0.1)
    ours, theirs = (one_run(**more, threads=threads, seed=2).fit(data) for threads in (1, 2))
    assert ours.weights_.tolist() == theirs.weights_.tolist()
    assert ours.score(judged(queries=40, noise=0.1, seed=2)) > 0.9


def test_weights_keep_to_what_is_allowed():
    data = judged(queries=30)
    assert one_run().fit(data).weights_.min() < 0
    for model in (one_run(nonnegative=True), er.DirectRank(measure="nDCG@5", bags=4, nonnegative=True)):
        assert np.all(model.fit(data).weights_ >= 0)


def test_limits_and_a_start_of_ones_own():
    data = judged(queries=30)
    for bags in (0, 4):
        bounded = one_run(bags=bags, low=-0.25, high=0.5).fit(data).weights_
        assert bounded.min() >= -0.25
        assert bounded.max() <= 0.5
    done = one_run().fit(data)
    again = one_run(start=done.weights_).fit(data)
    assert again.history_[0].value == pytest.approx(done.score(data))
    assert again.score(data) >= done.score(data)
    with pytest.raises(er.errors.SettingError, match=r"x1 starts at -2, which is not between 0 and inf"):
        one_run(start=[1, -2, 0, 0], nonnegative=True).fit(data)
    with pytest.raises(er.errors.SettingError, match="start has 2 weights for 4 features"):
        one_run(start=[1, 2]).fit(data)


def test_documents_left_in_the_order_of_their_grades_teach_nothing():
    """Where all tie, the order in the file would look like a perfect ranking."""
    X, y, qid = rows(queries=30, noise=0.1)
    order = np.lexsort((-y, qid))
    data = er.RankingData.from_arrays(X[order], y[order], qid=qid[order])
    for bags in (0, 3):
        model = er.DirectRank(measure="nDCG@5", start="zero", bags=bags).fit(data)
        assert model.score(judged(queries=30, noise=0.1, seed=1)) > 0.8


def test_more_bags_go_on_where_fewer_ended():
    data = judged()
    few, many = (er.DirectRank(measure="nDCG@5", bags=bags).fit(data).history_ for bags in (2, 4))
    assert [p.value for p in few] == [p.value for p in many[:2]]
    assert [(p.step, p.steps) for p in many] == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_model_of_a_bag_does_no_harm_to_the_queries_that_its_sample_left_out():
    data, start = judged(queries=12, noise=2.0), np.linspace(-1, 1.5, 4)
    for seed in range(8):
        model = er.DirectRank("nDCG(ties='pessimistic')@5", bags=1, start=start, share=1.0, max_iter=3, seed=seed).fit(data)
        _, left_out = bootstrap(data, np.random.default_rng([seed, 0]))
        unseen = er.parse_measure("nDCG(ties='pessimistic')@5").on(data, left_out)
        assert unseen.mean(data.X @ model.weights_) >= unseen.mean(data.X @ start) - 1e-12


def test_a_round_in_a_bag_moves_a_share_of_the_weights():
    data = judged(queries=12, noise=2.0)

    def most_alike(share):
        """The number of weights that stayed as they were, or one more."""
        models = (er.DirectRank("nDCG@5", bags=1, start=np.ones(4), share=share, seed=seed).fit(data) for seed in range(5))
        return [max(np.unique(model.weights_, return_counts=True)[1]) for model in models]

    assert min(most_alike(0.5)) == 2 > min(most_alike(1.0))


def test_bags_that_are_cross_fitted_have_unit_deviation_and_scores_of_queries_they_have_not_seen():
    data = judged(queries=20, noise=0.1)
    ours, theirs = (er.DirectRank("nDCG@5", bags=4, bagging="cross-fit", threads=threads).fit(data) for threads in (1, 2))
    assert ours.weights_.tolist() == theirs.weights_.tolist()
    assert ours.score(judged(queries=20, noise=0.1, seed=2)) > 0.9
    assert mean("nDCG@5", data, ours.oof_) > 0.9
    alone = er.DirectRank("nDCG@5", bags=1, bagging="bootstrap").fit(data)
    assert deviation(alone.predict(data), data.indptr) == pytest.approx(1.0)
    assert 0.9 < deviation(ours.predict(data), data.indptr) <= 1.0 + 1e-12  # the mean of four that are nearly the same


@pytest.mark.parametrize(("start", "method"), [("smoothrank", er.SmoothRank), ("lambdarank", er.LambdaRank)])
def test_a_start_is_what_another_ranker_ends_with(start, method):
    """With validation data, or cross-fitted; queries that do not count are left out of that."""
    data, valid = judged(queries=12, noise=1.0), judged(queries=12, noise=1.0, seed=1)
    theirs = method("nDCG@5").fit(data, valid=valid)
    ours = one_run(start=start).fit(data, valid=valid)
    assert ours.history_[0].value == pytest.approx(theirs.score(data), abs=1e-12)
    assert ours.history_[0].valid == pytest.approx(theirs.score(valid), abs=1e-12)
    theirs = method("nDCG@5", bags=5).fit(data)
    assert one_run(start=start).fit(data).history_[0].value == pytest.approx(theirs.score(data), abs=1e-12)
    idle = replace(data.take_queries(np.arange(12).repeat(2)), query_weight=np.tile([1.0, 0.0], 12))
    assert one_run(start=start).fit(idle).history_[0].value == pytest.approx(theirs.score(data), abs=1e-12)
    for few in (data.take_queries([3]), replace(data.take_queries([3, 4]), query_weight=np.array([1.0, 0.0]))):
        assert np.all(np.isfinite(er.DirectRank("nDCG@5", bags=2, start=start).fit(few).weights_))


def test_validation_chooses_between_starts():
    data, valid = judged(queries=10, noise=2), judged(queries=40, noise=2, seed=1)
    auto = er.DirectRank(measure="nDCG@5", bags=5).fit(data, valid=valid)
    each = [er.DirectRank(measure="nDCG@5", bags=5, start=start).fit(data, valid=valid) for start in ("softmax", "zero")]
    best = max(each, key=lambda model: model.score(valid))
    assert auto.weights_.tolist() == best.weights_.tolist()


def test_query_weights_say_which_queries_count():
    X, y, qid = rows(queries=30, noise=0.0)
    half = qid < 15
    data = er.RankingData.from_arrays(np.where(half[:, None], X, -X), y, qid=qid, query_weight=np.where(np.arange(30) < 15, 1.0, 0.0))
    model = one_run().fit(data)
    assert mean("nDCG@5", judged(queries=30, noise=0.0, seed=4), model.predict(judged(queries=30, noise=0.0, seed=4))) > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bags": -1}, "bags=-1 is out of range"),
        ({"max_iter": 0}, "max_iter=0 is out of range"),
        ({"start": "nowhere"}, "start='nowhere' is not"),
        ({"start": [1.0, np.inf, 0.0, 0.0]}, "start=.* is not"),
        ({"order": "cyclc"}, 'did you mean "cyclic"'),
        ({"window": 0.0}, "window=0.0 is out of range"),
        ({"low": 1.0, "high": 1.0}, "low < high"),
        ({"nonnegative": True, "low": 0.5}, "nonnegative=True has no effect with low=0.5"),
        ({"solver": "powell", "order": "random"}, "order='random' has no effect with solver='powell'"),
        ({"share": 0.5}, "share=0.5 has no effect with bags=0; leave it out, or give bags"),
        ({"bagging": "cross-fit"}, "bagging='cross-fit' has no effect with bags=0"),
        ({"bags": None, "restarts": 2}, r"restarts=2 has no effect with bags=20 \(its value here\)"),
        ({"bags": 3, "solver": "powell"}, "solver='powell' has no effect with bags=3; leave it out, or give bags=0"),
        ({"bags": 3, "tolerance": 0.1}, "tolerance=0.1 has no effect with a single round"),
    ],
)
def test_settings_that_are_wrong_or_without_effect_are_refused(arguments, message):
    with pytest.raises(er.errors.SettingError, match=message):
        one_run(**arguments).fit(judged())


@pytest.mark.parametrize("selection", ["RR", "P@1"])
def test_another_measure_may_select(selection):
    """Of the same starts and rounds, `selection` prefers those that are better by it on the validation data."""
    train, valid = judged(queries=30, noise=1.0), judged(queries=30, noise=1.0, seed=1)
    by_ndcg, by_other = (
        one_run(restarts=5, start="random", seed=3, selection=measure).fit(train, valid=valid) for measure in (None, selection)
    )
    assert mean(selection, valid, by_other.predict(valid)) > mean(selection, valid, by_ndcg.predict(valid))


def test_what_is_said_of_bags_depends_on_the_data(monkeypatch):
    monkeypatch.setattr("exactrank.rankers.directrank.MANY_QUERIES", 10)
    assert er.DirectRank("nDCG@5", restarts=2).fit(judged(queries=12)).model_.training["steps"] > 2
    with pytest.raises(er.errors.SettingError, match="restarts=2 has no effect with bags=20"):
        er.DirectRank("nDCG@5", restarts=2).fit(judged(queries=9))
    assert er.DirectRank("nDCG@5", bags=2, max_iter=3, tolerance=0.1).fit(judged()).model_.training["steps"] == 2


@pytest.mark.parametrize("measure", ["AP(rel=9)", "nDCG(short='zero')@99", "AP(rel=9, empty='skip')"])
def test_a_measure_that_cannot_tell_rankings_apart(measure):
    with pytest.raises(er.errors.DataError, match=r"nothing to learn.*is the same for every ranking"):
        one_run(measure=measure).fit(judged())


@given(st.integers(0, 200), st.floats(-2, 2), st.floats(0.01, 3), st.booleans())
def test_the_likeliest_point_of_an_interval(seed, low, width, as_published):
    data, rng = judged(seed=seed, queries=4), np.random.default_rng(seed)
    likelihood = IdealLikelihood(er.measures.NDCG(k=3).on(data), as_published=as_published)
    s, t = rng.normal(size=data.n_documents), rng.normal(size=data.n_documents)
    alpha = likelihood.best(s, t, Interval(low, low + width, 0.0), low + width / 2)
    assert low <= alpha <= low + width

    def log_likelihood(a):
        total = 0.0
        for begin, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
            y, score = data.y[begin:end], (s + a * t)[begin:end]
            ideal = score[np.argsort(-y, kind="stable")]
            ranked = len(y) if as_published else np.count_nonzero(y > y.min())
            total += sum(ideal[j] - np.log(np.exp(ideal[j:]).sum()) for j in range(min(3, ranked)))
        return total

    grid = np.linspace(low, low + width, 200)
    slope, curvature = likelihood.slope(s, t, alpha)
    assert log_likelihood(alpha) >= max(map(log_likelihood, grid)) - 1e-3 * width * (1 + abs(slope))  # at an end it stops just inside
    h = 1e-4
    assert slope == pytest.approx((log_likelihood(alpha + h) - log_likelihood(alpha - h)) / (2 * h), abs=1e-5)
    assert curvature <= 1e-12


@given(st.integers(0, 50), st.sampled_from(["nDCG@5", "AP", "Bpref", "PairwiseCorrect", "DCG"]))
def test_the_softmax_slope_is_that_of_its_value(seed, name):
    data, rng = judged(seed=seed, queries=4), np.random.default_rng(seed)
    ours = SoftmaxLikelihood(er.parse_measure(name).over(data, GivenWeights(rng.random(4) + 0.1, "drawn"), 1), 0.1)
    theta, h = rng.normal(size=4), 1e-5
    slope = ours.value_and_slope(theta)[1]
    theirs = [(ours.value_and_slope(theta + h * e)[0] - ours.value_and_slope(theta - h * e)[0]) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(slope, theirs, atol=1e-8)
    scaled = InDeviations(ours)
    assert np.abs(scaled.value_and_slope(maximum(scaled, np.zeros(4), 200))[1]).max() < 1e-3


@given(st.integers(0, 50))
def test_ridge_regression_is_scikit_learns_on_centered_data(seed):
    data = judged(seed=seed, queries=7)
    weight = np.random.default_rng(seed).random(7) + 0.1
    X, y = center(data.X, data.indptr), center(data.y, data.indptr)
    each = np.repeat(weight, data.sizes)
    unit = np.sqrt(each @ X**2)
    theirs = Ridge(alpha=0.5, fit_intercept=False).fit(X / unit, y, sample_weight=each).coef_ / unit
    np.testing.assert_allclose(ridge_weights(replace(data, query_weight=weight), 0.5), theirs, rtol=1e-9)


@given(st.integers(0, 50))
def test_ridge_regression_is_the_same_by_documents_where_features_outnumber_them(seed):
    rng = np.random.default_rng(seed)
    X, y, weight = rng.standard_normal((12, 40)), rng.integers(0, 3, 12), rng.random(4) + 0.1
    X[:, 3] = 7.0
    wide = er.RankingData.from_arrays(X, y, group=[3] * 4, query_weight=weight)
    Z, each = center(wide.X, wide.indptr), np.repeat(weight, 3)
    unit = np.where(np.arange(40) == 3, 1.0, np.sqrt(each @ Z**2))
    theirs = Ridge(alpha=0.5, fit_intercept=False).fit(Z / unit, center(wide.y, wide.indptr), sample_weight=each).coef_ / unit
    np.testing.assert_allclose(ridge_weights(wide, 0.5), theirs, rtol=1e-7, atol=1e-12)


def test_long_data_is_centered_in_blocks(monkeypatch):
    data = judged(queries=30)
    whole = ridge_weights(data)
    monkeypatch.setattr("exactrank.data.blocks.DOCUMENTS_PER_BLOCK", 20)
    np.testing.assert_allclose(ridge_weights(data), whole, rtol=1e-12)


def test_a_place_is_what_evaluation_says():
    data = judged(queries=9)
    problem = LinearProfile.of(er.measures.NDCG(k=5).over(data))
    theta = np.array([0.3, -1.0, 0.5, 2.0])
    place = problem.at(theta)
    assert place.value == pytest.approx(mean("nDCG@5", data, data.X @ theta), abs=1e-12)
    for direction in (2, np.array([1.0, 0.0, -1.0, 0.5])):
        best = place.best(direction)
        moved = place.move(direction, place.choose_alpha(direction, best))
        assert moved.value == pytest.approx(best.value, abs=1e-12)
        assert moved.value == pytest.approx(mean("nDCG@5", data, data.X @ moved.theta), abs=1e-12)
        assert place.profile(direction).best().value == pytest.approx(best.value, abs=1e-12)
    assert deviation(data.X[:, 0], data.indptr) == pytest.approx(np.sqrt(np.mean(center(data.X[:, 0], data.indptr) ** 2)))
