"""The journal of an index: what the rows in the other files are, one checksummed batch a commit.

A batch names new texts, new rows and dead slots, and the database's generation that it leads to. The seal in the header
says that later generations changed nothing here, so that a commit of another kind costs no batch.

Contract: files.damage.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from ...storage.generations import NOTHING, Generation
from .files import CRC, Identity, Unusable, create_private, open_private, write_all

ROWS_HEADER = 128
_SEAL = struct.Struct("<Q8sQ")  # generation, its stamp, length of the journal it speaks for
_SEAL_AT = 96
# magic, payload length, generation, its stamp, text bytes, rows, dead, largest norm
_BATCH = struct.Struct("<4sIQ8sIIIf")
_ROWS_MAGIC, _BATCH_MAGIC = b"CPSROW\r\n", b"CPSB"

_FIELDS = [
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
ROW = np.dtype(_FIELDS)
ROW_NAMES = tuple(name for name, _ in _FIELDS)
ROW_PACKING = struct.Struct("<qqQQffiiiiii")  # the same, of one row
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[str]).decode


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
        return b"".join((head, payload, CRC.pack(zlib.crc32(payload, zlib.crc32(head)))))


class RowsFile:
    """The journal of an index: whole after every append, or noticed as damaged."""

    def __init__(self, fd: int, identity: Identity) -> None:
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
        write_all(self._fd, body + CRC.pack(zlib.crc32(body)), _SEAL_AT)

    def close(self) -> None:
        os.close(self._fd)

    def _replay(self, data: bytes) -> tuple[Batch, Generation]:
        texts: list[str] = []
        rows: list[memoryview] = []
        dead: list[memoryview] = []
        max_norm, reached = 0.0, NOTHING
        while (batch := _batch_at(data, self.length)) is not None:
            size, head, parts = batch
            texts += _decode(parts[0]) if len(parts[0]) else ()
            rows.append(parts[1])
            dead.append(parts[2])
            max_norm, reached = max(max_norm, head.max_norm), Generation(head.number, head.stamp)
            self.length += size
            self.batches += 1
        if self.length > len(data):
            raise Unusable("truncated header")
        whole = rows[0] if len(rows) == 1 else b"".join(rows)
        batch_of_all = Batch(texts, np.frombuffer(whole, ROW), np.frombuffer(b"".join(dead), "<i4"), max_norm)
        return batch_of_all, self._sealed(data, reached)

    def _sealed(self, data: bytes, reached: Generation) -> Generation:
        """Return the generation of the seal where it speaks for this journal, else the one of the last batch."""
        number, stamp, length = _SEAL.unpack_from(data, _SEAL_AT)
        if length != self.length or number < reached.number:
            return reached
        (crc,) = CRC.unpack_from(data, _SEAL_AT + _SEAL.size)
        return Generation(number, stamp) if crc == zlib.crc32(data[_SEAL_AT : _SEAL_AT + _SEAL.size]) else reached


class _Head(NamedTuple):
    magic: bytes
    size: int  # of the payload
    number: int
    stamp: bytes
    text_bytes: int
    rows: int
    dead: int
    max_norm: float


def _batch_at(data: bytes, at: int) -> tuple[int, _Head, tuple[memoryview, memoryview, memoryview]] | None:
    """Return length, head and parts (texts, rows, dead slots) of the batch at a place; None where none is whole."""
    if at + _BATCH.size > len(data):
        return None
    head = _Head(*_BATCH.unpack_from(data, at))
    body, end = at + _BATCH.size, at + _BATCH.size + head.size
    row_bytes = head.rows * ROW.itemsize
    if head.magic != _BATCH_MAGIC or end + CRC.size > len(data):
        return None
    if head.size != head.text_bytes + row_bytes + head.dead * 4:
        return None
    view = memoryview(data)
    if CRC.unpack_from(view, end)[0] != zlib.crc32(view[at:end]):
        return None
    rows, dead = body + head.text_bytes, body + head.text_bytes + row_bytes
    return end + CRC.size - at, head, (view[body:rows], view[rows:dead], view[dead:end])
