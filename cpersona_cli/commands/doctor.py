"""`doctor`: look at the installation itself, when perhaps no daemon can start.

What needs the daemon's packages is looked at by `cpersonad --doctor`, in a process of its own; the daemon is looked at
from here.

Contract: health.doctor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from cpersona_daemon import __version__
from cpersona_daemon.shared import fields, paths

from ..declare.spec import HERE, command
from ..terminal import render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpersona_daemon.shared.settings import Settings

    from ..session import Session

OK, WARN, FAIL = "ok", "warn", "fail"


@command("doctor", common=HERE)
def doctor(session: Session) -> int:
    """Check the installation: packages, SQLite, model, services, settings, places, permissions, socket, clock, daemon.

    One line for each finding: ok, warn or fail, what was looked at, what was found and what to do. Nothing is
    started or changed, so it works when the daemon cannot start. An http embedder, a reranker and a vector service are
    asked one tiny question each. Exit 1 when something fails. `health` looks
    at the store itself.

    Example:
      cpersona doctor
      cpersona doctor --json | jq '.checks[] | select(.level != "ok")'
    """
    out, settings = session.out, _quietly(session)
    findings = [*_installation(paths.places(settings).db), _daemon(settings)]
    failed = any(finding["level"] == FAIL for finding in findings)
    if out.as_json:
        out.json({"ok": not failed, "checks": findings})
    else:
        rows = [
            (
                finding["level"],
                finding["check"],
                finding["message"] + (f"; {finding['do']}" if finding.get("do") else ""),
            )
            for finding in findings
        ]
        render.table(out, ("", "check", "found"), rows, whole=True)
        counts = [f"{sum(finding['level'] == level for finding in findings)} {level}" for level in (OK, WARN, FAIL)]
        out.note(", ".join(counts))
    return fields.EXIT_FAILED if failed else fields.EXIT_OK


def _quietly(session: Session) -> Settings:
    """Return the settings without their warnings on stderr: they are findings here."""
    from cpersona_daemon.shared.settings import load

    db = session.options.get("db")
    return load(options={"db_path": db} if db else None)


def _installation(db: str) -> list[dict]:
    """Return what `cpersonad --doctor` finds; that it cannot even run is a finding of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "cpersona_daemon.main", "--doctor"],
        env={**os.environ, "CPERSONA_DB_PATH": db},
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    findings = []
    for line in done.stdout.splitlines():
        try:
            findings.append(json.loads(line))
        except ValueError:
            break
    if done.returncode not in (0, 1) or not findings:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
        findings.append(
            {
                "check": "program",
                "level": FAIL,
                "message": f"the daemon's program cannot run: {last[0]}",
                "do": "reinstall cpersona-cli",
            }
        )
    return findings


def _daemon(settings: Settings) -> dict:
    from ..wire import control

    found = control.find_daemon(settings)
    if found is None:
        return {"check": "daemon", "level": OK, "message": "no daemon runs; the next command starts one"}
    if not found.get("answers"):
        return {
            "check": "daemon",
            "level": FAIL,
            "message": f"the daemon (pid {found.get('pid')}) {found.get('problem', 'does not answer')}",
            "do": "read `cpersona daemon logs`; `cpersona daemon restart` ends it and starts another",
        }
    if found.get("version") != __version__ or found.get("protocol") != fields.PROTOCOL:
        return {
            "check": "daemon",
            "level": WARN,
            "message": f"the running daemon is version {found.get('version')}, this is {__version__}",
            "do": "`cpersona daemon restart` brings them together",
        }
    return {
        "check": "daemon",
        "level": OK,
        "message": f"the daemon answers (pid {found.get('pid')}, version {found.get('version')})",
    }


COMMANDS = (doctor,)
