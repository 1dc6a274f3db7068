"""One client of the daemon: its frames, limits and deadlines; one task per request.

Every bound answers ``busy`` or stops reading; nothing here grows with what a client sends. What a
method means is ``rpc.dispatch``'s business alone.

Contract: wire.hello, wire.requests, wire.bounds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Collection
from typing import Any

import msgspec

from .. import __version__
from ..context import Access, Context
from ..errors import InvalidParams
from ..rpc.access import Caller
from ..rpc.dispatch import dispatch
from ..rpc.envelopes import ClientHello, DaemonHello, Progress, Request, Response
from ..rpc.fitting import fit
from ..shared import fields, methods
from ..shared.peer import hung_up, peer_groups, peer_pid, peer_uid
from ..shared.settings_table import BY_NAME, DAEMON, RETRIEVAL
from . import frames, memory_use

log = logging.getLogger("cpersona.server")

WRITE_HIGH_WATER = 1 << 20  # unread answer bytes at which a connection is no longer read
READS_PER_CONNECTION = 4  # reads of one connection at a time, as many as there are reader threads
MAX_UNREAD_BYTES = 160 << 20  # unread answer bytes at which a connection is given up: above that many whole frames
MAX_ALL_UNREAD_BYTES = 512 << 20  # the same over all connections: the one that has most is given up
MAX_PARTIAL_BYTES = 256 << 20  # bytes of unfinished frames over all connections
LARGE_BYTES = 64 << 10  # a request below that is never too much: there are at most MAX_IN_FLIGHT
GIVE_BACK_BYTES = 16 << 20


class Hub:
    """What all connections of one daemon share: who is connected, what runs, and how much of it there may be.

    ``at_rest`` and ``last_activity`` are what idleness is judged by.
    """

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.identity = _identity(ctx)
        self.identity_for_strangers = _as_told_to_strangers(self.identity)
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.connections: set[Connection] = set()
        self.tasks: dict[asyncio.Task, tuple[Connection, Request]] = {}
        self.partial_bytes = 0
        self.held_bytes = 0
        self.slow: set[Connection] = set()  # who has not read what was written
        self._moved = 0
        self.stopping = False
        self.last_activity = ctx.clock.monotonic()

    def touch(self) -> None:
        self.last_activity = self.ctx.clock.monotonic()

    def at_rest(self, besides: Connection | None = None) -> bool:
        """Tell whether nobody (besides one connection) is connected and nothing is at work."""
        others = len(self.connections) - (besides in self.connections)
        return not (
            others
            or self.tasks
            or self.ctx.db.writes_in_flight
            or self.ctx.backlog
            and self.ctx.backlog.busy
            or self.ctx.status.working
            or self.ctx.spool.busy
        )

    def bound_unread(self) -> None:
        """Give up the connection that has the most unread answers where all together have too many."""
        unread = {connection: connection.unread for connection in self.slow}
        if sum(unread.values()) > MAX_ALL_UNREAD_BYTES:
            log.warning("gave up the connection that reads its answers least: too many are unread")
            max(unread, key=lambda connection: unread[connection]).abort()

    def moved(self, size: int) -> None:
        """Count bytes that came or went; once large ones are through, what they took is given back to the system."""
        if size >= LARGE_BYTES:
            self._moved += size
        if self._moved >= GIVE_BACK_BYTES and not self.held_bytes and not self.slow:
            self._moved = 0
            self.loop.run_in_executor(None, memory_use.give_back)


def _identity(ctx: Context) -> dict[str, Any]:
    """Return what the daemon says of itself in its hello."""
    settings = ctx.settings
    return {
        "protocol": fields.PROTOCOL,
        "version": __version__,
        "capabilities": list(fields.CAPABILITIES),
        "db": ctx.places.db,
        "settings_digest": settings.digest(),
        "pid": os.getpid(),
        "settings": {
            n: BY_NAME[n].shown(v) for scope in (DAEMON, RETRIEVAL) for n, v in settings.carried(scope).items()
        },
    }


def _as_told_to_strangers(identity: dict[str, Any]) -> dict[str, Any]:
    """Return what is said to whom the access file does not know: enough to tell them so, nothing of settings or use."""
    return identity | {"settings_digest": "", "settings": {}, "busy": True}


class Connection(asyncio.Protocol):
    """One client: a hello each way, then pipelined requests whose answers are matched by id."""

    def __init__(self, server: Hub) -> None:
        self.server = server
        self.caller: Caller | None = None  # None after the hello: nobody the access file knows
        self.uid, self.pid = -1, 0
        self.since = server.ctx.clock.monotonic()
        self.lost = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._partial = 0
        self._timer: asyncio.TimerHandle | None = None
        self._in_flight = 0
        self._held = 0
        self._begun: dict[asyncio.Task, tuple[str, float]] = {}  # in the order in which they came
        self._reading = asyncio.Semaphore(READS_PER_CONNECTION)
        self._writable = asyncio.Event()
        self._writable.set()
        self._same_protocol = True
        self._greeted = self._paused = self._closing = self._ended = False

    # -- what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, server = transport, self.server
        server.connections.add(self)
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)
        try:
            self.uid = peer_uid(transport.get_extra_info("socket"))
            self.pid = peer_pid(transport.get_extra_info("socket"))
        except OSError:
            self._refuse("permission_denied", "the system does not tell who is asking")
            return
        if not server.ctx.access.admits(self.uid):
            log.warning("refused a connection from uid %d", self.uid)
            self._refuse("permission_denied", "this daemon serves its own user alone")
            return
        if server.stopping:
            self._refuse("shutting_down", "the daemon is stopping")
            return
        if len(server.connections) > fields.MAX_CONNECTIONS:
            self._refuse("busy", f"{fields.MAX_CONNECTIONS} connections are open already")
            return
        self._set_timer(fields.HELLO_SECONDS, "no hello arrived in time")

    def data_received(self, data: bytes) -> None:
        if not self._closing:
            self._buffer += data
            self._read_frames()

    def eof_received(self) -> bool:
        """The client has said everything; what it asked is still answered."""
        self._ended = True
        if not self.is_there():
            self.abort()  # it will read no answer: what is only worth one is given up
        elif self._buffer and not self._paused:
            self._refuse("invalid_params", "the stream ended inside a frame")
        elif not self._in_flight:
            self.close()
        return not self._closing

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = True
        self._set_timer(None)
        self._buffer = bytearray()
        self._count_partial()
        self.server.connections.discard(self)
        self.server.slow.discard(self)
        self.server.moved(0)
        self.server.touch()
        self.lost.set()
        # Nobody waits for the answer: a short write is finished, anything else would be work for nothing.
        for task, (connection, request) in list(self.server.tasks.items()):
            method = methods.of(request.method)
            if connection is self and (method.reads or not method.limited):
                task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()
        self.server.slow.add(self)
        self._hold()

    def resume_writing(self) -> None:
        self._writable.set()
        self.server.slow.discard(self)
        self._release()

    # -- frames in

    def _read_frames(self) -> None:
        """Take every whole frame that has come, and see to it that the rest comes in time."""
        buffer, taken = self._buffer, 0
        while not (self._closing or self._paused) and (body := self._next_body(taken)) is not None:
            taken += fields.LENGTH_BYTES + len(body)
            self._take(body)
            self.server.moved(len(body))
        if self._closing:
            return
        if taken:
            del buffer[:taken]
        self._count_partial()
        if self.server.partial_bytes > MAX_PARTIAL_BYTES:
            self._refuse("busy", "too many large frames arrive at once")
        elif self._greeted:  # before, the timer of the hello runs
            self._time_the_rest(bool(taken))

    def _next_body(self, at: int) -> bytes | None:
        """Return the frame at a place of the buffer, None where it is not whole yet, or too large: that is refused."""
        buffer, start = self._buffer, at + fields.LENGTH_BYTES
        if len(buffer) < start:
            return None
        length = int.from_bytes(buffer[at:start], "big")
        limit = fields.MAX_FRAME_BYTES if self._greeted else fields.MAX_HELLO_BYTES
        if length > limit:
            self._refuse("invalid_params", f"a frame of {length} bytes is above the limit of {limit}")
            return None
        if len(buffer) - start < length:
            return None
        with memoryview(buffer) as view:
            return bytes(view[start : start + length])

    def _time_the_rest(self, began_anew: bool) -> None:
        if not self._buffer or self._paused:
            self._set_timer(None)
        elif began_anew or self._timer is None:
            self._set_timer(fields.PARTIAL_FRAME_SECONDS, "a frame was not finished in time")

    def _count_partial(self) -> None:
        self.server.partial_bytes += len(self._buffer) - self._partial
        self._partial = len(self._buffer)

    def _take(self, body: bytes) -> None:
        try:
            if not self._greeted:
                self._greet(frames.decode_hello(body))
            else:
                request = frames.decode_request(body)
                self._begin(request, frames.weight(request) if len(body) > frames.SMALL_BYTES else len(body))
        except frames.BadFrame as error:
            if error.fatal:
                self._refuse(error.code, str(error))
            else:
                self._answer(error.id, methods.of(error.method).failed(str(error)), error.code)

    def _greet(self, hello: ClientHello) -> None:
        self._set_timer(None)
        self._greeted, server = True, self.server
        self.caller = self._identified(hello.token)
        self._same_protocol = hello.protocol == fields.PROTOCOL
        if self.caller is None:
            self._send(DaemonHello(**server.identity_for_strangers))
            return
        self._send(DaemonHello(busy=not server.at_rest(besides=self), **server.identity))

    def _identified(self, token: str) -> Caller | None:
        access: Access = self.server.ctx.access
        groups: Collection[int] = ()
        if access.by_group and self._transport is not None:
            with contextlib.suppress(OSError):  # gone since; it will read no answer
                groups = peer_groups(self._transport.get_extra_info("socket"))
        caller: Caller | None = access.identify(token, self.uid, groups)
        return caller

    def _begin(self, request: Request, weight: int) -> None:
        server, method = self.server, methods.of(request.method)
        if server.stopping:
            self._answer(request.id, method.failed("the daemon is stopping"), "shutting_down")
            return
        if not self._same_protocol and not method.control:
            self._answer(request.id, method.failed(f"the daemon speaks protocol {fields.PROTOCOL}"), "protocol")
            return
        if len(server.tasks) >= fields.MAX_IN_FLIGHT:
            self._answer(request.id, method.failed(f"{fields.MAX_IN_FLIGHT} requests are under way already"), "busy")
            return
        if weight > LARGE_BYTES and server.held_bytes and server.held_bytes + weight > fields.MAX_HELD_BYTES:
            self._answer(request.id, method.failed("requests that hold too much at once are under way already"), "busy")
            return
        if request.deadline_ms is not None and request.deadline_ms < 0:
            self._answer(request.id, method.failed("deadline_ms is below 0"), "invalid_params")
            return
        self._in_flight += 1
        self._held += weight
        server.held_bytes += weight
        task = server.loop.create_task(self._serve(request))
        server.tasks[task] = (self, request)
        self._begun[task] = (request.method, server.ctx.clock.monotonic())
        task.add_done_callback(lambda task: self._finished(task, weight))
        if self._is_full:
            self._hold()

    # -- what others ask

    def is_there(self) -> bool:
        """Tell whether the client still holds its end of the connection."""
        if self._transport is None or self._transport.is_closing():
            return False
        return not hung_up(self._transport.get_extra_info("socket"))

    def told(self, now: float) -> dict:
        """Return who this is and what it has asked for longest."""
        method, since = next(iter(self._begun.values()), (None, self.since))
        return {"pid": self.pid, "uid": self.uid, "method": method, "seconds": round(now - since, 3)}

    # -- one request

    @property
    def reads(self) -> bool:
        """Whether the client takes its answers as they come."""
        return self._writable.is_set()

    async def _serve(self, request: Request) -> None:
        """Run one request.

        What is read waits until the client has taken what it was given, at no cost to its deadline.
        """
        method = methods.of(request.method)
        if not method.reads:
            await self._run(request, method)
            return
        if method.waits:
            await self.server.ctx.spool.settled()
        async with self._reading:
            await self._writable.wait()
            await self._run(request, method)

    async def _run(self, request: Request, method: methods.Method) -> None:
        server = self.server
        milliseconds = method.deadline_ms if request.deadline_ms is None else request.deadline_ms
        seconds = None if milliseconds is None else milliseconds / 1000
        progress = (lambda told: self.tell_progress(request.id, told)) if request.progress else None
        started = server.ctx.clock.monotonic()
        try:
            async with asyncio.timeout(seconds):
                response, code = await dispatch(server.ctx, self.caller, request, progress)
        except TimeoutError:
            response, code = method.failed(f"no answer within the deadline of {seconds:g} s"), "timed_out"
        except asyncio.CancelledError:
            response, code = method.failed("the daemon stopped before this was done"), "shutting_down"
        except Exception:
            log.exception("%s failed outside its handler", method.name)
            response, code = method.failed("an internal error; the log says more"), "internal"
        else:
            self._answer(request.id, response, code)
            return
        server.ctx.status.record(method.name, server.ctx.clock.monotonic() - started, code)
        self._answer(request.id, response, code)

    @property
    def _is_full(self) -> bool:
        return (
            self._in_flight >= fields.MAX_IN_FLIGHT_PER_CONNECTION or self._held >= fields.MAX_HELD_BYTES_PER_CONNECTION
        )

    def _finished(self, task: asyncio.Task, weight: int) -> None:
        self.server.tasks.pop(task, None)
        self._begun.pop(task, None)
        self._in_flight -= 1
        self._held -= weight
        self.server.held_bytes -= weight
        self.server.moved(0)
        self.server.touch()
        if not task.cancelled() and task.exception() is not None:
            log.error("a request ended without an answer", exc_info=task.exception())
        self._release()
        if self._ended and not self._in_flight and not self._buffer:
            self.close()

    def tell_progress(self, id: int | str, told: dict) -> None:
        """Send a progress frame, from any thread; one that the client is too slow to read is left out."""
        if threading.get_ident() != self.server.thread:
            self.server.loop.call_soon_threadsafe(self.tell_progress, id, told)
        elif self.reads:
            self._send(Progress(id, told))

    # -- frames out

    def _answer(self, id: int | str | None, response: dict, code: str | None) -> None:
        try:
            try:
                self._send(Response(id, response, code))
            except Exception:
                self._send(Response(id, fit(response), code))
        except InvalidParams as error:
            self._send(Response(id, methods.UNKNOWN.failed(str(error)), "refused"))
        except Exception:  # the answer holds what msgpack cannot carry: ours to mend, not the client's
            log.exception("an answer could not be encoded")
            self._send(Response(id, methods.UNKNOWN.failed("an internal error; the log says more"), "internal"))

    @property
    def unread(self) -> int:
        """Bytes that were written to the client and that it has not read."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def _send(self, envelope: msgspec.Struct) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        frame = frames.encode(envelope)
        if self.unread + len(frame) > MAX_UNREAD_BYTES:
            log.warning("gave up a connection that does not read its answers")
            self.abort()
            return
        self._transport.write(frame)
        self.server.moved(len(frame))
        if self.server.slow:
            self.server.bound_unread()

    # -- flow and end

    def _hold(self) -> None:
        if not (self._paused or self._closing):
            self._paused = True
            self._set_timer(None)
            if self._transport is not None:
                self._transport.pause_reading()

    def _release(self) -> None:
        if not self._paused or self._closing or not self.reads or self._is_full:
            return
        self._paused = False
        self._read_frames()
        if self._transport is not None and not (self._paused or self._closing):
            self._transport.resume_reading()

    def _set_timer(self, seconds: float | None, text: str = "") -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.server.loop.call_later(seconds, self._refuse, "timed_out", text)

    def _refuse(self, code: str, text: str) -> None:
        """Answer what cannot be matched to a request, and close: the stream cannot be trusted any further."""
        if not self._closing:
            self._answer(None, {"ok": False, "error": text}, code)
            self.close()

    def close(self) -> None:
        """Close once everything written has been read by the client."""
        self._closing = True
        self._set_timer(None)
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        self._closing = True
        if self._transport is not None:
            self._transport.abort()
