"""A terminal for the tests of what a person sees."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

CPERSONA = [sys.executable, "-m", "cpersona_cli"]


@pytest.fixture
def on_terminal(home):
    """Run a command with its three streams on a terminal of a given width; answers (output, exit status)."""
    return _terminal(home)


@pytest.fixture(scope="module")
def shared_terminal(shared_daemon, module_home):
    """The same against the one daemon of a module."""
    return _terminal(module_home)


def _terminal(environ):
    def run(arguments, columns=80, typed=b"", **env):
        parent, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            CPERSONA + arguments,
            env=environ | {"TERM": "xterm"} | env,
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
        )
        os.close(child)
        os.write(parent, typed)
        out = b""
        while True:
            try:
                data = os.read(parent, 65_536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not data:
                break
            out += data
        os.close(parent)
        return out.decode(), process.wait()

    return run
