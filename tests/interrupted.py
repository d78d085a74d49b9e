"""Long work that a signal interrupts: what ends, how, and how soon.

Run as a program with the names of cases. An alarm, whose handler raises KeyboardInterrupt as that of Ctrl-C does, rings while a case
is at work; one line of JSON per case says how it ended and how long after the alarm.
"""

import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import exactrank as xr
from exactrank import _core

ALARM = 0.15  #: seconds until it rings
RANKERS = (
    "AdaRank", "ApproxNDCG", "CoordinateAscent", "DirectRank", "LambdaRank", "ListMLE", "ListNet", "RankBoost", "RankCosine", "RankNet",
    "RankSVM", "SPSARank", "SVMMAP", "SmoothRank", "StructuredRank",
)  # fmt: skip
RNG = np.random.default_rng(0)


def one_query(documents: int) -> xr.RankingData:
    X = RNG.standard_normal((documents, 4)).astype(np.float32)
    return xr.RankingData.from_arrays(X, np.clip(np.round(X[:, 0] + RNG.standard_normal(documents)), 0, 4), group=[documents])


def kernel_of(measure: str, data: xr.RankingData) -> tuple[_core.Kernel, Any]:
    return xr.parse_measure(measure).kernel(data.y, data.n_documents)


LONG = one_query(150_000)
MEDIUM = one_query(20_000)
W = np.ones(1)
EMPTY_PIPE = os.pipe()[0]


def rule(documents: xr.RankingData, measure: str | None = None) -> _core.LambdaRule:
    kernel, grades = (None, documents.y) if measure is None else kernel_of(measure, documents)
    return _core.LambdaRule(kernel, grades, documents.y, "logistic", 1.0, 2**31 - 1, 2**31 - 1, 0.0)


def asked(objective: _core.Objective, data: xr.RankingData = LONG) -> object:
    return _core.answers(objective, data.X[:, 1].astype(float), data.indptr, np.ones(data.n_queries), True, True, 2)


def bound(measure: str, data: xr.RankingData, ties: bool = False) -> _core.BoundMeasure:
    return _core.BoundMeasure(*kernel_of(measure, data), data.indptr, None, ties, W)


def steps(measure: str, ties: bool) -> object:
    search = _core.StepSearch(bound(measure, MEDIUM, ties))
    search.rank_part(MEDIUM.X[:, 1].astype(float), 2)
    return search.jumps(MEDIUM.X[:, 2].astype(float), -9.0, 9.0, 2)


def net_pass(pairs: bool) -> object:
    net = _core.Net(np.zeros(4), np.ones(4), 8)
    inputs = np.ones(net.size) / 9, _core.lambdas(rule(LONG)), LONG.X, LONG.indptr, W
    return net.pass_over_pairs(*inputs, LONG.y, np.zeros(9, int), 0.1, 0.0) if pairs else net.pass_over(*inputs, np.zeros(9, int), 0.1, 0.0)


def ranked(measure: str) -> _core.LineSearch:
    search = _core.LineSearch(bound(measure, LONG))
    search.rank(LONG.X[:, 1].astype(float), 2)
    return search


def differences() -> object:
    scores, changes = LONG.X[:, 1].astype(float), np.ones(4)
    return _core.differences(bound("nDCG@10", LONG), scores, LONG.X, changes, False, 2)


def planes() -> object:
    made = _core.Planes(1, 1e-9, np.zeros(300))
    made.add(np.zeros(3000, int), RNG.standard_normal(3000), RNG.standard_normal((3000, 300)))
    return made.solve(0.0, 10**9)


def with_helpers(groups: list[int]) -> object:
    data = xr.RankingData.from_arrays(LONG.X[: sum(groups)], LONG.y[: sum(groups)], group=groups)
    return asked(_core.lambdas(rule(data)), data)


def forever(work: Callable[[], object]) -> object:
    while True:
        work()


CASES: dict[str, Callable[[], object]] = {name: (lambda ranker: lambda: ranker().fit(LONG))(getattr(xr, name)) for name in RANKERS} | {
    "lambdas of AP": lambda: asked(_core.lambdas(rule(LONG, "AP"))),
    "sampled lambdas": lambda: asked(_core.sampled_lambdas(rule(LONG), 10, 1.0, 0, 0)),
    "finite differences of scores": lambda: asked(_core.finite_difference(*kernel_of("nDCG@10", LONG), LONG.y, 0.1)),
    "finite differences of weights": lambda: forever(differences),
    "nets by query": lambda: net_pass(False),
    "nets by pair": lambda: net_pass(True),
    "helpers at work": lambda: with_helpers([40_000, 40_000, 40_000]),
    "helpers awaited": lambda: with_helpers([20, 17_000, 100_000]),
    "evaluation of ties": lambda: _core.evaluate(
        np.zeros(LONG.n_documents), LONG.indptr, [(*kernel_of("ERR", LONG), None, True)], 2
    ),
    "evaluation over and over": lambda: forever(
        lambda: _core.evaluate(LONG.X[:, 1].astype(float), LONG.indptr, [(*kernel_of("PairwiseCorrect", LONG), LONG.y, False)], 2)
    ),
    "profile": lambda: steps("PairwiseCorrect", False),
    "profile of ties": lambda: steps("bpref", True),
    "jumping points": lambda: ranked("nDCG").best_as_published(LONG.X[:, 2].astype(float), 2),
    "line search of many lines": lambda: ranked("nDCG").best(LONG.X[:, 2].astype(float), -9.0, 9.0, 2),
    "line search": lambda: forever(lambda: ranked("nDCG@10").best(LONG.X[:, 2].astype(float), -9.0, 9.0, 2)),
    "planes": planes,
    "bounds at corners": lambda: _core.optimistic(RNG.standard_normal((4, 150_000)), LONG.indptr, LONG.y, np.ones(100), 2),
    "an empty pipe": lambda: _core.LetorParser(False, True, -1, -1, 0, 2).feed_while_reading(
        np.frombuffer(b"1 qid:1 1:1\n" * 9, np.uint8), EMPTY_PIPE, np.empty(9, np.uint8)
    ),
}  # fmt: skip


def interrupted(work: Callable[[], object]) -> dict[str, object]:
    signal.setitimer(signal.ITIMER_REAL, ALARM)
    began = time.monotonic()
    try:
        made = work()
        ended = "interrupted" if isinstance(made, xr.rankers.base.Ranker) and made.model_.training["interrupted"] else "finished"
    except KeyboardInterrupt:
        ended = "KeyboardInterrupt"
    signal.setitimer(signal.ITIMER_REAL, 0)
    return {"ended": ended, "after": time.monotonic() - began - ALARM}


def calm() -> dict[str, object]:
    """A handler that only counts changes nothing, and other threads than the main one are never asked."""
    rung: list[int] = []
    signal.signal(signal.SIGALRM, lambda *_: rung.append(threading.get_ident()))
    data = one_query(10_000)
    objective = _core.lambdas(rule(data))
    alone = asked(objective, data)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    beside: list[Any] = []
    thread = threading.Thread(target=lambda: beside.append(asked(objective, data)))
    thread.start()
    ours = asked(objective, data)
    during = len(rung)
    thread.join()
    signal.setitimer(signal.ITIMER_REAL, 0)
    same = all(np.array_equal(a, b) and np.array_equal(a, c) for a, b, c in zip(alone, ours, beside[0], strict=True))  # type: ignore[call-overload]
    return {"same": same, "during": during, "in the main thread alone": set(rung) == {threading.get_ident()}}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["calm"]:
        print(json.dumps(calm()))
    for name in [name for name in sys.argv[1:] if name != "calm"]:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        print(json.dumps({"name": name} | interrupted(CASES[name])), flush=True)
