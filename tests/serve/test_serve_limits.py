"""Limits of `exactrank serve` on what clients send, and its end: real sockets and processes, or a loop whose clock the test sets."""

import json
import os
import re
import select
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import exactrank as er

pytest.importorskip("orjson", reason="the extra serve is not installed")
uvicorn = pytest.importorskip("uvicorn", reason="the extra serve is not installed")
pytest.importorskip("httptools", reason="the extra serve is not installed")
from exactrank.serve.connection import GRACE, HEAD_BYTES, HEADERS, LINGER, Connection  # noqa: E402
from tests.serve.serving import BODY, HANGS, HEAD, Wire, received, service, wait_for  # noqa: E402

REQUEST = HEAD + b"\r\n" + BODY
UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQBAAAAAAIAAAAA\r\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "m.json"
    er.Model(er.models.Linear([1.0, 2.0, 3.0])).save(path)
    return path


@pytest.fixture(scope="module")
def served(model):
    with service(model, "--max-bytes", "1000") as (client, process):
        client.pid = process.pid
        yield client


def answers(wire, count):
    """The first ``count`` answers on a connection."""
    text = b""
    while text.count(b"HTTP/1.1 ") < count or not text.endswith(b"}"):
        part = wire.recv(1 << 16)
        assert part, text
        text += part
    return [b"HTTP/1.1 " + answer for answer in text.split(b"HTTP/1.1 ")[1:]]


def ends(wire):
    """Whether the service has closed the connection, with an answer before or without."""
    with suppress(ConnectionResetError):
        while wire.recv(1 << 16):
            pass
    return True


# ---- what a client sends


@pytest.mark.parametrize("cut", [0, 10, len(HEAD), len(HEAD) + len(UPGRADE) + 1, len(HEAD) + len(UPGRADE) + 2, -3])
def test_an_upgrade_is_ignored(served, cut):
    sent = HEAD + UPGRADE + b"\r\n" + BODY
    with served.connected() as wire:
        wire.sendall(sent[:cut])
        assert served.ask("GET", "/health")[0] == 200  # the first part was read by then
        wire.sendall(sent[cut:])
        assert b'"scores":[14.0]' in answers(wire, 1)[0]
        wire.sendall(REQUEST)
        assert b" 200 " in answers(wire, 1)[0]


def test_the_body_of_an_upgrade_is_not_another_request(served):
    inner = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    head = HEAD.replace(b"25", b"%d" % len(inner)) + UPGRADE + b"\r\n"
    with served.connected() as wire:
        wire.sendall(head + inner + REQUEST)
        first, second = answers(wire, 2)
        assert b" 400 " in first
        assert b"14.0" in second


def test_a_tunnel_is_refused(served):
    assert b" 400 " in served.raw(b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * HEAD_BYTES,
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"a: b\r\n" * HEADERS + b"\r\n",
        b"GET / HTTP/1.1\r\n" + b"a" * HEAD_BYTES,
        b"GET / HTTP/1.1\r\nHost: x\r\n" + (b"a: " + b"b" * 4096 + b"\r\n") * 17 + b"\r\n",
    ],
    ids=["header", "headers", "name", "complete"],
)
def test_a_head_that_is_too_long_is_refused(served, sent):
    answer = served.raw(sent)
    assert b" 431 " in answer
    assert b"more than 65,536 bytes besides its body" in answer


def test_an_address_that_is_too_long_is_refused(served):
    assert b" 404 " in served.raw(b"GET /" + b"a" * 8191 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b" 414 " in served.raw(b"GET /" + b"a" * 8192 + b" HTTP/1.1\r\nHost: x\r\n\r\n")


@pytest.mark.parametrize("rest", [b"0\r\n" + b"a: b\r\n" * 22_000, b"0\r\na: " + b"b" * 3 * HEAD_BYTES, b"1;a=" + b"b" * 3 * HEAD_BYTES])
def test_trailers_and_extensions_that_are_too_long_are_refused(served, rest):
    head = b"POST /rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert b" 431 " in served.raw(head + rest)


def test_trailers_are_not_headers(served):
    chunks = b"%x\r\n" % len(BODY) + BODY + b"\r\n0\r\nContent-Type: text/plain\r\n\r\n"
    assert b"14.0" in served.raw(b"POST /rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system does not tell how much memory a process has used")
def test_a_flood_of_headers_takes_little_memory(served):
    def peak():
        return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{served.pid}/status").read_text())[1]) << 10

    before = peak()
    with served.connected() as wire, suppress(BrokenPipeError, ConnectionResetError):
        wire.sendall(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5_000_000)
    assert served.ask("GET", "/health")[0] == 200
    assert peak() - before < 10 << 20


def test_an_answer_comes_before_the_end_of_a_long_body(served):
    with served.connected() as wire:
        wire.sendall(HEAD.replace(b"25", b"100000000") + b"\r\n" + bytes(8_000_000))
        assert b" 413 " in received(wire)


def test_an_invalid_request_waits_for_the_answer_to_the_one_before_it(served):
    with served.connected() as wire:
        wire.sendall(REQUEST + b"\x00\xff\r\n\r\n")
        assert b"14.0" in received(wire)
        assert ends(wire)
    with served.connected() as wire:
        wire.sendall(b"POST /rank HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno number\r\n")
        assert b" 400 " in received(wire)


def test_bodies_share_a_limit_on_memory(served):
    """Nine bodies that lack a byte each: one of them is refused, the others are answered when they are complete."""
    wires = [served.connected() for _ in range(9)]
    for wire in wires:
        wire.sendall(HEAD.replace(b"25", b"1000") + b"\r\n" + BODY.ljust(999))
    (refused,) = select.select(wires, [], [], HANGS)[0]
    assert b" 503 " in received(refused)
    for wire in wires:
        if wire is not refused:
            wire.sendall(b" ")
            assert b"14.0" in received(wire)
        wire.close()
    assert b"14.0" in served.raw(REQUEST)


# ---- what a client leaves undone


def test_empty_lines_do_not_keep_a_connection_open(model):
    with service(model, timeout=0.5) as (client, _), client.connected() as wire:
        wire.sendall(REQUEST)
        answers(wire, 1)

        def closed():
            try:
                wire.sendall(b"\r\n")
                return bool(select.select([wire], [], [], 0.01)[0]) and not wire.recv(1)
            except OSError:
                return True

        wait_for(closed)


def test_idle_connections_do_not_keep_others_out(model):
    resource = pytest.importorskip("resource", reason="this system has no limit on open files")

    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))

    with service(model, preexec_fn=few_files) as (client, _):
        idle = [client.connected() for _ in range(300)]
        for wire in idle[::3]:
            with suppress(OSError):  # it may be closed by now, to make room
                wire.sendall(b"POST /rank HTTP/1.1\r\n")
        for _ in range(5):
            assert client.rank({"features": [[1, 2, 3]]})[1]["scores"] == [14.0]
        for wire in idle:
            wire.close()


class Loop:
    """A loop whose time passes when a test says so."""

    def __init__(self):
        self.now, self.timers = 0.0, []

    def call_later(self, seconds, call):
        timer = Timer(self.now + seconds, call)
        self.timers.append(timer)
        return timer

    def pass_time(self, seconds):
        self.now += seconds
        due = [timer for timer in self.timers if timer.when <= self.now]
        self.timers = [timer for timer in self.timers if timer.when > self.now]
        for timer in due:
            if not timer.cancelled:
                timer.call()

    def create_task(self, work):
        work.close()
        return type("Task", (), {"add_done_callback": lambda *_: None})()


class Timer:
    def __init__(self, when, call):
        self.when, self.call, self.cancelled = when, call, False

    def cancel(self):
        self.cancelled = True


@pytest.fixture
def connect():
    """Opens connections of a service whose clients have 5 seconds."""
    loop, state = Loop(), uvicorn.server.ServerState()

    async def nothing(scope, receive, send):
        """No answer yet."""

    config = uvicorn.Config(nothing, log_config=None)
    kind = Connection.with_timeout(5.0)

    def opened():
        connection, wire = kind(config, state, {}, loop), Wire()
        connection.connection_made(wire)
        return connection, wire

    opened.loop, opened.kind = loop, kind
    return opened


def test_bytes_do_not_extend_the_time_for_a_head(connect):
    connection, wire = connect()
    for _ in range(4):
        connect.loop.pass_time(1)
        connection.data_received(b"\r\n")
    assert not wire.ended
    connect.loop.pass_time(1)
    assert wire.ended
    connect.loop.pass_time(LINGER)
    assert wire.closed


def test_an_answer_must_be_read_in_time(connect):
    connection, wire = connect()
    connection.data_received(REQUEST)
    connection.pause_writing()
    connect.loop.pass_time(4.9)
    connection.resume_writing()
    connect.loop.pass_time(50)
    assert not wire.closed
    connection.pause_writing()
    connect.loop.pass_time(5)
    assert wire.closed


def test_after_an_answer_was_read_the_time_of_the_next_request_begins(connect):
    connection, wire = connect()
    connection.data_received(REQUEST)
    connection.pause_writing()
    connection.cycle.response_complete = True
    connection.on_response_complete()
    connect.loop.pass_time(4)
    connection.resume_writing()
    connect.loop.pass_time(4)
    assert not wire.ended
    connect.loop.pass_time(1)
    assert wire.ended


def test_the_longest_idle_connection_makes_room_and_none_that_is_being_answered(connect):
    connect.kind.max_connections = 2
    busy, first = connect()
    busy.data_received(REQUEST)
    _, second = connect()
    _, third = connect()
    assert (first.closed, second.closed, third.closed) == (False, True, False)
    for connection in list(connect.kind.waiting):
        connection.data_received(REQUEST)
    _, fourth = connect()
    assert fourth.closed
    assert b" 503 " in fourth.sent
    assert (first.closed, third.closed) == (False, False)


def test_a_connection_without_a_request_is_kept_for_a_while_when_the_service_ends(connect):
    (idle, quiet), (busy, asked) = connect(), connect()
    busy.data_received(REQUEST)
    connect.kind.ending = True
    for connection in (idle, busy):
        connection.shutdown()
    assert not busy.cycle.keep_alive
    connect.loop.pass_time(GRACE / 2)
    assert not quiet.ended
    idle.data_received(REQUEST)
    assert not idle.cycle.keep_alive
    connect.loop.pass_time(10)
    assert not quiet.ended
    assert not asked.ended


# ---- the end


def ask_until_refused(client, answered, lost):
    """Send one request after the other, on a new connection where the answer says that the old one closes."""
    while True:
        try:
            wire = client.connected()
        except OSError:
            return
        with wire:
            closing = False
            while not closing:
                try:
                    wire.sendall(REQUEST)
                    answer = received(wire)
                except OSError as error:
                    answer = repr(error).encode()
                if not answer.endswith(b"}"):
                    lost.append(answer)
                    return
                answered.append(answer)
                closing = b"connection: close" in answer


@pytest.mark.parametrize(("number", "workers"), [(signal.SIGTERM, 1), (signal.SIGTERM, 2), (signal.SIGINT, 2)])
def test_a_signal_under_load_loses_no_request(model, number, workers):
    with service(model, "--workers", workers, start_new_session=True) as (client, process):
        answered, lost = [], []
        threads = [threading.Thread(target=ask_until_refused, args=(client, answered, lost)) for _ in range(50)]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(answered) > 500)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        for thread in threads:
            thread.join()
        assert lost == []
        assert process.wait(HANGS) == 0


def test_the_answer_of_an_idle_connection_is_not_lost_either(model):
    """A request that is on its way when the service ends."""
    with service(model) as (client, process):
        with client.connected() as wire:
            wire.sendall(REQUEST)
            answers(wire, 1)
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            process.send_signal(signal.SIGTERM)
            wire.sendall(REQUEST)
            process.send_signal(signal.SIGCONT)
            assert b"14.0" in received(wire)
        assert process.wait(HANGS) == 0


JAVA = """
import java.net.URI;
import java.net.http.*;
public class Ask {
  public static void main(String[] words) throws Exception {
    var request = HttpRequest.newBuilder(URI.create(words[0])).header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString("{\\"features\\": [[1, 2, 3]]}")).build();
    System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
  }
}
"""


def test_javas_client_is_answered(served, tmp_path):
    """It asks for HTTP/2 with every first request."""
    (tmp_path / "Ask.java").write_text(JAVA)
    try:
        ended = subprocess.run(
            ["java", "-Xshare:auto", str(tmp_path / "Ask.java"), f"http://127.0.0.1:{served.port}/rank"],
            capture_output=True, text=True, check=False, timeout=HANGS,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("there is no Java")
    if "compiler" in ended.stderr:
        pytest.skip("there is no Java compiler")
    assert json.loads(ended.stdout)["scores"] == [14.0]


def test_a_client_that_is_gone_is_not_waited_for(model):
    with service(model) as (client, process):
        wire = socket.create_connection(("127.0.0.1", client.port))
        wire.sendall(HEAD)
        wire.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANGS) == 0
