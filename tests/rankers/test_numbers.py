"""Laws that every ranker keeps whatever the order of the rows and the units of features, weights and grades."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st
from xxhash import xxh3_64_intdigest

import exactrank as er
from exactrank.data.synthetic import CubicPolynomial
from exactrank.rankers import RANKERS
from exactrank.rankers.training_data import content_order, in_content_order
from tests.rankers import test_rankers
from tests.rankers.test_rankers import EVERY_RANKER, judged, mean

#: Settings that need no folds.
QUICKER = {
    "structuredrank": {"l2": 1.0, "bound": "ramp"},
    "svmmap": {"l2": 1.0, "bound": "convex"},
    "ranksvm": {"l2": 1.0},
    "coordinate-ascent": {"restarts": 1},
}


def quick(name, **more):
    return test_rankers.quick(name, **QUICKER.get(name, {}), **more)


def odd_data(seed: int, holes: float = 0.02, weighs_documents: bool = True) -> er.RankingData:
    """Queries of 1 to 9 documents with few grades, some documents twice in a query, missing values, weights of both kinds."""
    rng = np.random.default_rng(seed)
    sizes = np.append(rng.integers(1, 10, 14), 5)
    X = rng.standard_normal((sizes.sum(), 3)).astype(np.float32)
    y = np.digitize(X @ [1.0, -0.5, 0.2] + 0.5 * rng.standard_normal(len(X)), [0.0, 1.5])
    weight = rng.random(len(X))
    X[rng.random(X.shape) < holes] = np.nan
    number, first = np.arange(len(X)), np.repeat(np.cumsum(sizes) - sizes, sizes)
    source = np.where(rng.random(len(X)) < 0.3, np.maximum(number - 1, first), number)
    arguments = {"sample_weight": weight[source] if weighs_documents else None, "query_weight": rng.choice([0.5, 1.0, 4.0], len(sizes))}
    return er.RankingData.from_arrays(X[source], y[source], group=sizes, **arguments)


def shuffled(data: er.RankingData, seed: int) -> er.RankingData:
    """The documents of each query in another order."""
    query = np.repeat(np.arange(data.n_queries), data.sizes)
    rows = np.lexsort((np.random.default_rng(seed).random(data.n_documents), query))
    return replace(data, X=data.X[rows], y=data.y[rows], sample_weight=None if data.sample_weight is None else data.sample_weight[rows])


@EVERY_RANKER
def test_features_far_from_zero_are_learnt_as_their_differences_are(name):
    X = 1e9 + np.random.default_rng(7).integers(0, 2**16, (120, 3))
    far = er.RankingData.from_arrays(X, np.digitize((X - 1e9) @ [1.0, -0.5, 0.2], [0, 3e4]), group=[8] * 15)
    near = er.RankingData.from_arrays(far.X, far.y, group=[8] * 15)
    ours, theirs = quick(name).fit(far).predict(X), quick(name).fit(near).predict(far.X)
    assert far.offset is not None
    assert np.array_equal(np.argsort(ours, kind="stable"), np.argsort(theirs, kind="stable"))


@EVERY_RANKER
@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_rows_within_queries_changes_no_bit_of_a_model(name, seed):
    train, valid = (odd_data(drawn, weighs_documents=RANKERS[name].takes.document_weights) for drawn in (seed, seed + 100))
    ours, theirs = (
        [
            quick(name, missing="mean").fit(shuffled(train, draw)).model_.scorer.to_record(),
            quick(name, missing="mean").fit(shuffled(train, draw), valid=shuffled(valid, draw)).model_.scorer.to_record(),
        ]
        for draw in (1, 2)
    )
    assert ours == theirs


@pytest.mark.parametrize("lambdas", ["sampled", lambda pairs: pairs.delta * np.maximum(0, 1 - pairs.lead) ** 3])
def test_nor_do_draws_and_lambda_functions_of_users_see_it(lambdas):
    train = odd_data(0, holes=0.0)
    ours, theirs = (quick("lambdamart", lambdas=lambdas).fit(shuffled(train, draw)).model_.scorer.to_record() for draw in (1, 2))
    assert ours == theirs


def hashed_order(data, stands):
    """The rows of each query by the hashes of their content, one row after the other."""
    X = data.X if stands is None else np.where(np.isnan(data.X), stands, data.X)
    unit = np.left_shift(np.frexp(np.nanmax(np.abs(X), axis=0))[1], 23, dtype=np.int32)
    bits = X.view(np.int32)
    features = np.where(np.isfinite(X) & (X != 0), bits - unit, bits)
    numbers = [data.y, data.sample_weight, *(data.extra_columns[name] for name in sorted(data.extra_columns))]
    keys = [xxh3_64_intdigest(features[i].tobytes() + b"".join(each[i].tobytes() for each in numbers)) for i in range(len(X))]
    ends = data.indptr.tolist()
    return [i for a, b in pairwise(ends) for i in sorted(range(a, b), key=lambda i: (keys[i], i))]


@given(st.sampled_from([1, 2, 3, 9, 20, 27, 28, 29, 55, 56, 57, 300, 600]), st.integers(0, 2), st.booleans(), st.integers(0, 99))
def test_content_order_is_that_of_the_hashes_of_rows(width, kept, filled, seed):
    rng = np.random.default_rng(seed)
    X = np.ldexp(rng.integers(-4, 5, (12, width)), rng.integers(-120, 120, width)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[0] = 1.0
    numbers = {f"k{i}": rng.random(12) for i in range(kept)}
    data = er.RankingData.from_arrays(
        X, rng.integers(0, 3, 12), group=[1, 4, 7], sample_weight=rng.integers(1, 3, 12), extra_columns=numbers
    )
    stands = rng.standard_normal(width).astype(np.float32) if filled else None
    assert content_order(data, stands).tolist() == hashed_order(data, stands)


@given(seed=st.integers(0, 10**6))
def test_content_order_forgets_where_rows_stood_and_leads_back(seed):
    data = odd_data(seed)
    ours, theirs = in_content_order(data), in_content_order(shuffled(data, seed))
    for name in ("X", "y", "sample_weight"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name), equal_nan=True)
        assert np.array_equal(ours.ungroup(getattr(ours, name)), getattr(data, name), equal_nan=True)
    assert in_content_order(ours) is ours


def test_document_ids_move_along():
    X, y = [[1.0], [2.0], [3.0], [2.0]], [0, 1, 0, 0]
    data = er.RankingData.from_arrays(X, y, group=[4], docid=["c", "a", "d", "b"])
    result = in_content_order(data)
    assert result.order is not None
    assert [result.docid[i] for i in range(4)] == [["c", "a", "d", "b"][row] for row in result.order]
    ranker = quick("ridge", measure="nDCG(ties='docid')@1").fit(data)
    assert ranker.model_.training["value"] == ranker.score(data)


@EVERY_RANKER
def test_several_threads_may_fit_one_ranker_or_several(name):
    """Every fit gives what it gives alone, and a ranker ends as one of its fits, whole."""
    parts = [judged(queries=5, documents=5, seed=seed) for seed in range(3)]
    alone = [quick(name, threads=1).fit(part).model_ for part in parts]
    apart, shared = [quick(name, threads=1) for _ in parts], quick(name, threads=1)
    begin = threading.Barrier(len(parts))

    def fit(number):
        begin.wait()
        shared.fit(parts[number])
        return apart[number].fit(parts[number]).predict(parts[number])

    with ThreadPoolExecutor(len(parts)) as pool:
        scores = list(pool.map(fit, range(len(parts))))
    for model, ranker, part, result in zip(alone, apart, parts, scores, strict=True):
        assert ranker.model_.scorer.to_record() == model.scorer.to_record()
        assert np.array_equal(result, model.predict(part))
    last = next(model for model in alone if model.data == shared.model_.data)
    assert shared.model_.scorer.to_record() == last.scorer.to_record()
    assert shared.model_.training == last.training
    cross_fitted = {"oof_", "estimate_"} if name == "blend" else set()
    result = vars(shared).keys() - shared.get_params().keys()
    assert result == {"model_", "history_", "selection_", "n_features_in_", "feature_names_in_"} | cross_fitted


def test_several_threads_may_predict_by_one_ranker():
    data = judged(queries=50)
    for name in ("lambdamart", "lambdarank", "rankboost"):
        ranker = quick(name).fit(data)
        alone = ranker.predict(data)
        fresh = pickle.loads(pickle.dumps(ranker))  # nothing is cached yet
        with ThreadPoolExecutor(4) as pool:
            assert all(np.array_equal(found, alone) for found in pool.map(fresh.predict, [data] * 20))


def test_a_fit_that_fails_leaves_the_ranker_as_it_was():
    ranker = quick("lambdamart").fit(judged())
    before = dict(vars(ranker))
    with pytest.raises(er.errors.IncompatibleError):
        ranker.fit(judged(), valid=judged(features=3))
    assert vars(ranker) == before


# ---- units ----


def weighed(data, of_queries, of_documents):
    return replace(data, query_weight=of_queries, sample_weight=None if np.ptp(of_documents) == 0 else of_documents)


@EVERY_RANKER
def test_units_of_weights_do_not_matter(name):
    rng = np.random.default_rng(0)
    data, valid = judged(), judged(seed=1)
    of_queries, of_documents = np.append(0.0, rng.random(11)), np.append(0.0, rng.random(95))
    if not RANKERS[name].takes.document_weights:
        with pytest.raises(er.errors.SettingError, match="cannot weigh single documents"):
            quick(name).fit(weighed(data, of_queries, of_documents))
        of_documents = np.ones(96)
    plain = quick(name).fit(weighed(data, of_queries, of_documents), valid=weighed(valid, of_queries, of_documents)).model_
    for factor in (2.0**-1000, 2.0**1000):
        unit = weighed(data, factor * of_queries, factor * of_documents), weighed(valid, factor * of_queries, factor * of_documents)
        model = quick(name).fit(unit[0], valid=unit[1]).model_
        assert model.scorer.to_record() == plain.scorer.to_record()
        assert model.training == plain.training


FEATURES = {
    "tiny": lambda X: X * np.float32(1e-30),
    "huge": lambda X: X * np.float32(7e37),
    "mixed": lambda X: X * np.array([1e-30, 1e-10, 1e10, 7e37], np.float32),
    "copies and constants": lambda X: np.hstack([X, X, -X, np.full((len(X), 3), [0.0, 3e38, -1e30], np.float32)]),
}


@EVERY_RANKER
@pytest.mark.parametrize("case", FEATURES)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_units_and_copies_of_features_do_not_matter(name, case):
    train, test = judged(queries=20, noise=0.1), judged(queries=20, noise=0.1, seed=2)

    def changed(data):
        X = FEATURES[case](data.X)
        return replace(data, X=X, feature_names=tuple(f"x{j}" for j in range(X.shape[1])))

    scores = quick(name).fit(changed(train)).predict(changed(test))
    assert np.isfinite(scores).all()
    assert mean("nDCG@5", test, scores) > 0.9 * quick(name).fit(train).score(test)


GRADES = {
    "1e15": lambda y: 1e15 * y,
    "sevenths": lambda y: y / 7,
    "some below 0": lambda y: y - 0.5,
    "1000": lambda y: 333.0 * y,
}
REFUSED = {
    "1e308": (lambda y: 1e308 * (y > 0), "grade of row 1 is 1e\\+308; training takes grades of at most 2.53"),
    "-1e308": (lambda y: -1e308 * (y > 0), "grade of row 1 is -1e\\+308"),
    "1e-30": (lambda y: 1e-30 * y, "nothing to learn.* grades such as these \\(0 to 3e-30\\)"),
    "all below 0": (lambda y: y - 9, "nothing to learn.* grades such as these"),
}


@EVERY_RANKER
@pytest.mark.parametrize("case", GRADES)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_grades_of_any_size_may_be_trained_on(name, case):
    data = judged()
    odd = replace(data, y=GRADES[case](data.y))
    assert mean("nDCG@5", data, quick(name).fit(odd).predict(odd)) > 0.8


@EVERY_RANKER
@pytest.mark.parametrize("case", REFUSED)
def test_grades_that_say_nothing_are_refused_before_any_work(name, case):
    grades, says = REFUSED[case]
    data, steps = judged(), []
    with pytest.raises(er.errors.DataError, match=says):
        quick(name).fit(replace(data, y=grades(data.y)), progress=steps.append)
    assert not steps


def test_lambdamart_reaches_with_grades_to_1000_what_it_reaches_with_grades_to_4():
    source = CubicPolynomial(features=10, documents=20, noise=0.5, threads=1)
    train, test = source.data(100), source.data(200, first=1001)
    ours, theirs = (
        mean("nDCG@10", test, er.LambdaMART(trees=40, bags=0, threads=1).fit(replace(train, y=factor * train.y)).predict(test))
        for factor in (250.0, 1.0)
    )
    assert ours > 0.985 * theirs


@given(seed=st.integers(0, 10**6), powers=st.lists(st.integers(-60, 60), min_size=3, max_size=3))
def test_content_order_does_not_depend_on_units_that_are_powers_of_two(seed, powers):
    data = odd_data(seed)
    scaled = replace(data, X=np.ldexp(data.X, np.array(powers)))
    ours, theirs = (in_content_order(each).ungroup(np.arange(data.n_documents)) for each in (scaled, data))
    assert np.array_equal(ours, theirs)
