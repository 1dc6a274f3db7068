"""Queueing a write for a daemon that cannot be reached: one durable file, which the daemon carries out once it is
there.

A commit hook runs this, so nothing heavy is imported.

Contract: spool.queue, files.durable.
"""

import os
import stat
import time

from cpersona_daemon.shared import fields, files
from cpersona_daemon.shared.paths import SPOOL, make_private_directory

from ..terminal.output import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpersona_daemon.shared.settings import Settings

    from .client import Connection

# What the request itself is to blame for; waiting would not help.
_FINAL = ("invalid_params", "permission_denied")
# Answers after which the same request may do better: nothing was decided about it.
_UNDECIDED = ("timed_out", "busy", "shutting_down", "storage", "full", "read_only", "protocol")

_last = [0, 0]  # the time and the number of this process's latest file


def put(spool: str, method: str, params: dict, key: str | None = None, token: str = "") -> str:
    """Write one request into the directory ``spool`` and return the file's name once it is durable.

    Raises OSError, ValueError.

    ``key`` is the idempotency key it was sent with before, if it was; with it a request whose answer got lost
    takes effect once. ``token`` names the client to a daemon with an access file.
    """
    item = {"method": method, "params": params, "idempotency_key": key or os.urandom(16).hex()}
    if token:
        item["token"] = token
    data = to_json(item).encode()
    if len(data) > fields.MAX_FRAME_BYTES:
        raise ValueError(f"the request is above the limit of {fields.MAX_FRAME_BYTES} bytes")
    mask = os.umask(0o077)
    try:
        directory = _opened(spool)
        try:
            name = _name()
            files.replace(name, data, directory=directory)
        finally:
            os.close(directory)
    finally:
        os.umask(mask)
    return name


def _opened(spool: str) -> int:
    """Return a descriptor of the directory, made where it is missing.

    Raises PermissionError when others can write there.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        directory = os.open(spool, flags)
    except FileNotFoundError:
        from cpersona_daemon.shared.header import foreign

        problem = foreign(spool.removesuffix(SPOOL))
        if problem is not None:
            raise ValueError(problem) from None
        make_private_directory(os.path.dirname(spool))
        try:
            os.mkdir(spool, 0o700)
        except FileExistsError:
            pass  # another writer was first
        files.sync(os.path.dirname(spool))
        directory = os.open(spool, flags)
    info = os.fstat(directory)
    if info.st_uid != os.getuid() or info.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        os.close(directory)
        raise PermissionError(1, "others can write to it; run chmod 700 on it", spool)
    return directory


def _name() -> str:
    """Return a name that sorts behind every earlier one of this process, even when the clock is set back."""
    now = max(time.time_ns(), _last[0])
    _last[1] = _last[1] + 1 if now == _last[0] else 0
    _last[0] = now
    return f"{now}-{os.getpid()}-{_last[1]}.json"


def counts(spool: str) -> tuple[int, int]:
    """Return how many writes wait in a spool and how many were refused."""
    return _count(spool), _count(os.path.join(spool, "failed"))


def _count(directory: str) -> int:
    try:
        return sum(name.endswith(".json") and not name.startswith(".") for name in os.listdir(directory))
    except OSError:
        return 0


def may_wait(code: str) -> bool:
    """Tell whether a request that could not be put to the daemon may be queued instead."""
    return code not in _FINAL


def undecided(code: str | None) -> bool:
    """Tell whether an answer with this error code leaves open what becomes of the request."""
    return code in _UNDECIDED


def stamped(method: str, params: dict) -> dict:
    """Return parameters in which a memory says when it was said: now, whenever the daemon hears of it.

    It is so before they are first sent: what is queued under the same key must be the very same request.
    """
    if method != "store" or "message" in params or params.get("timestamp"):
        return params
    return {**params, "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())}


class Queue:
    """The way of `--queue`: to the daemon that runs, and where none can be reached into the spool.

    It starts no daemon.
    """

    def __init__(self, settings: "Settings") -> None:
        from cpersona_daemon.shared.paths import places

        from .client import CallFailed, connect

        if settings.host:
            raise CallFailed(
                "invalid_params",
                f"--queue keeps writes on this machine for its own daemon, and {settings.host} is meant",
                "leave out --queue, or --host and CPERSONA_HOST",
            )
        self._settings, self._spool = settings, places(settings).spool
        self.connection: Connection | None = None
        try:
            self.connection = connect(settings, start=False)
        except CallFailed as error:
            if not may_wait(error.code):
                raise

    def put(self, method: str, params: dict, key: str) -> dict:
        """Queue one request, with what ``stamped`` made of its parameters, and return the answer that says so.

        Raises CallFailed when the spool cannot be written.
        """
        from .client import CallFailed

        try:
            name = put(self._spool, method, params, key, self._settings.token)
        except ValueError as error:
            raise CallFailed("invalid_params", str(error)) from None
        except OSError as error:
            raise CallFailed(
                "storage", f"{error.filename or self._spool} cannot be written: {error.strerror}"
            ) from None
        return {"ok": True, "result": "queued", "queued": name}

    def ask(self, method: str, params: dict) -> tuple[dict, str | None]:
        """Return the daemon's (response, code), or the answer of a request that was queued."""
        from .client import CallFailed

        key, params = os.urandom(16).hex(), stamped(method, params)
        if self.connection is not None:
            try:
                self.connection.send(method, params, key=key)
                _, response, code = self.connection.receive()
                if not undecided(code):
                    return response, code
            except CallFailed as error:
                if not may_wait(error.code):
                    raise
            finally:
                self.close()
        return self.put(method, params, key), None

    def close(self) -> None:
        """Close the connection; what is asked from now on is queued."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
