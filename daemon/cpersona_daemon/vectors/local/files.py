"""The files of one index, and the two that hold its rows: the matrix, and the same rows as int8.

    <db>.memories.vec        4,096 bytes of header, then float32 rows, one after another, each padded to 64 bytes
    <db>.memories.vec.int8   4,096 bytes of header, then the codes of the same rows (sketch.py), each padded to 64 bytes
    <db>.memories.vec.rows   128 bytes of header, then one checksummed batch a commit: new texts, new rows, dead slots

All are append-only; a slot is never used twice. A row reaches the first two before its batch reaches the
journal, and each batch carries the database's vector generation, so a kill at any point leaves a journal
that is at most one commit behind the database, which says what that commit touched. One that is further
behind, or of a copy of the database that went another way (storage/generations.py), is rebuilt. Batches of a
rebuild carry no generation, and the journal is sealed at its end. Nothing is synced. After a power
loss every part answers for itself: the header and each batch by a CRC, and each row, in either form, by a
sum that is compared whenever it is read. Nothing is mapped: a full disk, a disk that fails and a file that somebody
cuts short are errors and not signals, and what somebody writes into a file is never taken for what was written.

Contract: files.damage, files.private.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...shared.files import opened
from .names import MATRIX, SKETCHES
from .rows import DamagedRows, row_sums, stretches

VERSION = 3
ALIGN = 64
MATRIX_HEADER = 4096
_IDENTITY = struct.Struct("<8sII4sI16s16s")  # magic, version, width, kind, reserved, file id, store id
CRC = struct.Struct("<I")
_FORMS: dict[str, tuple[bytes, np.dtype[Any]]] = {
    MATRIX: (b"CPSVEC\r\n", np.dtype("<f4")),
    SKETCHES: (b"CPSCOD\r\n", np.dtype("i1")),
}


class Unusable(Exception):
    """The files cannot be used, and why; the index is rebuilt from the database."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What ties the files to each other (file_id) and all of them to one database (store_id)."""

    kind: str
    width: int
    file_id: bytes
    store_id: bytes

    def packed(self, magic: bytes) -> bytes:
        body = _IDENTITY.pack(magic, VERSION, self.width, self.kind.encode(), 0, self.file_id, self.store_id)
        return body + CRC.pack(zlib.crc32(body))

    @classmethod
    def parse(cls, head: bytes, magic: bytes) -> Identity:
        if len(head) < _IDENTITY.size + CRC.size:
            raise Unusable("truncated header")
        body = head[: _IDENTITY.size]
        found, version, width, kind, _, file_id, store_id = _IDENTITY.unpack(body)
        if found != magic or CRC.unpack_from(head, _IDENTITY.size)[0] != zlib.crc32(body):
            raise Unusable("damaged or foreign header")
        if version != VERSION or width < 1:
            raise Unusable(f"format version {version}")
        return cls(kind.rstrip(b"\0").decode("ascii", "replace"), width, file_id, store_id)


def create_private(path: str) -> int:
    """Create a file anew, 0600 from its first byte, and return its descriptor. Raises OSError."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def open_private(path: str) -> int:
    """Open an existing file that is ours alone, and close it to others, whoever restored it. Raises Unusable.

    Where nothing can be written, it is opened for reading: such an index serves until the first change.
    """
    try:
        try:
            fd = opened(path, os.O_RDWR)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES):
                raise
            fd = opened(path)
        info = os.fstat(fd)
        if stat.S_IMODE(info.st_mode) != 0o600 and info.st_nlink == 1:
            try:
                os.fchmod(fd, 0o600)
            except OSError:
                pass  # not ours to change, as the health check says
    except FileNotFoundError:
        raise Unusable("no file") from None
    except OSError as error:
        raise Unusable(f"cannot be opened: {error.strerror}") from error
    if info.st_nlink > 1:
        os.close(fd)
        raise Unusable("the file has another name too, and may be another program's")
    return fd


def write_all(fd: int, data: bytes | np.ndarray, offset: int) -> None:
    """Write every byte at ``offset``. Raises OSError, on a full disk too."""
    view = memoryview(data)  # type: ignore[arg-type]  # an array is a buffer, which its types say from Python 3.12 on
    done = os.pwrite(fd, view, offset)
    while done < view.nbytes:
        done += os.pwrite(fd, view.cast("B")[done:], offset + done)


class MatrixFile:
    """Rows of one element type, each ``stride`` elements long; a row's padding is zero.

    ``form`` is MATRIX (float32) or SKETCHES (int8), and also what the file's name adds to the index's path. The
    file is open for as long as anybody holds this object.
    """

    def __init__(self, fd: int, identity: Identity, form: str) -> None:
        self._fd, self.identity = fd, identity
        self._dtype = _FORMS[form][1]
        self._row_bytes = -(-identity.width * self._dtype.itemsize // ALIGN) * ALIGN
        self.stride = self._row_bytes // self._dtype.itemsize
        self._capacity = 0

    def __del__(self) -> None:
        os.close(self._fd)

    @classmethod
    def create(cls, path: str, identity: Identity, form: str) -> MatrixFile:
        self = cls(create_private(path + form), identity, form)
        write_all(self._fd, identity.packed(_FORMS[form][0]), 0)
        return self

    @classmethod
    def open(cls, path: str, rows: int, form: str) -> MatrixFile:
        """Open a file that must hold ``rows`` rows. Raises Unusable."""
        fd = open_private(path + form)
        try:
            identity = Identity.parse(os.pread(fd, MATRIX_HEADER, 0), _FORMS[form][0])
        except BaseException:
            os.close(fd)
            raise
        self = cls(fd, identity, form)
        self._capacity = (os.fstat(fd).st_size - MATRIX_HEADER) // self._row_bytes
        if self._capacity < rows:
            raise Unusable("truncated matrix")
        return self

    def reserve(self, rows: int) -> None:
        """Make room for ``rows`` rows: a sparse tail that costs no disk until it is written."""
        if rows > self._capacity:
            capacity = rows + max(256, rows // 8)
            os.ftruncate(self._fd, MATRIX_HEADER + capacity * self._row_bytes)
            self._capacity = capacity

    def write(self, slot: int, rows: np.ndarray) -> None:
        """Write C-contiguous rows of shape (n, stride) from ``slot`` on; room must be reserved."""
        write_all(self._fd, rows, MATRIX_HEADER + slot * self._row_bytes)

    def read(self, slots: np.ndarray, sums: np.ndarray) -> np.ndarray:
        """Return the rows at ``slots``, (n, stride), once each was found to have its sum. Raises DamagedRows."""
        rows = np.empty((len(slots), self.stride), self._dtype)
        buffer = memoryview(rows.reshape(-1).view(np.uint8))  # type: ignore[arg-type]  # an array is a buffer
        size = self._row_bytes
        try:
            for first, end in stretches(slots):
                self._fill(buffer[first * size : end * size], MATRIX_HEADER + int(slots[first]) * size)
        except OSError as error:
            raise DamagedRows(f"the file cannot be read: {error.strerror}") from error
        if not np.array_equal(row_sums(rows), sums):
            raise DamagedRows("damaged rows in the file")
        return rows

    def _fill(self, buffer: memoryview, offset: int) -> None:
        done = os.preadv(self._fd, [buffer], offset)
        while done < len(buffer):
            more = os.preadv(self._fd, [buffer[done:]], offset + done)
            if not more:
                raise DamagedRows("the file was cut short")
            done += more

    def give_back(self, rows: int) -> None:
        """Cut the reserved tail after ``rows`` rows. Raises OSError."""
        if rows < self._capacity:
            os.ftruncate(self._fd, MATRIX_HEADER + rows * self._row_bytes)
            self._capacity = rows

    @property
    def size(self) -> int:
        """Bytes on disk, holes not counted."""
        return os.fstat(self._fd).st_blocks * 512
