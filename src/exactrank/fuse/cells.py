"""Parts of the weights there are: segments of two systems, triangles of three.

Scores are linear in the weights, so what holds at all corners of a part holds in all of it.
"""

from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

Cell = npt.NDArray[np.float64]  #: corners x systems


def triangles(nonnegative: bool) -> list[Cell]:
    """All weights of three systems: one triangle, or the eight faces of an octahedron."""
    signs = [(1.0, 1.0, 1.0)] if nonnegative else product((1.0, -1.0), repeat=3)
    return [np.diag(sign) for sign in signs]


def segments(nonnegative: bool) -> list[Cell]:
    """All weights of two systems: one segment, or the four sides of a square."""
    around = [np.array(corner) for corner in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (1.0, 0.0))]
    return [np.stack(ends) for ends in pairwise(around[:2] if nonnegative else around)]


def halves(cell: Cell) -> list[Cell]:
    """The two parts on either side of the middle of the longest edge.

    >>> [half.tolist() for half in halves(np.eye(2))]
    [[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.0, 1.0]]]
    """
    edges = [(i, j) for i in range(len(cell)) for j in range(i + 1, len(cell))]
    i, j = max(edges, key=lambda edge: float(np.linalg.norm(cell[edge[0]] - cell[edge[1]])))
    parts = cell.copy(), cell.copy()
    parts[0][j] = parts[1][i] = (cell[i] + cell[j]) / 2
    return list(parts)


def small_cells(systems: int, nonnegative: bool, times: int) -> list[Cell]:
    """All weights of two or three systems, halved so many ``times``; none of more systems."""
    cells = {2: segments, 3: triangles}.get(systems, lambda _: [])(nonnegative)
    for _ in range(times):
        cells = [half for cell in cells for half in halves(cell)]
    return cells
