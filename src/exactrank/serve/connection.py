"""HTTP/1.1 connections, with a limit on everything that a client can send or leave undone.

uvicorn and httptools parse and answer; this module bounds them:

- A head has at most `HEAD_BYTES`, `ADDRESS_BYTES` of them for the address, and `HEADERS` headers. No more than twice `HEAD_BYTES`
  may arrive without any part of a body among them, which bounds trailers, chunk extensions and empty lines.
- The head of a request must be complete `Rules.timeout` seconds after the connection was opened or the previous answer was sent, and an
  answer must be read in that time. Bytes that arrive do not extend it.
- A process holds at most `CONNECTIONS` connections, fewer if it may open fewer files. One more takes the place of the one that has been
  waiting longest for a request; if all are being answered, it is refused.
- An ``Upgrade`` header is ignored, as RFC 9110 (7.8) allows: the request is read as if it were not there.
- Connections close in two steps (RFC 9112, 9.6): the server stops writing and discards what still arrives until the client closes too.
  Otherwise a reset could overtake the answer to a client that is still sending.
- When the service ends, every answer says ``Connection: close``. A connection without a request stays open for `GRACE` seconds, because a
  request may be on its way.
"""

import json
from asyncio import TimerHandle, Transport
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 << 10
HEADERS = 100
ADDRESS_BYTES = 8 << 10
CONNECTIONS = 4096
RESERVED_FILES = 64  #: descriptors that are left for everything other than connections
GRACE = 1.0  #: seconds
LINGER = 2.0  #: seconds for which a closing connection discards what arrives


class HttpError(Exception):
    """A request that the HTTP layer refuses, with the status and the words of the answer."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail

    def answer(self) -> bytes:
        """Return the whole response."""
        body = json.dumps({"detail": self.detail, "place": None}).encode()
        head = f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\ncontent-type: application/json\r\n"
        return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body


INVALID = HttpError(HTTPStatus.BAD_REQUEST, "this is not a valid HTTP/1.1 request")
NO_TUNNEL = HttpError(HTTPStatus.BAD_REQUEST, "CONNECT is not supported; send GET or POST requests")
LONG_ADDRESS = HttpError(HTTPStatus.REQUEST_URI_TOO_LONG, f"the address has more than {ADDRESS_BYTES:,} bytes; GET /openapi.json lists all")
LONG_HEAD = HttpError(
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    f"the request has more than {HEAD_BYTES:,} bytes besides its body, or more than {HEADERS} headers; send fewer",
)
FULL = HttpError(HTTPStatus.SERVICE_UNAVAILABLE, "all connections are in use; try again later")


def connection_limit() -> int:
    """Return how many connections this process may hold; raise its limit on open files if that is needed and allowed."""
    try:
        import resource
    except ImportError:  # Windows, where sockets are not files
        return CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files_needed = CONNECTIONS + RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= files_needed:
        return CONNECTIONS
    new_soft = files_needed if hard == resource.RLIM_INFINITY else min(files_needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (new_soft, hard))
    return max(1, new_soft - RESERVED_FILES)


class LingeringTransport:
    """Transport whose `close` only ends writing; ``on_close`` does the rest."""

    def __init__(self, transport: Transport, on_close: Callable[[], None]) -> None:
        self._transport, self._on_close, self._closing = transport, on_close, False
        self.write, self.pause_reading, self.resume_reading = transport.write, transport.pause_reading, transport.resume_reading

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Return whether `close` was called or the connection is lost."""
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        """Send what was written, then the end of the stream."""
        if self.is_closing():
            return
        self._closing = True
        self._transport.write_eof()
        self._on_close()


class Connection(HttpToolsProtocol):
    """A connection within limits; `with_timeout` makes the class for a service, whose connections share their counts."""

    seconds: ClassVar[float]
    max_connections: ClassVar[int]
    ending: ClassVar[bool]  #: whether the service is about to end
    waiting: ClassVar[dict["Connection", None]]  #: connections without a request, the one that has waited longest first
    _timer: TimerHandle | None = None
    _since_body = 0  #: bytes that have arrived since the last part of a body
    _in_body = False
    _discards = False  #: whether what arrives is ignored, after an invalid request

    @classmethod
    def with_timeout(cls, seconds: float) -> type["Connection"]:
        """Return a class of connections whose clients have ``seconds`` for each step."""
        return type("Limited", (cls,), {"seconds": seconds, "max_connections": connection_limit(), "ending": False, "waiting": {}})

    # ---- transport

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        lingering: Any = LingeringTransport(transport, self._linger)
        super().connection_made(lingering)
        if len(self.connections) > self.max_connections and not self._make_room():
            self.transport.write(FULL.answer())
            transport.close()
        else:
            self._await_request()

    def _make_room(self) -> bool:
        """Close the connection that has waited longest for a request, if there is one."""
        longest = next(iter(self.waiting), None)
        if longest is None:
            return False
        longest._stop_timer()
        longest.transport.abort()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_timer(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timer()
        if self.transport.is_closing():
            self._linger()
        elif self.cycle is not None and self.cycle.response_complete:
            self._await_request()

    def _linger(self) -> None:
        """Discard what arrives until the client closes the connection or time is up."""
        self.flow.resume_reading()
        if not self.flow.write_paused:  # otherwise the client has more time, to read its answer
            self._start_timer(LINGER, self.transport.abort)

    # ---- timeouts

    def _await_request(self) -> None:
        if self.flow.write_paused:  # `resume_writing` comes back here
            return
        self._start_timer(min(GRACE, self.seconds) if self.ending else self.seconds, self.transport.close)
        self.waiting[self] = None

    def _start_timer(self, seconds: float, end: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, end)

    def _stop_timer(self) -> None:
        self.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def shutdown(self) -> None:
        """Announce that the connection closes, now that the service ends."""
        if self in self.waiting:
            self._await_request()
        elif self.cycle is not None:
            self.cycle.keep_alive = False

    # ---- received bytes

    def data_received(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            for start in range(0, len(data), HEAD_BYTES):  # so that a long head is refused early
                if self._discards or self.transport.is_closing():
                    return
                self._parse(view[start : start + HEAD_BYTES])
        except HttpError as error:
            self._refuse(error)
        except httptools.HttpParserError as error:
            self._refuse(error.__context__ if isinstance(error.__context__, HttpError) else INVALID)

    def _parse(self, piece: memoryview) -> None:
        self._since_body += len(piece)
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._parse_without_upgrade(piece[upgrade.args[0] :])
        if self._since_body > HEAD_BYTES:
            raise LONG_HEAD

    def _parse_without_upgrade(self, rest: memoryview) -> None:
        """Read the request again without its ``Upgrade`` header: httptools would take its body for the new protocol."""
        request_line = b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        headers = [b"%s: %s\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        try:
            self.parser.feed_data(b"".join([request_line, *headers, b"\r\n"]))
        except httptools.HttpParserUpgrade:
            raise NO_TUNNEL from None
        if rest:
            self._parse(rest)

    def on_message_begin(self) -> None:
        self._in_body = False
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > ADDRESS_BYTES:
            raise LONG_ADDRESS

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:  # a trailer
            return
        if len(self.headers) == HEADERS:
            raise LONG_HEAD
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES:
            raise LONG_HEAD
        self._in_body, self._since_body = True, 0
        self._stop_timer()
        super().on_headers_complete()
        if self.ending:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._since_body = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        idle = not self.pipeline
        super().on_response_complete()
        self._unset_keepalive_if_required()  # uvicorn's own timer, which any byte would stop
        if idle and not self.transport.is_closing():
            self._await_request()

    def _refuse(self, error: HttpError) -> None:
        """Answer and close, unless an earlier request is yet to be answered: then close after that."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(error.answer())
            self.transport.close()
        elif not self.pipeline and self.cycle.more_body and not self.cycle.response_started:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self.transport.write(error.answer())
            self.transport.close()
        elif self.pipeline or self.cycle.more_body:
            self.transport.close()
        else:
            self.cycle.keep_alive = False
            self._discards = True
