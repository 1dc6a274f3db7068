"""`daemon`: start, stop and look at the process that holds the database.

Contract: daemon.life, daemon.starts.
"""

from __future__ import annotations

import os
import re
import sys
import time

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import HERE, PLAIN, command, option
from ..terminal import panel
from ..terminal.failure import failure_line
from . import _unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from ..session import Session

WATCH_SECONDS = 1.0
_LONGEST_SECONDS = 10_000_000
_GROUP = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@command("daemon start", common=PLAIN)
def start(session: Session) -> None:
    """Start the database's daemon, or find that it runs. Every other command does this by itself.

    Example:
      cpersona daemon start
    """
    hello = session.connection.hello
    if session.out.as_json:
        told = {name: hello.get(name) for name in ("pid", "version", "db")}
        session.out.json({"running": True, **told, "socket": session.connection.places.socket})
    else:
        session.out.line(f"running\tpid {hello.get('pid')}")


@command(
    "daemon stop",
    option("--timeout", "How long to wait for its end.", kind="float", default=60.0, metavar="SECONDS"),
    common=HERE,
)
def stop(session: Session, timeout: float) -> None:
    """Stop the daemon: it finishes its writes and leaves. Where none runs, nothing happens, and that is success.

    Example:
      cpersona daemon stop
    """
    was = _stop(session, timeout)
    if session.out.as_json:
        session.out.json({"running": False, "was_running": was})
    else:
        session.out.line("stopped" if was else "not running")


@command(
    "daemon restart",
    option("--timeout", "How long to wait for its end.", kind="float", default=60.0, metavar="SECONDS"),
    common=HERE,
)
def restart(session: Session, timeout: float) -> int | None:
    """Stop the daemon and start one with the settings of now.

    Example:
      CPERSONA_LOG_LEVEL=debug cpersona daemon restart
    """
    _stop(session, timeout)
    return start.run(session)


def _stop(session: Session, timeout: float) -> bool:
    """Stop the daemon and tell whether one ran. Raises Stop when it is still there after ``timeout`` seconds."""
    from ..wire import control

    if not 0 < timeout < _LONGEST_SECONDS:
        raise exits.Usage("--timeout takes seconds, more than 0")
    was = control.find_daemon(session.here) is not None
    if not control.stop_daemon(session.here, timeout):
        raise exits.Stop(
            f"daemon stop: it is still at work after {timeout:g} s; try again, or read `cpersona daemon logs`",
            fields.EXIT_RETRY,
        )
    return was


WATCH = option("--watch", "Show it anew every second, until Ctrl-C.", kind="flag", default=False)


@command("daemon status", WATCH, common=PLAIN)
def status(session: Session, watch: bool) -> int:
    """Show whether a daemon runs, and how it is. The exit status is the state: 0 running, 4 not running, 6 silent.

    Versions, place, rows, indexes, calibration, embedder, queue, and for each method its calls with the median and
    the slowest hundredth of the last 512 (p50, p99). Of what is still to be embedded the rate and the time that is
    left are there once they were measured. --json has everything.

    Example:
      cpersona daemon status --json | jq .embedding
      cpersona daemon status --watch
    """
    return shown(session, watch)


def shown(session: Session, watch: bool) -> int:
    """Show how the daemon is, once or every second, and return its state as an exit status."""
    if not watch:
        return _told(session)
    out = session.out
    while True:
        if out.draws:
            out.begin_screen()
        _told(session, brief=True)
        if not (out.draws or out.as_json):
            out.line("")  # between two states
        out.flush()
        time.sleep(WATCH_SECONDS)


def _told(session: Session, brief: bool = False) -> int:
    """Show how the daemon is; ``brief``: so that a terminal has room for it."""
    from ..wire import client, control

    out, host = session.out, session.settings.host
    found = {"answers": True} if host else control.find_daemon(session.settings)
    if found is None:
        from cpersona_daemon.shared import paths

        from ..wire import spool as spooling

        places = paths.places(session.settings)
        waiting, failed = spooling.counts(places.spool)
        if out.as_json:
            out.json(
                {
                    "running": False,
                    "db": places.db,
                    "socket": places.socket,
                    "spool": {"waiting": waiting, "failed": failed},
                }
            )
        else:
            out.line("not running")
            if waiting or failed:
                out.record(("queued", f"{waiting} waiting, {failed} refused"))
            out.note("every command starts it; `cpersona daemon start` does only that")
        return fields.EXIT_UNREACHABLE
    if not found.get("answers"):
        if out.as_json:
            out.json({"running": True, **found})
        else:
            out.line(f"silent\tpid {found.get('pid')}")
        out.warn(
            f"cpersona daemon status: it runs but {found.get('problem', 'does not answer')}; read `cpersona daemon "
            "logs`"
        )
        return fields.EXIT_RETRY
    with client.connect(session.settings, start=False, again=True) as connection:
        response, code = connection.call("daemon_status", {})
    outcome = exits.status_of(response, code, "daemon_status")
    if out.as_json:
        out.json({"running": True, **response})
    elif outcome:
        out.line(f"running\tpid {found.get('pid')}")
    else:
        panel.show(out, response, brief)
        for warning in response.get("warnings", ()):
            out.warn(f"cpersona: {warning}")
    if outcome:
        out.warn("cpersona " + failure_line("daemon status", response, code))
    return outcome


@command("daemon run", common=("db",))
def run(session: Session) -> None:
    """Run the daemon in the foreground, its log on stderr, for a service manager or to watch it.

    Example:
      cpersona daemon run
    """
    from cpersona_daemon.shared import paths

    environment = {**os.environ, "CPERSONA_DB_PATH": paths.places(session.here).db}
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, "-m", "cpersona_daemon.main", "--foreground"], environment)


@command(
    "daemon logs",
    option("-n --lines", "Lines from the end.", kind="int", default=50, metavar="N", least=0),
    option("-f --follow", "Go on with what is written from now on.", kind="flag", default=False),
    common=("quiet", "db"),
)
def logs(session: Session, lines: int, follow: bool) -> int:
    """Print the end of the daemon's log. It holds no memory content unless the log level is debug.

    Example:
      cpersona daemon logs -n 20
      cpersona daemon logs -f
    """
    from cpersona_daemon.shared import files, paths

    log = paths.places(session.here).log
    if follow:
        session.out.flush()
        # tail knows how to wait for a file and to follow it across a rotation.
        os.execvp("tail", ["tail", "-n", str(lines), "-F", log])
    try:
        descriptor = files.opened(log)
    except FileNotFoundError:
        session.out.note(f"no log yet; it will be {log}")
        return fields.EXIT_OK
    with open(descriptor, "rb") as handle:
        for line in _tail(handle, lines):
            session.out.write(line)
    return fields.EXIT_OK


def _tail(handle: BinaryIO, count: int) -> list[bytes]:
    """Return the last ``count`` lines of a file, reading backwards no more than they need."""
    handle.seek(0, os.SEEK_END)
    at, data = handle.tell(), b""
    while at > 0 and data.count(b"\n") <= count:
        step = min(65_536, at)
        at -= step
        handle.seek(at)
        data = handle.read(step) + data
    return data.splitlines(keepends=True)[-count:] if count else []


@command("daemon socket", common=("quiet", "db"))
def socket(session: Session) -> None:
    """Print where the daemon's socket is, whether or not it runs.

    Example:
      cpersona daemon socket
    """
    from cpersona_daemon.shared import paths

    session.out.line(paths.places(session.here).socket)


@command(
    "daemon unit",
    option("--group", "Whose members may connect.", metavar="NAME", default=_unit.SYSTEM_USER),
    common=("quiet",),
)
def unit(session: Session, group: str) -> None:
    """Print a systemd unit for one daemon that the users of this machine share, and how it is installed.

    It runs as a user of its own, and an access file says who may do what: `man cpersonad`. Nobody needs it for
    a memory of their own.

    Example:
      cpersona daemon unit --group staff
    """
    if not _GROUP.fullmatch(group):
        raise exits.Usage(f"--group takes the name of a group, not {group!r}")
    session.out.write(_unit.text(group).encode())
    if _unit.program().startswith(("/home/", "/root/")):
        session.out.warn(
            f"cpersona daemon unit: {_unit.program()} lies in a home, where the user {_unit.SYSTEM_USER} may not come; "
            "install cpersona for all users, in /opt for example, and print the unit from there"
        )


@command(
    "daemon pipe",
    option("--create", "Make the database where there is none.", kind="flag", default=False),
    option("--no-start", "Connect to a daemon that runs, or fail.", kind="flag", default=False),
    common=("db",),
)
def pipe(session: Session, create: bool, no_start: bool) -> int:
    """Connect standard input and output to the daemon. `--host` of another machine runs this through ssh.

    Example:
      ssh machine cpersona daemon pipe
    """
    from ..wire import pipe as piping

    return piping.serve(session.settings, not no_start, create)


COMMANDS = (start, stop, restart, status, run, logs, socket, unit, pipe)
