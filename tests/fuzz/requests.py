"""Bodies of requests to `exactrank serve`, as bytes and as JSON."""

import json
from pathlib import Path

import numpy as np

import exactrank as xr
from exactrank.serve.app import Rules, ranked
from exactrank.serve.documents import read_documents
from exactrank.serve.models import Served
from tests.fuzz.models import JSON
from tests.fuzz.mutations import changed_json, mutated, one_of, soup
from tests.fuzz.target import Target, require

SCORER = xr.Linear(np.array([1.0, -2.0]), ("a", "b"), missing="zero")
GOOD = [
    {"features": [[0.5, 1], [2, None], [-3e5, 4.25]]},
    {"features": [[1, 2], [3, 4]], "names": ["b", "a"]},
    {"names": ["a", "b"], "features": [[1, 2]]},
    {"documents": [{"a": 1, "b": 2}, {"b": None, "a": 0.125}]},
]
WORDS = [*JSON, b'"features"', b'"documents"', b'"names"', b'"a"', b'"b"', b"[[1,2]]", b"[[1,2],[3,null]]", b"[[", b"]]"]


def body(rng: np.random.Generator) -> bytes:
    """A good body with parts of it changed, as JSON or as bytes; or marks at random."""
    if rng.random() < 0.2:
        return soup(rng, WORDS, 30)
    good = one_of(rng, GOOD)
    return mutated(rng, json.dumps(good).encode(), WORDS) if rng.random() < 0.6 else json.dumps(changed_json(rng, good)).encode()


def use_body(path: Path) -> None:
    """Answer it; where there are scores they are those of the rows that Python's own JSON reads."""
    content = path.read_bytes()
    with_model = Served(path, None, xr.Model(SCORER), "", None)  # type: ignore[arg-type]
    answer = ranked("m", with_model, content, Rules())
    require(answer.status_code in (200, 400, 413, 422), "no body is an error of the service's")
    rows = read_documents(content, SCORER).rows
    given = json.loads(content)
    names = given.get("names") or ["a", "b"]
    table = given["features"] if "features" in given else [[document[name] for name in names] for document in given["documents"]]
    theirs = np.array(table, np.float64)[:, [names.index(name) for name in ("a", "b")]]
    require(np.array_equal(rows, theirs, equal_nan=True), "rows are those that are written")


TARGETS = [Target("requests", ".json", body, use_body)]
