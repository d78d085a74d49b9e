"""Examination probabilities of ranks: estimated by a click model or given, with bootstrap intervals and a picture.

A bootstrap sample (Efron 1979) draws as many sessions as there are, with replacement, or queries if the log has no sessions. An
interval holds the middle 95% of the estimates of the samples.
"""

import csv
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exactrank._support.arguments import check_count
from exactrank._support.arrays import Floats, Rows
from exactrank._support.files import read_small_file
from exactrank._support.numerals import number, whole_number
from exactrank._support.numerics import power as power_of
from exactrank._support.pictures import COLORS, Plottable
from exactrank._support.tables import Tabular, Values
from exactrank._support.text import did_you_mean
from exactrank.clicks.log import Clicks, checked_ranks
from exactrank.clicks.position_based import comparable_cells, em, harvest, shrink
from exactrank.clicks.reading_down import cascade, check_cascade, dbn
from exactrank.data.duplicates import duplicate_places
from exactrank.data.validation import array_of, floats_of
from exactrank.errors import DataError
from exactrank.measures.bootstrap import MOST_RESAMPLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Given = str | Sequence[float] | Mapping[int, float] | npt.NDArray[np.float64]  #: a method, or numbers by rank
LARGEST_FILE = 1 << 26  #: maximum size in bytes of a file of propensities, which has a line per rank
METHODS = ("em", "harvest", "cascade", "dbn")
_POWER = re.compile(r"1/k(?:\^([0-9]*\.?[0-9]+))?")


@dataclass(frozen=True, eq=False, repr=False)
class Propensities(Tabular, Plottable):
    """The probability that each rank is looked at; build it with `Clicks.propensities`."""

    method: str  #: "em", "harvest", "cascade", "dbn", "given", or "true" of simulated clicks
    rank: Rows
    value: Floats
    low: Floats | None = None  #: the ends of the 95% intervals
    high: Floats | None = None
    units: str = ""  #: the units that the bootstrap drew, "sessions" or "queries"
    likelihood: tuple[float, ...] = ()  #: the log-likelihood after each cycle of EM

    def __post_init__(self) -> None:
        bad = np.flatnonzero(~((self.value > 0) & (self.value <= 1)))
        if len(bad):
            where = f"the propensity of rank {self.rank[bad[0]]} is {self.value[bad[0]]:g}"
            raise DataError(f"{where}; it must be above 0 and at most 1, so leave out ranks that nobody looks at, or divide by the largest")

    def at(self, ranks: npt.NDArray[np.integer]) -> Floats:
        """Return the propensities of ``ranks``."""
        table = np.full(int(max(ranks.max(), self.rank.max())) + 1, np.nan)
        table[self.rank] = self.value
        missing = np.flatnonzero(np.isnan(table[ranks]))
        if len(missing):
            have = f"ranks {self.rank.min()} to {self.rank.max()}"
            raise DataError(f"there is no propensity of rank {ranks[missing[0]]}, only of {have}; give one for each rank of the log")
        return np.asarray(table[ranks])

    def to_json(self) -> dict[str, Any]:
        """Return everything in a form for ``json.dumps``; undefined numbers are None."""
        columns = {name: np.asarray(values).tolist() for name, values in self._columns().items()}
        rows = zip(*columns.values(), strict=True)
        ranks = [{name: None if value != value else value for name, value in zip(columns, row, strict=True)} for row in rows]
        return {"method": self.method, "units": self.units or None, "propensities": ranks}

    def _columns(self) -> dict[str, Values]:
        ends: dict[str, Values] = {} if self.low is None or self.high is None else {"low": self.low, "high": self.high}
        return {"rank": self.rank, "propensity": self.value} | ends

    def _draw(self, axes: "Axes", **options: object) -> None:
        if self.low is not None and self.high is not None:
            axes.fill_between(self.rank, self.low, self.high, color=COLORS[0], alpha=0.2, linewidth=0, label="95% interval")
        axes.plot(self.rank, self.value, "o-", color=COLORS[0], markersize=4, label=f"propensity ({self.method})")
        if len(self.rank) <= 20:
            axes.set_xticks(self.rank)
        axes.set(xlabel="rank", ylabel="probability of being looked at", ylim=(0, 1.05))
        axes.legend(loc="upper right")

    def __repr__(self) -> str:
        first_values = ", ".join(f"{k}: {value:.3f}" for k, value in zip(self.rank[:5], self.value[:5], strict=True))
        ellipsis = f", ... ({len(self.rank)} ranks)" if len(self.rank) > 5 else ""
        return f"Propensities({self.method}, {first_values}{ellipsis})"


def propensities(log: Clicks, method: Given | Propensities, *, bootstrap: int = 200, seed: int = 0) -> Propensities:
    """Return estimates like `Clicks.propensities`, or ``method`` itself if it is a `Propensities`."""
    if isinstance(method, Propensities):
        return method
    if not isinstance(method, str) or method not in METHODS:
        return given_propensities(method, np.unique(log.rank))
    check_count("bootstrap", bootstrap, 0, MOST_RESAMPLES)
    check_count("seed", seed, 0)
    (unit_name, units_name), unit = (("query", "queries"), log.query) if log.session is None else (("session", "sessions"), log.session)
    units = len(np.unique(unit))
    if bootstrap and units < 2:
        raise DataError(f"the log has only one {unit_name}, so {units_name} cannot be resampled; give bootstrap=0 for no intervals")
    estimate, ranks, history = _estimator(log, method)
    point = estimate(None)
    samples = np.array([_normalize(estimate(times)) for times in _draws(unit, units, bootstrap, seed)])
    low, high = np.nanquantile(samples, [0.025, 0.975], axis=0) if bootstrap else (None, None)
    return Propensities(method, ranks, _normalize(point), low, high, units_name if bootstrap else "", tuple(history))


def _normalize(values: Floats) -> Floats:
    """Divide by the largest value, usually the first."""
    return np.asarray(values / np.nanmax(values))


def _draws(unit: npt.NDArray[np.int32], units: int, bootstrap: int, seed: int) -> Iterator[Floats]:
    """Yield the number of times that each row is in each bootstrap sample."""
    rng, number = np.random.default_rng(seed), np.unique(unit, return_inverse=True)[1]
    for _ in range(bootstrap):
        yield np.bincount(rng.integers(0, units, units), minlength=units).astype(np.float64)[number]


def _estimator(log: Clicks, method: str) -> tuple[Callable[[Floats | None], Floats], Rows, list[float]]:
    """Return a function that estimates from the log, or from a sample of its rows; the ranks; and the likelihoods of EM."""
    if method in ("cascade", "dbn"):
        if method == "cascade":
            check_cascade(log)
        estimate_down = partial(cascade if method == "cascade" else dbn, log)
        return lambda times: estimate_down(log.weights if times is None else log.weights * times), np.unique(log.rank), []
    cells, comparable = log.cells, comparable_cells(log.cells)
    full_parameters, history = em(comparable) if method == "em" else (np.empty(0), [])

    def estimate(times: Floats | None) -> Floats:
        sample = comparable if times is None else comparable.with_sums(*log.cell_sums(cells.cell, len(cells.rank), log.weights * times))
        if method == "harvest":
            return harvest(sample)
        return shrink(sample, full_parameters if times is None else em(sample, full_parameters[: len(comparable.ranks)])[0])

    return estimate, comparable.ranks, history


def given_propensities(numbers: Given, ranks: Rows) -> Propensities:
    """Return given numbers as propensities; a formula is evaluated at ``ranks``."""
    if isinstance(numbers, str):
        power = _POWER.fullmatch(numbers)
        if power is None:
            ways = ", ".join([*METHODS, "1/k", "1/k^0.7"])
            raise DataError(f"{numbers!r} is not a known method{did_you_mean(numbers, METHODS)}; use one of {ways}, or give numbers")
        return Propensities("given", ranks, power_of(ranks, -float(power[1] or 1)))
    value = floats_of("propensities", list(numbers.values()) if isinstance(numbers, Mapping) else numbers)
    if value.ndim != 1 or len(value) == 0:
        raise DataError(f"propensities have shape {value.shape}; give at least one number, one per rank from 1, or a method such as 'em'")
    if not isinstance(numbers, Mapping):
        return Propensities("given", np.arange(1, len(value) + 1), value)
    rank = checked_ranks(array_of(list(numbers)), "the rank of propensity {} (from 0)").astype(np.int64)
    order = np.argsort(rank)
    return Propensities("given", rank[order], value[order])


def read_propensities(path: str | os.PathLike[str]) -> Propensities:
    """Return the propensities in a file: CSV with the columns ``rank`` and ``propensity``, or what a command printed with ``--json``."""
    content = read_small_file(path, LARGEST_FILE)
    try:
        text = content.decode("utf-8")
        rows = json.loads(text)["propensities"] if text.lstrip().startswith("{") else list(csv.DictReader(text.splitlines()))
        numbers = [(whole_number(str(row["rank"])), number(str(row["propensity"]))) for row in rows]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        expected = "give CSV with the columns rank and propensity, or what exactrank generate or clicks printed with --json"
        raise DataError(f"{path} does not hold a propensity for each rank; {expected}") from None
    if (places := duplicate_places(rank for rank, _ in numbers)) is not None:
        raise DataError(
            f"{path}: the entries {places[0]} and {places[1]} (from 0) are both of rank {numbers[places[0]][0]}; remove one of them"
        )
    try:
        return given_propensities(dict(numbers), np.empty(0, np.int64))
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
