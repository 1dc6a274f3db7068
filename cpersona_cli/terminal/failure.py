"""The one line that a failure prints, or a write during a pause: what failed, why, and what to type next.

Contract: exit.status, pause.answers.
"""

from __future__ import annotations

from cpersona_daemon.shared import fields

from ..declare.catalogue import ENTRIES, FAMILIES
from ..exits import reason_of


def named(hint: str, words: list[str]) -> str:
    """Return a hint that names the command of these words where it says COMMAND, or the first screen without one."""
    first = words[: 2 if words[:1] and words[0] in FAMILIES else 1]
    path = [word for word in first if not word.startswith("-")]
    known = path if path and path[0] in ENTRIES else []
    return hint.replace("cpersona COMMAND", " ".join(["cpersona", *known]))


def failure_line(doing: str, response: dict, code: str | None = None, hint: str | None = None) -> str:
    """Return what failed, why, and what to type next, as one line without its `cpersona` prefix.

    ``hint`` is a command's own advice for what it was refused; any other failure has advice of its own.
    """
    why = reason_of(response)
    if code == "unknown_method" and doing.split()[:1] != ["call"]:
        # The command names a method that this version has: what answers was started before it was installed.
        why = (
            "the running daemon is older than this command and does not know it; `cpersona daemon restart` starts the "
            "one that is installed"
        )
    if hint is None or code not in (None, "refused"):
        known = "permission_denied" if response.get("error") == "permission_denied" else code or "refused"
        hint = named(fields.ERRORS[known][2] if known in fields.ERRORS else "", doing.split())
    line = f"{doing}: {why}" if doing else why
    # A reason that already names a command has said what to type next.
    return " ".join((f"{line}; {hint}" if hint and "`cpersona " not in line else line).split())


def paused_line(said: str, response: dict) -> str:
    """Return what became of a write that a pause kept out, ``said`` in a few words, as one line with its prefix."""
    return f"cpersona: {said}: {response.get('reason', 'persistence is paused')}; `cpersona resume` keeps again"
