"""Caches: damaged ones, which a checksum must find, and forged ones, whose checksums are right.

A forged cache is described by a list of edits to a good one, in JSON, so that an input says what is wrong with it and outlives the
format: ``["values", section, values]`` puts other values into a section of the same type, ``["cast", section, dtype]`` writes its values
as another type, and says so, ``["array", section, dtype, values]`` writes a section anew; after all of those ``["footer", path, value]``
sets a part of the footer, and ``["drop", path]`` removes one.
"""

import json
from collections.abc import Callable
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import exactrank as er
from tests.data.forged_cache import arrays_of, cache_bytes, footer_of, forged
from tests.fuzz.mutations import ODD_VALUES, changed_json, mutated, one_of
from tests.fuzz.target import NoInputError, Target
from tests.fuzz.usage import use_file

DTYPES = ["<i8", "<u8", ">i8", "<i4", "<f8", "<f4", "<f2", "|b1", "|u1", "<M8[D]", "<m8[s]", "<c16", "|S8", "<U2", "|O", "|V8"]
NUMBERS = [0, 1, -1, 2, 5, 6, 2**31, 2**62, 2**63 - 1, -(2**63), 0.5, "nan", "inf", "-inf", 1e308]


@cache
def good_cache(text_ids: bool = True) -> bytes:
    """A small cache that has every section."""
    rng = np.random.default_rng(0)
    qid = np.arange(20) % 5
    data = er.RankingData.from_arrays(
        rng.normal(size=(20, 3)),
        rng.integers(0, 3, 20),
        qid=np.array([f"q{i}" for i in qid]) if text_ids else qid,
        docid=[f"d{i}" for i in range(20)],
        sample_weight=rng.random(20),
        query_weight=rng.random(5),
    )
    return cache_bytes(data)


def forged_cache(edits: list[list[Any]]) -> bytes:
    """A good cache with the edits made, first those of sections, and every checksum right."""
    good = good_cache()
    arrays = arrays_of(good)
    for kind, *arguments in edits:
        if kind in ARRAYS:
            section, *values = arguments
            arrays[section] = ARRAYS[kind](arrays.get(section), *values)

    def edit(footer: dict[str, Any]) -> None:
        for kind, *arguments in edits:
            if kind not in ARRAYS:
                FOOTER[kind](footer, *arguments)

    return forged(good, arrays, edit)


Array = npt.NDArray[Any]


def _cast(array: Array | None, dtype: str) -> Array:
    with np.errstate(all="ignore"):  # what does not fit is odd, as it should be
        return np.asarray(array).astype(dtype)


def _values(array: Array | None, values: list[Any]) -> Array:
    return _array(array, np.asarray(array).dtype.str, values)


def _array(array: Array | None, dtype: str, values: list[Any]) -> Array:
    return _cast(np.array([float(v) if isinstance(v, str) else v for v in values]), dtype)


def _set(footer: Any, path: list[Any], value: Any) -> None:
    reduce(getitem, path[:-1], footer)[path[-1]] = value


def _drop(footer: Any, path: list[Any]) -> None:
    del reduce(getitem, path[:-1], footer)[path[-1]]


ARRAYS: dict[str, Callable[..., Array]] = {"cast": _cast, "values": _values, "array": _array}
FOOTER: dict[str, Callable[..., None]] = {"footer": _set, "drop": _drop}


def edits(rng: np.random.Generator) -> bytes:
    """One to three edits in JSON."""
    return json.dumps([edit(rng) for _ in range(rng.integers(1, 4))]).encode()


def edit(rng: np.random.Generator) -> list[Any]:
    """Any edit of a section, or of the footer."""
    footer = footer_of(good_cache())
    section = one_of(rng, sorted(footer["sections"]))
    kind = rng.integers(7)
    if kind == 0:
        return ["footer", ["sections", section, one_of(rng, ["dtype", "shape", "offset"])], one_of(rng, ODD_VALUES + DTYPES)]
    if kind == 1:
        return ["cast", section, one_of(rng, DTYPES[:7])]
    if kind == 2:
        return ["drop", one_of(rng, [["sections", section], ["sections", section, "dtype"], ["feature_names"], ["sections"]])]
    if kind == 3:
        return ["footer", ["sections", section, "shape"], [int(rng.integers(-2, 30)) for _ in range(rng.integers(0, 3))]]
    if kind == 4:
        return ["footer", ["feature_names"], changed_json(rng, footer["feature_names"])]
    if kind == 5:
        return [
            "array",
            one_of(rng, [section, "x", ""]),
            one_of(rng, DTYPES[:9]),
            [one_of(rng, NUMBERS[:5]) for _ in range(rng.integers(0, 9))],
        ]
    result = arrays_of(good_cache())[section].ravel().tolist()
    result[rng.integers(len(result))] = one_of(rng, NUMBERS)
    return ["values", section, result]


def use_forged(path: Path) -> None:
    """The cache that the edits make."""
    try:
        content = forged_cache(json.loads(path.read_bytes()))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise NoInputError(f"edits that cannot be made: {error}") from None  # such as a number that the type does not have
    target = path.with_suffix(".xr")
    target.write_bytes(content)
    use_file(target)


TARGETS = [
    Target("caches", ".xr", lambda rng: mutated(rng, good_cache(bool(rng.integers(2)))), use_file),
    Target("forged_caches", ".json", edits, use_forged),
]
