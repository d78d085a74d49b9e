"""Models: a scorer with where it came from, in a file that people and other programs can read.

The file is JSON, described in ``docs/model-file.md``. Numbers are written with all the digits that they need, so a model
scores to the bit as it did before it was saved. Nothing in a file is ever run. `exactrank.imports` reads it, and models of other libraries.
"""

import json
import math
import os
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank import __version__
from exactrank.arrays import PerDocument
from exactrank.data.alignment import aligned
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.files import whole_file
from exactrank.scorers import read_scorer
from exactrank.scorers.base import Scorer
from exactrank.scorers.linear import Linear

FORMAT = "exactrank-model"
VERSION = 1
EXACT = float(1 << 24)  #: below it float32 holds every whole number
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


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_measured(value: Any) -> bool:
    """A number, none, or what stands for a number that JSON has no form for."""
    return value is None or value in ("nan", "inf", "-inf") or (isinstance(value, int | float) and not isinstance(value, bool))


#: What the parts that other code reads must be, where they are there.
_PARTS: Mapping[str, Mapping[str, Callable[[Any], bool]]] = {
    "data": {"queries": _is_count, "documents": _is_count, "checksum": lambda value: isinstance(value, str)},
    "training": {
        **dict.fromkeys(("value", "valid", "estimate"), _is_measured),
        "interval": lambda value: isinstance(value, list) and len(value) == 2 and all(map(_is_measured, value)),
        "steps": _is_count,
        "interrupted": lambda value: isinstance(value, bool),
        "chosen": lambda value: isinstance(value, dict),
    },
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

        >>> from exactrank import Linear
        >>> model = Model(Linear(np.array([2.0, -1.0]), ("bm25", "length")))
        >>> data = RankingData.from_arrays([[1.0, 3.0]], [0], group=[1], feature_names=["length", "bm25"])
        >>> model.predict(data), model.predict([[3.0, 1.0]])
        (array([5.]), array([5.]))
        """
        if isinstance(data, np.ndarray) and (scores := self._at_once(data, threads)) is not None:
            return scores
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

    def _at_once(self, X: npt.NDArray[Any], threads: int | None) -> PerDocument | None:
        """The scores of a matrix without the data around it, or None where a closer look is due: at what float32 may not hold.

        Whole numbers below 2^24 are floats. A linear model shows by its scores that a feature is infinite.
        """
        if X.ndim != 2 or X.dtype.kind not in "fiub" or X.shape[1] != self.scorer.n_features or len(X) == 0:
            return None
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(X if self.scorer.offset is None else X - self.scorer.offset, np.float32)
        seen = X.dtype == np.float32 and isinstance(self.scorer, Linear)
        if not seen and not max(np.fmax.reduce(rows, axis=None), -np.fmin.reduce(rows, axis=None)) < EXACT:
            return None
        try:
            return self.scorer.score(rows, threads, self.scorer.offset)
        except DataError:
            return None

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

    def card(self) -> str:
        """What people should know before they use it, in Markdown: data, measure, settings, estimate, features, use and limits."""
        from exactrank.scorers.card import card

        return card(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any], where: str) -> "Model":
        """The model that `to_bytes` described, once it is sound; errors name ``where`` it was read."""
        if record.get("format") != FORMAT:
            found = reprlib.repr(record.get("format"))
            raise DataError(f"{where}: the format is {found}; expected {FORMAT!r}, as exactrank train writes it")
        if record.get("version") != VERSION or isinstance(record.get("version"), bool):
            found = reprlib.repr(record.get("version"))
            raise DataError(f"{where}: the version is {found} but this exactrank reads {VERSION}; install a newer one")
        for name, types in _TYPES.items():
            if name not in record or not isinstance(record[name], types) or isinstance(record[name], bool):
                found = reprlib.repr(record[name]) if name in record else "missing"
                raise DataError(f"{where}: {name!r} is {found}; the file is damaged, so train or copy the model again")
        for name, parts in _PARTS.items():
            for key in set(parts) & set(record[name]):
                if not parts[key](record[name][key]):
                    found = reprlib.repr(record[name][key])
                    raise DataError(f"{where}: {key!r} of {name!r} is {found}; the file is damaged, so train or copy the model again")
        read = read_scorer(record["scorer"], where)
        if not isinstance(record.get("run"), dict | None):
            raise DataError(f"{where}: 'run' is {reprlib.repr(record['run'])}; the file is damaged, so train or copy the model again")
        return cls(read, **{name: record[name] for name in _TYPES if name != "scorer"}, run=record.get("run"))

    def to_bytes(self) -> bytes:
        """The content of the model's file."""
        record = {"format": FORMAT, "version": VERSION} | {
            name: self.scorer.to_record() if name == "scorer" else plain(getattr(self, name)) for name in _TYPES
        }
        record |= {} if self.run is None else {"run": self.run}
        return (json.dumps(record, indent=2, allow_nan=False) + "\n").encode()


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
