"""The three files of one index as one thing: written in the order that keeps them whole, opened only when they agree.

Contract: files.damage.
"""

from __future__ import annotations

import os
from contextlib import suppress

import numpy as np

from ...model.kinds import VectorKind
from ...storage.generations import Generation
from .files import Identity, MatrixFile, Unusable
from .held import HeldRows
from .journal import Batch, RowsFile
from .names import FRESH, MATRIX, ROWS, SKETCHES, SUFFIXES

_TIDY_BATCHES = 64  # a journal of fewer is opened quickly enough


class StoredRows:
    """The files of an index at one path.

    One thread writes; readers hold ``matrix`` and ``sketches`` for as long as they like.
    """

    def __init__(self, matrix: MatrixFile, sketch_file: MatrixFile, journal: RowsFile) -> None:
        self.matrix, self._sketch_file, self._journal = matrix, sketch_file, journal
        self.sketches = HeldRows(sketch_file)

    @classmethod
    def create(cls, path: str, kind: VectorKind, width: int, store_id: bytes) -> StoredRows:
        """Make the files anew. Raises OSError."""
        identity = Identity(kind, width, os.urandom(16), store_id)
        matrix = MatrixFile.create(path, identity, MATRIX)
        return cls(matrix, MatrixFile.create(path, identity, SKETCHES), RowsFile.create(path + ROWS, identity))

    @classmethod
    def open(
        cls, path: str, kind: VectorKind, store_id: bytes, wanted: Generation
    ) -> tuple[StoredRows, Batch, Generation]:
        """Return the files, everything in the journal as one batch, and the generation they stand at.

        That is ``wanted``, or the one before it. Raises Unusable with the reason when they do not fit.
        """
        journal, whole, reached = RowsFile.open(path + ROWS)
        try:
            if journal.identity.kind != kind or journal.identity.store_id != store_id:
                raise Unusable("index of another database")
            _check_generation(reached, wanted)
            matrix = MatrixFile.open(path, len(whole.rows), MATRIX)
            sketches = MatrixFile.open(path, len(whole.rows), SKETCHES)
            if not matrix.identity == sketches.identity == journal.identity:
                raise Unusable("matrix and journal are not of one piece")
        except BaseException:
            journal.close()
            raise
        return cls(matrix, sketches, journal), whole, reached

    @property
    def width(self) -> int:
        return self.matrix.identity.width

    @property
    def batches(self) -> int:
        return self._journal.batches

    @property
    def size(self) -> int:
        """Bytes on disk, holes not counted."""
        return self.matrix.size + self._sketch_file.size + self._journal.length

    def reserve(self, rows: int) -> None:
        """Make room for so many rows. Raises OSError."""
        self.matrix.reserve(rows)
        self._sketch_file.reserve(rows)

    def write(self, slot: int, rows: np.ndarray, sketches: np.ndarray) -> None:
        """Write rows and their codes from ``slot`` on, seen by nobody until ``append``. Raises OSError."""
        self.matrix.write(slot, rows)
        self.sketches.write(slot, sketches)

    def append(self, batch: Batch, reached: Generation) -> None:
        """Say what was written; from here on the files stand at a generation. Raises OSError."""
        self._journal.append(batch, reached)

    def seal(self, reached: Generation) -> None:
        """Say that everything up to a generation changed nothing here. Raises OSError."""
        self._journal.seal(reached)

    def cut(self) -> None:
        """Remove what stands in the journal after its last whole batch. Raises OSError."""
        self._journal.cut()

    def checkpoint(self, path: str, whole: Batch, reached: Generation) -> None:
        """Replace the journal by one of a single batch that says the same. Raises OSError."""
        fresh = RowsFile.create(path + ROWS + FRESH, self._journal.identity)
        fresh.append(whole, reached)
        os.rename(path + ROWS + FRESH, path + ROWS)
        self._journal.close()
        self._journal = fresh

    @property
    def long(self) -> bool:
        """Whether the journal is worth a checkpoint before it is closed."""
        return self.batches > _TIDY_BATCHES

    def give_back(self, rows: int) -> None:
        """Cut what is reserved after so many rows. Raises OSError."""
        self.matrix.give_back(rows)
        self._sketch_file.give_back(rows)

    def close(self) -> None:
        """Let go of the journal. The rows are closed by the last reader that holds them."""
        self._journal.close()


def _check_generation(reached: Generation, wanted: Generation) -> None:
    if reached[:2] == wanted[:2] or wanted.is_after(*reached[:2]):
        return
    if reached.number in (wanted.number, wanted.number - 1):
        raise Unusable(f"of another copy of the database: both made {reached.number} changes, other ones")
    raise Unusable(f"stale: the index stands at {reached.number}, the database at {wanted.number}")


def move(source: str, target: str, there: bool) -> None:
    """Give the files at one path the names of those at another; where there are none, remove the others.

    Raises OSError. A crash between two renames leaves files that do not match.
    """
    for suffix in SUFFIXES:
        if there:
            os.rename(source + suffix, target + suffix)
        else:
            with suppress(FileNotFoundError):
                os.unlink(target + suffix)


def remove(path: str) -> None:
    """Remove the files of an unfinished index."""
    for suffix in SUFFIXES:
        with suppress(OSError):  # whatever else stands there was not made by this index
            os.unlink(path + suffix)
