"""Which vectors count, and the exact cosine of those that do: what every engine's answer is held to.

A score is the float64 sum of the exact products of two float32 vectors, added in an order that depends on
the width alone. It is therefore the same whatever the slot, the chunk, the threads or the BLAS.

Contract: vectors.exact.
"""

from __future__ import annotations

import numpy as np

EXACT_CHUNK = 64  # rows whose float64 forms stay in the processor's cache


def is_usable(vector: np.ndarray) -> bool:
    """Say whether a vector counts: finite and not zero."""
    return bool(np.isfinite(vector).all() and vector.any())


def exact(rows: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the exact scores of rows of shape (n, len(query)), float64, shape (n,)."""
    wide = query.astype(np.float64)
    scores = np.empty(len(rows), np.float64)
    for at in range(0, len(rows), EXACT_CHUNK):
        part = rows[at : at + EXACT_CHUNK].astype(np.float64, order="C")
        part *= wide
        scores[at : at + EXACT_CHUNK] = part.sum(axis=1)
    return scores


def spaced(count: int, size: int) -> np.ndarray:
    """Return at most ``size`` of ``count`` places, evenly spaced from the first to the last."""
    return np.linspace(0, count - 1, size).astype(np.int64) if count > size else np.arange(count)
