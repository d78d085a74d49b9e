"""`exactrank.torch`: losses and measures of tensors are exactrank's own."""

import copy
import pickle

import numpy as np
import pytest

import exactrank as er
from exactrank.backends.cuda.objectives import is_supported
from tests.backends.cuda.test_cuda import learnable, ragged

torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'exactrank[torch]'")
xt = pytest.importorskip("exactrank.torch")
TensorCache = pytest.importorskip("exactrank.torch.groups").TensorCache

OBJECTIVES = [
    er.losses.Lambdas(er.measures.NDCG(k=10)),
    er.losses.Lambdas(er.measures.AP()),
    er.losses.Lambdas(er.measures.ERR(), link="spring"),
    er.losses.Lambdas(),
    er.losses.FiniteDifference(er.measures.NDCG(k=5)),
    er.losses.SampledLambdas(er.measures.NDCG(), samples=3, seed=2),
    er.losses.Structured(er.measures.NDCG(k=5)),
    er.losses.PairForces(lambda pairs: pairs.delta * np.exp(-pairs.lead), er.measures.NDCG()),
    er.losses.ListNetLoss(),
    er.losses.ListMLELoss(),
    er.losses.RankCosineLoss(),
    er.losses.ApproxNDCGLoss(er.measures.NDCG()),
    er.losses.SmoothMeasure(er.measures.NDCG(k=10)),
    er.losses.PairHinge(),
]
CONSERVATIVE = [
    er.losses.Lambdas(),
    er.losses.Lambdas(link="spring"),
    er.losses.ListNetLoss(),
    er.losses.ListMLELoss(),
    er.losses.ApproxNDCGLoss(er.measures.NDCG()),
    er.losses.SmoothMeasure(er.measures.NDCG()),
]


def tensors(seed: int, dtype=torch.float64):
    data, scores = ragged(seed, np.float64)
    return data, torch.tensor(scores, dtype=dtype, requires_grad=True), torch.tensor(data.y)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: type(objective).__name__)
def test_the_loss_is_minus_the_objective_and_its_gradient_minus_the_slope(objective):
    for seed in range(3):
        data, scores, grades = tensors(seed)
        loss = xt.RankingLoss(objective, reduction="sum").eval()
        value = loss(scores, grades, lengths=data.sizes)
        value.backward()
        ours = er.losses.slopes(data, scores.detach().numpy(), objective)
        assert value.item() == pytest.approx(-ours.values.sum(), abs=1e-12)
        assert np.array_equal(scores.grad.numpy(), -ours.slope)


@pytest.mark.parametrize("objective", CONSERVATIVE, ids=lambda objective: type(objective).__name__)
def test_the_gradient_is_that_of_the_value_where_there_is_a_potential(objective):
    rng = np.random.default_rng(5)
    scores = torch.tensor(rng.normal(size=11), requires_grad=True)
    grades = torch.tensor(rng.integers(0, 4, 11))
    loss = xt.RankingLoss(objective)
    assert torch.autograd.gradcheck(lambda s: loss(s, grades, lengths=[4, 1, 6]), (scores,), eps=1e-6, atol=1e-6)


def test_documents_may_be_grouped_in_any_way():
    data, scores, grades = tensors(1)
    loss = xt.RankingLoss(er.losses.Lambdas(er.measures.AP()))
    rng = np.random.default_rng(0)
    weight = torch.tensor(rng.random(data.n_queries))
    by_lengths = loss(scores, grades, lengths=data.sizes, query_weight=weight)
    (gradient,) = torch.autograd.grad(by_lengths, scores)
    shuffled = rng.permutation(data.n_documents)
    qid = np.repeat(np.arange(data.n_queries), data.sizes)[shuffled]
    mask = torch.tensor(np.arange(data.longest)[None, :] < data.sizes[:, None])
    wide = torch.full(mask.shape, float("nan"), dtype=torch.float64)
    wide[mask] = scores.detach()
    wide.requires_grad_()
    wide_grades = torch.zeros(mask.shape)
    wide_grades[mask] = grades.float()
    ways = {
        "offsets": (loss(scores, grades, offsets=data.indptr, query_weight=weight), scores, lambda g: g),
        "padded": (loss.padded(wide, wide_grades, mask, query_weight=weight), wide, lambda g: g[mask]),
    }
    for name, (value, leaf, flat) in ways.items():
        (result,) = torch.autograd.grad(value, leaf)
        assert value.item() == by_lengths.item(), name
        assert torch.equal(flat(result), gradient), name
    # Of equal scores those first in a query come first; to give each document its own tie-break, scores here are all different.
    apart = torch.tensor(rng.permutation(data.n_documents) / 10.0, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(apart, grades, lengths=data.sizes, query_weight=weight), apart)
    (result,) = torch.autograd.grad(loss(apart[shuffled], grades[shuffled], qid=qid, query_weight=weight), apart)
    assert torch.allclose(result, gradient, rtol=0, atol=1e-15)


def test_weights_and_empty_queries():
    loss = xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG()), reduction="none")
    scores = torch.tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True)
    grades = torch.tensor([1, 0, 2, 2])
    values = loss(scores, grades, lengths=[2, 0, 2], query_weight=torch.tensor([2.0, 5.0, 1.0]))
    assert values.tolist() == pytest.approx([-2 / np.log2(3), 0.0, -1.0])
    values.sum().backward()
    assert scores.grad[2:].tolist() == [0.0, 0.0]  # of one grade: nothing to learn, never NaN
    assert xt.RankingLoss(er.losses.Lambdas())(scores, torch.zeros(4), lengths=[4]).item() == 0.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_is_cast_up_inside(dtype):
    data, scores, grades = tensors(2, dtype)
    loss = xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG(k=10)))
    loss(scores, grades, lengths=data.sizes).backward()
    ours = er.losses.slopes(data, scores.detach().double().numpy(), er.losses.Lambdas(er.measures.NDCG(k=10))).slope / data.n_queries
    assert scores.grad.dtype == dtype
    assert torch.allclose(scores.grad.double(), -torch.tensor(ours), atol=2e-2 if dtype != torch.float32 else 1e-7)


def test_grades_that_change_or_come_from_inference_mode_are_seen():
    loss = xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG()))
    scores, grades = torch.tensor([0.1, 0.2], requires_grad=True), torch.tensor([1.0, 0.0])
    lengths = torch.tensor([2])
    before = loss(scores, grades, lengths=lengths).item()
    grades.copy_(torch.tensor([0.0, 1.0]))
    assert (before, loss(scores, grades, lengths=lengths).item()) == pytest.approx((-1 / np.log2(3), -1.0))
    with torch.inference_mode():
        theirs = torch.tensor([1.0, 0.0])
        assert loss(torch.tensor([0.1, 0.2]), theirs, lengths=[2]).item() == pytest.approx(before)


def test_draws_change_from_step_to_step_in_training_alone():
    data, scores, grades = tensors(3)
    loss = xt.RankingLoss(er.losses.SampledLambdas(er.measures.NDCG(), samples=1, noise=3.0))
    gradients = [torch.autograd.grad(loss(scores, grades, lengths=data.sizes), scores)[0] for _ in range(2)]
    assert not torch.equal(*gradients)
    again = copy.deepcopy(loss).eval()
    assert torch.equal(*[torch.autograd.grad(again(scores, grades, lengths=data.sizes), scores)[0] for _ in range(2)])
    assert pickle.loads(pickle.dumps(loss)).step.item() == 2


def test_compiled_without_a_graph_break():
    data, scores, grades = tensors(0, torch.float32)
    loss = xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG(k=10)))
    qid, lengths = torch.tensor(np.repeat(np.arange(data.n_queries), data.sizes)), torch.tensor(data.sizes)
    for grouping in ({"qid": qid}, {"lengths": lengths}):
        compiled = torch.compile(lambda s, y, grouping=grouping: loss(2 * s, y, **grouping) * 3, fullgraph=True, backend="aot_eager")
        (theirs,) = torch.autograd.grad(compiled(scores, grades), scores)
        (ours,) = torch.autograd.grad(loss(2 * scores, grades, **grouping) * 3, scores)
        assert torch.equal(ours, theirs)


def test_the_operator_passes_torchs_own_checks():
    data, scores, grades = tensors(0)
    loss = xt.RankingLoss(er.losses.Lambdas())
    number = loss._number
    args = scores, grades, torch.tensor(data.sizes), None, loss.step, "lengths", number, "mean"
    torch.library.opcheck(
        torch.ops.exactrank.ranking.default, args, test_utils=("test_schema", "test_autograd_registration", "test_faketensor")
    )


def test_a_network_learns_the_measure():
    data = er.RankingData.from_arrays(*_learnable(), group=[20] * 40)
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 1)
    optimizer, loss = torch.optim.Adam(model.parameters(), 0.05), xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG(k=10)))
    X, grades = torch.tensor(data.X), torch.tensor(data.y)
    losses = []
    for _ in range(40):
        value = loss(model(X).view(-1), grades, lengths=data.sizes)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    assert losses[-1] < losses[0] - 0.1
    with torch.no_grad():
        scores = model(X).view(-1)
    assert (
        xt.evaluate(scores, grades, "nDCG@10", lengths=data.sizes)["nDCG@10"]
        == er.evaluate(data, scores.numpy(), "nDCG@10")["nDCG@10"].mean
    )


def _learnable():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(800, 5))
    return X.astype(np.float32), np.clip(np.round(X @ [1, -1, 0.5, 0, 0] + rng.normal(size=800) * 0.3), 0, 4)


def test_measures_over_batches_are_those_of_all_at_once():
    data, scores, grades = tensors(1)
    names = ["nDCG@10", "AP", "ERR(ties='expected')", "Bpref", "nDCG(empty='skip')"]
    metrics = xt.Metrics(names)
    for first, last in ((0, 5), (5, data.n_queries)):
        some = slice(data.indptr[first], data.indptr[last])
        metrics.update(scores[some], grades[some], lengths=data.sizes[first:last])
    ours = {name: result.mean for name, result in er.evaluate(data, scores.detach().numpy(), names).items()}
    assert metrics.compute() == ours
    metrics.reset()
    with pytest.raises(er.errors.DataError, match="update with a batch first"):
        metrics.compute()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grades": torch.zeros(3)}, "4 scores and 3 grades"),
        ({"lengths": [2, 1]}, "of 3 documents in all, but there are 4 scores"),
        ({"lengths": [5, -1]}, "a list of -1 documents"),
        ({"lengths": [2.0, 2.0]}, "must be whole numbers"),
        ({"lengths": [[4]]}, "one dimension"),
        ({"lengths": None}, "give exactly one of .* got none"),
        ({"qid": [0, 0, 0, 0]}, "got lengths and qid"),
        ({"lengths": None, "qid": [1, 2]}, "qid has 2 entries for 4 documents"),
        ({"lengths": None, "offsets": [1, 4]}, "must begin with 0"),
        ({"scores": torch.tensor([0.0, float("nan"), 1.0, 2.0], requires_grad=True)}, "document 1 is nan"),
        ({"scores": torch.zeros(4)}, "do not require a gradient"),
        ({"scores": torch.zeros(4, dtype=torch.int64)}, "floating-point"),
        ({"scores": torch.zeros(2, 2, requires_grad=True)}, r"call loss\.padded"),
        ({"query_weight": torch.ones(3)}, r"query_weight has shape \(3,\) for 2 queries"),
        ({"grades": torch.zeros(4, device="meta")}, "on cpu and grades on meta"),
    ],
)
def test_what_cannot_be_meant_is_refused(change, message):
    arguments = {"scores": torch.zeros(4, requires_grad=True), "grades": torch.zeros(4), "lengths": [2, 2]} | change
    with pytest.raises(er.errors.DataError, match=message):
        xt.RankingLoss(er.losses.Lambdas())(arguments.pop("scores"), arguments.pop("grades"), **arguments)


def test_what_has_no_slope_is_named():
    with pytest.raises(er.errors.IncompatibleError, match="nDCG@10 is a measure"):
        xt.RankingLoss(er.measures.NDCG(k=10))
    with pytest.raises(er.errors.SettingError, match="must be one of exactrank's objectives"):
        xt.RankingLoss("nDCG@10")
    with pytest.raises(er.errors.SettingError, match="reduction"):
        xt.RankingLoss(er.losses.Lambdas(), reduction="average")
    scores = torch.randn(4, requires_grad=True)
    (gradient,) = torch.autograd.grad(xt.RankingLoss(er.losses.Lambdas())(scores, torch.arange(4), lengths=[4]), scores, create_graph=True)
    with pytest.raises(er.errors.IncompatibleError, match="only first derivatives"):
        gradient.sum().backward()


def refilled(kind: str):
    """Grades, and what replaces their contents by others in a way that neither an address nor a version shows."""
    memory = np.array([3.0, 1.0, 0.0, 2.0, 0.0, 1.0])
    grades = torch.from_numpy(memory)
    if kind == "strides":
        return grades[:3], lambda: grades[::2]
    if kind == "numpy":
        return grades, lambda: (memory.__setitem__(slice(None), memory[::-1].copy()), grades)[1]
    return grades, lambda: (grades.data.copy_(grades.flip(0)), grades)[1]


@pytest.mark.parametrize("kind", ["numpy", "data", "strides"])
def test_grades_that_were_changed_unnoticed_are_read_anew(kind):
    grades, refill = refilled(kind)
    scores = torch.linspace(0.0, 1.0, len(grades), dtype=torch.float64, requires_grad=True)
    loss, metrics, lengths = xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG())), xt.Metrics("nDCG"), torch.tensor([len(grades)])

    def results(grades):
        value = loss(scores, grades, lengths=lengths)
        metrics.reset()
        metrics.update(scores.detach(), grades, lengths=lengths)
        return value.item(), torch.autograd.grad(value, scores)[0].tolist(), metrics.compute()["nDCG"]

    before, changed = results(grades), refill()
    after = results(changed)
    data = er.RankingData.from_arrays(None, changed.numpy(), group=[len(changed)])
    slope = er.losses.slopes(data, scores.detach().numpy(), er.losses.Lambdas(er.measures.NDCG()))
    assert after == (-slope.values[0], (-slope.slope).tolist(), er.evaluate(data, scores.detach().numpy(), "nDCG").means["nDCG"])
    assert after != before


def test_lengths_that_were_changed_unnoticed_are_read_anew():
    memory = np.array([2, 4])
    lengths, grades = torch.from_numpy(memory), torch.tensor([3, 1, 0, 2, 0, 1])
    scores = torch.linspace(0.0, 1.0, 6, requires_grad=True)
    loss = xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG()), reduction="none")
    before = loss(scores, grades, lengths=lengths).tolist()
    memory[:] = [4, 2]
    after = loss(scores, grades, lengths=lengths).tolist()
    assert after == loss(scores, grades, lengths=[4, 2]).tolist() != before


def test_results_are_computed_once_for_the_same_bits():
    cache, asked = TensorCache(), []

    def compute(*tensors):
        asked.append([tensor.tolist() for tensor in tensors])
        return len(asked)

    memory = torch.tensor([1.0, float("nan"), 2.0, 3.0])
    assert [cache.of((memory.clone(),), compute), cache.of((memory,), compute)] == [1, 1]
    with torch.inference_mode():
        assert cache.of((memory.clone(),), compute) == 1
    assert cache.of((memory,), compute, "other") == 2
    assert cache.of((memory.double(),), compute) == 3
    assert cache.of((memory[::2],), compute) == 4
    assert cache.of((memory[::2].contiguous(),), compute) == 4
    assert cache.of((memory.flip(0),), compute) == 5
    assert cache.of((memory,), compute) == 6  # the first of five is forgotten
    assert cache.of((torch.ones(2, 2, dtype=torch.bool),), compute) == cache.of((torch.ones(2, 2, dtype=torch.bool).T,), compute) == 7


def test_a_batch_without_weight_has_no_loss_and_no_gradient():
    scores, grades = torch.tensor([0.1, 0.2, 0.4, 0.3], requires_grad=True), torch.tensor([1, 0, 0, 1])
    for reduction in ("mean", "sum", "none"):
        loss = xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG()), reduction)(scores, grades, lengths=[2, 2], query_weight=torch.zeros(2))
        (gradient,) = torch.autograd.grad(loss.sum(), scores)
        assert not loss.any()
        assert not gradient.any()


def test_measures_need_some_weight_over_all_batches():
    metrics, scores, grades = xt.Metrics("nDCG"), torch.tensor([0.1, 0.2]), torch.tensor([1, 0])
    metrics.update(scores, grades, lengths=[2], query_weight=torch.zeros(1))
    with pytest.raises(er.errors.DataError, match="query_weight is zero everywhere; at least one must be positive"):
        metrics.compute()
    metrics.update(scores, grades, lengths=[2], query_weight=torch.ones(1))
    assert metrics.compute() == xt.evaluate(scores, grades, "nDCG", lengths=[2])


on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that PyTorch can use")


@on_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: type(objective).__name__)
def test_scores_on_the_gpu_get_the_same_loss_and_gradient(objective, dtype):
    data, scores, grades = tensors(2, dtype)
    loss = xt.RankingLoss(objective).eval()
    weight = torch.linspace(0.5, 2.0, data.n_queries)
    expected = loss(scores, grades, lengths=data.sizes, query_weight=weight)
    expected.backward()
    there = scores.detach().cuda().requires_grad_()
    result = loss.cuda()(there, grades.cuda(), lengths=data.sizes, query_weight=weight.cuda())
    result.backward()
    assert result.is_cuda
    assert there.grad.dtype == dtype
    tolerance = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2}[dtype]
    assert torch.allclose(result.cpu().double(), expected.double(), rtol=tolerance, atol=tolerance)
    assert torch.allclose(there.grad.cpu().double(), scores.grad.double(), rtol=tolerance, atol=tolerance)
    again = scores.detach().cuda().requires_grad_()
    loss(again, grades.cuda(), lengths=data.sizes, query_weight=weight.cuda()).backward()
    assert torch.equal(again.grad, there.grad)  # the same bits


@on_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("objective", [each for each in OBJECTIVES if is_supported(each)], ids=lambda objective: type(objective).__name__)
def test_kernels_that_are_replayed_give_the_same_bits(objective, dtype):
    data, _, grades = tensors(3, dtype)
    loss, kept, lengths = xt.RankingLoss(objective), grades.cuda(), torch.tensor(data.sizes).cuda()
    for seed in range(6):
        torch.manual_seed(seed)
        scores, weight = torch.randn(len(grades)).to(dtype).cuda(), torch.rand(data.n_queries).cuda()
        results = [scores.clone().requires_grad_() for _ in range(2)]
        losses = [loss(each, y, lengths=lengths, query_weight=weight) for each, y in zip(results, (kept, kept.clone()), strict=True)]
        sum(losses).backward()
        assert torch.equal(losses[0], losses[1])
        assert torch.equal(results[0].grad, results[1].grad)


@on_gpu
def test_replayed_kernels_follow_grades_that_were_changed_unnoticed():
    loss, grades = xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG())), torch.tensor([3.0, 1.0, 0.0, 2.0], device="cuda")
    lengths = torch.tensor([4], device="cuda")
    scores = torch.linspace(0.0, 1.0, 4, device="cuda", requires_grad=True)
    for step in range(8):
        if step in (4, 5):
            grades.data.copy_(grades.flip(0))
        with torch.inference_mode(step == 2):  # records the kernels
            value = loss(scores, grades, lengths=lengths)
        assert value.item() == pytest.approx(loss(scores.cpu(), grades.cpu(), lengths=[4]).item(), abs=1e-6)


@on_gpu
def test_a_loss_in_a_graph_of_the_caller_is_refused():
    loss, grades = xt.RankingLoss(er.losses.Lambdas()), torch.arange(4, device="cuda")
    scores = torch.zeros(4, device="cuda", requires_grad=True)
    lengths = torch.tensor([4], device="cuda")
    loss(scores, grades, lengths=lengths)
    with pytest.raises(er.errors.IncompatibleError, match="cannot be recorded in a CUDA graph"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        loss(scores, grades, lengths=lengths)


@on_gpu
def test_measures_on_the_gpu_are_those_of_the_processor():
    data, scores, grades = tensors(1)
    names = ["nDCG@10", "AP", "ERR(ties='expected')", "RR", "Bpref", "nDCG(empty='skip')", "MeanNDCG"]
    metrics = xt.Metrics(names)
    for _ in range(2):  # the second time the grades are known
        metrics.update(scores.detach().cuda(), grades.cuda(), lengths=data.sizes)
    ours = {name: result.mean for name, result in er.evaluate(data, scores.detach().numpy(), names).items()}
    assert metrics.compute() == pytest.approx(ours, abs=1e-12)


@on_gpu
def test_a_network_trains_on_the_gpu():
    data = learnable()
    settings = {"measure": "nDCG@5", "hidden": (8,), "max_iter": 40, "learning_rate": 0.02, "batch_size": 10, "bags": 0, "device": "cuda"}
    ranker = er.TorchRanker(**settings).fit(data)
    assert ranker.score(data) > er.evaluate(data, np.zeros(data.n_documents), "nDCG@5").means["nDCG@5"] + 0.1
    np.testing.assert_allclose(er.TorchRanker(**settings).fit(data).predict(data), ranker.predict(data), rtol=1e-3, atol=1e-3)


@on_gpu
def test_what_goes_wrong_on_the_gpu_is_said():
    scores, grades = torch.zeros(4, device="cuda", requires_grad=True), torch.zeros(4)
    with pytest.raises(er.errors.DataError, match="on cuda:0 and grades on cpu"):
        xt.RankingLoss(er.losses.Lambdas())(scores, grades, lengths=[4])
    spoilt = torch.tensor([0.1, float("nan"), 0.3, 0.4], device="cuda", requires_grad=True)
    loss = xt.RankingLoss(er.losses.Lambdas(), reduction="none")(spoilt, torch.arange(4, device="cuda"), lengths=[2, 2])
    loss.sum().backward()
    assert torch.isnan(loss).tolist() == [True, False]
    assert torch.isnan(spoilt.grad).tolist() == [True, True, False, False]
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.set_limit(size=pool.used_bytes() + (1 << 20))
    try:
        wide = torch.zeros(1_000_000, device="cuda", requires_grad=True)
        with pytest.raises(er.errors.IncompatibleError, match="too little memory for 1,000,000 documents"):
            xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG(k=10)))(
                wide, torch.zeros(1_000_000, device="cuda"), lengths=torch.full((1000,), 1000)
            )
    finally:
        pool.set_limit(size=0)
