"""Laws that every ranker keeps, and the step search of Metzler & Croft as one of them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import exactrank as er
from exactrank.learning.objectives.linear_profile import LinearValue
from exactrank.rankers import RANKERS
from exactrank.rankers.training_data import in_content_order
from tests.strategies import MEASURES

#: Settings that make a ranker quick on tiny data.
QUICK = {
    "blend": {"members": "ridge, mart(trees=5, min_documents=1)", "bags": 3, "threads": 1},
    "directrank": {"bags": 3},
    "coordinate-ascent": {"restarts": 2, "max_iter": 3, "tries": 8},
    "spsarank": {"max_iter": 60},
    "ranknet": {"max_iter": 20},
    "lambdarank": {"max_iter": 20, "trial_iter": 3},
    "listnet": {"max_iter": 20},
    "listmle": {"max_iter": 20},
    "rankcosine": {"max_iter": 20},
    "smoothrank": {"max_iter": 10, "first": 4.0, "last": 0.25},
    "approxndcg": {"max_iter": 20},
    "mart": {"trees": 30, "min_documents": 1, "missing": "error", "bags": 0, "threads": 1},
    "lambdamart": {"trees": 30, "min_documents": 1, "missing": "error", "bags": 0, "threads": 1},
    "directrank-trees": {"trees": 30, "min_documents": 1, "missing": "error", "bags": 0, "threads": 1},
    "adarank": {"max_iter": 30},
    "rankboost": {"max_iter": 30},
    "torch": {"hidden": (16,), "max_iter": 20, "learning_rate": 0.01},
}
CLOSED_FORM = {"ridge"}
#: Without validation data the last iterate is the best: its loss is the smallest, whatever the measure.
BY_LOSS = {"rankboost", "ranksvm", "structuredrank", "svmmap"}
EVERY_RANKER = pytest.mark.parametrize("name", RANKERS)
#: Those of which a step is a better model, and which do not learn from validation data: a blend has laws of its own (test_blend.py).
EVERY_CLIMBER = pytest.mark.parametrize("name", [name for name in RANKERS if name != "blend"])


def quick(name, **more):
    return RANKERS[name](**({"measure": "nDCG@5"} | QUICK.get(name, {}) | more))


def rows(queries=12, documents=8, features=4, seed=0, noise=0.5):
    """(X, y, qid) whose grades follow a linear function, but for noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((queries * documents, features)).astype(np.float32)
    goodness = X @ np.linspace(-1, 1.5, features) + noise * rng.standard_normal(len(X))
    return X, np.digitize(goodness, [0.5, 1.5, 2.5]), np.repeat(np.arange(queries), documents)


def judged(**shape):
    X, y, qid = rows(**shape)
    return er.RankingData.from_arrays(X, y, qid=qid)


def mean(measure, data, scores):
    return er.evaluate(data, scores, measure).means[measure]


@EVERY_RANKER
def test_scikit_learn_conventions(name):
    ranker = quick(name, seed=3)
    params = ranker.get_params()
    assert {"measure", "seed", "threads", "missing"} <= set(params)
    copy = clone(ranker)
    assert copy is not ranker
    assert copy.get_params() == params
    assert ranker.set_params(seed=9) is ranker
    assert ranker.get_params() == params | {"seed": 9}
    assert vars(RANKERS[name]()) == RANKERS[name]().get_params(), "a constructor only stores its parameters"
    assert ranker.name == name


@EVERY_RANKER
def test_nothing_is_there_before_fit(name, tmp_path):
    ranker, (X, y, qid) = quick(name), rows()
    for use in (
        lambda: ranker.predict(X),
        lambda: ranker.score(X, y, qid=qid),
        lambda: ranker.save(tmp_path / "m.json"),
        lambda: ranker.weights_,
    ):
        with pytest.raises(NotFittedError):
            use()


@EVERY_RANKER
def test_ways_to_give_data_agree(name):
    X, y, qid = rows()
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(4)])
    fitted = [
        quick(name).fit(X, y, qid=qid),
        quick(name).fit(X.astype(np.float64), y, qid=[f"q{q}" for q in qid]),
        quick(name).fit(X, y, group=[8] * 12),
        quick(name).fit(er.RankingData.from_arrays(X, y, qid=qid)),
        quick(name).fit(frame, y, qid=qid),
    ]
    theirs = fitted[0].predict(X)
    for ranker in fitted:
        assert np.array_equal(ranker.predict(X), theirs)
        assert ranker.model_.data == {"queries": 12, "documents": 96, "checksum": fitted[0].model_.data["checksum"]}
        assert ranker.n_features_in_ == 4
    assert [hasattr(ranker, "feature_names_in_") for ranker in fitted] == [False, False, False, True, True]
    assert fitted[4].feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]


@EVERY_RANKER
@settings(max_examples=3)
@given(seed=st.integers(0, 1000))
def test_rows_may_come_in_any_order_of_queries(name, seed):
    """Interleaved queries train the same model, and predictions come back in the caller's order."""
    X, y, qid = rows()
    rng = np.random.default_rng(seed)
    order = np.concatenate([np.arange(0, 96, 8), rng.permutation(np.flatnonzero(np.arange(96) % 8))])  # a row of each query first
    grouped, mixed = quick(name).fit(X, y, qid=qid), quick(name).fit(X[order], y[order], qid=qid[order])
    assert np.array_equal(mixed.model_.scorer.score(X), grouped.model_.scorer.score(X))
    assert np.array_equal(mixed.predict(X[order]), mixed.predict(X)[order])
    data = er.RankingData.from_arrays(X[order], y[order], qid=qid[order])
    assert data.order is not None
    assert np.array_equal(mixed.predict(data), mixed.predict(X[order]))


@EVERY_RANKER
def test_the_same_seed_gives_the_same_model_on_any_number_of_threads(name):
    data, valid = judged(), judged(seed=1)
    models = [quick(name, threads=threads, seed=5).fit(data, valid=valid).model_ for threads in (1, 2, None)]
    assert len({model.scorer.score(data.X).tobytes() for model in models}) == 1
    assert models[0].training == models[1].training == models[2].training


@EVERY_CLIMBER
def test_what_is_recorded_is_true(name):
    data, valid = judged(), judged(seed=1)
    alone, chosen = quick(name).fit(data), quick(name).fit(data, valid=valid)
    assert alone.model_.training["value"] == mean("nDCG@5", data, alone.predict(data)) == alone.score(data)
    assert alone.model_.training["valid"] is None
    assert chosen.model_.training["valid"] == mean("nDCG@5", valid, chosen.predict(valid)) == chosen.score(valid)
    assert chosen.model_.training["value"] == mean("nDCG@5", data, chosen.predict(data))
    assert (alone.model_.ranker, alone.model_.seed, alone.model_.library) == (type(alone).__name__, 0, er.__version__)
    assert alone.model_.measure == repr(er.parse_measure("nDCG@5"))
    assert alone.model_.params | {"backend": None} == alone.get_params()
    assert alone.model_.training["steps"] == alone.history_[-1].step


@EVERY_RANKER
def test_it_learns(name):
    train, test = judged(queries=60, noise=0.1), judged(queries=60, noise=0.1, seed=2)
    assert quick(name).fit(train).score(test) > 0.9


@EVERY_RANKER
def test_a_fitted_ranker_is_kept_by_its_file_and_by_pickle(name, tmp_path):
    data = judged()
    ranker = quick(name).fit(data)
    ranker.save(tmp_path / "m.json")
    assert np.array_equal(er.load(tmp_path / "m.json").predict(data), ranker.predict(data))
    assert np.array_equal(pickle.loads(pickle.dumps(ranker)).predict(data), ranker.predict(data))
    with pytest.raises(er.errors.OutputExistsError):
        ranker.save(tmp_path / "m.json")
    if isinstance(ranker.model_.scorer, er.models.Linear):
        assert ranker.weights_.shape == (4,)
    else:
        with pytest.raises(AttributeError, match=r"weights_: a \w+ model has no weights; only linear models do"):
            _ = ranker.weights_
    assert hasattr(ranker, "weights_") == isinstance(ranker.model_.scorer, er.models.Linear)
    assert type(ranker).__name__ in ranker._repr_html_()
    assert ("weights_" in dir(ranker)) == hasattr(ranker, "weights_")


@EVERY_CLIMBER
def test_every_checkpoint_is_a_true_model_and_no_worse_than_the_last(name, monkeypatch):
    monkeypatch.setattr("exactrank.learning.training.run.SECONDS_BETWEEN_CHECKPOINTS", -1.0)
    monkeypatch.setattr("exactrank.learning.training.run.TIMES_BETWEEN_CHECKPOINTS", -1.0)
    monkeypatch.setattr("exactrank.learning.training.selection.WINDOW", 1)  # each step counts by itself, and any gain counts
    monkeypatch.setattr("exactrank.learning.training.selection.MARGIN", 0.0)
    data, valid = in_content_order(judged()), in_content_order(judged(seed=1))
    for held_out in (None, valid):
        models = []
        ranker = quick(name).fit(data, valid=held_out, checkpoint=models.append)
        judge = data if held_out is None else valid
        reached = [mean("nDCG(ties='pessimistic')@5", judge, model.predict(judge)) for model in models]
        assert reached == sorted(reached) or (name in BY_LOSS and held_out is None)
        for model in models:
            assert model.training["value"] == mean("nDCG@5", data, model.predict(data))
            assert held_out is None or model.training["valid"] == mean("nDCG@5", valid, model.predict(valid))
            assert model.training["interrupted"]
        assert not ranker.model_.training["interrupted"]


@EVERY_CLIMBER
@pytest.mark.parametrize("after", [1, 3])
def test_ctrl_c_keeps_the_best_so_far(name, after):
    data, steps = in_content_order(judged()), []

    def listener(progress):
        steps.append(progress)
        if len(steps) == after:
            raise KeyboardInterrupt

    ranker = quick(name).fit(data, progress=listener)
    if name in CLOSED_FORM and after > 1:
        assert not ranker.model_.training["interrupted"], "it is done at once"
        assert len(steps) == 1
        return
    assert len(steps) == after
    assert ranker.model_.training["interrupted"]
    best = steps[-1].value if name in BY_LOSS else max(progress.value for progress in steps)
    assert ranker.model_.training["value"] == best == ranker.score(data)
    assert len(ranker.history_) == after
    again = []
    resumed = quick(name).fit(data, resume=ranker.model_, progress=again.append)
    assert [*resumed.history_] == [*steps, *again]  # nothing was done twice


@EVERY_RANKER
def test_missing_values_by_policy(name):
    X, y, qid = rows()
    X[3, 1] = X[40, 1] = X[7, 2] = np.nan
    with pytest.raises(er.errors.DataError, match=r"3 values are missing \(x1: 2, x2: 1\).*missing"):
        quick(name, missing="error").fit(X, y, qid=qid)
    whole = rows(seed=1)
    with pytest.raises(er.errors.DataError, match=r"\(x1: 2, x2: 1\)"):
        quick(name, missing="error").fit(*whole[:2], qid=whole[2], valid=(X, y, qid))
    for policy, fill in {"zero": np.zeros(4), "mean": np.nanmean(X.astype(np.float64), axis=0)}.items():
        ranker = quick(name, missing=policy).fit(X, y, qid=qid, valid=(X, y, qid))
        by_hand = np.where(np.isnan(X), fill.astype(np.float32), X)
        assert np.array_equal(ranker.predict(X), quick(name).fit(by_hand, y, qid=qid, valid=(by_hand, y, qid)).predict(by_hand))
        assert ranker.model_.training["value"] == ranker.score(X, y, qid=qid)


@EVERY_RANKER
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, qid: {"X": X, "y": np.ones(96), "qid": qid}, "nothing to learn: every query has documents of a single grade"),
        (lambda X, y, qid: {"X": X, "y": qid, "qid": qid}, "nothing to learn: every query has documents of a single grade"),
        (lambda X, y, qid: {"X": np.ones_like(X), "y": y, "qid": qid}, "nothing to learn: all 4 features are constant within each query"),
        (lambda X, y, qid: {"X": np.c_[qid, qid], "y": y, "qid": qid}, "nothing to learn: all 2 features are constant within each query"),
        (lambda X, y, qid: {"X": None, "y": y, "qid": qid}, "nothing to learn: the data has no features"),
        (lambda X, y, qid: {"X": X}, "there are no grades"),
        (lambda X, y, qid: {"X": X, "y": y}, "give either qid"),
        (lambda X, y, qid: {"X": X, "y": y[1:], "qid": qid}, "X has 96 rows but y has 95"),
        (lambda X, y, qid: {"X": judged(), "qid": qid}, "RankingData holds qid already"),
        (lambda X, y, qid: {"X": judged(), "y": y, "qid": qid}, "holds y, qid already; leave them out"),
        (lambda X, y, qid: {"X": judged(), "valid": (X, y)}, "valid must be a RankingData"),
        (lambda X, y, qid: {"X": judged(), "valid": (X[:, :3], y, qid)}, "4 names for 3 features"),
    ],
)
def test_bad_data_is_refused(name, change, message):
    with pytest.raises(er.errors.DataError, match=message):
        quick(name).fit(**change(*rows()))


@EVERY_RANKER
def test_bad_settings_are_refused(name):
    with pytest.raises(er.errors.MeasureError, match="did you mean"):
        quick(name, measure="nDGC@10").fit(judged())
    with pytest.raises(er.errors.SettingError, match="missing='median' is not"):
        quick(name, missing="median").fit(judged())
    with pytest.raises(er.errors.IncompatibleError, match="it lacks x3; it has besides none"):
        quick(name).fit(judged(), valid=judged(features=3))


@EVERY_CLIMBER
def test_one_query_and_one_feature_are_enough(name):
    assert quick(name, seed=1).fit(judged(queries=1)).score(judged(queries=1)) > 0.5
    falling = quick(name, measure="nDCG@1").fit([[3.0], [2.0], [1.0]], [0, 0, 2], group=[3])
    assert falling.predict([[3.0]]) < falling.predict([[1.0]])
    assert falling.score([[3.0], [1.0]], [0, 1], group=[2]) == 1.0


@EVERY_RANKER
def test_validation_features_are_matched_by_name(name):
    X, y, qid = rows(seed=1)
    turned = er.RankingData.from_arrays(X[:, ::-1], y, qid=qid, feature_names=["x3", "x2", "x1", "x0"])
    ours, theirs = (quick(name).fit(judged(), valid=valid) for valid in (turned, judged(seed=1)))
    assert ours.model_.training == theirs.model_.training
    assert np.array_equal(ours.predict(X), theirs.predict(X))


@EVERY_CLIMBER
def test_query_weights_count(name):
    """Two queries that contradict each other: the heavier one decides."""
    X, y = [[1.0], [0.0], [1.0], [0.0]], [1, 0, 0, 1]
    for weight in ([3.0, 1.0], [1.0, 3.0]):
        ranker = quick(name, measure="nDCG(ties='expected')@1").fit(X, y, group=[2, 2], query_weight=weight)
        assert np.sign(np.diff(ranker.predict([[0.0], [1.0]])))[0] == np.sign(weight[0] - weight[1])
        assert ranker.model_.training["value"] == 0.75


def test_queries_that_all_weigh_nothing_are_refused():
    data = er.RankingData.from_arrays(judged().X, judged().y, group=judged().sizes, query_weight=np.arange(judged().n_queries) > 1)
    nothing = data.take_queries([0, 1])
    for train, valid in ((nothing, None), (data, nothing)):
        with pytest.raises(er.errors.DataError, match="query_weight is zero everywhere"):
            quick("ridge").fit(train, valid=valid)


@EVERY_CLIMBER
def test_validation_data_on_which_no_query_counts_is_refused(name):
    valid = er.RankingData.from_arrays(judged().X, np.zeros(judged().n_documents), group=judged().sizes)
    with pytest.raises(er.errors.DataError, match="no query counts"):
        quick(name, measure="nDCG(empty='skip')@3").fit(judged(), valid=valid)


def test_the_training_measure_never_falls_from_one_start():
    ranker = quick("coordinate-ascent", restarts=1, max_iter=10).fit(judged())
    values = [progress.value for progress in ranker.history_]
    assert values == sorted(values)
    assert values[-1] > values[0]
    assert np.sum(np.abs(ranker.weights_ * judged().moments[1])) == pytest.approx(1.0)
    as_published = quick("coordinate-ascent", restarts=1, standardize=False).fit(judged())
    assert np.sum(np.abs(as_published.weights_)) == pytest.approx(1.0)


def test_restarts_count_as_one_run():
    first, five = (quick("coordinate-ascent", restarts=n).fit(judged()) for n in (1, 5))
    assert five.model_.training["value"] >= first.model_.training["value"]
    steps = [progress.step for progress in five.history_]
    assert steps == sorted(steps)
    assert all(progress.step <= progress.steps for progress in five.history_)
    assert five.model_.training["value"] == max(progress.value for progress in five.history_)


@pytest.mark.parametrize("bad", [{"restarts": 0}, {"max_iter": 0}, {"step": 0.0}, {"growth": 0.5}, {"tries": 0}, {"tolerance": -1.0}])
def test_settings_of_coordinate_ascent_are_checked(bad):
    with pytest.raises(er.errors.SettingError, match=f"{next(iter(bad))}=.* is out of range"):
        quick("coordinate-ascent", **bad).fit(judged())


@given(MEASURES, st.integers(0, 10), st.sampled_from([1, 30, 1 << 16]), st.booleans())
def test_the_objective_is_the_evaluation(measure, seed, at_once, weighted):
    """Ties included: features are small integers."""
    rng = np.random.default_rng(seed)
    X, y, weight = rng.integers(0, 3, (12, 5)), rng.integers(0, 4, 12), rng.random(3) + 0.1 if weighted else None
    data = er.RankingData.from_arrays(X, y, group=[4, 3, 5], query_weight=weight)
    thetas = np.tile(rng.integers(-2, 3, 5).astype(float), (6, 1))
    thetas[:, 1] = rng.integers(-2, 3, 6)
    theirs = [er.evaluate(data, X @ theta, measure).means[str(measure)] for theta in thetas]
    problem = LinearValue(measure.over(data))
    if not np.all(np.isfinite(theirs)):
        with pytest.raises(er.errors.DataError, match="no query counts"):
            problem.value(thetas[0])
        return
    assert [problem.value(theta) for theta in thetas] == theirs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exactrank.learning.objectives.linear_profile.SCORES_PER_BLOCK", at_once)
        assert problem.values_along(thetas[0], 1, thetas[:, 1]).tolist() == theirs


def test_what_no_weights_exceed_is_known_where_every_query_reaches_its_ideal_or_has_only_one_value():
    data = er.RankingData.from_arrays([[2.0], [0.0], [1.0], [5.0], [3.0]], [2, 0, 1, 0, 0], group=[3, 2])
    problem = LinearValue(er.measures.NDCG(k=2).over(data))
    assert problem.upper_bound == problem.value(np.ones(1)) == 0.5
    assert LinearValue(er.parse_measure("DCG@2").over(data)).upper_bound == np.inf
