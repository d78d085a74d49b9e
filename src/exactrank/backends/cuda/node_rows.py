"""The documents of a forest on the GPU: their bins, the nodes of the growing tree, and sums of forces.

What `src/native/trees` does on the processor for `NodeRows`, with the same whole numbers: `forest.cu` has the kernels. The host decides
which nodes are split (`_core.Growth`); it gets the histograms of a round in one copy.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from exactrank import _core
from exactrank.backends.cuda.device import REAL, Array, Device, on_host
from exactrank.learning.trees.growth import Allowed, PerLeaf
from exactrank.learning.trees.part import Round

PER_TILE = 16
#: As in `forest.cu`.
CUT, RUN, ROWS_PER_THREAD = 11, 5, 8
#: Threads of the blocks that split nodes, add up histograms and give documents their leaves.
SPLITTING, ADDING, SETTLING = 256, 512, 256
#: Blocks per node that is split, per tile of a node whose histogram is wanted (as few as two per multiprocessor), and per tree.
SPLIT_PIECES, SUM_PIECES, SETTLE_BLOCKS = 528, 30, 1056
#: The sums of a block have 32 bits, so it takes at most MOST_ROWS; with fewer than LEAST_ROWS its own sums cost more than the rows.
MOST_ROWS, LEAST_ROWS = 1 << 17, 4096
#: A tree of up to this number of leaves has its sums in the memory of a block first.
LEAVES_IN_SHARED_MEMORY = 1024
CELL_BYTES = 2 * 3 * 4 * PER_TILE  #: of a block's sums per bin: slopes, curvatures and counts, twice


@dataclass(frozen=True, eq=False)
class CudaBins:
    """Documents in bins on a device, as the processor has them (`src/native/trees/bins.hpp`)."""

    device: Device
    rows: int
    tiles: Array
    columns: Array  #: of features with more than 256 bins
    places: npt.NDArray[np.int64]  #: of each feature: its number of bins, tile, slot or column, and first cell
    kinds: npt.NDArray[np.uint8]
    cells: int

    @classmethod
    def of(cls, layout: _core.BinLayout, binned: _core.BinnedRows, device: Device) -> "CudaBins":
        """Send documents in bins to ``device``."""
        xp = device.xp
        tiles, columns = xp.asarray(binned.tiles), xp.asarray(binned.columns)
        return cls(device, len(binned), tiles, columns, layout.places, layout.kinds, layout.cells)


@dataclass(frozen=True, eq=False)
class FeatureChoice:
    """The features that a tree may use, by where they lie."""

    tiles: Array  #: their numbers
    tile_places: Array  #: first cell, or -1, and number of bins of each slot of each tile
    tile_count: int
    bins: int  #: of the feature with most, in a multiple of eight
    columns: Array  #: column and first cell of each
    column_count: int

    @classmethod
    def of(cls, bins: CudaBins, allowed: Allowed) -> "FeatureChoice":
        """Return those of the features that are ``allowed``."""
        count, tile, slot, cell = bins.places.T
        is_used, xp = (count > 1) & (allowed > 0), bins.device.xp
        in_tile, in_column = np.flatnonzero(is_used & (tile >= 0)), np.flatnonzero(is_used & (tile < 0))
        tiles, index = np.unique(tile[in_tile], return_inverse=True)
        places = np.full((len(tiles), PER_TILE, 2), -1, np.int32)
        places[index, slot[in_tile]] = np.stack([cell, count], axis=1)[in_tile]
        largest = int(count[tile >= 0].max(initial=1))  # rows have bins of features that are not used, too
        columns = np.stack([slot, cell], axis=1)[in_column].astype(np.int32)
        arrays = (xp.asarray(numbers) for numbers in (tiles.astype(np.int32), places, columns))
        device_tiles, tile_places, device_columns = arrays
        return cls(device_tiles, tile_places, len(tiles), -(-largest // 8) * 8, device_columns, len(columns))


class CudaNodeRows:
    """`_core.NodeRows` on a device: the documents of a tree that grows in its nodes."""

    def __init__(self, bins: CudaBins) -> None:
        self.bins, self.device = bins, bins.device
        xp, rows = bins.device.xp, bins.rows
        self._rows = tuple(xp.empty(rows, np.int32) for _ in range(2))
        self._forces = tuple(xp.empty(rows, np.uint64) for _ in range(2))
        self._runs = xp.empty((64, RUN), np.int32)
        self._histograms = np.empty(0, np.uint64)  # on the host
        self._choice: tuple[bytes, FeatureChoice] | None = None

    @property
    def _buffers(self) -> tuple[Array, ...]:
        return *self._rows, *self._forces

    def begin(self, mask: Array | None, slope: Array, curvature: Array, per_slope: float, per_curvature: float) -> None:
        """Put all documents whose ``mask`` is not 0 into node 0, or all where that is None, with forces rounded to units."""
        rows = np.int64(self.bins.rows)
        self.device.launch("begin_root", 1, REAL, self._runs, rows)
        units = np.float64(per_slope), np.float64(per_curvature)
        blocks = min(4 * SPLIT_PIECES, -(-self.bins.rows // (SPLITTING * ROWS_PER_THREAD)))
        arrays = mask, slope, curvature, *units, rows, self._rows[0], self._forces[0], self._runs
        self.device.launch_blocks("begin_tree", blocks, SPLITTING, _division_bytes(), REAL, *arrays)
        self.device.launch("end_root", 1, REAL, self._runs)

    def answer(self, splits: Round, allowed: Allowed, documents: int) -> npt.NDArray[np.uint64]:
        """Split rows as ``splits`` say; return the histograms of their nodes, each as two planes of cells, until the next call."""
        nodes = [node for split in splits for node in split[-1]]
        cuts = [split[:7] for split in splits if split[0] >= 0]
        self._make_room(max((cut[2] for cut in cuts), default=0) + 1)
        self._split(cuts)
        words = 2 * self.bins.cells * len(nodes)
        if not words:
            return np.empty(0, np.uint64)
        histograms = self.device.xp.zeros(words, np.uint64)
        self._add_up(nodes, self._feature_choice(allowed), documents.bit_length(), histograms)
        if len(self._histograms) < words:
            self._histograms = self.device.host_array(words, np.uint64)
        target = self._histograms[:words]
        self.device.fetch(histograms, target)
        return target

    def _make_room(self, nodes: int) -> None:
        """Make sure that there are as many runs."""
        if nodes > len(self._runs):
            runs = self.device.xp.empty((2 * nodes, RUN), np.int32)
            runs[: len(self._runs)] = self._runs
            self._runs = runs

    def _split(self, cuts: list[tuple[int, int, int, int, int, bool, list[int]]]) -> None:
        if not cuts:
            return
        numbers, categories = self._places_of(cuts)
        pieces = min(SPLIT_PIECES, -(-self.bins.rows // (SPLITTING * ROWS_PER_THREAD)))
        bins, count = self.bins, np.int32(len(cuts))
        matrix = bins.tiles, bins.columns, np.int64(bins.rows)
        arrays = *matrix, numbers, categories, np.int32(pieces), *self._buffers, self._runs
        self.device.launch_blocks("split_nodes", pieces * len(cuts), SPLITTING, _division_bytes(), REAL, *arrays)
        self.device.launch("end_splits", len(cuts), REAL, numbers, count, self._runs)

    def _places_of(self, cuts: list[tuple[int, int, int, int, int, bool, list[int]]]) -> tuple[Array, Array]:
        """Return splits as the kernels take them, and the categories on the left of all of them."""
        rows, words = np.empty((len(cuts), CUT), np.int32), list[int]()
        for row, (node, left, right, feature, last_left, missing_left, categories) in zip(rows, cuts, strict=True):
            count, tile, slot, _ = self.bins.places[feature]
            kind = self.bins.kinds[feature]
            row[:] = node, left, right, tile, slot, kind, count - 1, last_left, missing_left, len(words), len(categories)
            words += categories
        xp = self.device.xp
        return xp.asarray(rows), xp.asarray(np.array(words or [0], np.uint64))

    def _feature_choice(self, allowed: Allowed) -> FeatureChoice:
        key = allowed.tobytes()
        if self._choice is None or self._choice[0] != key:
            self._choice = key, FeatureChoice.of(self.bins, allowed)
        return self._choice[1]

    def _add_up(self, nodes: list[int], choice: FeatureChoice, count_bits: int, histograms: Array) -> None:
        """Add the forces of ``nodes`` to their ``histograms``, one launch for all of them."""
        bins, rows = self.bins, np.int64(self.bins.rows)
        numbers = self.device.xp.asarray(np.array(nodes, np.int32))
        pieces = max(SUM_PIECES, -(-bins.rows // MOST_ROWS))
        parts, bits, cells = (np.int32(pieces), np.int32(LEAST_ROWS)), np.int32(count_bits), np.int64(bins.cells)
        if choice.tile_count:
            tiles = choice.tiles, choice.tile_places, np.int32(choice.tile_count)
            arrays = bins.tiles, rows, self._runs, numbers, *tiles, *parts, np.int32(choice.bins), bits, *self._buffers, histograms, cells
            blocks = pieces * choice.tile_count * len(nodes)
            self.device.launch_blocks("tile_sums", blocks, ADDING, CELL_BYTES * choice.bins, REAL, *arrays)
        if choice.column_count:
            columns = choice.columns, np.int32(choice.column_count)
            arrays = bins.columns, rows, self._runs, numbers, *columns, *parts, bits, *self._buffers, histograms, cells
            self.device.launch_blocks("column_sums", pieces * choice.column_count * len(nodes), ADDING, 0, REAL, *arrays)

    def settle(
        self, tree: _core.GrownTree, mask: Array | None, slope: Array, curvature: Array, per_slope: float, per_curvature: float
    ) -> tuple[Array, npt.NDArray[np.int64]]:
        """Return the leaf of each document, and the sums of slopes and of curvatures over each leaf, in whole numbers."""
        xp, bins, splits = self.device.xp, self.bins, len(tree.feature)
        start, words = tree.category_start, tree.categories.tolist()
        lists = tree.left.tolist(), tree.right.tolist(), tree.feature.tolist(), tree.bin.tolist(), tree.missing_left.tolist()
        cuts = [(node, *numbers, words[start[node] : start[node + 1]]) for node, numbers in enumerate(zip(*lists, strict=True))]
        numbers, categories = self._places_of(cuts)
        leaf, sums = xp.empty(bins.rows, np.int32), xp.zeros(2 * (splits + 1), np.uint64)
        is_small = splits < LEAVES_IN_SHARED_MEMORY
        blocks = min(SETTLE_BLOCKS, -(-bins.rows // SETTLING))
        forces = mask, slope, curvature, np.float64(per_slope), np.float64(per_curvature)
        matrix = bins.tiles, bins.columns, np.int64(bins.rows)
        arrays = *matrix, numbers, np.int32(splits), categories, *forces, np.int32(is_small), leaf, sums
        self.device.launch_blocks("settle_documents", blocks, SETTLING, 16 * (splits + 1) if is_small else 0, REAL, *arrays)
        return leaf, on_host(sums).view(np.int64)

    def add(self, leaf: Array, values: PerLeaf, scores: Array) -> None:
        """Add the value of each document's ``leaf`` to its score."""
        self.device.launch("add_leaf_values", self.bins.rows, REAL, leaf, self.device.xp.asarray(values), np.int64(self.bins.rows), scores)


def _division_bytes() -> int:
    """Return the memory of a block that divides rows."""
    return SPLITTING * ROWS_PER_THREAD * 12 + 4 * SPLITTING + 8
