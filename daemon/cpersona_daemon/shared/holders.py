"""Which other processes have a file open: what a person needs to know of a reader that holds the log back."""

from __future__ import annotations

import os

_MOST = 5


def holders(path: str) -> list[tuple[int, str]]:
    """Return (pid, program) of at most five other processes of this user that have the file open.

    There are none where /proc does not tell.
    """
    found: list[tuple[int, str]] = []
    try:
        wanted, processes = os.stat(path), os.listdir("/proc")
    except OSError:
        return found
    for pid in sorted(int(name) for name in processes if name.isdigit()):
        if pid != os.getpid() and len(found) < _MOST and _has_open(pid, wanted):
            found.append((pid, _program(pid)))
    return found


def _has_open(pid: int, wanted: os.stat_result) -> bool:
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False  # another user's, or gone
    for descriptor in descriptors:
        try:
            info = os.stat(f"/proc/{pid}/fd/{descriptor}")
        except OSError:
            continue
        if (info.st_dev, info.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    return False


def _program(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as handle:
            return handle.read().strip()
    except OSError:
        return "?"
