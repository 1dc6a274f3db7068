"""What readers of an index see: a column per property of a slot, the mapped rows, and one commit's frozen view of both.

Contract: contracts.md §3 (vector_near: which rows a scan takes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .codes import Codes
from .files import ROW

ALIVE = np.uint32(0xFFFFFFFF)
# Any odd numbers do, as long as they never change: they make the sum depend on where a word stands.
_WEIGHTS = np.random.Generator(np.random.PCG64(20240501)).integers(0, 2**62, 1 << 13, np.uint64) * np.uint64(2) + np.uint64(1)


class Columns:
    """The entries of every slot, one array each; what a scan compares lies together."""

    __slots__ = (*ROW.names, "died", "late", "verified", "sketch_verified", "journalled")

    def __init__(self, capacity: int):
        for name in ROW.names:
            setattr(self, name, np.zeros(capacity, ROW[name]))
        self.journalled = tuple(getattr(self, name) for name in ROW.names)
        self.died = np.full(capacity, ALIVE)
        self.late = np.zeros(capacity, bool)
        self.verified, self.sketch_verified = np.zeros(capacity, bool), np.zeros(capacity, bool)

    def __len__(self) -> int:
        return len(self.id)

    def grown(self, count: int, capacity: int) -> Columns:
        """Return larger columns with the first ``count`` entries. Older views keep the ones they hold."""
        larger = Columns(capacity)
        for name in (*ROW.names, "died", "late", "verified", "sketch_verified"):
            getattr(larger, name)[:count] = getattr(self, name)[:count]
        return larger


@dataclass(frozen=True, slots=True)
class View:
    """What a reader scans: consistent as of one commit, whatever happens meanwhile.

    ``matrix`` has shape (>= count, stride) with zero padding after ``width`` floats, ``sketches`` the same
    rows as int8. A slot is alive here when ``columns.died[slot] > change``. ``late`` lists the slots that stand
    out of order, ascending by created_at. ``widths`` and ``models`` count the living rows: by width, and by the code of the model.
    """

    columns: Columns
    matrix: np.ndarray
    sketches: np.ndarray
    codes: Codes
    width: int
    count: int
    change: np.uint32
    late: np.ndarray
    max_norm: float
    widths: dict[int, int]
    models: dict[int, int]


def row_sums(rows: np.ndarray) -> np.ndarray:
    """Return the checksum of each matrix row: its 64-bit words times odd weights, modulo 2**64. Shape (n,) uint64."""
    words = rows.view("<u8")
    return np.einsum("ij,j->i", words, _weights(words.shape[1]))


def row_sum(row: np.ndarray) -> int:
    """Return what ``row_sums`` returns of one row of shape (stride,)."""
    words = row.view("<u8")
    return int(words.dot(_weights(len(words))))


def _weights(count: int) -> np.ndarray:
    return _WEIGHTS[:count] if count <= len(_WEIGHTS) else np.resize(_WEIGHTS, count)


def is_usable(vector: np.ndarray) -> bool:
    """Say whether a stored vector counts: finite and not zero."""
    return bool(np.isfinite(vector).all() and vector.any())
