"""Reading the SQLite file of another program and leaving it as it is: nothing in it changes, and nothing appears
beside it.

A file that nobody has open, and whose writes are all in it, is read where it lies. Beside a writer, or with a log that
was not folded in, a private copy is read, which SQLite makes consistent.

Contract: import.untouched.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import sys
import tempfile
from contextlib import ExitStack
from typing import BinaryIO

import apsw

from ...errors import Refused
from ...storage import connection
from ..backup.workspace import Workspace

PREFIX = "cpersona-import-"
BUSY_MS = 5_000
_JOURNAL = "-journal"
_BESIDE = ("", connection.WAL, _JOURNAL)
# The bytes that SQLite locks of every database: pending, reserved, and the shared ones.
_LOCK_BYTES = (0x40000000, 512)
_FLOCK = "hhqqi4x"
_ASKABLE = sys.platform == "linux" and sys.maxsize > 2**32


class Opened:
    """A SQLite file that is being read. ``close`` ends that and removes what it needed. Raises Refused, apsw.Error."""

    def __init__(self, handle: BinaryIO) -> None:
        self._path: str = handle.name
        self._before = _seen(self._path)
        if not _is(handle, self._path):
            raise Refused(f"input_path: {self._path} was replaced while it was opened; import it again")
        self._stack, self._in_place = ExitStack(), False
        try:
            self.conn = self._open(handle)
            # What a stranger's schema calls is not to be trusted with more than columns.
            self.conn.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            self._stack.callback(self.conn.close)
        except BaseException:
            self._stack.close()
            raise

    def _open(self, handle: BinaryIO) -> apsw.Connection:
        if _held(handle, self._path):
            return self._beside_its_writer()
        if any(size for size, _ in self._before[1:]):
            return self._with_its_log()
        self._in_place = True
        return connection.open_unchanging(self._path)

    def _beside_its_writer(self) -> apsw.Connection:
        source = apsw.Connection(self._path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            # Whoever leaves last folds the log in: not us, were the writer to leave before.
            source.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            source.set_busy_timeout(BUSY_MS)
            copy = apsw.Connection(os.path.join(self._workspace(), "copy"))
            self._stack.callback(copy.close)
            with copy.backup("main", source, "main") as running:
                running.step(-1)
            return copy
        finally:
            source.close()

    def _with_its_log(self) -> apsw.Connection:
        copy = os.path.join(self._workspace(), "copy")
        for suffix in _BESIDE:
            if os.path.exists(self._path + suffix):
                shutil.copyfile(self._path + suffix, copy + suffix)
        self._check_unchanged()
        conn = apsw.Connection(copy, flags=apsw.SQLITE_OPEN_READWRITE)
        self._stack.callback(conn.close)
        conn.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        return conn

    def _workspace(self) -> str:
        return self._stack.enter_context(Workspace(tempfile.gettempdir(), PREFIX))

    def check(self) -> None:
        """Raise Refused where the file that is read was changed meanwhile; a copy cannot be."""
        if self._in_place:
            self._check_unchanged()

    def _check_unchanged(self) -> None:
        if _seen(self._path) != self._before:
            raise Refused(f"{self._path} was changed while it was read; import it again")

    def close(self) -> None:
        self._stack.close()


def _seen(path: str) -> list[tuple[int, int]]:
    """Return size and time of change of a database and of what stands beside it, zeros for what is not there."""
    found = []
    for suffix in _BESIDE:
        try:
            info = os.stat(path + suffix)
        except OSError:
            found.append((0, 0))
        else:
            # A log that is there and empty says no more than one that is not.
            found.append((info.st_size, info.st_mtime_ns) if info.st_size else (0, 0))
    return found


def _is(handle: BinaryIO, path: str) -> bool:
    info, there = os.fstat(handle.fileno()), os.stat(path)
    return (info.st_dev, info.st_ino) == (there.st_dev, there.st_ino)


def _held(handle: BinaryIO, path: str) -> bool:
    """Tell whether a program has the database open, as far as it can be asked: SQLite's locks are advisory ones."""
    if not _ASKABLE:
        return os.path.exists(path + connection.SHM)
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, *_LOCK_BYTES, 0)
    try:
        kind, *_ = struct.unpack(_FLOCK, fcntl.fcntl(handle, fcntl.F_GETLK, asked))
    except OSError:
        return os.path.exists(path + connection.SHM)  # a file system without locks
    return kind != fcntl.F_UNLCK
