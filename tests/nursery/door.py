"""What a daemon that is about to start tells the nursery; the start pays for every import."""

from __future__ import annotations

import _socket
import marshal
import os
import sys

_MODULE = "cpersona_daemon.main"
_STANDARD_AND_READY = range(4)
_POWERS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "SigBlk", "SigIgn", "Umask")
_OF_AN_INTERPRETER = ("PYTHON", "LANG", "LC_", "LD_", "OPENBLAS", "OMP_", "MALLOC_")


def nature() -> list:
    """Return what a process has from its start and keeps: powers, limits, signals, the interpreter and its paths."""
    with open("/proc/self/status") as status, open("/proc/self/limits") as limits:
        powers = [line for line in status if line.startswith(_POWERS)]
        bounds = limits.read()
    own = sorted(pair for pair in os.environ.items() if pair[0].startswith(_OF_AN_INTERPRETER))
    return [os.getuid(), os.getgid(), powers, bounds, own, list(sys.flags), sys.path, sys.executable]


def knock() -> None:
    """End this process if it is a daemon that a client starts and the nursery bears it instead."""
    environ = dict(os.environ)
    place = environ.pop("DAEMON_NURSERY", "")
    if not place or _MODULE not in sys.orig_argv or "LISTEN_PID" in environ:
        return
    words = sys.orig_argv[sys.orig_argv.index(_MODULE) + 1 :]
    asked = marshal.dumps((nature(), words, environ))
    held = b"".join(number.to_bytes(4, sys.byteorder) for number in _STANDARD_AND_READY)
    channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        channel.connect(place)
        channel.sendmsg([len(asked).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, held)])
        channel.sendall(asked)
        born = channel.recv(1) == b"y"
    except OSError:
        return
    finally:
        channel.close()
    if born:
        os._exit(0)
