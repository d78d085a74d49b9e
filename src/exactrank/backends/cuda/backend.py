"""The backend of a GPU with CUDA."""

from exactrank.backends.cuda.forest import CudaForestPart
from exactrank.backends.cuda.line_search import CudaFeatures, CudaLineSearch
from exactrank.data.backend import LocalBackend
from exactrank.learning.objectives.line_search import LineSearch
from exactrank.learning.objectives.linear_profile import DocumentFeatures
from exactrank.learning.trees.part import ForestPart


class CudaBackend(LocalBackend):
    """Searches along lines and grows trees on the current GPU, for data in one file; this process computes the rest.

    Lines are searched for nDCG, DCG, P, R and RBP. Trees are those of the processor, to the bit. CuPy is needed: ``pip install
    'exactrank[cuda]'``.
    """

    kernels = {DocumentFeatures: CudaFeatures, ForestPart: CudaForestPart, LineSearch: CudaLineSearch}  # noqa: RUF012

    def __repr__(self) -> str:
        return "CudaBackend()"
