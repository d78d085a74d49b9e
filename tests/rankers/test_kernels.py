"""StructuredRank with a kernel: the optimum of a slow twin in the dual, that of the linear model, and what no linear model can learn."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import exactrank as er
from exactrank.errors import DataError, IncompatibleError, SettingError
from exactrank.learning.objectives import kernel_basis
from exactrank.learning.objectives.structured import Structured
from exactrank.models import KernelExpansion, Sum
from exactrank.models.sum import sum_of
from exactrank.models.targets import TARGETS
from tests.rankers.test_rankers import judged, rows
from tests.reference import kernel_dual as twin

SIZE = 4  #: documents of a query, whose rankings the twin can list
GAP = 1e-9


def orders(queries=5, features=3, seed=0):
    """Queries whose documents have the grades 0 to 3 each once, so that there is one perfect ranking."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([rng.permutation(SIZE) for _ in range(queries)])
    return er.RankingData.from_arrays(rng.standard_normal((len(y), features)) + 3, y, group=[SIZE] * queries)


def distances(queries=40, seed=0):
    """Grades that rise with the distance of the first feature from 0."""
    X, _, qid = rows(queries=queries, seed=seed)
    return er.RankingData.from_arrays(X, np.digitize(np.abs(X[:, 0]), [0.7, 1.4]), qid=qid)


def fitted(data, measure="nDCG@3", **given):
    given = {"l2": 0.05, "bound": "convex", "tolerance": GAP, "max_iter": 5000} | given
    return er.StructuredRank(measure, **given).fit(data)


def kernel_matrix(name, gamma, X, Z, data):
    """The kernel of all rows of ``X`` with those of ``Z``, standardized as ``data``."""
    mean, scale = data.X.astype(float).mean(axis=0), data.X.astype(float).std(axis=0)
    return np.array([[twin.kernel(name, gamma, (x - mean) / scale, (z - mean) / scale) for z in Z] for x in X])


@given(seed=st.integers(0, 50), kernel=st.sampled_from(["rbf", "linear"]), measure=st.sampled_from(["nDCG@3", "DCG@2", "AP(rel=3)"]))
@settings(max_examples=10, deadline=None)
def test_it_is_the_optimum_of_the_dual_over_all_rankings(seed, kernel, measure):
    data, others, l2, gamma = orders(seed=seed), orders(seed=seed + 100), 0.05, 0.4
    K = kernel_matrix(kernel, gamma, data.X, data.X, data)
    beta, primal, dual = twin.solve(Structured(er.parse_measure(measure)), K, data.y, SIZE, l2, 1e-7)
    ranker = fitted(data, measure, l2=l2, kernel=kernel, **({"gamma": gamma} if kernel == "rbf" else {}))
    ours = ranker.history_[-1].duality
    assert dual * (1 - 1e-6) <= ours.primal <= primal * (1 + 1e-6)
    assert ours.gap <= GAP
    theirs = kernel_matrix(kernel, gamma, others.X, data.X, data) @ beta
    np.testing.assert_allclose(ranker.predict(others), theirs, atol=1e-3 * np.ptp(theirs))
    if kernel == "rbf":  # all documents differ, so that no other sum of them has the same scores
        scorer = ranker.model_.scorer
        ours_by_document = dict(zip(map(tuple, scorer.documents.tolist()), scorer.coefficients.tolist(), strict=True))
        found = [ours_by_document[tuple(x)] for x in data.X.astype(float).tolist()]
        np.testing.assert_allclose(found, beta, atol=1e-3 * np.abs(beta).max())


@pytest.mark.parametrize("bound", ["convex", "auto"])
@pytest.mark.parametrize("solver", ["cutting-plane", "bundle", "subgradient", "conjugate"])
def test_the_linear_kernel_is_the_linear_model(solver, bound):
    data, others = judged(queries=20, noise=0.3), judged(queries=20, seed=1)
    loose = {"tolerance": 1e-5, "max_iter": 20_000, "solver": solver}
    linear, kernel = fitted(data, **loose), fitted(data, kernel="linear", bound=bound, **loose)
    values = [ranker.history_[-1].duality.primal for ranker in (linear, kernel)]
    np.testing.assert_allclose(*values, rtol=2e-5)
    s, t = ((scores := ranker.predict(others)) - scores.mean() for ranker in (linear, kernel))
    np.testing.assert_allclose(s, t, atol=0.05 * np.ptp(s))
    assert len(kernel.model_.scorer.coefficients) == data.n_features  # so many documents span the space


@pytest.mark.filterwarnings("ignore:the best weights for the convex bound are 0")
def test_it_learns_what_no_linear_model_can():
    data, others = distances(), distances(seed=1)
    linear, kernel = (er.StructuredRank("nDCG@5", l2=0.5, kernel=name, bound="convex").fit(data) for name in ("linear", "rbf"))
    assert kernel.score(others) > 0.9 > linear.score(others) + 0.2


def test_copies_of_documents_are_no_documents_of_the_model():
    data = distances(queries=6)
    twice = er.RankingData.from_arrays(np.repeat(data.X, 2, axis=0), np.repeat(data.y, 2), qid=np.repeat(np.arange(6), 16))
    scorer = fitted(twice, kernel="rbf", tolerance=1e-4).model_.scorer
    assert len(scorer.coefficients) == data.n_documents
    assert len(np.unique(scorer.documents, axis=0)) == data.n_documents


def test_gamma_is_by_default_one_over_the_number_of_features():
    data = distances(queries=6)
    models = [fitted(data, kernel="rbf", tolerance=1e-4, **given).model_ for given in ({}, {"gamma": 0.25}, {"gamma": 0.5})]
    assert [model.scorer.gamma for model in models] == [0.25, 0.25, 0.5]
    assert np.array_equal(models[0].predict(data), models[1].predict(data))
    assert not np.array_equal(models[0].predict(data), models[2].predict(data))


def test_validation_data_chooses_the_strength():
    data, valid = distances(queries=8), distances(queries=8, seed=1)
    ranker = er.StructuredRank("nDCG@3", kernel="rbf").fit(data, valid=valid)
    assert set(ranker.model_.training["chosen"]) == {"l2"}
    assert ranker.model_.training["valid"] == ranker.score(valid) > 0.8


def test_a_query_of_twice_the_weight_is_one_that_is_there_twice():
    data = orders()
    twice = er.RankingData.from_arrays(np.concatenate([data.X, data.X[:SIZE]]), np.append(data.y, data.y[:SIZE]), group=[SIZE] * 6)
    weighted = er.RankingData.from_arrays(data.X, data.y, group=data.sizes, query_weight=[2, 1, 1, 1, 1])
    scores = [fitted(one, kernel="rbf").predict(orders(seed=1)) for one in (twice, weighted)]
    np.testing.assert_allclose(*scores, atol=1e-3 * np.ptp(scores[0]))


def test_svmmap_takes_a_kernel_as_well():
    data = er.RankingData.from_arrays((d := distances()).X, d.y > 0, group=d.sizes)
    ranker = er.SVMMAP(l2=0.1, kernel="rbf").fit(data)
    assert ranker.score(data) > 0.95


# ---- the model


def test_features_far_from_0_and_missing_values_are_read_as_in_training(tmp_path):
    """The first feature is near 2^30, where single precision has no fractions, so that its differences from there are kept."""
    data = orders()
    X = data.X.astype(float)
    X[3, 2] = np.nan
    far = np.column_stack([X[:, 0] + 2.0**30, X[:, 1:]])
    data, near = (er.RankingData.from_arrays(one, data.y, group=data.sizes) for one in (far, X))
    models = [fitted(one, kernel="rbf", tolerance=1e-6, missing="mean").model_ for one in (data, near)]
    assert models[0].scorer.offset is not None
    np.testing.assert_allclose(models[0].predict(far), models[1].predict(X), atol=1e-3)
    models[0].save(tmp_path / "m.json")
    again = er.load(tmp_path / "m.json")
    assert again.predict(far).tobytes() == models[0].predict(data).tobytes()
    assert np.array_equal(again.scorer.relative_to(data.offset, data.feature_names).documents, models[0].scorer.documents)


def test_scores_do_not_depend_on_threads_or_neighbors():
    scorer = fitted(distances(queries=6), kernel="rbf", tolerance=1e-4).model_.scorer
    X = np.random.default_rng(0).standard_normal((1500, 4)).astype(np.float32)
    scores = scorer.score(X, threads=1)
    assert np.array_equal(scores, scorer.score(X, threads=2))
    assert np.array_equal(scores[700:710], scorer.score(X[700:710]))


def test_sums_of_kernels_with_the_same_units_are_one():
    rng = np.random.default_rng(0)
    X, unit = rng.standard_normal((5, 2)), (np.zeros(2), np.ones(2))
    first, second = KernelExpansion(X[:3], rng.random(3), *unit, "rbf", 0.5), KernelExpansion(X[1:], rng.random(4), *unit, "rbf", 0.5)
    other = KernelExpansion(X[1:], rng.random(4), *unit, "rbf", 0.6)
    merged, parts = sum_of([first, second], [0.5, 2.0]), sum_of([first, other], [0.5, 2.0])
    assert len(merged.coefficients) == 5
    assert isinstance(parts, Sum)
    for total, second_part in ((merged, second), (parts, other)):
        np.testing.assert_allclose(total.score(X), 0.5 * first.score(X) + 2 * second_part.score(X), rtol=1e-12)


def test_bags_are_the_mean_of_their_members():
    data = distances(queries=12)
    ranker = er.StructuredRank("nDCG@3", kernel="rbf", l2=0.5, bags=3).fit(data)
    assert isinstance(ranker.model_.scorer, Sum)  # of members with units of their own
    assert ranker.estimate_.mean > 0.6


# ---- what is refused


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"kernel": "polynomial"}, 'kernel=.polynomial. is not "linear", "rbf" or None'),
        (
            {"kernel": "rbf", "bound": "ramp"},
            "kernel='rbf' has no effect with bound='ramp'; leave it out, or give bound='auto' or 'convex'",
        ),
        ({"kernel": "rbf", "hidden": 3, "solver": "subgradient", "bound": "convex"}, "has no effect with"),
        ({"kernel": "linear", "gamma": 0.1}, "gamma=0.1 has no effect with kernel='linear'; leave it out, or give kernel='rbf'"),
        ({"gamma": 0.1}, "gamma=0.1 has no effect with kernel=None"),
        ({"kernel": "rbf", "gamma": 0.0}, "gamma=0.0 is out of range"),
    ],
)
def test_bad_settings_are_named(given, says):
    with pytest.raises(SettingError, match=says):
        er.StructuredRank(**given).fit(judged())


def test_too_many_documents_are_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr(kernel_basis, "MOST_DOCUMENTS", 95)
    with pytest.raises(
        DataError, match="compares all documents with each other, and there are 96; give at most 95, such as those of a sample"
    ):
        er.StructuredRank(kernel="rbf").fit(judged())


def test_data_in_several_files_is_refused(tmp_path):
    er.write(judged(), tmp_path / "a.xr")
    with pytest.raises(SettingError, match="lie in several files here; give kernel=None, or train on a RankingData"):
        er.StructuredRank(kernel="rbf").fit(er.read_shards([tmp_path / "a.xr"]))


def test_a_model_is_exported_nowhere_and_says_so():
    model = fitted(distances(queries=4), kernel="rbf", tolerance=1e-3).model_
    for target in TARGETS:
        with pytest.raises(IncompatibleError, match=re.escape("a scorer of kind 'kernel' cannot be exported; export one of linear, ")):
            er.export(model, target)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"documents": np.ones((2, 3))}, r"the documents have shape \(2, 3\) for 2 coefficients, 2 means and 2 scales"),
        ({"coefficients": np.ones(3)}, "for 3 coefficients"),
        ({"documents": np.array([[1.0, np.nan], [0.0, 0.0]])}, r"documents\[1\] is nan"),
        ({"scale": np.array([1.0, 0.0])}, r"scale\[1\] is 0.0; scales are above 0"),
        ({"kernel": "cubic"}, "the kernel is 'cubic'; known"),
        ({"gamma": None}, "gamma is None; it is a number above 0"),
        ({"gamma": -1.0}, "gamma is -1.0"),
        ({"kernel": "linear"}, 'absent for "linear"'),
    ],
)
def test_bad_models_are_refused(changed, says):
    given = {"documents": np.ones((2, 2)), "coefficients": np.ones(2), "mean": np.zeros(2), "scale": np.ones(2), "gamma": 1.0}
    with pytest.raises(DataError, match=says):
        KernelExpansion(**(given | changed))
