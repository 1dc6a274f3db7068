"""The other end of `--host`: standard streams connected to the daemon of this machine.

Contract: host.ssh.
"""

from __future__ import annotations

import _thread
import json
import os
import time

from cpersona_daemon import __version__
from cpersona_daemon.shared import fields
from cpersona_daemon.shared.paths import places

from .client import START_SECONDS, Connection
from .dial import Absent, CallFailed, Nobody, reach
from .ssh import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket

    from cpersona_daemon.shared.settings import Settings

_BYTES = 1 << 18


def serve(settings: Settings, start: bool, create: bool) -> int:
    """Say how it is here in one line, then pass frames on in both directions until one side ends; return the status.

    The daemon is started where none runs, and replaced where it is idle and of another version, as for any command of
    this machine.
    """
    where = places(settings)
    try:
        with Connection(settings, where, os.environ, start, create):
            sock = reach(where, settings, time.monotonic() + START_SECONDS)
    except Absent:
        return _refuse(CallFailed("shutting_down", "the daemon left a moment ago"))
    except CallFailed as error:
        return _refuse(error)
    sock.settimeout(None)
    _say({"protocol": fields.PROTOCOL, "version": __version__, "db": where.db})
    _thread.start_new_thread(_from_stdin, (sock,))
    _to_stdout(sock)
    return fields.EXIT_OK


def _refuse(error: CallFailed) -> int:
    _say({"error": error.message, "code": error.code, "hint": error.hint, "nobody": isinstance(error, Nobody)})
    return error.exit_status


def _say(told: dict) -> None:
    _write(b"\n" + MARK + json.dumps(told).encode() + b"\n")  # a shell's last line may lack its end


def _from_stdin(sock: Socket) -> None:
    """Pass on what comes from the other machine; once that side is gone nobody waits for an answer."""
    try:
        while data := os.read(0, _BYTES):
            sock.sendall(data)
    except OSError:
        pass  # the daemon went away: the other thread says so by ending
    else:
        os._exit(fields.EXIT_OK)


def _to_stdout(sock: Socket) -> None:
    try:
        while data := sock.recv(_BYTES):
            _write(data)
    except OSError:
        pass  # either end broke: whoever asks notices, and asks again


def _write(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(1, rest) :]
