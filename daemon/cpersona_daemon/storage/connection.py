"""Opening connections to the database's file, and the ground it stands on: who may write, and whether its files are
still there.

A database that cannot be written to is still read: beside a writer as usual, and where not even the files can be made
that SQLite coordinates readers with, as a file that nobody changes.
"""

from __future__ import annotations

import os
import stat
from urllib.parse import quote

import apsw

from ..errors import CPersonaError, DiskFull, ReadOnly, translate

BUSY_TIMEOUT_MS = 10_000
WAL, SHM = "-wal", "-shm"
_NO_ROOM_BYTES = 64 * 1024  # less than SQLite asks for at a time


def writable(path: str) -> bool:
    """Tell whether the database at ``path`` can be written to: the file itself, and the files that SQLite needs beside
    it.
    """
    if os.path.lexists(path) and not os.access(path, os.W_OK):
        return False
    beside = all(os.access(path + suffix, os.R_OK | os.W_OK) for suffix in (WAL, SHM))
    return beside or os.access(os.path.dirname(path), os.W_OK | os.X_OK)


def open_writing(path: str) -> apsw.Connection:
    """Return a connection that writes. Raises apsw.Error."""
    return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)


def open_reading(path: str) -> apsw.Connection:
    """Return a connection that only reads, also where nothing can be written. Raises apsw.Error, ReadOnly.

    SQLite coordinates readers through a file beside the database. Where it is missing and cannot be made, nobody can be
    writing, so that the file is read as it stands. A log that was not folded in would be left out by that, and is
    refused.
    """
    if os.path.exists(path + SHM) or os.access(os.path.dirname(path), os.W_OK | os.X_OK):
        conn = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    elif _size(path + WAL):
        raise ReadOnly(
            f"{path}{WAL} holds writes that are not folded into the database yet, and nothing can be written beside it"
        )
    else:
        conn = open_unchanging(path)
    conn.set_busy_timeout(BUSY_TIMEOUT_MS)
    return conn


def open_unchanging(path: str) -> apsw.Connection:
    """Return a connection that reads the file as it stands: without locks, without the log, without a trace.

    Raises apsw.Error.
    """
    return apsw.Connection(f"file:{quote(path)}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def mend_modes(path: str) -> None:
    """Let the owner write to the files beside a database that the owner may write to.

    SQLite gives them the mode that the database has when they are made. One that was read-only for a while leaves them
    so, and every write after that fails.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
    if not mode & stat.S_IWUSR:
        return
    for suffix in (WAL, SHM):
        try:
            held = os.open(path + suffix, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue  # missing, or not ours to read: SQLite says so itself
        try:
            info = os.fstat(held)
            if stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid() and not info.st_mode & stat.S_IWUSR:
                os.fchmod(held, stat.S_IMODE(mode))
        except OSError:
            pass  # a mount without it
        finally:
            os.close(held)


def explained(error: BaseException, path: str) -> BaseException:
    """Return our error for one of SQLite's; one about a file that cannot be opened or written names that file."""
    ours = translate(error)
    if isinstance(error, apsw.IOError) and room(path) < _NO_ROOM_BYTES:
        return DiskFull(f"the disk is full, nothing was written ({error})")
    if not isinstance(error, (apsw.ReadOnlyError, apsw.CantOpenError)) or not isinstance(ours, CPersonaError):
        return ours
    for suffix in ("", WAL, SHM):
        if os.path.lexists(path + suffix) and not os.access(path + suffix, os.R_OK | os.W_OK):
            return ReadOnly(f"{path + suffix} cannot be written to, so nothing was written")
        if os.path.lexists(path + suffix) and not os.path.isfile(path + suffix):
            return ReadOnly(f"{path + suffix} is no regular file, so SQLite cannot use it; move it away")
    if not os.access(os.path.dirname(path), os.W_OK | os.X_OK):
        return ReadOnly(f"nothing can be written in {os.path.dirname(path)}, so nothing was written")
    return ours


def room(path: str) -> int:
    """Return how many bytes can still be written beside a database. Raises OSError."""
    there = os.statvfs(os.path.dirname(path))
    return there.f_bavail * there.f_frsize


class Ground:
    """The files that connections have open, remembered as they were; ``lost`` tells which of them no longer has its
    name.

    A database whose log was removed goes on writing into a file that nobody can find again, and one that was moved away
    takes with it what is stored from then on.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._known = {suffix: known for suffix in ("", WAL, SHM) if (known := _identity(path + suffix)) is not None}

    def lost(self) -> str | None:
        """Return "" for the database, "-wal" or "-shm" for a file that was removed or replaced, None when all are
        there.
        """
        for suffix, known in self._known.items():
            if _identity(self._path + suffix) != known:
                return suffix
        return None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
