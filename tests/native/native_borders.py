"""Every entry point of the native core with a right call, and with calls whose arrays are wrong in some way.

Run as a program, so that a crash is no more than a failure: it prints one line of JSON per entry point, with what went wrong there.
"""

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from exactrank import _core

#: What a wrong call may raise.
REFUSALS = (ValueError, TypeError, IndexError, MemoryError, OverflowError, OSError)
#: Of one number, for each of an array.
FUNCTIONS = ("exp", "exp2", "log", "log1p", "log2", "tanh", "normal_quantile")
#: Arrays of any length, so that a shorter or longer one is another right call.
OF_ANY_LENGTH = {
    *((name, "x") for name in FUNCTIONS),
    ("matrix_vector", "a"),
    ("product", "a"),
    ("gram", "x"),
    ("Outline.close", "bins"),
    ("positional", "discount"),
    ("ratio_bound", "discount"),
    ("ratio_extremes", "discount"),
    ("discounts_of_documents", "discount"),
    ("cascade", "discount"),
    ("optimistic", "discount"),
    ("optimistic", "scores"),
    ("first_relevant_separation", "worth"),
    ("LetorParser.feed", "block"),
    ("LetorParser.feed_while_reading", "block"),
    ("LetorParser.feed_while_reading", "next"),
    ("Net.__init__", "mean"),
    ("Net.slope", "chosen"),
    ("Net.slopes_by_block", "chosen"),
    ("Net.slopes_by_query", "chosen"),
    ("Net.pass_over", "order"),
    ("Net.pass_over_pairs", "order"),
    ("Planes.__init__", "center"),
    ("Planes.improve", "parts"),
    ("LetorParser.__init__", "exact"),
    ("letor_text", "comments"),
    ("letor_text", "query_names"),
    ("summarize_columns", "x"),
    ("column_thresholds", "x"),
    ("transpose", "x"),
    ("linear_scores", "x"),
    ("products", "x"),
    ("products", "weights"),
    ("cubic", "points"),
    ("step_scores", "x"),
    ("Trees.scores", "x"),
    ("Net.scores", "x"),
    ("Net.activations", "x"),
    ("listnet", "targets"),
    ("rank_cosine", "targets"),
    ("squared_error", "grades"),
    ("smooth_measure", "worths"),
    ("approx_ndcg", "worths"),
    ("Trees.__init__", "set_start"),
    ("tree_contributions", "set_start"),
    ("tree_contributions", "x"),
    ("sampled_rows", "x"),
    ("BinLayout.of_sample", "sample"),
    ("BinnedRows.__init__", "x"),
    ("Growth.__init__", "monotone"),
    ("add_leaf_values", "values"),
}

#: Boundaries of queries that may be empty, so that the end may be there twice.
OF_EMPTY_QUERIES = {("optimistic", "indptr"), ("ThresholdSweep.__init__", "indptr")}

#: Classes that Python cannot make.
ABSTRACT = {f"{name}.__init__" for name in ("BinLayout", "GrownTree", "Kernel", "Objective", "Outline", "Separation")}

SIZES = (5, 1, 6)
N, WIDTH = sum(SIZES), 3
RNG = np.random.default_rng(1)
INDPTR = np.array([0, *np.cumsum(SIZES)])
X = RNG.standard_normal((N, WIDTH)).astype(np.float32)
Y = np.array([0, 1, 2, 0, 1, 1, 0, 2, 2, 1, 0, 0], float)
SCORES, SLOPES = RNG.standard_normal(N), RNG.standard_normal(N)
WEIGHT = np.ones(len(SIZES))
IDEAL = np.concatenate([np.arange(n, dtype=np.int32) for n in SIZES])
TOP = np.array(SIZES, np.int32)
FLAGS = (Y > 0).astype(np.uint8)
DISCOUNT = 1 / np.log2(np.arange(2, 2 + N))
ZEROS = open("/dev/zero", "rb")  # noqa: SIM115
TEXT = np.frombuffer(b"1 qid:1 1:0.5 # a\n0 qid:1 2:0.5\n", np.uint8)


def ndcg() -> _core.Kernel:
    return _core.positional(_core.Gain("exponential"), DISCOUNT, 10, "ideal", False, 0.0)


def rule() -> _core.LambdaRule:
    return _core.LambdaRule(ndcg(), Y, Y, "logistic", 1.0, 100, 100, 0.0)


def preferences() -> _core.Preferences:
    return _core.Preferences(INDPTR, np.array([0, 0, 7]), np.array([1, 4, 6]), np.array([1.0, 2.0, 0.5]))


def separation() -> _core.Separation:
    return _core.positional_separation(DISCOUNT, DISCOUNT, Y, INDPTR)


def net() -> _core.Net:
    return _core.Net(np.zeros(WIDTH), np.ones(WIDTH), 2)


#: What `Planes.held` gives, by the names that `Planes.from_held` has for it.
HELD = ("parts", "offsets", "normals", "alphas", "idle", "working", "strength", "center", "theta")


def planes() -> _core.Planes:
    made = _core.Planes(2, 1.0, np.zeros(WIDTH))
    made.add(np.array([0, 1]), np.zeros(2), np.eye(2, WIDTH))
    made.improve(np.array([0, 1]))
    return made


def boost() -> _core.RankBoost:
    return _core.RankBoost(X, [np.zeros(1)] * WIDTH, Y, INDPTR, WEIGHT, 2)


def bound(kernel: _core.Kernel, ties: bool = False, grades: Any = Y) -> _core.BoundMeasure:
    return _core.BoundMeasure(kernel, grades, INDPTR, None if ties else Y, ties, WEIGHT)


def line_search() -> _core.LineSearch:
    made = _core.LineSearch(bound(ndcg()), 3, 5, 20)
    made.rank(SCORES, 2)
    return made


def step_search() -> _core.StepSearch:
    made = _core.StepSearch(bound(ndcg()))
    made.rank_part(SCORES, 2)
    return made


def outline() -> _core.Outline:
    return line_search().outline(X[:, 0].copy(), -1.0, 1.0, 2)


SUMS = {"numbers": np.array([3, 16390], np.uint32), "change": np.array([1, -1]), "up": np.array([1, 0])}


def best_interval() -> _core.BestInterval:
    return _core.BestInterval(**SUMS, left=0, at_zero=1, peak=1.0, low=-1.0, high=1.0)


def parser() -> _core.LetorParser:
    return _core.LetorParser(False, True, -1, -1, 1 << 62, 2)


TREES: dict[str, Any] = {
    "width": WIDTH,
    "start": np.array([0, 2, 2, 3]),
    "feature": np.array([0, 1, 2], np.int32),
    "threshold": np.array([0.5, 0.0, -0.5]),
    "decision": np.array([0, 1, 2], np.uint8),
    "left": np.array([1, -1, -1], np.int32),
    "right": np.array([-3, -2, -2], np.int32),
    "leaf_value": np.arange(6.0),
    "set_start": np.array([0, 1]),
    "sets": np.array([5], np.uint32),
}
BINS = {"start": np.array([0, 2, 4, 6]), "cuts": np.array([-0.5, 0.5, -0.7, 0.7, 0.0, 1.0]), "kinds": np.array([0, 1, 2], np.uint8)}
RULES: dict[str, Any] = {
    "leaves": 4, "depth": 3, "min_documents": 1, "min_curvature": 0.0, "l1": 0.1, "l2": 0.1, "min_gain": 0.0, "max_step": 9.0,
    "smoothing": 0.1, "noise": 0.1, "extra": False, "features_per_node": 2, "symmetric": False, "min_group": 1,
    "monotone": np.array([1, -1, 0], np.int8), "groups": [[0, 1], [2]],
}  # fmt: skip
ALLOWED = np.ones(WIDTH, np.uint8)
FORCES = {"slope": SLOPES, "bend": np.ones(N), "per_slope": 64.0, "per_bend": 64.0}
CHOSEN = np.array([1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1], np.uint8)
LEAVES = np.array([0, 1, 2, 3] * 3, np.uint8)


def bins() -> _core.BinLayout:
    return _core.BinLayout.of_cuts(**BINS)


def binned(layout: _core.BinLayout | None = None) -> _core.BinnedRows:
    return _core.BinnedRows(bins() if layout is None else layout, X, 2)


def node_rows(layout: _core.BinLayout | None = None) -> _core.NodeRows:
    rows = _core.NodeRows(binned(layout))
    rows.begin(CHOSEN, **FORCES, threads=2)
    return rows


def growth(layout: _core.BinLayout | None = None) -> _core.Growth:
    layout = bins() if layout is None else layout
    return _core.Growth(layout, _core.HistogramPool(layout), ALLOWED, N, 1 / 64, 1 / 64, 1, **RULES)


def asked_growth() -> _core.Growth:
    growing = growth()
    growing.asks(True)
    return growing


def choosing() -> tuple[_core.NodeRows, _core.Growth]:
    """Rows and a tree whose root can be split in several ways."""
    layout, free = bins(), {"features_per_node": 0, "monotone": np.zeros(0, np.int8), "groups": [], "candidates": 3}
    growing = _core.Growth(layout, _core.HistogramPool(layout), ALLOWED, N, 1 / 64, 1 / 64, 1, **(RULES | free))
    rows = node_rows(layout)
    growing.take(rows.answer(growing.asks(False), ALLOWED, N, 2), 2)
    return rows, growing


def grown() -> tuple[_core.NodeRows, _core.GrownTree]:
    layout = bins()
    rows, growing = node_rows(layout), growth(layout)
    rows.grow(growing, 2)
    return rows, growing.tree()


def growing_together() -> dict[str, Any]:
    layout = bins()
    return {"self": node_rows(layout), "growth": growth(layout), "threads": 2}


def numbering() -> dict[str, Any]:
    rows, tree = grown()
    return {"self": rows, "tree": tree, "chosen": CHOSEN, "numbers": np.empty(N, np.uint8), "threads": 2}


#: Questions for a root: its histogram, a split at the second feature, and the histogram of a child.
QUESTIONS = [(-1, -1, -1, -1, 0, False, [], [0]), (0, 1, 2, 1, 0, True, [], [2])]
TASK: dict[str, Any] = {"theta": np.ones(10), "objective": None, "x": X, "indptr": INDPTR, "weight": WEIGHT}


def task(**more: Any) -> dict[str, Any]:
    return {**TASK, "objective": _core.lambdas(rule()), **more}


def ray() -> dict[str, Any]:
    return {"measure": bound(ndcg()), "scores": SCORES, "slopes": SLOPES, "low": -1.0, "high": 1.0, "threads": 2}


def asked(objective: _core.Objective, **more: Any) -> Any:
    return _core.answers(objective, more.get("scores", SCORES), more.get("indptr", INDPTR), WEIGHT, True, True, 2)


#: By entry point the arguments of a right call; those of a method begin with ``self``, made anew for each call. An objective, a
#: separation or a kernel that a call gives is asked for an answer, since that is when it reads its arrays.
CALLS: dict[str, Callable[[], dict[str, Any]]] = {
    "Gain.__init__": lambda: {"kind": "exponential", "parameter": 1.0},
    "positional": lambda: {
        "gain": _core.Gain("exponential"), "discount": DISCOUNT, "cutoff": 10, "normalizer": "ideal", "short_is_zero": False, "empty": 0.0
    },
    "cascade": lambda: {"gain": _core.Gain("stopping", 2.0), "discount": DISCOUNT, "cutoff": 10, "empty": 0.0},
    "average_precision": lambda: {"rel": 1.0, "cutoff": 10, "limit_to_cutoff": False, "empty": 0.0},
    "ratio_bound": lambda: {
        "low": 0.0, "high": 2.0, "upper": True, "discount": DISCOUNT, "cutoff": 10, "is_ideal": True, "short_is_zero": False, "empty": 0.0
    },
    "precision_bound": lambda: {"low": 0.0, "high": 2.0, "upper": True, "cutoff": 10, "limit_to_cutoff": False, "empty": 0.0},
    "discounts_of_documents": lambda: {
        "scores": SCORES, "indptr": INDPTR, "tie_key": Y, "discount": DISCOUNT, "cutoff": 10, "threads": 2
    },
    "members_along": lambda: {
        "scores": SCORES, "slopes": SLOPES, "indptr": INDPTR, "low": -1.0, "high": 1.0, "cutoff": 3, "threads": 2
    },
    "ratio_extremes": lambda: {
        "coefficients": SLOPES, "useful": Y, "indptr": INDPTR, "low": 0.0, "high": 2.0, "discount": DISCOUNT, "cutoff": 10, "threads": 2
    },
    "bpref": lambda: {"rel": 1.0, "empty": 0.0},
    "pairwise_correct": lambda: {"gain": _core.Gain("identity"), "empty": 0.0},
    "Preferences.__init__": lambda: {
        "indptr": INDPTR, "better": np.array([0, 0, 7]), "worse": np.array([1, 4, 6]), "weight": np.array([1.0, 2.0, 0.5])
    },
    "preference_correct": lambda: {"gain": _core.Gain("identity"), "grades": Y, "preferences": preferences(), "empty": 0.0},
    "evaluate": lambda: {
        "scores": SCORES, "indptr": INDPTR, "measures": [(made, Y, key, False) for made in (ndcg(),) for key in (Y, None)], "threads": 2
    },
    "query_jumps": ray,
    "ThresholdSweep.__init__": lambda: {"scores": SCORES, "useful": FLAGS, "indptr": INDPTR},
    "ThresholdSweep.thresholds": lambda: {"self": _core.ThresholdSweep(SCORES, FLAGS, INDPTR)},
    "ThresholdSweep.sums": lambda: {
        "self": _core.ThresholdSweep(SCORES, FLAGS, INDPTR), "goal": "F", "a": 1.0, "b": 0.0, "total": WEIGHT, "weight": WEIGHT
    },
    "optimistic": lambda: {
        "scores": np.ascontiguousarray(np.stack([SCORES, SLOPES])), "indptr": INDPTR, "useful": Y, "discount": DISCOUNT, "threads": 2
    },
    "likelihood_slopes": lambda: {
        "scores": SCORES, "slopes": SLOPES, "indptr": INDPTR, "ideal": IDEAL, "top": TOP, "weight": WEIGHT, "alpha": 0.1, "threads": 2
    },
    "BoundMeasure.__init__": lambda: {
        "kernel": ndcg(), "grades": Y, "indptr": INDPTR, "tie_key": Y, "mark_ties": False, "weight": WEIGHT
    },
    "StepSearch.__init__": lambda: {"measure": bound(ndcg()), "total": 1.0, "peak": 1.0},
    "StepSearch.rank_part": lambda: {"self": step_search(), "scores": SCORES, "threads": 2},
    "StepSearch.counted": lambda: {"self": step_search()},
    "StepSearch.peak": lambda: {"self": step_search()},
    "StepSearch.outline": lambda: {"self": step_search(), "slopes": SLOPES, "low": -1.0, "high": 1.0, "threads": 2},
    "StepSearch.jumps": lambda: {"self": step_search(), "slopes": SLOPES, "low": -1.0, "high": 1.0, "threads": 2},
    "LineSearch.__init__": lambda: {"measure": bound(ndcg()), "lines": 3, "exchanges": 5, "events": 20, "blocks": 1},
    "LineSearch.serves": lambda: {"measure": bound(ndcg())},
    "LineSearch.rank": lambda: {"self": line_search(), "scores": SCORES, "threads": 2},
    "LineSearch.rank_part": lambda: {"self": line_search(), "scores": SCORES, "threads": 2},
    "LineSearch.counted": lambda: {"self": line_search()},
    "LineSearch.peak": lambda: {"self": line_search()},
    "LineSearch.outline": lambda: {"self": line_search(), "slopes": X[:, 0].copy(), "low": -1.0, "high": 1.0, "threads": 2},
    "from_fixed": lambda: {"value": 3, "peak": 1.0},
    "Outline.close": lambda: {
        "self": outline(), "bins": np.array([3, 5], np.uint32), "shift": 17, "edge": 3, "most": 1, "finer": 9, "threads": 2
    },
    "BestInterval.__init__": lambda: {**SUMS, "left": 0, "at_zero": 1, "peak": 1.0, "low": -1.0, "high": 1.0},
    "BestInterval.narrow": lambda: {"self": best_interval(), "shift": 9, **SUMS, "at": np.ones(2), "changes": np.ones(2, np.int64)},
    "BestInterval.best": lambda: {
        "self": best_interval(), "at": np.ones(2), "change": np.ones(2, np.int64), "below": 0.0, "above": 1.0, "peak": 1.0
    },
    "LineSearch.best": lambda: {"self": line_search(), "slopes": X[:, 0].copy(), "low": -1.0, "high": 1.0, "threads": 2},
    "LineSearch.best_as_published": lambda: {"self": line_search(), "slopes": SLOPES, "threads": 2},
    "products": lambda: {"x": X, "weights": np.ones((2, WIDTH)), "threads": 2},
    "differences": lambda: {
        "measure": bound(ndcg()), "scores": SCORES, "x": X, "change": np.ones(WIDTH), "single_precision": False, "threads": 2
    },
    "LambdaRule.__init__": lambda: {
        "kernel": ndcg(), "grades": Y, "tie_key": Y, "link": "logistic", "margin": 1.0, "neighbors": 3, "truncation": 3, "near": 0.0,
        "preferences": preferences(),
    },
    "lambdas": lambda: {"rule": rule()},
    "sampled_lambdas": lambda: {"rule": rule(), "samples": 2, "noise": 1.0, "seed": 1, "draw": 1, "first": 1},
    "finite_difference": lambda: {"kernel": ndcg(), "grades": Y, "tie_key": Y, "step": 0.5},
    "diagonal": lambda: {"objective": _core.finite_difference(ndcg(), Y, Y, 0.5), "strength": 0.5},
    "pair_hinge": lambda: {
        "grades": Y, "indptr": INDPTR, "squared": True, "pairs": 2.0, "preferences": preferences(),
    },
    "called": lambda: {"function": lambda number, scores: (0.0, scores, scores)},
    "answers": lambda: {
        "objective": _core.lambdas(rule()), "scores": SCORES, "indptr": INDPTR, "weight": WEIGHT, "with_slope": True,
        "with_curvature": True, "threads": 2,
    },
    "exchange_terms": lambda: {"kernel": ndcg(), "grades": Y, "indptr": INDPTR},
    "listnet": lambda: {"targets": Y},
    "listmle": lambda: {"ideal": IDEAL, "top": TOP, "indptr": INDPTR},
    "rank_cosine": lambda: {"targets": Y},
    "squared_error": lambda: {"grades": Y, "parts": np.full(len(Y), 3.0), "center": 1.0},
    "worths": lambda: {"kernel": ndcg(), "grades": Y, "indptr": INDPTR},
    "smooth_measure": lambda: {"kernel": ndcg(), "worths": Y, "sigma": 1.0},
    "approx_ndcg": lambda: {"worths": Y, "alpha": 1.0},
    "Separation.coefficients": lambda: {"self": separation(), "scores": SCORES, "indptr": INDPTR, "tie_key": Y},
    "positional_separation": lambda: {"a": DISCOUNT, "d": DISCOUNT, "worths": Y, "indptr": INDPTR},
    "precision_separation": lambda: {"relevant": FLAGS, "indptr": INDPTR},
    "first_relevant_separation": lambda: {"worth": DISCOUNT, "relevant": FLAGS, "indptr": INDPTR},
    "StructuredLoss.__init__": lambda: {"separation": separation(), "targets": Y, "rescales_slack": True},
    "StructuredLoss.separate": lambda: {
        "self": _core.StructuredLoss(separation(), Y, False), "scores": SCORES, "indptr": INDPTR, "threads": 2
    },
    "Net.__init__": lambda: {"mean": np.zeros(WIDTH), "scale": np.ones(WIDTH), "hidden": 2},
    "Net.scores": lambda: {"self": net(), "theta": np.ones(10), "x": X, "threads": 2},
    "Net.activations": lambda: {"self": net(), "theta": np.ones(10), "x": X, "threads": 2},
    "Net.slope": lambda: {"self": net(), **task(chosen=np.array([2, 0]), wide=np.array([1, 0]), threads=2)},
    "Net.slopes_by_block": lambda: {"self": net(), **task(chosen=np.array([2, 0]), wide=np.array([1, 0]), threads=2)},
    "Net.slopes_by_query": lambda: {"self": net(), **task(chosen=np.array([2, 0]), threads=2)},
    "Net.pass_over": lambda: {"self": net(), **task(order=np.array([2, 0]), rate=0.1, decay=0.0)},
    "Net.pass_over_pairs": lambda: {"self": net(), **task(grades=Y, order=np.array([2, 0]), rate=0.1, decay=0.0)},
    "Planes.__init__": lambda: {"parts": 2, "strength": 1.0, "center": np.zeros(WIDTH)},
    "Planes.copy": lambda: {"self": planes()},
    "Planes.pose": lambda: {"self": planes(), "strength": 2.0, "center": np.ones(WIDTH)},
    "Planes.add": lambda: {"self": planes(), "parts": np.array([1]), "offsets": np.ones(1), "normals": np.ones((1, WIDTH))},
    "Planes.improve": lambda: {"self": planes(), "parts": np.array([1, 0])},
    "Planes.solve": lambda: {"self": planes(), "tolerance": 1e-9, "sweeps": 5},
    "Planes.restart": lambda: {"self": planes()},
    "Planes.drop": lambda: {"self": planes(), "idle": 1},
    "Planes.height": lambda: {"self": planes()},
    "Planes.dual": lambda: {"self": planes()},
    "Planes.held": lambda: {"self": planes()},
    "Planes.from_held": lambda: dict(zip(HELD, planes().held(), strict=True)),
    "Planes.theta": lambda: {"self": planes()},
    "step_scores": lambda: {
        "x": X, "start": np.array([0, 1, 1, 3]), "thresholds": np.array([0.0, -1.0, 1.0]), "levels": np.arange(6.0), "threads": 2
    },
    "RankBoost.__init__": lambda: {
        "x": X, "thresholds": [np.array([-0.5, 0.5])] * WIDTH, "grades": Y, "indptr": INDPTR, "share": WEIGHT, "threads": 2,
        "preferences": preferences(),
    },
    "RankBoost.sums": lambda: {"self": boost(), "scores": SCORES, "exponent": 3, "threads": 2},
    "column_thresholds": lambda: {"x": X, "limit": 4, "threads": 2},
    "Trees.__init__": lambda: dict(TREES),
    "Trees.scores": lambda: {"self": _core.Trees(**TREES), "x": X, "threads": 2, "lanes": 8},
    "tree_contributions": lambda: TREES | {"cover": np.ones(len(TREES["leaf_value"])), "x": X, "threads": 2},
    "sampled_rows": lambda: {"x": X, "limit": 1 << 63, "threads": 2},
    "BinLayout.of_sample": lambda: {"sample": X, "bins": 4, "kinds": np.array([0, 1, 2], np.uint8), "threads": 2},
    "BinLayout.of_cuts": lambda: dict(BINS),
    "BinnedRows.__init__": lambda: {"layout": bins(), "x": X, "threads": 2},
    "BinnedRows.walk": lambda: {"self": binned(), "tree": grown()[1], "numbers": np.empty(N, np.uint8), "threads": 2},
    "HistogramPool.__init__": lambda: {"layout": bins()},
    "NodeRows.__init__": lambda: {"binned": binned()},
    "NodeRows.begin": lambda: {"self": node_rows(), "chosen": CHOSEN, **FORCES, "threads": 2},
    "NodeRows.grow": growing_together,
    "NodeRows.candidate_outputs": lambda: dict(zip(("self", "growth"), choosing(), strict=True)),
    "NodeRows.answer": lambda: {"self": node_rows(), "asked": list(QUESTIONS), "allowed": ALLOWED, "documents": N, "threads": 2},
    "NodeRows.sums": lambda: {"self": node_rows(), "nodes": [0], **FORCES, "threads": 2},
    "NodeRows.number": numbering,
    "Growth.__init__": lambda: {
        "layout": bins(), "pool": _core.HistogramPool(bins()), "allowed": ALLOWED, "documents": N, "unit_slope": 1 / 64,
        "unit_bend": 1 / 64, "key": 1, **RULES,
    },
    "Growth.asks": lambda: {"self": growth(), "ahead": True},
    "Growth.take": lambda: {"self": asked_growth(), "words": node_rows().answer(QUESTIONS[:1], ALLOWED, N, 2), "threads": 2},
    "Growth.choose": lambda: {"self": choosing()[1], "number": 0},
    "Growth.tree": lambda: {"self": growth()},
    "leaf_sums": lambda: {"leaf": LEAVES, "chosen": CHOSEN, **FORCES, "leaves": 4},
    "add_leaf_values": lambda: {"scores": SCORES.copy(), "leaf": LEAVES, "values": np.arange(4.0)},
    "leaf_outputs": lambda: {
        "slope": np.ones(2), "curvature": np.ones(2), "documents": np.array([3, 4]), "within": np.array([[0.0, -9, 9]] * 2), "l1": 0.1,
        "l2": 0.1, "max_step": 9.0, "smoothing": 0.1,
    },
    "LetorParser.__init__": lambda: {
        "missing": False, "queries": True, "features": 3, "first_feature": 1, "expected_bytes": 1 << 40, "threads": 2, "exact": [2, 0],
    },
    "LetorParser.feed": lambda: {"self": parser(), "block": TEXT},
    "LetorParser.feed_while_reading": lambda: {
        "self": parser(), "block": TEXT, "descriptor": ZEROS.fileno(), "next": np.empty(100, np.uint8)
    },
    "LetorParser.finish": lambda: {"self": parser()},
    "LetorParser.take": lambda: {"self": parser()},
    "LetorParser.take_exact": lambda: {"self": parser()},
    "LetorParser.query_names": lambda: {"self": parser()},
    "letor_text": lambda: {
        "x": X[:2], "offset": np.array([0.0, 1e9, 2.0]), "y": Y[:2], "query": np.array([0, 1]), "query_names": [b"a", b"b"],
        "comments": TEXT, "start": np.array([0, 3]), "stop": np.array([3, 5]), "threads": 2,
    },
    "summarize_columns": lambda: {"x": X, "threads": 2},
    "lost_by_rounding": lambda: {"x": X.astype(np.float64), "indptr": INDPTR, "decimals": True, "threads": 2},
    "json_matrix": lambda: {"text": b"{[[1, null], [2, 3]]", "start": 1},
    "permute_rows": lambda: {"x": X.copy(), "order": np.arange(N)[::-1].copy()},
    "transpose": lambda: {"x": X, "columns": np.empty((WIDTH, N), np.float32), "threads": 2},
    "content_order": lambda: {
        "x": X, "units": np.zeros(X.shape[1], np.int32), "stands": None, "numbers": [Y], "indptr": INDPTR, "out": np.zeros(N, np.int64),
        "threads": 2,
    },
    "linear_scores": lambda: {"x": X, "weights": np.ones(WIDTH), "threads": 2},
    "pulled_back": lambda: {"x": X, "slope": SLOPES, "threads": 2},
    "cubic_terms": lambda: {"dimension": 3},
    "cubic": lambda: {"points": X, "coefficients": np.ones(_core.cubic_terms(WIDTH)), "threads": 2},
    **{name: lambda: {"x": np.abs(SCORES) + 0.1} for name in FUNCTIONS},
    "power": lambda: {"base": np.abs(SCORES) + 0.1, "exponent": SLOPES},
    "dot": lambda: {"x": SCORES, "y": SLOPES},
    "matrix_vector": lambda: {"a": X.astype(np.float64), "v": np.ones(WIDTH)},
    "product": lambda: {"a": X.astype(np.float64), "b": np.ones((WIDTH, 2))},
    "gram": lambda: {"x": X.astype(np.float64)},
    "cholesky": lambda: {"a": np.eye(WIDTH)},
    "solve_lower": lambda: {"lower": np.eye(WIDTH), "x": np.ones((WIDTH, 2))},
    "solve_upper": lambda: {"lower": np.eye(WIDTH), "x": np.ones((WIDTH, 2))},
    "eigh": lambda: {"a": np.eye(WIDTH)},
}  # fmt: skip


def entry_points() -> set[str]:
    """All functions, constructors and methods that Python can call."""
    found = set()
    for name, thing in vars(_core).items():
        if name.startswith("_"):
            continue
        if not inspect.isclass(thing):
            found |= {name} if callable(thing) else set()
            continue
        methods = [method for method in vars(thing) if method == "__init__" or not method.startswith("_")]
        found |= {f"{name}.{method}" for method in methods if callable(getattr(thing, method))}
    return found - ABSTRACT


def wrong(name: str, argument: str, value: Any) -> Iterator[tuple[str, Any, bool]]:
    """Other values of an argument: what they are, and whether they must be refused."""
    if isinstance(value, np.ndarray):
        sized = (name, argument) not in OF_ANY_LENGTH
        yield "one short", value[:-1].copy(), sized
        yield "one long", np.concatenate([value, value[-1:]]), sized and (name, argument) not in OF_EMPTY_QUERIES
        yield "empty", value[:0].copy(), sized
        yield "reversed", value[::-1].copy(), argument == "indptr" or (argument == "start" and name != "letor_text")
        if value.ndim == 2:
            yield "narrow", np.ascontiguousarray(value[:, :-1]), False
            yield "of no width", np.ascontiguousarray(value[:, :0]), False
        yield from odd_values(argument, value)
    elif isinstance(value, list):
        yield "empty", [], False
        yield "of nothing", [None] * len(value), True
    elif isinstance(value, int) and not isinstance(value, bool) and argument not in ("threads", "descriptor"):
        yield from (("negative", -1, False), ("zero", 0, False), ("huge", 2**62, False), ("beyond all", 2**80, True))
    elif isinstance(value, float):
        yield from ((str(odd), odd, False) for odd in (float("nan"), float("inf"), -float("inf"), -1.0, 0.0))


def odd_values(argument: str, value: Any) -> Iterator[tuple[str, Any, bool]]:
    """Arrays of the same length with odd values at one place or everywhere."""
    whole = value.dtype.kind in "iu"
    index = whole and argument in (
        "indptr",
        "order",
        "chosen",
        "ideal",
        "query",
        "parts",
        "left",
        "right",
        "feature",
        "relevant",
        "better",
        "worse",
    )
    index = index and not (argument == "chosen" and value.dtype == np.uint8)  # flags
    largest = np.iinfo(value.dtype).max if whole else np.inf
    odd = [largest, largest // 2 + 1, 100] if whole else [np.nan, np.inf, -np.inf]
    odd += [-1, -largest] if value.dtype.kind == "i" else []
    for number in odd:
        for place in (0, len(value) // 2, len(value) - 1):
            changed = value.copy()
            changed[place] = number
            yield f"{number} at {place}", changed, index and number not in (100, -1)
        yield f"all {number}", np.full_like(value, number), index and number not in (100, -1)


def answer_with_nonsense(growing: _core.Growth, cells: int) -> None:
    growing.tree()
    while questions := growing.asks(True):
        wanted = sum(len(question[-1]) for question in questions)
        growing.take(np.full(wanted * 2 * cells, 0x1234, np.uint64), 2)
    growing.tree()


def use(name: str, made: Any) -> None:
    """Ask what a call made, with arrays that it must fit."""
    if isinstance(made, _core.Kernel):
        grades = np.arange(float(N)) if name == "preference_correct" else Y  # which reads the numbers of documents
        for ties in (False, True):
            _core.evaluate(SCORES, INDPTR, [(made, grades, Y, False), (made, grades, None, ties)], 2)
            use(name, _core.StepSearch(bound(made, ties, grades)))
        if name not in ("ratio_bound", "precision_bound"):  # which have no exchanges of any two documents
            asked(_core.lambdas(_core.LambdaRule(made, grades, Y, "logistic", 1.0, 100, 100, 0.0)))
        asked(_core.finite_difference(made, grades, Y, 0.5))
    if isinstance(made, _core.BoundMeasure):
        use(name, _core.StepSearch(made))
    if isinstance(made, _core.StepSearch):
        made.rank_part(SCORES, 2)
        made.jumps(SLOPES, -9.0, 9.0, 2)
        made.outline(SLOPES, -9.0, 9.0, 2)
    if isinstance(made, _core.LineSearch):
        made.rank(SCORES, 2)
        made.best(SLOPES, -9.0, 9.0, 2)
    if isinstance(made, _core.LambdaRule):
        use(name, _core.lambdas(made))
    if isinstance(made, _core.Separation):
        made.coefficients(SCORES, INDPTR, None)
        use(name, _core.StructuredLoss(made, Y, True))
    if isinstance(made, _core.Objective):
        asked(made)
    if isinstance(made, _core.Trees):
        made.scores(X, 2)
    if isinstance(made, _core.Net):
        made.scores(np.ones(made.size), X, 2)
    if isinstance(made, _core.RankBoost):
        made.sums(SCORES, 1, 2)
    if isinstance(made, _core.BinLayout):
        answer_with_nonsense(_core.Growth(made, _core.HistogramPool(made), ALLOWED, N, 1 / 64, 1 / 64, 1, **RULES), made.cells)
        use(name, binned(made))
    if isinstance(made, _core.BinnedRows):
        use(name, _core.NodeRows(made))
    if isinstance(made, _core.NodeRows):
        made.begin(CHOSEN, **FORCES, threads=2)
        made.answer(QUESTIONS[:1], ALLOWED, N, 2)
    if isinstance(made, _core.Growth):
        answer_with_nonsense(made, bins().cells)
    if isinstance(made, _core.Planes):
        made.solve(1e-9, 5)
        made.drop(1)
        made.held()
    if isinstance(made, _core.LetorParser):
        made.feed(TEXT)
        made.finish()
        made.take()
        made.take_exact()


def call(name: str, arguments: dict[str, Any]) -> None:
    owner, _, method = name.rpartition(".")
    thing = getattr(_core, owner) if owner else None
    if method == "__init__":
        use(name, thing(**arguments))
    elif thing is not None and "self" in arguments:
        rest = {key: value for key, value in arguments.items() if key != "self"}
        use(name, getattr(arguments["self"], method)(**rest))
    else:
        use(name, getattr(thing or _core, method)(**arguments))


def problems(name: str) -> Iterator[str]:
    """Calls that were accepted though they are wrong, or refused without words."""
    call(name, CALLS[name]())
    for argument, value in CALLS[name]().items():
        if argument == "self":
            continue
        for what, other, must_fail in wrong(name, argument, value):
            try:
                call(name, CALLS[name]() | {argument: other})
            except REFUSALS as error:
                if not str(error):
                    yield f"{argument} {what}: {type(error).__name__} without words"
            else:
                if must_fail:
                    yield f"{argument} {what}: accepted"


if __name__ == "__main__":
    for entry in sys.argv[1:] or sorted(CALLS):
        print(json.dumps({"at": entry}), flush=True)
        print(json.dumps({"name": entry, "problems": list(problems(entry))}), flush=True)
