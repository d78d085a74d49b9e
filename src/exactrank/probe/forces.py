"""Is there a cost whose slope a lambda function is, and is it convex? `xr.forces` (Burges, Ragno & Le 2006, section 4).

A lambda function says how strongly each document of a query is to move up or down, and so defines the slope of a cost C that
need not exist:

    dC/ds_j = -lambda_j(s)                                                                                      (1)

Four questions of the forces lambda, on queries with real grades:

    Do they sum to zero in each query? Else all its scores drift up or down together.                           (2)
    Is J_jk = d lambda_j / d s_k symmetric? If it is everywhere, C exists (their eq. 5).                        (3)
    Is the Hessian -J of C positive semidefinite? If it is everywhere, C is convex.                             (4)
    Do they do no work around closed paths? If they do none around any, C exists.                               (5)

(3) is not enough by itself where forces jump. LambdaRank's weights depend on the ranks: while the order of the documents stays,
the forces are those of springs with fixed strengths, and J is symmetric; but when two documents exchange ranks the strengths
jump, a derivative sees nothing of that, and (5) does. So a potential is said to exist only where both hold.

A no is certain. A yes is as good as the places looked at.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from exactrank.arrays import PerDocument, Rows
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.measures.evaluate import checked_scores
from exactrank.objectives.finite_difference import FiniteDifference
from exactrank.objectives.lambdas import Lambdas
from exactrank.objectives.score_space import Objective
from exactrank.probe.circulation import circulation
from exactrank.probe.estimate import Estimate, all_of
from exactrank.probe.force_field import ForceField
from exactrank.probe.jacobian import jacobian
from exactrank.threads import Pool, thread_count

MOST_DOCUMENTS = 100  #: longer queries are left out: a path crosses as many orderings as there are pairs
LOOPS = 5  #: closed paths a query
RESOLVED = 1e-8  #: scores that differ by less than this share of their size tie

Quantity = Literal["imbalance", "asymmetry", "concavity", "circulation", "rise"]


@dataclass(frozen=True)
class QueryForces:
    """What was found of one query; every estimate is nothing where the answer is yes."""

    query: Any
    documents: int
    imbalance: Estimate  #: (2): |sum of lambda| / sum of |lambda|
    asymmetry: Estimate  #: (3): the largest |J_jk - J_kj|, relative to the largest |J_jk|
    concavity: Estimate  #: (4): how far below 0 the least eigenvalue of -J is, relative to the largest
    circulation: Estimate  #: (5): the work left over, relative to the integral of |lambda| |ds|; the largest of all paths
    rise: Estimate  #: (4) between orderings: forces that grow along an edge of a path, as a cosine; the largest of all
    force: float  #: the mean of |lambda| along the paths, of the documents that move


@dataclass(frozen=True, repr=False)
class Forces:
    """Whether a lambda function has a potential, and a convex one; build it with [`xr.forces`][exactrank.forces]."""

    objective: Objective
    exact: bool  #: was the Jacobian differentiated exactly, or by finite differences?
    loops: int  #: closed paths, of all queries
    per_query: tuple[QueryForces, ...]
    left_out: Mapping[str, int]  #: how many queries were not looked at, by the reason

    @property
    def sums_to_zero(self) -> bool | None:
        """(2); here and below None says that it cannot be told."""
        return self.nil("imbalance")

    @property
    def symmetric(self) -> bool | None:
        """(3), within the orderings that the scores have."""
        return self.nil("asymmetry")

    @property
    def conservative(self) -> bool | None:
        """(5): is no work left over around any path?"""
        return self.nil("circulation")

    @property
    def potential(self) -> bool | None:
        """Is there a cost (1)? (3) and (5)."""
        return all_of([self.symmetric, self.conservative])

    @property
    def convex(self) -> bool | None:
        """Is there one that is convex? (4), within orderings and between them."""
        return all_of([self.potential, self.nil("concavity"), self.nil("rise")])

    @property
    def verdict(self) -> str:
        """What was found, in plain words."""
        if self.sums_to_zero:
            return f"The forces of each query sum to zero. {self._potential_in_words()}"
        worst = self.worst("imbalance")
        drift = f"sum to up to {worst.imbalance.value:.2g} of their size (query {worst.query}), so that scores drift"
        return f"The forces of a query do not sum to zero: they {drift}. {self._potential_in_words()}"

    def worst(self, quantity: Quantity) -> QueryForces:
        """The query where an estimate is largest."""
        return max(self.per_query, key=lambda query: getattr(query, quantity).value)

    def to_json(self) -> dict[str, Any]:
        """All of it, ready for ``json.dumps``; null says that it cannot be told."""
        answers = ("sums_to_zero", "symmetric", "conservative", "potential", "convex", "verdict")
        return {
            "lambdas": repr(self.objective),
            "jacobian": "exact" if self.exact else "finite differences",
            "queries": len(self.per_query),
            "loops": self.loops,
            "left_out": dict(self.left_out),
            **{name: getattr(self, name) for name in answers},
            "per_query": [asdict(query) for query in self.per_query],
        }

    def nil(self, quantity: Quantity) -> bool | None:
        """Is an estimate nothing in all queries?"""
        return all_of([getattr(query, quantity).nil for query in self.per_query])

    def _potential_in_words(self) -> str:
        if self.potential is None:
            return "Whether a potential exists cannot be told: the errors of differentiation or quadrature are too large."
        if self.potential:
            kind = {True: "convex", False: "not convex", None: "convex or not, which cannot be told"}[self.convex]
            return f"A potential exists, {kind}: the Jacobian is symmetric, and no work is left over around {self.loops:,} closed paths."
        if self.symmetric is False:
            worst = self.worst("asymmetry")
            by = f"by up to {worst.asymmetry.value:.2g} of its largest entry (query {worst.query})"
            return f"There is no potential: the Jacobian is not symmetric, {by}."
        worst = self.worst("circulation")
        return (
            "There is no potential: while the order of the documents stays the Jacobian is symmetric, but around closed paths"
            f" that change the order up to {worst.circulation.value:.1%} of the work is left over (query {worst.query})."
        )

    def __repr__(self) -> str:
        return f"Forces({self.verdict!r})"


def forces(
    objective: Objective,
    data: RankingData,
    scores: npt.ArrayLike | None = None,
    *,
    queries: int = 20,
    seed: int = 0,
    threads: int | None = None,
) -> Forces:
    """Ask whether the forces of ``objective`` are the slope of a cost, on some queries of ``data``.

    They are looked at around ``scores``, one a row in the caller's order: those of a model, by default random ones. Queries
    of one grade, of more than 100 documents, or with tied scores are left out; of the rest so many as ``queries`` says are
    drawn by ``seed``.

    >>> from exactrank.measures import NDCG
    >>> data = RankingData.from_arrays(None, [0, 1, 2, 0, 1, 3, 2, 0], group=[4, 4])
    >>> ranknet, lambdarank = forces(Lambdas(), data), forces(Lambdas(NDCG()), data)
    >>> ranknet.potential, ranknet.convex, lambdarank.symmetric, lambdarank.potential
    (True, True, True, False)
    """
    if not hasattr(objective, "on"):
        raise IncompatibleError(f"{objective!r} is no lambda function; give e.g. Lambdas(measure=xr.NDCG(k=10))")
    if queries < 1:
        raise DataError(f"queries must be at least 1, got {queries}")
    s = _scores(data, scores, seed)
    chosen, left_out = _chosen(objective, data, s, queries, np.random.default_rng(seed))
    workers = thread_count(threads) if isinstance(objective, Lambdas | FiniteDifference) else 1  # others may call Python
    with Pool(workers) as pool:
        found = tuple(pool.map(lambda q: _examined(objective, data, s, q, seed), chosen.tolist()))
    if not any(query.force for query in found):
        raise DataError(f"no force acts on any document of the {len(found)} queries looked at, so there is nothing to ask; {objective!r}")
    return Forces(objective, isinstance(objective, Lambdas), LOOPS * len(found), found, left_out)


def _scores(data: RankingData, given: npt.ArrayLike | None, seed: int) -> PerDocument:
    if given is None:
        return np.random.default_rng(seed).standard_normal(data.n_documents)
    s = data.grouped(checked_scores(data, given))
    if not np.all(np.isfinite(s)):
        raise DataError(f"scores holds {s[~np.isfinite(s)][0]}; forces act on documents with finite scores, so leave out the others")
    return s


def _chosen(
    objective: Objective, data: RankingData, s: PerDocument, queries: int, rng: np.random.Generator
) -> tuple[Rows, Mapping[str, int]]:
    """The queries to look at, and why not the others."""
    reasons = np.array([_reason_against(objective, data.y[rows], s[rows]) for rows in _queries(data)])
    fit = np.flatnonzero(reasons == "")
    left_out = {str(reason): int(count) for reason, count in zip(*np.unique(reasons[reasons != ""], return_counts=True), strict=True)}
    if not len(fit):
        why = ", ".join(f"{count:,} with {reason}" for reason, count in left_out.items())
        raise DataError(f"none of the {data.n_queries:,} queries can be looked at: {why}; give other data, or scores=None for random ones")
    chosen = np.sort(rng.permutation(fit)[:queries])
    return chosen, left_out | ({"not needed": len(fit) - len(chosen)} if len(fit) > len(chosen) else {})


def _queries(data: RankingData) -> list[slice]:
    return [slice(*ends) for ends in zip(data.indptr[:-1], data.indptr[1:], strict=True)]


def _reason_against(objective: Objective, y: PerDocument, s: PerDocument) -> str:
    if y.min() == y.max():
        return "one grade"
    if len(y) > MOST_DOCUMENTS:
        return f"more than {MOST_DOCUMENTS} documents"
    return "scores where forces jump" if ForceField(objective, y).room(s).min() <= RESOLVED * max(1.0, float(np.abs(s).max())) else ""


def _examined(objective: Objective, data: RankingData, s: PerDocument, q: int, seed: int) -> QueryForces:
    """One query's answers."""
    rows, rng = _queries(data)[q], np.random.default_rng([seed, q])
    field, s = ForceField(objective, data.y[rows]), s[rows]
    here, J, around = field(s[None, :])[0], jacobian(field, s), circulation(field, s, LOOPS, rng)
    size = float(np.abs(here).sum())
    return QueryForces(
        query=data.qid[q].item() if isinstance(data.qid[q], np.generic) else data.qid[q],
        documents=len(s),
        imbalance=Estimate(abs(float(here.sum())) / size if size > 0 else 0.0),
        asymmetry=J.asymmetry,
        concavity=J.concavity,
        circulation=around.work,
        rise=around.rise,
        force=around.force,
    )
