"""Starting a daemon where none runs: one client at a time, and nothing of ours handed down.

Contract: daemon.starts.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import sys
import time

from cpersona_daemon.shared import fields, files, header
from cpersona_daemon.shared.paths import make_private_directory
from cpersona_daemon.shared.settings import OPTION
from cpersona_daemon.shared.settings_table import BY_NAME, DAEMON, PLACE

from ..terminal.output import to_stderr
from .dial import POLL_SECONDS, Absent, CallFailed, reach

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Mapping
    from typing import NoReturn

    from cpersona_daemon.shared.paths import Places
    from cpersona_daemon.shared.settings import Settings

_READY_FD = 3


def nothing_is_stored(where: Places) -> bool:
    """Tell whether a database is still to be made: it is not there, and no write is queued for it."""
    try:
        return not os.path.lexists(where.db) and not any(name.endswith(".json") for name in os.listdir(where.spool))
    except OSError:
        return True


def start_daemon(where: Places, settings: Settings, environ: Mapping[str, str], deadline: float) -> Socket:
    """Start a daemon under the start-up lock, or find that another client just did; return a connected socket."""
    foreign = header.foreign(where.db)
    if foreign is not None:
        raise _not_started("settings", foreign)
    lock, new = _start_lock(where)
    try:
        while not _locked(lock):
            sock = _reached(where, settings, deadline)
            if sock is not None:
                return sock
            if time.monotonic() > deadline:
                raise CallFailed("timed_out", "another process is starting the daemon and does not come to an end")
            time.sleep(POLL_SECONDS)
        return _reached(where, settings, deadline) or _started(where, settings, environ, deadline, new)
    finally:
        os.close(lock)


def _start_lock(where: Places) -> tuple[int, bool]:
    """Open the file that is locked while a daemon is started, and tell whether it was made for that.

    Raises CallFailed.
    """
    mask = os.umask(0o077)
    try:
        for path in (where.db, where.start_lock):
            make_private_directory(os.path.dirname(path))
        new = not os.path.lexists(where.start_lock)
        return files.opened(where.start_lock, os.O_RDWR | os.O_CREAT), new
    except OSError as error:
        path = error.filename or where.start_lock
        raise _not_started("storage", f"{path} cannot be opened: {error.strerror}") from None
    finally:
        os.umask(mask)


def _started(where: Places, settings: Settings, environ: Mapping[str, str], deadline: float, new: bool) -> Socket:
    """Start a daemon and return a socket connected to it; ``new``: the lock was made for it, and goes if it fails."""
    gone = not os.path.lexists(where.db) and os.path.lexists(where.lock)
    try:
        _spawn(where, settings, environ, deadline)
    except CallFailed as failure:
        # One that serves already had lost its socket's file, and has made it again.
        sock = _reached(where, settings, deadline) if failure.code == "busy" else None
        if sock is not None:
            return sock
        if new and failure.code != "timed_out":
            _remove(where.start_lock)
        raise
    if gone:
        to_stderr(f"cpersona: {where.db} was moved away or deleted; a new, empty database was begun in its place")
    sock = _reached(where, settings, deadline)
    if sock is None:
        raise CallFailed("unreachable", f"the daemon was ready and is gone again; its log is {where.log}")
    return sock


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _reached(where: Places, settings: Settings, deadline: float) -> Socket | None:
    try:
        return reach(where, settings, deadline)
    except Absent:
        return None


def _spawn(where: Places, settings: Settings, environ: Mapping[str, str], deadline: float) -> None:
    """Run `cpersonad` apart from us and wait until it says that it is ready. Raises CallFailed with its reason."""
    environment = dict(environ)
    environment.pop("CPERSONA_TOKEN", None)
    for scope in (PLACE, DAEMON):
        for name, value in settings.carried(scope).items():
            if BY_NAME[name].kind == "path" and value:
                # Relative paths are meant from here, and the daemon's directory is another.
                environment[BY_NAME[name].variable] = os.path.abspath(os.path.expanduser(value))
            elif settings.origin(name) == OPTION:
                environment[BY_NAME[name].variable] = str(value)
    environment["CPERSONA_DB_PATH"] = where.db
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "cpersona_daemon.main", "--ready-fd", str(_READY_FD)]
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _become_daemon(command, environment, writer)
    os.close(writer)
    try:
        try:
            os.waitpid(child, 0)
        except ChildProcessError:
            pass  # our own parent had us ignore SIGCHLD
        told = _read_line(reader, deadline)
    finally:
        os.close(reader)
    if told is None:
        raise CallFailed("timed_out", f"the daemon is still starting; its log is {where.log}")
    try:
        line = json.loads(told)
    except ValueError:
        line = {"error": f"the daemon ended before it was ready; its log is {where.log}", "code": "unreachable"}
    if not line.get("ready"):
        code = line.get("code")
        raise _not_started(
            code if code in fields.ERRORS else "unreachable", f"the daemon did not start: {line.get('error')}"
        )


def _not_started(code: str, message: str) -> CallFailed:
    failure = CallFailed(code, message)
    if failure.exit_status == fields.EXIT_FAILED:
        failure.exit_status = fields.EXIT_UNREACHABLE  # whatever kept it from starting, there is none to ask
    return failure


def _become_daemon(command: list[str], environment: dict[str, str], writer: int) -> NoReturn:
    """In the forked child: leave the session and everything inherited behind, and run the daemon. Never returns."""
    try:
        os.setsid()
        if os.fork():
            os._exit(0)  # the daemon is nobody's child, so a client that lives on leaves no zombie
        os.chdir("/")
        os.umask(0o077)
        if writer != _READY_FD:
            os.dup2(writer, _READY_FD, inheritable=True)
        else:
            os.set_inheritable(writer, True)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard, inheritable=True)
        for held in os.listdir("/dev/fd"):
            if int(held) > _READY_FD:
                try:
                    os.close(int(held))
                except OSError:
                    pass  # the listing's own descriptor
        os.execve(command[0], command, environment)
    finally:
        os._exit(127)


def _read_line(descriptor: int, deadline: float) -> bytes | None:
    """Return what is written up to a newline or the end as bytes, or None at the deadline."""
    told = b""
    while not told.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0:
            return None
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        if not poller.poll(left * 1000):
            continue
        got = os.read(descriptor, 65_536)
        if not got:
            break
        told += got
    return told
