"""The daemon from its first step to its last: stages of start-up, the watch, and the way out.

start: umask, settings, directories, lock, socket (bound), parts, note, socket (listening), ready.
stop:  no more connections, what runs is finished, parts are closed (WAL folded), note and socket are
removed, and the lock falls with the process's last descriptor.

Contract: daemon.life.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from .. import __version__
from ..context import Context
from ..errors import CPersonaError, SettingsConflict
from ..model.clock import Clock, SystemClock
from ..model.instants import iso_now
from ..shared import fields, files, header
from ..shared.paths import Places
from ..shared.settings import Settings
from . import opening, ownership
from .server import Server

log = logging.getLogger("cpersona.lifecycle")

TICK_SECONDS = 5.0
DESCRIPTORS = 4096
# A thread that comes back from SQLite waits this long for one that computes in Python (Python's own choice is 5 ms). A
# recall comes back some twenty times: beside an import or a calibration it takes less than half as long as with 5 ms.
SWITCH_SECONDS = 0.0005
_NOT_YET: Any = None  # a part of the daemon before `_start` is through


async def open_context(settings: Settings, places: Places, clock: Clock) -> Context:
    """Open every part of one database; the caller holds its lock. Raises CPersonaError and leaves nothing open."""
    ctx = await opening.open_early(settings, places, clock)
    try:
        await ctx.opening.wanted()
    except BaseException:
        await opening.close(ctx)
        raise
    return ctx


close_context = opening.close


class Daemon:
    """One running daemon. ``run`` is its whole life; ``request_stop`` only sets a flag."""

    def __init__(
        self, settings: Settings, places: Places, clock: Clock | None = None, warnings: Iterable[str] = ()
    ) -> None:
        self.settings, self.places, self.clock = settings, places, clock or SystemClock()
        self.own: ownership.OwnSocket = _NOT_YET
        self.server: Server = _NOT_YET
        self._warnings = warnings  # what was noticed before there was anybody to tell
        self._lock = -1
        self._orphaned = False
        self._stop = asyncio.Event()
        self._why = ""

    async def run(self, tell: Callable[[dict], None] = lambda line: None) -> None:
        """Start, serve until asked to stop, and leave nothing behind. Raises CPersonaError when starting failed.

        ``tell`` is called once: with {"ready": true, "pid"}, or {"error", "code"}.
        """
        try:
            ctx = await self._start()
        except BaseException as error:
            log.error("not started: %s", error)
            tell({"error": str(error) or type(error).__name__, "code": getattr(error, "code", "internal")})
            raise
        tell({"ready": True, "pid": os.getpid()})
        _notify_systemd("READY=1")
        log.info("serving %s at %s, version %s", self.places.db, self.own.path, __version__)
        try:
            await self._watch()
        finally:
            _notify_systemd("STOPPING=1")
            log.info("leaving: %s", self._why)
            await self._finish(ctx)

    def request_stop(self, why: str) -> None:
        """Ask the daemon to leave; the first reason is kept. Only for the loop's own thread."""
        self._why = self._why or why
        self._stop.set()

    def status(self) -> dict:
        """Return what is known of the process as a whole."""
        return {
            "socket": self.own.path,
            "activated": self.own.activated,
            "idle_timeout": self.settings.idle_timeout,
            "connections": len(self.server.connections),
            "clients": self.server.clients(),
            "in_flight": len(self.server.tasks),
            "stopping": self._stop.is_set(),
            "read_only": self.server.ctx.db.read_only,
        }

    # -- start

    async def _start(self) -> Context:
        self._prepare_process()
        self._check_place()
        new_lock = self._take_place()
        try:
            self.own = ownership.OwnSocket.from_systemd() or ownership.OwnSocket.bind(
                self.places.socket, self._socket_mode(), self.settings.socket_group
            )
            ctx = await opening.open_early(self.settings, self.places, self.clock, self._opened)
        except BaseException:
            if new_lock:
                # It is ours until it is let go, and whoever waits for it looks whether it still has its name.
                os.unlink(self.places.lock)
            self._let_go()
            raise
        try:
            await self._begin_to_serve(ctx)
        except BaseException:
            await close_context(ctx)
            self._let_go()
            raise
        gc.freeze()  # what was made at start stays; collections need not look at it again
        return ctx

    def _prepare_process(self) -> None:
        os.umask(0o077)
        sys.setswitchinterval(SWITCH_SECONDS)
        self._set_signals()
        _raise_descriptor_limit()

    def _check_place(self) -> None:
        """Raise for settings and files with which no daemon can serve; nothing is made before."""
        problems = self.settings.conflicts()
        if problems:
            raise SettingsConflict("; ".join(problems))
        if os.path.lexists(self.places.db) and not os.path.isfile(self.places.db):
            raise SettingsConflict(
                f"CPERSONA_DB_PATH: {self.places.db} is no regular file, so it cannot be the database"
            )
        foreign = header.foreign(self.places.db)
        if foreign is not None:
            raise SettingsConflict(foreign)

    def _take_place(self) -> bool:
        """Make the directories, wait for the database's lock, and tidy what killed processes left.

        Return whether the lock's file is new.
        """
        ownership.make_directories(self.places)
        # Before the wait for a daemon that leaves: what stands there will stay.
        ownership.check_place(self.places.socket)
        new = not os.path.lexists(self.places.lock)
        self._lock = ownership.take_lock(self.places)
        ownership.remove_drafts(self.places)
        with contextlib.suppress(OSError):  # nothing depends on it
            files.tidy(os.path.dirname(self.places.db))
        return new

    async def _begin_to_serve(self, ctx: Context) -> None:
        ctx.daemon = self
        loop = asyncio.get_running_loop()
        ctx.db.on_lost = lambda why: loop.call_soon_threadsafe(self.request_stop, why)
        threading.excepthook = lambda thrown: self._thread_ended(loop, thrown)
        self.server = Server(ctx)
        for warning in self._warnings:
            ctx.status.warn(warning)
        self._write_note()
        await self.server.listen(self.own.sock)

    def _write_note(self) -> None:
        problem = ownership.write_note(
            self.places,
            {
                "pid": os.getpid(),
                "started_at": iso_now(self.clock.now()),
                "version": __version__,
                "protocol": fields.PROTOCOL,
                "socket": self.own.path,
                "activated": self.own.activated,
            },
        )
        if problem is not None:
            log.warning("%s", problem)
            self.server.ctx.status.warn(problem)

    def _opened(self, error: BaseException | None) -> None:
        if error is None:
            gc.freeze()  # numpy and the index came after the first time
        else:
            self.request_stop(f"a part could not be opened: {error}")

    def _thread_ended(self, loop: asyncio.AbstractEventLoop, thrown: threading.ExceptHookArgs) -> None:
        """Leave when a thread ends in a failure.

        What waits for it would wait for ever, and a new daemon begins with all of them.
        """
        name = thrown.thread.name if thrown.thread is not None else "a thread"
        log.critical("%s ended unexpectedly", name, exc_info=thrown.exc_value)
        loop.call_soon_threadsafe(self.request_stop, f"{name} ended unexpectedly ({thrown.exc_type.__name__})")

    def _set_signals(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.request_stop, signal.Signals(number).name)

    def _socket_mode(self) -> int:
        """0600; 0660 only where the operator named the socket's place, or its group, and says in an access file who may
        come.
        """
        named = self.settings.is_set("socket") or self.settings.socket_group
        return 0o660 if named and self.settings.acl_file else 0o600

    # -- the watch

    async def _watch(self) -> None:
        """Wait until asked to stop, looking every few seconds at the ground we stand on and at idleness."""
        idle = self.settings.idle_timeout
        tick = min(TICK_SECONDS, max(idle / 4, 0.05)) if idle else TICK_SECONDS
        while not self._stop.is_set():
            try:
                async with asyncio.timeout(tick):
                    await self._stop.wait()
            except TimeoutError:
                try:
                    await self._look_around()
                except Exception as error:  # a look that fails is no reason to end; the next one may see more
                    log.error("looking around failed: %s", error, exc_info=log.isEnabledFor(logging.DEBUG))

    async def _look_around(self) -> None:
        self.server.heartbeat()
        self.server.ctx.spool.look()
        if not ownership.same_file(self.places.lock, self._lock):
            self.request_stop("the database's lock file was removed or replaced")
            return
        self.server.ctx.db.look()
        state = self.own.state()
        if state == "gone":
            await self._bind_again()
        elif state == "taken" and not self._orphaned:
            self._orphaned = True
            log.warning("somebody else's file stands at %s; leaving it alone", self.own.path)
        if self.server.at_rest():
            quiet = self.clock.monotonic() - self.server.last_activity
            if self._orphaned:
                self.request_stop("the socket was taken and nobody is connected")
            elif self.settings.idle_timeout and quiet >= self.settings.idle_timeout:
                self.request_stop(f"idle for {quiet:.0f} s")

    async def _bind_again(self) -> None:
        """Nobody can reach a socket whose file is gone: make it anew in the same place."""
        try:
            fresh = ownership.OwnSocket.bind(self.own.path, self._socket_mode(), self.settings.socket_group)
        except CPersonaError as error:
            log.warning("the socket's file is gone and cannot be made again: %s", error)
            self._orphaned = True
            return
        log.warning("the socket's file was gone; made it again")
        self.server.stop_listening()
        self.own = fresh
        await self.server.listen(fresh.sock)
        self._write_note()

    # -- the way out

    async def _finish(self, ctx: Context) -> None:
        """Close in order; the lock is let go last, so whoever gets it finds everything at rest."""
        try:
            # The file goes first: a client that finds none starts a successor, which waits for the lock.
            self.own.remove()
            await self.server.drain()
            await close_context(ctx)
        finally:
            ownership.remove_note(self.places)
            self._let_go()

    def _let_go(self) -> None:
        if self.own is not None:
            self.own.remove()
            self.own.sock.close()
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1


def _raise_descriptor_limit() -> None:
    """Some systems allow 256 open files, fewer than the connections that are promised."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            pass  # the limit of connections is then met earlier, as a failed accept


def _notify_systemd(state: str) -> None:
    """Send one line of the sd_notify protocol, if a service manager asked for it."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        try:
            channel.sendto(state.encode(), address)
        except OSError as error:
            log.warning("the service manager could not be told %s: %s", state, error)
