"""What is asked of LightGBM's library itself, since its Python package would need more memory for the same answers.

LightGBM finds the bins of a feature from its values in a sample of rows, and keeps one byte for each value from then on. Given a matrix, it
holds the sample of all features at once, in 12 bytes a value or more: with the usual 200,000 rows that is more than the matrix of up to
600,000 documents. Here the sample lies in a scratch file, unless it is small, and the bins are the same to the bit.

Its custom objectives and metrics would keep the scores of all documents twice more; here they go straight into the caller's arrays.
"""

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import lightgbm as lgb
import numpy as np
import numpy.typing as npt

from exactrank.arrays import Matrix, PerDocument
from exactrank.data.immutable import is_mapped
from exactrank.data.room import scratch
from exactrank.scorers.lightgbm_text import writable

Forces = npt.NDArray[np.float32]  #: on each document

#: What LightGBM takes for 0, up to this size.
AS_GOOD_AS_ZERO = np.float32(1e-35)
#: Bytes up to which the sample of a matrix in memory is kept in memory.
SMALL_SAMPLE = 8 << 20
ROWS_PER_BLOCK = 1 << 12

_LIBRARY = cast(Any, lgb.basic._LIB)  # type: ignore[attr-defined]


def sampled_rows(settings: Mapping[str, Any], documents: int) -> npt.NDArray[np.int32]:
    """The rows, by number, from which LightGBM makes its bins."""
    text, count = _text(settings), ctypes.c_int32(0)
    _call("GetSampleCount", ctypes.c_int32(documents), text, ctypes.byref(count))
    drawn = np.empty(count.value, np.int32)
    _call("SampleIndices", ctypes.c_int32(documents), text, _at(drawn), ctypes.byref(count))
    return drawn[: count.value]


def binned(X: Matrix, settings: Mapping[str, Any], names: tuple[str, ...], categorical: Sequence[int]) -> lgb.Dataset:
    """``X`` in bins, the same as those of ``lgb.Dataset(X)``; features of these ``names``, some of them ``categorical``."""
    settings = dict(settings) | ({"categorical_column": sorted(categorical)} if categorical else {})
    rows, (documents, features) = sampled_rows(settings, len(X)), X.shape
    values, places = (_room((features, len(rows)), kind, X) for kind in (np.float64, np.int32))
    counts = _sample_columns(X, rows, values, places)
    made = lgb.Dataset(None, params=settings)
    made._handle = ctypes.c_void_p()
    # The library sorts the values in place.
    _call(
        "DatasetCreateFromSampledColumn",
        _at(_addresses(values)),
        _at(_addresses(places)),
        ctypes.c_int32(features),
        _at(counts),
        ctypes.c_int32(len(rows)),
        ctypes.c_int32(documents),
        ctypes.c_int64(documents),
        _text(settings),
        ctypes.byref(made._handle),
    )
    made._push_rows(X)
    if writable(names):  # else LightGBM numbers them
        made.set_feature_name(list(names))
    return made


def updated(booster: lgb.Booster, slope: Forces, curvature: Forces) -> bool:
    """Let ``booster`` grow a tree along ``slope``; was no split possible? LightGBM goes downhill: the slope is turned, and turned back."""
    ended, own, bend = ctypes.c_int(0), np.ascontiguousarray(slope, np.float32), np.ascontiguousarray(curvature, np.float32)
    np.negative(own, out=own)
    try:
        _call("BoosterUpdateOneIterCustom", booster._handle, _at(own), _at(bend), ctypes.byref(ended))
    finally:
        np.negative(own, out=own)
    return ended.value == 1


def sums(booster: lgb.Booster, number: int, documents: int) -> PerDocument:
    """The sums of all trees' outputs, by LightGBM's own account, of training data, number 0, or validation data."""
    found, length = np.empty(documents), ctypes.c_int64(0)
    _call("BoosterGetPredict", booster._handle, ctypes.c_int(number), ctypes.byref(length), _at(found))
    return found


def _sample_columns(X: Matrix, rows: npt.NDArray[np.int32], values: Matrix, places: Matrix) -> npt.NDArray[np.int32]:
    """Put what is not 0 in ``rows``, and where it stands there, into ``values`` and ``places``, feature by feature; how many of each."""
    counts = np.zeros(X.shape[1], np.int32)
    for first in range(0, len(rows), ROWS_PER_BLOCK):
        block = np.ascontiguousarray(X[rows[first : first + ROWS_PER_BLOCK]].T)
        some = ~(np.abs(block) <= AS_GOOD_AS_ZERO)  # NaN, too
        for feature, (column, kept) in enumerate(zip(block, some, strict=True)):
            found = np.flatnonzero(kept)
            space = slice(counts[feature], counts[feature] + len(found))
            values[feature, space] = column[found]
            places[feature, space] = found + first
            counts[feature] += len(found)
    return counts


def _room(shape: tuple[int, int], kind: type, like: Matrix) -> npt.NDArray[Any]:
    """A matrix to be written; in a scratch file unless it is small and ``like`` lies in memory."""
    small = math.prod(shape) * np.dtype(kind).itemsize <= SMALL_SAMPLE and not is_mapped(like)
    return np.empty(shape, kind) if small else scratch(shape, kind)


def _addresses(rows: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Where each row of a matrix lies."""
    return rows.ctypes.data + np.arange(len(rows), dtype=np.uint64) * np.uint64(rows.strides[0])


def _at(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def _text(settings: Mapping[str, Any]) -> ctypes.c_char_p:
    return lgb.basic._c_str(lgb.basic._param_dict_to_str(dict(settings)))


def _call(name: str, *given: object) -> None:
    lgb.basic._safe_call(getattr(_LIBRARY, f"LGBM_{name}")(*given))
