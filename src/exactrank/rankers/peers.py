"""Connections between the ranks that grow one forest together, and LightGBM's sums over all of them.

LightGBM can train on several machines: each, a rank, holds some of the documents, and their histograms are added up. Its own network waits
for ever when a rank dies. So the connections here are ours, handed to LightGBM as the two functions that it needs:

    reduce-scatter    of blocks 0..n-1 that every rank has, rank r gets the sum of all blocks r                  (1)
    allgather         every rank gets the block of each                                                         (2)

A wait ends when a connection breaks, when somebody calls `Peers.close`, or when its limit is over. LightGBM cannot be told of a failure in
the midst of a tree. So after one, (1) and (2) answer with what the rank itself knows, which ends the tree soon, and `Peers.check` raises.

Every rank connects to those before it. Ports are chosen by the system at the moment a rank begins to listen, so no two can collide. Who
does not know the key of the session is turned away.
"""

import ctypes
import select
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import lightgbm as lgb
import numpy as np
import numpy.typing as npt

#: What a rank says first: the key of the session, and its number.
HELLO = struct.Struct("=16sI")
Address = tuple[str, int]

_POINTER, _INT, _SIZES = ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32)
_Reducer = ctypes.CFUNCTYPE(None, _POINTER, _POINTER, ctypes.c_int, _INT)
_ReduceScatter = ctypes.CFUNCTYPE(
    None, _POINTER, _INT, ctypes.c_int, _SIZES, _SIZES, ctypes.c_int, _POINTER, _INT, ctypes.POINTER(_Reducer)
)
_Allgather = ctypes.CFUNCTYPE(None, _POINTER, _INT, _SIZES, _SIZES, ctypes.c_int, _POINTER, _INT)


class LostRankError(ConnectionError):
    """A rank cannot go on because another one is gone, or does not answer."""


def listen(host: str) -> socket.socket:
    """A port of ``host`` on which other ranks can call, chosen by the system."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family, backlog=512)


class Peers:
    """The connections of rank ``rank`` with all others, which listen at ``addresses``; ``limit`` is the longest wait in seconds."""

    def __init__(self, rank: int, listener: socket.socket, addresses: Sequence[Address], key: bytes, limit: float) -> None:
        self.rank, self.count, self.limit = rank, len(addresses), limit
        self.sent = 0  #: bytes so far
        self._key, self._addresses = key, addresses
        self._sockets: dict[int, socket.socket] = {}
        self._trouble: Exception | None = None
        self._functions = _ReduceScatter(self._reduce_scatter), _Allgather(self._allgather)
        with listener:
            try:
                for other in range(rank):
                    self._sockets[other] = self._called(other)
                self._accept(listener)
            except OSError as error:
                self.close()
                raise LostRankError(
                    f"rank {rank} cannot reach the others: {error}; workers must be able to connect to each other"
                ) from error
        for each in self._sockets.values():
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.setblocking(False)

    def _called(self, other: int) -> socket.socket:
        made = socket.create_connection(self._addresses[other], timeout=self.limit)
        made.sendall(HELLO.pack(self._key, self.rank))
        return made

    def _accept(self, listener: socket.socket) -> None:
        """Wait for the ranks after this one; whoever does not know the key is turned away."""
        until = time.monotonic() + self.limit
        while len(self._sockets) < self.count - 1:
            listener.settimeout(max(1e-3, until - time.monotonic()))
            try:
                made, _ = listener.accept()
            except TimeoutError:
                missing = sorted(set(range(self.count)) - {self.rank, *self._sockets})
                raise TimeoutError(f"rank {missing[0]} did not call within {self.limit:g} s") from None
            made.settimeout(self.limit)
            said = b""
            with suppress(OSError):
                said = made.recv(HELLO.size, socket.MSG_WAITALL)
            key, other = HELLO.unpack(said) if len(said) == HELLO.size else (b"", 0)
            if key == self._key and self.rank < other < self.count and other not in self._sockets:
                self._sockets[other] = made
            else:
                made.close()

    def close(self) -> None:
        """End all connections; whoever waits for this rank, here or elsewhere, then knows."""
        for each in self._sockets.values():
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def check(self) -> None:
        """Raise if a sum was not what it should be."""
        if self._trouble is not None:
            raise LostRankError(str(self._trouble)) from self._trouble

    def exchange(self, sent: Sequence[memoryview], sizes: Sequence[int]) -> list[bytearray]:
        """Send ``sent[r]`` to each rank r, and get ``sizes[r]`` bytes from it."""
        got = [bytearray(size) for size in sizes]
        out = {r: sent[r] for r in self._sockets if len(sent[r])}
        into = {r: memoryview(got[r]) for r in self._sockets if sizes[r]}
        self.sent += sum(map(len, out.values()))
        for r in [*out]:  # what fits into the system's buffers goes at once
            self._advance(r, select.POLLOUT, out, {})
        while out or into:
            for r, what in self._ready(out, into):
                self._advance(r, what, out, into)
        return got

    def _ready(self, out: Mapping[int, memoryview], into: Mapping[int, memoryview]) -> Iterator[tuple[int, int]]:
        """The ranks that can be sent to or heard now, once there is one, and what of it."""
        poll, number = select.poll(), {}
        for r in {**out, **into}:
            descriptor = self._sockets[r].fileno()
            if descriptor < 0:
                raise LostRankError("training was ended")
            number[descriptor] = r
            poll.register(descriptor, (select.POLLIN if r in into else 0) | (select.POLLOUT if r in out else 0))
        ready = poll.poll(1000 * self.limit)
        if not ready:
            slow = min(number.values())
            raise LostRankError(f"rank {slow} at {self._at(slow)} did not answer for {self.limit:g} s")
        for descriptor, what in ready:
            yield number[descriptor], what

    def _advance(self, r: int, what: int, out: dict[int, memoryview], into: dict[int, memoryview]) -> None:
        """Send to and receive from rank ``r`` what is possible now."""
        try:
            if r in into and what & ~select.POLLOUT:
                count = self._sockets[r].recv_into(into[r])
                if count == 0:
                    raise LostRankError(f"rank {r} at {self._at(r)} has ended")
                into[r] = into[r][count:]
                if not into[r]:
                    del into[r]
            elif r in out and what:
                out[r] = out[r][self._sockets[r].send(out[r]) :]
                if not out[r]:
                    del out[r]
        except BlockingIOError:
            pass
        except LostRankError:
            raise
        except OSError as error:
            raise LostRankError(f"rank {r} at {self._at(r)} has ended ({error})") from error

    def _at(self, r: int) -> str:
        return "{}:{}".format(*self._addresses[r])

    def gathered(self, own: npt.NDArray[Any], rows: Sequence[int] | None = None) -> list[npt.NDArray[Any]]:
        """The array of each rank, flat; they are as long as ``own``, or have these numbers of rows, as wide as those of ``own``."""
        packed = memoryview(np.ascontiguousarray(own).data).cast("B") if own.size else memoryview(b"")
        row = own.nbytes // max(1, len(own)) if own.size else own.itemsize * int(np.prod(own.shape[1:]))
        got = self.exchange([packed] * self.count, [row * size for size in rows or [len(own)] * self.count])
        return [own.ravel() if r == self.rank else np.frombuffer(got[r], own.dtype) for r in range(self.count)]

    def collected(self, own: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """The array of each rank, flat, of any length."""
        return self.gathered(own, [int(each[0]) for each in self.gathered(np.array([len(own)]))])

    def largest(self, *values: float) -> list[float]:
        """The largest of each value that the ranks have."""
        found: list[float] = np.max(self.gathered(np.array(values, np.float64)), axis=0).tolist()
        return found

    @contextmanager
    def connected(self) -> Iterator[None]:
        """LightGBM, in this thread, sums over all ranks."""
        library: Any = lgb.basic._LIB  # type: ignore[attr-defined]
        # LightGBM logs by the thread, and says nothing of it once it has read such a setting there.
        lgb.basic._safe_call(library.LGBM_GetSampleCount(ctypes.c_int32(1), b"verbosity=-1", ctypes.byref(ctypes.c_int32())))
        pointers = [ctypes.cast(each, _POINTER) for each in self._functions]
        lgb.basic._safe_call(library.LGBM_NetworkInitWithFunctions(ctypes.c_int(self.count), ctypes.c_int(self.rank), *pointers))
        try:
            yield
        finally:
            lgb.basic._safe_call(library.LGBM_NetworkFree())

    def _exchanged(self, sent: Sequence[memoryview], sizes: Sequence[int]) -> list[bytearray] | None:
        """What others sent; None where that failed, now or before. No exception may leave a function that LightGBM calls."""
        if self._trouble is None:
            try:
                return self.exchange(sent, sizes)
            except Exception as error:
                self._trouble = error
                self.close()
        return None

    def _reduce_scatter(self, given, size, width, starts, lengths, blocks, output, output_size, reducer) -> None:  # type: ignore[no-untyped-def]
        """(1)"""
        whole, own = memoryview((ctypes.c_char * size).from_address(given)).cast("B"), lengths[self.rank]
        cut = [whole[starts[r] : starts[r] + lengths[r]] for r in range(blocks)]
        got = self._exchanged(cut, [own] * self.count)
        parts = [cut[r] if r == self.rank else got[r] for r in range(self.count)] if got else [cut[self.rank]]
        place = [ctypes.addressof(ctypes.c_char.from_buffer(part)) for part in parts] if own else []
        for number, part in enumerate(place):
            if number == 0:
                ctypes.memmove(output, part, own)
            else:
                reducer[0](part, output, width, own)

    def _allgather(self, given, size, starts, lengths, blocks, output, output_size) -> None:  # type: ignore[no-untyped-def]
        """(2)"""
        own = memoryview((ctypes.c_char * lengths[self.rank]).from_address(given)).cast("B")
        got = self._exchanged([own] * self.count, [lengths[r] for r in range(blocks)])
        for r in range(blocks):
            part = own if r == self.rank or got is None else got[r]
            if size := min(len(part), lengths[r]):
                ctypes.memmove(output + starts[r], ctypes.addressof(ctypes.c_char.from_buffer(part)), size)
