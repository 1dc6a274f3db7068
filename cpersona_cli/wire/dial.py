"""A socket that is connected to the daemon, or the reason why there is none.

Contract: daemon.starts.
"""

import os
import time

try:
    import _socket as socket_module  # the C half alone: the Python half costs as much as the interpreter's start
except ImportError:  # pragma: no cover - an interpreter without it
    import socket as socket_module

from cpersona_daemon.shared import fields
from cpersona_daemon.shared.paths import check_socket_directory
from cpersona_daemon.shared.peer import peer_uid

POLL_SECONDS = 0.01
# A command line lets SIGPIPE end it quietly; a daemon that went away must not do that.
NO_SIGNAL = getattr(socket_module, "MSG_NOSIGNAL", 0)
_SO_NOSIGPIPE = 0x1022  # macOS has an option of the socket instead


class CallFailed(Exception):
    """No answer could be had. ``code`` is one of ``fields.ERRORS``; ``hint`` says what to type next."""

    def __init__(self, code, message, hint=None):
        super().__init__(message)
        self.code = code if code in fields.ERRORS else "internal"
        self.message = message
        self.exit_status = fields.ERRORS[self.code][0]
        self.hint = hint or fields.ERRORS[self.code][2]


class Nobody(CallFailed):
    """No daemon runs, and none was to be started."""


class Absent(Exception):
    """There is no daemon: nothing at the socket's path, or nobody behind it."""


def reach(where, settings, deadline):
    """Return a socket connected to the daemon. Raises Absent on ENOENT and ECONNREFUSED, CallFailed on all else."""
    if not settings.socket and where.socket.startswith("/tmp/"):
        # Anyone may make a directory of that name in /tmp before us.
        try:
            problem = check_socket_directory(os.path.dirname(where.socket))
        except OSError:
            raise Absent from None
        if problem:
            raise CallFailed("unreachable", f"the daemon's socket is not trusted: {problem}")
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
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            sock.close()
            raise Absent from None
        except (BlockingIOError, InterruptedError, TimeoutError):  # its queue of new connections is full
            sock.close()
            if time.monotonic() > deadline:
                raise CallFailed("timed_out", f"the daemon at {where.socket} accepts no connection") from None
            time.sleep(POLL_SECONDS)
        except OSError as error:
            sock.close()
            hint = (
                "name a shorter one with CPERSONA_SOCKET" if error.errno is None else None
            )  # the one thing that Python itself refuses: a path too long
            raise CallFailed(
                "unreachable", f"the socket {where.socket} cannot be reached: {error.strerror or error}", hint
            ) from None
        except BaseException:
            sock.close()
            raise
