"""Lists on the GPU agree with the processor's kernels: run here by emulation, and on a GPU too by `make test-gpu`."""

import dataclasses
import pickle
import re
import sys
import types

import numpy as np
import pytest
from sklearn.base import clone

import exactrank as er
from exactrank.backends.cuda.device import Cuda, cuda
from exactrank.backends.cuda.line_search import CudaFeatures, CudaLineSearch
from exactrank.backends.cuda.lists import Lists
from exactrank.backends.cuda.measures import CudaMeasure, supports
from exactrank.backends.cuda.objectives import bound_to, is_supported
from exactrank.data.sharded import dataset_of
from exactrank.learning.objectives.linear_profile import LinearProfile
from exactrank.learning.optimizers.coordinate import CoordinateSearch
from tests.backends.cuda.emulated_gpu import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to run the GPU's kernels with")

MEASURES = ["nDCG@10", "nDCG", "nDCG(gain='linear', discount='letor')@3", "nDCG(short='zero')@5", "DCG@4", "P@5", "P(norm='list')@50",
            "R@3", "RBP(p=0.6)", "AP", "AP@4", "AP(norm='cutoff')@4", "ERR", "ERR@5", "RR", "RR@3", "Success@2", "MeanNDCG", "MeanNDCG@4",
            "nDCG(gain={0: 0, 1: 5, 2: 1, 3: 2, 4: 9})@5"]  # fmt: skip
OF_PAIRS = ["Bpref", "Bpref(rel=2, empty='skip')", "PairwiseCorrect", "AUC", "PairwiseCorrect(empty=1)"]
BACKENDS = er.CudaBackend(), None
TOLERANCE = {np.float32: 2e-6, np.float64: 1e-12}


def ragged(seed: int, real, levels: int = 5) -> tuple[er.RankingData, np.ndarray]:
    """Lists of 1 to 100 documents, many with ties, some of one grade."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 3, 7, 31, 100], size=12)
    grades = rng.integers(0, levels, sizes.sum()).astype(float)
    grades[: sizes[0]] = 0
    scores = np.round(rng.normal(size=sizes.sum()) * 3, rng.integers(0, 3)).astype(real)
    return er.RankingData.from_arrays(None, grades, group=sizes), scores


def on(gpu, data: er.RankingData) -> Lists:
    return Lists(gpu, gpu.xp.asarray(data.indptr), data.n_documents, data.longest)


def asked(gpu, objective, data: er.RankingData, scores: np.ndarray):
    return bound_to(objective, on(gpu, data), gpu.xp.asarray(data.y))(
        gpu.xp.asarray(scores), None if data.query_weight is None else gpu.xp.asarray(data.weights)
    )


def host(array) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.get()


OBJECTIVES = [
    er.losses.Lambdas(),
    er.losses.Lambdas(link="spring", margin=0.7, neighbors=3),
    er.losses.Lambdas(link="step", truncation=4, normalize=True),
    *(er.losses.Lambdas(er.parse_measure(name)) for name in MEASURES),
    er.losses.Lambdas(er.measures.NDCG(k=10), near=0.01, normalize=True),
    er.losses.Lambdas(er.measures.ERR(max_grade=40), truncation=3, neighbors=5, normalize=True),
    er.losses.Lambdas(er.measures.ERR(k=7), neighbors=2, link="spring"),
    er.losses.Lambdas(er.measures.AP(rel=2), link="step", neighbors=1),
    er.losses.Lambdas(er.measures.NDCG(empty="skip")),
    er.losses.Lambdas(er.measures.AP(empty=1)),
    er.losses.ListNetLoss(),
    er.losses.ListNetLoss("gain"),
    er.losses.ListMLELoss(),
    er.losses.ListMLELoss(k=2, seed=4),
    er.losses.ApproxNDCGLoss(er.measures.NDCG()),
    er.losses.ApproxNDCGLoss(er.measures.NDCG(gain="linear"), alpha=300.0),
]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_values_and_slopes_are_those_of_the_processor(gpu, objective, real):
    for seed in range(4):
        data, scores = ragged(seed, real)
        assert is_supported(objective)
        ours = er.losses.slopes(data, scores.astype(np.float64), objective)
        values, slope = asked(gpu, objective, data, scores)
        scale = max(1.0, np.abs(ours.slope).max(), np.abs(ours.values).max())
        assert np.abs(host(slope) - ours.slope).max() <= TOLERANCE[real] * scale
        assert np.abs(host(values) - ours.values).max() <= TOLERANCE[real] * scale


@pytest.mark.parametrize("ties", ["input", "pessimistic", "expected"])
@pytest.mark.parametrize("name", MEASURES + OF_PAIRS)
def test_measures_are_those_of_the_processor(gpu, name, ties):
    for seed in range(4):
        data, scores = ragged(seed, np.float64)
        measure = dataclasses.replace(er.parse_measure(name), ties=ties)
        assert supports(measure)
        if name.startswith("Bpref"):
            data = dataclasses.replace(data, y=data.y - (np.arange(data.n_documents) % 5 == 0))  # some are not judged
        scores[:: 3 + seed] = -np.inf  # not retrieved
        ours = er.evaluate(data, scores, [measure]).per_query[0]
        lists, given = on(gpu, data), gpu.xp.asarray(scores)
        theirs = CudaMeasure.of(measure, lists, gpu.xp.asarray(data.y)).values(given, retrieved=lists.retrieval_counts(given))
        np.testing.assert_allclose(host(theirs), ours, atol=1e-12)


@pytest.mark.parametrize("objective", [er.losses.Lambdas(er.measures.NDCG(k=10)), er.losses.Lambdas(), er.losses.ListNetLoss()], ids=str)
def test_weights_count_and_scores_that_are_no_numbers_spoil_their_query_alone(gpu, objective):
    data, scores = ragged(1, np.float64)
    data = dataclasses.replace(data, query_weight=np.random.default_rng(0).random(data.n_queries))
    ours = er.losses.slopes(data, scores, objective)
    values, slope = map(host, asked(gpu, objective, data, scores))
    np.testing.assert_allclose(values, ours.values, atol=1e-12)
    np.testing.assert_allclose(slope, ours.slope, atol=1e-12)
    q = int(np.flatnonzero(data.sizes > 3)[0])
    for wrong in (np.nan, np.inf, -np.inf):
        spoilt = scores.copy()
        spoilt[data.indptr[q] + 1] = wrong
        result, slopes = map(host, asked(gpu, objective, data, spoilt))
        of_q = slice(data.indptr[q], data.indptr[q + 1])
        assert np.flatnonzero(np.isnan(result)).tolist() == [q]
        assert np.isnan(slopes[of_q]).all()
        assert np.isnan(slopes).sum() == data.sizes[q]


def test_long_lists_are_sorted_in_main_memory(gpu, monkeypatch):
    data, scores = ragged(2, np.float64)
    objective = er.losses.Lambdas(er.measures.NDCG(k=10))
    in_shared_memory = list(map(host, asked(gpu, objective, data, scores)))
    monkeypatch.setattr("exactrank.backends.cuda.lists.IN_SHARED_MEMORY", 7)
    for ours, theirs in zip(in_shared_memory, asked(gpu, objective, data, scores), strict=True):
        assert np.array_equal(ours, host(theirs))


def test_a_query_of_20_000_documents(gpu):
    rng = np.random.default_rng(1)
    data = er.RankingData.from_arrays(None, rng.integers(0, 5, 20_003), group=[1, 20_000, 2])
    scores = np.round(rng.normal(size=20_003), 3).astype(np.float32)
    objective = er.losses.Lambdas(er.measures.NDCG(k=10))
    ours = er.losses.slopes(data, scores.astype(np.float64), objective)
    values, slope = map(host, asked(gpu, objective, data, scores))
    np.testing.assert_allclose(slope, ours.slope, atol=1e-6)
    np.testing.assert_allclose(values, ours.values, atol=1e-6)
    assert np.array_equal(slope, host(asked(gpu, objective, data, scores)[1]))  # the same bits again


LINES = [
    "nDCG@10",
    "nDCG",
    "nDCG(ties='pessimistic', gain='linear')@3",
    "DCG@4",
    "P@5",
    "R@3",
    "RBP(p=0.6)",
    "nDCG(empty='skip', short='zero')@5",
    "nDCG(empty=1)",
]


@pytest.mark.parametrize("name", LINES)
def test_line_search_finds_the_best_interval_of_the_profile(on_cuda, name):
    measure = er.parse_measure(name)
    for seed in range(8):
        data, scores = ragged(seed, np.float64)
        rng = np.random.default_rng(seed)
        slopes = np.round(rng.normal(size=data.n_documents), seed % 4)  # few values: many lines cross at one point, many are parallel
        low, high = [(-np.inf, np.inf), (-1.0, 2.0), (0.0, np.inf)][seed % 3]
        bound = measure.on(data)
        search = CudaLineSearch(bound)
        assert search.start(scores) == pytest.approx(bound.mean(scores), abs=1e-12)
        result, whole = search.best(slopes, low, high), er.profile(data, scores, slopes, measure)
        expected = whole.best(low, high)
        assert (result.low, result.high, result.value) == pytest.approx((expected.low, expected.high, expected.value), rel=2e-12, abs=1e-12)
        assert result == search.best(slopes, low, high)  # the same bits again


@pytest.mark.parametrize("name", LINES)
def test_a_profile_is_the_whole_function_also_where_documents_tie(gpu, on_cuda, name):
    measure = er.parse_measure(name)
    for seed in range(6):
        data, scores = ragged(seed, np.float64)
        slopes = np.round(np.random.default_rng(seed).normal(size=data.n_documents), seed % 4)
        result, expected = (er.profile(data, scores, slopes, measure, backend=backend) for backend in BACKENDS)
        apart = np.diff(expected.breakpoints) > 1e-9
        between = (expected.breakpoints[:-1] + expected.breakpoints[1:])[apart] / 2
        np.testing.assert_allclose(result(between), expected(between), atol=1e-12)
        np.testing.assert_allclose(result.values[[0, -1]], expected.values[[0, -1]], atol=1e-12)
        assert result.best().value == pytest.approx(expected.best().value, abs=1e-12)
        bound = measure.on(data)
        for i in range(0, len(result.breakpoints), 7):
            assert result.at[i] == pytest.approx(bound.mean(scores + result.breakpoints[i] * slopes), abs=1e-12)


def test_a_profile_between_two_ends_is_that_part_of_the_whole(gpu, on_cuda):
    data, scores = ragged(3, np.float64)
    slopes = np.random.default_rng(3).normal(size=data.n_documents)
    whole = er.profile(data, scores, slopes, "nDCG@10", backend=er.CudaBackend())
    for low, high in ((whole.breakpoints[9], whole.breakpoints[40]), (0.0, 2.0), (0.5, np.inf), (-3.0, -1.0)):
        part = er.profile(data, scores, slopes, "nDCG@10", low=low, high=high, backend=er.CudaBackend())
        inside = (whole.breakpoints >= low) & (whole.breakpoints <= high)
        assert part.breakpoints.tolist() == whole.breakpoints[inside].tolist()
        assert part.at.tolist() == whole.at[inside].tolist()


def test_long_lists_and_many_events_take_main_memory_in_parts(gpu, on_cuda, monkeypatch):
    data, scores = ragged(4, np.float64)
    slopes = np.random.default_rng(4).normal(size=data.n_documents)

    def found():
        search = CudaLineSearch(er.measures.NDCG(k=10).on(data))
        search.start(scores)
        return search.best(slopes), search.profile(slopes).values.tobytes()

    at_once = found()
    for name, value in (("IN_SHARED_MEMORY", 32), ("ROOM", 1 << 12), ("EVENTS", 4)):
        monkeypatch.setattr(f"exactrank.backends.cuda.line_search.{name}", value)
    assert found() == at_once


@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (-0.5, 1.0), (0.25, 2.0), (-np.inf, -0.1)])
def test_line_search_between_two_ends_that_need_not_hold_0(gpu, on_cuda, low, high):
    data, scores = ragged(5, np.float64)
    slopes = np.random.default_rng(5).normal(size=data.n_documents)
    result, expected = (er.line_search(data, scores, slopes, "nDCG@5", low=low, high=high, backend=backend) for backend in BACKENDS)
    assert result.alpha == pytest.approx(expected.alpha, rel=1e-11)
    assert dataclasses.astuple(result.interval) == pytest.approx(dataclasses.astuple(expected.interval), rel=2e-12)


def learnable(queries: int = 30) -> er.RankingData:
    """Features of real values, so that no two documents tie and each best interval is the only one."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(queries * 12, 4)).astype(np.float32)
    grades = np.digitize(X @ [2.0, -1.0, 0.5, 0.0] + rng.normal(size=len(X)), [1.0, 2.5])
    return er.RankingData.from_arrays(X, grades, qid=np.arange(len(X)) // 12)


@pytest.mark.parametrize(
    "settings",
    [
        {"bags": 0},
        {"bags": 3},
        {"bags": 0, "solver": "powell", "max_iter": 2},
        {"bags": 0, "low": -0.5, "high": 1.5, "point": "likelihood"},
        {"bags": 2, "nonnegative": True},
    ],
    ids=str,
)
def test_directrank_learns_the_same_model_on_the_gpu(gpu, on_cuda, settings):
    data = learnable()
    theirs, ours = (er.DirectRank("nDCG@5", backend=backend, **settings).fit(data) for backend in BACKENDS)
    np.testing.assert_allclose(theirs.model_.scorer.weights, ours.model_.scorer.weights, rtol=1e-9)
    assert theirs.score(data) == ours.score(data)
    again = er.DirectRank("nDCG@5", backend=er.CudaBackend(), **settings).fit(data)
    assert again.model_.scorer.weights.tobytes() == theirs.model_.scorer.weights.tobytes()


def test_features_are_sent_once(on_cuda, monkeypatch):
    asked, feature = [], CudaFeatures.feature
    monkeypatch.setattr(CudaFeatures, "feature", lambda self, number: asked.append(self) or feature(self, number))
    er.DirectRank("nDCG@5", backend=er.CudaBackend(), bags=3, share=1.0).fit(learnable())
    assert [len(features._features) for features in set(asked)] == [4]
    assert len(asked) > 12


def test_a_round_makes_no_scores_on_the_processor(on_cuda, monkeypatch):
    data = learnable()
    problem, alone = (LinearProfile.of(er.measures.NDCG(k=5).over(dataset_of(data, backend))) for backend in BACKENDS)
    search, rng = CoordinateSearch(), np.random.default_rng(0)
    expected = search.step(alone, search.init(alone, np.ones(4), rng))
    monkeypatch.setattr("exactrank.learning.objectives.linear_profile._core", None)
    result = search.step(problem, search.init(problem, np.ones(4), rng))
    np.testing.assert_allclose(result.theta, expected.theta, rtol=1e-9)
    assert result.value == pytest.approx(expected.value, abs=1e-12)


@pytest.mark.parametrize("name", ["AP", "ERR@5", "RR", "nDCG(ties='expected')@5", "MeanNDCG"])
def test_other_measures_are_refused_with_the_remedy(gpu, on_cuda, name):
    data = learnable()
    for ask in (
        lambda: er.line_search(data, data.X[:, 0], data.X[:, 1], name, backend=er.CudaBackend()),
        lambda: er.profile(data, data.X[:, 0], data.X[:, 1], name, backend=er.CudaBackend()),
        lambda: er.DirectRank(name, backend=er.CudaBackend()).fit(data),
    ):
        with pytest.raises(er.errors.IncompatibleError, match=r"knows nDCG, DCG, P, R and RBP.*leave out backend"):
            ask()


def test_documents_that_were_not_retrieved_and_other_backends_are_refused(on_cuda):
    data = learnable()
    scores = np.where(np.arange(data.n_documents) == 3, -np.inf, data.X[:, 0])
    for ask in (er.profile, er.line_search):
        with pytest.raises(er.errors.IncompatibleError, match=r"-inf.*leave out backend"):
            ask(data, scores, data.X[:, 1], "nDCG@5", backend=er.CudaBackend())
        with pytest.raises(er.errors.IncompatibleError, match=r"backend is 'cuda'; give a backend, .*er.CudaBackend\(\)"):
            ask(data, data.X[:, 0], data.X[:, 1], "nDCG@5", backend="cuda")
    with pytest.raises(er.errors.SettingError, match=r"backend='cuda'"):
        er.DirectRank("nDCG@5", backend="cuda").fit(data)
    with pytest.raises(
        er.errors.IncompatibleError, match=r"Ridge computes nothing by CudaBackend\(\); leave out backend, or use DirectRank"
    ):
        er.Ridge(backend=er.CudaBackend()).fit(data)
    with pytest.raises(er.errors.IncompatibleError, match=r"er.evaluate computes nothing by CudaBackend\(\)"):
        er.evaluate(data, data.X[:, 0], ["nDCG@5"], backend=er.CudaBackend())


def test_constraints_are_kept_on_the_gpu_too(on_cuda):
    data = learnable()
    theirs, ours = (er.DirectRank("nDCG@5 subject to P@3 >= 0.3", bags=0, backend=backend).fit(data) for backend in BACKENDS)
    np.testing.assert_allclose(theirs.model_.scorer.weights, ours.model_.scorer.weights, rtol=1e-9)


def test_a_ranker_with_the_backend_can_be_copied_and_its_model_does_not_name_it(on_cuda):
    ranker = pickle.loads(pickle.dumps(er.DirectRank("nDCG@5", bags=0, max_iter=1, backend=er.CudaBackend())))
    assert repr(ranker.backend) == "CudaBackend()"
    assert "backend" not in ranker.fit(learnable()).model_.params
    assert np.array_equal(clone(ranker).fit(learnable()).weights_, ranker.weights_)


def test_a_measure_that_counts_no_query_is_no_number(on_cuda):
    data, scores = ragged(0, np.float64)
    data = dataclasses.replace(data, y=np.zeros(data.n_documents))
    search = CudaLineSearch(er.measures.NDCG(empty="skip").on(data))
    assert np.isnan(search.start(scores))
    assert np.isnan(search.best(scores).value)


def test_without_cupy_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    cuda.cache_clear()
    data = learnable()
    with pytest.raises(er.errors.IncompatibleError, match="pip install 'exactrank\\[cuda\\]'"):
        er.DirectRank("nDCG@5", backend=er.CudaBackend()).fit(data)
    with pytest.raises(er.errors.IncompatibleError, match="needs CuPy"):
        er.profile(data, data.X[:, 0], data.X[:, 1], "nDCG@5", backend=er.CudaBackend())


def test_without_a_gpu_or_with_too_little_memory_the_error_says_what_to_do(gpu, on_cuda, monkeypatch):
    cupy = types.ModuleType("cupy")
    cupy.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(CUDARuntimeError=RuntimeError, getDeviceCount=_no_device))
    with (
        monkeypatch.context() as patch,
        pytest.raises(er.errors.IncompatibleError, match=r"no GPU .* \(no CUDA-capable device is detected\); compute on"),
    ):
        patch.setitem(sys.modules, "cupy", cupy)
        Cuda()
    data = learnable()
    for method in ("value", "near_best", "steps"):
        monkeypatch.setattr(f"exactrank.backends.cuda.line_search.CudaLineSearch.{method}", _no_memory(gpu))
        with pytest.raises(
            er.errors.IncompatibleError, match=re.escape(f"too little memory for 360 documents ({gpu.out_of_memory(8, 0)}); give fewer")
        ):
            er.DirectRank("nDCG@5", backend=er.CudaBackend()).fit(data)


def _no_device():
    raise RuntimeError("no CUDA-capable device is detected")


def _no_memory(gpu):
    def raising(*_):
        raise gpu.out_of_memory(8, 0)  # as CuPy says how many bytes are wanted, and how many are taken

    return raising
