"""A judging plan: which documents to judge so that a decision becomes certain with few judgments (`er.judging.plan`).

The decision is which of several rankings is best by a measure with cutoff k: the weight of two systems, or one of several rankers. The
*pool* has every document that is among the first k of a query at any weight, found by an exact sweep over the crossings of the two
systems' scores, or in any of the rankings. Other unjudged documents could only change what an ideal ranking is worth; here they count as
not relevant, as in pooling.

With the judgments so far, c is the ranking of the largest mean, and for each rival a

    regret(a) = mean over queries of the largest f_a - f_c for all grades of the pool's unjudged documents          (1)

by the exact bounds of differences (`exactrank.measures.unjudged`). If no regret is above epsilon, the decision is certain: no grades
can make another ranking better by more. Until then a document i of query q has the priority

    sum over pairs of contenders of w_q (width_q - sum_g p_g width_q(y_i = g)),    width_q = upper_q - lower_q      (2)

the amount by which its judgment can be expected to narrow the bounds of the pairs' differences, where p_g is the share of grade g among
the judged documents, and the contenders are c and the rivals of the largest regrets. All their pairs count alike: judgments of documents
that speak for one of them alone would be a biased sample. After some judgments the plan is made again, since c, the contenders and p may
have changed.

For the weight of two systems the rankings compared are those at `WEIGHTS` + 1 evenly spaced weights; the pool covers all weights.
"""

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank._support.arguments import check_number
from exactrank._support.arrays import Floats, PerDocument, PerQuery, Rows
from exactrank._support.files import checked_path, whole_file
from exactrank._support.tables import LETTERS, Tabular, Values
from exactrank._support.text import clip, printable
from exactrank._support.threads import thread_count
from exactrank.data.formats.trec import with_ids
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError, IncompatibleError, MeasureError
from exactrank.fusion.normalize import ABSENT, normalize_systems
from exactrank.fusion.problem import FusionProblem
from exactrank.fusion.systems import select_systems
from exactrank.measures.base import Measure
from exactrank.measures.bound import means_over_queries
from exactrank.measures.evaluate import checked_scores
from exactrank.measures.families import Discounted
from exactrank.measures.parse import parse_measure
from exactrank.measures.unjudged import (
    bounds_of_discounts,
    check_differences_exist,
    discounts_by_document,
    highest_grade as checked_highest,
)

WEIGHTS = 32  #: intervals between the weights that are compared
RIVALS = 3  #: rankings of the largest regrets, for which priorities are computed
MOST_GRADES = 6  #: different grades that are tried; of more, as many quantiles
DOCUMENTS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class JudgingPlan(Tabular):
    """Unjudged documents of the pool in the order in which to judge them, and how certain the decision is so far."""

    qid: Sequence[object]
    docid: Sequence[str]
    why: Sequence[str]
    priority: PerDocument  #: (2)
    choice: str  #: the ranking of the largest mean so far
    rival: str  #: the ranking of the largest regret
    regret: float  #: (1) of the rival: how much is lost at most by the choice
    epsilon: float  #: the loss that does not matter
    pool: int  #: documents, judged or not
    measure: Measure

    @property
    def is_certain(self) -> bool:
        """True if no grades of unjudged documents make another ranking better by more than epsilon."""
        return self.regret <= self.epsilon

    def __repr__(self) -> str:
        choice, rival = (clip(printable(name), LETTERS) for name in (self.choice, self.rival))
        state = "certain" if self.is_certain else f"{rival} may be better by {self.regret:.4f}"
        return f"JudgingPlan({choice} is best by {self.measure}: {state}; {len(self.docid):,} of {self.pool:,} documents to judge)"

    def _columns(self) -> dict[str, Values]:
        return {"query": list(self.qid), "document": self.docid, "why": self.why, "priority": self.priority}

    def to_json(self) -> dict[str, object]:
        """Return the decision and the documents, ready for ``json.dumps``."""
        rows = zip(map(str, self.qid), self.docid, self.why, self.priority.tolist(), strict=True)
        names = ("query", "document", "why", "priority")
        return {
            "measure": repr(self.measure),
            "choice": self.choice,
            "certain": self.is_certain,
            "rival": self.rival,
            "regret": self.regret,
            "epsilon": self.epsilon,
            "pool": self.pool,
            "documents": [dict(zip(names, row, strict=True)) for row in rows],
        }

    def to_csv(self) -> str:
        """Return a row per document, with an empty column ``grade`` to fill in."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["query", "document", "why", "priority", "grade"])
        for query, document, reason, priority in zip(self.qid, self.docid, self.why, self.priority.tolist(), strict=True):
            writer.writerow([str(query), document, reason, f"{priority:.6g}", ""])
        return text.getvalue()

    def to_bytes(self, path: str | os.PathLike[str]) -> bytes:
        """Return the content of a file of this name: JSON if it ends in .json, otherwise CSV."""
        is_json = checked_path(path).suffix == ".json"
        text = json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n" if is_json else self.to_csv()
        return text.encode("utf-8", "surrogateescape")

    def write(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the plan as CSV, or as JSON if ``path`` ends in .json; an existing file is replaced only with ``force``."""
        content = self.to_bytes(path)
        with whole_file(path, force=force) as file:
            file.write(content)


def judging_plan(
    data: RankingData,
    rankings: Mapping[str, npt.ArrayLike] | None = None,
    *,
    systems: Sequence[str] | None = None,
    measure: str | Measure = "nDCG@10",
    normalize: str = "min-max",
    absent: str = ABSENT[0],
    highest_grade: float | None = None,
    epsilon: float = 0.0,
    limit: int | None = None,
    threads: int | None = None,
) -> JudgingPlan:
    """Plan which documents to judge to decide which of ``rankings``, or which weight of two systems, is best by ``measure``.

    ``rankings`` maps names to scores, one per row of ``data`` in the caller's order, -inf if a document was not retrieved. Without them the
    two ``systems`` are features of ``data`` (default: all; NaN: not retrieved), whose weighted sum is to be tuned; ``normalize`` and
    ``absent`` are as in [`er.fuse`][exactrank.fuse]. A grade below 0 means unjudged; unknown grades are at most ``highest_grade`` (default:
    the largest of the data). The decision is certain if at most ``epsilon`` can be lost by it. ``limit`` is the number of documents that
    are listed.

    >>> X = [[3.0, 0.1], [2.0, 0.9], [1.0, 0.8], [9.0, 0.7], [8.0, 0.9], [1.0, 0.2]]
    >>> data = RankingData.from_arrays(X, [-1, 1, 0, 0, -1, 2], group=[3, 3], feature_names=["bm25", "dense"])
    >>> plan = judging_plan(data, measure="nDCG@1")
    >>> plan
    JudgingPlan(weight 0.3438 of dense is best by nDCG@1: weight 0 of dense may be better by 0.3333; 2 of 4 documents to judge)
    >>> plan.docid
    ['0', '4']
    """
    check_data(data)
    parsed = parse_measure(measure)
    if parsed.ties != "input":
        raise MeasureError(f"{parsed}: a judging plan ranks equal scores in the order of the input; give ties='input'")
    check_number("epsilon", epsilon)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise DataError(f"limit={limit!r}: expected a whole number of at least 1, or None for all documents")
    highest = checked_highest(data, highest_grade)
    check_differences_exist(parsed, data, highest)
    assert isinstance(parsed, Discounted)
    candidates = (
        _weight_candidates(data, systems, parsed, normalize, absent, threads)
        if rankings is None
        else _run_candidates(data, rankings, systems, parsed, threads)
    )
    rows = np.flatnonzero(candidates.pool & (data.y < 0))
    pooled = replace(data, y=np.where(candidates.pool, data.y, np.maximum(data.y, 0.0)))
    decision = _decide(parsed, pooled, candidates, _grade_shares(data, highest), highest, epsilon, threads)
    priority = decision.priorities(rows)
    order = np.argsort(-priority, kind="stable")[:limit]
    rows, named = rows[order], with_ids(data)
    assert named.docid is not None
    return JudgingPlan(
        np.repeat(data.qid, data.sizes)[rows].tolist(),
        named.docid.take(rows).tolist(),
        candidates.reasons(rows),
        priority[order],
        candidates.names[decision.choice],
        candidates.names[decision.rival],
        decision.regret,
        epsilon,
        int(np.sum(candidates.pool)),
        parsed,
    )


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Rankings to decide between, and the pool of their first documents."""

    names: Sequence[str]
    values: Floats  #: of each ranking's queries, unjudged documents counted as not relevant
    discounts: Sequence[PerDocument]  #: of each ranking's documents
    pool: npt.NDArray[np.bool_]
    first: str  #: "in the first 10"

    def reasons(self, rows: Rows) -> list[str]:
        """Return why each of the documents is in the pool."""
        is_first = np.stack([discounts[rows] > 0 for discounts in self.discounts])
        names = [self.names[ranking] for ranking in np.argmax(is_first, axis=0)]
        counts = is_first.sum(axis=0).tolist()
        return [
            f"{self.first} of {name}" + (f" and of {count - 1} more" if count > 1 else "") if count else f"{self.first} between two weights"
            for name, count in zip(names, counts, strict=True)
        ]


def _candidates(
    data: RankingData, measure: Discounted, named: Mapping[str, PerDocument], pool: npt.NDArray[np.bool_] | None, threads: int | None
) -> _Candidates:
    bound = measure.on(data, threads=threads)
    discounts = discounts_by_document(measure, data, list(named.values()), threads)
    union = np.any([numbers > 0 for numbers in discounts], axis=0) if pool is None else pool
    first = f"in the first {measure.k}" if measure.k else "in the list"
    return _Candidates(list(named), np.stack([bound.values(scores) for scores in named.values()]), discounts, union, first)


def _run_candidates(
    data: RankingData, rankings: Mapping[str, npt.ArrayLike], systems: Sequence[str] | None, measure: Discounted, threads: int | None
) -> _Candidates:
    """Return the caller's rankings."""
    if systems is not None:
        raise DataError("systems are fused, and rankings are compared as they are; give one of them")
    if not isinstance(rankings, Mapping) or len(rankings) < 2:
        raise DataError("a decision is between at least two rankings; give a mapping such as {'bm25': scores, 'dense': scores}")
    named = {str(name): data.group(checked_scores(data, scores, str(name))) for name, scores in rankings.items()}
    return _candidates(data, measure, named, None, threads)


def _weight_candidates(
    data: RankingData, systems: Sequence[str] | None, measure: Discounted, normalize: str, absent: str, threads: int | None
) -> _Candidates:
    """Return two systems at evenly spaced weights, with the pool of all weights."""
    lists = select_systems(data, data.feature_names if systems is None else systems)
    names = lists.feature_names
    if len(names) != 2:
        raise IncompatibleError(
            f"the pool of all weights is that of two systems, got {', '.join(names) or 'none'}; give two systems, or rankings"
        )
    if absent not in ABSENT:
        raise DataError(f"absent={absent!r} is not one of {', '.join(ABSENT)}")
    values, ranked = normalize_systems(lists.X, lists.indptr, normalize, absent, lists.offset)
    problem = FusionProblem(measure, lists, values, ranked)
    start, end = np.eye(2)
    scores, slopes = (np.ascontiguousarray(numbers) for numbers in problem.ray(start, end))
    members = _core.members_along(scores, slopes, data.indptr, 0.0, 1.0, min(measure.cutoff, data.longest), thread_count(threads))
    weights = np.arange(WEIGHTS + 1) / WEIGHTS
    named = {f"weight {weight:.4g} of {names[1]}": problem.scores((1 - weight) * start + weight * end) for weight in weights}
    return _candidates(data, measure, named, members > 0, threads)


@dataclass(frozen=True, eq=False)
class _Decision:
    """The choice among the candidates so far, and what it may lose."""

    measure: Discounted
    data: RankingData
    candidates: _Candidates
    grade_shares: tuple[Floats, Floats]
    highest: float
    choice: int
    rivals: Rows  #: those of the largest regrets above epsilon, the largest first
    rival: int
    regret: float
    threads: int | None

    def priorities(self, rows: Rows) -> PerDocument:
        """Return (2) for unjudged documents."""
        total, queries = np.zeros(len(rows)), np.searchsorted(self.data.indptr, rows, side="right") - 1
        grades, shares = self.grade_shares
        weights = self.data.weights / self.data.weights.sum()
        at_once = max(1, DOCUMENTS_AT_ONCE // self.data.longest)
        for pair in combinations([self.choice, *self.rivals.tolist()], 2):
            ours, theirs = (self.candidates.discounts[ranking] for ranking in pair)
            widths = self._widths(self.data, ours, theirs)
            matters = np.flatnonzero((ours[rows] != 0) | (theirs[rows] != 0))
            for first in range(0, len(matters), at_once):
                places = matters[first : first + at_once]
                expected = self._expected_widths(rows[places], queries[places], ours, theirs, grades, shares)
                total[places] += weights[queries[places]] * (widths[queries[places]] - expected)
        return np.maximum(total, 0.0)

    def _widths(self, data: RankingData, ours: PerDocument, theirs: PerDocument) -> PerQuery:
        lower, upper = bounds_of_discounts(self.measure, data, ours, theirs, self.highest, self.threads)
        return np.asarray(upper - lower)

    def _expected_widths(
        self, rows: Rows, queries: Rows, ours: PerDocument, theirs: PerDocument, grades: Floats, shares: Floats
    ) -> PerQuery:
        """Return the expected widths of the bounds of some documents' queries, after each of these has been judged."""
        bare = replace(self.data, X=np.empty((self.data.n_documents, 0), np.float32), feature_names=(), offset=None, levels={})
        part = bare.take_queries(queries)
        sources = np.repeat(self.data.indptr[queries] - part.indptr[:-1], part.sizes) + np.arange(part.n_documents)
        places = part.indptr[:-1] + rows - self.data.indptr[queries]
        expected = np.zeros(len(rows))
        for grade, share in zip(grades, shares, strict=True):
            y = part.y.copy()
            y[places] = grade
            expected += share * self._widths(replace(part, y=y), ours[sources], theirs[sources])
        return expected


def _decide(
    measure: Discounted,
    data: RankingData,
    candidates: _Candidates,
    grade_shares: tuple[Floats, Floats],
    highest: float,
    epsilon: float,
    threads: int | None,
) -> _Decision:
    """Choose the ranking of the largest mean, and bound what it may lose against each other one, (1)."""
    choice = int(np.argmax(means_over_queries(candidates.values, data.weights)))
    base = candidates.discounts[choice]
    uppers = np.stack([bounds_of_discounts(measure, data, numbers, base, highest, threads)[1] for numbers in candidates.discounts])
    regrets = means_over_queries(uppers, data.weights)
    regrets[choice] = -np.inf
    order = np.argsort(-regrets, kind="stable")
    rivals = order[:RIVALS][regrets[order[:RIVALS]] > epsilon]
    rival = int(order[0])
    regret = max(0.0, float(regrets[rival]))
    return _Decision(measure, data, candidates, grade_shares, highest, choice, rivals, rival, regret, threads)


def _grade_shares(data: RankingData, highest: float) -> tuple[Floats, Floats]:
    """Return the grades that a document may get, and their shares among the judged documents; the ends count once more."""
    judged = np.concatenate([data.y[data.y >= 0], [0.0, highest]])
    grades, counts = np.unique(judged, return_counts=True)
    if len(grades) > MOST_GRADES:
        grades = np.quantile(judged, (np.arange(MOST_GRADES) + 0.5) / MOST_GRADES)
        counts = np.ones(MOST_GRADES, np.int64)
    return grades, counts / counts.sum()
