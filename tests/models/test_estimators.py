"""The adapter of other libraries' estimators: what ``fit`` is given, in the way of each library."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import exactrank as er
from exactrank.models.estimators.adapter import fit_to_queries, is_estimator, model_writer

DATA = er.RankingData.from_arrays(np.arange(10.0).reshape(5, 2), [0, 1, 0, 1, 2], group=[2, 3])
WEIGHED = replace(DATA, query_weight=np.array([1.0, 3.0]))
NUMBERS = [0, 0, 1, 1, 1]


class Recorded(BaseEstimator):
    """Remembers what ``fit`` was given."""

    def __init__(self, early_stopping_rounds=None, random_state=None, n_jobs=None):
        self.early_stopping_rounds, self.random_state, self.n_jobs = early_stopping_rounds, random_state, n_jobs

    def predict(self, X):
        return np.zeros(len(X))


class Grouped(Recorded):
    def fit(
        self, X, y, sample_weight=None, group=None, eval_set=None, eval_group=None, categorical_feature="auto", eval_X=None, eval_y=None
    ):
        self.given = {name: value for name, value in vars().items() if name not in ("self", "X", "y") and value is not None}
        return self


class Numbered(Recorded):
    def fit(self, X, y, group=None, qid=None, sample_weight=None, eval_set=None, eval_group=None, eval_qid=None):
        self.given = {name: value for name, value in vars().items() if name not in ("self", "X", "y") and value is not None}
        return self


class Identified(Recorded):
    def fit(self, X, y, group_id=None, sample_weight=None, group_weight=None, eval_set=None):
        self.given = {name: value for name, value in vars().items() if name not in ("self", "X", "y") and value is not None}
        return self


class Named(Identified):
    """Like CatBoost's: `get_params` names what was given."""

    def __init__(self, **params):
        self.params = params

    def get_params(self, deep=True):
        return dict(self.params)

    def set_params(self, **params):
        self.params |= params
        return self

    def __sklearn_clone__(self):
        return Named(**self.params)


Grouped.__module__, Numbered.__module__, Named.__module__ = "lightgbm.sklearn", "xgboost.sklearn", "catboost.core"


def given(estimator, train=DATA, valid=None, **more):
    """What ``fit`` is given beside features and grades, as lists."""
    arguments = fit_to_queries(estimator, train, valid, **more).given
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in arguments.items()}


def test_queries_weights_and_categories_go_in_the_way_of_the_library():
    assert given(Grouped()) == {"group": [2, 3], "categorical_feature": "auto"}
    assert given(Grouped(), WEIGHED) == {"group": [2, 3], "categorical_feature": "auto", "sample_weight": [1, 1, 3, 3, 3]}
    assert given(Numbered(), WEIGHED) == {"qid": NUMBERS, "sample_weight": [1, 3]}
    assert given(Named(), WEIGHED) == {"group_id": NUMBERS, "group_weight": [1, 1, 3, 3, 3]}
    kinds = replace(DATA, levels={DATA.feature_names[1]: tuple("abcdefghij")})
    assert given(Grouped(), kinds)["categorical_feature"] == [1]
    for other in (Numbered(), Named(), make_pipeline(StandardScaler(), LinearRegression())):
        with pytest.raises(er.errors.DataError, match="takes numbers alone here"):
            fit_to_queries(other, kinds)


def test_weights_of_documents_are_those_times_that_of_their_query():
    both = replace(WEIGHED, sample_weight=np.array([1.0, 2.0, 1.0, 2.0, 3.0]))
    assert given(Grouped(), both)["sample_weight"] == given(Named(), both)["sample_weight"] == [1, 2, 3, 6, 9]
    with pytest.raises(er.errors.DataError, match="Numbered takes weights of queries only"):
        given(Numbered(), both)


def test_equal_weights_say_nothing():
    assert given(Numbered(), replace(DATA, query_weight=np.full(2, 2.0))) == {"qid": NUMBERS}


def test_pairs_are_refused():
    pairs = er.pairs.Preferences(np.array([1]), np.array([0]), np.array([1.0]))
    with pytest.raises(er.errors.DataError, match="learns from grades alone, and the data has 1 pairs"):
        given(Grouped(), replace(DATA, preferences=pairs))


def test_validation_data_goes_to_those_that_stop_early(monkeypatch):
    pool = lambda X, y, group_id: ("pool", X.shape, group_id.tolist())  # noqa: E731
    monkeypatch.setitem(sys.modules, "catboost", SimpleNamespace(Pool=pool))
    turned = replace(DATA, X=DATA.X[:, ::-1].copy(), feature_names=DATA.feature_names[::-1])
    for estimator in (Grouped(), Numbered(), Named()):
        assert not {name for name in given(estimator, valid=DATA) if name.startswith("eval")}
    ours = given(Grouped(early_stopping_rounds=3), valid=turned)
    assert (ours["eval_X"], ours["eval_y"], ours["eval_group"][0].tolist()) == (DATA.X.tolist(), DATA.y.tolist(), [2, 3])
    ours = given(Numbered(early_stopping_rounds=3), valid=turned)
    assert (ours["eval_set"][0][0].tolist(), ours["eval_qid"][0].tolist()) == (DATA.X.tolist(), NUMBERS)
    assert given(Named(od_wait=3), valid=turned)["eval_set"] == ("pool", (5, 2), NUMBERS)


def test_seed_and_threads_go_where_they_are_open():
    made = fit_to_queries(Grouped(n_jobs=4), DATA, seed=7, threads=2)
    assert (made.random_state, made.n_jobs) == (7, 4)
    named = fit_to_queries(Named(random_state=1, silent=True), DATA, seed=7, threads=2)
    assert named.params == {"random_state": 1, "silent": True, "thread_count": 2, "allow_writing_files": False}
    named = fit_to_queries(Named(), DATA, seed=7, settings={"depth": 3})
    assert named.params == {"random_seed": 7, "verbose": False, "allow_writing_files": False, "depth": 3}


def test_what_an_estimator_is():
    assert is_estimator(LinearRegression())
    assert not any(map(is_estimator, (LinearRegression, StandardScaler(), 3)))
    assert model_writer(LinearRegression()) == ("", None)
