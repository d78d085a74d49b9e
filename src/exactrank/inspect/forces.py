"""Potentials of lambda functions, and their convexity: `er.inspect.forces` (Burges, Ragno & Le 2006, section 4).

A lambda function says how strongly each document of a query is to move up or down, and so defines the slope of a cost C that
need not exist:

    dC/ds_j = -lambda_j(s)                                                                                      (1)

Four questions about the forces lambda, on queries with real grades:

    Do they sum to zero in each query? Otherwise all its scores drift together.                                 (2)
    Is J_jk = d lambda_j / d s_k symmetric? If it is everywhere, C exists (their eq. 5).                        (3)
    Is the Hessian -J of C positive semidefinite? If it is everywhere, C is convex.                             (4)
    Do they do no work around closed paths? If this holds for all paths, C exists.                             (5)

(3) is not enough by itself where forces jump. LambdaRank's weights depend on the ranks: while the order of the documents stays,
the forces are those of springs with fixed strengths, and J is symmetric; but when two documents swap ranks the strengths
jump, which a derivative does not see but (5) does. So a potential is said to exist only if both hold.

A "no" is certain. A "yes" holds for the points that were examined.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import check_count
from exactrank._support.arrays import PerDocument, Rows
from exactrank._support.numerics import standard_normal
from exactrank._support.pictures import COLORS, INK, QUIET, Plottable, caption
from exactrank._support.tables import Table, Tabular, Values, by_column, small_table
from exactrank._support.threads import Pool, thread_count
from exactrank.data.ranking_data import RankingData, check_data
from exactrank.errors import DataError, IncompatibleError
from exactrank.inspect.circulation import circulation
from exactrank.inspect.force_field import NIL, Estimate, ForceField, has_closed_form, jacobian
from exactrank.learning.objectives.lambdas import FiniteDifference, Lambdas
from exactrank.learning.objectives.score_space import Objective
from exactrank.measures.evaluate import checked_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DOCUMENTS = 100  #: longer queries are left out: a path crosses as many orderings as there are pairs
LOOPS = 5  #: closed paths per query
RESOLVED = 1e-8  #: scores that differ by less than this share of their size tie

Quantity = Literal["imbalance", "asymmetry", "concavity", "circulation", "rise"]
LEAST = 1e-17  #: pictures show smaller values as this one
STATEMENTS = {  #: what holds for the forces if a quantity is zero
    "imbalance": "they sum to zero",
    "asymmetry": "the Jacobian is symmetric",
    "circulation": "no work around closed paths",
    "concavity": "the Hessian is positive semidefinite",
    "rise": "they never grow along a path",
}


@dataclass(frozen=True)
class QueryForces:
    """Estimates for one query; each is zero if the answer to its question is yes."""

    query: Any
    documents: int
    imbalance: Estimate  #: (2): |sum of lambda| / sum of |lambda|
    asymmetry: Estimate  #: (3): the largest |J_jk - J_kj|, relative to the largest |J_jk|
    concavity: Estimate  #: (4): how far below 0 the least eigenvalue of -J is, relative to the largest
    circulation: Estimate  #: (5): the work left over, relative to the integral of |lambda| |ds|; the largest over all paths
    rise: Estimate  #: (4) between orderings: growth of the forces along an edge of a path, as a cosine; the largest over all edges
    force: float  #: the mean of |lambda| over the moving documents, along the paths


@dataclass(frozen=True, repr=False)
class Forces(Tabular, Plottable):
    """Test of whether a lambda function has a potential, and a convex one; the result of [`forces`][exactrank.inspect.forces]."""

    objective: Objective
    exact: bool  #: true if the Jacobian is exact, false if it comes from finite differences
    loops: int  #: number of closed paths, over all queries
    per_query: tuple[QueryForces, ...]
    left_out: Mapping[str, int]  #: number of queries that were not examined, by reason

    @property
    def sums_to_zero(self) -> bool | None:
        """Answer to (2); here and below None means that it cannot be decided."""
        return self.nil("imbalance")

    @property
    def symmetric(self) -> bool | None:
        """Answer to (3), within the orderings of the scores."""
        return self.nil("asymmetry")

    @property
    def conservative(self) -> bool | None:
        """Answer to (5): true if no work is left over around any path."""
        return self.nil("circulation")

    @property
    def potential(self) -> bool | None:
        """True if a cost (1) exists, by (3) and (5)."""
        return self.nil("asymmetry", "circulation")

    @property
    def convex(self) -> bool | None:
        """True if a convex cost exists, by (4) within orderings and between them."""
        return self.nil("asymmetry", "circulation", "concavity", "rise")

    @property
    def verdict(self) -> str:
        """The result in words."""
        worst = self.worst("imbalance")
        drift = f"sum to up to {worst.imbalance.value:.2g} of their size (query {worst.query}), so that scores drift"
        sums = "of each query sum to zero" if self.sums_to_zero else f"of a query do not sum to zero: they {drift}"
        if self.potential is None:
            conclusion = "Whether a potential exists cannot be decided: the errors of differentiation or quadrature are too large."
        elif self.potential:
            kind = {True: "convex", False: "not convex", None: "convex or not, which cannot be decided"}[self.convex]
            conclusion = (
                f"A potential exists, {kind}: the Jacobian is symmetric, and no work is left over around {self.loops:,} closed paths."
            )
        elif self.symmetric is False:
            worst = self.worst("asymmetry")
            size = f"by up to {worst.asymmetry.value:.2g} of its largest entry (query {worst.query})"
            conclusion = f"There is no potential: the Jacobian is not symmetric, {size}."
        else:
            worst = self.worst("circulation")
            conclusion = (
                "There is no potential: while the order of the documents stays the Jacobian is symmetric, but around closed paths"
                f" that change the order up to {worst.circulation.value:.1%} of the work is left over (query {worst.query})."
            )
        return f"The forces {sums}. {conclusion}"

    def worst(self, quantity: Quantity) -> QueryForces:
        """Return the query with the largest estimate of ``quantity``."""
        return max(self.per_query, key=lambda query: getattr(query, quantity).value)

    def to_json(self) -> dict[str, object]:
        """Return everything in a form for ``json.dumps``; None means that it cannot be decided."""
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

    def _columns(self) -> dict[str, Values]:
        sizes = {name: [getattr(query, name).value for query in self.per_query] for name in get_args(Quantity)}
        ids = by_column(self.per_query, "query", "documents")
        return {"query_id": ids["query"], "documents": ids["documents"], **sizes, **by_column(self.per_query, "force")}

    def _glance(self) -> Table:
        return small_table(self.verdict, list(self._columns().items()), len(self.per_query))

    def _draw(self, axes: "Axes", **options: object) -> None:
        answers: dict[bool | None, tuple[str, str]] = {
            True: (COLORS[2], "yes"),
            False: (COLORS[1], "no"),
            None: (QUIET, "cannot be decided"),
        }
        for row, name in enumerate(STATEMENTS):
            estimates = [getattr(query, name) for query in self.per_query]
            for answer, (color, _) in answers.items():
                sizes = [max(estimate.value, LEAST) for estimate in estimates if estimate.nil is answer]
                axes.plot(sizes, np.full(len(sizes), row), "o", color=color, alpha=0.5, markeredgewidth=0, clip_on=False)
        labels = [f"{statement}: {answers[self.nil(name)][1]}" for name, statement in STATEMENTS.items()]  # type: ignore[arg-type]
        axes.axvline(NIL, color=INK, linewidth=0.8, linestyle="--", label="smaller than this counts as nothing")
        axes.set_xscale("log")
        axes.set(
            xlim=(LEAST, 2.0), ylim=(len(STATEMENTS) - 0.5, -0.5), xlabel="deviation, relative to the size of its terms; a dot is a query"
        )
        axes.set_yticks(range(len(STATEMENTS)), labels)
        measure = getattr(self.objective, "measure", None)
        axes.set_title(
            caption(type(self.objective).__name__ + (f" of {measure}" if measure is not None else "") + ": the forces on documents", 80)
        )
        axes.legend(loc="lower left")

    def nil(self, *quantities: Quantity) -> bool | None:
        """Return whether the estimates are zero in all queries; False if one is not, None if one cannot be decided."""
        answers = {getattr(query, quantity).nil for quantity in quantities for query in self.per_query}
        return False if False in answers else None if None in answers else True

    def __repr__(self) -> str:
        return f"Forces({self.verdict!r})"


def forces(
    data: RankingData,
    objective: Objective,
    scores: npt.ArrayLike | None = None,
    *,
    queries: int = 20,
    seed: int = 0,
    threads: int | None = None,
) -> Forces:
    """Test whether the forces of ``objective`` are the slope of a cost, on some queries of ``data``.

    They are examined around ``scores``, one per row in the caller's order: those of a model, by default random ones. Queries
    with only one grade, with more than 100 documents, or with tied scores are left out; ``queries`` of the rest are drawn by ``seed``.

    >>> from exactrank.measures import NDCG
    >>> data = RankingData.from_arrays(None, [0, 1, 2, 0, 1, 3, 2, 0], group=[4, 4])
    >>> ranknet, lambdarank = forces(data, Lambdas()), forces(data, Lambdas(NDCG()))
    >>> ranknet.potential, ranknet.convex, lambdarank.symmetric, lambdarank.potential
    (True, True, True, False)
    """
    check_data(data)
    if not hasattr(objective, "on"):
        raise IncompatibleError(f"{objective!r} is not a lambda function; give e.g. Lambdas(measure=er.measures.NDCG(k=10))")
    check_count("queries", queries, 1)
    s = standard_normal(np.random.default_rng(seed), data.n_documents) if scores is None else data.group(checked_scores(data, scores))
    if not np.all(np.isfinite(s)):
        raise DataError(f"scores holds {s[~np.isfinite(s)][0]}; forces act on documents with finite scores, so leave out the others")
    sample, left_out = _draw_queries(objective, data, s, queries, np.random.default_rng(seed))
    workers = thread_count(threads) if isinstance(objective, Lambdas | FiniteDifference) else 1  # others may call Python
    with Pool(workers) as pool:
        results = tuple(pool.map(lambda q: _examine_query(objective, data, s, q, seed), sample.tolist()))
    if not any(query.force for query in results):
        where = f"any document of the {len(results)} queries examined"
        raise DataError(
            f"no force acts on {where}, so there is nothing to test; give other scores, or another objective than {objective!r}"
        )
    return Forces(objective, has_closed_form(objective), LOOPS * len(results), results, left_out)


def _draw_queries(
    objective: Objective, data: RankingData, s: PerDocument, queries: int, rng: np.random.Generator
) -> tuple[Rows, Mapping[str, int]]:
    """Draw the queries to examine, and count the others by reason."""
    reasons = np.full(data.n_queries, "", object)
    for q, (begin, end) in enumerate(pairwise(data.indptr.tolist())):
        y, query_scores = data.y[begin:end], s[begin:end]
        if y.min() == y.max():
            reasons[q] = "one grade"
        elif len(y) > MOST_DOCUMENTS:
            reasons[q] = f"more than {MOST_DOCUMENTS} documents"
        elif ForceField(objective, y).distance_to_jump(query_scores).min() <= RESOLVED * max(1.0, float(np.abs(query_scores).max())):
            reasons[q] = "scores where forces jump"
    eligible = np.flatnonzero(reasons == "")
    left_out = dict(sorted(Counter(reasons[reasons != ""]).items()))
    if not len(eligible):
        counts = ", ".join(f"{count:,} with {reason}" for reason, count in left_out.items())
        raise DataError(f"none of the {data.n_queries:,} queries can be examined: {counts}; give other data, or scores=None")
    sample = np.sort(rng.permutation(eligible)[:queries])
    return sample, left_out | ({"not needed": len(eligible) - len(sample)} if len(eligible) > len(sample) else {})


def _examine_query(objective: Objective, data: RankingData, s: PerDocument, q: int, seed: int) -> QueryForces:
    """Return the estimates for query ``q``."""
    rows, rng = slice(*data.indptr[q : q + 2]), np.random.default_rng([seed, q])
    field, s = ForceField(objective, data.y[rows]), s[rows]
    forces_at_scores, J, loops = field(s[None, :])[0], jacobian(field, s), circulation(field, s, LOOPS, rng)
    size = float(np.abs(forces_at_scores).sum())
    return QueryForces(
        query=data.qid[q].item() if isinstance(data.qid[q], np.generic) else data.qid[q],
        documents=len(s),
        imbalance=Estimate(abs(float(forces_at_scores.sum())) / size if size > 0 else 0.0),
        asymmetry=J.asymmetry,
        concavity=J.concavity,
        circulation=loops.work,
        rise=loops.rise,
        force=loops.force,
    )
