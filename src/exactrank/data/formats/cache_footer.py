"""What the footer of an ``.xr`` cache says, checked before anything that it describes is touched.

A checksum shows that a file is as it was written, not that an honest program wrote it. So nothing is taken on trust: the JSON
has exactly the keys it should have, each section the type and the number of entries that its name asks for, and each lies in
the file, aligned, apart from all others. Errors here name the section; the reader adds the path and the remedy.
"""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank.data.levels import Levels, check_levels
from exactrank.errors import DataError

X_OFFSET = 4096
ALIGNMENT = 64
BLOCK = 4 << 20  # bytes under one checksum
LONGEST = 16 << 20  # bytes, room for a million names; parsing hostile JSON takes some 25 times its size

#: The type and the number of entries of each section; "" where the writer has a choice.
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
KEPT = "kept:"  #: and the name of a kept column are the name of its section
PAIRS = ("better", "worse", "weight")  #: what the sections of preferences hold
QUERY_ID_TYPE = re.compile(r"[<|][iufb]\d{1,2}|<[mM]8\[\d{0,9}[A-Za-z]{1,2}\]")


@dataclass(frozen=True)
class Section:
    """Where an array lies and what it looks like."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    xxh3: tuple[int, ...] = ()  #: the checksum of each block

    @property
    def place(self) -> slice:
        """Its bytes in the file."""
        return slice(self.offset, self.offset + math.prod(self.shape) * self.dtype.itemsize)

    def array(self, content: Any) -> npt.NDArray[Any]:
        """What a checked section describes, as a view of the file's content."""
        entries = math.prod(self.shape)
        return np.frombuffer(content, self.dtype, entries, self.offset if entries else 0).reshape(self.shape)


@dataclass(frozen=True)
class Footer:
    """All that a cache says about its arrays."""

    feature_names: tuple[str, ...]
    sections: dict[str, Section]
    levels: Levels = field(default_factory=dict)

    def written(self) -> bytes:
        """The footer's bytes."""
        sections = {
            name: {"dtype": section.dtype.str, "shape": section.shape, "offset": section.offset, "xxh3": section.xxh3}
            for name, section in self.sections.items()
        }
        levels = {"levels": dict(self.levels)} if self.levels else {}
        text = json.dumps({"feature_names": self.feature_names, **levels, "sections": sections}).encode()
        if len(text) > LONGEST:
            what = "feature names and levels" if levels else "feature names"
            raise DataError(f"the {what} take {len(text):,} bytes, more than a cache holds ({LONGEST:,}); give shorter names")
        return text


def parsed_footer(text: bytes, end: int) -> Footer:
    """The footer that ``text`` holds; sections must end where it begins, at ``end``."""
    if len(text) > LONGEST:
        raise DataError(f"the footer has {len(text):,} bytes; expected at most {LONGEST:,}")
    try:
        content = json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_constant=_refused)
    except (ValueError, RecursionError) as error:  # what is not UTF-8 is a ValueError too
        raise DataError(f"the footer is not the JSON of a cache ({str(error).partition(';')[0]})") from None
    optional = {"levels"} & content.keys() if isinstance(content, dict) else set()
    found = _keyed(content, {"feature_names", "sections"} | optional, "the footer")
    names = found["feature_names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError("the footer's feature_names are not a list of strings")
    levels = found.get("levels", {})
    if not isinstance(levels, dict) or not all(isinstance(own, list) for own in levels.values()):
        raise DataError("the footer's levels are not lists of strings by the name of a feature")
    check_levels(levels, names)
    if not isinstance(found["sections"], dict):
        raise DataError("the footer's sections are not an object")
    _check_names(found["sections"].keys())
    sections = {name: _section(name, entry) for name, entry in found["sections"].items()}
    _check_counts(sections, len(names))
    free, before = X_OFFSET, "the preamble"
    for name, section in sorted(sections.items(), key=lambda item: (item[1].offset, item[1].place.stop)):
        if section.offset < free:
            raise DataError(f"section {name!r} begins at byte {section.offset}, within {before}")
        free, before = section.place.stop, f"section {name!r}"
        if free > end:
            raise DataError(f"section {name!r} ends at byte {free}, beyond byte {end} where sections end")
    return Footer(tuple(names), sections, {name: tuple(own) for name, own in levels.items()})


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _keyed(value: Any, keys: set[str], what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != keys:
        raise DataError(f"{what} is not an object with the keys {', '.join(sorted(keys))}")
    return value


def _check_names(names: Iterable[str]) -> None:
    """Raise where a section is unknown or missing; strings take two sections, and query ids are numbers or strings."""
    present = set(names)
    unknown = sorted(name for name in present - SECTIONS.keys() if not name.startswith(KEPT))
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


def _section(name: str, entry: Any) -> Section:
    entry = _keyed(entry, {"dtype", "shape", "offset", "xxh3"}, f"the footer's entry of section {name!r}")
    shape, dimensions = entry["shape"], 2 if name in ("X", "columns") else 1
    if not isinstance(shape, list) or len(shape) != dimensions or not all(_is_count(entries) for entries in shape):
        raise DataError(f"section {name!r} has shape {_shown(shape)}; expected {dimensions} whole numbers")
    if not _is_count(entry["offset"]) or entry["offset"] < X_OFFSET or entry["offset"] % ALIGNMENT:
        raise DataError(f"section {name!r} has offset {_shown(entry['offset'])}; expected a multiple of {ALIGNMENT} from {X_OFFSET}")
    section, checksums = Section(_dtype(name, entry["dtype"]), tuple(shape), entry["offset"]), entry["xxh3"]
    if not isinstance(checksums, list) or not all(type(number) is int and 0 <= number < 1 << 64 for number in checksums):
        raise DataError(f"section {name!r} has checksums {_shown(checksums)}; expected a list of whole numbers of 64 bits")
    blocks = -(-(section.place.stop - section.offset) // BLOCK)
    if len(checksums) != blocks:
        raise DataError(f"section {name!r} has {len(checksums)} checksums; expected {blocks}, one per {BLOCK:,} bytes")
    return replace(section, xxh3=tuple(checksums))


def _expected(name: str) -> tuple[str, str]:
    """The type and the number of entries of a section; kept columns are as grades are."""
    return SECTIONS["y" if name.startswith(KEPT) else name]


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63  # bool is an int to isinstance


def _dtype(name: str, given: Any) -> np.dtype[Any]:
    expected = _expected(name)[0]
    if expected and given == expected:
        return np.dtype(expected)
    if not expected and isinstance(given, str) and QUERY_ID_TYPE.fullmatch(given):
        try:
            dtype = np.dtype(given)
        except (TypeError, ValueError):
            dtype = np.dtype(object)
        if dtype.str == given:
            return dtype
    kinds = repr(expected) if expected else "that of numbers, booleans or dates"
    raise DataError(f"section {name!r} has dtype {_shown(given)}; expected {kinds}")


def _shown(value: Any) -> str:
    """A value for a message, on one line and not too long."""
    plain = value[:40] if isinstance(value, str | list) else value
    whole = not isinstance(plain, dict | list) or all(isinstance(part, int | float) for part in plain)
    return ascii(plain)[:60] if whole else f"a {type(value).__name__}"


def _check_counts(sections: dict[str, Section], features: int) -> None:
    documents, queries = sections["y"].shape[0], sections["indptr"].shape[0] - 1
    if documents < 1 or queries < 1:
        raise DataError("section 'y' or 'indptr' is empty; expected at least one document and one query")
    counts = {"documents": documents, "documents + 1": documents + 1, "queries": queries, "queries + 1": queries + 1, "features": features}
    counts["pairs"] = sections["pairs.weight"].shape[0] if "pairs.weight" in sections else 0
    for name, section in sections.items():
        entries = _expected(name)[1]
        if entries and section.shape[0] != counts[entries]:
            raise DataError(f"section {name!r} has {section.shape[0]} entries; expected {counts[entries]} ({entries})")
    if "columns" in sections and sections["columns"].shape[1] != documents:
        raise DataError(f"section 'columns' has {sections['columns'].shape[1]} documents; expected {documents}")
    if sections["X"].shape[1] != features:
        raise DataError(f"section 'X' has {sections['X'].shape[1]} columns but the footer has {features} feature_names")
