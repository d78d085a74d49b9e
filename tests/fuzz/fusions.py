"""Files of fusions: of two systems and three, for engines and for none, with parts of them changed."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import exactrank as er
from tests.fuzz.models import JSON
from tests.fuzz.mutations import changed_json, mutated, one_of
from tests.fuzz.target import Target, require

NAMES = ("bm25", "dense", "rerank")
MOST = 100  #: systems of a fusion that is tried on rows


def systems(n: int, names: tuple[str, ...]) -> er.RankingData:
    """Random results of ``n`` systems."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, n)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = np.nan
    return er.RankingData.from_arrays(X, rng.integers(0, 3, 40), group=[10] * 4, feature_names=names)


@cache
def good_fusions() -> list[Any]:
    """Fusions with all that a file may hold."""
    two, three = (systems(n, NAMES[:n]) for n in (2, 3))
    results = [er.fuse(two, folds=2), er.fuse(three, folds=2, cells=3, bootstrap=3), er.fuse(two, normalize="all", folds=3, bootstrap=3)]
    results += [er.fuse(two, engine=name, folds=0, bootstrap=0) for name in ("elasticsearch", "opensearch-rrf", "vespa", "weaviate")]
    return [json.loads(fusion.to_bytes()) for fusion in results]


def fusion_json(rng: np.random.Generator) -> bytes:
    """A good fusion with parts of it changed, as JSON or as bytes."""
    fusion = one_of(rng, good_fusions())
    if rng.random() < 0.5:
        return mutated(rng, json.dumps(fusion).encode(), JSON)
    return json.dumps(changed_json(rng, fusion)).encode()


def use_fusion(path: Path) -> None:
    """Load, apply, configure the engine, save, and load the same."""
    fusion = er.load(path, kind=er.Fusion)
    if len(fusion.systems) > MOST:
        return
    require(len(fusion.predict(systems(len(fusion.systems), fusion.systems))) == 40, "every row has a score")
    if fusion.engine is not None:
        require(fusion.configuration(), "an engine has a configuration")
    again = path.with_suffix(".again")
    fusion.save(again, force=True)
    require(er.load(again, kind=er.Fusion).to_json() == fusion.to_json(), "a saved fusion is as before")


TARGETS = [Target("fusions", ".json", fusion_json, use_fusion)]
