"""Requests to `exactrank serve`: bodies, as bytes and as JSON, and what a client sends on a connection."""

import asyncio
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import uvicorn
from uvicorn.server import ServerState

import exactrank as er
from exactrank.serve.app import Rules, make_app, rank_documents
from exactrank.serve.connection import HEADERS, Connection
from exactrank.serve.documents import read_documents
from exactrank.serve.models import Models, ServedModel
from tests.fuzz.models import JSON
from tests.fuzz.mutations import changed_json, mutated, one_of, soup
from tests.fuzz.target import Target, require
from tests.serve.serving import Wire

SCORER = er.models.Linear(np.array([1.0, -2.0]), ("a", "b"), missing="zero")
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
    with_model = ServedModel(path, None, er.Model(SCORER), "", None)  # type: ignore[arg-type]
    answer = rank_documents("m", with_model, content, Rules())
    require(answer.status_code in (200, 400, 413, 422), "no body is an error of the service's")
    rows = read_documents(content, SCORER).rows
    record = json.loads(content)
    names = record.get("names") or ["a", "b"]
    table = record["features"] if "features" in record else [[document[name] for name in names] for document in record["documents"]]
    theirs = np.array(table, np.float64)[:, [names.index(name) for name in ("a", "b")]]
    require(np.array_equal(rows, theirs, equal_nan=True), "rows are those that are written")


HEADS = [
    b"POST /rank HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\n",
    b"GET /models/m?a=b HTTP/1.0\r\n",
]
MARKS = [
    b"\r\n", b"\r\n\r\n", b"\n", b"0\r\n\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Content-Length: 99999999\r\n",
    b"Connection: close\r\n", b"Connection: Upgrade\r\nUpgrade: h2c\r\n", b"Expect: 100-continue\r\n", b"CONNECT a:1 HTTP/1.1\r\n",
    b"a: b\r\n" * 120,
    b"PRI * HTTP/2.0\r\n", b" HTTP/1.1\r\n", b"/" * 9000, b"1;x=y\r\n", b":", b" ",
]  # fmt: skip


def stream(rng: np.random.Generator) -> bytes:
    """A few requests, by length or in chunks, with parts of them changed."""
    requests = []
    for _ in range(rng.integers(1, 4)):
        content = json.dumps(one_of(rng, GOOD)).encode()
        head = one_of(rng, HEADS) + b"".join(one_of(rng, MARKS[4:10]) for _ in range(rng.integers(0, 2)))
        if head.startswith(b"GET"):
            requests.append(head + b"\r\n")
        elif rng.random() < 0.6:
            requests.append(head + b"Content-Length: %d\r\n\r\n" % len(content) + content)
        else:
            requests.append(head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(content) + content + b"\r\n0\r\n\r\n")
    return mutated(rng, b"".join(requests), MARKS) if rng.random() < 0.8 else b"".join(requests)


def use_stream(path: Path) -> None:
    """Send it on a connection, in pieces, as soon as the last one was dealt with; then leave."""
    content = path.read_bytes()
    sent = asyncio.run(_answers(content, 1 + len(content) % 97))
    statuses = {int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", sent)}
    require(statuses <= {100, 200, 400, 404, 405, 413, 414, 415, 422, 431, 503}, f"no request is an error of the service's: {statuses}")
    require(not sent or sent.startswith(b"HTTP/1.1 "), "what is sent are answers")


async def _answers(content: bytes, piece: int) -> bytes:
    models = Models({"m": ServedModel(Path("m"), None, er.Model(SCORER), "v", datetime.now(UTC))})
    config = uvicorn.Config(make_app(models, Rules(watch=0)), log_config=None, lifespan="off")
    connection = Connection.with_timeout(60.0)(config, ServerState(), {}, asyncio.get_running_loop())
    wire = Wire()
    connection.connection_made(wire)  # type: ignore[arg-type]
    for start in range(0, len(content), piece):
        if wire.closed:
            break
        connection.data_received(content[start : start + piece])
        await asyncio.sleep(0)
        require(len(connection.headers or ()) <= HEADERS, "headers are bounded")
    for _ in range(20):
        await asyncio.sleep(0)
    wire.closed = True
    connection.connection_lost(None)
    tasks = connection.tasks
    if tasks:
        await asyncio.wait(tasks, timeout=30)
    require(not tasks, "nothing goes on when the client has left")
    return wire.sent


TARGETS = [Target("requests", ".json", body, use_body), Target("connections", ".http", stream, use_stream)]
