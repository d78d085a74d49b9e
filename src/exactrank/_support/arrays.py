"""Types of the arrays that pass between components, named by what an element belongs to."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float32]  #: documents x features
PerDocument: TypeAlias = npt.NDArray[np.float64]  #: one number per document
PerQuery: TypeAlias = npt.NDArray[np.float64]  #: one number per query
Boundaries: TypeAlias = npt.NDArray[np.int64]  #: query q holds documents boundaries[q] to boundaries[q + 1]
Rows: TypeAlias = npt.NDArray[np.int64]  #: row numbers
Ids: TypeAlias = npt.NDArray[Any]  #: ids of any dtype
AnyArray: TypeAlias = npt.NDArray[Any]  #: an array of any dtype
Floats: TypeAlias = npt.NDArray[np.float64]  #: numbers of any meaning
Table: TypeAlias = Any  #: rows of features: a matrix, or a frame of pandas, polars or Arrow, which share no type
