"""Contenders of a comparison: those of this library, peers, files and programs, and how they are written."""

import ast
import json
import keyword
import os
import pickle
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from lightgbm import LGBMRanker
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import ParameterSampler
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from xgboost import XGBRanker

import exactrank as er
from exactrank._support.settings import Range
from exactrank.compare import CONTENDERS
from exactrank.compare.contender import MOST_POINTS, Contender, ContenderTask, TrainingCurve
from exactrank.compare.contenders import as_contender, contenders_of, estimator as estimators, find_contender, program as programs
from exactrank.compare.contenders.peer import Peer, StoppingMeasure
from exactrank.compare.contenders.program import PipeTail, Program
from exactrank.compare.contenders.ranker import RankerContender
from exactrank.compare.contenders.scores import ScoresFile
from exactrank.data.folds import Fold
from exactrank.errors import DataError, SettingError
from exactrank.rankers import RANKERS
from exactrank.rankers.base import Ranker
from exactrank.rankers.notation import Method, parse_method, split_methods
from tests.events import HANGS, wait_until
from tests.rankers.test_rankers import EVERY_RANKER, QUICK, judged

MEASURE = "nDCG@5"
#: That make peers quick on tiny data.
FEW = {"trees": 30, "patience": 10}
#: The same for trials: what is short here is no part of a space.
SHORT = {"spsarank": {"max_iter": 20, "restarts": 1}, "rankboost": {"max_iter": 20}, "coordinate-ascent": {"restarts": 1, "max_iter": 2}}


def peer(name, **settings):
    if name == "catboost":
        pytest.importorskip("catboost")
    return CONTENDERS[name](**(FEW | settings))


EVERY_PEER = pytest.mark.parametrize("name", CONTENDERS)


def parts(**shape):
    return [judged(**{"queries": queries, "documents": 8, "seed": seed} | shape) for seed, queries in enumerate((20, 10, 12))]


def task(measure=MEASURE, train=None, valid=None, test=None, rows=None, **more):
    train, valid, test = (given or made for given, made in zip((train, valid, test), parts(), strict=True))
    rows = np.arange(test.n_documents) if rows is None else rows
    return ContenderTask("toy", Fold("Fold2", train, valid, test), rows, measure, **({"seed": 3, "threads": 1} | more))


def value(measure, data, scores):
    return er.evaluate(data, scores, measure).means[measure]


class Third(Contender):
    """One of another package, with a setting of its own."""

    def __init__(self, name="third", power=1):
        self.name, self.power = name, power

    @property
    def about(self):
        return "made elsewhere"

    def fit(self, task, settings):
        raise NotImplementedError


class Unnamed(Third):
    def __init__(self):
        super().__init__("unnamed")


# what tuning may choose from


@EVERY_RANKER
def test_a_space_is_about_parameters(name):
    kind = RANKERS[name]
    params = kind().get_params()
    assert 1 <= len(kind.space) <= 6
    assert kind.space.keys() <= params.keys()
    for parameter, choices in kind.space.items():
        default = params[parameter]
        if isinstance(choices, Range) and default not in (None, "auto"):
            assert choices.low <= default <= choices.high, "the space surrounds the defaults"
            assert choices.whole == isinstance(default, int)
    assert Ranker.space == {}


@EVERY_PEER
def test_spaces_of_peers_surround_their_defaults(name):
    contender = peer(name)
    for parameter, choices in contender.ranges.items():
        assert choices.low <= contender.defaults[parameter] <= choices.high
        assert choices.whole == isinstance(contender.defaults[parameter], int)


@EVERY_RANKER
@settings(max_examples=2)
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_drawn_can_be_fitted(name, seed):
    kind = RANKERS[name]
    (drawn,) = ParameterSampler(dict(kind.space), 1, random_state=seed)
    drawn |= SHORT.get(name, {})
    quick = {setting: given for setting, given in QUICK.get(name, {}).items() if setting not in {*kind.space, *drawn}}
    fitted = RankerContender(name, kind, quick).fit(task(), drawn)
    idle = kind(**quick, **drawn).ineffective_settings(
        task().fold.train, validated=True
    )  # what has no effect beside the others is left out
    plain = json.loads(json.dumps(drawn))  # as a file has it, tuples as lists
    assert all(fitted.settings[setting] in (given, plain[setting]) for setting, given in drawn.items() if setting not in idle)
    assert np.isfinite(fitted.scores("test", task().fold.test)).all()


@EVERY_PEER
def test_what_is_drawn_for_a_peer_can_be_fitted(name):
    for drawn in ParameterSampler(dict(peer(name).space), 3, random_state=0):
        fitted = peer(name).fit(task(), drawn)
        assert drawn.items() <= fitted.settings.items()


# rankers


@EVERY_RANKER
def test_a_ranker_is_what_it_is_outside(name):
    """Trained as by hand: the same model, from the same seed, with the comparison's measure."""
    contender, contender_task = RankerContender(name, RANKERS[name], QUICK.get(name, {})), task()
    fitted = pickle.loads(pickle.dumps(contender)).fit(contender_task, {})
    measure = "AP" if name == "svmmap" else MEASURE
    theirs = RANKERS[name](**({"seed": 3, "threads": 1} | QUICK.get(name, {}) | {"measure": measure}))
    theirs.fit(contender_task.fold.train, valid=contender_task.fold.valid)
    assert np.array_equal(fitted.scores("test", contender_task.fold.test), theirs.predict(contender_task.fold.test))
    assert fitted.settings["measure"] == measure
    assert theirs.get_params().keys() <= fitted.settings.keys()
    assert contender.about.endswith(".")
    assert len(fitted.curve) == min(len(theirs.history_), MOST_POINTS)
    assert [point.valid for point in fitted.curve] == [progress.valid for progress in theirs.history_]
    seconds = [point.seconds for point in fitted.curve]
    assert seconds == sorted(seconds)
    assert seconds[0] >= 0


def test_settings_that_are_fixed_win_and_leave_the_space():
    contender = find_contender("lambdamart(leaves=4, trees=3, seed=9, measure='AP')")
    assert contender.space.keys() == er.LambdaMART.space.keys() - {"leaves"}
    result = contender.fit(task(), {"learning_rate": 0.25}).settings
    assert (result["leaves"], result["trees"], result["seed"], result["measure"], result["learning_rate"]) == (4, 3, 9, "AP", 0.25)
    assert repr(contender) == "LambdaMART(leaves=4, trees=3, seed=9, measure='AP')"


@pytest.mark.parametrize(
    ("name", "measure", "trained"),
    [
        ("svmmap", "AP(rel=2)", "AP(rel=2)"),
        ("svmmap", "nDCG@5", "AP"),
        ("svmmap", "AP@5", "AP"),
        ("smoothrank", "AP", "nDCG@10"),
        ("smoothrank", "P@5", "P@5"),
        ("structuredrank", "ERR@10", "nDCG@10"),
        ("adarank", "DCG@5", "nDCG@10"),
        ("ridge", "ERR@10", "ERR@10"),
    ],
)
def test_a_ranker_that_cannot_train_on_the_measure_trains_on_its_own(name, measure, trained):
    assert RankerContender(name, RANKERS[name], QUICK.get(name, {})).fit(task(measure), {}).settings["measure"] == trained


def test_a_setting_that_is_wrong_is_not_taken_for_a_measure_that_is():
    with pytest.raises(er.errors.SettingError, match="start="):
        find_contender("spsarank(start='ridge', hidden=3)").fit(task(), {})
    with pytest.raises(er.errors.IncompatibleError, match="smoothed"):
        find_contender("smoothrank(measure='AP')").fit(task(), {})


def test_weights_are_what_a_step_of_a_feature_is_worth():
    train, valid, test = parts()
    scale = np.array([1, 10, 0.1, 1], np.float32)
    ours, scaled = (
        find_contender("ridge(l2=1e-9)").fit(task(train=replace(train, X=train.X * by), valid=valid, test=test), {}).weights
        for by in (np.float32(1), scale)
    )
    assert ours.kind == "weight x standard deviation"
    assert ours.names == train.feature_names
    assert np.allclose(ours.values, scaled.values, rtol=1e-3, atol=1e-6)
    spread = find_contender("ridge").fit_ranker(task(), {}, TrainingCurve()).weights_ * train.X.std(axis=0)
    assert np.allclose(find_contender("ridge").fit(task(), {}).weights.values, spread, rtol=1e-5)


def test_weights_of_trees_steps_and_networks():
    trees = find_contender("lambdamart(trees=5, min_documents=1, bags=0)").fit(task(), {}).weights
    assert trees.kind == "share of gain"
    assert sum(trees.values) == pytest.approx(1)
    boosted = find_contender("rankboost(max_iter=1)").fit(task(), {}).weights
    assert np.count_nonzero(boosted.values) == 1
    assert find_contender("ranknet(hidden=2, max_iter=2)").fit(task(), {}).weights is None


def test_a_model_file_is_left(tmp_path):
    fitted = find_contender("ridge").fit(task(), {})
    for _ in range(2):  # a second time too: a run that is taken up writes again
        fitted.save(tmp_path, "toy-ridge")
    test = task().fold.test
    assert np.array_equal(er.load(tmp_path / "toy-ridge.json").predict(test), fitted.scores("test", test))


def test_a_fit_that_was_interrupted_is_none(monkeypatch):
    contender = find_contender("lambdamart(trees=20, bags=0)")
    monkeypatch.setattr(TrainingCurve, "add", lambda self, step, *rest: (_ for _ in ()).throw(KeyboardInterrupt) if step == 5 else None)
    with pytest.raises(KeyboardInterrupt):
        contender.fit(task(), {})


@given(n=st.integers(0, 3 * MOST_POINTS))
@settings(max_examples=30)
def test_curves_are_thinned_evenly(n):
    curve = TrainingCurve()
    for step in range(n):
        curve.add(step, 0.0, None)
    steps = [point.step for point in curve.points]
    assert len(steps) == min(n, MOST_POINTS)
    assert steps == sorted(set(steps))
    if n:
        assert (steps[0], steps[-1]) == (0, n - 1) or n == 1
        assert max(np.diff(steps), default=1) <= -(-n // MOST_POINTS) + 1


# peers


@EVERY_PEER
def test_a_peer_keeps_what_validation_likes_best(name):
    train, valid, test = parts(noise=2.0)
    fitted = pickle.loads(pickle.dumps(peer(name, trees=80, patience=20))).fit(task(MEASURE, train, valid, test, threads=2), {})
    best = max(fitted.curve, key=lambda point: point.valid)
    assert best.step <= len(fitted.curve) - 20, "trees after the best are not kept"
    for part, data, theirs in (("train", train, best.train), ("valid", valid, best.valid)):
        assert value(MEASURE, data, fitted.scores(part, data)) == pytest.approx(theirs, abs=1e-6)
    assert [point.step for point in fitted.curve] == list(range(1, len(fitted.curve) + 1))


@EVERY_PEER
def test_a_peer_learns_and_says_how(name):
    fitted, test = peer(name).fit(task(), {}), task().fold.test
    assert value(MEASURE, test, fitted.scores("test", test)) > 0.75
    assert {"trees": 30, "seed": 3, "threads": 1}.items() <= fitted.settings.items()
    assert sum(fitted.weights.values) == pytest.approx(1)
    assert np.argmin(fitted.weights.values) == 1, "the second feature counts least in the data"


def test_ties_count_against_the_trees_that_leave_them():
    """As for our own trees: data that lists the best documents first must not make a stump look perfect."""
    train, valid, _ = parts()
    sorted_first = replace(valid, y=-np.sort(-valid.y.reshape(10, 8), axis=1).ravel())
    judge = StoppingMeasure(er.parse_measure(MEASURE), train, sorted_first, threads=1)
    judge(False, np.zeros(train.n_documents))
    assert judge(True, np.zeros(80)) == pytest.approx(value("nDCG(ties='pessimistic')@5", sorted_first, np.zeros(80)))
    assert judge.curve.points[0].valid == 1.0
    expected = StoppingMeasure(er.parse_measure("nDCG(ties='expected')@5"), train, sorted_first, threads=1)
    assert expected(True, np.zeros(80)) == pytest.approx(value("nDCG(ties='expected')@5", sorted_first, np.zeros(80)))


@EVERY_PEER
def test_a_peer_goes_by_our_measure_and_its_patience(name):
    """Validation documents that no tree tells apart: none is better than the first, and training ends after ``patience`` more."""
    train, valid, test = parts()
    same = replace(valid, X=np.zeros_like(valid.X))
    fitted = peer(name, trees=200, patience=4).fit(task("RR", train, same, test), {})
    assert len(fitted.curve) in (5, 6)
    assert len({point.valid for point in fitted.curve}) == 1


@EVERY_PEER
def test_same_seed_same_scores_and_another_seed_others(name):
    drawn = {"lightgbm": {"bagging_fraction": 0.5}, "xgboost": {"subsample": 0.5}, "catboost": {"rsm": 0.5}}[name]
    test = task().fold.test
    ours, again, other = (peer(name).fit(task(seed=seed), drawn).scores("test", test) for seed in (1, 1, 2))
    assert np.array_equal(ours, again)
    assert not np.array_equal(ours, other)


@EVERY_PEER
def test_rows_of_peers_may_come_interleaved_and_columns_in_any_order(name):
    contender_task = task()
    test = contender_task.fold.test
    shuffled = np.random.default_rng(0).permutation(test.n_documents)
    qid = np.repeat(test.qid, test.sizes)
    columns = [2, 0, 3, 1]
    mixed = er.RankingData.from_arrays(
        test.X[shuffled][:, columns], test.y[shuffled], qid=qid[shuffled], feature_names=[test.feature_names[j] for j in columns]
    )
    fitted = peer(name).fit(contender_task, {})
    assert np.array_equal(fitted.scores("test", mixed), fitted.scores("test", test)[shuffled])


@EVERY_PEER
def test_missing_values_and_odd_names_pass_through(name):
    train, valid, test = (replace(part, feature_names=("a b", 'c"d', "[e]", "ü<")) for part in parts())
    X = train.X.copy()
    X[::3, 2] = np.nan
    fitted = peer(name).fit(task(train=replace(train, X=X), valid=valid, test=test), {})
    assert np.isfinite(fitted.scores("test", test)).all()
    assert fitted.weights.names == ("a b", 'c"d', "[e]", "ü<")
    assert fitted.weights.values[3] > 0


@EVERY_PEER
@pytest.mark.parametrize("grade", [-1, 0.5, 32])
def test_grades_that_a_peer_has_no_meaning_for_are_refused(name, grade):
    train = task().fold.train
    y = train.y.copy()
    y[7] = grade
    contender_task = task("AP", replace(train, y=y))
    if name == "catboost" and grade == 32:
        peer(name).fit(contender_task, {})
        return
    with pytest.raises(DataError, match=f"{grade:g}"):
        peer(name).fit(contender_task, {})


@EVERY_PEER
def test_linear_gains_have_no_limit(name):
    high = [replace(part, y=part.y * 20) for part in parts()]
    fitted = peer(name).fit(task("nDCG(dcg='log2')@5", *high), {})
    assert value("nDCG(dcg='log2')@5", high[0], fitted.scores("train", high[0])) > 0.9


@EVERY_PEER
def test_weights_of_queries_count(name):
    """Queries that weigh next to nothing might as well have their grades upside down."""
    train, valid, test = parts(queries=30)
    upside = np.arange(30) % 3 != 0
    y = np.where(np.repeat(upside, 8), 3 - train.y, train.y)
    weight = np.where(upside, 1e-6, 1.0)
    arguments = {"min_sum_hessian_in_leaf": 0.0} if name == "lightgbm" else {}
    light, heavy = (
        value(
            MEASURE,
            test,
            peer(name, **arguments).fit(task(MEASURE, replace(train, y=y, query_weight=w), valid, test), {}).scores("test", test),
        )
        for w in (weight, None)
    )
    assert light > heavy + 0.05


@pytest.mark.parametrize("name", ["xgboost", "catboost"])
def test_weights_of_documents_are_refused_where_a_peer_has_none(name):
    train = task().fold.train
    weighted = replace(train, sample_weight=np.ones(train.n_documents))
    with pytest.raises(DataError, match="only query weights"):
        peer(name).fit(task(train=weighted), {})
    peer("lightgbm").fit(task(train=weighted), {})


def test_lightgbm_refuses_long_queries():
    rng = np.random.default_rng(0)
    long = er.RankingData.from_arrays(rng.random((10_001, 1)), rng.integers(0, 2, 10_001), group=[10_001])
    with pytest.raises(DataError, match="10,001"):
        peer("lightgbm").fit(task(train=long, valid=long, test=long), {})


@EVERY_PEER
def test_peers_save_in_their_own_formats(name, tmp_path):
    fitted = peer(name).fit(task(), {})
    fitted.save(tmp_path, "toy")
    (written,) = tmp_path.iterdir()
    test = task().fold.test
    if name == "lightgbm":
        theirs = er.load(written).predict(test)
    elif name == "xgboost":
        import xgboost

        theirs = xgboost.Booster(model_file=written).predict(xgboost.DMatrix(test.X, feature_names=list(test.feature_names)))
    else:
        import catboost

        theirs = catboost.CatBoost().load_model(str(written)).predict(test.X)
    assert np.allclose(theirs, fitted.scores("test", test), atol=1e-12)


def test_a_peer_that_is_not_installed_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(DataError, match="pip install xgboost"):
        find_contender("xgboost")


def test_peers_name_their_settings():
    assert find_contender("small=lightgbm(num_leaves=7)").space.keys() == peer("lightgbm").ranges.keys() - {"num_leaves"}
    with pytest.raises(DataError, match=r"'leaves'.*did you mean num_leaves.*learning_rate"):
        find_contender("lightgbm(leaves=7)")
    for name in ("lightgbm", "xgboost"):
        assert issubclass(CONTENDERS[name], Peer)


# the notation


_WORDS = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.tuples(inner),
    max_leaves=3,
)
_SETTINGS = st.dictionaries(_WORDS.filter(lambda word: word not in keyword.kwlist), _VALUES, max_size=3)
_LABELS = st.just("") | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 +.:/-]{0,8}[A-Za-z0-9]", fullmatch=True)


@given(methods=st.lists(st.builds(Method, st.sampled_from([*RANKERS, "a.b_c:D"]), _SETTINGS, _LABELS), min_size=1, max_size=3))
def test_methods_survive_being_written(methods):
    texts = split_methods(", ".join(map(str, methods)))
    assert texts == [str(method).strip() for method in methods]
    assert [parse_method(text) for text in texts] == methods


def test_commas_and_brackets_in_quotes_split_nothing():
    methods = [Method("a", {"x": "it's \\, a (", "y": '"it\'s"'}), Method("b")]
    assert [parse_method(text) for text in split_methods(",".join(map(str, methods)))] == methods


@pytest.mark.parametrize("name", [*RANKERS, "lightgbm", "xgboost"])
def test_every_name_is_found_and_travels(name):
    contender = pickle.loads(pickle.dumps(find_contender(name)))
    assert contender.name == name
    assert contender.about
    assert contender.space


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("lambdamart( leaves = 7 )", "lambdamart(leaves=7)"),
        (" small trees = lambdamart(leaves=7)", "small trees"),
        ("exactrank.rankers.ridge:Ridge", "Ridge"),
        ("mine=lightgbm:LGBMRanker(n_estimators=5, verbose=-1)", "mine"),
        ("lightgbm:LGBMRanker(n_estimators=5)", "LGBMRanker(n_estimators=5)"),
        ("tests.compare.test_contenders:Third(power=2)", "Third(power=2)"),
        ("tests.compare.test_contenders:Unnamed", "unnamed"),
    ],
)
def test_names_for_tables(text, name):
    assert find_contender(text).name == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lambdmart", "'lambdmart'.*did you mean lambdamart.*ridge.*catboost"),
        ("nothing-of-the-kind-at-all", "there is no method 'nothing-of-the-kind-at-all';"),
        ("lambdamart(leafs=7)", "'leafs'.*did you mean leaves.*trees"),
        ("lambdamart(7)", "name=value"),
        ("lambdamart(**{'a': 1})", "name=value"),
        ("lambdamart(leaves=f(7))", r"cannot read the settings \(the value of leaves is not a number, a word, a list or a table\)"),
        ("lambdamart(leaves=7", "is not a method"),
        ("", "is not a method"),
        ("a=b=ridge", "is not a method"),
        ("no.such.module:Class", "cannot import no.such.module:Class"),
        ("exactrank.rankers.ridge:Rigde", "cannot import"),
        ("exactrank.rankers.ridge:setting", "not a class"),
        ("exactrank.data.folds:Fold", "has no fit"),
        ("sklearn.preprocessing:StandardScaler", "StandardScaler has no predict; give"),
        ("tests.compare.test_contenders:Third(strength=2)", "'strength'.*it has power"),
        ("mine=tests.compare.test_contenders:Unnamed", "name of its own"),
    ],
)
def test_what_is_wrong_with_a_method_is_said(text, message):
    with pytest.raises(DataError, match=message):
        find_contender(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lambdamart(leaves=seven)", "leaves='seven' is not a whole number"),
        ("lambdamart(lambdas=springs)", "lambdas='springs' is not .*did you mean \"spring\""),
    ],
)
def test_a_word_where_a_number_should_be_is_told_before_any_fit(text, message):
    with pytest.raises(SettingError, match=message):
        find_contender(text)


@pytest.mark.parametrize(
    ("bare", "quoted"),
    [("lambdarank(lambdas=finite-difference)", "lambdarank(lambdas='finite-difference')"), ("mart(missing=keep)", "mart(missing='keep')")],
)
def test_words_need_no_quotes(bare, quoted):
    assert repr(find_contender(bare)) == repr(find_contender(quoted))


@pytest.mark.parametrize("text", ["ridge,,mart", "ridge,", "", "ridge(a=(1, 2)", "ridge(a='b)", "ridge)"])
def test_lists_of_methods_that_cannot_be_split(text):
    with pytest.raises(DataError):
        split_methods(text)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise NameError('odd')", "NameError: odd"),
        ("import sys; sys.exit(0)", "SystemExit"),
        ("def f(:", "SyntaxError"),
        ("", "no attribute"),
    ],
)
def test_a_module_that_cannot_be_imported_is_told(tmp_path, monkeypatch, source, message):
    name = f"module_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(DataError, match=f"cannot import.*{message}.*PYTHONPATH"):
        find_contender(f"{name}:Class")


def test_a_class_that_cannot_be_a_contender_is_told():
    with pytest.raises(DataError, match="dict cannot be made a contender"):
        find_contender("builtins:dict")


def test_values_of_python():
    assert as_contender(er.LambdaMART(leaves=7)).name == "lambdamart(leaves=7)"
    assert as_contender(er.LambdaMART(leaves=16)) == as_contender("lambdamart") == as_contender(er.LambdaMART)
    assert as_contender(er.DirectRank(start=np.zeros(4))).params["start"].shape == (4,)
    third = Third()
    assert as_contender(third) is third
    with pytest.raises(DataError, match=r"cannot be compared.*an object with fit and predict"):
        as_contender(StandardScaler())
    with pytest.raises(DataError, match="cannot be compared"):
        as_contender(7)


@pytest.mark.parametrize("text", ["lightgbm:LGBMRanker(n_estimators=5, verbose=-1)", "xgboost:XGBRanker(n_estimators=5)"])
def test_estimators_of_scikit_learn(text, tmp_path):
    contender, contender_task = pickle.loads(pickle.dumps(find_contender(text))), task()
    fitted = contender.fit(contender_task, {"learning_rate": 0.2})
    assert {"learning_rate": 0.2, "random_state": 3, "n_jobs": 1, "n_estimators": 5}.items() <= fitted.settings.items()
    train, test, sizes = contender_task.fold.train, contender_task.fold.test, contender_task.fold.train.sizes
    theirs = clone(contender.estimator).set_params(learning_rate=0.2, random_state=3, n_jobs=1)
    theirs.fit(train.X, train.y, **({"group": sizes} if "LGBM" in text else {"qid": np.repeat(np.arange(20), sizes)}))
    assert np.array_equal(fitted.scores("test", test), theirs.predict(test.X).astype(float))
    fitted.save(tmp_path, "m")
    (saved,) = tmp_path.iterdir()
    assert np.allclose(er.load(saved).predict(test), fitted.scores("test", test), atol=1e-5)


def by_query(data):
    return np.repeat(np.arange(data.n_queries), data.sizes)


def test_estimators_as_objects_are_given_queries_in_their_way():
    """Each scores as its library's own calls make it, and what was given stays unfitted."""
    contender_task = task()
    train, test = contender_task.fold.train, contender_task.fold.test
    own = {"random_state": 3, "n_jobs": 1}
    lightgbm, xgboost = LGBMRanker(n_estimators=4, verbose=-1), XGBRanker(n_estimators=4)
    steps = make_pipeline(StandardScaler(), LGBMRanker(n_estimators=4, verbose=-1))
    for estimator, theirs in (
        (lightgbm, clone(lightgbm).set_params(**own).fit(train.X, train.y, group=train.sizes)),
        (xgboost, clone(xgboost).set_params(**own).fit(train.X, train.y, qid=by_query(train))),
        (
            steps,
            clone(steps).set_params(lgbmranker__random_state=3, lgbmranker__n_jobs=1).fit(train.X, train.y, lgbmranker__group=train.sizes),
        ),
        (LinearRegression(), LinearRegression().fit(train.X, train.y)),
    ):
        contender = cloudpickle.loads(cloudpickle.dumps(as_contender(estimator)))
        assert np.array_equal(contender.fit(contender_task, {}).scores("test", test), theirs.predict(test.X).astype(float))
        assert not hasattr(estimator, "n_features_in_")


def test_a_catboost_ranker_as_an_object(tmp_path, monkeypatch):
    catboost = pytest.importorskip("catboost")
    monkeypatch.chdir(tmp_path)
    contender_task = task()
    train, test = contender_task.fold.train, contender_task.fold.test
    theirs = catboost.CatBoostRanker(iterations=4, random_seed=3, thread_count=1, logging_level="Silent", allow_writing_files=False)
    theirs.fit(train.X, train.y, group_id=by_query(train))
    contender = as_contender(catboost.CatBoostRanker(iterations=4, logging_level="Silent"))
    assert contender.name == "CatBoostRanker(iterations=4)"
    assert np.array_equal(contender.fit(contender_task, {}).scores("test", test), theirs.predict(test.X))
    assert not list(tmp_path.iterdir())  # CatBoost would leave a folder


def test_a_classifier_scores_by_the_grade_that_it_expects():
    contender_task = task()
    train, test = contender_task.fold.train, contender_task.fold.test
    theirs = LogisticRegression().fit(train.X, train.y)
    expected = sum(grade * share for grade, share in zip(theirs.classes_, theirs.predict_proba(test.X).T, strict=True))
    assert np.allclose(as_contender(LogisticRegression()).fit(contender_task, {}).scores("test", test), expected)


@pytest.mark.parametrize("kind", [LGBMRanker, XGBRanker])
def test_an_estimator_that_stops_early_is_given_the_validation_data(kind, monkeypatch):
    models = []
    monkeypatch.setattr(estimators, "score_function", lambda model: models.append(model) or model.predict)
    as_contender(kind(n_estimators=60, early_stopping_rounds=2)).fit(task(), {})
    (learned,) = models
    best = learned.best_iteration_ if kind is LGBMRanker else learned.best_iteration
    assert 0 <= best < 58


def test_features_of_a_part_may_stand_in_another_order():
    contender_task = task()
    fitted, test = as_contender(LinearRegression()).fit(contender_task, {}), contender_task.fold.test
    turned = replace(test, X=test.X[:, ::-1].copy(), feature_names=test.feature_names[::-1])
    assert np.array_equal(fitted.scores("test", turned), fitted.scores("test", test))


def test_weights_reach_estimators_or_are_refused():
    train, _, test = parts()
    rng = np.random.default_rng(0)
    weighed = replace(train, query_weight=rng.random(train.n_queries) + 0.5)
    both = replace(weighed, sample_weight=rng.random(train.n_documents) + 0.5)
    whole = both.sample_weight * np.repeat(both.query_weight, both.sizes)
    theirs = LinearRegression().fit(train.X, train.y, sample_weight=whole).predict(test.X)
    assert np.array_equal(as_contender(LinearRegression()).fit(task(train=both), {}).scores("test", test), theirs.astype(float))
    ours = as_contender(XGBRanker(n_estimators=4)).fit(task(train=weighed), {}).scores("test", test)
    plain = as_contender(XGBRanker(n_estimators=4)).fit(task(), {}).scores("test", test)
    assert not np.array_equal(ours, plain)
    with pytest.raises(DataError, match=r"XGBRanker takes weights of queries only.*drop them"):
        as_contender(XGBRanker()).fit(task(train=both), {})
    with pytest.raises(DataError, match=r"KNeighborsRegressor takes no weights.*drop them"):
        as_contender(KNeighborsRegressor()).fit(task(train=weighed), {})


def test_names_of_estimators():
    steps = make_pipeline(StandardScaler(), LGBMRanker(n_estimators=5, verbose=-1))
    long = LGBMRanker(n_estimators=5, num_leaves=7, learning_rate=0.5, subsample=0.5, reg_lambda=1.0)
    result = contenders_of(["ridge", LinearRegression(), XGBRanker(), XGBRanker(verbosity=0), steps, long, XGBRanker(max_depth=2), long])
    assert [each.name for each in result] == [
        "ridge",
        "LinearRegression",
        "XGBRanker",
        "XGBRanker 2",
        "StandardScaler + LGBMRanker(n_estimators=5)",
        "LGBMRanker",
        "XGBRanker(max_depth=2)",
        "LGBMRanker 2",
    ]
    assert "subsample=0.5" in repr(result[5])
    with pytest.raises(DataError, match="two methods are called 'ridge'"):
        contenders_of(["ridge", LinearRegression(), "ridge"])


def test_a_fingerprint_is_the_class_and_all_settings():
    def same(left, right):
        return as_contender(left).fingerprint == as_contender(right).fingerprint

    fitted = LinearRegression().fit([[0.0], [1.0]], [0, 1])
    assert same(LinearRegression(), fitted)
    assert not same(LinearRegression(), LinearRegression(fit_intercept=False))
    first, second, third = (make_pipeline(FunctionTransformer(each), LinearRegression()) for each in (doubled, doubled, np.exp))
    assert same(first, second)
    assert not same(first, third)
    assert not same(
        make_pipeline(FunctionTransformer(lambda x: x), LinearRegression()),
        make_pipeline(FunctionTransformer(lambda x: -x), LinearRegression()),
    )
    assert not same(LGBMRanker(verbose=-1), LGBMRanker(verbose=-1, extra=np.arange(2000)))
    assert not same(LGBMRanker(extra=np.arange(2000)), LGBMRanker(extra=np.arange(2000)[::-1].copy()))


def doubled(x):
    return 2 * x


NOTEBOOK = """
import numpy as np, exactrank as er

POWER = {power}

def powered(x):
    return x ** POWER

class Correlated:
    def __init__(self, sign=1):
        self.sign = sign

    def fit(self, X, y, group):
        self.weights = {sign} * np.array([np.corrcoef(column, y)[0, 1] for column in X.T])
        self.weights = np.sign(self.weights) * powered(abs(self.weights))
        assert len(group) < len(y)

    def predict(self, X):
        return X @ self.weights

class Own(er.Ridge):
    name = "own"

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    data = er.RankingData.from_arrays(X, np.round(2 * rng.random(240) + (X[:, 0] > 0)), group=[8] * 30)
    found = er.compare(data, ["ridge", Correlated(), Own()], folds=3, out="out", resume={resume}, threads=2)
    print([(method.name, round(float(np.mean([fit.test["nDCG@10"] for fit in found.fits if fit.method == method.name])), 4)
        if not any(fit.failed for fit in found.fits if fit.method == method.name) else "failed") for method in found.methods])
"""


def test_classes_of_a_notebook(tmp_path):
    """They live in ``__main__``; a fit is done again when their code has changed, and only then."""

    def run(sign, resume, power=1):
        script = tmp_path / f"notebook{sign}.py"
        script.write_text(NOTEBOOK.format(sign=sign, resume=resume, power=power))
        message = subprocess.run([sys.executable, script], check=False, capture_output=True, text=True, cwd=tmp_path)
        assert message.returncode == 0, message.stderr
        return dict(ast.literal_eval(message.stdout)), {
            path.name: path.stat().st_mtime_ns for path in (tmp_path / "out" / "fits").glob("*.json")
        }

    first, fits = run(1, False)
    assert first["own"] == first["ridge"] > 0.5
    assert first["Correlated"] > 0.5
    assert run(1, True) == (first, fits)
    second, more = run(-1, True)
    assert second["Correlated"] < first["Correlated"]
    assert len(more) == len(fits) + 3
    assert fits.items() <= more.items()
    assert len(run(-1, True, power=2)[1]) == len(more) + 3  # what the code names counts too


# files of scores


def lines(values):
    return "".join(f"{value!r}\n" for value in np.asarray(values).tolist())


def test_scores_of_test_documents(tmp_path):
    test = task().fold.test
    scores = np.arange(test.n_documents) / 7
    (tmp_path / "toy-Fold2.txt").write_text(lines(scores))
    contender = pickle.loads(pickle.dumps(ScoresFile("mine", str(tmp_path / "{dataset}-{fold}.txt"))))
    fitted = contender.fit(task(), {})
    assert np.array_equal(fitted.scores("test", test), scores)
    assert fitted.scores("train", test) is fitted.scores("valid", test) is None
    assert fitted.settings["path"].endswith("toy-Fold2.txt")
    assert (fitted.curve, fitted.weights, contender.space) == ((), None, {})


def test_scores_of_a_whole_file_that_is_divided(tmp_path):
    """Rows of the file are found again, also where its queries are interleaved."""
    X = np.random.default_rng(0).random((60, 2))
    qid = np.random.default_rng(1).integers(0, 10, 60)
    whole = er.RankingData.from_arrays(X, np.arange(60) % 3, qid=qid)
    train, valid, test = (whole.take_queries(which) for which in ([0, 3, 6, 9], [1, 4, 7], [2, 5, 8]))
    rows = np.concatenate([whole.order[whole.indptr[q] : whole.indptr[q + 1]] for q in (2, 5, 8)])
    (tmp_path / "s.txt").write_text(lines(X[:, 1]))
    fitted = ScoresFile("mine", str(tmp_path / "s.txt")).fit(task("AP", train, valid, test, rows), {})
    assert np.array_equal(fitted.scores("test", test).astype(np.float32), test.X[:, 1])


def test_scores_of_a_test_file_whose_queries_are_interleaved(tmp_path):
    test = er.RankingData.from_arrays(np.zeros((4, 4)), [1, 0, 1, 0], qid=["a", "b", "a", "b"], feature_names=["x0", "x1", "x2", "x3"])
    (tmp_path / "s.txt").write_text(lines([4.0, 3.0, 2.0, 1.0]))
    fitted = ScoresFile("mine", str(tmp_path / "s.txt")).fit(task(test=test, rows=test.order), {})
    assert fitted.scores("test", test).tolist() == [4, 3, 2, 1]


def test_a_run_is_matched_by_documents(tmp_path):
    test = er.RankingData.from_arrays(np.zeros((3, 4)), [1, 0, 1], qid=["a", "a", "b"], docid=["d1", "d2", "d1"])
    run = "a Q0 d2 1 9.5 mine\na Q0 unjudged 2 5 mine\na Q0 d1 3 4.5 mine\nc Q0 d1 1 1 mine\n"
    (tmp_path / "run.txt").write_text(run)
    fitted = ScoresFile("mine", str(tmp_path / "run.txt")).fit(task(test=test), {})
    assert fitted.scores("test", test).tolist() == [4.5, 9.5, -np.inf, 5]
    assert fitted.documents["test"].ungroup(fitted.documents["test"].y).tolist() == [1, 0, 1, -1]
    assert fitted.settings["unjudged"] == 1


def test_a_run_of_data_without_ids_names_the_rows_of_the_whole_file(tmp_path):
    whole = er.RankingData.from_arrays(np.zeros((6, 4)), [1, 0, 1, 0, 1, 0], qid=[1, 2, 1, 2, 3, 3])
    er.write_run(whole, tmp_path / "run.txt", [1, 2, 3, 4, 5, 6])
    test = whole.take_queries([1])
    fitted = ScoresFile("mine", str(tmp_path / "run.txt")).fit(task(test=test, rows=np.array([1, 3])), {})
    assert fitted.scores("test", test).tolist() == [2, 4]


@pytest.mark.parametrize(("text", "message"), [("1\n2\n", "2 lines.*96 test documents of Fold2.*336"), ("", "empty"), ("1 2\n", "columns")])
def test_files_that_hold_no_scores(tmp_path, text, message):
    (tmp_path / "s.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        ScoresFile("mine", str(tmp_path / "s.txt")).fit(task(), {})
    with pytest.raises(DataError, match="does not exist"):
        ScoresFile("mine", str(tmp_path / "{fold}.txt")).fit(task(), {})


# programs


SCRIPT = """
import sys
train, test, out, valid, valid_out, *rest = sys.argv[1:]
assert sum(1 for line in open(train)) == 160
for source, target in ((test, out), (valid, valid_out)):
    with open(target, "w") as file:
        for line in open(source):
            grade, query, *features = line.split("#")[0].split()
            given = dict(feature.split(":") for feature in features)
            print(float(given.get("4", 0)) + float(rest[1]), file=file)
assert rest == ["nDCG@5", "3", "1", "a b"], rest
"""


def test_a_program_reads_and_writes_files(tmp_path):
    script = tmp_path / "with blank.py"
    script.write_text(SCRIPT)
    command = (
        f"'{sys.executable}' '{script}' {{train}} {{test}} {{scores}} {{valid}} {{valid_scores}} {{measure}} {{seed}} {{threads}} 'a b'"
    )
    contender, contender_task = pickle.loads(pickle.dumps(Program("mine", command))), task()
    fitted = contender.fit(contender_task, {})
    for part in ("valid", "test"):
        data = getattr(contender_task.fold, part)
        assert np.allclose(fitted.scores(part, data), data.X[:, 3] + 3, atol=1e-6)
    assert fitted.scores("train", contender_task.fold.train) is None
    assert fitted.settings == {"command": command, "measure": "nDCG@5", "seed": 3, "threads": 1}
    assert contender.space == {}


def test_scores_of_a_program_go_to_the_rows_they_are_for(tmp_path):
    (tmp_path / "p.py").write_text(
        "import sys\nopen(sys.argv[2], 'w').writelines(l.split('1:')[1].split()[0] + '\\n' for l in open(sys.argv[1]))"
    )
    test = er.RankingData.from_arrays(np.arange(1.0, 9).reshape(4, 2), [1, 0, 1, 0], qid=[7, 8, 7, 8])
    fitted = Program("mine", f"{sys.executable} {tmp_path / 'p.py'} {{test}} {{scores}}").fit(task(test=test), {})
    assert fitted.scores("test", test).tolist() == [1, 3, 5, 7]


@pytest.fixture
def heard_out(monkeypatch):
    """The output of a program is read to its end, however long that takes."""
    monkeypatch.setattr(programs, "PATIENCE", HANGS)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import sys; print(*range(9), sep='\\n', file=sys.stderr); sys.exit(3)", "(?s)code 3: 4\n.*8$"),
        ("import sys; print('on stdout'); sys.exit(1)", "code 1: on stdout"),
        ("import sys; sys.exit(2)", "it printed nothing"),
        ("pass", "wrote no scores"),
        ("import sys; open(sys.argv[2], 'w').write('1\\n')", "mine wrote: .*1 lines for 96 documents"),
        ("import sys; open(sys.argv[2], 'w').write('x\\n' * 96)", "'x' is not a number"),
        ("import os, sys; os.mkfifo(sys.argv[2])", "not a regular file"),
        ("import os, sys; os.mkdir(sys.argv[2])", "not a regular file"),
        ("import os, sys; os.symlink('/dev/zero', sys.argv[2])", "not a regular file"),
        ("import os, sys; os.truncate(os.open(sys.argv[2], os.O_CREAT | os.O_RDWR), 1 << 40)", "too many for scores of 96 documents"),
    ],
)
@pytest.mark.usefixtures("heard_out")
def test_a_program_that_fails_says_why(tmp_path, source, message):
    (tmp_path / "p.py").write_text(source)
    with pytest.raises(DataError, match=message):
        Program("mine", f"{sys.executable} {tmp_path / 'p.py'} {{test}} {{scores}}").fit(task(), {})


@pytest.mark.usefixtures("heard_out")
def test_of_what_a_program_says_the_end_is_kept(tmp_path):
    (tmp_path / "p.py").write_text("import sys\nfor _ in range(500):\n    sys.stderr.write('ä' * 100_000)\nsys.exit('the end')")
    tracemalloc.start()
    with pytest.raises(DataError, match=r"ended with code 1: .*äthe end$") as raised:
        Program("mine", f"{sys.executable} {tmp_path / 'p.py'} {{test}} {{scores}}").fit(task(), {})
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    assert len(str(raised.value)) < 3000


def test_a_process_that_a_program_leaves_behind_holds_up_nobody(tmp_path, monkeypatch):
    """It has the program's output open; what was said before is read, and then its end is not waited for."""
    script = tmp_path / "p.py"
    script.write_text(
        "import subprocess, sys\n"
        "left = subprocess.Popen([sys.executable, '-c', f'import time; time.sleep(600); open({sys.argv[1]!r}, \"w\")'])\n"
        "print(left.pid, file=open(sys.argv[1] + '.pid', 'w'))\n"
        "sys.exit('it said so')"
    )
    lines = PipeTail.lines
    monkeypatch.setattr(PipeTail, "lines", lambda tail: wait_until(lambda: b"it said so" in tail._end) or lines(tail))
    monkeypatch.setattr(programs, "PATIENCE", 0.1)
    with pytest.raises(DataError, match="code 1: it said so"):
        Program("mine", f"{sys.executable} {script} {tmp_path / 'left'} {{test}} {{scores}}").fit(task(), {})
    assert not (tmp_path / "left").exists()
    os.kill(int((tmp_path / "left.pid").read_text()), signal.SIGKILL)


def test_files_of_a_program_go_to_the_scratch_folder_and_are_gone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "p.py").write_text("import sys; open('seen', 'w').write(sys.argv[1]); open(sys.argv[2], 'w').write('1\\n' * 96)")
    Program("mine", f"{sys.executable} p.py {{test}} {{scores}}").fit(task(scratch=Path("scratch")), {})
    assert (tmp_path / "seen").read_text().startswith(str(scratch))
    assert not list(scratch.iterdir())


def test_the_limit_of_a_program_is_the_budget_or_an_hour():
    program = Program("mine", "rank {test} {scores}")
    assert (program.limit(None), program.limit(20.0)) == (3600.0, 20.0)
    assert find_contender("ridge").limit(20.0) is None


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_scores_that_are_no_regular_file_are_refused(tmp_path, make):
    make(tmp_path / "s")
    with pytest.raises(DataError, match="not a regular file"):
        ScoresFile("mine", str(tmp_path / "s")).fit(task(), {})


def test_no_shell_reads_the_command(tmp_path):
    with pytest.raises(DataError, match="no-such-program cannot be started"):
        Program("mine", f"no-such-program {{test}} {{scores}} ; touch {tmp_path / 'made'}").fit(task(), {})
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("command", "message"), [("rank {test}", "no {scores}"), ("rank {scores}", "no {test}"), ("rank '{test}", "quotes")]
)
def test_commands_that_cannot_be_right(command, message):
    with pytest.raises(DataError, match=message):
        Program("mine", command)
