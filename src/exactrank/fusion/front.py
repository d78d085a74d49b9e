"""The Pareto front of two measures: no other point is better by one measure and as good by the other."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from exactrank._support.arrays import Floats, Rows
from exactrank._support.files import whole_file
from exactrank._support.json_values import JSONValue
from exactrank._support.pictures import COLORS, INK, Plottable
from exactrank._support.tables import Table, Tabular, Values, small_table
from exactrank.errors import DataError, SettingError
from exactrank.learning.objectives.step_function import SAME_VALUE
from exactrank.measures.base import Measure
from exactrank.models.linear import Linear
from exactrank.models.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def pareto_rows(values: Floats, width: Floats) -> Rows:
    """Return the rows of ``values``, points x 2, that no other dominates, among equals the widest; the first measure falls.

    >>> pareto_rows(np.array([[0.5, 0.5], [0.9, 0.1], [0.4, 0.4], [0.5, 0.5]]), np.array([1.0, 1.0, 1.0, 2.0])).tolist()
    [1, 3]
    """
    rounded = np.round(values / SAME_VALUE)
    order = np.lexsort((-width, -rounded[:, 1], -rounded[:, 0]))
    second = values[order, 1]
    before = np.maximum.accumulate(np.append(-np.inf, second[:-1]))
    rows = order[second > before + SAME_VALUE]
    return np.asarray(rows[np.append(values[rows[:-1], 0] > values[rows[1:], 0] + SAME_VALUE, True)[: len(rows)]])


@dataclass(frozen=True)
class ParetoPoint:
    """A point of the front: the weights, the values of both measures, and the model with these weights if the front is of a model."""

    weights: Mapping[str, float]
    values: Mapping[str, float]
    model: Model | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ParetoFront(Tabular, Plottable):
    """The points of the front, by the first measure from its largest value down, with the weights that reach each.

    [`er.pareto`][exactrank.pareto] and [`er.tradeoff`][exactrank.tradeoff] make one.
    """

    measures: Mapping[str, Measure]  #: two, by their names as given
    names: tuple[str, ...]  #: of the weights: systems, features, or alpha along a ray
    values: Floats  #: points x 2
    weights: Floats  #: points x names
    complete: bool  #: False if only some lines of weights were searched
    start: tuple[float, float] | None = None  #: both measures of the caller's model
    model: Model | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        first, second = self.measures
        (first_high, second_low), (first_low, second_high) = self.values[0], self.values[-1]
        exact = "complete" if self.complete else "found by search"
        ranges = f"{first} {first_high:.4f} to {first_low:.4f}, {second} {second_low:.4f} to {second_high:.4f}"
        return f"ParetoFront({len(self):,} points, {exact}: {ranges})"

    def at(self, **least: float) -> ParetoPoint:
        """Return the best point by one measure whose other measure has at least the given value, as in ``front.at(revenue=0.31)``.

        Name the measure in full or up to its @.
        """
        if len(least) != 1:
            raise SettingError(f"at takes the least value of one of {', '.join(self.measures)}, e.g. at(revenue=0.31); got {len(least)}")
        ((name, level),) = least.items()
        fits = [j for j, measure in enumerate(self.measures) if name in (measure, measure.partition("@")[0].partition("(")[0])]
        if len(fits) != 1:
            raise SettingError(f"{name!r} names {'both' if fits else 'none'} of {', '.join(self.measures)}; give one of them in full")
        reached = np.flatnonzero(self.values[:, fits[0]] >= level - SAME_VALUE)
        if not len(reached):
            raise DataError(f"no point has {name} of {level:g}; the largest is {self.values[:, fits[0]].max():.6g}")
        return self.point(int(reached[-1] if fits[0] == 0 else reached[0]))

    def point(self, number: int) -> ParetoPoint:
        """Return a point by its number, from 0."""
        weights, model = self.weights[number], self.model
        if model is not None and isinstance(model.scorer, Linear):
            model = replace(model, scorer=replace(model.scorer, weights=weights), training={}, run=None)
        named = dict(zip(self.names, weights.tolist(), strict=True))
        return ParetoPoint(named, dict(zip(self.measures, self.values[number].tolist(), strict=True)), model)

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the points as a CSV file, one row per point: both measures, then the weights."""
        with whole_file(path, force=force) as file:
            file.write(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        columns = self._columns()
        rows = list(zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True))
        return Table("", tuple(columns), rows).csv().encode()

    def to_json(self) -> dict[str, JSONValue]:
        """Return the front as plain values."""
        points = [{"values": dict(point.values), "weights": dict(point.weights)} for point in map(self.point, range(len(self)))]
        return {"measures": {name: repr(measure) for name, measure in self.measures.items()}, "complete": self.complete, "points": points}

    def _columns(self) -> dict[str, Values]:
        values: dict[str, Values] = dict(zip(self.measures, self.values.T, strict=True))
        return values | dict(zip(self.names, self.weights.T, strict=True))

    def _glance(self) -> Table:
        return small_table(repr(self), list(self._columns().items()), len(self))

    def _draw(self, axes: "Axes", **options: object) -> None:
        first, second = self.measures
        x, y = self.values.T
        # Between two points no value is better than their common corner.
        axes.step(x, y, where="post", color=COLORS[0], linewidth=1.2, alpha=0.6)
        axes.plot(x, y, "o", color=COLORS[0], markersize=3, label=f"front: {len(self):,} points")
        if self.start is not None:
            axes.plot(*self.start, "D", color=INK, markersize=9, label="the model as given")
        for name, number, at in ((first, 0, "s"), (second, -1, "^")):
            label = f"largest {name}: {self.values[number, 0]:.4g} and {self.values[number, 1]:.4g}"
            axes.plot(x[number], y[number], at, color=COLORS[1], label=label)
        axes.set(xlabel=f"{first}, mean over queries", ylabel=f"{second}, mean over queries")
        axes.legend()
