"""`exactrank serve`: scores are those of `predict` to the bit, whatever the form of a request; no input is an error of the server's.

The service runs in processes of its own, on a free port of this machine.
"""

import asyncio
import json
import os
import re
import signal
import socket
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from typer.testing import CliRunner

import exactrank as er
from exactrank import _core
from exactrank.cli import app
from exactrank.models.sum import Sum

orjson = pytest.importorskip("orjson", reason="the extra serve is not installed")
pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("httptools", reason="the extra serve is not installed")
from exactrank.serve.app import SMALL_BODY, Rules, make_app  # noqa: E402
from exactrank.serve.documents import RequestError, _refuse_repeated_keys, read_documents  # noqa: E402
from exactrank.serve.models import Models, ServedModel  # noqa: E402
from exactrank.serve.server import listeners_at  # noqa: E402
from tests.serve.serving import BODY, HANGS, HEAD, received, service, wait_for  # noqa: E402

NAMES = ("bm25", "length", "dense")
LINEAR = er.models.Linear(np.array([2.0, -1.0, 0.5]), NAMES)
CELLS = st.one_of(st.none(), st.integers(-(2**70), 2**70), st.floats(-1e30, 1e30), st.sampled_from([0.0, -0.0, 1e-320, 5e-324]))
TABLES = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=5))


def predicted(scorer, rows):
    return er.Model(scorer).predict(np.array(rows, np.float64)).tolist()


# ---- bodies


@given(TABLES, st.sampled_from(["", " ", "\n\t"]), st.sampled_from(["{!r}", "{:.3e}", "{:.40g}", "{:E}"]))
def test_the_core_reads_a_matrix_as_json_does(table, blank, form):
    def written(cell):
        return "null" if cell is None else str(cell) if isinstance(cell, int) else form.format(cell)

    rows = f"{blank},{blank}".join(f"[{blank}" + f"{blank},".join(map(written, row)) + f"{blank}]" for row in table)
    text = f"[{blank}{rows}{blank}]".encode()
    cells, width, end = _core.json_matrix(b"  " + text + b"}", 2)
    assert end == 2 + len(text)
    assert np.array_equal(cells.reshape(-1, width), np.array(orjson.loads(text), np.float64), equal_nan=True)


ODD = [
    "[[01]]",
    "[[+1]]",
    "[[1.]]",
    "[[.5]]",
    "[[1.e5]]",
    "[[1e]]",
    "[[-]]",
    "[[NaN]]",
    "[[Infinity]]",
    "[[1,]]",
    "[[,1]]",
    "[[1],]",
    "[[1]",
]
ODD += [
    "[[nul]]",
    "[[nulll]]",
    "[[1]\0]",
    "[[0x1]]",
    "[[1e400]]",
    "[[1 2]]",
    "[[1][2]]",
    "[1]",
    "[[]]",
    "[]",
    "[[true]]",
    '[["1"]]',
    "[[1],[1,2]]",
    "",
]


@pytest.mark.parametrize("text", ODD)
def test_the_core_reads_nothing_else(text):
    assert _core.json_matrix(text.encode(), 0) is None


@given(st.text("0123456789.-+eE[], nul", max_size=12).map(lambda inner: f"[[{inner}]]".encode()))
@settings(max_examples=100)
def test_what_the_core_reads_is_json_and_what_is_json_it_reads(text):
    result = _core.json_matrix(text, 0)
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        assert result is None or result[2] < len(text)
    else:
        proper = all(isinstance(row, list) and row and len(row) == len(value[0]) for row in value)
        proper = proper and all(isinstance(cell, int | float | None) for row in value for cell in row)
        assert (result is not None) == proper


@given(hnp.arrays(float, (4, 3), elements=st.one_of(st.floats(-9, 9), st.just(np.nan))), st.permutations(range(3)), st.booleans())
def test_every_form_of_a_request_is_the_same_matrix(X, order, ignore):
    table = [[None if cell != cell else cell for cell in row] for row in X.tolist()]
    names = [NAMES[j] for j in order]
    by_name = [{NAMES[j]: row[j] for j in order} | ({"other": 1.0} if ignore else {}) for row in table]
    moved = [[row[j] for j in order] for row in table]
    bodies = [
        {"documents": by_name},
        {"features": table},
        {"features": moved, "names": names},
        {"names": names, "features": moved},
        {"names": [*names, "more"], "features": [[*row, 7] for row in moved]} if ignore else {"features": table},
    ]
    for body in bodies:
        rows = read_documents(json.dumps(body).encode(), LINEAR, "ignore" if ignore else "refuse").rows
        assert np.array_equal(rows, X, equal_nan=True)


DOCUMENT = {"bm25": 1.0, "length": 2.0, "dense": 3.0}
BAD = {
    "not JSON": ("{", 400, None, "the body is not JSON"),
    "nothing": ("", 400, None, "not JSON"),
    "NaN": ('{"features": [[NaN, 1, 2]]}', 400, None, "a missing value is null"),
    "a list": ([[1, 2, 3]], 422, None, "give an object"),
    "neither": ({}, 422, None, "neither documents nor features"),
    "both": ({"features": [[1, 2, 3]], "documents": [DOCUMENT]}, 422, None, "documents and features; give either"),
    "another key": ({"features": [[1, 2, 3]], "path": "/etc/passwd"}, 422, "path", "the key 'path' is unknown"),
    "no list": ({"documents": {"bm25": 1}}, 422, "documents", "give a list"),
    "no documents": ({"documents": []}, 422, "documents", "at least one document"),
    "no rows": ({"features": []}, 422, "features", "at least one document"),
    "no object": ({"documents": [DOCUMENT, 5]}, 422, "documents[1]", "documents[1] is 5; give an object"),
    "lacking": ({"documents": [DOCUMENT, {"bm25": 1, "dense": 2}]}, 422, "documents[1]", "it lacks length; give the features"),
    "extra": ({"documents": [DOCUMENT | {"clicks": 1}]}, 422, "documents[0]", "it also has 'clicks'"),
    "misspelt": ({"documents": [{"BM25": 1, "length": 2, "dense": 3}]}, 422, "documents[0]", "it lacks bm25 and also has 'BM25'"),
    "text": ({"documents": [DOCUMENT | {"dense": "3"}]}, 422, "documents[0].dense", "is '3'; give a number, or null"),
    "true": ({"features": [[1, 2, 3], [1, True, 3]]}, 422, "features[1][1]", "is True; give a number"),
    "ragged": ({"features": [[1, 2, 3], [1, 2]]}, 422, "features[1]", "features[1] has 2 values but features[0] has 3"),
    "narrow": ({"features": [[1, 2]]}, 422, "features[0]", "2 values but the model has 3 features"),
    "empty row": ({"features": [[]]}, 422, "features[0]", "features[0] is []"),
    "names of another width": ({"features": [[1, 2, 3]], "names": ["bm25"]}, 422, "names", "1 names for 3 columns"),
    "a name twice": ({"features": [[1, 2, 3]], "names": ["bm25", "bm25", "dense"]}, 422, "names", "'bm25' twice"),
    "names as text": ({"features": [[1, 2, 3]], "names": "bm25"}, 422, "names", "give a list of feature names"),
    "other names": ({"features": [[1, 2, 3]], "names": ["bm25", "length", "x"]}, 422, "names", "it lacks dense and also has 'x'"),
    "names of objects": ({"documents": [DOCUMENT], "names": list(NAMES)}, 422, "names", "leave them out"),
    "a comma at the end": ('{"features": [[1, 2, 3]],}', 400, None, "not JSON"),
    "two bodies": ('{"features": [[1, 2, 3]]}{}', 400, None, "not JSON"),
    "many": ({"features": [[1, 2, 3]] * 11}, 413, "features", "there are 11 documents; give at most 10"),
    "many by name": ({"documents": [DOCUMENT] * 11}, 413, "documents", "at most 10"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_bodies_are_refused_with_place_value_and_remedy(name):
    body, status, place, message = BAD[name]
    with pytest.raises(RequestError, match=re.escape(message)) as caught:
        read_documents((body if isinstance(body, str) else json.dumps(body)).encode(), LINEAR, max_documents=10)
    assert (caught.value.status, caught.value.place) == (status, place)


KEYS = ["a", "b:", "b\\u003a", "\\u003A:", "\\\\u003a", 'q\\"', ":"]
PAIRS = st.recursive(
    st.sampled_from(["1", "null", '"x"', '":"', '"\\u003a\\\\:"']),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda cells: f"[{','.join(cells)}]"),
        st.lists(st.tuples(st.sampled_from(KEYS), inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f'"{key}" : {value}' for key, value in pairs) + "}"
        ),
    ),
)


def repeated_keys(text):
    """The keys that an object has twice, as Python's own JSON finds them."""
    repeated = []

    def pairs(members):
        keys = [key for key, _ in members]
        repeated.extend(key for number, key in enumerate(keys) if key in keys[:number])
        return dict(members)

    json.loads(text, object_pairs_hook=pairs)
    return repeated


@given(st.lists(st.tuples(st.sampled_from(["documents", "names", *KEYS]), PAIRS), min_size=1, max_size=3))
@settings(max_examples=300)
def test_repeated_keys_are_refused_wherever_they_are(pairs):
    text = "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"
    repeated = repeated_keys(text)
    if not repeated:
        _refuse_repeated_keys(text.encode(), json.loads(text))
        return
    with pytest.raises(RequestError, match="occurs twice; give each key once") as caught:
        _refuse_repeated_keys(text.encode(), json.loads(text))
    assert caught.value.status == 422
    assert any(caught.value.place.endswith(key) for key in repeated)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('{"documents": [{"bm25": 1, "length": 2, "dense": 3}, {"bm25": 1, "length": 2, "bm25": 5, "dense": 3}]}', "documents[1].bm25"),
        ('{"documents": [{"bm25": 1, "length": 2, "dense": 3, "\\u0062m25": 5}]}', "documents[0].bm25"),
        ('{"features": [[1, 2, 3]], "features": [[4, 5, 6]]}', "features"),
        ('{"features": [[1, 2, 3]], "names": ["bm25", "length", "dense"], "names": ["dense", "length", "bm25"]}', "names"),
        ('{"names": ["bm25"], "names": ["dense", "length", "bm25"], "features": [[1, 2, 3]]}', "names"),
        ('{"documents": [{"bm25": 1, "length": 2, "dense": 3, "x": ' + "[" * 300 + '{"y": 1, "y": 2}' + "]" * 300 + "}]}",
         ("documents[0].x" + "[0]" * 300)[:100]),
    ],
)  # fmt: skip
def test_a_repeated_key_is_named(body, place):
    with pytest.raises(RequestError, match="occurs twice") as caught:
        read_documents(body.encode(), LINEAR, "ignore")
    assert (caught.value.status, caught.value.place) == (422, place)


def test_features_known_by_position_alone():
    alone = er.models.Linear(np.ones(2))
    assert read_documents(b'{"features": [[1, 2]]}', alone).rows.tolist() == [[1, 2]]
    for body in (b'{"documents": [{"a": 1, "b": 2}]}', b'{"features": [[1, 2]], "names": ["a", "b"]}'):
        with pytest.raises(RequestError, match="only by position"):
            read_documents(body, alone)


def test_a_single_feature_by_name():
    assert read_documents(b'{"documents": [{"a": 1}, {"a": null}]}', er.models.Linear(np.ones(1), ("a",))).rows.tolist()[0] == [1]


# ---- the service


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    rng = np.random.default_rng(0)
    data = er.RankingData.from_arrays(rng.normal(size=(60, 3)), rng.integers(0, 3, 60), group=[20] * 3, feature_names=NAMES)
    trees = er.LambdaMART(trees=3, threads=1, bags=0).fit(data).model_
    trees.save(folder / "trees.json")
    mean = er.models.Linear(np.array([2.0, -1.0, 0.5]), NAMES, "mean", np.array([1.0, 2.0, 3.0]))
    er.Model(mean, measure="nDCG@10", training={"estimate": 0.5, "interval": [0.4, 0.6]}).save(folder / "mean.json")
    er.Model(LINEAR).save(folder / "linear.json")
    er.Model(Sum((LINEAR, trees.scorer), np.array([0.5, 2.0]))).save(folder / "blend.json")
    return folder


@pytest.fixture(scope="module")
def served(folder):
    paths = [f"first={folder / 'linear.json'}", *(folder / f"{name}.json" for name in ("trees", "mean", "blend"))]
    with service(*paths, "--max-bytes", "3000000", "--max-documents", "30000") as (client, _):
        yield client


def test_scores_are_those_of_predict_to_the_bit(served, folder):
    X = np.random.default_rng(1).normal(size=(100, 3))
    X[7] = X[3]
    for name, file in (("first", "linear"), ("trees", "trees"), ("mean", "mean"), ("blend", "blend")):
        model = er.load(folder / f"{file}.json")
        for body in ({"features": X.tolist()}, {"documents": [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]}):
            status, answer = served.rank(body, name)
            assert status == 200
            assert answer["scores"] == model.predict(X).tolist()
            assert answer["order"] == np.argsort(-model.predict(X), kind="stable").tolist()
            assert answer["model"] == name
    assert served.rank({"features": X.tolist()})[1]["model"] == "first"


def test_ties_keep_the_order_of_the_request(served):
    grades = np.random.default_rng(0).integers(0, 3, 300).tolist()
    order = served.rank({"features": [[grade, 0, 0] for grade in grades]})[1]["order"]
    assert order == sorted(range(300), key=lambda i: -grades[i])


def test_a_missing_value_is_what_the_model_takes_it_for(served):
    body = {"documents": [DOCUMENT | {"length": None}]}
    assert served.rank(body, "mean")[1]["scores"] == [2.0 - 2.0 + 1.5]
    status, answer = served.rank(body)
    assert (status, answer["place"]) == (422, "documents[0].length")
    assert "1 values are missing (length: 1); fill them" in answer["detail"]
    assert served.rank(body, "trees")[0] == 200


def test_what_float32_cannot_hold_is_named(served):
    for body, place in (
        ({"features": [[1, 2, 3], [1, 1e39, 3]]}, "features[1][1]"),
        ({"documents": [DOCUMENT | {"dense": -1e300}]}, "documents[0].dense"),
    ):
        status, answer = served.rank(body, "trees")
        assert (status, answer["place"]) == (422, place)
        assert "not a finite float32" in answer["detail"]


def test_models_are_described(served):
    listed = served.ask("GET", "/models")[1]["models"]
    assert [model["name"] for model in listed] == ["first", "trees", "mean", "blend"]
    mean = served.ask("GET", "/models/mean")[1]
    assert mean == listed[2]
    assert (mean["features"], mean["measure"], mean["estimate"], mean["interval"]) == (list(NAMES), "nDCG@10", 0.5, [0.4, 0.6])
    assert (mean["kind"], mean["missing"], mean["problem"]) == ("linear", "mean", None)
    assert mean["version"] == served.rank({"features": [[1, 2, 3]]}, "mean")[1]["version"]
    assert served.ask("GET", "/health")[1]["status"] == "alive"
    assert served.ask("GET", "/models/nobody")[0] == served.rank({"features": [[1]]}, "nobody")[0] == 404
    assert served.ask("GET", "/models/..%2f..%2fetc%2fpasswd")[0] == 404


def test_other_types_of_bodies_are_refused(served):
    assert served.ask("POST", "/rank", b"x=1", {"Content-Type": "application/x-www-form-urlencoded"})[0] == 415
    assert served.ask("POST", "/rank", b"x", {"Content-Type": "application/json", "Content-Encoding": "gzip"})[0] == 415
    body = b'{"features": [[1, 2, 3]]}'
    assert served.ask("POST", "/rank", body, {"Content-Type": "application/json; charset=utf-8"})[0] == 200
    assert served.ask("POST", "/rank", body, {"Content-Type": ""})[0] == 415
    assert served.ask("GET", "/rank")[0] == 405


def test_bodies_that_are_too_large(served):
    """By their length before they are read, and in parts at the first byte too many; as many documents as are allowed pass."""
    head = b"POST /rank HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    assert b" 400 " in served.raw(head + b"Content-Length: 99999999999999999999999999\r\n\r\n")
    assert b" 413 " in served.raw(head + b"Content-Length: 3000001\r\n\r\n")
    chunk = b"%x\r\n" % 1_000_000 + b" " * 1_000_000 + b"\r\n"
    assert b" 413 " in served.raw(head + b"Transfer-Encoding: chunked\r\n\r\n" + 3 * chunk + b"1\r\n ")
    assert served.rank({"features": [[1, 2, 3]] * 30_001})[0] == 413
    assert len(served.rank({"features": [[1.0625, 2, 3]] * 30_000})[1]["scores"]) == 30_000


def test_a_large_body_is_answered_beside_small_ones(served):
    X = np.random.default_rng(2).normal(size=(29_000, 3)).tolist()
    body = json.dumps({"features": X}).encode()
    assert len(body) > 1 << 20
    status, answer = served.rank(body)
    assert status == 200
    assert answer["scores"] == predicted(LINEAR, X)


def test_clients_that_are_slow_or_leave(served):
    """The rest of a slow request is sent after another was answered."""
    with served.connected() as wire:
        wire.sendall(HEAD + b"\r\n" + BODY[:9])
        assert served.rank({"features": [[1, 2, 3]]})[0] == 200
        wire.sendall(BODY[9:])
        assert b" 200 " in received(wire)
    for sent in (HEAD + b"\r\n", HEAD + b"\r\n" + BODY[:5], b"POST", HEAD):
        with served.connected() as wire:
            wire.sendall(sent)
    assert b" 400 " in served.raw(b"\x00\xff\r\n\r\n")
    assert served.rank({"features": [[1, 2, 3]]})[0] == 200


def test_clients_that_are_late(folder):
    """What they send lies there before the service looks, so that only what they do not send is late."""
    with service(folder / "linear.json", timeout=0.5) as (client, process):

        def answer(sent):
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            with client.connected() as wire:
                wire.sendall(sent)
                process.send_signal(signal.SIGCONT)
                return received(wire)

        late = answer(HEAD + b"\r\n" + BODY[:9])
        assert b" 408 " in late
        assert b"did not arrive within 0.5 s" in late
        assert answer(b"POST /rank HTTP/1.1\r\nHo") == b""  # the head never ends
        assert answer(b"") == b""
        assert b" 200 " in answer(HEAD + b"\r\n" + BODY)


def test_many_at_once(served):
    """Each answer is that of its own request."""
    wrong = []

    def ask(number):
        rows = np.random.default_rng(number).normal(size=(20, 3)).tolist()
        for _ in range(10):
            if served.rank({"features": rows})[1]["scores"] != predicted(LINEAR, rows):
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_large_request_that_must_wait_too_long_is_told_so(monkeypatch):
    """The only answer of the 500s, and not because of what a request holds."""
    result = threading.Event()
    monkeypatch.setattr("exactrank.serve.app.rank_documents", lambda *_: result.wait())
    body = b" " * (SMALL_BODY + 1)
    application = make_app(
        Models({"m": ServedModel(Path("m"), None, er.Model(LINEAR), "v", datetime.now(UTC))}), Rules(timeout=0.05, watch=0)
    )
    scope = {"type": "http", "method": "POST", "path": "/rank", "query_string": b"", "headers": [(b"content-type", b"application/json")]}
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    async def asked():
        await application(scope, receive, send)
        result.set()

    asyncio.run(asked())
    assert sent[0]["status"] == 503
    assert dict(sent[0]["headers"])[b"retry-after"] == b"1"
    assert "no time was left for a large request within 0.05 s" in json.loads(sent[1]["body"])["detail"]


# ---- files that change


def test_a_model_replaced_while_requests_run(tmp_path):
    """Every answer is by the old model or by the new one, whole; the version says by which."""
    path, rows = tmp_path / "m.json", np.random.default_rng(0).normal(size=(50, 3)).tolist()
    scorers = [er.models.Linear(np.array([1.0, 2.0, 3.0]) * (k + 1), NAMES) for k in range(3)]
    er.Model(scorers[0]).save(path)
    seen, answered, stop = [], threading.Semaphore(0), threading.Event()
    with service(path, "--watch", "0.02") as (client, process):

        def ask():
            while not stop.is_set():
                seen.append(client.rank({"features": rows}))
                answered.release()

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for number, scorer in enumerate(scorers):
            if number:
                er.Model(scorer).save(path, force=True)
            while not seen or seen[-1][1]["scores"] != predicted(scorer, rows):
                assert answered.acquire(timeout=HANGS)
        stop.set()
        for thread in threads:
            thread.join()
        assert {status for status, _ in seen} == {200}
        known = {answer["version"]: answer["scores"] for _, answer in seen}
        assert sorted(known.values()) == sorted(predicted(scorer, rows) for scorer in scorers)
        assert all(known[answer["version"]] == answer["scores"] for _, answer in seen)

        before = client.ask("GET", "/models/m")[1]
        (tmp_path / "damaged.json").write_text(path.read_text()[:-40])
        os.replace(tmp_path / "damaged.json", path)
        wait_for(lambda: client.ask("GET", "/models/m")[1]["problem"])
        message = client.ask("GET", "/models/m")[1]
        assert "m.json is not a model" in message["problem"]
        assert str(tmp_path) not in message["problem"]
        assert message["version"] == before["version"] == client.rank({"features": rows})[1]["version"]
        path.unlink()
        wait_for(lambda: "does not exist" in client.ask("GET", "/models/m")[1]["problem"])
        er.Model(scorers[0]).save(path)
        wait_for(lambda: client.rank({"features": rows})[1]["scores"] == predicted(scorers[0], rows))
        assert client.ask("GET", "/models/m")[1]["problem"] is None
        process.terminate()
        assert "continues to answer" in process.stderr.read()


def test_a_model_that_cannot_score_does_not_take_the_place(tmp_path):
    path = tmp_path / "m.json"
    er.Model(LINEAR).save(path)
    models = Models.read({"m": path})
    old = models.served["m"]
    models.refresh()
    assert models.served["m"] is old
    path.write_text("[1, 2")
    models.refresh()
    assert models.served["m"].model is old.model
    assert "m.json is not a model" in models.served["m"].problem
    er.Model(er.models.Linear(np.ones(2))).save(path, force=True)
    models.refresh()
    assert models.served["m"].model.scorer.n_features == 2
    assert models.served["m"].problem is None


# ---- processes


def test_a_signal_lets_requests_end(tmp_path):
    """The signal is sent when the service asks for the body, and the body when no new connections are accepted."""
    (tmp_path / "m.json").write_text("[1, 2, 3]")
    with service(tmp_path / "m.json", "--access-log") as (client, process), client.connected() as wire:
        wire.sendall(HEAD + b"Expect: 100-continue\r\n\r\n")
        assert b" 100 " in wire.recv(4096)
        process.send_signal(signal.SIGTERM)
        wait_for(client.refused)
        wire.sendall(BODY)
        assert b"14.0" in received(wire)
        out, _ = process.communicate(timeout=HANGS)
        assert process.returncode == 0
    logged = [json.loads(line) for line in out.splitlines()]
    assert [(line["method"], line["path"], line["status"]) for line in logged][-1] == ("POST", "/rank", 200)


def test_workers_share_a_port_and_are_replaced(tmp_path):
    (tmp_path / "m.json").write_text("[1, 2, 3]")
    with service(tmp_path / "m.json", "--workers", "2") as (client, process):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not children.exists():
            pytest.skip("this system does not tell the children of a process")

        def working():
            """Workers, without those that have ended and Python's tracker of shared resources."""
            workers = []
            for pid in map(int, children.read_text().split()):
                with suppress(FileNotFoundError, ProcessLookupError):
                    workers += [pid] if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes() else []
            return workers

        wait_for(lambda: len(working()) == 2)
        first = working()
        (tmp_path / "m.json").write_text("[1, 2")
        os.kill(first[0], signal.SIGKILL)
        wait_for(lambda: len(working()) == 2 and first[0] not in working())
        for _ in range(20):
            assert client.rank({"features": [[1, 2, 3]]})[1]["scores"] == [14.0]
        ended = working()
        process.terminate()
        process.communicate(timeout=HANGS)
        assert process.returncode == 0
        assert not [pid for pid in ended if Path(f"/proc/{pid}").exists()]


def test_a_port_that_is_taken_is_not_shared():
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as taken:
        for count in (1, 2):
            with pytest.raises(OSError, match="in use"):
                listeners_at("127.0.0.1", taken.getsockname()[1], count)


def test_an_address_that_is_not_ours_is_named(tmp_path):
    (tmp_path / "m.json").write_text("[1]")
    result = CliRunner().invoke(app, ["serve", str(tmp_path / "m.json"), "--host", "192.0.2.1"])
    assert result.exit_code == 1
    assert "192.0.2.1:8000: Cannot assign requested address" in result.stderr


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = CliRunner().invoke(app, ["serve", str(tmp_path / "m.json")])
    assert result.exit_code == 2
    assert "pip install 'exactrank[serve]'" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["m.json", "a=n.json", "a=m.json"], "two models are called 'a'"),
        (["m.json", "../m.json"], "two models are called 'm'"),
        (["a b=m.json"], "cannot be called 'a b'"),
        (["=m.json"], "cannot be called ''"),
        (["m.json", "--unknown", "maybe"], "'maybe' is not one of 'refuse'"),
        (["nowhere.json"], "nowhere.json"),
        (["m.json", "--host", ""], "--host is ''"),
        (["m.json", "--host", "a\nb"], "--host is"),
    ],
)
def test_bad_arguments(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.json").write_text("[1]")
    result = CliRunner().invoke(app, ["serve", *words])
    assert result.exit_code == 2
    assert message in result.stderr


# ---- the contract

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")


@pytest.fixture(scope="module")
def contract(served):
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{served.port}/openapi.json")


RANK = ("POST /rank", "POST /models/{name}/rank")
CASES = [(label, mode) for label in RANK for mode in ("positive", "negative")]
CASES += [(f"GET {path}", "positive") for path in ("/models/{name}", "/models", "/health", "/ready")]


@pytest.mark.parametrize(("label", "mode"), CASES)
@given(st.data())
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_the_contract(contract, label, mode, data):
    """Random requests, right and wrong: no error of the server's, and every answer as OpenAPI has it.

    Which features a model reads is no part of the contract, so a request that it allows may be refused.
    """
    known = {"path_parameters": {"name": "trees"}} if "{name}" in label and data.draw(st.booleans()) else {}
    case = data.draw(contract.find_operation_by_label(label).as_strategy(schemathesis.GenerationMode(mode), **known))
    case.call_and_validate(excluded_checks=[schemathesis.specs.openapi.checks.positive_data_acceptance])


def test_the_contract_has_all_paths(contract):
    assert {operation.ok().label for operation in contract.get_all_operations()} == {label for label, _ in CASES}
