"""The work of a query's forces around closed paths of its scores.

Forces that derive from a potential do no work around a closed path: what the way out costs, the way back returns. So

    W = sum over the edges of  integral of lambda(s) . ds                                                       (1)

is 0, even if the path leads from one ordering of the documents to another. Forces can have a symmetric Jacobian within
each ordering and still do work, since their weights jump where documents swap ranks; LambdaRank's do.

The paths are triangles: a few documents move through three random sets of scores and back. Edges are cut where forces are
known to jump. On each piece Gauss-Legendre quadrature uses four points, and the difference from three points is the error. If forces
may also jump elsewhere, a path with work left over is integrated again with other pieces, and the work that a jump next to a cut could hide
is added to the error. If the cost is convex, forces never grow along an edge from p to q:

    (lambda(q) - lambda(p)) . (q - p) <= 0                                                                      (2)
"""

import math
from dataclasses import dataclass

import numpy as np

from exactrank._support import numerics
from exactrank._support.arrays import Floats, PerDocument, Rows
from exactrank.inspect.force_field import Estimate, ForceField, Points

MOVED = 3  #: documents that move along a path
PIECES = 16  #: equal pieces into which an edge is cut, besides the cuts at jumps
OTHER_PIECES = 45  #: pieces when a path is integrated again; no cut coincides with one of the first
UNSEEN = 0.0025  #: share of the work that unknown jumps next to cuts may hide from both
INNER, OUTER = (math.sqrt(3 / 7 + sign * 2 / 7 * math.sqrt(6 / 5)) for sign in (-1, 1))
#: Nodes and weights of the quadrature on [-1, 1], with four points, and with three to estimate its error.
QUADRATURES = tuple(
    (np.array(nodes), np.array(weights))
    for nodes, weights in (
        ((-OUTER, -INNER, INNER, OUTER), [(18 + sign * math.sqrt(30)) / 36 for sign in (-1, 1, 1, -1)]),
        ((-math.sqrt(3 / 5), 0.0, math.sqrt(3 / 5)), (5 / 9, 8 / 9, 5 / 9)),
    )
)
WEAK = 0.1  #: a path with weaker forces than this share of their mean counts as if it had these
STILL = 1e-9  #: forces that change by less than this, relative to their size, count as constant


@dataclass(frozen=True)
class Circulation:
    """Work of the forces around a sample of closed paths."""

    work: Estimate  #: the largest |W| of (1), relative to the integral of |lambda| |ds| over the moving documents
    rise: Estimate  #: the largest cosine in (2) over the edges; 0 if forces grow along none
    force: float  #: the mean of |lambda| over the moving documents, along all paths


def circulation(field: ForceField, s: PerDocument, loops: int, rng: np.random.Generator) -> Circulation:
    """Estimate the circulation on ``loops`` random triangles around ``s``, about as wide as the spread of the scores."""
    triangles = [Triangle.around(s, rng) for _ in range(loops)]
    integrals = [triangle.integral(field) for triangle in triangles]
    force = math.fsum(integral.force for integral in integrals) / math.fsum(integral.length for integral in integrals)
    if force == 0:
        return Circulation(Estimate(0.0), Estimate(0.0), 0.0)
    sizes = [max(integral.force, WEAK * force * integral.length) for integral in integrals]
    worst = int(np.argmax([abs(integral.work) / size for integral, size in zip(integrals, sizes, strict=True)]))
    path, size = integrals[worst], sizes[worst]
    work = Estimate(abs(path.work) / size, path.error / size)
    if work.nil is False and not field.knows_all_jumps:
        other_integral = triangles[worst].integral(field, OTHER_PIECES)
        work = Estimate(work.value, max(work.error, abs(other_integral.work - path.work) / size, UNSEEN))
    rise = max(triangle.rise(field) for triangle in triangles)
    return Circulation(work, Estimate(max(0.0, rise)), force)


@dataclass(frozen=True)
class Integral:
    """Integrals along a path."""

    work: float  #: (1)
    error: float  #: error of the work
    force: float  #: the integral of |lambda| |ds| over the moving documents
    length: float


@dataclass(frozen=True, eq=False)
class Triangle:
    """Three sets of scores, which differ in those of the documents ``moving``."""

    corners: Points
    moving: Rows

    @classmethod
    def around(cls, s: PerDocument, rng: np.random.Generator) -> "Triangle":
        """Draw a random triangle around ``s``."""
        moving = rng.permutation(len(s))[:MOVED]
        corners = np.tile(s, (3, 1))
        corners[:, moving] += s.std() * numerics.standard_normal(rng, (3, len(moving)))
        return cls(corners, moving)

    def integral(self, field: ForceField, pieces: int = PIECES) -> Integral:
        """Integrate (1) over the edges, cut into ``pieces`` equal pieces and where forces are known to jump."""
        ends = zip(self.corners, np.roll(self.corners, -1, axis=0), strict=True)
        return Integral(*np.sum([self._edge(field, p, q, pieces) for p, q in ends], axis=0).tolist())

    def rise(self, field: ForceField) -> float:
        """Return the largest cosine between the change of the scores and the change of the forces along an edge."""
        forces, scores = field(self.corners)[:, self.moving], self.corners[:, self.moving]
        change, step = np.roll(forces, -1, axis=0) - forces, np.roll(scores, -1, axis=0) - scores
        size = _lengths(change)
        cosine = np.sum(change * step, axis=1) / np.maximum(size * _lengths(step), np.finfo(float).tiny)
        return float(np.where(size > STILL * np.abs(forces).max(), cosine, 0.0).max())

    def _edge(self, field: ForceField, p: PerDocument, q: PerDocument, pieces: int) -> tuple[float, float, float, float]:
        """Return the fields of the `Integral` from ``p`` (0) to ``q`` (1), cut evenly and where forces jump."""
        before, after = (np.subtract.outer(end[self.moving], end).ravel() for end in (p, q))
        crossing = before != after
        jumps = ((np.array(field.jumps)[:, None] - before[crossing]) / (after - before)[crossing]).ravel()
        cuts = np.unique(np.concatenate([np.linspace(0, 1, pieces + 1), jumps[(jumps > 0) & (jumps < 1)]]))
        points, weights = zip(*(_gauss(cuts, *quadrature) for quadrature in QUADRATURES), strict=True)
        forces = field(p + np.concatenate([nodes.ravel() for nodes in points])[:, None] * (q - p))
        fine, coarse = np.split(forces, [points[0].size])
        works = [
            np.sum(numerics.matmul(values, q - p).reshape(factors.shape) * factors, axis=1)
            for values, factors in zip((fine, coarse), weights, strict=True)
        ]
        length = numerics.norm(q - p)
        force = numerics.dot(weights[0].ravel(), _lengths(fine[:, self.moving])) * length
        return float(works[0].sum()), float(np.abs(works[0] - works[1]).sum()), force, length


def _lengths(rows: Points) -> Floats:
    return np.asarray(np.sqrt(np.sum(rows**2, axis=1)))


def _gauss(cuts: PerDocument, nodes: Floats, weights: Floats) -> tuple[Points, Points]:
    """Return points and weights of Gauss-Legendre quadrature, a row for each piece between two cuts."""
    width = np.diff(cuts)[:, None]
    return cuts[:-1, None] + width * (nodes + 1) / 2, width * weights / 2
