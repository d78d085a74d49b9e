"""Where missing values and unknown categories go: in training, in the model and in every export they take the same side, or it says so."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.errors import IncompatibleError
from exactrank.models.targets import TARGETS
from exactrank.models.targets.plain import plain
from tests.models.targets.engine_rows import FEATURES, as_data, data_of
from tests.rankers.test_forest_rankers import data_of as categorical_data

AS_ZERO = {"lucene-expression", "ranklib"}  #: engines in which a missing value is always 0
#: Rows in which every set of features is missing.
HOLES = np.array([np.where(missing, np.nan, 0.7) for missing in itertools.product([False, True], repeat=3)], np.float32)


def forest(seed, holes, shape):
    ranker = er.LambdaMART(trees=4, leaves=6, min_documents=1, bags=0, shape=shape, seed=seed % 1000)
    return ranker.fit(data_of(seed, holes=holes)).model_.scorer


@pytest.mark.parametrize("target", sorted(TARGETS))
@given(seed=st.integers(0, 10**6), holes=st.sampled_from([0.0, 0.3]), shape=st.sampled_from(["best-first", "symmetric"]))
@settings(max_examples=4)
def test_missing_values_go_where_the_model_sends_them(target, seed, holes, shape):
    """Also those of features that had none in training."""
    scorer = forest(seed, holes, shape)
    unlike_zero = plain(er.Model(scorer)).missing_unlike_zero()
    if target in AS_ZERO and unlike_zero:
        with pytest.raises(IncompatibleError, match=f"missing values of {', '.join(unlike_zero)} as the model does"):
            er.export(scorer, target)
        return
    export = er.export(scorer, target)
    assert export.check(as_data(HOLES)).beyond_rounding == 0
    if target in ("solr", "elasticsearch-ltr", "opensearch-ltr"):  # in versions that know missing values
        assert any(", ".join(unlike_zero) in remark for remark in export.remarks)


@given(st.integers(0, 10**6), st.sampled_from(["best-first", "symmetric"]))
@settings(max_examples=20)
def test_features_whose_missing_values_are_not_zeros_are_known(seed, shape):
    """By the model's scores: without those features a missing value may be replaced by 0."""
    scorer = forest(seed, 0.3, shape)
    unlike = [FEATURES.index(name.strip("'")) for name in plain(er.Model(scorer)).missing_unlike_zero()]
    others = np.setdiff1d(np.arange(3), unlike)
    rows = np.concatenate([HOLES * size for size in (-3, -1, 0, 1, 3)]).astype(np.float32)
    filled = rows.copy()
    filled[:, others] = np.nan_to_num(rows[:, others])
    np.testing.assert_array_equal(scorer.score(filled), scorer.score(rows))


def categories(seed, shape):
    """Trees that split two features at sets of categories, and rows of known, unknown and missing ones."""
    rng, names = np.random.default_rng(seed), ["x", "color", "shop"]
    X = np.stack([rng.normal(size=200), rng.integers(0, 6, 200), rng.integers(0, 40, 200)], axis=1).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    liked = np.isin(X[:, 1], [1, 4]) + np.isin(X[:, 2] % 5, [0, 3])
    ranker = er.LambdaMART(trees=6, leaves=6, min_documents=1, bags=0, shape=shape, categorical=names[1:], seed=seed % 1000)
    scorer = ranker.fit(categorical_data(X, liked.astype(int), feature_names=names)).model_.scorer
    others = np.array([0, 5, 6, 31, 32, 40, 1e3, 2.0**31, 4e9, -1, -0.5, 2.5, np.nan])
    return scorer, np.array(list(itertools.product([0.0, np.nan], others, others)), np.float32)


@pytest.mark.parametrize("shape", ["best-first", "symmetric"])
@pytest.mark.parametrize("seed", range(3))
def test_unknown_categories_go_where_missing_ones_go_in_lightgbm_too(seed, shape):
    scorer, rows = categories(seed, shape)
    export = er.export(scorer, "lightgbm")
    np.testing.assert_array_equal(export.target.scores(export.content, rows.astype(float), scorer.feature_names), scorer.score(rows))
    unknown, missing = rows.copy(), rows.copy()
    for column, known in ((1, 6), (2, 40)):
        is_unknown = (rows[:, column] >= known) | (rows[:, column] <= -1)
        unknown[is_unknown, column], missing[is_unknown, column] = 1e6, np.nan
    np.testing.assert_array_equal(scorer.score(unknown), scorer.score(missing))
    np.testing.assert_array_equal(scorer.score(rows), scorer.score(missing))


@pytest.mark.parametrize("target", sorted(set(TARGETS) - {"lightgbm"}))
def test_targets_without_categories_name_the_features(target):
    with pytest.raises(IncompatibleError, match=r"a categorical split, .* train without 'color', 'shop'$"):
        er.export(categories(0, "symmetric")[0], target)


def test_a_text_that_training_did_not_see_is_missing_in_lightgbm_too():
    lightgbm, rng = pytest.importorskip("lightgbm"), np.random.default_rng(0)
    color = rng.choice(["red", "green", "blue", "black"], 300)
    frame = pd.DataFrame({"query_id": np.arange(300) // 10, "relevance": np.isin(color, ["red", "black"]) * 1, "color": color})
    scorer = er.LambdaMART(trees=5, leaves=4, min_documents=1, bags=0).fit(er.RankingData.from_frame(frame)).model_.scorer
    new = pd.DataFrame({"color": pd.Categorical(["red", "mauve", None, "blue"])})
    theirs = lightgbm.Booster(model_str=er.export(scorer, "lightgbm").text).predict(new, raw_score=True)
    np.testing.assert_array_equal(theirs, er.Model(scorer).predict(new))
    assert theirs[1] == theirs[2]
