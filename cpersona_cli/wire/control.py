"""Finding and ending the daemon of a database, whatever state it is in.

Contract: daemon.life, daemon.starts.
"""

from __future__ import annotations

import os
import signal
import time

from cpersona_daemon.shared import fields, files
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.peer import peer_pid

from ..exits import reason_of
from .client import Connection
from .dial import POLL_SECONDS, Absent, CallFailed, Nobody, reach
from .presence import lock_is_held, note, owner_elsewhere, wait_until_gone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cpersona_daemon.shared.paths import Places
    from cpersona_daemon.shared.settings import Settings

STOP_SECONDS = 60.0
SOCKET_SECONDS = 8.0  # longer than a daemon takes to find that its socket's file is gone


def find_daemon(settings: Settings, environ: Mapping[str, str] | None = None) -> dict | None:
    """Return what is known of the running daemon, or None when none runs; starts nothing.

    The map holds `<db>.daemon.json`'s keys, `answers` (whether it greeted us in time), `pid`, and the
    keys of its hello. That the lock is held is what proves a daemon; a pid alone is never trusted.
    """
    environ = os.environ if environ is None else environ
    where = places(settings, environ)
    if not may_run(where):
        return None
    found = note(where)
    found["answers"] = False
    _follow(where, found)
    try:
        connection = _connected(where, settings, environ, time.monotonic() + SOCKET_SECONDS)
        if connection is None:
            return None
        with connection:
            found.update(connection.hello, answers=True)
    except CallFailed as error:
        found["problem"] = error.message
    return found


def stop_daemon(
    settings: Settings,
    timeout: float = STOP_SECONDS,
    environ: Mapping[str, str] | None = None,
    unless_others: bool = False,
) -> bool:
    """Stop the daemon and wait until it is really gone; true when none runs afterwards (or ever did).

    One that is alive but does not answer gets SIGTERM, if its socket proves which process it is. Raises
    CallFailed("permission_denied") when this client may not stop it and, with ``unless_others``, CallFailed("busy")
    that names who else is connected.
    """
    environ = os.environ if environ is None else environ
    where = places(settings, environ)
    deadline = time.monotonic() + timeout
    if not may_run(where):
        return True
    _follow(where, note(where))
    pid = None
    try:
        connection = _connected(where, settings, environ, min(deadline, time.monotonic() + SOCKET_SECONDS))
        if connection is None:
            return True
        with connection:
            pid = connection.hello.get("pid")
            params = {"unless_others": True} if unless_others else {}
            response, code = connection.call("daemon_stop", params, deadline_ms=5000)
            if code in ("permission_denied", "busy"):
                raise CallFailed(code, reason_of(response))
    except CallFailed as error:
        if error.code in ("permission_denied", "busy"):
            raise
        if error.code == "timed_out":
            pid = _terminate(where, settings)
    return wait_until_gone(where, deadline, pid)


def may_run(where: Places) -> bool:
    """Tell whether a daemon can be there: it holds the lock, or the lock of a shared one is not for us to see."""
    return lock_is_held(where) or owner_elsewhere(where) is not None


def _connected(where: Places, settings: Settings, environ: Mapping[str, str], deadline: float) -> Connection | None:
    """Return a connection to the daemon that holds the lock, None once it holds it no more. Raises CallFailed.

    One that listens nowhere is leaving, or has lost its socket's file and makes it again within seconds.
    """
    while True:
        try:
            return Connection(settings, where, environ, start=False)
        except Nobody:
            pass
        if not lock_is_held(where):
            return None
        if os.path.lexists(where.socket) and files.kind(where.socket) != "a socket":
            raise CallFailed("unreachable", f"it cannot be reached: what stands at {where.socket} is not its socket")
        if time.monotonic() > deadline:
            raise CallFailed("unreachable", f"it cannot be reached: nobody answers at {where.socket}")
        time.sleep(POLL_SECONDS)


def _follow(where: Places, told: dict) -> None:
    """Look for a daemon that holds the lock where it says that it listens: it may have been given another socket."""
    if isinstance(told.get("socket"), str):
        where.socket = told["socket"]


def _terminate(where: Places, settings: Settings) -> int | None:
    """Send SIGTERM to the process that listens at the socket; return its id, or None when it cannot be told.

    Its note or the lock that it has open proves that it is the daemon.
    """
    from cpersona_daemon.shared.holders import holders

    try:
        sock = reach(where, settings, time.monotonic() + fields.HELLO_SECONDS)
    except (CallFailed, Absent):
        return None
    try:
        pid = peer_pid(sock)
        if pid > 1 and (pid == note(where).get("pid") or pid in [holder for holder, _ in holders(where.lock)]):
            os.kill(pid, signal.SIGTERM)
            return pid
    except OSError:
        pass
    finally:
        sock.close()
    return None
