"""The one line that a failure prints: what failed, why, and what to type next.

Contract: exit.status.
"""

from cpersona_daemon.shared import fields

from ..declare.catalogue import ENTRIES, FAMILIES
from ..exits import reason_of


def named(hint, words):
    """Return a hint that names the command of these words where it says COMMAND; without one it names the first screen."""
    path = [word for word in words[: 2 if words[:1] and words[0] in FAMILIES else 1] if not word.startswith("-")]
    return hint.replace(
        "cpersona COMMAND", " ".join(["cpersona", *path] if path and path[0] in ENTRIES else ["cpersona"])
    )


def failure_line(doing, response, code=None, hint=None):
    """Return what failed, why, and what to type next, as one line without its `cpersona` prefix.

    ``hint`` is a command's own advice for what it was refused; any other failure has advice of its own.
    """
    why = reason_of(response)
    if hint is None or code not in (None, "refused"):
        known = "permission_denied" if response.get("error") == "permission_denied" else code or "refused"
        hint = named(fields.ERRORS[known][2] if known in fields.ERRORS else "", doing.split())
    line = f"{doing}: {why}" if doing else why
    # A reason that already names a command has said what to type next.
    return " ".join((f"{line}; {hint}" if hint and "`cpersona " not in line else line).split())
