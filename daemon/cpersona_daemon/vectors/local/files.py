"""The three files of one index: the matrix, the same rows as int8, and the journal that says what the rows are.

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

Contract: quality.md "Never lose, never hang, never leak" (a damaged index is noticed, bypassed and rebuilt).
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import zlib
from dataclasses import dataclass

import msgspec
import numpy as np

from ...shared.files import opened
from ...storage.generations import NOTHING, Generation
from .names import MATRIX, SKETCHES
from .rows import DamagedRows, row_sums, stretches

VERSION = 3
ALIGN = 64
MATRIX_HEADER = 4096
ROWS_HEADER = 128
_IDENTITY = struct.Struct("<8sII4sI16s16s")  # magic, version, width, kind, reserved, file id, store id
_CRC = struct.Struct("<I")
_SEAL = struct.Struct("<Q8sQ")  # generation, its stamp, length of the journal it speaks for
_SEAL_AT = 96
# magic, payload length, generation, its stamp, text bytes, rows, dead, largest norm
_BATCH = struct.Struct("<4sIQ8sIIIf")
_ROWS_MAGIC, _BATCH_MAGIC = b"CPSROW\r\n", b"CPSB"

ROW = np.dtype(
    [
        ("id", "<i8"),
        ("created", "<i8"),
        ("sum", "<u8"),
        ("sketch_sum", "<u8"),
        ("scale", "<f4"),
        ("residual", "<f4"),
        ("agent", "<i4"),
        ("project", "<i4"),
        ("channel", "<i4"),
        ("source", "<i4"),
        ("model", "<i4"),
        ("width", "<i4"),
    ]
)
ROW_PACKING = struct.Struct("<qqQQffiiiiii")  # the same, of one row
_FORMS = {MATRIX: (b"CPSVEC\r\n", np.dtype("<f4")), SKETCHES: (b"CPSCOD\r\n", np.dtype("i1"))}

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[str]).decode


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
        return body + _CRC.pack(zlib.crc32(body))

    @classmethod
    def parse(cls, head: bytes, magic: bytes) -> Identity:
        if len(head) < _IDENTITY.size + _CRC.size:
            raise Unusable("truncated header")
        body = head[: _IDENTITY.size]
        found, version, width, kind, _, file_id, store_id = _IDENTITY.unpack(body)
        if found != magic or _CRC.unpack_from(head, _IDENTITY.size)[0] != zlib.crc32(body):
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


def write_all(fd: int, data, offset: int) -> None:
    """Write every byte at ``offset``. Raises OSError, on a full disk too."""
    done, size = os.pwrite(fd, data, offset), memoryview(data).nbytes
    while done < size:
        done += os.pwrite(fd, memoryview(data).cast("B")[done:], offset + done)


class MatrixFile:
    """Rows of one element type, each ``stride`` elements long; a row's padding is zero.

    ``form`` is MATRIX (float32) or SKETCHES (int8), and also what the file's name adds to the index's path. The
    file is open for as long as anybody holds this object.
    """

    def __init__(self, fd: int, identity: Identity, form: str):
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
        buffer = memoryview(rows.reshape(-1).view(np.uint8))
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


@dataclass(slots=True)
class Batch:
    """What one commit did to one index: texts for the next codes, rows for the next slots, slots that died."""

    texts: list[str]
    rows: np.ndarray
    dead: np.ndarray
    max_norm: float

    def packed(self, reached: Generation) -> bytes:
        texts = _encode(self.texts) if self.texts else b""
        payload = b"".join((texts, self.rows.tobytes(), self.dead.astype("<i4").tobytes()))
        head = _BATCH.pack(
            _BATCH_MAGIC,
            len(payload),
            reached.number,
            reached.stamp,
            len(texts),
            len(self.rows),
            len(self.dead),
            self.max_norm,
        )
        return b"".join((head, payload, _CRC.pack(zlib.crc32(payload, zlib.crc32(head)))))


class RowsFile:
    """The journal of an index: whole after every append, or noticed as damaged."""

    def __init__(self, fd: int, identity: Identity):
        self._fd, self.identity = fd, identity
        self.length, self.batches = ROWS_HEADER, 0

    @classmethod
    def create(cls, path: str, identity: Identity) -> RowsFile:
        self = cls(create_private(path), identity)
        write_all(self._fd, identity.packed(_ROWS_MAGIC).ljust(ROWS_HEADER, b"\0"), 0)
        return self

    @classmethod
    def open(cls, path: str) -> tuple[RowsFile, Batch, Generation]:
        """Return the file, its batches as one, and the generation it stands at. Raises Unusable.

        Reading ends at the first batch that is torn or damaged; the generation tells whether anything is missing.
        """
        fd = open_private(path)
        try:
            with open(fd, "rb", closefd=False) as file:
                data = file.read()
            self = cls(fd, Identity.parse(data, _ROWS_MAGIC))
            whole, reached = self._replay(data)
            return self, whole, reached
        except BaseException:
            os.close(fd)
            raise

    def append(self, batch: Batch, reached: Generation) -> None:
        """Add a batch; once this returns, the index stands at the generation ``reached``."""
        data = batch.packed(reached)
        write_all(self._fd, data, self.length)
        self.length += len(data)
        self.batches += 1

    def cut(self) -> None:
        """Remove what stands after the last whole batch."""
        if os.fstat(self._fd).st_size > self.length:
            os.ftruncate(self._fd, self.length)

    def seal(self, reached: Generation) -> None:
        """Note that everything up to this generation changed nothing here, in the journal as long as it is now."""
        body = _SEAL.pack(reached.number, reached.stamp, self.length)
        write_all(self._fd, body + _CRC.pack(zlib.crc32(body)), _SEAL_AT)

    def close(self) -> None:
        os.close(self._fd)

    def _replay(self, data: bytes) -> tuple[Batch, Generation]:
        view, at = memoryview(data), ROWS_HEADER
        texts: list[str] = []
        rows, dead, reached, max_norm = [], [], NOTHING, 0.0
        while at + _BATCH.size <= len(data):
            magic, size, number, stamp, text_bytes, row_count, dead_count, norm = _BATCH.unpack_from(view, at)
            end = at + _BATCH.size + size
            if (
                magic != _BATCH_MAGIC
                or end + _CRC.size > len(data)
                or size != text_bytes + row_count * ROW.itemsize + dead_count * 4
            ):
                break
            if _CRC.unpack_from(view, end)[0] != zlib.crc32(view[at:end]):
                break
            body = at + _BATCH.size
            if text_bytes:
                texts += _decode(view[body : body + text_bytes])
            cut = body + text_bytes + row_count * ROW.itemsize
            rows.append(view[body + text_bytes : cut])
            dead.append(view[cut:end])
            max_norm, reached = max(max_norm, norm), Generation(number, stamp)
            at = end + _CRC.size
            self.batches += 1
        if at > len(data):
            raise Unusable("truncated header")
        self.length = at
        *sealed, length = _SEAL.unpack_from(view, _SEAL_AT)
        if length == at and _CRC.unpack_from(view, _SEAL_AT + _SEAL.size)[0] == zlib.crc32(
            view[_SEAL_AT : _SEAL_AT + _SEAL.size]
        ):
            sealed = Generation(*sealed)
            reached = sealed if sealed.number >= reached.number else reached
        whole = rows[0] if len(rows) == 1 else b"".join(rows)
        return Batch(texts, np.frombuffer(whole, ROW), np.frombuffer(b"".join(dead), "<i4"), max_norm), reached
