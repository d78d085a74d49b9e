"""Features of documents on the GPU, and their weighted sums, between which lines are searched."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from exactrank.backends.cuda.device import REAL, Array, cuda, memory_for
from exactrank.data.ranking_data import RankingData
from exactrank.data.scratch_arrays import FeatureColumns


class CudaColumns:
    """`Columns` on the GPU, to which each feature is sent once, in single precision."""

    def __init__(self, data: RankingData) -> None:
        self._data, self._device = data, cuda()
        self._features: dict[int, Array] = {}

    @cached_property
    def _columns(self) -> FeatureColumns:
        return FeatureColumns.of(self._data.X, whole=True)

    def feature(self, number: int) -> Array:
        """Return a feature of all documents."""
        if number not in self._features:
            with memory_for(self._data.n_documents, self._device):
                self._features[number] = self._device.xp.asarray(self._columns[number])
        return self._features[number]

    def scores(self, weights: npt.NDArray[np.float64], threads: int) -> Array:
        """Return the sum of the features, each times its weight."""
        documents = self._data.n_documents
        scores = self._device.xp.zeros(documents)
        for j in np.flatnonzero(weights).tolist():
            self._device.launch("add_feature", documents, REAL, self.feature(j), np.float64(weights[j]), np.int64(documents), scores)
        return scores
