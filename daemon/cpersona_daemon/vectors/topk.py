"""Exact top-k: a quick pass with a proven bound, then float64 over what the bound cannot exclude.

A score is the float64 sum of the exact products of two float32 vectors, added in an order that depends on
the width alone. It is therefore the same whatever the slot, the chunk, the threads or the BLAS.

Contract: contracts.md §3 (floor, order, ties by scan position); quality.md (results equal to the plain exact scan).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .index import View, row_sums

_VERIFY_CHUNK = 4096
_GATHER_CHUNK = 256  # rows copied at a time: they stay in the processor's cache until they are multiplied
_EXACT_CHUNK = 512
_UNIT = 2.0**-24

# A first pass: (view, ascending slots, float32 query) -> (scores, margins), both float64, with
# |exact - score| <= margin for every slot. margins may be one number. Raises DamagedRows.
FirstPass = Callable[[View, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray | float]]


class DamagedRows(Exception):
    """The matrix file holds other bytes than were written."""


def best(view: View, slots: np.ndarray, query: np.ndarray, floor: float, k: int, first_pass: FirstPass) -> list[tuple[int, float]]:
    """Return (id, score) of the best ``k`` slots with score >= floor, ordered by score, then scan order.

    ``slots`` ascend and have the matrix's width; ``query`` is float32 of that width. Raises DamagedRows.
    """
    if not len(slots) or k <= 0:
        return []
    scores, margins = first_pass(view, slots, query)
    bar = floor
    if len(slots) > k:
        # At least k rows reach the k-th best lower bound, so no row whose upper bound stays below it is among the best k.
        bar = max(bar, np.partition(scores - margins, len(slots) - k)[len(slots) - k])
    slots = slots[scores + margins >= bar]
    scores = exact(view.matrix, slots, query)
    passed = scores >= floor
    slots, scores = slots[passed], scores[passed]
    ids = view.columns.id[slots]
    order = np.lexsort((ids, -view.columns.created[slots], -scores))[:k]
    return list(zip(ids[order].tolist(), scores[order].tolist(), strict=True))


def float32_scan(view: View, slots: np.ndarray, query: np.ndarray) -> tuple[np.ndarray, float]:
    """First pass by float32 dot products, straight on the mapped rows wherever the slots lie close together."""
    width, matrix = view.width, view.matrix
    scores = np.empty(len(slots), np.float64)
    gathered = np.empty((min(_GATHER_CHUNK, len(slots)), matrix.shape[1]), np.float32)
    with np.errstate(all="ignore"):  # rows between the wanted ones may hold anything
        verify(view, slots)
        at = 0
        while at < len(slots):
            end = _dense_run(slots, at)
            if end > at:
                low = slots[at]
                scores[at:end] = (matrix[low:slots[end - 1] + 1, :width] @ query)[slots[at:end] - low]
            else:
                end = min(at + _GATHER_CHUNK, len(slots))
                part = np.take(matrix, slots[at:end], axis=0, out=gathered[:end - at], mode="clip")
                scores[at:end] = part[:, :width] @ query
            at = end
    # Any order of summation: |computed - exact| <= n u / (1 - n u) * |x| |y|; the additions cover underflow and float64.
    reach = (width + 2) * _UNIT
    norm = float(np.sqrt(np.dot(query.astype(np.float64), query.astype(np.float64)))) * view.max_norm
    return scores, reach / (1 - reach) * norm * 1.001 + 1e-30


def _dense_run(slots: np.ndarray, at: int) -> int:
    """Return the end of a stretch from ``at`` on in which at least every other slot is wanted, ``at`` when there is none."""
    size = len(slots) - at
    while size >= 16 or size == len(slots) - at > 0:
        if slots[at + size - 1] - slots[at] < 2 * size:
            return at + size
        size //= 2
    return at


def exact(matrix: np.ndarray, slots: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the exact scores of rows of ``matrix``, float64, shape (len(slots),)."""
    wide = query.astype(np.float64)
    scores = np.empty(len(slots), np.float64)
    for at in range(0, len(slots), _EXACT_CHUNK):
        rows = matrix[slots[at:at + _EXACT_CHUNK], :len(wide)].astype(np.float64)
        rows *= wide
        scores[at:at + _EXACT_CHUNK] = rows.sum(axis=1)
    return scores


def verify(view: View, slots: np.ndarray) -> None:
    """Check rows that this process reads for the first time against their checksums. Raises DamagedRows."""
    known = view.columns.verified[slots]
    if known.all():
        return
    fresh = slots[~known]
    for at in range(0, len(fresh), _VERIFY_CHUNK):
        part = fresh[at:at + _VERIFY_CHUNK]
        together = part[-1] - part[0] + 1 == len(part)
        rows = view.matrix[part[0]:part[-1] + 1] if together else view.matrix[part]
        if not np.array_equal(row_sums(rows), view.columns.sum[part]):
            raise DamagedRows
        view.columns.verified[part] = True
