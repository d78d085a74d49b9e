"""Small files that name numbers or other files: propensities by rank, and the list of the files of data in several."""

import json
from functools import cache
from pathlib import Path

import numpy as np

import exactrank as er
from exactrank.clicks.propensities import read_propensities
from exactrank.data.shards import Shard, manifest_of
from tests.data.forged_cache import cache_bytes
from tests.fuzz.mutations import ODD_WORDS, changed_json, mutated, one_of
from tests.fuzz.target import Target, require

CELLS = [b",", b"\n", b"rank", b"propensity", b"1", b"2", b"0.5", b"1e-9", b"1048577", *ODD_WORDS]
JSON = [b'"rank"', b'"propensities"', b"null", b"true", b"{", b"[", b"]", b"}", b"1e999", b"[" * 5000, *ODD_WORDS]
PART = "part-0.xr"


def propensities_text(rng: np.random.Generator) -> bytes:
    """Good propensities as CSV, or as what a command prints, with some of it changed."""
    ranks = np.sort(rng.choice(30, int(rng.integers(1, 9)), replace=False)) + 1
    rows = [{"rank": int(k), "propensity": float(value)} for k, value in zip(ranks, rng.uniform(0.01, 1, len(ranks)), strict=True)]
    if rng.random() < 0.5:
        text = "\n".join(["rank,propensity", *(f"{row['rank']},{row['propensity']}" for row in rows)])
        return mutated(rng, text.encode(), CELLS)
    record = {"method": "given", "propensities": rows}
    if rng.random() < 0.5:
        return mutated(rng, json.dumps(record).encode(), JSON)
    return json.dumps(changed_json(rng, record)).encode()


def use_propensities(path: Path) -> None:
    """Read propensities, look them up and show them."""
    result = read_propensities(path)
    require(np.all(result.rank[1:] > result.rank[:-1]) and result.rank[0] >= 1, "each rank from 1 is there once")
    require(np.all((result.value > 0) & (result.value <= 1)), "propensities are above 0 and at most 1")
    require(np.array_equal(result.at(result.rank), result.value) and repr(result) and result.to_json(), "propensities can be used")


@cache
def part() -> bytes:
    """A cache of two queries."""
    return cache_bytes(er.RankingData.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 0], group=[2, 1]))


def manifest(rng: np.random.Generator) -> bytes:
    """The list of one or two files, of which one is there, with some of it changed."""
    text = manifest_of([Shard(one_of(rng, [PART, "part-1.xr"])) for _ in range(rng.integers(1, 3))])
    if rng.random() < 0.5:
        return mutated(rng, text.encode(), JSON)
    return json.dumps(changed_json(rng, json.loads(text))).encode()


def use_manifest(path: Path) -> None:
    """Evaluate what the files hold."""
    (path.parent / PART).write_bytes(part())
    (value,) = er.evaluate(er.read_shards(path), er.Model(er.models.Linear(np.array([1.0]))), "RR").means.values()
    require(0 <= value <= 1, "RR lies between 0 and 1")


TARGETS = [
    Target("propensities", ".csv", propensities_text, use_propensities),
    Target("manifests", ".json", manifest, use_manifest),
]
