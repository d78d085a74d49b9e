"""Caches as an attacker would write them: any array, any footer, any preamble, under checksums that are right.

    good = cache_bytes(some_data)
    bad = forged(good, {"order": np.zeros(60, np.int64)})                       # another array in a section
    bad = forged(good, edit=lambda footer: footer["sections"].pop("y"))         # another footer
    bad = forged(good, footer=b"[" * 100_000)                                   # no footer at all
    bad = forged(good, preamble={"offset": 2**63})                              # another preamble

`outcomes` opens many such files in a child process and uses all that it reads, so that a crash is a result and not the end of
the tests. It opens each file twice: mapped and without the checksums of bulk data, as a large file is, and then as the small one
that it is. Run as a program, this module is that child.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import exactrank as er
from exactrank.data.formats import cache
from exactrank.data.formats.cache import ALIGNMENT, CHECKSUM, MAGIC, PREAMBLE, VERSION, X_OFFSET, _checksum, block_checksums

FIELDS = ("magic", "version", "offset", "length", "checksum", "size")
MEMORY = 4 << 30  # bytes that the child may use


def cache_bytes(data: er.RankingData, *, columns: bool = False) -> bytes:
    """The honest cache of ``data``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.xr")
        er.write(data, path, columns=columns)
        return path.read_bytes()


def footer_of(content: bytes) -> dict[str, Any]:
    """The footer of an honest cache."""
    _, _, offset, length, _, _ = PREAMBLE.unpack_from(content)
    return json.loads(content[offset : offset + length])


def arrays_of(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of an honest cache, as copies."""
    sections = footer_of(content)["sections"]
    return {name: _bytes_of(content, entry).view(entry["dtype"]).reshape(entry["shape"]) for name, entry in sections.items()}


def forged(
    content: bytes,
    arrays: Mapping[str, np.ndarray | None] | None = None,
    edit: Callable[[dict[str, Any]], object] = lambda footer: None,
    footer: bytes | None = None,
    preamble: Mapping[str, Any] | None = None,
) -> bytes:
    """``content``, an honest cache, with other ``arrays`` (None removes one), another footer or preamble, and right checksums.

    ``edit`` changes the footer's JSON in place; a section's checksum is repaired afterwards where its new place and size make
    sense, unless ``edit`` set it. ``footer`` stands in the place of the whole footer.
    """
    kept = {name: array for name, array in (arrays_of(content) | dict(arrays or {})).items() if array is not None}
    body, sections = _laid_out(kept)
    message = footer_of(content) | {"sections": sections}
    before = json.dumps({name: entry["xxh3"] for name, entry in sections.items()})
    edit(message)
    _repair(body, message, json.loads(before))
    text = json.dumps(message).encode() if footer is None else footer
    fields = {"magic": MAGIC, "version": VERSION, "offset": len(body), "length": len(text), "checksum": _checksum(text)}
    fields |= {"size": len(body) + len(text)} | dict(preamble or {})
    head = PREAMBLE.pack(*(fields[name] for name in FIELDS))
    return head + CHECKSUM.pack(_checksum(head)) + body[PREAMBLE.size + CHECKSUM.size :] + text


def _laid_out(arrays: Mapping[str, np.ndarray]) -> tuple[bytes, dict[str, Any]]:
    """The arrays one after the other as the writer puts them, with room for the preamble, and their entries in the footer."""
    body, sections = bytearray(X_OFFSET), {}
    for name, array in arrays.items():
        body += bytes(-len(body) % ALIGNMENT)
        entry = {"dtype": array.dtype.str, "shape": list(array.shape), "offset": len(body), "xxh3": _checksums(array.tobytes())}
        sections[name] = entry
        body += array.tobytes()
    return bytes(body), sections


def _checksums(content: bytes) -> list[int]:
    return list(block_checksums(memoryview(content)))


def _repair(body: bytes, message: Any, before: Mapping[str, list[int]]) -> None:
    """Give each section the checksum of the bytes that it now points at, as far as it points at any."""
    sections = message.get("sections") if isinstance(message, dict) else None
    for name, entry in sections.items() if isinstance(sections, dict) else ():
        if isinstance(entry, dict) and entry.get("xxh3") == before.get(name, entry.get("xxh3")):
            try:
                entry["xxh3"] = _checksums(_bytes_of(body, entry).tobytes())
            except (TypeError, ValueError, KeyError, OverflowError, AttributeError):
                continue


def _bytes_of(content: bytes, entry: dict[str, Any]) -> np.ndarray:
    size = int(np.prod([int(n) for n in entry["shape"]], dtype=object)) * np.dtype(entry["dtype"]).itemsize
    return np.frombuffer(content, np.uint8, size, entry["offset"] if size else 0)


# ---- reading them in a child process


def outcomes(files: Mapping[str, bytes], folder: Path) -> dict[str, str]:
    """What came of opening and using each file: "read", "DataError: ...", another error, or the signal that ended the process."""
    for name, content in files.items():
        (folder / f"{name}.xr").write_bytes(content)
    results: dict[str, str] = {}
    while left := [name for name in files if name not in results]:
        arguments = [sys.executable, "-m", "tests.data.forged_cache", str(folder)]
        child = subprocess.run(arguments, input="\n".join(left), capture_output=True, text=True, timeout=120, check=False)
        results |= (json.loads(line) for line in child.stdout.splitlines() if line.endswith("]"))
        crashed = next((name for name in left if name not in results), None)
        if crashed is not None:
            results[crashed] = f"ended by {child.returncode}: {child.stderr[-2000:]}"
    return results


def use(data: er.RankingData, folder: Path) -> None:
    """Touch all that the data holds, through native code where there is some."""
    er.describe(data)
    er.evaluate(data, data.ungroup(data.y), ["nDCG@3"])
    er.write(data.take_queries(np.arange(data.n_queries)), folder / "scratch.xr", force=True)
    er.write(replace(data, sample_weight=None, query_weight=None, preferences=None), folder / "scratch.txt", force=True)


def _main(folder: Path) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for name in sys.stdin.read().splitlines():
        as_large = _outcome(folder / f"{name}.xr", small_file=0, verify=False)
        expected = as_large == "read" or as_large.startswith("DataError: ")
        result = _outcome(folder / f"{name}.xr", small_file=cache.SMALL_FILE, verify=True) if expected else as_large
        print(json.dumps([name, result]), flush=True)


def _outcome(path: Path, *, small_file: int, verify: bool) -> str:
    try:
        with mock.patch.object(cache, "SMALL_FILE", small_file):
            use(er.read(path, verify=verify), path.parent)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "read"


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
