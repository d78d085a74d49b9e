"""Trees that grow on the GPU are those of the processor to the bit: by emulation here, and on a GPU too by `make test-gpu`."""

import dataclasses

import numpy as np
import pytest

import exactrank as er
from exactrank import _core
from exactrank.backends.cuda.forces import forces_on, is_exact
from exactrank.backends.cuda.lists import Lists
from exactrank.backends.cuda.node_rows import CudaBins, CudaNodeRows
from exactrank.data.dataset import Part
from exactrank.errors import IncompatibleError
from exactrank.learning.objectives.losses import SquaredError
from exactrank.learning.trees.bins import Layout
from exactrank.learning.trees.part import leaf_numbers
from tests.backends.cuda.emulated_gpu import COMPILER
from tests.backends.cuda.test_cuda import BACKENDS, host

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to run the GPU's kernels with")


def random_data(seed: int, queries: int = 40, weights: bool = False, fine: bool = False) -> er.RankingData:
    """20 features: with ties, missing values, categories (the last two), and where ``fine`` is true with many different values."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 5, 20, 60], size=queries)
    documents = int(sizes.sum())
    X = rng.normal(size=(documents, 20)).astype(np.float32)
    X[:, :8] = np.round(X[:, :8] * 2)
    if fine:
        X[:, 9] = rng.permutation(documents)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 12] = 1
    X[:, 18:] = rng.integers(0, [7, 90], size=(documents, 2))
    y = np.clip(
        np.round(np.nan_to_num(X[:, 0] + X[:, 9] / (documents if fine else 1)) + (X[:, 18] == 3) + rng.normal(size=documents)), 0, 4
    )
    data = er.RankingData.from_arrays(X, y, group=sizes)
    if not weights:
        return data
    sample = rng.choice([0.0, 0.5, 1.0, 2.5], size=documents)
    return dataclasses.replace(data, query_weight=rng.random(queries) + 0.1, sample_weight=sample)


def layout_of(data: er.RankingData, bins: int = 255) -> Layout:
    return Layout.of(Part(data), data.n_documents, bins, [18, 19], 1)


@pytest.mark.parametrize("bins", [255, 16, 2000])
@pytest.mark.parametrize("sampled", [False, True])
def test_histograms_and_leaves_are_those_of_the_processor(gpu, bins, sampled):
    data = random_data(3, queries=150, fine=True)
    rng, layout = np.random.default_rng(0), layout_of(data, bins)
    binned = _core.BinnedRows(layout.native, data.X, 1)
    assert bins < 2000 or len(binned.columns)
    slope, curvature = rng.normal(size=data.n_documents), rng.random(data.n_documents)
    curvature[::7] = 0
    slope[::5], curvature[::5] = 1.0, 1e-9
    chosen = rng.integers(0, 2, data.n_documents).astype(np.uint8) if sampled else None
    allowed = (rng.random(20) < 0.7).astype(np.uint8)
    allowed[[9, 18]] = 1
    ours, theirs = CudaNodeRows(CudaBins.of(layout.native, binned, gpu)), _core.NodeRows(binned)
    there = [None if numbers is None else gpu.xp.asarray(numbers) for numbers in (chosen, slope, curvature)]
    ours.begin(*there, 2.0**11, 2.0**11)
    theirs.begin(chosen, slope, curvature, 2.0**11, 2.0**11, 1)
    growth = growth_on(layout, allowed, data.n_documents)
    rounds = 0
    while asked := growth.asks(ahead=True):
        answer = theirs.answer(asked, allowed, data.n_documents, 1)
        assert np.array_equal(ours.answer(asked, allowed, data.n_documents), answer)
        growth.take(answer, 1)
        rounds += 1
    assert rounds > 3
    tree = growth.tree()
    numbers = leaf_numbers(data.n_documents, len(tree.documents))
    theirs.number(tree, chosen, numbers, 1)
    sums = _core.leaf_sums(numbers, chosen, slope, curvature, 2.0**40, 2.0**41, len(tree.documents))
    for _ in range(2):
        leaf, result = ours.settle(tree, *there, 2.0**40, 2.0**41)
        assert np.array_equal(host(leaf), numbers)
        assert np.array_equal(result, sums)
    scores = rng.normal(size=data.n_documents)
    values, sent = rng.normal(size=len(tree.documents)), gpu.xp.asarray(scores.copy())
    ours.add(leaf, values, sent)
    _core.add_leaf_values(scores, numbers, values)
    assert np.array_equal(host(sent), scores)


def growth_on(layout: Layout, allowed: np.ndarray, documents: int) -> _core.Growth:
    return _core.Growth(
        layout.native, _core.HistogramPool(layout.native), allowed, documents, 2.0**-11, 2.0**-11, 5, leaves=31, depth=0, min_documents=5,
        features_per_node=0, symmetric=False, min_group=5, monotone=np.empty(0, np.int8), groups=[],
        min_curvature=0.0, l1=0.0, l2=1.0, min_gain=0.0, max_step=0.0, smoothing=0.0, noise=0.0, extra=False,
    )  # fmt: skip


OBJECTIVES = [
    SquaredError(),
    SquaredError(within=True),
    er.losses.Lambdas(),
    er.losses.Lambdas(link="spring", margin=0.7, neighbors=9),
    er.losses.Lambdas(link="step", truncation=4, normalize=True),
    *(
        er.losses.Lambdas(er.parse_measure(name), near=near)
        for name in ("nDCG", "nDCG@10", "DCG@4", "P@5", "RBP(p=0.6)")
        for near in (None, 0.01)
    ),
    er.losses.Lambdas(er.parse_measure("nDCG(short='zero')@5")),
    er.losses.Lambdas(er.measures.NDCG(), normalize=True),
    er.losses.Lambdas(er.measures.NDCG(gain="linear"), link="spring", normalize=True, near=0.1),
]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@pytest.mark.parametrize("weights", [False, True])
def test_forces_are_those_of_the_processor_to_the_bit(gpu, objective, weights):
    for seed, scale in ((0, 1.0), (1, 0.0), (2, 40.0), (3, 2000.0)):
        data = random_data(seed, weights=weights)
        rng = np.random.default_rng(seed)
        scores = np.round(rng.normal(size=data.n_documents) * scale, 1)
        seen = np.where(rng.random(data.n_queries) < 0.7, data.weights, 0.0)
        assert is_exact(objective, data)
        bound = objective.on(data)
        _, slope, curvature = _core.answers(bound, scores, data.indptr, seen, True, True, 1, with_value=False)
        if data.sample_weight is not None:
            slope, curvature = slope * data.sample_weight, curvature * data.sample_weight
        xp = gpu.xp
        query = xp.asarray(np.repeat(np.arange(data.n_queries, dtype=np.int32), data.sizes))
        lists = Lists(gpu, xp.asarray(data.indptr), data.n_documents, data.longest)
        ours = forces_on(objective, data, lists, query)(xp.asarray(scores), xp.asarray(seen))
        assert np.array_equal(host(ours[0]), slope)
        assert np.array_equal(host(ours[1]), curvature)


RANKERS = [
    lambda **more: er.MART("nDCG@10", **more),
    lambda **more: er.MART("nDCG@10", within=True, shape="symmetric", **more),
    lambda **more: er.LambdaMART(
        "nDCG@10",
        monotone={"x0": 1},
        interactions=[["x0", "x9", "x18"]],
        extra=True,
        node_features=0.5,
        split_noise=0.5,
        l1=0.1,
        path_smoothing=5.0,
        max_step=0.5,
        **more,
    ),  # the host decides by these
    lambda **more: er.LambdaMART("nDCG@10", **more),
    lambda **more: er.LambdaMART("AP", lambdas="step", **more),  # on the processor, and without curvature
    lambda **more: er.LambdaMART("nDCG@5", lambdas="sampled", **more),
    lambda **more: er.DirectRankTrees("nDCG@10", **{"query_fraction": 0.7, "search": "all"} | more),
]


@pytest.mark.parametrize("number", range(len(RANKERS)))
@pytest.mark.parametrize("more", [{"query_fraction": 1.0}, {"bins": 1000, "query_fraction": 0.6}], ids=str)
@pytest.mark.parametrize("weights", [False, True])
def test_rankers_grow_the_trees_of_the_processor(on_cuda, number, more, weights):
    data, valid = (random_data(seed, weights=weights, fine=True, queries=60) for seed in (4, 5))
    names = data.feature_names
    settings = {"trees": 6, "min_documents": 3, "categorical": [names[18], names[19]], "threads": 1, "bags": 0} | more
    ours, theirs = (RANKERS[number](backend=backend, **settings).fit(data, valid=valid) for backend in BACKENDS)
    assert np.array_equal(ours.predict(data.X), theirs.predict(data.X))
    assert same_trees(ours, theirs)


def same_trees(ours, theirs) -> bool:
    tables = [ranker.model_.scorer.table for ranker in (ours, theirs)]
    names = [field.name for field in dataclasses.fields(tables[0])]
    return all(np.array_equal(*(getattr(table, name) for table in tables)) for name in names) and tables[0].n_trees > 1


def test_trees_go_on_growing_there(on_cuda):
    data = random_data(6, fine=True)
    settings = {"trees": 3, "min_documents": 3, "threads": 1, "bags": 0}
    first = er.LambdaMART("nDCG@10", **settings).fit(data)
    ours, theirs = (er.LambdaMART("nDCG@10", **settings, backend=backend).fit(data, start=first.model_) for backend in BACKENDS)
    assert same_trees(ours, theirs)


def test_data_in_several_files_is_refused(tmp_path):
    data = random_data(7)
    for part in range(2):
        er.write(data.take_queries(np.arange(part, data.n_queries, 2)), tmp_path / f"{part}.xr")
    with pytest.raises(IncompatibleError, match=r"CudaBackend\(\) computes on data in one file"):
        er.MART("nDCG@10", backend=er.CudaBackend()).fit(er.read_shards(str(tmp_path / "*.xr")))
