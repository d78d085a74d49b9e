"""The file of a fusion: JSON, described in ``docs/fuse.md``, read strictly and checked before use. Nothing in it is ever run."""

import math
import reprlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from exactrank.errors import DataError, ExactRankError
from exactrank.fusion.certificate import Certificate
from exactrank.fusion.engines import ENGINES
from exactrank.fusion.fusion import FORMAT, VERSION, Fusion
from exactrank.fusion.normalize import ABSENT, parse_normalization
from exactrank.fusion.resample import Compared, Pair
from exactrank.measures.parse import parse_measure
from exactrank.models.formats.content import Reader

OPTIMA = ("global", "certified", "local")
SUM = 1e-6  #: how far the sum of absolute weights may be from 1


def read_fusion(record: Mapping[str, Any], where: str) -> Fusion:
    """The fusion that a parsed file holds."""
    if record.get("version") != VERSION:
        raise DataError(
            f"{where}: the version is {reprlib.repr(record.get('version'))} but this exactrank reads {VERSION}; install a newer one"
        )
    file = _File(record, where)
    weights = file.weights()
    systems = tuple(weights)
    normalize, measure = file.text("normalize"), file.text("measure")
    engine = None if record.get("engine") is None else file.one_of("engine", tuple(ENGINES))
    depth, cross_validated, bounds = record.get("depth"), record.get("cross_validated"), record.get("certificate")
    if depth is not None and (not isinstance(depth, int) or isinstance(depth, bool) or depth < 1):
        raise file.damaged("depth")
    try:
        name, _ = parse_normalization(normalize)
        parsed = parse_measure(measure)
    except ExactRankError as error:
        raise DataError(f"{where}: {error}") from None
    if engine and name not in ENGINES[engine].normalizations:
        raise file.damaged("normalize")
    if engine and not ENGINES[engine].signed and min(weights.values()) < 0:
        raise file.damaged("weights")
    return Fusion(
        systems=systems,
        weights=tuple(weights.values()),
        normalize=normalize,
        absent=file.one_of("absent", ABSENT),
        measure=parsed,
        value=file.number("value", record.get("value")),
        interval=file.pairs("interval", systems),
        bootstrap_interval=None if record.get("bootstrap_interval") is None else file.pairs("bootstrap_interval", systems),
        cross_validated=None if cross_validated is None else file.number("cross_validated", cross_validated),
        optimum=file.one_of("optimum", OPTIMA),  # type: ignore[arg-type]
        certificate=None if bounds is None else file.certificate(bounds),
        comparison=file.compared("comparison"),
        engine=engine,
        depth=depth,
        normalizations=file.compared("normalizations"),
        constraints=file.constraints(),
    )


class _File:
    """The parts of a file, each once it is what it should be."""

    def __init__(self, record: Mapping[str, Any], where: str) -> None:
        self.record, self.where = record, where

    def damaged(self, key: str) -> DataError:
        """What to raise where the value of ``key`` is wrong."""
        found = reprlib.repr(self.record[key]) if key in self.record else "missing"
        return DataError(f"{self.where}: {key!r} is {found}; the file is damaged, so tune the weights or copy the file again")

    def text(self, key: str) -> str:
        if not isinstance(self.record.get(key), str):
            raise self.damaged(key)
        return str(self.record[key])

    def one_of(self, key: str, known: Sequence[str]) -> str:
        if self.record.get(key) not in known:
            raise self.damaged(key)
        return str(self.record[key])

    def number(self, key: str, value: Any) -> float:
        """A finite number; null is one that could not be computed."""
        if value is None:
            return math.nan
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            raise self.damaged(key)
        return float(value)

    def weights(self) -> dict[str, float]:
        found = self.record.get("weights")
        if not isinstance(found, dict) or len(found) < 2 or None in found.values():
            raise self.damaged("weights")
        weights = {name: self.number("weights", value) for name, value in found.items()}
        if abs(math.fsum(map(abs, weights.values())) - 1) > SUM:
            raise self.damaged("weights")
        return weights

    def pair(self, key: str, value: Any) -> Pair:
        if not isinstance(value, list) or len(value) != 2:
            raise self.damaged(key)
        return self.number(key, value[0]), self.number(key, value[1])

    def pairs(self, key: str, systems: tuple[str, ...]) -> tuple[Pair, ...]:
        found = self.record.get(key)
        if not isinstance(found, dict) or tuple(found) != systems:
            raise self.damaged(key)
        return tuple(self.pair(key, value) for value in found.values())

    def constraints(self) -> dict[str, float]:
        found = self.record.get("constraints", {})
        if not isinstance(found, dict):
            raise self.damaged("constraints")
        return {name: self.number("constraints", value) for name, value in found.items()}

    def certificate(self, bounds: Any) -> Certificate:
        cells = bounds.get("cells") if isinstance(bounds, dict) and set(bounds) == {"lower", "upper", "cells"} else None
        if not isinstance(cells, int) or isinstance(cells, bool):
            raise self.damaged("certificate")
        return Certificate(self.number("certificate", bounds["lower"]), self.number("certificate", bounds["upper"]), cells)

    def compared(self, key: str) -> tuple[Compared, ...]:
        rows = self.record.get(key)
        if not isinstance(rows, list):
            raise self.damaged(key)
        return tuple(self._row(key, row) for row in rows)

    def _row(self, key: str, row: Any) -> Compared:
        if not isinstance(row, dict) or not isinstance(row.get("name"), str):
            raise self.damaged(key)
        interval, gain, between = (row.get(part) for part in ("interval", "gain", "gain_interval"))
        return Compared(
            row["name"],
            self.number(key, row.get("mean")),
            None if interval is None else self.pair(key, interval),
            None if gain is None else self.number(key, gain),
            None if between is None else self.pair(key, between),
        )


READER = Reader(lambda content: content.record.get("format") == FORMAT, lambda content: read_fusion(content.record, content.where))
