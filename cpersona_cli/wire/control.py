"""Finding and ending the daemon of a database, whatever state it is in.

Contract: shared/interface.md, "The daemon's life"; quality.md (a recycled pid, a daemon that does not answer).
"""

import fcntl
import json
import os
import signal
import time

from cpersona_daemon.shared import fields, files
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.peer import peer_pid

from ..exits import reason_of
from .client import Connection
from .dial import POLL_SECONDS, Absent, CallFailed, Nobody, reach

STOP_SECONDS = 60.0
SOCKET_SECONDS = 8.0  # longer than a daemon takes to find that its socket's file is gone
_NOTE_BYTES = 65_536


def find_daemon(settings, environ=None):
    """Return what is known of the running daemon, or None when none runs; starts nothing.

    The map holds `<db>.daemon.json`'s keys, `answers` (whether it greeted us in time), `pid`, and the
    keys of its hello. That the lock is held is what proves a daemon; a pid alone is never trusted.
    """
    environ = os.environ if environ is None else environ
    where = places(settings, environ)
    if not _lock_is_held(where):
        return None
    found = _note(where)
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


def stop_daemon(settings, timeout=STOP_SECONDS, environ=None, unless_others=False):
    """Stop the daemon and wait until it is really gone; true when none runs afterwards (or ever did).

    One that is alive but does not answer gets SIGTERM, if its socket proves which process it is. Raises
    CallFailed("permission_denied") when this client may not stop it and, with ``unless_others``, CallFailed("busy")
    that names who else is connected.
    """
    environ = os.environ if environ is None else environ
    where = places(settings, environ)
    deadline = time.monotonic() + timeout
    if not _lock_is_held(where):
        return True
    _follow(where, _note(where))
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


def _connected(where, settings, environ, deadline):
    """Return a connection to the daemon that holds the lock, None once it holds it no more. Raises CallFailed.

    One that listens nowhere is leaving, or has lost its socket's file and makes it again within seconds.
    """
    while True:
        try:
            return Connection(settings, where, environ, start=False)
        except Nobody:
            pass
        if not _lock_is_held(where):
            return None
        if os.path.lexists(where.socket) and files.kind(where.socket) != "a socket":
            raise CallFailed("unreachable", f"it cannot be reached: what stands at {where.socket} is not its socket")
        if time.monotonic() > deadline:
            raise CallFailed("unreachable", f"it cannot be reached: nobody answers at {where.socket}")
        time.sleep(POLL_SECONDS)


def _follow(where, note):
    """Look for a daemon that holds the lock where it says that it listens: it may have been given another socket."""
    if isinstance(note.get("socket"), str):
        where.socket = note["socket"]


def _terminate(where, settings):
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
        if pid > 1 and (pid == _note(where).get("pid") or pid in [holder for holder, _ in holders(where.lock)]):
            os.kill(pid, signal.SIGTERM)
            return pid
    except OSError:
        pass
    finally:
        sock.close()
    return None


def wait_until_gone(where, deadline, pid):
    """Wait until the lock is free, or held by another daemon than the one that was stopped."""
    while _lock_is_held(where):
        successor = _note(where).get("pid")
        if pid is not None and successor is not None and successor != pid:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _lock_is_held(where):
    """Tell whether a daemon holds the database: the lock lives exactly as long as its process."""
    try:
        lock = files.opened(where.lock)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _note(where):
    try:
        note = json.loads(files.read(where.daemon_json, _NOTE_BYTES))
    except (OSError, ValueError):
        return {}
    return note if isinstance(note, dict) else {}
