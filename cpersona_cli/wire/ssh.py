"""A daemon of another machine: its frames travel through the system's ssh, and no port of ours is ever opened.

`ssh MACHINE cpersona daemon pipe` connects its standard streams to the daemon there, which it starts where none runs.
It says one line first, so that whatever a shell prints at its start, a missing program and another version are told
apart; from then on there are frames, as on a socket of this machine.

Contract: host.ssh.
"""

from __future__ import annotations

import _thread
import json
import os
import re
import select
import shlex
import signal
import time

from cpersona_daemon.shared import fields
from cpersona_daemon.shared.settings_table import BY_NAME

from .dial import POLL_SECONDS, CallFailed, Nobody, socket_module
from .stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Mapping, Sequence

    from cpersona_daemon.shared.settings import Settings

MARK = b"cpersona-pipe "  # begins the line that `daemon pipe` says first
CONNECT_SECONDS = 120.0  # until that line: a person may have to type a password
REACH_SECONDS = 30  # that ssh itself may take to reach the machine
_END_SECONDS = 5.0  # for an ssh that has closed its output to tell its status
_NOISE_BYTES = 65_536  # that a shell may print before the line
# No word of it can be an option, nor mean anything to a shell that some line of ssh's configuration runs.
_MACHINE = re.compile(r"(?:ssh://)?(?:[\w.][\w.+-]*@)?[\w.\[:][\w.:%\[\]-]*/?")
_FAILED, _MISSING, _NOT_RUN = 255, 127, 126  # what ssh and a shell answer

_lock = _thread.allocate_lock()  # the bridge of `cpersona mcp` connects from many threads
_running: set[Process] = set()  # whose end is not told yet


class Process:
    """An ssh that was started. ``code`` is its exit status once it has ended, below 0 where a signal ended it."""

    def __init__(self, pid: int) -> None:
        self.pid, self.code = pid, None  # type: int, int | None
        _running.add(self)

    def ended(self, block: bool = False) -> bool:
        """Tell whether it has ended, with ``block`` once it has."""
        if block:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with _lock:
            if self.code is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if not pid:
                    return False
                self.code = os.waitstatus_to_exitcode(status)
                _running.discard(self)
        return True

    def ends(self) -> int | None:
        """Return the exit status of one whose output has ended, None where it goes on all the same."""
        deadline = time.monotonic() + _END_SECONDS
        while not self.ended():
            if time.monotonic() > deadline:
                return None
            time.sleep(POLL_SECONDS)
        return self.code

    def end(self) -> None:
        """Have it end."""
        if not self.ended():
            os.kill(self.pid, signal.SIGTERM)


class Way:
    """How the daemon of the machine is reached that the settings' ``host`` names; one connection at a time."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self.host = settings, machine(settings.host)
        self._process: Process | None = None

    def dial(self, start: bool, create: bool) -> tuple[Stream, str]:
        """Return a stream to the daemon there, and the path of its database. Raises CallFailed."""
        words = ["daemon", "pipe", *place_words(self._settings)]
        words += ["--create"] if create else []
        words += [] if start else ["--no-start"]
        ours, theirs = socket_module.socketpair(socket_module.AF_UNIX, socket_module.SOCK_STREAM)
        try:
            self._process = run(self._settings, words, theirs.fileno(), theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        try:
            told = self._first_line(ours, self._process)
        except BaseException:
            ours.close()
            self._process.end()
            raise
        return _Stream(ours, self.host), str(told.get("db"))

    def end(self) -> None:
        """Have an ssh end that fell silent: it would not notice that nobody listens."""
        if self._process is not None:
            self._process.end()

    def _first_line(self, sock: Socket, process: Process) -> dict:
        """Return what `daemon pipe` says of itself. Raises CallFailed with what is wrong there."""
        line = _read_mark(sock, self.host)
        if line is None:
            raise _ended(self._settings, self.host, process.ends())
        try:
            told = json.loads(line)
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise CallFailed("protocol", f"what answers on {self.host} is no cpersona")
        if told.get("error"):
            kind = Nobody if told.get("nobody") else CallFailed
            raise kind(str(told.get("code")), f"on {self.host}: {told['error']}", _there(told, self.host))
        if told.get("protocol") != fields.PROTOCOL:
            raise CallFailed(
                "protocol",
                f"the cpersona on {self.host} (version {told.get('version')}) speaks protocol {told.get('protocol')}, "
                f"this one {fields.PROTOCOL}",
                "install the same version on both machines",
            )
        return told


class _Stream(Stream):
    """One whose other end is a process of ours and tells nothing of the daemon."""

    def _who(self) -> str:
        return f"the daemon on {self._place}"


def machine(host: str) -> str:
    """Return what ssh is given for a host. Raises CallFailed for what is no name of a machine."""
    if _MACHINE.fullmatch(host) is None:
        error = CallFailed(
            "settings", f"{host!r} names no machine", "--host and CPERSONA_HOST take MACHINE, USER@MACHINE or ssh://…"
        )
        error.exit_status = fields.EXIT_USAGE
        raise error
    return host


def place_words(settings: Settings) -> list[str]:
    """Return the words that name the database there: --db alone is meant for that machine, the environment for ours."""
    return ["--db", settings.db_path] if settings.origin("db_path") == "option" else []


def run(settings: Settings, words: Sequence[str], stdin: int, stdout: int) -> Process:
    """Start ssh with a command of the cpersona there between two descriptors.

    Ctrl-C does not end it: this process does, once it has counted what it was told. Raises CallFailed.
    """
    for process in list(_running):
        process.ended()  # so that a process that lives on keeps none that have
    command = f"{settings.host_command} {' '.join(shlex.quote(word) for word in words)}"
    arguments = [_program(), "-T", "-o", f"ConnectTimeout={REACH_SECONDS}", "--", machine(settings.host), command]
    pid = os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", 'trap "" INT; exec "$@"', "ssh", *arguments],
        _without_token(os.environ),
        file_actions=[(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)],
        setsigdef=[signal.SIGPIPE],
    )
    return Process(pid)


def _program() -> str:
    for directory in os.get_exec_path():
        path = os.path.join(directory, "ssh")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise CallFailed(
        "unreachable", "there is no ssh on the PATH, and --host goes through it", "install OpenSSH's client"
    )


def _without_token(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of ssh, which may be told to send variables on."""
    return {name: value for name, value in environ.items() if name != BY_NAME["token"].variable}


def _read_mark(sock: Socket, host: str) -> bytes | None:
    """Return the line behind MARK, None where the stream ends before. What a shell printed first is let pass."""
    deadline, line, noise = time.monotonic() + CONNECT_SECONDS, b"", 0
    poller = select.poll()
    poller.register(sock.fileno(), select.POLLIN)
    while noise <= _NOISE_BYTES:
        left = deadline - time.monotonic()
        if left <= 0:
            raise CallFailed("timed_out", f"{host} did not connect within {CONNECT_SECONDS:g} s")
        if not poller.poll(left * 1000):
            continue
        try:
            # What follows the line is a frame, and not ours to take.
            seen = sock.recv(_NOISE_BYTES, socket_module.MSG_PEEK)
            line += sock.recv(seen.find(b"\n") + 1 or len(seen))
        except OSError:
            return None
        if not seen:
            return None
        if line.endswith(b"\n"):
            if line.startswith(MARK):
                return line[len(MARK) :]
            noise, line = noise + len(line), b""
        elif len(line) > _NOISE_BYTES:
            break
    raise CallFailed("protocol", f"what answers on {host} is no cpersona", f"look at what `ssh {host} true` prints")


def _ended(settings: Settings, host: str, status: int | None) -> CallFailed:
    """Return why an ssh that ended before it was connected did so, as a failure."""
    if status == _FAILED:
        return CallFailed("unreachable", f"ssh could not reach {host}", f"try `ssh {host} true` and mend what it says")
    if status in (_MISSING, _NOT_RUN):
        return CallFailed(
            "unreachable",
            f"{host} knows no `{settings.host_command}`",
            "install cpersona there, or name it by its path with CPERSONA_HOST_COMMAND",
        )
    if status == fields.EXIT_USAGE:
        return CallFailed(
            "protocol", f"the cpersona on {host} is too old for --host", "install the same version on both machines"
        )
    ended = "ended" if status is None else f"ended with status {status}"
    return CallFailed("unreachable", f"ssh to {host} {ended} before it was connected", f"try `ssh {host} true`")


def _there(told: dict, host: str) -> str | None:
    hint = told.get("hint")
    return f"on {host}, {hint}" if isinstance(hint, str) and hint else None


def forward(settings: Settings, words: Sequence[str], stdin: int, stdout: int) -> int:
    """Run a command of the cpersona there between two descriptors, and return its exit status. Raises CallFailed.

    What it says on its stderr is seen here. Ctrl-C ends it.
    """
    process = run(settings, words, stdin, stdout)
    try:
        process.ended(block=True)
    except BaseException:
        process.end()
        raise
    code = process.code
    if code is None or code in (_FAILED, _MISSING, _NOT_RUN) or code < 0:
        raise _ended(settings, machine(settings.host), code)
    return code
