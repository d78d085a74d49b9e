"""Every ranker on data in several files: the model has the bits of that of one file, for any cut and any order of arrival."""

import json
import pickle
import random
import warnings
from dataclasses import replace
from importlib.util import find_spec

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.linear_model import LinearRegression

import exactrank as er
from exactrank import optimizers
from exactrank.data.backend import LocalBackend, Round, answer_round
from exactrank.data.blocks import wide_blocks
from exactrank.data.sharded import open_shards
from exactrank.data.shards import concatenate, query_range, read_shards
from exactrank.data.write_shards import write_shards
from exactrank.learning.objectives.parametric import GradientProblem
from exactrank.rankers import RANKERS
from exactrank.rankers.training_data import training_data


class Shuffled(LocalBackend):
    """Answers as workers give them: packed, in any order, of partitions that were loaded anew."""

    @property
    def workers(self):
        return 3

    def ask(self, data, question):
        packed, results = cloudpickle.dumps(question), {}
        for partition in random.sample(data.partitions, len(data.partitions)):
            results |= dict(pickle.loads(answer_round(Round(data.key, (partition,), packed))))
        return [results[partition.number] for partition in data.partitions]


def made(seed, queries=1500, weights=False, holes=False, documents=False, offset=None):
    """Some 50 thousand documents: several wide blocks."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 45, queries)
    X = rng.normal(size=(sizes.sum(), 4)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 3] + rng.normal(size=len(X)) + 1), 0, 4)
    if holes:
        X[rng.random(X.shape) < 0.02] = np.nan
        X[:, 1] = np.exp(8 * X[:, 1])  # whose sums are not exact
    weight = rng.uniform(0.1, 3, queries) if weights else None
    return er.RankingData.from_arrays(
        X, y, group=sizes, query_weight=weight, sample_weight=rng.uniform(0.1, 3, len(X)) if documents else None
    )


def clicked(data, seed=0):
    """``data`` with grades as click logs give them: clicks over propensity, some of them large, the largest in a single query; some are
    below 0."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(len(data.y)) < 0.3, np.round(data.y / rng.uniform(0.1, 1, len(data.y)), 3), -1.0 * (data.y == 1))
    y[data.indptr[data.n_queries // 4]] = 61.5
    return replace(data, y=y)


def cut_into(data, folder, ends, name="part"):
    for number, (first, last) in enumerate(zip([0, *ends], [*ends, data.n_queries], strict=True)):
        er.write(query_range(data, first, last), folder / f"{name}-{number:04}.xr", force=True)
    return read_shards(str(folder / f"{name}-*.xr"))


def assert_same(ranker, whole, shards, valid=None, valid_shards=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few steps are not enough
        theirs = ranker.set_params(backend=None).fit(whole, valid=valid).model_
        ours = ranker.set_params(backend=Shuffled()).fit(shards, valid=valid_shards).model_
    assert json.dumps(ours.scorer.to_record()) == json.dumps(theirs.scorer.to_record())
    assert ours.training == theirs.training


class Own:
    """An objective of somebody else."""

    def on(self, data):
        raise AssertionError(data)


def springs(pairs):
    return pairs.delta * np.maximum(0, 1 - pairs.lead)


#: Small settings of every ranker; those of the registry are below by name, variants after them.
SMALL = {
    "adarank": [er.AdaRank(max_iter=3), er.AdaRank("AP", max_iter=2, nonnegative=True, rest=0)],
    "approxndcg": [er.ApproxNDCG(max_iter=3)],
    "blend": [
        er.Blend(members=[er.Ridge(), er.ListNet(max_iter=2), er.RankBoost(max_iter=3), er.RankNet(hidden=2, max_iter=2)], bags=3),
        er.Blend("AP(ties='expected')", members="ridge, directrank(max_iter=1)", bags=4, weighting="equal"),
    ],
    "composed": [
        er.Composed(objective=er.losses.ListNetLoss(), optimizer=optimizers.LBFGS(), max_iter=3),
        er.Composed(objective=er.losses.ListNetLoss(), optimizer=optimizers.Adam(0.1, 100), max_iter=2, scorer=er.models.NetworkModel(2)),
        er.Composed(optimizer=optimizers.SPSA(), max_iter=3),
        er.Composed(optimizer=optimizers.StepSearch(), max_iter=1),
        er.Composed(max_iter=2),
        er.Composed(max_iter=1, scorer=er.models.LinearModel(standardize=False), start="ridge", optimizer=optimizers.Powell()),
        er.Composed("P@5", max_iter=2, optimizer=optimizers.CoordinateSearch("greedy"), bags=2, bagging="bootstrap"),
    ],
    "coordinate-ascent": [er.CoordinateAscent(restarts=1, max_iter=1, tries=3)],
    "directrank": [er.DirectRank(bags=0, max_iter=1)],
    "lambdarank": [
        er.LambdaRank(max_iter=2, trial_iter=1, batch_size=200),
        er.LambdaRank("ERR", learning_rate=0.1, max_iter=1, hidden=3, start="random", batch_size=101),
        er.LambdaRank(learning_rate=0.1, max_iter=1, lambdas="sampled", samples=2, start="random", batch_size=400),
        er.LambdaRank("P@5", learning_rate=0.1, max_iter=1, lambdas="finite-difference", start="random", batch_size=400),
        er.LambdaRank(learning_rate=0.1, max_iter=1, lambdas=springs, start="random", batch_size=800),
    ],
    "listmle": [er.ListMLE(max_iter=3), er.ListMLE(max_iter=2, top=3, hidden=2, solver="adam", learning_rate=0.1)],
    "listnet": [er.ListNet(max_iter=3)],
    "rankboost": [er.RankBoost(max_iter=6), er.RankBoost(max_iter=3, thresholds=0)],
    "rankcosine": [er.RankCosine(max_iter=3)],
    "ranknet": [er.RankNet(max_iter=3)],
    "ranksvm": [er.RankSVM(max_iter=3, folds=2), er.RankSVM(max_iter=4, loss="hinge", normalize="pairs", l2=0.1)],
    "ridge": [er.Ridge(), er.Ridge("AP", l2=0.5)],
    "smoothrank": [er.SmoothRank(max_iter=2)],
    "spsarank": [er.SPSARank(max_iter=3)],
    "structuredrank": [
        er.StructuredRank(max_iter=2, folds=2),
        er.StructuredRank("P@3", max_iter=2, bound="ramp", l2=0.1),
        er.StructuredRank(max_iter=3, bound="convex", solver="bundle", l2=0.1, A="sqrt"),
        er.StructuredRank(max_iter=1, bound="convex", solver="subgradient", hidden=2, l2=0.1),
    ],
    "svmmap": [er.SVMMAP(max_iter=2, bound="ramp", l2=0.1, solver="conjugate")],
}
#: Trees, which have tests of their own.
ELSEWHERE = {"lambdamart", "mart", "directrank-trees"}


def test_every_ranker_is_here_or_refuses(tmp_path):
    shards = cut_into(made(0, 40), tmp_path, [20])
    for name, ranker in RANKERS.items():
        if name in SMALL or name in ELSEWHERE:
            assert ranker.takes.shards
        elif not ranker.takes.shards:
            if name == "torch" and find_spec("torch") is None:
                continue
            with pytest.raises(er.errors.IncompatibleError, match=r"needs its data in one file; er\.read one, or use LambdaMART, MART"):
                ranker().fit(shards)
        else:
            pytest.fail(f"{name} trains on data in several files, and has no test here")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    data, folder = made(3, weights=True), tmp_path_factory.mktemp("cut")
    return data, cut_into(data, folder, [311, 312, 1100])


@pytest.mark.parametrize(
    "ranker", [pytest.param(one, id=f"{name}-{number}") for name, some in SMALL.items() for number, one in enumerate(some)]
)
def test_a_model_of_several_files_is_that_of_one(whole, ranker):
    assert_same(ranker, *whole)


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    data, folder = clicked(made(3, weights=True)), tmp_path_factory.mktemp("clicks")
    return data, cut_into(data, folder, [311, 312, 1100])


#: Rankers that depend on the largest grade, or the longest query, of all data.
OF_THE_WHOLE = [
    er.LambdaRank("ERR(max_grade=62)", learning_rate=0.1, max_iter=1, start="random", batch_size=101),
    er.LambdaRank("MeanNDCG@10", max_iter=2, trial_iter=1, batch_size=200),
    er.DirectRank("MeanNDCG", bags=0, max_iter=1),
    er.DirectRank("P(rel=40)@5", bags=0, max_iter=1),
    er.DirectRank("DCG@5", bags=0, max_iter=1),
    er.ListNet(target="gain", max_iter=2),
    er.RankCosine(consistent=True, max_iter=2),
    er.StructuredRank("nDCG", max_iter=1, l2=0.1),
]


@pytest.mark.parametrize(
    "ranker",
    [pytest.param(one, id=f"{name}-{number}") for name, some in SMALL.items() for number, one in enumerate(some) if one.measure != "ERR"]
    + [pytest.param(one, id=f"{one.name} of {one.measure}") for one in OF_THE_WHOLE],
)
def test_grades_may_be_of_any_size(clicks, ranker):
    assert_same(ranker, *clicks)


@pytest.mark.parametrize(
    "ranker", [er.LambdaRank(max_iter=2, trial_iter=1, batch_size=200, patience=1), er.Ridge()], ids=lambda ranker: ranker.name
)
def test_validation_data_has_a_largest_grade_of_its_own(whole, clicks, tmp_path, ranker):
    valid = clicked(made(4, 700, weights=True), 1)
    assert_same(ranker, *whole, valid, cut_into(valid, tmp_path, [13, 600], "valid"))
    assert_same(ranker, *clicks, whole[0], whole[1])


@settings(max_examples=4, deadline=None)
@given(st.lists(st.integers(1, 1499), min_size=1, max_size=4, unique=True).map(sorted), st.integers(0, 99))
def test_no_cut_changes_what_is_learnt_from_clicks(tmp_path_factory, ends, seed):
    data = clicked(made(seed), seed)
    shards = cut_into(data, tmp_path_factory.mktemp("cut"), ends)
    for ranker in (er.ListNet(max_iter=2), er.LambdaRank(learning_rate=0.1, max_iter=1, batch_size=700), er.DirectRank(bags=0, max_iter=1)):
        assert_same(ranker, data, shards)


def test_a_grade_that_is_too_large_is_told(tmp_path):
    data = made(5, 400)
    y = data.y.copy()
    y[-1] = 2.0**54
    with pytest.raises(er.errors.DataError, match=r"grade of row .* is 1.80144e\+16; training takes grades of at most 2\^53 in size"):
        er.ListNet().fit(cut_into(replace(data, y=y), tmp_path, [30]))
    with pytest.raises(er.errors.DataError, match="DCG is infinite: the gain of grade 2000 overflows; use gain='linear'"):
        er.ListNet("DCG").fit(cut_into(replace(data, y=y.clip(0, 2000)), tmp_path, [30]))
    with pytest.raises(
        er.errors.DataError, match=r"nothing to learn: P\(rel=9\)@5 is the same .* grades such as these \(0 to 4\) and lists this long"
    ):
        er.ListNet("P(rel=9)@5").fit(cut_into(data, tmp_path, [30]))


#: Bags, whose members see some of the queries each: other blocks, another largest grade.
BAGS = [
    er.RankNet(max_iter=2, bags=2),
    er.LambdaRank(max_iter=2, trial_iter=1, batch_size=200, bags=3),
    er.LambdaRank(learning_rate=0.1, max_iter=1, lambdas="sampled", samples=2, start="random", batch_size=400, bags=3, bagging="bootstrap"),
    er.ListNet(max_iter=2, bags=3),
    er.ListMLE(max_iter=2, bags=3, bagging="bootstrap"),
    er.DirectRank(bags=3, bagging="cross-fit"),
    er.AdaRank(max_iter=3, bags=3),
    er.RankBoost(max_iter=4, bags=3),
    er.Ridge(bags=4),
    er.RankSVM(max_iter=2, bags=3),
    er.RankSVM(max_iter=2, bags=2, folds=2, bagging="bootstrap"),
    er.StructuredRank("nDCG", max_iter=1, l2=0.1, bags=3),
    er.CoordinateAscent(restarts=1, max_iter=1, tries=3, bags=2, bagging="bootstrap"),
    er.SPSARank(max_iter=3, bags=3),
    er.Composed(objective=er.losses.ListNetLoss("gain"), optimizer=optimizers.LBFGS(), max_iter=2, bags=3),
]


@pytest.mark.parametrize("ranker", BAGS, ids=lambda ranker: f"{ranker.name}, {ranker.bags} by {ranker.bagging}")
def test_bags_are_those_of_one_file(clicks, ranker):
    assert_same(ranker, *clicks)
    assert hasattr(ranker, "estimate_") == (ranker.bagging == "cross-fit")
    assert not hasattr(ranker, "oof_")  # one number per document stays with nobody


@pytest.mark.parametrize(
    "ranker",
    [er.ListNet("revenue@5", max_iter=2, bags=3), er.Blend("revenue@5", members=[er.Ridge(), er.RankBoost(max_iter=3)], bags=3)],
    ids=lambda ranker: ranker.name,
)
def test_an_estimate_is_that_of_one_file_query_by_query(prices, ranker):
    ours, theirs = (ranker.fit(each).estimate_ for each in prices[::-1])
    np.testing.assert_array_equal(ours.values, theirs.values)
    assert (ours.mean, ours.interval) == (theirs.mean, theirs.interval)


def test_a_cross_fit_goes_on_from_a_checkpoint(clicks):
    models, ranker = [], er.RankBoost(max_iter=3, bags=3, backend=Shuffled())
    whole = ranker.fit(clicks[1], checkpoint=models.append).model_
    again = ranker.fit(clicks[1], resume=models[len(models) // 2]).model_
    assert again.scorer.to_record() == whole.scorer.to_record()
    assert again.training == whole.training


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 399), max_size=4, unique=True).map(sorted), st.integers(0, 99), st.floats(0.0, 1.0), st.integers(500, 9000))
def test_some_queries_of_several_files_are_those_of_one(tmp_path_factory, ends, seed, share, most):
    data, rng = priced(made(seed, 400, weights=True, documents=True), seed), np.random.default_rng(seed)
    which = rng.random(400) < share
    which[rng.integers(400)] = True
    which[: ends[0] if ends and seed % 2 else 0] = seed % 4 == 1  # none, or all, of a file
    which[-1] = True
    whole = open_shards(cut_into(data, tmp_path_factory.mktemp("cut"), ends), Shuffled(), most)
    ours, theirs = whole.select(which), data.take_queries(which)
    assert {partition.first for partition in ours.partitions} <= set(wide_blocks(theirs.indptr).tolist())
    assert [partition.number for partition in ours.partitions] == list(range(len(ours.partitions)))
    assert [(each.first_document, each.documents) for each in ours.partitions] == [
        (int(theirs.indptr[each.first]), int(np.diff(theirs.indptr[[each.first, each.first + each.queries]])[0]))
        for each in ours.partitions
    ]
    loaded = ours.gather()
    for name in ("X", "y", "indptr", "qid", "query_weight", "sample_weight"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(theirs, name))
    np.testing.assert_array_equal(loaded.extra_columns["revenue"], theirs.extra_columns["revenue"])
    for name in ("sizes", "qid", "weights"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def priced(data, seed=0):
    """``data`` with columns beside its grades, one of them large."""
    rng = np.random.default_rng(seed)
    revenue = np.round(rng.exponential(3.0, data.n_documents) * (data.y > 1), 2)
    return replace(data, extra_columns={"revenue": revenue, "margin": np.where(rng.random(data.n_documents) < 0.5, 0.0, revenue / 2)})


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    data, folder = priced(made(3, weights=True)), tmp_path_factory.mktemp("prices")
    return data, cut_into(data, folder, [311, 312, 1100])


OF_COLUMNS = [
    er.DirectRank("revenue@10", bags=0, max_iter=1),
    er.DirectRank("nDCG@10 subject to revenue@10 >= 10.5", max_iter=1),
    er.DirectRank("nDCG@10 subject to DCG(column='revenue', gain='linear')@10 >= 6 and margin@5 <= 9", max_iter=1),
    er.DirectRank("nDCG(column='margin')@10", bags=3),
    er.LambdaRank("nDCG(column='revenue')@10", learning_rate=0.1, max_iter=1, batch_size=300),
    er.LambdaRank("revenue@10", learning_rate=0.1, max_iter=1, batch_size=300, weighted_by="nDCG(column='revenue')@10"),
    er.RankBoost("revenue@10", max_iter=3),
    er.ListNet("revenue@3", max_iter=2),
    er.Ridge("margin@10"),
    er.RankNet(max_iter=2),
]


@pytest.mark.parametrize("ranker", OF_COLUMNS, ids=lambda ranker: f"{ranker.name} of {ranker.measure}")
def test_measures_may_be_of_columns_beside_the_grades(prices, tmp_path, ranker):
    assert_same(ranker, *prices)
    valid = priced(made(4, 700), 1)
    assert_same(ranker, *prices, valid, cut_into(valid, tmp_path, [600], "valid"))


def test_a_part_does_not_weigh_pairs_by_another_column_than_it_learns_from(prices):
    with pytest.raises(er.errors.IncompatibleError, match=r"reads 'margin', whose largest value in all files .*; train on that measure"):
        er.LambdaRank(weighted_by="nDCG(column='margin')@10", max_iter=1, start="random").fit(prices[1])


def test_evaluation_profiles_and_fusion_read_columns_beside_the_grades(prices, tmp_path):
    data, shards = prices
    model = er.Ridge().fit(data).model_
    for name in ("revenue@10", "nDCG@10 subject to revenue@10 >= 0.31", "nDCG(column='margin')@5"):
        ours, theirs = er.evaluate(shards, model, name, backend=Shuffled()), er.evaluate(data, model.predict(data), name)
        assert ours.means == theirs.means
        np.testing.assert_array_equal(ours.per_query, theirs.per_query)
    ours, theirs = er.profile(shards, model, "x1", "revenue@5", backend=Shuffled()), er.profile(data, model, "x1", "revenue@5")
    np.testing.assert_array_equal(ours.breakpoints, theirs.breakpoints)
    np.testing.assert_array_equal(ours.values, theirs.values)
    few = query_range(data, 0, 300)
    goal = "P@3 subject to revenue@3 >= 1"
    ours, theirs = (er.fuse(each, measure=goal, folds=2, bootstrap=5) for each in (cut_into(few, tmp_path, [100], "few"), few))
    assert ours.to_json() == theirs.to_json()


def test_columns_are_written_with_shards_and_must_be_in_all_files(tmp_path):
    data = priced(made(6, 300))
    write_shards(data, tmp_path, 3)
    loaded = concatenate([partition.load() for partition in open_shards(read_shards(tmp_path), LocalBackend()).partitions])
    for name, values in data.extra_columns.items():
        np.testing.assert_array_equal(loaded.extra_columns[name], values)
    shards = cut_into(data, tmp_path, [100], "cut")
    er.write(replace(query_range(data, 100, 300), extra_columns={}), tmp_path / "cut-0001.xr", force=True)
    with pytest.raises(er.errors.DataError, match=r"cut-0001\.xr and .*cut-0000\.xr differ in their extra columns"):
        er.RankNet().fit(shards)
    with pytest.raises(er.errors.DataError, match=r"the data has no column 'profit'; it has revenue, margin, x0"):
        er.RankNet("profit@5").fit(cut_into(data, tmp_path, [100], "cut"))


def paired(data, seed=0):
    """``data`` with pairs of documents beside its grades: in some queries, and in no query of the first two fifths."""
    rng, better, worse = np.random.default_rng(seed), [], []
    for query in rng.permutation(np.arange(2 * data.n_queries // 5, data.n_queries))[: data.n_queries // 4]:
        rows = np.arange(*data.indptr[query : query + 2])
        for _ in range(min(5, len(rows) - 1)):
            left, right = rng.choice(rows, 2, replace=False)
            first = data.X[left, 0] > data.X[right, 0]
            better, worse = [*better, left if first else right], [*worse, right if first else left]
    pairs = er.pairs.Preferences(np.array(better), np.array(worse), rng.uniform(0.5, 2, len(better)))
    return replace(data, y=np.where(rng.random(data.n_documents) < 0.5, 0.0, data.y), preferences=pairs)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    data, folder = paired(made(3, weights=True)), tmp_path_factory.mktemp("pairs")
    return data, cut_into(data, folder, [311, 312, 1100])


OF_PAIRS = [
    er.RankNet("PairwiseCorrect", max_iter=3),
    er.RankNet(max_iter=2, bags=3),
    er.LambdaRank("nDCG@10", learning_rate=0.1, max_iter=1, batch_size=300),
    er.LambdaRank("PairwiseCorrect", learning_rate=0.1, max_iter=1, batch_size=300, lambdas="sampled", samples=2, start="random"),
    er.RankSVM("PairwiseCorrect", max_iter=1),
    er.RankSVM(max_iter=2, l2=0.1, loss="hinge", normalize="pairs", bags=2, bagging="bootstrap"),
    er.RankBoost("PairwiseCorrect", max_iter=4),
    er.RankBoost(max_iter=3, bags=3),
    er.DirectRank("PairwiseCorrect", bags=0, max_iter=1),
    er.DirectRank("PairwiseCorrect", bags=2, start="zero"),
    er.CoordinateAscent("PairwiseCorrect", restarts=1, max_iter=1, tries=3),
    er.Composed("PairwiseCorrect", max_iter=1),
]


@pytest.mark.parametrize("ranker", OF_PAIRS, ids=lambda ranker: f"{ranker.name} of {ranker.measure}, {ranker.bags or 'no'} bags")
def test_pairs_beside_the_grades_may_lie_in_several_files(pairs, tmp_path, ranker):
    assert_same(ranker, *pairs)
    if not ranker.bags:
        valid = paired(made(4, 700), 1)
        assert_same(ranker, *pairs, valid, cut_into(valid, tmp_path, [200, 600], "valid"))


def test_pairs_are_evaluated_written_and_told(pairs, tmp_path):
    data, shards = pairs
    model = er.RankNet(max_iter=1).fit(data).model_
    ours, theirs = (
        er.evaluate(shards, model, "PairwiseCorrect", backend=Shuffled()),
        er.evaluate(data, model.predict(data), "PairwiseCorrect"),
    )
    np.testing.assert_array_equal(ours.per_query, theirs.per_query)
    write_shards(data, tmp_path, 5)
    loaded = open_shards(read_shards(tmp_path), LocalBackend()).gather()
    for name in ("better", "worse", "weight"):
        np.testing.assert_array_equal(getattr(loaded.preferences, name), getattr(data.preferences, name))
    with pytest.raises(
        er.errors.IncompatibleError, match=r"ListNet learns from grades alone, and the data has [\d,]+ pairs; make grades of them"
    ):
        er.ListNet().fit(shards)
    with pytest.raises(
        er.errors.IncompatibleError, match=r"start='ridge' needs grades, and the data in several files has pairs; use start='softmax'"
    ):
        er.DirectRank("PairwiseCorrect", start="ridge").fit(shards)
    er.write(replace(query_range(data, 1100, 1500), preferences=None), tmp_path / "other.xr")
    er.write(query_range(data, 0, 1100), tmp_path / "one.xr")
    with pytest.raises(er.errors.DataError, match=r"other\.xr and .*one\.xr differ in their pairs of documents"):
        er.RankNet().fit(read_shards([tmp_path / "one.xr", tmp_path / "other.xr"]))


VALIDATED = [
    er.LambdaRank(max_iter=2, trial_iter=1, batch_size=200, patience=1),
    er.ListMLE(max_iter=3),
    er.AdaRank(max_iter=3),
    er.RankBoost(max_iter=5, patience=2),
    er.Ridge(),
    er.RankSVM(max_iter=3, patience=1),
    er.SVMMAP(max_iter=1, bound="convex"),
    er.CoordinateAscent("RR", restarts=1, max_iter=1, tries=3),
    er.DirectRank(bags=0, max_iter=1),
]


@pytest.mark.parametrize("ranker", VALIDATED, ids=lambda ranker: ranker.name)
def test_validation_data_may_be_in_several_files_too(whole, tmp_path, ranker):
    valid = made(4, 700, weights=True)
    turned = cut_into(er.RankingData(**vars_of(valid, columns=[2, 0, 3, 1])), tmp_path, [13, 600], "valid")
    assert_same(ranker, *whole, valid, turned)


def test_trees_read_validation_data_in_several_files_as_one(whole, tmp_path):
    valid, ranker = made(4, 700), er.LambdaMART(trees=3, leaves=4)
    theirs = ranker.fit(whole[1], valid=valid).model_
    ours = ranker.fit(whole[1], valid=cut_into(valid, tmp_path, [600])).model_
    assert ours.scorer.to_record() == theirs.scorer.to_record()
    assert ours.training == theirs.training


def vars_of(data, columns):
    """The parts of ``data``, with its features in another order."""
    names = tuple(data.feature_names[j] for j in columns)
    return {"X": np.ascontiguousarray(data.X[:, columns]), "y": data.y, "indptr": data.indptr, "qid": data.qid, "feature_names": names,
            "query_weight": data.query_weight}  # fmt: skip


@pytest.mark.parametrize("missing", ["zero", "mean"])
@pytest.mark.parametrize("far", [False, True])
def test_missing_values_are_filled_as_in_one_file(tmp_path, missing, far):
    data = made(5, holes=True)
    if far:  # kept as differences from an offset
        data = er.RankingData.from_arrays(1e9 + data.X.astype(np.float64), data.y, group=data.sizes)
        assert data.offset is not None
    shards = cut_into(data, tmp_path, [700])
    assert_same(er.ListNet(max_iter=2, missing=missing), data, shards)
    assert_same(er.RankBoost(max_iter=2, missing=missing), data, shards, data, shards)
    rows = np.concatenate([np.arange(b, e)[::-1] for b, e in zip(data.indptr, data.indptr[1:], strict=False)])
    turned = replace(data, X=np.ascontiguousarray(data.X[rows]), y=data.y[rows])
    ours, theirs = (er.ListNet(max_iter=2, missing=missing).fit(each).model_ for each in (cut_into(turned, tmp_path, [700]), data))
    assert ours.scorer.to_record() == theirs.scorer.to_record()
    with pytest.raises(er.errors.DataError, match=r'values are missing \(.*\); fill them, or train with missing="zero" or missing="mean"'):
        er.ListNet().fit(shards)


def test_documents_are_weighed_as_in_one_file(tmp_path):
    data = made(6, weights=True, documents=True)
    shards = cut_into(data, tmp_path, [700])
    assert_same(er.Ridge(), data, shards, data, shards)
    with pytest.raises(
        er.errors.IncompatibleError, match=r"ListNet cannot weigh single documents of data in several files; .*, or use Ridge"
    ):
        er.ListNet().fit(shards)


def test_training_goes_on_from_a_model_and_from_a_checkpoint(whole):
    data, shards = whole
    begun, models = er.RankNet(max_iter=2).fit(data).model_, []
    theirs = er.LambdaRank(learning_rate=0.1, max_iter=2, batch_size=500).fit(data, start=begun).model_
    ranker = er.LambdaRank(learning_rate=0.1, max_iter=2, batch_size=500, backend=Shuffled())
    assert ranker.fit(shards, start=begun).model_.scorer.to_record() == theirs.scorer.to_record()
    boosted = er.RankBoost(max_iter=4, backend=Shuffled())
    model = boosted.fit(shards, checkpoint=models.append).model_
    assert boosted.fit(shards, resume=models[0]).model_.scorer.to_record() == model.scorer.to_record()


@settings(max_examples=6, deadline=None)
@given(st.lists(st.integers(1, 1499), min_size=1, max_size=4, unique=True).map(sorted), st.integers(0, 99), st.integers(1, 400))
def test_no_cut_changes_a_slope_of_a_batch(tmp_path_factory, ends, seed, size):
    data = made(seed, weights=True)
    shards = cut_into(data, tmp_path_factory.mktemp("cut"), ends)
    ours = training_data(open_shards(shards, Shuffled()), None, "error", 1, None).data
    theirs = training_data(data, None, "error", 1).data
    batch, theta = np.random.default_rng(seed).permutation(1500)[:size], np.array([0.3, -0.2, 0.1, 0.5])
    for objective in (
        er.losses.Lambdas(er.measures.NDCG()),
        er.losses.ListMLELoss(),
        er.losses.SampledLambdas(er.measures.NDCG(), samples=2),
    ):
        answers = [
            GradientProblem(objective, er.models.LinearModel().on(each), each, 0.1, threads).slope_of(theta, batch)
            for each, threads in [(theirs, 1), (theirs, 3), (ours, 1)]
        ]
        for value, slope in answers[1:]:
            assert value == answers[0][0]
            np.testing.assert_array_equal(slope, answers[0][1])


def test_what_stays_refused_says_what_would_do(whole, tmp_path):
    data, shards = whole
    with pytest.raises(er.errors.IncompatibleError, match=r"query by query \(sgd\) .* use solver='adam', .* or 'lbfgs'"):
        er.LambdaRank(solver="sgd", learning_rate=0.1).fit(shards)
    with pytest.raises(
        er.errors.SettingError, match="RankNet: cross-fitted models of data in several files learn from it alone; leave out valid"
    ):
        er.RankNet(bags=3).fit(shards, valid=data)
    with pytest.raises(er.errors.IncompatibleError, match=r"Blend: sklearn.LinearRegression.* needs its data in one file; leave it out"):
        er.Blend(members=[LinearRegression(), er.Ridge()], bags=3).fit(shards)
    with pytest.raises(er.errors.IncompatibleError, match=r"Blend: .* ranks ties by document ids, which stay in their files"):
        er.Blend("nDCG(ties='docid')", members="ridge", bags=3).fit(shards)
    alike = replace(data, y=np.where(np.arange(data.n_documents) == data.indptr[1000], 1.0, 0.0))
    with pytest.raises(
        er.errors.SettingError, match="cross-fitting needs at least 2 queries with different grades, and the data has 1; give bags=0"
    ):
        er.RankNet(bags=3).fit(cut_into(alike, tmp_path, [700], "alike"))
    with pytest.raises(
        er.errors.IncompatibleError, match=r"valid is in several files, and the training data is not; read both with er\.read_shards"
    ):
        er.RankNet().fit(data, valid=shards)
    other = er.RankingData.from_arrays(data.X[:, :2], data.y, group=data.sizes, feature_names=("a", "b"))
    with pytest.raises(er.errors.ExactRankError, match="the training data"):
        er.RankNet().fit(shards, valid=cut_into(other, tmp_path, [700], "other"))
    with pytest.raises(er.errors.IncompatibleError, match=r"Own of a query may depend on other queries, .* or use one of LambdaRule"):
        er.Composed(objective=Own(), optimizer=optimizers.LBFGS()).fit(shards)


def test_a_cluster_gives_the_same_models_with_batches_folds_and_validation_data(whole):
    """In one process of workers: that answers are packed and come in any order is tested above, and lost workers in test_dask.py."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    data, shards = whole
    rankers = [
        er.LambdaRank(learning_rate=0.1, max_iter=1, batch_size=300),
        er.RankBoost(max_iter=3),
        er.RankSVM(max_iter=1),
        er.Ridge(),
        er.ListNet(max_iter=2, bags=3),
    ]
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        for ranker, chooses in [(one, chooses) for one in rankers for chooses in (False, True) if not (one.bags and chooses)]:
            theirs = ranker.set_params(backend=None).fit(data, valid=data if chooses else None).model_
            ours = ranker.set_params(backend=er.DaskBackend(client)).fit(shards, valid=shards if chooses else None).model_
            assert ours.scorer.to_record() == theirs.scorer.to_record()
