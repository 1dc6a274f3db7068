"""Rows of an index by their slots, and the sums that tell whether their bytes are those that were written."""

from __future__ import annotations

import numpy as np

# Any odd numbers do, as long as they never change: they make the sum depend on where a word stands.
_WEIGHTS = np.random.Generator(np.random.PCG64(20240501)).integers(0, 2**62, 1 << 13, np.uint64)
_WEIGHTS = _WEIGHTS * np.uint64(2) + np.uint64(1)


class DamagedRows(Exception):
    """An index file cannot be read, or holds other bytes than were written."""


def row_sums(rows: np.ndarray) -> np.ndarray:
    """Return the checksum of each row: its 64-bit words times odd weights, modulo 2**64. Shape (n,) uint64."""
    words = rows.view("<u8")
    return np.einsum("ij,j->i", words, _weights(words.shape[1]))


def row_sum(row: np.ndarray) -> int:
    """Return what ``row_sums`` returns of one row of shape (stride,)."""
    words = row.view("<u8")
    return int(words.dot(_weights(len(words))))


def as_slice(slots: np.ndarray) -> slice | np.ndarray:
    """Return ascending slots as a slice where no slot between them is left out: arrays are then read without a copy."""
    if len(slots) and slots[-1] - slots[0] + 1 == len(slots):
        return slice(int(slots[0]), int(slots[-1]) + 1)
    return slots


def stretches(slots: np.ndarray) -> list[tuple[int, int]]:
    """Return the places [first, end) of slots that follow one another without a gap."""
    edges = [0, *(np.flatnonzero(slots[1:] - slots[:-1] != 1) + 1).tolist(), len(slots)]
    return [(first, end) for first, end in zip(edges, edges[1:], strict=False) if first < end]


def _weights(count: int) -> np.ndarray:
    return _WEIGHTS[:count] if count <= len(_WEIGHTS) else np.resize(_WEIGHTS, count)
