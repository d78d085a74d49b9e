"""The body of a request: the documents of a query as a matrix of doubles, or a refusal that names the place, the value and the remedy.

    {"documents": [{"bm25": 12.5, "length": null}, ...]}                        by name, in any order
    {"features": [[12.5, null], ...], "names": ["bm25", "length"]}              rows; by position if there are no names

null is a missing value, which is handled as the model specifies. A category is given by its text. Bodies that begin with ``"features"``
are read by the native core, straight into the matrix; all others by orjson. Nothing in a request is a path, and nothing is executed.
"""

import re
import reprlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import orjson

from exactrank import _core
from exactrank._support.text import encode
from exactrank.data.alignment import name_list
from exactrank.data.duplicates import first_duplicate
from exactrank.errors import ExactRankError
from exactrank.models.base import Scorer

Doubles = npt.NDArray[np.float64]
Unknown = Literal["refuse", "ignore"]  #: what to do with features that a model does not have
Place = Callable[[int, int], str]  #: how a request names the cell of a document and a feature
_BLANKS = b" \t\n\r"
_OPENING = re.compile(rb'[ \t\n\r]*\{[ \t\n\r]*"features"[ \t\n\r]*:[ \t\n\r]*')
_ESCAPES = re.compile(rb"\\(?:u003[aA]|.)")  # a colon, or whatever else is escaped
_TOKENS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[][{},:]')
_NUMBERS = {int, float, type(None)}
_LARGEST = float(np.finfo(np.float32).max)


class RequestError(ExactRankError):
    """A refused request: the HTTP status, the reason with its remedy, and the part of the body it refers to."""

    def __init__(self, status: int, detail: str, place: str | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.place = status, encode(detail).decode(), None if place is None else encode(place).decode()


@dataclass(frozen=True)
class Documents:
    """The documents of a request as rows, with one column per feature of the model, and how the request names a cell."""

    rows: Doubles
    place: Place

    def first_unusual_place(self) -> str | None:
        """Return the place of the first value that is missing or that float32 cannot hold, or None."""
        unusual = np.argwhere(~(np.abs(self.rows) <= _LARGEST))
        return self.place(*map(int, unusual[0])) if len(unusual) else None


def read_documents(body: bytes, scorer: Scorer, unknown: Unknown = "refuse", max_documents: int = 10_000) -> Documents:
    """Return the documents of ``body`` in the columns of ``scorer``.

    >>> from exactrank.models import Linear
    >>> scorer = Linear(np.array([2.0, 1.0]), ("bm25", "length"))
    >>> read_documents(b'{"documents": [{"length": 1, "bm25": 0.5}]}', scorer).rows
    array([[0.5, 1. ]])
    >>> read_documents(b'{"features": [[1, 0.5]], "names": ["length", "bm25"]}', scorer).rows
    array([[0.5, 1. ]])
    """
    content = _parse_body(body)
    unknown_keys = content.keys() - {"documents", "features", "names"}
    if unknown_keys:
        problem = f"the key {reprlib.repr(min(unknown_keys))} is unknown; give documents, or features and optionally names"
        raise RequestError(422, problem, min(unknown_keys)[:100])
    forms = [form for form in ("documents", "features") if form in content]
    if len(forms) != 1:
        problem = f"the body has {' and '.join(forms) or 'neither documents nor features'}"
        raise RequestError(422, f"{problem}; give either documents or features")
    (form,) = forms
    listing = content[form]
    if not isinstance(listing, list | np.ndarray) or len(listing) == 0:
        raise RequestError(422, f"{form} is {reprlib.repr(listing)}; give a list with at least one document", form)
    if len(listing) > max_documents:
        problem = f"there are {len(listing):,} documents; give at most {max_documents:,}, or start the service with --max-documents"
        raise RequestError(413, problem, form)
    if form == "documents":
        return _by_name(list(listing), content, scorer, unknown)
    names = content.get("names")
    if scorer.levels:
        texts = listing.tolist() if isinstance(listing, np.ndarray) else listing
        listing = _encode_categories(texts, names or scorer.feature_names, scorer, "features[{0}][{1}]")
    return _by_position(listing if isinstance(listing, np.ndarray) else _table(listing), names, scorer, unknown)


def _parse_body(body: bytes) -> dict[str, object]:
    """Parse the body; ``features`` become a matrix right away if they come first and are valid."""
    opening = _OPENING.match(body)
    parsed_matrix = None if opening is None else _core.json_matrix(body, opening.end())
    if parsed_matrix is not None:
        cells, width, end = parsed_matrix
        rest, other_keys = body[end:].strip(_BLANKS), dict[str, Any]()
        if rest == b"}":
            return {"features": cells.reshape(-1, width)}
        with suppress(orjson.JSONDecodeError):  # reported for the whole body, below
            other_keys = orjson.loads(b"{" + rest[1:]) if rest[:1] == b"," else {}
        if other_keys and "features" not in other_keys:
            _refuse_repeated_keys(b"{" + rest[1:], other_keys)
            return {"features": cells.reshape(-1, width)} | other_keys
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"the body is not JSON: {error}; JSON has no NaN or Infinity, and a missing value is null") from None
    if not isinstance(content, dict):
        raise RequestError(422, f"the body is {reprlib.repr(content)}; give an object with documents or features")
    _refuse_repeated_keys(body, content)
    return content


def _refuse_repeated_keys(text: bytes, parsed: dict[str, object]) -> None:
    """Raise if an object in ``text`` has a key twice; ``parsed`` is the parsed text, which keeps only the last value of a key.

    A colon follows each key, and other colons occur only inside strings. So no key is repeated if ``text`` has as many colons as ``parsed``
    has keys. If strings contain colons too, no key is repeated exactly if ``text`` has as many colons as ``parsed`` has when it is
    serialized, with each key once.
    """
    colons = int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord(":")))  # several times as fast as bytes.count
    keys, documents = len(parsed), parsed.get("documents")
    if isinstance(documents, list):
        keys += sum(len(document) for document in documents if isinstance(document, dict))
    if colons == keys:
        return
    if b"\\" in text:
        colons += sum(len(escape) == 6 for escape in _ESCAPES.findall(text))
    with suppress(orjson.JSONEncodeError):  # nested too deeply to be serialized
        if colons == orjson.dumps(parsed).count(b":"):
            return
    place = _first_repeated_key(text.decode())
    if place is not None:
        raise RequestError(422, f"{reprlib.repr(place)} occurs twice; give each key once", place[:100])


def _first_repeated_key(text: str) -> str | None:
    """Return the place of the first key in a JSON text that its object already has, or None."""
    path: list[str | int] = []  # the current key of each object and the current number of each list, from the outermost on
    keys_so_far: list[set[str]] = []  # the keys of each of these objects so far
    previous = ""
    for token in _TOKENS.finditer(text):
        mark = token[0]
        if mark in "{[":
            path.append("" if mark == "{" else 0)
            keys_so_far.append(set())
        elif mark in "}]":
            path.pop()
            keys_so_far.pop()
        elif mark == "," and isinstance(path[-1], int):
            path[-1] += 1
        elif mark == ":":
            path[-1] = key = orjson.loads(previous)
            if key in keys_so_far[-1]:
                return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[1:]
            keys_so_far[-1].add(key)
        previous = mark
    return None


def _encode_categories(rows: Sequence[object], names: object, scorer: Scorer, place: str) -> list[object]:
    """Replace the categories in rows of the features ``names`` by their codes; ``place`` formats a row, a column and a feature as a place.

    Anything that is not a row stays, for the check of all rows to report.
    """
    valid_names = names if isinstance(names, list | tuple) else ()
    categories = [
        (j, name, scorer.level_codes[name]) for j, name in enumerate(valid_names) if isinstance(name, str) and name in scorer.levels
    ]
    encoded_rows: list[object] = []
    for i, row in enumerate(rows):
        if isinstance(row, list | tuple):
            cells = list(row)
            for j, name, codes in categories:
                value = cells[j] if j < len(cells) else None
                if isinstance(value, str):
                    cells[j] = codes.get(value)
                elif value is not None and value == value:
                    at = place.format(i, j, name)
                    raise RequestError(422, f"{at} is {reprlib.repr(value)}; {name!r} is a category, so give its text, or null", at)
            encoded_rows.append(cells)
        else:
            encoded_rows.append(row)
    return encoded_rows


def _table(rows: Sequence[object]) -> Doubles:
    """Return lists of numbers, all of one length, as a matrix."""
    lists: list[list[object]] = []
    for i, row in enumerate(rows):
        place = f"features[{i}]"
        remedy = "give a list of numbers of the same length for each document"
        if not isinstance(row, list) or not row:
            raise RequestError(422, f"{place} is {reprlib.repr(row)}; {remedy}", place)
        if lists and len(row) != len(lists[0]):
            raise RequestError(422, f"{place} has {len(row)} values but features[0] has {len(lists[0])}; {remedy}", place)
        lists.append(row)
    return _numbers(lists, lambda i, j: f"features[{i}][{j}]")


def _numbers(rows: Sequence[Sequence[object]], place: Place) -> Doubles:
    if not set(map(type, chain.from_iterable(rows))) <= _NUMBERS:
        at, value = next((place(i, j), cell) for i, row in enumerate(rows) for j, cell in enumerate(row) if type(cell) not in _NUMBERS)
        raise RequestError(422, f"{at} is {reprlib.repr(value)}; give a number, or null for a missing value", at)
    return np.array(rows, np.float64)


def _by_name(documents: Sequence[Any], content: dict[str, object], scorer: Scorer, unknown: Unknown) -> Documents:
    names = scorer.feature_names
    if not names:
        raise RequestError(422, "the model knows its features only by position; give rows under features instead of documents", "documents")
    if "names" in content:
        raise RequestError(422, "names are for the columns of features; leave them out with documents", "names")
    try:
        rows = list(map(itemgetter(*names), documents))
    except (KeyError, TypeError):  # a feature is missing, or a document is not an object
        rows = []
    if not rows or (unknown == "refuse" and any(len(document) != len(names) for document in documents)):
        for i, document in enumerate(documents):
            if not isinstance(document, dict):
                remedy = "give an object that maps feature names to numbers, or rows under features"
                raise RequestError(422, f"documents[{i}] is {reprlib.repr(document)}; {remedy}", f"documents[{i}]")
            _refuse_other_features(document, names, unknown, f"documents[{i}]")

    def place(i: int, j: int) -> str:
        return f"documents[{i}].{names[j]}"

    cells: list[Any] = [(value,) for value in rows] if len(names) == 1 else rows
    if scorer.levels:
        cells = _encode_categories(cells, names, scorer, "documents[{0}].{2}")
    return Documents(_numbers(cells, place), place)


def _by_position(rows: Doubles, names: object, scorer: Scorer, unknown: Unknown) -> Documents:
    columns: Sequence[int] = range(scorer.n_features)
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise RequestError(422, f"names is {reprlib.repr(names)}; give a list of feature names, one per column of features", "names")
        repeated_name = first_duplicate(names)
        if repeated_name is not None or len(names) != rows.shape[1]:
            problem = (
                f"names has {reprlib.repr(repeated_name)} twice"
                if repeated_name is not None
                else f"there are {len(names)} names for {rows.shape[1]} columns of features"
            )
            raise RequestError(422, f"{problem}; give each column its own name", "names")
        if not scorer.feature_names:
            raise RequestError(422, "the model knows its features only by position; leave names out", "names")
        _refuse_other_features(names, scorer.feature_names, unknown, "names")
        column_of = {name: j for j, name in enumerate(names)}
        columns = [column_of[name] for name in scorer.feature_names]
        rows = rows if columns == [*range(rows.shape[1])] else rows[:, columns]
    if rows.shape[1] != scorer.n_features:
        problem = f"a row of features has {rows.shape[1]:,} values but the model has {scorer.n_features:,} features"
        raise RequestError(422, f"{problem}; give one value per feature, null where it is missing", "features[0]")
    return Documents(rows, lambda i, j: f"features[{i}][{columns[j]}]")


def _refuse_other_features(features: Iterable[str], names: Sequence[str], unknown: Unknown, where: str) -> None:
    """Raise unless ``features`` are those of the model, in any order; if ``unknown`` is ignore, there may be others too."""
    present = set(features)
    missing = [name for name in names if name not in present]
    extra = [reprlib.repr(name) for name in sorted(present - set(names))] if unknown == "refuse" else []
    if missing or extra:
        difference = " and ".join([f"lacks {name_list(missing)}"] * bool(missing) + [f"also has {name_list(extra)}"] * bool(extra))
        remedy = "give the features of the model, null where a value is missing" + ", or use --unknown ignore" * bool(extra)
        raise RequestError(422, f"{where} does not match the features of the model: it {difference}; {remedy}", where)
