"""Models: a scorer and its provenance, in a file that people and other programs can read.

The file is JSON, described in ``docs/model-file.md``. Numbers are written with all the digits that they need, so a model that was saved
gives the same scores to the bit. Nothing in a file is ever run. `exactrank.models.formats` reads it, and models of other libraries.
"""

import json
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from exactrank import __version__
from exactrank._support.arguments import check_kind, wrong_kind
from exactrank._support.arrays import PerDocument
from exactrank._support.files import whole_file
from exactrank._support.json_values import JSONObject, json_value
from exactrank._support.tables import Table, Tabular, Values
from exactrank._support.text import clip
from exactrank.cutoffs.cutoff import Cutoff, read_cutoff
from exactrank.data.alignment import align_features, name_list
from exactrank.data.formats.base import Columns
from exactrank.data.ranking_data import RankingData
from exactrank.data.validation import array_of, fill_masked_values
from exactrank.errors import DataError, IncompatibleError, MeasureError
from exactrank.measures.base import Measure
from exactrank.measures.evaluate import Evaluation, evaluate
from exactrank.measures.goal import parse_goal
from exactrank.models import read_scorer
from exactrank.models.base import Scorer
from exactrank.models.linear import Linear

FORMAT = "exactrank-model"
VERSION = 2
READABLE = (1, VERSION)  #: in version 1, trees are the lines of a LightGBM model
EXACT = float(1 << 24)  #: below it float32 holds every whole number
_DAMAGED = "the file is damaged, so train or copy the model again"
_NONE = type(None)
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


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number_or_none(value: object) -> bool:
    return value is None or value in ("nan", "inf", "-inf") or (isinstance(value, int | float) and not isinstance(value, bool))


#: Checks of the optional entries that other code reads.
_CHECKS: Mapping[str, Mapping[str, Callable[[object], bool]]] = {
    "data": {"queries": _is_count, "documents": _is_count, "checksum": lambda value: isinstance(value, str)},
    "training": {
        **dict.fromkeys(("value", "valid", "estimate"), _is_number_or_none),
        "interval": lambda value: isinstance(value, list) and len(value) == 2 and all(map(_is_number_or_none, value)),
        "steps": _is_count,
        "interrupted": lambda value: isinstance(value, bool),
        "chosen": lambda value: isinstance(value, dict),
    },
}


@dataclass(frozen=True, eq=False, repr=False)
class Model(Tabular):
    """A scorer and its origin; [`er.load`][exactrank.load] reads a model from a file."""

    scorer: Scorer
    measure: str | None = None  #: that it was trained on, with all its settings
    ranker: str | None = None  #: the class that trained it
    params: Mapping[str, Any] = field(default_factory=dict)  #: of that class
    data: Mapping[str, Any] = field(default_factory=dict)  #: the training data: queries, documents, checksum
    seed: int | None = None
    library: str = __version__  #: the version of exactrank that trained it
    training: Mapping[str, Any] = field(default_factory=dict)  #: results of training: value, valid, steps, interrupted
    run: Mapping[str, Any] | None = None  #: from which training resumes, if it was interrupted
    cutoff: Cutoff | None = None  #: which documents are kept

    def with_cutoff(self, cutoff: Cutoff | None) -> "Model":
        """Return the model with a ``cutoff``, or with None without one; it is saved with the model."""
        check_kind("cutoff", cutoff, (Cutoff, type(None)), "what er.cutoff returns, or None")
        return replace(self, cutoff=cutoff)

    def predict(self, data: object, threads: int | None = None) -> PerDocument:
        """Return the score of each row of a `RankingData`, a frame or a matrix, in the caller's row order.

        With a cutoff, the score of a document that is not kept is -inf, as of one that was not retrieved.

        Features are matched by name if both sides have names, in any order; otherwise their numbers must be equal. A frame may have other
        columns too. Categories are text in a frame; in a matrix they are the codes of the model's levels.

        >>> from exactrank.models import Linear
        >>> model = Model(Linear(np.array([2.0, -1.0]), ("bm25", "length")))
        >>> data = RankingData.from_arrays([[1.0, 3.0]], [0], group=[1], feature_names=["length", "bm25"])
        >>> model.predict(data), model.predict([[3.0, 1.0]])
        (array([5.]), array([5.]))
        """
        scores = self._scores(data, threads)
        if self.cutoff is None:
            return scores
        if isinstance(data, RankingData):
            return self.cutoff.apply(data, scores)
        if self.cutoff.by != "score":
            raise IncompatibleError(f"the cutoff is on the {self.cutoff.by} in a query, and rows have no queries; give a RankingData")
        return np.where(scores >= self.cutoff.threshold, scores, -np.inf)

    def _scores(self, data: object, threads: int | None) -> PerDocument:
        """Return the scores of all rows, whatever the cutoff."""
        if hasattr(data, "columns") and self.scorer.feature_names:
            data = self._select_columns(data, data.columns)
        data = fill_masked_values(data)
        by_name = isinstance(data, RankingData) and self.scorer.feature_names
        if isinstance(data, np.ndarray) and (scores := self._matrix_scores(data, threads)) is not None:
            return scores
        rows = data if isinstance(data, RankingData) else self._without_grades(data)
        if rows.n_features != self.scorer.n_features and not by_name:
            raise IncompatibleError(
                f"the data has {rows.n_features:,} features but the model has {self.scorer.n_features:,}; give those it was trained on"
            )
        if by_name:
            rows = align_features(rows, self.scorer.feature_names, levels=self.scorer.levels)
        return rows.ungroup(self.scorer.score(rows.X, threads, rows.offset))

    def _matrix_scores(self, X: npt.NDArray[np.generic], threads: int | None) -> PerDocument | None:
        """Return the scores of a matrix without converting it to `RankingData`, or None if float32 may not hold its numbers.

        Float32 holds whole numbers below 2^24. The scores of a linear model reveal an infinite feature.
        """
        if X.ndim != 2 or X.dtype.kind not in "fiub" or X.shape[1] != self.scorer.n_features or len(X) == 0:
            return None
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(X if self.scorer.offset is None else np.subtract(X, self.scorer.offset), np.float32)
        exact = X.dtype == np.float32 and isinstance(self.scorer, Linear)
        if not exact and not max(np.fmax.reduce(rows, axis=None), -np.fmin.reduce(rows, axis=None)) < EXACT:
            return None
        try:
            return self.scorer.score(rows, threads, self.scorer.offset)
        except DataError:
            return None

    def _select_columns(self, frame: object, labels: Iterable[object]) -> npt.NDArray[np.generic] | RankingData:
        """Return the model's features in its order from a frame that may have other columns; with names if there are categories."""
        from exactrank.data.frame import numbers_in, table_of, with_codes

        names, has_levels = self.scorer.feature_names, bool(self.scorer.levels)
        if list(map(str, labels)) == list(names) and not has_levels and (matrix := np.asarray(frame)).dtype.kind in "fiub":
            return matrix
        table = table_of(frame, "frame")
        label_of = {str(label): label for label in table.columns}
        missing = [name for name in names if name not in label_of]
        if missing:
            raise IncompatibleError(
                f"the frame lacks {len(missing):,} of the {len(names):,} features of the model: {name_list(missing)};"
                f" it has {name_list(list(label_of))}; give a column for each feature, by the same name"
            )
        columns = table[:, [table.columns.index(label_of[name]) for name in names]].to_native()
        if with_codes(columns)[1]:
            return self._without_grades(columns)
        numbers = np.column_stack([numbers_in(columns, label_of[name]) for name in names])
        return replace(self._without_grades(numbers), feature_names=names) if has_levels else numbers

    def _without_grades(self, X: object) -> RankingData:
        """Return rows as one query, stored as differences from the scorer's offset: so no row's score depends on the others."""
        table = X if hasattr(X, "shape") else array_of(X)
        if len(table.shape) == 0:
            raise wrong_kind("X", X, "a RankingData, a frame or a table of numbers, documents x features")
        rows, width = table.shape[0], table.shape[1] if len(table.shape) == 2 else 0
        offset = self.scorer.offset
        if offset is None or len(offset) != width:
            offset = np.zeros(width)
        return RankingData.from_arrays(table, np.zeros(rows), group=[rows], offset=offset)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features that it reads, in order; empty if they are known by position."""
        return self.scorer.feature_names

    def evaluate(
        self,
        X: object,
        measures: str | Measure | Sequence[str | Measure] | None = None,
        *,
        y: npt.ArrayLike | None = None,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        threads: int | None = None,
    ) -> Evaluation:
        """Evaluate the model's scores of judged documents by ``measures``, by default the one that it was trained on.

        ``X`` is a `RankingData`, a frame with the columns ``query_id`` and ``relevance``, or a frame or a matrix of features with grades
        ``y`` and queries ``qid`` or ``group``.

        >>> from exactrank.models import Linear
        >>> model = Model(Linear(np.array([2.0, -1.0])))
        >>> model.evaluate([[3.0, 1.0], [1.0, 2.0], [4.0, 0.0]], ["nDCG@10", "RR"], y=[0, 0, 1], qid=[1, 1, 1])
        Evaluation(nDCG@10=1.0000, RR=1.0000)
        """
        names = self.measure if measures is None else measures
        if names is None:
            raise IncompatibleError("the model does not say what measure it was trained on; name one, e.g. measures='nDCG@10'")
        return evaluate(_judged_data(X, y, qid, group), self.predict(X, threads), names, threads=threads)

    def score(
        self,
        X: object,
        y: npt.ArrayLike | None = None,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        measure: str | Measure | None = None,
    ) -> float:
        """Return the mean of ``measure``, by default the one that it was trained on; see `evaluate`."""
        (mean,) = self.evaluate(X, measure, y=y, qid=qid, group=group).means.values()
        return mean

    def __repr__(self) -> str:
        by, on, queries = self.ranker, self.measure, self.data.get("queries")
        origin = [f"trained by {by}" if by else "", f"on {_notation(on)}" if on else "", f"of {queries:,} queries" if queries else ""]
        return f"Model({', '.join(filter(None, [repr(self.scorer), ' '.join(filter(None, origin))]))})"

    def _columns(self) -> Mapping[str, Values]:
        return self.scorer._columns()

    def _glance(self) -> Table:
        return self.scorer.features_first(repr(self))

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the model; an existing file is replaced only with ``force``, and stays whole if writing fails."""
        content = self.to_bytes()
        with whole_file(path, force=force) as file:
            file.write(content)

    def card(self) -> str:
        """Return the model's card in Markdown: data, measure, settings, estimate, features, use and limits."""
        from exactrank.models.card import card

        return card(self)

    @classmethod
    def from_record(cls, record: JSONObject, where: str) -> "Model":
        """Return the model that `to_bytes` described; errors name ``where`` it was read."""
        if record.get("format") != FORMAT:
            written = reprlib.repr(record.get("format"))
            raise DataError(f"{where}: the format is {written}; expected {FORMAT!r}, as exactrank train writes it")
        version = record.get("version")
        if type(version) is not int or version not in READABLE:
            readable = " and ".join(map(str, READABLE))
            raise DataError(f"{where}: the version is {reprlib.repr(version)} but this exactrank reads {readable}; install a newer one")
        for name, types in _TYPES.items():
            if name not in record or not isinstance(record[name], types) or isinstance(record[name], bool):
                value = reprlib.repr(record[name]) if name in record else "missing"
                raise DataError(f"{where}: {name!r} is {value}; {_DAMAGED}")
        fields: dict[str, Any] = {name: record[name] for name in _TYPES} | {"run": record.get("run")}
        fields["cutoff"] = read_cutoff(record.get("cutoff"), where)
        for name, checks in _CHECKS.items():
            for key in set(checks) & set(fields[name]):
                if not checks[key](fields[name][key]):
                    raise DataError(f"{where}: {key!r} of {name!r} is {reprlib.repr(fields[name][key])}; {_DAMAGED}")
        if not isinstance(fields["run"], dict | None):
            raise DataError(f"{where}: 'run' is {reprlib.repr(fields['run'])}; {_DAMAGED}")
        return cls(**fields | {"scorer": read_scorer(fields["scorer"], where)})

    def to_bytes(self) -> bytes:
        """Return the content of the model's file."""
        record = {"format": FORMAT, "version": VERSION} | {
            name: self.scorer.to_record() if name == "scorer" else json_value(getattr(self, name)) for name in _TYPES
        }
        record |= {} if self.run is None else {"run": self.run}
        record |= {} if self.cutoff is None else {"cutoff": self.cutoff.to_record()}
        return (_json(record) + "\n").encode()


def _json(value: object, indent: str = "") -> str:
    """Return ``value`` as JSON with lists of plain values in one line, because otherwise every number of a tree would take a line.

    >>> print(_json({"left": [1, -1], "sets": [[3], []]}))
    {
      "left": [1, -1],
      "sets": [
        [3],
        []
      ]
    }
    """
    inner = indent + "  "
    if isinstance(value, dict) and value:
        lines = [f"{inner}{json.dumps(name)}: {_json(item, inner)}" for name, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        lines = [inner + _json(item, inner) for item in value]
    else:
        return json.dumps(value, allow_nan=False)
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n" + ",\n".join(lines) + f"\n{indent}{last}"


def _judged_data(X: object, y: npt.ArrayLike | None, qid: npt.ArrayLike | None, group: npt.ArrayLike | None) -> RankingData:
    """Return the grades and queries of the rows of ``X``, without features."""
    arguments = [name for name, value in (("y", y), ("qid", qid), ("group", group)) if value is not None]
    if isinstance(X, RankingData):
        if arguments:
            raise DataError(f"RankingData holds {', '.join(arguments)} already; leave out {'them' if len(arguments) > 1 else 'it'}")
        return X
    if y is not None:
        return RankingData.from_arrays(None, y, qid=qid, group=group)
    if not hasattr(X, "columns") or arguments:
        raise DataError("there are no grades; give y and qid (or group), a frame with the columns query_id and relevance, or a RankingData")
    return RankingData.from_frame(X, Columns(features=()))


def _notation(measure: str) -> str:
    """Return the short notation of a measure in a file, or the text itself if the measure is unknown here."""
    try:
        return str(parse_goal(measure))
    except MeasureError:
        return clip(measure, 60)
