"""The nursery: a process that has read the daemon's modules once, and of which daemons are born by a fork.

A birth has the environment, the descriptors and the session that the start would have had, and runs the same `main`;
whoever differs in ``door.nature`` begins by itself. The nursery ends with its standard input.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import marshal
import os
import pkgutil
import select
import socket
import sys
import threading
import time

import door


def serve(place: str) -> list[str] | None:
    """Bear daemons; return the words of a command line in each newborn, and None at the end."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen(64)
    os.chdir("/")
    os.umask(0o077)
    nature = door.nature()
    _read_modules()
    gc.collect()
    gc.freeze()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return None
        channel, _ = listener.accept()
        with channel:
            words = _answer(channel, nature, listener)
        if words is not None:
            return words


def _read_modules() -> None:
    """Import what a daemon has imported some time after its start."""
    import numpy  # noqa: F401

    import cpersona_daemon

    for found in pkgutil.walk_packages(cpersona_daemon.__path__, "cpersona_daemon."):
        importlib.import_module(found.name)


def _answer(channel: socket.socket, nature: list, listener: socket.socket) -> list[str] | None:
    """Bear the daemon that somebody at the door was to be, if it may be born; return its words in the newborn."""
    head, descriptors, _, _ = socket.recv_fds(channel, 4, 4)
    with channel.makefile("rb") as stream:
        theirs, words, environ = marshal.loads(stream.read(int.from_bytes(head, "big")))
    alike = theirs == nature
    if alike and _forked():
        listener.close()
        channel.close()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.environ.clear()
        os.environ.update(environ)
        time.tzset()
        return words
    channel.sendall(b"y" if alike else b"n")
    for descriptor in descriptors:
        os.close(descriptor)
    return None


def _forked() -> bool:
    """Tell the newborn, in a session of its own and nobody's child, from the nursery."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        return True
    os.waitpid(child, 0)
    return False


if __name__ == "__main__":
    del sys.path[0]  # this folder, which no daemon has there
    words = serve(sys.argv[1])
    if words is not None:
        from cpersona_daemon.main import main

        sys.argv[1:] = words
        status = main(words)
        # What an interpreter does at its end, but for taking every module apart, which costs a fork all its pages.
        threading._shutdown()
        atexit._run_exitfuncs()
        os._exit(status)
