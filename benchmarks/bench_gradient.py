"""Claims, on 1,000 queries x 40 documents x 46 features: an epoch of LambdaRank with 10 hidden units, one update per query, is >= 15x
faster than a PyTorch loop and >= 10x faster than Rax, and a fit is above their test NDCG@10 (0.564 and 0.578); every linear
method is above ridge regression. RankNet V2 is >= 8x faster than V1 at 50 documents per query.

The set is that of ``../shared/tools/artificial_sets.py`` if it is given (``--artificial FOLDER`` with letor.{train,vali,test}.npz),
otherwise a noisy cubic of our own. PyTorch and Rax (with Optax) take part where they are installed: ``pip install torch rax optax``.
"""

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from timing import best, in_yards, pin, table, with_artificial

import exactrank as er
from exactrank.data.synthetic import CubicPolynomial
from exactrank.learning.objectives.parametric import Parametric
from exactrank.models.architecture import Architecture, LinearModel, form_of
from exactrank.reproduce.ranknet_speedup import RankNetTraining

MEASURE = "nDCG(empty='skip')@10"
HIDDEN = 10
SEEDS = 3
METHODS = {
    "RankNet": er.RankNet,
    "LambdaRank": er.LambdaRank,
    "LambdaRank, random start": lambda **given: er.LambdaRank(start="random", **given),
    "LambdaRank, polished": lambda **given: er.LambdaRank(polish="directrank", **given),
    "ListNet": er.ListNet,
    "ListMLE": er.ListMLE,
    "ListMLE, top 10": lambda **given: er.ListMLE(top=10, **given),
    "RankCosine": er.RankCosine,
    "RankCosine, consistent": lambda **given: er.RankCosine(consistent=True, **given),
    "SmoothRank": er.SmoothRank,
    "ApproxNDCG": er.ApproxNDCG,
    "SPSARank": er.SPSARank,
}


def sets(folder: Path | None) -> list[er.RankingData]:
    if folder is None:
        source = CubicPolynomial(features=46, documents=40, noise=1.0)
        return [source.data(queries, first) for queries, first in ((1000, 1), (300, 10_001), (1000, 20_001))]
    loaded = [np.load(folder / f"letor.{part}.npz") for part in ("train", "vali", "test")]
    return [er.RankingData.from_arrays(each["X"], each["y"], qid=each["qid"]) for each in loaded]


def score(data: er.RankingData, scores: np.ndarray) -> float:
    return er.evaluate(data, scores, MEASURE).means[MEASURE]


def queries_of(data: er.RankingData, architecture: Architecture):
    """Return the standardized features and the grades of each query."""
    Z = ((data.X - architecture.mean) / architecture.scale).astype(np.float32)
    return [(Z[a:b], data.y[a:b].astype(np.float32)) for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True)]


def torch_loop(train: er.RankingData, rate: float = 0.01):
    """Return an epoch of LambdaRank as people write it: forces without a graph, one backward pass and one step per query."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    architecture = LinearModel().on(train)
    net = torch.nn.Sequential(torch.nn.Linear(train.n_features, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    lists = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in queries_of(train, architecture)]

    def forces(s, y):
        rank = torch.argsort(torch.argsort(s, descending=True)) + 1
        discount, gain = 1 / torch.log2(1.0 + rank), 2**y - 1
        ideal = (torch.sort(gain, descending=True).values / torch.log2(2.0 + torch.arange(len(y)))).sum()
        delta = ((gain[:, None] - gain) * (discount[:, None] - discount)).abs() / ideal
        push = (y[:, None] > y) * delta * torch.sigmoid(s - s[:, None])
        return push.sum(1) - push.sum(0)

    def epoch():
        for i in torch.randperm(len(lists)):
            x, y = lists[i]
            if y.max() == y.min():
                continue
            s = net(x)[:, 0]
            optimizer.zero_grad()
            s.backward(-forces(s.detach(), y))
            optimizer.step()

    return epoch


def rax_loop(train: er.RankingData, rate: float = 0.01):
    """Return an epoch with Rax's LambdaRank weights, compiled, one step per query; lists are padded to the longest, as Rax needs them."""
    import jax
    import jax.numpy as jnp
    import optax
    import rax

    architecture = LinearModel().on(train)
    longest = train.longest
    padded = []
    for x, y in queries_of(train, architecture):
        room = longest - len(y)
        padded.append((np.pad(x, ((0, room), (0, 0))), np.pad(y, (0, room)), np.arange(longest) < len(y)))
    rng = np.random.default_rng(0)
    shapes = {"w": (train.n_features, HIDDEN), "b": (HIDDEN,), "v": (HIDDEN,)}
    params = {name: jnp.asarray(rng.standard_normal(shape) / np.sqrt(shape[0]), jnp.float32) for name, shape in shapes.items()}
    optimizer = optax.sgd(rate)

    def net(params, x):
        return jnp.tanh(x @ params["w"] + params["b"]) @ params["v"]

    def loss(params, x, y, where):
        weights = rax.dcg2_lambdaweight
        return rax.pairwise_logistic_loss(net(params, x), y, where=where, lambdaweight_fn=weights, reduce_fn=jnp.sum)

    @jax.jit
    def step(params, state, x, y, where):
        updates, state = optimizer.update(jax.grad(loss)(params, x, y, where), state)
        return optax.apply_updates(params, updates), state

    training_state = {"params": params, "state": optimizer.init(params)}

    def epoch():
        params, state = training_state["params"], training_state["state"]
        for i in rng.permutation(len(padded)):
            params, state = step(params, state, *padded[i])
        training_state["params"], training_state["state"] = jax.block_until_ready(params), state

    return epoch


def epochs(train: er.RankingData) -> None:
    pin(1)
    architecture = form_of(HIDDEN).on(train)
    problem = Parametric(er.losses.Lambdas(er.measures.NDCG()), architecture, train, threads=1)
    theta, order = architecture.initial(np.random.default_rng(0)), np.random.default_rng(1).permutation(train.n_queries)
    ours = best(lambda: problem.pass_over(theta, order, 0.01), 10)
    rows = [["exactrank", f"{1e3 * ours:.1f}", "1.0"]]
    for name, package, loop in (("PyTorch", "torch", torch_loop), ("Rax", "rax", rax_loop)):
        if find_spec(package) is None:
            print(f"{name} is not installed, so it does not take part", file=sys.stderr)
            continue
        epoch = loop(train)
        epoch()
        theirs = best(epoch, 5)
        rows.append([name, f"{1e3 * theirs:.1f}", f"{theirs / ours:.1f}"])
    title = f"An epoch of LambdaRank, {HIDDEN} hidden units, one update per query, one core"
    table("epochs", title, ["", "ms", "x ours"], rows, in_yards({"exactrank": ours}))


def both_versions(data: er.RankingData, hidden: int | None) -> tuple[float, float]:
    """Return the seconds of an epoch of V1 and of V2."""
    architecture = form_of(hidden).on(data)
    problem = RankNetTraining(er.losses.Lambdas(), architecture, data, threads=1)
    theta, order = architecture.initial(np.random.default_rng(0)), np.arange(data.n_queries)
    return best(lambda: problem.pass_over_pairs(theta, order, 1e-4), 3), best(lambda: problem.pass_over(theta, order, 1e-4), 7)


def versions() -> None:
    """V1 goes forwards and backwards pair by pair, V2 document by document."""
    pin(1)
    rows, costs = [], {}
    for documents in (10, 25, 50, 100):
        data = CubicPolynomial(documents=documents).data(10_000 // documents)
        for hidden in (None, HIDDEN):
            v1, v2 = both_versions(data, hidden)
            costs[f"{documents} documents, hidden {hidden}"] = v2 / v1
            rows.append([str(documents), str(hidden or "linear"), f"{1e3 * v1:.1f}", f"{1e3 * v2:.1f}", f"{v1 / v2:.1f}"])
    title = "RankNet, an epoch over 10,000 documents x 50 features, one core"
    table("versions", title, ["documents per query", "hidden", "V1, ms", "V2, ms", "ratio"], rows, costs)


def fitted(make, sets_: list[er.RankingData], **settings) -> list[str]:
    """Return nDCG@10 on all sets, as a mean over seeds, and the seconds per fit."""
    train, valid, _ = sets_
    results, start = [], time.perf_counter()
    for seed in range(SEEDS):
        model = make(measure=MEASURE, seed=seed, **settings).fit(train, valid=valid)
        results.append([score(data, model.predict(data)) for data in sets_])
    return [*(f"{mean:.4f}" for mean in np.mean(results, axis=0)), f"{(time.perf_counter() - start) / SEEDS:.1f}"]


def quality(datasets: list[er.RankingData]) -> None:
    rows = [["Ridge", "linear", *fitted(er.Ridge, datasets)]]
    rows += [
        [name, str(hidden or "linear"), *fitted(make, datasets, hidden=hidden)]
        for name, make in METHODS.items()
        for hidden in (None, HIDDEN)
    ]
    table("quality", f"nDCG@10, mean of {SEEDS} seeds, two cores", ["", "hidden", "training", "validation", "test", "fit, s"], rows)


def starts() -> None:
    """Compare starts on data without noise, which has most to learn."""
    source = CubicPolynomial()
    datasets = [source.data(queries, first) for queries, first in ((3000, 1), (1000, 20_001), (2000, 40_001))]
    names = ("RankNet", "LambdaRank", "LambdaRank, random start")
    rows = [[name, *fitted(METHODS[name], datasets, hidden=HIDDEN, max_iter=100)] for name in names]
    title = f"nDCG@10 without noise, 3,000 queries x 50 documents x 50 features, {HIDDEN} hidden units, mean of {SEEDS} seeds"
    table("starts", title, ["", "training", "validation", "test", "fit, s"], rows)


def main() -> None:
    parser = with_artificial(__doc__)
    parser.add_argument("--only", choices=["quality", "starts", "epochs", "versions"])
    options = parser.parse_args()
    data = sets(options.artificial)
    if options.only in (None, "quality"):
        quality(data)
    if options.only in (None, "starts"):
        starts()
    if options.only in (None, "epochs"):
        epochs(data[0])
    if options.only in (None, "versions"):
        versions()


if __name__ == "__main__":
    sys.exit(main())
