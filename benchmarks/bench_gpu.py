"""Lambdas, evaluation, training steps, exact line search and trees on the GPU, with padded PyTorch and the processor beside them.

    python benchmarks/bench_gpu.py          # all of it
    python benchmarks/bench_gpu.py trees    # the trees alone

Data as large as MSLR-WEB30K's training part: 18,900 queries, 2.34 million documents, 136 features. Times are medians of CUDA events.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch

import exactrank as er
import exactrank.torch as xt
from exactrank.backends.cuda.device import Cuda, cuda
from exactrank.backends.cuda.line_search import CudaLineSearch
from exactrank.data.sharded import with_kernels
from exactrank.learning.objectives.line_search import LineSearch
from exactrank.learning.objectives.linear_profile import LinearProfile
from exactrank.learning.optimizers.coordinate import CoordinateSearch
from exactrank.learning.training.judge import Task
from exactrank.learning.trees.forest import Trees
from exactrank.learning.trees.growth import Units
from exactrank.learning.trees.part import TreeState
from exactrank.measures.parse import parse_measure
from exactrank.rankers.lambdamart import LambdaMART
from exactrank.rankers.mart import MART
from exactrank.torch.cuda import OnDevice, lists_of, stream_of
from exactrank.torch.groups import Grouped, group

QUERIES, DOCUMENTS, FEATURES = 18_900, 2_340_000, 136


def lengths_of(rng: np.random.Generator) -> np.ndarray:
    """Lists of 124 documents in the mean, up to 1,251, with 354 million pairs in all."""
    lengths = np.clip(rng.lognormal(4.3, 1.01, QUERIES), 1, 1251)
    lengths = np.maximum(1, np.round(lengths * DOCUMENTS / lengths.sum())).astype(np.int64)
    lengths[0] += DOCUMENTS - lengths.sum()
    return lengths


def milliseconds(work, repeats: int = 30) -> float:
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return float(np.median(times))


def padded_lambdas(scores: torch.Tensor, grades: torch.Tensor, mask: torch.Tensor, k: int = 10) -> torch.Tensor:
    """The usual padded loss: all pairs of a (queries, longest, longest) tensor."""
    k = min(k, scores.shape[1])
    order = scores.masked_fill(~mask, -torch.inf).argsort(1, descending=True)
    rank = torch.empty_like(order).scatter_(1, order, torch.arange(scores.shape[1], device=scores.device).expand_as(order))
    discount = torch.where(rank < k, 1 / torch.log2(2.0 + rank), 0.0)
    gain = torch.where(mask, 2.0**grades - 1, 0.0)
    ideal = (gain.sort(1, descending=True).values[:, :k] / torch.log2(2.0 + torch.arange(k, device=scores.device))).sum(1).clamp_min(1e-9)
    delta = (gain[:, :, None] - gain[:, None]).abs() * (discount[:, :, None] - discount[:, None]).abs() / ideal[:, None, None]
    better = (grades[:, :, None] > grades[:, None]) & mask[:, :, None] & mask[:, None]
    pairs = torch.nn.functional.softplus(scores[:, None] - scores[:, :, None])
    return (delta * pairs * better).sum() / len(scores)


def main() -> None:
    rng = np.random.default_rng(0)
    sizes = lengths_of(rng)
    device = torch.device("cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    X = torch.randn(DOCUMENTS, FEATURES, device=device)
    grades = torch.tensor(rng.choice(5, DOCUMENTS, p=[0.5, 0.3, 0.13, 0.05, 0.02]), device=device).double()
    lengths = torch.tensor(sizes, device=device)
    scores = torch.randn(DOCUMENTS, device=device, requires_grad=True)
    pairs = float((sizes.astype(float) ** 2).sum() / 2)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; {QUERIES:,} queries, {DOCUMENTS:,} documents, {pairs:.2e} pairs")
    print(f"{'work':<58} ms")

    def report(name: str, work, repeats: int = 30) -> None:
        print(f"{name:<58} {milliseconds(work, repeats):.3f}", flush=True)

    lists = group("lengths", lengths, DOCUMENTS)
    report("ranking alone", lambda: _ranking(scores, lists))
    for name in ("nDCG@10", "nDCG", "AP", "ERR@10", "RR"):
        loss = xt.RankingLoss(er.losses.Lambdas(er.parse_measure(name)))
        bound, weight = OnDevice(loss.objective, lists, grades), torch.ones(QUERIES, device=device, dtype=torch.float64)
        report(f"lambdas of {name}, values and slopes", lambda bound=bound, weight=weight: bound(scores.detach(), weight))
        report(f"loss of {name}, forward and backward", lambda loss=loss: loss(scores, grades, lengths=lengths).backward())
    for objective in (er.losses.ListNetLoss(), er.losses.ListMLELoss()):
        loss = xt.RankingLoss(objective)
        report(f"{type(objective).__name__}, forward and backward", lambda loss=loss: loss(scores, grades, lengths=lengths).backward())
    metrics = xt.Metrics(["nDCG@10", "AP", "RR"])
    report("evaluation of nDCG@10, AP and RR", lambda: (metrics.reset(), metrics.update(scores.detach(), grades, lengths=lengths)))
    loss = xt.RankingLoss(er.losses.Lambdas(er.measures.NDCG(k=10)))
    for name, hidden in (("linear", ()), ("10 hidden units", (10,)), ("512-256-128", (512, 256, 128))):
        model = _network(hidden).to(device)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        report(f"net alone, {name}", lambda model=model: model(X).sum().backward(), 10)
        report(f"full-batch step, {name}", lambda model=model, optimizer=optimizer: _step(model, optimizer, loss, X, grades, lengths), 10)
    report("padded PyTorch, lambdas of nDCG@10, an epoch by 100 queries", lambda: _padded_epoch(scores.detach(), grades, sizes), 2)
    _line_search()
    _round()
    _trees(sizes)


def _line_search(queries: int = 20_000, documents: int = 120) -> None:
    """Exact line searches of nDCG@10 along features, on the GPU and on the processor."""
    rng = np.random.default_rng(0)
    grades = rng.choice(5, queries * documents, p=[0.52, 0.25, 0.15, 0.06, 0.02]).astype(float)
    data = er.RankingData.from_arrays(None, grades, group=np.full(queries, documents))
    bound = er.measures.NDCG(k=10).on(data)
    columns = np.stack([grades * 0.3 + rng.normal(size=len(grades)) for _ in range(8)]).astype(np.float32)
    scores = columns[:4].sum(0, dtype=np.float64)
    on_gpu, on_processor = CudaLineSearch(bound), LineSearch(bound)
    print(
        f"exact line search, {queries:,} x {documents} documents: value {on_gpu.start(scores):.12f} and {on_processor.start(scores):.12f}"
    )
    for j in (0, 5):
        for search in (on_gpu, on_processor):
            times, slopes = [], cuda().xp.asarray(columns[j]) if search is on_gpu else columns[j]
            for _ in range(6 if search is on_gpu else 2):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                interval = search.best(slopes)
                times.append(time.perf_counter() - begin)
            print(f"  {type(search).__name__:<20} feature {j}: {1e3 * min(times):8.2f} ms, {interval}")


def _round(queries: int = 20_000, documents: int = 120) -> None:
    """One round of DirectRank over all weights, from equal ones: searches, moves, and the values after them."""
    rng = np.random.default_rng(0)
    grades = rng.choice(5, queries * documents, p=[0.52, 0.25, 0.15, 0.06, 0.02])
    X = rng.standard_normal((len(grades), FEATURES), np.float32) + (grades * 0.1)[:, None].astype(np.float32)
    data = er.RankingData.from_arrays(X, grades, group=np.full(queries, documents))
    problem = LinearProfile.of(er.measures.NDCG(k=10, ties="pessimistic").over(with_kernels(data, er.CudaBackend())))
    search, times = CoordinateSearch(), []
    state = search.init(problem, np.ones(FEATURES), rng)
    for _ in range(2):  # the features are sent before the first
        begin = time.perf_counter()
        after = search.step(problem, state)
        times.append(time.perf_counter() - begin)
        print(f"a round over {FEATURES} weights, {len(grades):,} documents: {times[-1]:.3f} s, from {state.value:.6f} to {after.value:.6f}")
        state = after
    begin = time.perf_counter()
    er.DirectRank("nDCG@10", backend=er.CudaBackend(), start=np.ones(FEATURES).tolist(), max_iter=1).fit(data)
    print(f"DirectRank of one round, from raw data to model: {time.perf_counter() - begin:.1f} s")


def _trees(sizes: np.ndarray, count: int = 300) -> None:
    """Trees of 31 leaves on the GPU: the time of each step of a tree, and of a whole forest beside the processor's threads."""
    rng = np.random.default_rng(0)
    grades = rng.choice(5, DOCUMENTS, p=[0.52, 0.25, 0.15, 0.06, 0.02])
    X = rng.standard_normal((DOCUMENTS, FEATURES), np.float32) + (grades * 0.1)[:, None].astype(np.float32)
    data = er.RankingData.from_arrays(X, grades, group=sizes)
    for ranker in (er.MART, er.LambdaMART):
        settings = {"leaves": 31, "query_fraction": 1.0, "feature_fraction": 1.0, "bags": 0}
        _tree_steps(ranker("nDCG@10", backend=er.CudaBackend(), **settings), data)
        models = []
        for backend in (er.CudaBackend(), None):
            begin = time.perf_counter()
            models.append(ranker("nDCG@10", trees=count, backend=backend, **settings).fit(data))
            took = time.perf_counter() - begin
            print(f"{ranker.__name__} of {count} trees, backend={backend}, from raw data to model: {took:.2f} s", flush=True)
        ours, theirs = (model.predict(X[:100_000]) for model in models)
        print(f"  the scores are {'the same' if np.array_equal(ours, theirs) else 'NOT THE SAME'} to the bit", flush=True)


def _tree_steps(ranker: MART | LambdaMART, data: er.RankingData, repeats: int = 20) -> None:
    """Print the median time of each step of a tree, whose leaves are settled and added; without that of the measure on all queries."""
    measure = parse_measure(ranker.measure)
    forest = ranker._forest(Task(measure, with_kernels(data, ranker.backend)), ranker._objective(measure))
    forest.verdict(Trees())
    part, plan, times = forest.part, forest.plan, defaultdict(list)
    for number in range(repeats):
        torch.cuda.synchronize()
        marks = [time.perf_counter()]

        def mark() -> None:
            torch.cuda.synchronize()
            marks.append(time.perf_counter())  # noqa: B023

        part._follow(number)
        slope, curvature, _ = part._extremes
        mark()
        allowed, key = plan.draws.features(number, plan.layout)
        state = TreeState(number, Units.of(slope, curvature, plan.documents), False, allowed)
        growth = forest._settings.begin(plan.layout, forest._pool, allowed, plan.documents, state.units, key)
        part.start(state)
        mark()
        part.grow(growth, state)
        mark()
        tree = growth.tree()
        part.settle(tree, state)
        part.add(0.05 * forest._settings.outputs(tree, part.sums, state.units))
        mark()
        for name, took in zip(("forces", "root", "growth", "leaves and scores"), np.diff(marks), strict=True):
            times[name].append(took)
        times["all"].append(marks[-1] - marks[0])
    print(f"{type(ranker).__name__}: a tree of {len(tree.documents)} leaves, {data.n_documents:,} x {FEATURES}")
    for name, seconds in times.items():
        print(f"  {name:<40} {1e3 * np.median(seconds):8.3f} ms", flush=True)
    with _kernel_times() as kernels:
        part.grow(
            forest._settings.begin(plan.layout, forest._pool, allowed, plan.documents, state.units, key), replace(state, number=repeats)
        )
    for name, seconds in kernels.items():
        print(f"  of growth and root: {len(seconds):4} x {name:<22} {1e3 * sum(seconds):8.3f} ms", flush=True)


@contextmanager
def _kernel_times() -> Iterator[dict[str, list[float]]]:
    """Provide the seconds of each launch of each kernel in the block, each of which is waited for."""
    times: dict[str, list[float]] = defaultdict(list)
    launches = Cuda.launch, Cuda.launch_blocks

    def timed(launch, device: Cuda, kernel: str, *args: object) -> None:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        launch(device, kernel, *args)
        torch.cuda.synchronize()
        times[kernel].append(time.perf_counter() - begin)

    Cuda.launch, Cuda.launch_blocks = ((lambda device, *args, launch=launch: timed(launch, device, *args)) for launch in launches)
    try:
        yield times
    finally:
        Cuda.launch, Cuda.launch_blocks = launches  # type: ignore[method-assign]


def _ranking(scores: torch.Tensor, lists: Grouped) -> None:
    with stream_of(scores) as cupy:
        lists_of(lists, len(scores)).order(cupy.asarray(scores.detach()))


def _network(hidden: tuple[int, ...]) -> torch.nn.Module:
    layers: list[torch.nn.Module] = []
    width = FEATURES
    for units in hidden:
        layers += [torch.nn.Linear(width, units), torch.nn.ReLU()]
        width = units
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 1), torch.nn.Flatten(0))


def _step(model, optimizer, loss, X, grades, lengths) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss(model(X), grades, lengths=lengths).backward()
    optimizer.step()


def _padded_epoch(scores: torch.Tensor, grades: torch.Tensor, sizes: np.ndarray) -> None:
    at, by_size = np.concatenate([[0], np.cumsum(sizes)]), np.argsort(sizes, kind="stable")
    for first in range(0, QUERIES, 100):
        chosen = by_size[first : first + 100]
        longest = int(sizes[chosen].max())
        place = torch.tensor(at[chosen], device=scores.device)[:, None] + torch.arange(longest, device=scores.device)
        mask = torch.arange(longest, device=scores.device) < torch.tensor(sizes[chosen], device=scores.device)[:, None]
        place = place.clamp_max(len(scores) - 1)
        leaf = scores[place].requires_grad_()
        padded_lambdas(leaf, grades[place].float(), mask).backward()


if __name__ == "__main__":
    _trees(lengths_of(np.random.default_rng(0))) if sys.argv[1:] == ["trees"] else main()
