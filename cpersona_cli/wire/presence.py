"""Whether a daemon holds a database, and what it wrote down about itself.

Contract: daemon.starts.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

from cpersona_daemon.shared import files

from .dial import POLL_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpersona_daemon.shared.paths import Places

_NOTE_BYTES = 65_536


def wait_until_gone(where: Places, deadline: float, pid: int | None) -> bool:
    """Wait until the lock is free, or held by another daemon than the one that was stopped."""
    while lock_is_held(where):
        successor = note(where).get("pid")
        if pid is not None and successor is not None and successor != pid:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def lock_is_held(where: Places) -> bool:
    """Tell whether a daemon holds the database: the lock lives exactly as long as its process."""
    try:
        lock = files.opened(where.lock)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def owner_elsewhere(where: Places) -> str | None:
    """Return the user whose database this is where we may not even read it, None where we may serve it ourselves."""
    try:
        owner = os.stat(os.path.dirname(where.db)).st_uid
    except OSError:
        return None
    if owner == os.geteuid() or os.access(where.db, os.R_OK) or os.access(os.path.dirname(where.db), os.W_OK):
        return None
    import pwd

    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)


def note(where: Places) -> dict:
    """Return what the daemon wrote down about itself, {} where there is nothing to read."""
    try:
        told = json.loads(files.read(where.daemon_json, _NOTE_BYTES))
    except (OSError, ValueError):
        return {}
    return told if isinstance(told, dict) else {}
