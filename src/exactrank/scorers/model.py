"""Models: a scorer with where it came from, in a file that people and other programs can read.

The file is JSON, described in ``docs/model-file.md``. Numbers are written with all the digits that they need, so a model
scores to the bit as it did before it was saved. Nothing in a file is ever run. Besides its own files `load` takes weights that
were trained anywhere: ``{"bm25": 0.7, "dense": 0.3}``, the same under a key ``"weights"``, or a list of numbers; and trees of LightGBM.
"""

import json
import math
import os
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exactrank import __version__
from exactrank.arrays import PerDocument
from exactrank.data.alignment import aligned, first_repeated
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.files import read_bounded, whole_file
from exactrank.scorers import read_scorer
from exactrank.scorers.base import Scorer
from exactrank.scorers.linear import Linear

FORMAT = "exactrank-model"
VERSION = 1
MOST = 1 << 30  #: bytes of a model file
DIGITS = 4000  #: of a whole number: more than any finite double has
_NONE = type(None)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # of a function: another one in each process
_TYPES: Mapping[str, tuple[type, ...]] = {
    "library": (str,),
    "ranker": (str, _NONE),
    "measure": (str, _NONE),
    "seed": (int, _NONE),
    "params": (dict,),
    "data": (dict,),
    "training": (dict,),
    "scorer": (dict,),
}


@dataclass(frozen=True, eq=False)
class Model:
    """A scorer, and how it was made; [`xr.load`][exactrank.load] reads one from a file."""

    scorer: Scorer
    measure: str | None = None  #: that it was trained on, with all its settings
    ranker: str | None = None  #: the class that trained it
    params: Mapping[str, Any] = field(default_factory=dict)  #: of that class
    data: Mapping[str, Any] = field(default_factory=dict)  #: the training data: queries, documents, checksum
    seed: int | None = None
    library: str = __version__  #: the version of exactrank that trained it
    training: Mapping[str, Any] = field(default_factory=dict)  #: what training reached: value, valid, steps, interrupted
    run: Mapping[str, Any] | None = None  #: what training resumes from, where it was broken off

    def predict(self, data: Any, threads: int | None = None) -> PerDocument:
        """The score of each row of a `RankingData`, a frame or a matrix, in the caller's row order.

        Features are matched by name where both sides have names, whatever their order; else there must be as many.

        >>> model = Model(Linear(np.array([2.0, -1.0]), ("bm25", "length")))
        >>> data = RankingData.from_arrays([[1.0, 3.0]], [0], group=[1], feature_names=["length", "bm25"])
        >>> model.predict(data), model.predict([[3.0, 1.0]])
        (array([5.]), array([5.]))
        """
        named = isinstance(data, RankingData) or hasattr(data, "columns")
        by_name = named and self.scorer.feature_names
        rows = data if isinstance(data, RankingData) else self._unjudged(data)
        if rows.n_features != self.scorer.n_features and not by_name:
            raise IncompatibleError(
                f"the data has {rows.n_features:,} features but the model has {self.scorer.n_features:,}; give those it was trained on"
            )
        if by_name:
            rows = aligned(rows, self.scorer.feature_names)
        return rows.ungrouped(self.scorer.score(rows.X, threads, rows.offset))

    def _unjudged(self, X: Any) -> RankingData:
        """Rows without grades, as one query, kept as differences from the scorer's offset: so no row's score depends on the others."""
        table = X if hasattr(X, "shape") else np.asarray(X)
        rows, width = table.shape[0], table.shape[1] if len(table.shape) == 2 else 0
        own = np.zeros(self.scorer.n_features) if self.scorer.offset is None else self.scorer.offset
        if self.scorer.feature_names and hasattr(X, "columns"):
            known = dict(zip(self.scorer.feature_names, own.tolist(), strict=True))
            offset = np.array([known.get(str(name), 0.0) for name in X.columns])
        else:
            offset = own if len(own) == width else np.zeros(width)
        return RankingData.from_arrays(table, np.zeros(rows), group=[rows], offset=offset)

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the model; an existing file is replaced only with ``force``, and stays whole if writing fails."""
        content = self.to_bytes()
        with whole_file(path, force=force) as file:
            file.write(content)

    def to_bytes(self) -> bytes:
        """The content of the model's file."""
        record = {"format": FORMAT, "version": VERSION} | {
            name: self.scorer.to_record() if name == "scorer" else plain(getattr(self, name)) for name in _TYPES
        }
        record |= {} if self.run is None else {"run": self.run}
        return (json.dumps(record, indent=2, allow_nan=False) + "\n").encode()


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model file, a text that LightGBM saved, or weights: ``{"bm25": 0.7, ...}``, ``{"weights": ...}`` or ``[0.7, ...]``.

    A list is matched by position. Weights under ``"weights"`` may have ``"missing": "zero"`` beside them.
    """
    where = str(path)
    try:
        content = read_bounded(path, MOST)
        text = content.decode(json.detect_encoding(content))
    except UnicodeDecodeError:
        raise DataError(f"{where} is not a model: it is not text; expected a file of exactrank train, or JSON with weights") from None
    if text.startswith("tree\n"):
        from exactrank.scorers.tree_ensemble import TreeEnsemble

        try:
            return Model(TreeEnsemble.of_lightgbm(text))
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
    record = _parsed(text, where)
    if isinstance(record, dict) and isinstance(record.get("format"), str):
        return _from_record(record, where)
    if isinstance(record, dict) and isinstance(record.get("weights"), dict | list):
        return Model(Linear.from_record(record, where))
    return Model(Linear.from_record({"weights": record}, where))


def _from_record(record: dict[str, Any], where: str) -> Model:
    if record["format"] != FORMAT:
        raise DataError(f"{where}: the format is {reprlib.repr(record['format'])}; expected {FORMAT!r}, as exactrank train writes it")
    if record.get("version") != VERSION:
        raise DataError(
            f"{where}: the version is {reprlib.repr(record.get('version'))} but this exactrank reads {VERSION}; install a newer one"
        )
    for name, types in _TYPES.items():
        if name not in record or not isinstance(record[name], types) or isinstance(record[name], bool):
            found = reprlib.repr(record[name]) if name in record else "missing"
            raise DataError(f"{where}: {name!r} is {found}; the file is damaged, so train or copy the model again")
    read = read_scorer(record["scorer"], where)
    if not isinstance(record.get("run"), dict | None):
        raise DataError(f"{where}: 'run' is {reprlib.repr(record['run'])}; the file is damaged, so train or copy the model again")
    return Model(read, **{name: record[name] for name in _TYPES if name != "scorer"}, run=record.get("run"))


def _parsed(text: str, where: str) -> Any:
    """What JSON says, strictly: no name twice, no NaN, no number of more digits than any finite double has."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = first_repeated([name for name, _ in pairs])
        if twice is not None:
            raise ValueError(f"{reprlib.repr(twice)} is there twice")
        return dict(pairs)

    def refused(token: str) -> Any:
        raise ValueError(f"{token} is not a JSON number")

    def whole_number(digits: str) -> int:
        if len(digits) > DIGITS:
            raise ValueError(f"a number has {len(digits):,} digits")
        return int(digits)

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refused, parse_int=whole_number)
    except RecursionError:
        trouble = "its lists are nested too deeply"
    except ValueError as error:
        trouble = str(error)
    raise DataError(f"{where} is not a model: {trouble}; expected a file of exactrank train, or JSON with weights")


def plain(value: Any) -> Any:
    """``value`` in what JSON has; what it has no form for is written as Python would."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if value is None or isinstance(value, bool | int | float | str) else _ADDRESS.sub("", repr(value))
