"""Services of `exactrank serve` in processes of their own, on a free port of this machine, and clients that ask them."""

import http.client
import json
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

HANGS = 120  #: seconds
HEAD = b"POST /rank HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 25\r\n"
BODY = b'{"features": [[1, 2, 3]]}'


class Client:
    """One connection after the other to a service on this machine."""

    def __init__(self, port):
        self.port = port

    def ask(self, method, path, body=None, headers=None):
        """Status and answer; a body that is no bytes is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGS)
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, sent, headers or ({"Content-Type": "application/json"} if body is not None else {}))
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content) if content else None

    def rank(self, body, name=None):
        return self.ask("POST", "/rank" if name is None else f"/models/{name}/rank", body)

    def connected(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=HANGS)

    def refused(self):
        """Tell whether nobody listens any more; a connection that was queued when the listener closed is reset."""
        try:
            self.connected().close()
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:
            pass
        return False

    def raw(self, sent):
        """Return the answer to these bytes, or what came before the service closed the connection."""
        with self.connected() as wire:
            wire.sendall(sent)
            return received(wire)


def received(wire):
    answer = b""
    while not answer.endswith(b"}") and (part := wire.recv(1 << 16)):
        answer += part
    return answer


@contextmanager
def service(*arguments, timeout=HANGS, **options):
    """A client of a service in a process of its own, and the process, which is started with ``options`` of `subprocess.Popen`."""
    words = [sys.executable, "-c", "from exactrank.cli import main; main()", "serve", *map(str, arguments), "--port", "0"]
    words += ["--timeout", str(timeout)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
    try:
        message = process.stderr.readline()
        match = re.search(r"http://127\.0\.0\.1:(\d+)$", message.strip())
        assert match, message + process.stderr.read()
        client = Client(int(match[1]))
        assert client.ask("GET", "/ready")[0] == 200
        yield client, process
    finally:
        process.terminate()
        process.communicate(timeout=HANGS)


def wait_for(holds):
    """Until it comes to pass."""
    end = time.monotonic() + HANGS
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"


class Wire:
    """The transport of a connection, as the server sees it."""

    def __init__(self):
        self.sent, self.ended, self.closed = b"", False, False

    def write(self, data):
        self.sent += data

    def write_eof(self):
        self.ended = True

    def close(self):
        self.closed = True

    abort = close

    def is_closing(self):
        return self.closed

    def get_extra_info(self, _):
        return None

    def pause_reading(self):
        pass

    resume_reading = pause_reading
