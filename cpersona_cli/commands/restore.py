"""`restore`: put a backup back.

Restoring needs a process that reads databases, which this one does not: `cpersonad --restore` does it while no daemon
has the database; here is what comes before, asking the daemon to leave, and after, saying what was done.

Contract: restore.checked, exit.status.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from cpersona_daemon.shared import fields

from .. import exits
from ..declare.spec import HERE, argument, command, option
from ..terminal.failure import failure_line
from ._copies import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..session import Session
    from ..terminal.output import Output

_NAMED = 5  # rows that are named one by one

# How often a daemon that somebody else's command starts meanwhile is asked to leave.
_ATTEMPTS = 3


@command(
    "restore",
    argument("file", "A file that backup wrote.", values="files"),
    option("--check", "Verify the file and change nothing.", kind="flag", default=False),
    option(
        "--settings",
        "Write the settings of the backup too, where there is no config file.",
        kind="flag",
        default=False,
        name="with_settings",
    ),
    option("--force", "Have the daemon leave although others are at work with it.", kind="flag", default=False),
    common=HERE,
)
def restore(session: Session, file: str, check: bool, with_settings: bool, force: bool) -> int:
    """Put a backup in the place of the database. What was there is moved aside, never overwritten.

    The file is verified first, whoever made it: its shape and sizes, checksums, the database in it object by object and
    its settings. Then the daemon is asked to leave; the next command starts one again. Settings are written only with
    --settings, only where there is no config file, and never those that say where something lies, whom something is
    sent to, or a secret; else they are compared.

    Example:
      cpersona restore ~/backups/cpersona-2026-03-01.tar.gz --check
      cpersona restore ~/backups/cpersona-2026-03-01.tar.gz
    """
    out, path = session.out, os.path.abspath(file)
    if check and force:
        raise exits.Usage("restore: --check changes nothing and --force has the daemon leave; give one of them")
    if check and with_settings:
        raise exits.Usage("restore: --check changes nothing and --settings writes them; give one of them")
    if not os.path.isfile(path):
        raise exits.Stop(f"restore: there is no file {file!r}; give the path of a file that `cpersona backup` wrote")
    told = _program(session, [path, "--check"])
    if not check:
        told = _restore(session, [path, *(["--settings"] if with_settings else [])], force)
    if out.as_json:
        out.json(told)
    else:
        _say_unfit(out, told)
        if check:
            out.line(path)
            out.note(f"sound: {counted(told)}, written {told.get('created_at')} by version {told.get('version')}")
        else:
            _say_restored(out, told, file)
    return fields.EXIT_OK


def _say_unfit(out: Output, told: dict) -> None:
    if unfit := told.get("unfit"):
        named = ", ".join(f"{row['ref']} ({row['reason']})" for row in unfit[:_NAMED])
        more = ", …" if len(unfit) > _NAMED else ""
        out.warn(f"cpersona restore: {len(unfit)} rows can be restored and not be shown: {named}{more}")


def _say_restored(out: Output, told: dict, file: str) -> None:
    out.line(told["restored"])
    out.note(f"{counted(told)}, as of {told.get('created_at')}")
    if told.get("moved_aside"):
        out.note(f"what was there is now {told['moved_aside']}; delete it once you are content")
    if told.get("settings") == "written":
        out.note(f"the settings were written to {told.get('config')}")
    elif offered := told.get("offered_settings"):
        import shlex

        out.note(
            f"the backup has settings too ({', '.join(offered)}); `cpersona restore {shlex.quote(file)} --settings` "
            "writes them where there is no config file"
        )
    for name, why in told.get("refused_settings", {}).items():
        out.warn(f"cpersona restore: {name} was not written: {why}")
    if differing := told.get("differing_settings"):
        out.warn(
            f"cpersona: these settings differ from the backup's and stay as they are: {', '.join(differing)}; "
            "`cpersona config show` lists yours"
        )


def _restore(session: Session, arguments: list[str], force: bool) -> dict:
    for _ in range(_ATTEMPTS - 1):
        _let_leave(session, force)
        try:
            return _program(session, arguments)
        except exits.Stop as stop:
            if stop.exit_status != fields.EXIT_RETRY:
                raise
    _let_leave(session, force)
    return _program(session, arguments)


def _let_leave(session: Session, force: bool) -> None:
    """Have the daemon leave. Raises Stop when it is at work for others, unless that is what is wanted."""
    from ..wire import client, control

    found = control.find_daemon(session.here)
    if found is None:
        return
    spared = "and nothing was changed; try again later, or give --force to have it leave all the same"
    if not found.get("answers") and not force:
        raise exits.Stop(f"restore: the daemon does not answer (pid {found.get('pid')}), {spared}", fields.EXIT_RETRY)
    try:
        gone = control.stop_daemon(session.here, unless_others=not force)
    except client.CallFailed as error:
        if error.code != "busy":
            raise
        raise exits.Stop(f"restore: {error.message}, {spared}", fields.EXIT_RETRY) from None
    if not gone:
        raise exits.Stop(
            "restore: the daemon is still at work, and nothing was changed; read `cpersona daemon logs`, then try "
            "again",
            fields.EXIT_RETRY,
        )


def _program(session: Session, arguments: list[str]) -> dict:
    """Run `cpersonad --restore` and return what it says. Raises Stop with its reason."""
    from cpersona_daemon.shared import paths

    environment = {**os.environ, "CPERSONA_DB_PATH": paths.places(session.here).db}
    done = subprocess.run(
        [sys.executable, "-m", "cpersona_daemon.main", "--restore", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    try:
        told = json.loads(done.stdout)
    except ValueError:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise exits.Stop(
            f"restore: the daemon's program failed: {last[0]}; `cpersona doctor` looks at the installation"
        ) from None
    if done.returncode:
        if session.out.as_json:
            session.out.json(told)
        raise exits.Stop(
            failure_line("restore", told, told.get("code"), "" if told.get("code") == "refused" else None),
            done.returncode,
        )
    return told


COMMANDS = (restore,)
