"""A socket that is connected to the daemon, or the reason why there is none.

Contract: daemon.starts.
"""

import os
import time

try:
    import _socket as socket_module  # the C half alone: the Python half costs as much as the interpreter's start
except ImportError:  # pragma: no cover - an interpreter without it
    import socket as socket_module  # type: ignore[no-redef]

from cpersona_daemon.shared import fields
from cpersona_daemon.shared.paths import check_socket_directory
from cpersona_daemon.shared.peer import peer_uid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket

    from cpersona_daemon.shared.paths import Places
    from cpersona_daemon.shared.settings import Settings

POLL_SECONDS = 0.01
# A command line lets SIGPIPE end it quietly; a daemon that went away must not do that.
NO_SIGNAL = getattr(socket_module, "MSG_NOSIGNAL", 0)
_SO_NOSIGPIPE = 0x1022  # macOS has an option of the socket instead


class CallFailed(Exception):
    """No answer could be had. ``code`` is one of ``fields.ERRORS``; ``hint`` says what to type next."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code if code in fields.ERRORS else "internal"
        self.message = message
        self.exit_status = fields.ERRORS[self.code][0]
        self.hint = hint or fields.ERRORS[self.code][2]


class Nobody(CallFailed):
    """No daemon runs, and none was to be started."""


class Absent(Exception):
    """There is no daemon: nothing at the socket's path, or nobody behind it."""


def reach(where: "Places", settings: "Settings", deadline: float) -> "Socket":
    """Return a socket connected to the daemon. Raises Absent on ENOENT and ECONNREFUSED, CallFailed on all else."""
    if not settings.socket and where.socket.startswith("/tmp/"):
        _check_directory(os.path.dirname(where.socket))
    while True:
        sock = socket_module.socket(socket_module.AF_UNIX, socket_module.SOCK_STREAM)
        try:
            sock.settimeout(max(deadline - time.monotonic(), 0.001))
            sock.connect(where.socket)
            if not NO_SIGNAL:
                sock.setsockopt(socket_module.SOL_SOCKET, _SO_NOSIGPIPE, 1)
            if not settings.socket and peer_uid(sock) not in (os.getuid(), 0):
                raise CallFailed("unreachable", f"the socket {where.socket} belongs to another user's process")
            return sock
        except BaseException as error:
            sock.close()
            _raise_unless_crowded(error, where.socket)
        if time.monotonic() > deadline:
            raise CallFailed("timed_out", f"the daemon at {where.socket} accepts no connection")
        time.sleep(POLL_SECONDS)


def _check_directory(directory: str) -> None:
    """Refuse a directory in /tmp that somebody else made: anyone may make one of that name before us."""
    try:
        problem = check_socket_directory(directory)
    except OSError:
        raise Absent from None
    if problem:
        raise CallFailed("unreachable", f"the daemon's socket is not trusted: {problem}")


def _raise_unless_crowded(error: "BaseException", path: str) -> None:
    """Raise what a failed attempt means; return where the daemon's queue of new connections is full."""
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError, NotADirectoryError)):
        raise Absent from None
    if isinstance(error, (BlockingIOError, InterruptedError, TimeoutError)):
        return
    if not isinstance(error, OSError):
        raise error
    # A path that is too long is the one thing that Python itself refuses, without a number.
    hint = "name a shorter one with CPERSONA_SOCKET" if error.errno is None else None
    raise CallFailed("unreachable", f"the socket {path} cannot be reached: {error.strerror or error}", hint) from None
