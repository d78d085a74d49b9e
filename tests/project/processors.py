"""Digests of everything that is trained, tuned, tested or probed, and the processors on which they must be the same.

``python -m tests.project.processors NAME ...`` prints one digest per named result, or of all of them, as JSON. ``DIGESTS`` holds the
digests that every machine must have; after a change that is meant to move them, ``python -m tests.project.processors >
tests/golden/digests.json`` writes them anew. ``EMULATIONS`` are environments in which the libraries below exactrank behave as on other
processors: OpenBLAS and NumPy choose other kernels, the C library other variants of ``exp`` and ``log``.
"""

import hashlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise

import numpy as np

import exactrank as er
from exactrank._support import numerics
from exactrank.compare.statistics import cohens_d, paired_t, randomization, rank_biserial, wilcoxon
from exactrank.data.synthetic import CubicPolynomial
from exactrank.models.deep import Deep, Net
from exactrank.models.network import Network
from exactrank.rankers.base import Ranker
from tests import GOLDEN

EMULATIONS = {
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "oldest": {
        "OPENBLAS_CORETYPE": "Prescott",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F",
    },
}
DIGESTS = GOLDEN / "digests.json"
DATA = CubicPolynomial(features=12, documents=9, noise=0.4, seed=3)


def fit(ranker: Ranker, valid: bool = True) -> object:
    train = DATA.data(24)
    return ranker.fit(train, valid=DATA.data(10, first=100) if valid else None).predict(DATA.data(10, first=200))


def wide() -> er.RankingData:
    """More features than documents."""
    return CubicPolynomial(features=60, documents=4, seed=1).data(8)


def runs() -> er.RankingData:
    """Three retrieval systems, whose scores are features."""
    data = DATA.data(30)
    rng = np.random.default_rng(0)
    X = np.stack([data.y + scale * numerics.standard_normal(rng, data.n_documents) for scale in (1.0, 2.0, 3.0)], axis=1)
    return er.RankingData.from_arrays(X, data.y, group=data.sizes.tolist())


def bradley_terry() -> object:
    data = DATA.data(6)
    better = np.arange(0, data.n_documents - 1, 3)
    strengths = er.pairs.bradley_terry(er.pairs.with_pairs(data, {"better": better, "worse": better + 1}))
    return strengths.strength, strengths.error, strengths.grades


def clicks() -> object:
    """A simulated log, the propensities that every method estimates from it, grades, and an estimate of a ranker."""
    data = replace(DATA, document_ids=True).data(20)
    log = er.clicks.simulate_clicks(data, sessions=40, page_size=6, seed=1).clicks
    estimates = {how: log.propensities(how, bootstrap=5) for how in ("harvest", "em", "dbn")}
    curve = estimates["em"]
    worth = er.evaluate(data, data.X[:, 0], "DCG(gain='linear')@5", clicks=log, propensity=curve)
    single = er.clicks.simulate_clicks(data, "cascade", sessions=40, page_size=6, seed=1).clicks.propensities("cascade", bootstrap=5)
    return [*estimates.values(), single], log.to_data(data, curve).y, worth.means, worth.intervals


def comparison() -> object:
    """A comparison of two rankers without times and memory, and the p-values of all tests."""
    compared = er.compare(DATA.data(24), ["ridge", "listnet(max_iter=3)"], ["nDCG@5", "AP"], folds=3, workers=1)
    table = compared.to_frame().drop(columns=["fit_seconds", "tuning_seconds", "memory_bytes"])
    differences = numerics.standard_normal(np.random.default_rng(2), 40) + 0.3
    tests = paired_t, wilcoxon, randomization, cohens_d, rank_biserial
    return table.to_numpy(), [test(differences) for test in tests]


def deep() -> Deep:
    """A perceptron as PyTorch would train it, with arbitrary numbers."""
    rng = np.random.default_rng(0)
    tensors = {"mean": rng.random(12), "scale": 1 + rng.random(12), "output.weight": numerics.standard_normal(rng, (1, 9))}
    for number, (inputs, units) in enumerate(pairwise((12, 20, 9))):
        tensors[f"layers.{number}.linear.weight"] = numerics.standard_normal(rng, (units, inputs))
        tensors |= {f"layers.{number}.{name}": 1 + rng.random(units) for name in ("linear.bias", "norm.weight", "norm.bias")}
    return Deep((Net(tensors),))


def network() -> Network:
    rng = np.random.default_rng(1)
    units, features = 7, 12
    weights = numerics.standard_normal(rng, (units, features))
    return Network(weights, rng.random(units), rng.random(units) - 0.5, rng.random(features), 1 + rng.random(features))


def evaluation() -> object:
    data = DATA.data(30)
    values = er.evaluate(data, data.X[:, 0], ["nDCG@5", "nDCG", "ERR", "RBP", "AP", "DCG(gain={0: 0, 1: 1, 2: 3, 3: 9, 4: 20})"])
    return values.means, values.intervals, values.per_query


RESULTS: dict[str, Callable[[], object]] = {
    "AdaRank": lambda: fit(er.AdaRank()),
    "ApproxNDCG": lambda: fit(er.ApproxNDCG(max_iter=8)),
    "Blend": lambda: fit(er.Blend(members=("ridge", "lambdamart(trees=5)", "directrank(max_iter=2)")), valid=False),
    "CoordinateAscent": lambda: fit(er.CoordinateAscent(restarts=2)),
    "DirectRank": lambda: fit(er.DirectRank(bags=0, max_iter=3)),
    "DirectRank, ridge start": lambda: fit(er.DirectRank(bags=3, start="ridge", max_iter=2), valid=False),
    "DirectRankTrees": lambda: fit(er.DirectRankTrees(trees=4, leverage=2, bags=0)),
    "LambdaMART": lambda: fit(er.LambdaMART(trees=6, bags=0)),
    "LambdaMART, ten forests": lambda: fit(er.LambdaMART(trees=6)),
    "LambdaRank": lambda: fit(er.LambdaRank(max_iter=6)),
    "LambdaRank, hidden": lambda: fit(er.LambdaRank(hidden=5, max_iter=6)),
    "ListNet, L-BFGS": lambda: fit(er.ListNet(solver="lbfgs", max_iter=20)),
    "ListMLE": lambda: fit(er.ListMLE(max_iter=8)),
    "ListNet": lambda: fit(er.ListNet(max_iter=8)),
    "MART": lambda: fit(er.MART(trees=6, bags=0)),
    "MART, symmetric": lambda: fit(er.MART(trees=6, shape="symmetric", split_noise=0.5, path_smoothing=2.0, bags=0)),
    "RankBoost": lambda: fit(er.RankBoost(max_iter=15)),
    "RankCosine": lambda: fit(er.RankCosine(max_iter=8)),
    "RankNet": lambda: fit(er.RankNet(max_iter=6)),
    "RankSVM": lambda: fit(er.RankSVM(), valid=False),
    "Ridge": lambda: fit(er.Ridge(), valid=False),
    "Ridge, wide": lambda: er.Ridge().fit(wide()).predict(wide()),
    "SmoothRank": lambda: fit(er.SmoothRank(max_iter=6)),
    "SPSARank": lambda: fit(er.SPSARank(max_iter=20)),
    "StructuredRank": lambda: fit(er.StructuredRank(max_iter=30), valid=False),
    "StructuredRank, kernel": lambda: fit(er.StructuredRank(kernel="rbf", l2=0.1, max_iter=10)),
    "StructuredRank, ramp": lambda: fit(er.StructuredRank(bound="ramp", max_iter=30)),
    "SVMMAP": lambda: fit(er.SVMMAP(max_iter=30)),
    "artificial data": lambda: (DATA.data(20).X, DATA.data(20).y),
    "Bradley-Terry": bradley_terry,
    "clicks": clicks,
    "comparison": comparison,
    "deep model": lambda: deep().score(DATA.data(30).X),
    "evaluation": evaluation,
    "forces": lambda: er.inspect.forces(DATA.data(3), er.losses.Lambdas("nDCG@5")).to_json(),
    "fusion": lambda: er.fuse(runs(), bootstrap=30, folds=3).to_json(),
    "importance": lambda: er.inspect.importance(DATA.data(10, first=100), er.Ridge().fit(DATA.data(24))).to_json(),
    "network": lambda: network().score(DATA.data(30).X),
    "optimality": lambda: er.inspect.optimality(DATA.data(10), er.Ridge().fit(DATA.data(24))).to_json(),
    "Pareto front": lambda: er.pareto(runs(), ["x0", "x1", "x2"], ["nDCG@5", "AP"]).to_json(),
    "smoothness": lambda: er.inspect.smoothness(DATA.data(10), er.Ridge().fit(DATA.data(24))).to_json(),
}


def digest(value: object) -> str:
    """Return a hash of every number and text in ``value``, to the bit."""
    content = hashlib.sha256()
    for piece in pieces(value):
        content.update(piece)
    return content.hexdigest()[:16]


def pieces(value: object) -> Iterator[bytes]:
    if isinstance(value, np.ndarray):
        yield str((value.dtype, value.shape)).encode()
        yield from (np.ascontiguousarray(value).tobytes(),) if value.dtype.kind != "O" else pieces(value.tolist())
    elif isinstance(value, float | np.floating):
        yield float(value).hex().encode()
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from pieces(key)
            yield from pieces(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from pieces(entry)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from pieces(getattr(value, field.name))
    else:
        yield repr(value).encode()


def digests_on(emulation: str | None, names: list[str]) -> dict[str, str]:
    """Return the digests that a process of its own computes on an emulated processor, or on this one."""
    environment = {**os.environ, **({} if emulation is None else EMULATIONS[emulation])}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-m", "tests.project.processors", *names]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({name: digest(RESULTS[name]()) for name in sys.argv[1:] or RESULTS}, indent=1))
