"""Long work that a signal interrupts: what ends, how, and how soon.

Run as a program with the names of cases. A case is done over and over, so that it cannot end by itself, until an alarm interrupts it as
Ctrl-C does; one line of JSON per case says how it ended, and how much work was done after the interrupt.
"""

import faulthandler
import json
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

import exactrank as er
from exactrank import _core
from exactrank.learning.training.progress import Progress
from exactrank.rankers.base import Ranker

HANGS = 600  #: seconds after which the program ends, wherever it is
BETWEEN_RINGS = 0.02  #: seconds; alarms ring until the work has ended, and nothing depends on how many do
RANKERS = (
    "AdaRank", "ApproxNDCG", "CoordinateAscent", "DirectRank", "LambdaRank", "ListMLE", "ListNet", "RankBoost", "RankCosine", "RankNet",
    "RankSVM", "SPSARank", "SVMMAP", "SmoothRank", "StructuredRank",
)  # fmt: skip
#: Cases of many native calls that take milliseconds; each of the others is for the most part one native call, which takes seconds.
BRIEF = (
    "AdaRank", "CoordinateAscent", "DirectRank", "ListMLE", "ListNet", "RankBoost", "RankCosine", "RankSVM", "SPSARank", "SVMMAP",
    "SmoothRank", "StructuredRank", "finite differences of weights", "evaluation", "line search",
)  # fmt: skip
RNG = np.random.default_rng(0)


def one_query(documents: int) -> er.RankingData:
    X = RNG.standard_normal((documents, 4)).astype(np.float32)
    return er.RankingData.from_arrays(X, np.clip(np.round(X[:, 0] + RNG.standard_normal(documents)), 0, 4), group=[documents])


def kernel_of(measure: str, data: er.RankingData) -> tuple[_core.Kernel, Any]:
    return er.parse_measure(measure).kernel(data.y, data.n_documents)


LONG = one_query(150_000)
MEDIUM = one_query(20_000)
W = np.ones(1)
EMPTY_PIPE = os.pipe()[0]


def rule(documents: er.RankingData, measure: str | None = None) -> _core.LambdaRule:
    kernel, grades = (None, documents.y) if measure is None else kernel_of(measure, documents)
    return _core.LambdaRule(kernel, grades, documents.y, "logistic", 1.0, 2**31 - 1, 2**31 - 1, 0.0)


def asked(objective: _core.Objective, data: er.RankingData = LONG) -> object:
    return _core.answers(objective, data.X[:, 1].astype(float), data.indptr, np.ones(data.n_queries), True, True, 2)


def bound(measure: str, data: er.RankingData, ties: bool = False) -> _core.BoundMeasure:
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


def tree(documents: int, features: int, leaves: int) -> object:
    """A tree on so many documents, most of which is one native call."""
    X = np.broadcast_to(RNG.standard_normal((documents, 1)).astype(np.float32), (documents, features)).copy()
    kinds, rules = (
        np.zeros(features, np.uint8),
        dict.fromkeys(("min_curvature", "l1", "l2", "min_gain", "max_step", "smoothing", "noise"), 0.0),
    )
    layout = _core.BinLayout.of_sample(X[:4096], 255, kinds, 2)
    rows = _core.NodeRows(_core.BinnedRows(layout, X, 2))
    rows.begin(None, 100 * np.abs(X[:, 0]).astype(float), np.ones(documents), 1.0, 1.0, 2)
    growth = _core.Growth(
        layout, _core.HistogramPool(layout), np.ones(features, np.uint8), documents, 1.0, 1.0, 0, leaves, 0, 1, **rules,
        extra=False, features_per_node=0, symmetric=False, min_group=1, monotone=np.zeros(0, np.int8), groups=[],
    )  # fmt: skip
    return rows.grow(growth, 2)


def differences() -> object:
    scores, changes = LONG.X[:, 1].astype(float), np.ones(4)
    return _core.differences(bound("nDCG@10", LONG), scores, LONG.X, changes, False, 2)


def planes() -> object:
    made = _core.Planes(1, 1e-9, np.zeros(300))
    made.add(np.zeros(3000, int), RNG.standard_normal(3000), RNG.standard_normal((3000, 300)))
    return made.solve(0.0, 10**9)


def with_helpers(groups: list[int]) -> object:
    data = er.RankingData.from_arrays(LONG.X[: sum(groups)], LONG.y[: sum(groups)], group=groups)
    return asked(_core.lambdas(rule(data)), data)


STEPS: list[Progress] = []  #: that training has made


def fitted(name: str) -> object:
    return getattr(er, name)().fit(LONG, progress=STEPS.append)


CASES: dict[str, Callable[[], object]] = {name: partial(fitted, name) for name in RANKERS} | {
    "lambdas of AP": lambda: asked(_core.lambdas(rule(LONG, "AP"))),
    "sampled lambdas": lambda: asked(_core.sampled_lambdas(rule(LONG), 10, 1.0, 0, 0)),
    "finite differences of scores": lambda: asked(_core.finite_difference(*kernel_of("nDCG@10", LONG), LONG.y, 0.1)),
    "finite differences of weights": differences,
    "nets by query": lambda: net_pass(False),
    "nets by pair": lambda: net_pass(True),
    "helpers at work": lambda: with_helpers([50_000, 50_000, 50_000]),
    "helpers awaited": lambda: with_helpers([20, 17_000, 100_000]),
    "evaluation of ties": lambda: _core.evaluate(
        np.zeros(LONG.n_documents), LONG.indptr, [(*kernel_of("ERR", LONG), None, True)], 2
    ),
    "evaluation": lambda: _core.evaluate(
        LONG.X[:, 1].astype(float), LONG.indptr, [(*kernel_of("PairwiseCorrect", LONG), LONG.y, False)], 2
    ),
    "profile": lambda: steps("PairwiseCorrect", False),
    "profile of ties": lambda: steps("bpref", True),
    "jumping points": lambda: ranked("nDCG").best_as_published(LONG.X[:, 2].astype(float), 2),
    "line search of many lines": lambda: ranked("nDCG").best(LONG.X[:, 2].astype(float), -9.0, 9.0, 2),
    "line search": lambda: ranked("nDCG@10").best(LONG.X[:, 2].astype(float), -9.0, 9.0, 2),
    "a tree": lambda: tree(200_000, 64, 1 << 16),
    "planes": planes,
    "bounds at corners": lambda: _core.optimistic(RNG.standard_normal((4, 150_000)), LONG.indptr, LONG.y, np.ones(100), 2),
    "an empty pipe": lambda: _core.LetorParser(False, True, -1, -1, 0, 2).feed_while_reading(
        np.frombuffer(b"1 qid:1 1:1\n" * 9, np.uint8), EMPTY_PIPE, np.empty(9, np.uint8)
    ),
}  # fmt: skip


class Alarm:
    """It rings over and over, and does what ``strike`` does at its third ring, or its third in a row ``within_a_call`` of native code.

    Python runs the handler of a signal between two instructions, and native code where it looks at signals. So the handler runs three
    times in a row at the same instruction of the same frame only if native code has looked in the midst of its work: a call that does not
    lets it run as it begins, where tasks are handed out, and when it has ended.
    """

    def __init__(self, strike: Callable[[], None], within_a_call: bool = True, has_begun: Callable[[], bool] = lambda: True) -> None:
        self.strike, self.within_a_call, self.has_begun = strike, within_a_call, has_begun
        self.place: tuple[FrameType | None, int] = None, 0
        self.row = 0
        self.rings: list[int] = []  #: the threads in which its handler ran

    def __enter__(self) -> "Alarm":
        signal.signal(signal.SIGALRM, self.ring)
        signal.setitimer(signal.ITIMER_REAL, BETWEEN_RINGS, BETWEEN_RINGS)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)

    def ring(self, _: int, frame: FrameType | None) -> None:
        self.rings.append(threading.get_ident())
        if not self.has_begun():
            return
        place = frame, -1 if frame is None else frame.f_lasti
        self.row = 1 if self.within_a_call and place != self.place else self.row + 1
        self.place = place
        if self.row == 3:
            self.strike()


def endless(work: Callable[[], object]) -> Ranker:
    """``work`` over and over, until a ranker says that its training was interrupted."""
    while True:
        result = work()
        if isinstance(result, Ranker) and result.model_.training["interrupted"]:
            return result


def interrupted(name: str) -> dict[str, object]:
    struck = 0.0

    def strike() -> None:
        nonlocal struck
        signal.setitimer(signal.ITIMER_REAL, 0)
        struck = time.process_time()
        raise KeyboardInterrupt

    STEPS.clear()
    is_brief = name in BRIEF
    try:
        with Alarm(strike, not is_brief, lambda: bool(STEPS) or not (is_brief and name in RANKERS)):
            endless(CASES[name])
        ended = "interrupted"
    except KeyboardInterrupt:
        ended = "KeyboardInterrupt"
    return {"ended": ended, "after": time.process_time() - struck}


def said_within_a_call(name: str) -> None:
    """Work that ends only by a signal from outside; a line says that it is within a native call."""
    with Alarm(lambda: print("at work", flush=True)):
        endless(CASES[name])


def calm() -> dict[str, object]:
    """A handler that only counts changes nothing, and other threads than the main one are never asked.

    The query is made longer until the handler runs within a call.
    """
    documents, struck, rang = 36_000, threading.Event(), False
    while not rang:
        data = one_query(documents)
        objective = _core.lambdas(rule(data))
        alone = asked(objective, data)
        with ThreadPoolExecutor(1) as pool:
            beside = pool.submit(asked, objective, data)
            with Alarm(struck.set) as alarm:
                ours = asked(objective, data)
                rang = struck.is_set()
                theirs = beside.result()
        documents *= 2
    same = all(np.array_equal(a, b) and np.array_equal(a, c) for a, b, c in zip(alone, ours, theirs, strict=True))  # type: ignore[call-overload]
    return {"same": same, "in the main thread alone": set(alarm.rings) == {threading.get_ident()}}


if __name__ == "__main__":
    faulthandler.dump_traceback_later(HANGS, exit=True)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if sys.argv[1] == "calm":
        print(json.dumps(calm()))
    elif sys.argv[1] == "within a call":
        said_within_a_call(sys.argv[2])
    else:
        for name in sys.argv[1:]:
            print(json.dumps({"name": name} | interrupted(name)), flush=True)
