"""Tuned weights and all that is known about them (`Fusion`): fused scores, runs and frames, their file, an engine's configuration.

A fused score is that of `fuse.py`'s equation (1). With an engine it is what the engine computes, in its own precision, of the first
``depth`` documents of each system.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from exactrank._support.arrays import PerDocument
from exactrank._support.files import whole_file
from exactrank._support.pictures import Plottable, can_draw, picture_html
from exactrank._support.tables import LETTERS, Table, Tabular, Values, by_column, small_table
from exactrank._support.text import clip, printable
from exactrank.data.formats.base import Columns
from exactrank.data.formats.trec import RetrievalRun
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.fusion.certificate import Certificate
from exactrank.fusion.engines import ENGINES
from exactrank.fusion.engines.base import DEPTH, Settings
from exactrank.fusion.normalize import cut, normalized, parse_normalization
from exactrank.fusion.problem import FusionProblem, Sweep, weighted_sum
from exactrank.fusion.resample import Compared, Pair
from exactrank.fusion.systems import Source, select_systems, systems_without_grades
from exactrank.measures.base import Measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT, VERSION = "exactrank-fusion", 1
NAMED = 5  #: systems that ``repr`` names
SIZE = 10  #: documents of a result, where the measure has no cutoff


@dataclass(frozen=True, repr=False)
class Fusion(Tabular, Plottable):
    """Tuned weights, and all that is known about them; [`er.fuse`][exactrank.fuse] makes one, [`er.load`][exactrank.load] reads one."""

    systems: tuple[str, ...]
    weights: tuple[float, ...]  #: one per system; their absolute values add up to 1
    normalize: str
    absent: str
    measure: Measure
    value: float  #: of the measure, on the queries that the weights were tuned on
    interval: tuple[Pair, ...]  #: how far each weight can move, the others in proportion, before the value changes
    bootstrap_interval: tuple[Pair, ...] | None  #: the 95% interval of each weight; beyond two systems with the others in proportion
    cross_validated: float | None
    optimum: Literal["global", "certified", "local"]
    certificate: Certificate | None  #: of three systems, by a positional measure
    comparison: tuple[Compared, ...]
    sweep: Sweep | None = None  #: the measure against the weight, of two systems; not in the file
    engine: str | None = None  #: that it was tuned for
    depth: int | None = None  #: documents of each system's list that are looked at
    normalizations: tuple[Compared, ...] = ()  #: what each that was tried is worth, held out; the gain is that of the one chosen
    constraints: Mapping[str, float] = field(default_factory=dict)  #: that the weights keep, each with the value of its measure

    def predict(self, data: RankingData) -> PerDocument:
        """The fused score of each row of ``data``, in the caller's order; -inf for a document that is not ranked."""
        chosen = select_systems(data, self.systems)
        X = chosen.X if self.depth is None else cut(chosen.X, chosen.indptr, self.depth)
        values, ranked = normalized(X, chosen.indptr, self.normalize, self.absent, chosen.offset)
        combine = (self.engine and ENGINES[self.engine].combine) or weighted_sum
        return data.ungroup(FusionProblem(self.measure, chosen, values, ranked, combine=combine).scores(np.array(self.weights)))

    def apply(self, given: Any, columns: Columns | None = None) -> Any:
        """Fuse new results: a frame with a column ``score``, or a run.

        ``given`` is a pandas, polars or Arrow frame with a row per query and document and a column per system, null where it did not
        retrieve the document; it needs no grades, and is returned with the fused scores, null for a document that is not ranked. Or it
        maps the systems' names to files of runs or to what [`er.read_run`][exactrank.read_run] gave, and a run is returned, which
        [`er.write_run`][exactrank.write_run] writes.
        """
        if not isinstance(given, Mapping):
            return self._applied_to_frame(given, columns or Columns())
        data, scores = self.applied_to_runs(given)
        assert data.docid is not None
        kept = np.flatnonzero(np.isfinite(scores))
        query = np.repeat(np.arange(data.n_queries), data.sizes)[kept]
        kept = kept[np.lexsort((-scores[kept], query))]
        qid = np.repeat(data.qid, data.sizes)[kept].tolist()
        return RetrievalRun(qid, data.docid.take(kept).tolist(), scores[kept], "fusion")

    def applied_to_runs(self, runs: Mapping[str, Source]) -> tuple[RankingData, PerDocument]:
        """All documents of the runs, and their fused scores."""
        self._check_systems(runs)
        data = systems_without_grades({name: runs[name] for name in self.systems})
        return data, self.predict(data)

    def _applied_to_frame(self, frame: Any, columns: Columns) -> Any:
        from exactrank.data.frame import library, table_of

        table, nw = table_of(frame, "frame"), library("narwhals")
        self._check_systems([name for name in self.systems if name in table.columns])
        if "score" in table.columns:
            raise DataError("the frame already has a column 'score', the name of the fused scores; rename it")
        graded = table.select(columns.query, *self.systems).with_columns(nw.lit(0.0).alias(columns.relevance))
        scores = self.predict(RankingData.from_frame(graded.to_native(), replace(columns, features=self.systems)))
        fused = nw.new_series("score", scores, nw.Float64, backend=table.implementation)
        return table.with_columns(fused).with_columns(nw.when(nw.col("score").is_finite()).then("score").alias("score")).to_native()

    def _check_systems(self, given: Iterable[str]) -> None:
        """Raise if the systems given are not those of the fusion."""
        known = list(given)
        lacking = [f"lacks {name!r}" for name in self.systems if name not in known]
        besides = [f"has {name!r} besides" for name in known if name not in self.systems]
        if lacking or besides:
            raise DataError(
                f"the fusion is of systems {', '.join(self.systems)}, but what was given {' and '.join(lacking + besides)}; "
                "give the scores of each of them, by that name (of runs: NAME=FILE)"
            )

    def configuration(self, parts: Mapping[str, Any] | None = None) -> str:
        """All that the engine needs to compute exactly this, as JSON, or as text for Vespa.

        ``parts`` says what each system is in the engine: a retriever of Elasticsearch, a query of OpenSearch, a prefetch of Qdrant, a rank
        feature of Vespa. A missing one is written as a placeholder in capitals.
        """
        if self.engine is None:
            known = ", ".join(ENGINES)
            raise IncompatibleError(f"the weights were not tuned for an engine; tune them with engine= one of {known}")
        depth, (name, k) = self.depth or DEPTH, parse_normalization(self.normalize)
        size = min(depth, SIZE) if self.measure.k is None else self.measure.k
        return ENGINES[self.engine].write(Settings(self.systems, self.weights, name, k, depth, size, parts or {}))

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write all of it except the sweep, for [`er.load`][exactrank.load]; an existing file is replaced only with ``force``."""
        content = self.to_bytes()
        with whole_file(path, force=force) as file:
            file.write(content)

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return (json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n").encode()

    def to_json(self) -> dict[str, Any]:
        """What the file holds, ready for ``json.dumps``; ``weights`` by the systems' names."""
        from exactrank import __version__

        def by_system(values: Sequence[Any] | None) -> dict[str, Any] | None:
            return None if values is None else {name: _plain(value) for name, value in zip(self.systems, values, strict=True)}

        bounds = self.certificate and {"lower": self.certificate.lower, "upper": self.certificate.upper, "cells": self.certificate.cells}
        return {
            "format": FORMAT,
            "version": VERSION,
            "library": __version__,
            "weights": by_system(self.weights),
            "normalize": self.normalize,
            "absent": self.absent,
            "engine": self.engine,
            "depth": self.depth,
            "measure": repr(self.measure),
            "value": _plain(self.value),
            "cross_validated": _plain(self.cross_validated),
            "interval": by_system(self.interval),
            "bootstrap_interval": by_system(self.bootstrap_interval),
            "optimum": self.optimum,
            "certificate": bounds,
            "comparison": [_plain(vars(row)) for row in self.comparison],
            "normalizations": [_plain(vars(row)) for row in self.normalizations],
        } | ({"constraints": dict(self.constraints)} if self.constraints else {})

    def __repr__(self) -> str:
        named = list(zip(self.systems, self.weights, strict=True))[:NAMED]
        weights = ", ".join(f"{clip(printable(name), LETTERS)} {weight:.4f}" for name, weight in named)
        more = f", … and {len(self.systems) - NAMED:,} more" if len(self.systems) > NAMED else ""
        kept = "".join(f", {each} ({value:.4f})" for each, value in self.constraints.items())
        return f"Fusion({self.measure} {self.value:.4f}{kept} with {weights}{more}; {self.normalize}, {self.optimum} optimum)"

    def _columns(self) -> dict[str, Values]:
        intervals = self.bootstrap_interval or [(np.nan, np.nan)] * len(self.systems)
        (low, high), (flat_low, flat_high) = (zip(*pairs, strict=True) for pairs in (intervals, self.interval))
        ends = {"low": list(low), "high": list(high), "flat_low": list(flat_low), "flat_high": list(flat_high)}
        return {"system": self.systems, "weight": self.weights, **ends}

    def _glance(self) -> Table:
        rows = by_column(self.comparison, "name", "mean", "gain")
        return small_table(repr(self), list(rows.items()), len(self.comparison))

    def _repr_html_(self) -> str:
        drawn = len(self.systems) == 2 and self.sweep is not None and can_draw()
        return super()._repr_html_() + (picture_html(self) if drawn else "")

    def _draw(self, axes: "Axes", **options: Any) -> None:
        from exactrank.fusion.picture import draw_weights

        if len(self.systems) > 2:
            raise IncompatibleError(f"a picture shows one weight against another, but there are {len(self.systems)} systems; fuse two")
        if self.sweep is None:
            raise IncompatibleError("a fusion that was read from a file has no sweep to draw; tune the weights again")
        draw_weights(axes, self, self.sweep)


def _plain(value: Any) -> Any:
    """A value as JSON has it: NaN is null."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and value != value else value
