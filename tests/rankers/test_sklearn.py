"""Rankers in scikit-learn: pipelines, searches and cross-validation, with metadata routing and without; and its own checks."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from joblib import parallel_config
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, RandomizedSearchCV, cross_val_score, cross_validate, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import exactrank as er
from tests.rankers.test_rankers import QUICK, judged, rows

FEATURES = ["a", "b", "c", "d"]
REMEDY = r"give either qid .* or a frame with a column 'qid'; .*enable_metadata_routing=True"
FOLDS = GroupKFold(3)
X, Y, QID = rows()
#: The ids need not be numbers, nor stand together.
FRAME = pd.DataFrame(X, columns=FEATURES).assign(qid=[f"q{q}" for q in QID])


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def by_hand(settings, kind=er.Ridge):
    """What cross-validation comes to: each part scored by a ranker that was trained on the others."""
    return [kind(**settings).fit(X[one], Y[one], qid=QID[one]).score(X[two], Y[two], qid=QID[two]) for one, two in FOLDS.split(X, Y, QID)]


def scaled(**more):
    return ColumnTransformer(
        [("scaled", StandardScaler(), FEATURES)], remainder="passthrough", **({"verbose_feature_names_out": False} | more)
    ).set_output(transform="pandas")


def test_a_query_column_of_a_frame_is_what_qid_is():
    ours, theirs = er.Ridge().fit(FRAME, Y), er.Ridge().fit(FRAME[FEATURES], Y, qid=FRAME["qid"])
    assert np.array_equal(ours.weights_, theirs.weights_)
    assert (ours.n_features_in_, ours.feature_names_in_.tolist()) == (4, FEATURES)
    assert ours.score(FRAME, Y) == theirs.score(FRAME[FEATURES], Y, qid=QID) == ours.score(pl.DataFrame(FRAME), Y)
    assert np.array_equal(ours.predict(FRAME), theirs.predict(FRAME[FEATURES]))
    assert np.array_equal(er.Ridge().fit(pl.DataFrame(FRAME), Y).weights_, ours.weights_)
    turned = FRAME[["qid", *FEATURES]].sample(frac=1, random_state=0)
    assert np.array_equal(ours.predict(turned), ours.predict(FRAME)[turned.index])
    for more in ({"qid": QID}, {"group": [8] * 12}):
        with pytest.raises(er.errors.DataError, match=f"X has a column 'qid', and {next(iter(more))} is given too; leave out one"):
            er.Ridge().fit(FRAME, Y, **more)


def test_a_feature_called_qid_is_still_a_feature_where_other_columns_hold_the_queries():
    table = pd.DataFrame(X, columns=["qid", *FEATURES[1:]]).assign(query_id=QID, relevance=Y)
    data = er.RankingData.from_frame(table)
    ranker = er.Ridge().fit(data)
    assert "qid" in data.feature_names
    assert np.array_equal(ranker.predict(table[["qid", *FEATURES[1:]]]), ranker.predict(data))


def test_cross_validation_without_routing_takes_the_queries_from_a_column():
    theirs = by_hand({})
    assert cross_val_score(er.Ridge(), FRAME, Y, cv=FOLDS, groups=QID).tolist() == theirs
    result = cross_validate(er.Ridge(), FRAME, Y, cv=FOLDS, groups=QID, return_train_score=True)
    assert result["test_score"].tolist() == theirs
    assert np.isfinite(result["train_score"]).all()
    assert np.isfinite(learning_curve(er.Ridge(), FRAME, Y, cv=FOLDS, groups=QID, train_sizes=[0.5, 1.0])[2]).all()


def test_cross_validation_with_routing_takes_qid(routing):
    assert cross_val_score(er.Ridge(), X, Y, cv=FOLDS, params={"qid": QID, "groups": QID}).tolist() == by_hand({})
    assert cross_validate(er.Ridge(), FRAME, Y, cv=FOLDS, params={"groups": QID})["test_score"].tolist() == by_hand({})


def test_pipelines_without_routing():
    pipe = make_pipeline(scaled(), er.Ridge()).fit(FRAME, Y)
    alone = er.Ridge().fit(StandardScaler().fit_transform(X), Y, qid=QID)
    assert pipe.predict(FRAME) == pytest.approx(alone.predict(StandardScaler().fit_transform(X)), rel=1e-6)
    assert pipe.score(FRAME, Y) == alone.score(StandardScaler().fit_transform(X), Y, qid=QID)
    assert pipe[-1].n_features_in_ == 4, "the ids are no feature"


def test_pipelines_with_routing(routing):
    pipe = make_pipeline(StandardScaler(), er.Ridge()).fit(X, Y, qid=QID)
    alone = er.Ridge().fit(StandardScaler().fit_transform(X), Y, qid=QID)
    assert pipe.score(X, Y, qid=QID) == alone.score(StandardScaler().fit_transform(X), Y, qid=QID)
    assert make_pipeline(scaled(), er.Ridge()).fit(FRAME, Y).score(FRAME, Y) == pipe.score(X, Y, qid=QID)


def test_grid_search_finds_what_is_best_by_hand_with_routing_and_without():
    grid = {"learning_rate": [0.05, 0.3], "leaves": [3, 15]}
    ranker = er.LambdaMART(trees=5, min_documents=1, threads=1)
    plain = GridSearchCV(ranker, grid, cv=FOLDS).fit(FRAME, Y, groups=QID)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = GridSearchCV(ranker, grid, cv=FOLDS).fit(X, Y, qid=QID, groups=QID)
        assert routed.score(X, Y, qid=QID) == routed.best_estimator_.score(X, Y, qid=QID)
    values = [np.mean(by_hand(ranker.get_params() | settings, er.LambdaMART)) for settings in plain.cv_results_["params"]]
    for search in (plain, routed):
        assert search.cv_results_["mean_test_score"] == pytest.approx(values, rel=1e-12)
        assert search.best_index_ == np.argmax(values)
    assert len(set(values)) > 1
    assert plain.predict(FRAME).shape == (96,)
    assert plain.score(FRAME, Y) == routed.best_estimator_.score(X, Y, qid=QID)


def test_a_pipeline_is_searched_by_the_names_of_its_steps():
    pipe = make_pipeline(scaled(), er.Ridge())
    plain = GridSearchCV(pipe, {"ridge__l2": [1e-3, 1e6]}, cv=FOLDS).fit(FRAME, Y, groups=QID)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), er.Ridge())
        routed = GridSearchCV(pipe, {"ridge__l2": [1e-3, 1e6]}, cv=FOLDS).fit(X, Y, qid=QID, groups=QID)
    assert plain.cv_results_["mean_test_score"] == pytest.approx(routed.cv_results_["mean_test_score"], abs=1e-9)
    assert np.isfinite(plain.cv_results_["mean_test_score"]).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # leaves too large for so little data
def test_a_random_search_draws_from_the_ranker_s_own_space():
    search = RandomizedSearchCV(er.LambdaMART(trees=3), er.LambdaMART.space, n_iter=3, cv=FOLDS, random_state=0)
    search.fit(FRAME, Y, groups=QID)
    assert set(search.best_params_) == set(er.LambdaMART.space)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_cannot_be_scored_is_an_error_and_never_nan():
    def refused(use):
        with pytest.raises(er.errors.IncompatibleError, match=REMEDY):
            use()

    ridge, arguments = er.Ridge(), {"cv": FOLDS, "groups": QID, "params": {"qid": QID}}
    refused(lambda: cross_val_score(ridge, X, Y, **arguments))
    refused(lambda: cross_validate(ridge, X, Y, **arguments, scoring={"own": lambda ranker, X, y: ranker.score(X, y)}))
    refused(lambda: cross_validate(ridge, X, Y, **arguments, error_score=0.0))
    refused(lambda: GridSearchCV(ridge, {"l2": [1e-3, 1.0]}, cv=FOLDS).fit(X, Y, qid=QID, groups=QID))
    pipe = make_pipeline(StandardScaler(), er.Ridge())
    refused(lambda: GridSearchCV(pipe, {"ridge__l2": [1.0]}, cv=FOLDS).fit(X, Y, ridge__qid=QID, groups=QID))
    with parallel_config("threading", n_jobs=2):
        refused(lambda: cross_val_score(ridge, X, Y, **arguments))


def test_a_part_on_which_no_query_counts_is_an_error():
    bare = np.where(QID < 4, 0, Y)  # the queries of one part have no relevant document
    parts = [(np.flatnonzero(QID >= 4), np.flatnonzero(QID < 4))]
    with pytest.raises(er.errors.IncompatibleError, match="no query counts"):
        cross_val_score(er.Ridge("nDCG(empty='skip')@5"), FRAME, bare, cv=parts)


def test_fits_that_fail_say_what_to_do():
    with pytest.raises(ValueError, match=f"(?s)All the 3 fits failed.*{REMEDY}"):
        cross_val_score(er.Ridge(), X, Y, cv=3)
    with pytest.raises(
        ValueError, match=r"(?s)'remainder__qid' is taken for a feature: give the ColumnTransformer verbose_feature_names_out"
    ):
        cross_val_score(make_pipeline(scaled(verbose_feature_names_out=True), er.Ridge()), FRAME, Y, cv=FOLDS, groups=QID)
    with pytest.warns(FitFailedWarning, match="(?s)l2=-1.0 is out of range"):
        search = GridSearchCV(er.Ridge(), {"l2": [-1.0, 1.0]}, cv=FOLDS).fit(FRAME, Y, groups=QID)
    assert search.best_params_ == {"l2": 1.0}


def test_score_by_hand_raises_as_it_is_and_takes_another_measure():
    ranker, data = er.Ridge().fit(judged()), judged()
    with pytest.raises(er.errors.DataError, match=REMEDY):
        ranker.score(X, Y)
    assert ranker.score(data, measure="AP") == er.evaluate(data, ranker.predict(data), "AP").means["AP"] != ranker.score(data)
    weights = np.arange(1.0, 13)
    weighted = er.RankingData.from_arrays(X, Y, qid=QID, query_weight=weights)
    assert ranker.score(X, Y, qid=QID, query_weight=weights) == ranker.score(weighted) != ranker.score(data)
    with pytest.raises(er.errors.SettingError, match="leave out sample_weight"):
        ranker.score(X, Y, qid=QID, sample_weight=np.ones(96))
    with pytest.raises(er.errors.MeasureError, match="did you mean"):
        ranker.score(data, measure="nDGC")


# ---- scikit-learn's own checks, which give one list of rows: here it is one query


class _OneQuery:
    def fit(self, X, y=None, **more):
        return super().fit(X, y, **({"qid": self._ids(y)} | more))

    def score(self, X, y=None, **more):
        return super().score(X, y, **({"qid": self._ids(y)} | more))

    @staticmethod
    def _ids(y):
        return np.zeros(np.shape(y)[:1] or 1, int)


class Ridge(_OneQuery, er.Ridge): ...


class LambdaRank(_OneQuery, er.LambdaRank): ...


class LambdaMART(_OneQuery, er.LambdaMART): ...


class RankBoost(_OneQuery, er.RankBoost): ...


#: Checks that ask for something else than a ranker should do, each with the reason.
OTHERWISE = {
    "check_n_features_in_after_fitting": "the refusal is an IncompatibleError that names the features, not scikit-learn's sentence",
    "check_complex_data": "refused in our words: X must be a table of numbers",
    "check_dtype_object": "arrays of objects are refused; frames hold columns of several types",
    "check_estimators_empty_data_messages": "refused in our words: the data has no features",
    "check_estimators_nan_inf": "refused in our words: a value is missing, where scikit-learn expects the word NaN",
    "check_fit2d_1sample": "refused in our words: a single document cannot be ranked",
    "check_fit2d_predict1d": "refused in our words: X must be a table of documents x features",
    "check_requires_y_none": "refused in our words: there are no grades",
}


@parametrize_with_checks(
    [kind(**QUICK.get(kind.name, {})) for kind in (Ridge, LambdaRank, LambdaMART, RankBoost)],
    expected_failed_checks=lambda ranker: OTHERWISE,
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_what_scikit_learn_is_told():
    tags = er.LambdaMART().__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert tags.target_tags.required
    assert not er.Ridge().__sklearn_tags__().input_tags.allow_nan
