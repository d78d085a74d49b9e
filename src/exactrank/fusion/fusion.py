"""Tuned weights with their statistics (`Fusion`): fused scores, runs and frames, their file, an engine's configuration.

A fused score is that of `fuse.py`'s equation (1). With an engine it is the score that the engine computes, in its own precision, from the
first ``depth`` documents of each system.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import check_kind
from exactrank._support.arrays import PerDocument
from exactrank._support.files import whole_file
from exactrank._support.json_values import JSONValue, encode_dataclass
from exactrank._support.pictures import COLORS, INK, QUIET, Plottable, can_draw, caption, draw_steps, picture_html
from exactrank._support.tables import LETTERS, Table, Tabular, Values, by_column, small_table
from exactrank._support.text import clip, printable
from exactrank.cutoffs.cutoff import Cutoff
from exactrank.data.formats.base import Columns
from exactrank.data.formats.trec import RetrievalRun
from exactrank.data.ranking_data import RankingData
from exactrank.errors import DataError, IncompatibleError
from exactrank.fusion.bounds import CurveBounds
from exactrank.fusion.by_query import ByQuery, QueryWeights, features_of
from exactrank.fusion.certificate import Certificate
from exactrank.fusion.engines import ENGINES
from exactrank.fusion.engines.base import DEPTH, EngineSettings
from exactrank.fusion.normalize import cut_lists, normalize_systems, parse_normalization
from exactrank.fusion.problem import FusionProblem, Sweep, weighted_sum
from exactrank.fusion.resample import Pair, RankingComparison
from exactrank.fusion.systems import Source, select_systems, systems_without_grades
from exactrank.measures.base import Measure
from exactrank.measures.machine_grades import CorrectedMean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT, VERSION = "exactrank-fusion", 1
Frame = TypeVar("Frame")  #: a pandas, polars or Arrow frame
Optimum = Literal["global", "certified", "local"]
OPTIMA: Mapping[str, Optimum] = {"global": "global", "certified": "certified", "local": "local"}
NAMED = 5  #: systems that ``repr`` names
OPTIONAL = ("constraints", "by", "machine")  #: parts of a record that are left out if there are none
SIZE = 10  #: documents of a result, where the measure has no cutoff
BEST = COLORS[1]
PICTURE_COLUMNS = 1500  #: approximate width of a picture in pixels


@dataclass(frozen=True)
class FusionRecord:
    """The content of a fusion's file besides its format and version; intervals are by system, like weights."""

    weights: Mapping[str, float]
    normalize: str
    absent: str
    engine: str | None
    depth: int | None
    measure: str
    value: float
    cross_validated: float | None
    interval: Mapping[str, Pair]
    bootstrap_interval: Mapping[str, Pair] | None
    optimum: str
    certificate: Certificate | None
    comparison: tuple[RankingComparison, ...]
    normalizations: tuple[RankingComparison, ...]
    constraints: Mapping[str, float] | None
    by: QueryWeights | None
    machine: CorrectedMean | None = None


@dataclass(frozen=True, repr=False)
class Fusion(Tabular, Plottable):
    """Tuned weights with their statistics; [`er.fuse`][exactrank.fuse] makes one, [`er.load`][exactrank.load] reads one."""

    systems: tuple[str, ...]
    weights: tuple[float, ...]  #: one per system; their absolute values add up to 1
    normalize: str
    absent: str
    measure: Measure
    value: float  #: of the measure, on the queries that the weights were tuned on
    interval: tuple[Pair, ...]  #: ends between which each weight can move, the others in proportion, without changing the value
    bootstrap_interval: tuple[Pair, ...] | None  #: the 95% interval of each weight; beyond two systems with the others in proportion
    cross_validated: float | None
    optimum: Optimum
    certificate: Certificate | None  #: of three systems, by a positional measure
    comparison: tuple[RankingComparison, ...]
    sweep: Sweep | None = None  #: the measure against the weight, of two systems; not in the file
    engine: str | None = None  #: the engine that it was tuned for
    depth: int | None = None  #: number of documents of each system's list that count
    normalizations: tuple[RankingComparison, ...] = ()  #: held-out values of all that were compared, with the gain of the chosen one
    bounds: CurveBounds | None = None  #: of the measure against the weight, over all grades of unjudged documents; not in the file
    constraints: Mapping[str, float] = field(default_factory=dict)  #: satisfied by the weights, each with the value of its measure
    by: QueryWeights | None = None  #: how weights depend on the query, or what that would have gained
    machine: CorrectedMean | None = None  #: the cross-validated value, or in sample without folds, if a machine's grades correct it
    cutoff: Cutoff | None = None  #: which fused documents are kept

    def with_cutoff(self, cutoff: Cutoff | None) -> "Fusion":
        """Return the fusion with a ``cutoff``, or with None without one; it is saved with the weights."""
        check_kind("cutoff", cutoff, (Cutoff, type(None)), "what er.cutoff returns, or None")
        return replace(self, cutoff=cutoff)

    def predict(self, data: RankingData, by: ByQuery | None = None) -> PerDocument:
        """Return the fused score of each row of ``data``, in the caller's order; -inf for a document that is not ranked or not kept.

        ``by`` has the features of each query, if the weights depend on them.
        """
        lists = select_systems(data, self.systems)
        X = lists.X if self.depth is None else cut_lists(lists.X, lists.indptr, self.depth)
        values, ranked = normalize_systems(X, lists.indptr, self.normalize, self.absent, lists.offset)
        combine = (self.engine and ENGINES[self.engine].combine) or weighted_sum
        weights = np.repeat(self._weights_of([str(query) for query in lists.qid.tolist()], by), lists.sizes, axis=0).T
        scores = data.ungroup(FusionProblem(self.measure, lists, values, ranked, combine=combine).scores(weights))
        return scores if self.cutoff is None else self.cutoff.apply(data, scores)

    def weights_for(self, query: Mapping[str, float | str]) -> dict[str, float]:
        """Return the weight of each system for a query with these features.

        >>> from exactrank.fusion.by_query import QueryFeature, QueryWeights
        >>> from exactrank.measures import NDCG
        >>> by = QueryWeights((QueryFeature("intent", ("brand",)),), {"intent=brand": (0.3, -0.3)}, 1.0, 0.02, None)
        >>> fusion = Fusion(("bm25", "dense"), (0.5, 0.5), "min-max", "worst", NDCG(), 0.8, (), None, 0.8, "global", None, (), by=by)
        >>> fusion.weights_for({"intent": "brand"}), fusion.weights_for({"intent": "advice"})
        ({'bm25': 0.8, 'dense': 0.2}, {'bm25': 0.5, 'dense': 0.5})
        """
        (weights,) = self._weights_of(["the query"], {"the query": query}).tolist()
        return dict(zip(self.systems, weights, strict=True))

    def _weights_of(self, queries: Sequence[str], by: ByQuery | None) -> npt.NDArray[np.float64]:
        """Return the weights of the systems for each query."""
        if self.by is None or not self.by.is_kept:
            return np.tile(self.weights, (len(queries), 1))
        if by is None:
            raise DataError(f"the weights depend on {self.by.names} of the query; give by={{query: {{feature: value}}}} (--by FILE)")
        return self.by.weights(np.array(self.weights), features_of(by, queries), queries)

    def apply(
        self, results: Mapping[str, Source] | Frame, columns: Columns | None = None, by: ByQuery | None = None
    ) -> RetrievalRun | Frame:
        """Fuse new results: return a frame with a column ``score``, or a run.

        ``results`` is a pandas, polars or Arrow frame with one row per query and document and one column per system, null if the system did
        not retrieve the document; it needs no grades, and is returned with the fused scores, null for a document that is not ranked. Or
        it maps the systems' names to files of runs or to the results of [`er.read_run`][exactrank.read_run], and a run is returned, which
        [`er.write_run`][exactrank.write_run] writes. ``by`` is that of `predict`.
        """
        if not isinstance(results, Mapping):
            return self._apply_to_frame(results, columns or Columns(), by)
        data, scores = self.apply_to_runs(results, by)
        assert data.docid is not None
        rows = np.flatnonzero(np.isfinite(scores))
        query = np.repeat(np.arange(data.n_queries), data.sizes)[rows]
        rows = rows[np.lexsort((-scores[rows], query))]
        qid = np.repeat(data.qid, data.sizes)[rows].tolist()
        return RetrievalRun(qid, data.docid.take(rows).tolist(), scores[rows], "fusion")

    def apply_to_runs(self, runs: Mapping[str, Source], by: ByQuery | None = None) -> tuple[RankingData, PerDocument]:
        """Return all documents of the runs, and their fused scores."""
        self._check_systems(runs)
        data = systems_without_grades({name: runs[name] for name in self.systems})
        return data, self.predict(data, by)

    def _apply_to_frame(self, frame: Frame, columns: Columns, by: ByQuery | None) -> Frame:
        from exactrank._support.libraries import library
        from exactrank.data.frame import table_of

        table, nw = table_of(frame, "frame"), library("narwhals")
        self._check_systems([name for name in self.systems if name in table.columns])
        if "score" in table.columns:
            raise DataError("the frame already has a column 'score', the name of the fused scores; rename it")
        graded = table.select(columns.query, *self.systems).with_columns(nw.lit(0.0).alias(columns.relevance))
        scores = self.predict(RankingData.from_frame(graded.to_native(), replace(columns, features=self.systems)), by)
        fused = nw.new_series("score", scores, nw.Float64, backend=table.implementation)
        finite = nw.when(nw.col("score").is_finite()).then("score").alias("score")
        result: Frame = table.with_columns(fused).with_columns(finite).to_native()
        return result

    def _check_systems(self, systems: Iterable[str]) -> None:
        """Raise if these are not the systems of the fusion."""
        names = list(systems)
        lacking = [f"lacks {name!r}" for name in self.systems if name not in names]
        unknown = [f"has {name!r} besides" for name in names if name not in self.systems]
        if lacking or unknown:
            raise DataError(
                f"the fusion is of systems {', '.join(self.systems)}, but the input {' and '.join(lacking + unknown)}; "
                "give the scores of each of them, by that name (of runs: NAME=FILE)"
            )

    def configuration(self, parts: Mapping[str, JSONValue] | None = None, query: Mapping[str, float | str] | None = None) -> str:
        """Return the configuration with which the engine computes exactly these scores, as JSON, or as text for Vespa.

        ``parts`` has each system's counterpart in the engine: a retriever of Elasticsearch, a query of OpenSearch, a prefetch of Qdrant, a
        rank feature of Vespa. A missing one is written as a placeholder in capitals. Weights that depend on the query are those of a
        ``query`` with these features.
        """
        if self.engine is None:
            raise IncompatibleError(f"the weights were not tuned for an engine; tune them with engine= one of {', '.join(ENGINES)}")
        depth, (name, k) = self.depth or DEPTH, parse_normalization(self.normalize)
        size = min(depth, SIZE) if self.measure.k is None else self.measure.k
        (weights,) = self._weights_of(["the query"], None if query is None else {"the query": query}).tolist()
        return ENGINES[self.engine].write(EngineSettings(self.systems, weights, name, k, depth, size, parts or {}))

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write everything except the sweep, for [`er.load`][exactrank.load]; an existing file is replaced only with ``force``."""
        content = self.to_bytes()
        with whole_file(path, force=force) as file:
            file.write(content)

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        return (json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n").encode()

    def to_json(self) -> dict[str, JSONValue]:
        """Return the content of the file, ready for ``json.dumps``; ``weights`` by the systems' names."""
        from exactrank import __version__

        intervals = self.bootstrap_interval
        record = FusionRecord(
            weights=dict(zip(self.systems, self.weights, strict=True)),
            normalize=self.normalize,
            absent=self.absent,
            engine=self.engine,
            depth=self.depth,
            measure=repr(self.measure),
            value=self.value,
            cross_validated=self.cross_validated,
            interval=dict(zip(self.systems, self.interval, strict=True)),
            bootstrap_interval=None if intervals is None else dict(zip(self.systems, intervals, strict=True)),
            optimum=self.optimum,
            certificate=self.certificate,
            comparison=self.comparison,
            normalizations=self.normalizations,
            constraints=self.constraints or None,
            by=self.by,
            machine=self.machine,
        )
        content = {name: value for name, value in encode_dataclass(record).items() if value is not None or name not in OPTIONAL}
        header: dict[str, JSONValue] = {"format": FORMAT, "version": VERSION, "library": __version__}
        return header | content | ({} if self.cutoff is None else {"cutoff": self.cutoff.to_record()})

    def __repr__(self) -> str:
        named = list(zip(self.systems, self.weights, strict=True))[:NAMED]
        weights = ", ".join(f"{clip(printable(name), LETTERS)} {weight:.4f}" for name, weight in named)
        rest = f", … and {len(self.systems) - NAMED:,} more" if len(self.systems) > NAMED else ""
        constraints = "".join(f", {constraint} ({value:.4f})" for constraint, value in self.constraints.items())
        by = f" by {self.by.names}" if self.by is not None and self.by.is_kept else ""
        machine = "" if self.machine is None else f", corrected: {self.machine.remark}"
        how = f"{self.normalize}, {self.optimum} optimum{machine}"
        return f"Fusion({self.measure} {self.value:.4f}{constraints} with {weights}{rest}{by}; {how})"

    def _columns(self) -> dict[str, Values]:
        intervals = self.bootstrap_interval or [(np.nan, np.nan)] * len(self.systems)
        (low, high), (flat_low, flat_high) = (zip(*pairs, strict=True) for pairs in (intervals, self.interval))
        ends = {"low": list(low), "high": list(high), "flat_low": list(flat_low), "flat_high": list(flat_high)}
        return {"system": self.systems, "weight": self.weights, **ends}

    def _glance(self) -> Table:
        rows = by_column(self.comparison, "name", "mean", "gain")
        return small_table(repr(self), list(rows.items()), len(self.comparison))

    def _repr_html_(self) -> str:
        has_picture = len(self.systems) == 2 and self.sweep is not None and can_draw()
        return super()._repr_html_() + (picture_html(self) if has_picture else "")

    def _draw(self, axes: "Axes", **options: object) -> None:
        """Draw the exact step function, its optimum with the interval, and the values of the baselines."""
        sweep = self.sweep
        if len(self.systems) > 2:
            raise IncompatibleError(f"a picture shows one weight against another, but there are {len(self.systems)} systems; fuse two")
        if sweep is None:
            raise IncompatibleError("a fusion that was read from a file has no sweep to draw; tune the weights again")
        best = sweep.best
        second = int(np.argmax(np.abs(sweep.end)))  # the number of the system whose weight grows along the axis
        falls, grows = self.systems[1 - second], self.systems[second]

        draw_steps(axes, sweep.steps.breakpoints, sweep.steps.values, np.linspace(0.0, 1.0, PICTURE_COLUMNS), label="every weight, exactly")
        if self.bounds is not None:
            for curve, label in ((self.bounds.upper, "bounds for all grades of unjudged documents"), (self.bounds.lower, None)):
                draw_steps(axes, curve.breakpoints, curve.values, np.linspace(0.0, 1.0, PICTURE_COLUMNS), color=QUIET, label=label)
        low, high = (0.0, 0.0) if self.bootstrap_interval is None else self.bootstrap_interval[second]
        if 0 <= low * sweep.end[second] < high * sweep.end[second]:  # negative weights may be spread over several axes
            axes.axvspan(low, high, color=BEST, alpha=0.08, linewidth=0, label="95% interval, by bootstrap")
        axes.axvspan(best.low, best.high, color=BEST, alpha=0.35, linewidth=1)  # an edge shows where it is too narrow to see
        axes.plot(best.middle(), best.value, "o", color=BEST, label=f"best: {best.value:.4f} at {best.middle():.4f}")

        values = {row.name: row.mean for row in self.comparison}
        if np.all(sweep.start + sweep.end > 0):  # with a negative weight the axis has no system alone, nor equal weights
            for at, name in enumerate((falls, grows)):
                label = f"{caption(name)} alone: {values[name]:.4f}"
                axes.plot(at, values[name], "s^"[at], color=INK, clip_on=False, zorder=3, label=label)
            axes.plot(0.5, values["CombSUM"], "D", color=INK, label=f"equal weights: {values['CombSUM']:.4f}")
        rrf = values["RRF (k=60)"]  # which has no place on the axis
        axes.axhline(rrf, color=QUIET, linewidth=1, linestyle="--", label=f"RRF (k=60): {rrf:.4f}")

        sign, first_sign = (" -" if side[j] < 0 else " " for side, j in ((sweep.end, second), (sweep.start, 1 - second)))
        weight = f"weight of{sign}{caption(grows)} (that of{first_sign}{caption(falls)} is 1 minus this)"
        axes.set(xlim=(0, 1), xlabel=weight, ylabel=f"{self.measure}, mean over queries")
        axes.margins(y=0.12)
        if self.constraints:  # where one is violated, the function falls below the picture
            shown_values = [*sweep.steps.values[sweep.steps.values >= 0], *values.values()]
            axes.set_ylim(min(shown_values) - 0.12 * (max(shown_values) - min(shown_values) + 1e-3))
        axes.legend(loc="best", frameon=True, framealpha=0.8, edgecolor="none")
