"""Types of the native kernels (src/native/bindings.cpp)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]
_Matrix = npt.NDArray[np.float32]

class Gain:
    def __init__(self, kind: str, parameter: float = 0.0) -> None: ...

class Kernel: ...

def positional(gain: Gain, discount: _Floats, cutoff: int, normaliser: str, short_is_zero: bool, empty: float) -> Kernel: ...
def cascade(gain: Gain, discount: _Floats, cutoff: int, empty: float) -> Kernel: ...
def average_precision(rel: float, cutoff: int, limit_to_cutoff: bool, empty: float) -> Kernel: ...
def bpref(rel: float, empty: float) -> Kernel: ...
def pairwise_correct(gain: Gain, empty: float) -> Kernel: ...
def evaluate(
    scores: _Floats,
    indptr: _Ints,
    tie_key: _Floats | None,
    mark_ties: bool,
    measures: Sequence[tuple[Kernel, _Floats]],
    threads: int,
) -> tuple[_Floats, npt.NDArray[np.int32]]: ...
def profile(
    scores: _Floats,
    slopes: _Floats,
    indptr: _Ints,
    tie_key: _Floats | None,
    mark_ties: bool,
    kernel: Kernel,
    grades: _Floats,
    weight: _Floats,
    low: float,
    high: float,
    threads: int,
) -> tuple[_Floats, _Floats, _Floats]: ...
def query_jumps(
    scores: _Floats,
    slopes: _Floats,
    indptr: _Ints,
    tie_key: _Floats | None,
    mark_ties: bool,
    kernel: Kernel,
    grades: _Floats,
    low: float,
    high: float,
    threads: int,
) -> tuple[_Floats, _Floats, _Floats, _Ints, _Floats]: ...
def optimistic(scores: _Floats, indptr: _Ints, useful: _Floats, discount: _Floats, threads: int) -> _Floats: ...

class LineSearch:
    def __init__(
        self, kernel: Kernel, grades: _Floats, indptr: _Ints, tie_key: _Floats | None, mark_ties: bool, weight: _Floats
    ) -> None: ...
    @staticmethod
    def serves(kernel: Kernel) -> bool: ...
    def rank(self, scores: _Floats, threads: int) -> float: ...
    def best_as_published(self, slopes: _Floats, threads: int) -> tuple[float, float, float, _Ints]: ...
    def best(self, slopes: _Matrix | _Floats, low: float, high: float, threads: int) -> tuple[float, float, float]: ...

def likelihood_slope(
    scores: _Floats,
    slopes: _Floats,
    indptr: _Ints,
    ideal: npt.NDArray[np.int32],
    top: npt.NDArray[np.int32],
    weight: _Floats,
    alpha: float,
    threads: int,
) -> tuple[float, float]: ...

class LetorParser:
    def __init__(self, missing: bool, queries: bool, features: int, first_feature: int, expected_bytes: int, threads: int) -> None: ...
    def feed(self, block: _Bytes) -> None: ...
    def feed_while_reading(self, block: _Bytes, descriptor: int, next: _Bytes) -> int: ...
    def finish(self) -> None: ...
    def take(
        self,
    ) -> tuple[_Matrix, _Floats, _Ints, _Bytes | None, tuple[_Ints, _Ints] | None, tuple[_Ints, _Ints] | None]: ...
    def query_names(self) -> list[bytes]: ...
    @property
    def first_feature(self) -> int: ...

def letor_text(
    x: _Matrix,
    y: _Floats,
    query: _Ints,
    query_names: Sequence[bytes],
    comments: _Bytes | None,
    start: _Ints | None,
    stop: _Ints | None,
    threads: int,
) -> bytes: ...
def summarise_columns(x: _Matrix, threads: int) -> tuple[_Matrix, _Matrix, _Ints, int]: ...
def permute_rows(x: _Matrix, order: _Ints) -> None: ...
def transposed(x: _Matrix, threads: int) -> _Matrix: ...
def linear_scores(x: _Matrix, weights: _Floats, threads: int) -> _Floats: ...
def pulled_back(x: _Matrix, slope: _Floats, threads: int) -> _Floats: ...
def cubic_terms(dimension: int) -> int: ...
def cubic(points: _Matrix, coefficients: _Floats, threads: int) -> _Floats: ...
