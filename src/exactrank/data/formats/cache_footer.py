"""The footer of an ``.xr`` cache, which is checked before any section is read.

A checksum shows that a file is undamaged, not that an honest program wrote it. So everything is checked: the JSON must have exactly the
expected keys, each section the type and the number of entries of its name, and each section must lie in the file, aligned and apart from
all others. Errors here name the section; the reader adds the path and the remedy.
"""

import json
import math
import mmap
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

import numpy as np

from exactrank._support.arrays import AnyArray
from exactrank._support.json_values import JSONValue
from exactrank.data.levels import Levels, check_levels
from exactrank.errors import DataError

X_OFFSET = 4096
ALIGNMENT = 64
BLOCK = 4 << 20  #: bytes under one checksum
MAX_BYTES = 16 << 20  #: of a footer: enough for a million names; parsing hostile JSON takes about 25 times its size

#: The type and the number of entries of each section; "" if the writer has a choice.
SECTIONS = {
    "X": ("<f4", "documents"),
    "columns": ("<f4", "features"),
    "y": ("<f8", "documents"),
    "indptr": ("<i8", "queries + 1"),
    "order": ("<i8", "documents"),
    "sample_weight": ("<f8", "documents"),
    "query_weight": ("<f8", "queries"),
    "offset": ("<f8", "features"),
    "qid": ("", "queries"),
    "qid.text": ("|u1", ""),
    "qid.offsets": ("<i8", "queries + 1"),
    "docid.text": ("|u1", ""),
    "docid.offsets": ("<i8", "documents + 1"),
    "comment.text": ("|u1", ""),
    "comment.offsets": ("<i8", "documents + 1"),
    "pairs.better": ("<i8", "pairs"),
    "pairs.worse": ("<i8", "pairs"),
    "pairs.weight": ("<f8", "pairs"),
}
EXTRA = "kept:"  #: prefix of the sections of extra columns
PAIRS = ("better", "worse", "weight")  #: sections of preferences
QUERY_ID_TYPE = re.compile(r"[<|][iufb]\d{1,2}|<[mM]8\[\d{0,9}[A-Za-z]{1,2}\]")


@dataclass(frozen=True)
class Section:
    """Place, type and shape of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    xxh3: tuple[int, ...] = ()  #: the checksum of each block

    @property
    def place(self) -> slice:
        """Slice of the file's bytes."""
        return slice(self.offset, self.offset + math.prod(self.shape) * self.dtype.itemsize)

    def array(self, content: mmap.mmap | bytes) -> AnyArray:
        """Return the array of a checked section as a view of the file's ``content``."""
        entries = math.prod(self.shape)
        return np.frombuffer(content, self.dtype, entries, self.offset if entries else 0).reshape(self.shape)


@dataclass(frozen=True)
class Footer:
    """Description of the arrays of a cache."""

    feature_names: tuple[str, ...]
    sections: dict[str, Section]
    levels: Levels = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the footer's bytes."""
        sections = {
            name: {"dtype": section.dtype.str, "shape": section.shape, "offset": section.offset, "xxh3": section.xxh3}
            for name, section in self.sections.items()
        }
        levels = {"levels": dict(self.levels)} if self.levels else {}
        text = json.dumps({"feature_names": self.feature_names, **levels, "sections": sections}).encode()
        if len(text) > MAX_BYTES:
            what = "feature names and levels" if levels else "feature names"
            raise DataError(f"the {what} take {len(text):,} bytes, more than a cache holds ({MAX_BYTES:,}); give shorter names")
        return text


def parse_footer(text: bytes, end: int) -> Footer:
    """Return the footer in ``text``, which begins at byte ``end``, where sections must end."""
    if len(text) > MAX_BYTES:
        raise DataError(f"the footer has {len(text):,} bytes; expected at most {MAX_BYTES:,}")
    try:
        content = json.loads(text.decode("utf-8"), object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # invalid UTF-8 is a ValueError, too
        raise DataError(f"the footer is not the JSON of a cache ({str(error).partition(';')[0]})") from None
    optional = {"levels"} & content.keys() if isinstance(content, dict) else set()
    footer = _object_with(content, {"feature_names", "sections"} | optional, "the footer")
    names = footer["feature_names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError("the footer's feature_names are not a list of strings")
    levels = footer.get("levels", {})
    if not isinstance(levels, dict) or not all(isinstance(texts, list) for texts in levels.values()):
        raise DataError("the footer's levels are not lists of strings by the name of a feature")
    check_levels(levels, names)
    if not isinstance(footer["sections"], dict):
        raise DataError("the footer's sections are not an object")
    _check_names(footer["sections"].keys())
    sections = {name: _section(name, entry) for name, entry in footer["sections"].items()}
    _check_counts(sections, len(names))
    free, before = X_OFFSET, "the preamble"
    for name, section in sorted(sections.items(), key=lambda item: (item[1].offset, item[1].place.stop)):
        if section.offset < free:
            raise DataError(f"section {name!r} begins at byte {section.offset}, within {before}")
        free, before = section.place.stop, f"section {name!r}"
        if free > end:
            raise DataError(f"section {name!r} ends at byte {free}, beyond byte {end} where sections end")
    return Footer(tuple(names), sections, {name: tuple(texts) for name, texts in levels.items()})


def _unique_keys(pairs: list[tuple[str, JSONValue]]) -> dict[str, JSONValue]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _object_with(value: object, keys: set[str], what: str) -> dict[str, JSONValue]:
    if not isinstance(value, dict) or value.keys() != keys:
        raise DataError(f"{what} is not an object with the keys {', '.join(sorted(keys))}")
    return value


def _check_names(names: Iterable[str]) -> None:
    """Raise if a section is unknown or missing; strings take two sections, and query ids are numbers or strings."""
    present = set(names)
    unknown = sorted(name for name in present - SECTIONS.keys() if not name.startswith(EXTRA))
    if unknown:
        raise DataError(f"it has an unknown section {unknown[0][:40]!r}")
    required = {"X", "y", "indptr"} | ({"qid"} if "qid.text" not in present and "qid.offsets" not in present else set())
    for column in ("qid", "docid", "comment"):
        pair = {f"{column}.text", f"{column}.offsets"}
        required |= pair if present & pair else set()
    pairs = {f"pairs.{name}" for name in PAIRS}
    required |= pairs if present & pairs else set()
    missing = sorted(required - present)
    if missing:
        raise DataError(f"its section {missing[0]!r} is missing")
    if {"qid", "qid.text"} <= present:
        raise DataError("it has query ids twice, in the sections 'qid' and 'qid.text'")


def _section(name: str, value: object) -> Section:
    entry = _object_with(value, {"dtype", "shape", "offset", "xxh3"}, f"the footer's entry of section {name!r}")
    shape, dimensions = entry["shape"], 2 if name in ("X", "columns") else 1
    if not isinstance(shape, list) or len(shape) != dimensions or not all(_is_count(entries) for entries in shape):
        raise DataError(f"section {name!r} has shape {_excerpt(shape)}; expected {dimensions} whole numbers")
    if not _is_count(entry["offset"]) or entry["offset"] < X_OFFSET or entry["offset"] % ALIGNMENT:
        raise DataError(f"section {name!r} has offset {_excerpt(entry['offset'])}; expected a multiple of {ALIGNMENT} from {X_OFFSET}")
    section, checksums = Section(_dtype(name, entry["dtype"]), tuple(shape), entry["offset"]), entry["xxh3"]
    if not isinstance(checksums, list) or not all(type(number) is int and 0 <= number < 1 << 64 for number in checksums):
        raise DataError(f"section {name!r} has checksums {_excerpt(checksums)}; expected a list of whole numbers of 64 bits")
    blocks = -(-(section.place.stop - section.offset) // BLOCK)
    if len(checksums) != blocks:
        raise DataError(f"section {name!r} has {len(checksums)} checksums; expected {blocks}, one per {BLOCK:,} bytes")
    return replace(section, xxh3=tuple(checksums))


def _form_of(name: str) -> tuple[str, str]:
    """Return the type and the number of entries of a section; extra columns have those of grades."""
    return SECTIONS["y" if name.startswith(EXTRA) else name]


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 1 << 63  # bool is an int to isinstance


def _dtype(name: str, text: object) -> np.dtype[Any]:
    expected = _form_of(name)[0]
    if expected and text == expected:
        return np.dtype(expected)
    if not expected and isinstance(text, str) and QUERY_ID_TYPE.fullmatch(text):
        try:
            dtype = np.dtype(text)
        except (TypeError, ValueError):
            dtype = np.dtype(object)
        if dtype.str == text:
            return dtype
    kinds = repr(expected) if expected else "that of numbers, booleans or dates"
    raise DataError(f"section {name!r} has dtype {_excerpt(text)}; expected {kinds}")


def _excerpt(value: object) -> str:
    """Return a value for a message, on one line and not too long."""
    plain = value[:40] if isinstance(value, str | list) else value
    is_short = not isinstance(plain, dict | list) or all(isinstance(part, int | float) for part in plain)
    return ascii(plain)[:60] if is_short else f"a {type(value).__name__}"


def _check_counts(sections: dict[str, Section], features: int) -> None:
    documents, queries = sections["y"].shape[0], sections["indptr"].shape[0] - 1
    if documents < 1 or queries < 1:
        raise DataError("section 'y' or 'indptr' is empty; expected at least one document and one query")
    counts = {"documents": documents, "documents + 1": documents + 1, "queries": queries, "queries + 1": queries + 1, "features": features}
    counts["pairs"] = sections["pairs.weight"].shape[0] if "pairs.weight" in sections else 0
    for name, section in sections.items():
        entries = _form_of(name)[1]
        if entries and section.shape[0] != counts[entries]:
            raise DataError(f"section {name!r} has {section.shape[0]} entries; expected {counts[entries]} ({entries})")
    if "columns" in sections and sections["columns"].shape[1] != documents:
        raise DataError(f"section 'columns' has {sections['columns'].shape[1]} documents; expected {documents}")
    if sections["X"].shape[1] != features:
        raise DataError(f"section 'X' has {sections['X'].shape[1]} columns but the footer has {features} feature_names")
