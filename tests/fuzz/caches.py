"""Caches: damaged ones, which a checksum must find, and forged ones, whose checksums are right.

A forged cache is described by a list of edits to a good one, in JSON, so that an input says what is wrong with it and outlives the
format: ``["footer", path, value]`` sets a part of the footer, ``["drop", path]`` removes one, ``["values", section, values]`` puts
other values into a section of the same type, ``["cast", section, dtype]`` writes its values as another type, and says so, and
``["array", section, dtype, values]`` writes a section anew.
"""

import json
import struct
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

import exactrank as xr
from exactrank.data import cache as format_
from tests.fuzz.mutations import ODD_VALUES, changed_json, mutated, one_of
from tests.fuzz.target import Target
from tests.fuzz.usage import use_file

DTYPES = ["<i8", "<u8", ">i8", "<i4", "<f8", "<f4", "<f2", "|b1", "|u1", "<M8[D]", "<m8[s]", "<c16", "|S8", "<U2", "|O", "|V8"]
NUMBERS = [0, 1, -1, 2, 5, 6, 2**31, 2**62, 2**63 - 1, -(2**63), 0.5, "nan", "inf", "-inf", 1e308]


@cache
def good_cache(text_ids: bool = True) -> bytes:
    """A small cache that has every section."""
    rng = np.random.default_rng(0)
    qid = np.arange(20) % 5
    data = xr.RankingData.from_arrays(
        rng.normal(size=(20, 3)),
        rng.integers(0, 3, 20),
        qid=np.array([f"q{i}" for i in qid]) if text_ids else qid,
        docid=[f"d{i}" for i in range(20)],
        sample_weight=rng.random(20),
        query_weight=rng.random(5),
    )
    with TemporaryDirectory() as folder:
        xr.write(data, Path(folder) / "good.xr")
        return (Path(folder) / "good.xr").read_bytes()


def forged_cache(edits: list[list[Any]], text_ids: bool = True) -> bytes:
    """A good cache with the edits made and every checksum right."""
    content = bytearray(good_cache(text_ids))
    footer = _footer(content)
    for kind, *given in edits:
        EDITS[kind](content, footer, *given)
    _seal(content, footer)
    return bytes(content)


def _footer(content: bytes | bytearray) -> dict[str, Any]:
    _, _, offset, length, _, _ = format_.PREAMBLE.unpack_from(content)
    return dict(json.loads(content[offset : offset + length]))


def _seal(content: bytearray, footer: Any) -> None:
    """Checksums of all sections whose place is known, the footer behind everything, the preamble."""
    for entry in _sections(footer):
        size = _size(entry)
        if size is not None and isinstance(entry.get("offset"), int) and 0 <= entry["offset"] <= len(content):
            entry["xxh3"] = xxhash.xxh3_64_intdigest(bytes(content[entry["offset"] : entry["offset"] + size]))
    written = json.dumps(footer).encode("utf-8", "surrogatepass")
    version = struct.unpack_from("<I", content, 8)[0]
    end = len(content)
    content += written
    preamble = format_.PREAMBLE.pack(format_.MAGIC, version, end, len(written), xxhash.xxh3_64_intdigest(written), len(content))
    content[: len(preamble) + 8] = preamble + struct.pack("<Q", xxhash.xxh3_64_intdigest(preamble))


def _sections(footer: Any) -> list[dict[str, Any]]:
    sections = footer.get("sections") if isinstance(footer, dict) else None
    return [entry for entry in sections.values() if isinstance(entry, dict)] if isinstance(sections, dict) else []


def _size(entry: dict[str, Any]) -> int | None:
    try:
        return int(np.prod(entry["shape"], dtype=np.int64) * np.dtype(entry["dtype"]).itemsize) % (1 << 40)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _set(content: bytearray, footer: Any, path: list[Any], value: Any) -> None:
    *way, last = path
    for key in way:
        footer = footer[key]
    footer[last] = value


def _drop(content: bytearray, footer: Any, path: list[Any]) -> None:
    *way, last = path
    for key in way:
        footer = footer[key]
    del footer[last]


def _values(content: bytearray, footer: Any, section: str, values: list[Any]) -> None:
    _array(content, footer, section, footer["sections"][section]["dtype"], values)


def _cast(content: bytearray, footer: Any, section: str, dtype: str) -> None:
    entry = footer["sections"][section]
    found = np.frombuffer(bytes(content), entry["dtype"], int(np.prod(entry["shape"])), entry["offset"])
    _put(content, footer, section, found.astype(dtype).reshape(entry["shape"]))


def _array(content: bytearray, footer: Any, section: str, dtype: str, values: list[Any]) -> None:
    _put(content, footer, section, np.array([float(v) if isinstance(v, str) else v for v in values]).astype(dtype))


def _put(content: bytearray, footer: Any, section: str, array: npt.NDArray[Any]) -> None:
    """A section behind everything there is, where it is as large as it likes."""
    content += bytes(-len(content) % 64)
    footer["sections"][section] = {"dtype": array.dtype.str, "shape": list(array.shape), "offset": len(content)}
    content += array.tobytes()


EDITS = {"footer": _set, "drop": _drop, "values": _values, "cast": _cast, "array": _array}


def edits(rng: np.random.Generator) -> bytes:
    """One to three edits in JSON."""
    return json.dumps([edit(rng) for _ in range(rng.integers(1, 4))]).encode()


def edit(rng: np.random.Generator) -> list[Any]:
    """Any edit of a section, or of the footer."""
    footer = _footer(good_cache())
    section = one_of(rng, sorted(footer["sections"]))
    entry = footer["sections"][section]
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
    found = np.frombuffer(good_cache(), entry["dtype"], int(np.prod(entry["shape"])), entry["offset"]).tolist()
    found[rng.integers(len(found))] = one_of(rng, NUMBERS)
    return ["values", section, found]


def use_forged(path: Path) -> None:
    """The cache that the edits make."""
    try:
        content = forged_cache(json.loads(path.read_bytes()))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
        return  # edits that cannot be made, such as a number that the type does not have
    target = path.with_suffix(".xr")
    target.write_bytes(content)
    use_file(target)


TARGETS = [
    Target("caches", ".xr", lambda rng: mutated(rng, good_cache(bool(rng.integers(2)))), use_file),
    Target("forged_caches", ".json", edits, use_forged),
]
