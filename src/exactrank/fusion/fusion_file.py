"""The file of a fusion: JSON, described in ``docs/fuse.md``, read strictly and checked before use. Nothing in it is ever run."""

import math
import reprlib
from typing import Any, get_type_hints

from exactrank._support.json_values import JSONObject, decode_record
from exactrank.cutoffs.cutoff import read_cutoff
from exactrank.errors import DataError, ExactRankError
from exactrank.fusion.engines import ENGINES
from exactrank.fusion.fusion import FORMAT, OPTIMA, VERSION, Fusion, FusionRecord
from exactrank.fusion.normalize import ABSENT, parse_normalization
from exactrank.measures.parse import parse_measure
from exactrank.models.formats.content import Reader

SUM = 1e-6  #: maximum distance of the sum of absolute weights from 1


def read_fusion(record: JSONObject, path: str) -> Fusion:
    """Return the fusion in a parsed file; errors name its ``path``."""
    if record.get("version") != VERSION:
        raise DataError(
            f"{path}: the version is {reprlib.repr(record.get('version'))} but this exactrank reads {VERSION}; install a newer one"
        )

    def check(key: str, is_valid: bool) -> None:
        if not is_valid:
            value = reprlib.repr(record[key]) if key in record else "missing"
            raise DataError(f"{path}: {key!r} is {value}; the file is damaged, so tune the weights or copy the file again")

    values: dict[str, Any] = {}
    for key, hint in get_type_hints(FusionRecord).items():
        try:
            values[key] = decode_record(hint, record.get(key))
        except (TypeError, ValueError):
            check(key, False)
    content = FusionRecord(**values)
    weights, systems, engine = list(content.weights.values()), tuple(content.weights), content.engine
    check("weights", len(weights) > 1 and abs(math.fsum(map(abs, weights)) - 1) <= SUM)  # False for NaN
    check("engine", engine is None or engine in ENGINES)
    check("depth", content.depth is None or content.depth >= 1)
    check("absent", content.absent in ABSENT)
    check("optimum", content.optimum in OPTIMA)
    check("interval", tuple(content.interval) == systems)
    check("bootstrap_interval", content.bootstrap_interval is None or tuple(content.bootstrap_interval) == systems)
    if content.by is not None:
        columns = [column for feature in content.by.features for column in feature.columns]
        check("by", list(content.by.moves) == columns and all(feature.deviation > 0 for feature in content.by.features))
        check("by", all(len(row) == len(systems) and abs(math.fsum(row)) <= SUM for row in content.by.moves.values()))
    try:
        normalization, _ = parse_normalization(content.normalize)
        measure = parse_measure(content.measure)
    except ExactRankError as error:
        raise DataError(f"{path}: {error}") from None
    if engine:
        check("normalize", normalization in ENGINES[engine].normalizations)
        check("weights", ENGINES[engine].signed or min(weights) >= 0)
    return Fusion(
        systems=systems,
        weights=tuple(weights),
        normalize=content.normalize,
        absent=content.absent,
        measure=measure,
        value=content.value,
        interval=tuple(content.interval.values()),
        bootstrap_interval=None if content.bootstrap_interval is None else tuple(content.bootstrap_interval.values()),
        cross_validated=content.cross_validated,
        optimum=OPTIMA[content.optimum],
        certificate=content.certificate,
        comparison=content.comparison,
        engine=engine,
        depth=content.depth,
        normalizations=content.normalizations,
        constraints=content.constraints or {},
        by=content.by,
        machine=content.machine,
        cutoff=read_cutoff(record.get("cutoff"), path),
    )


READER = Reader(lambda content: content.record.get("format") == FORMAT, lambda content: read_fusion(content.record, content.where))
