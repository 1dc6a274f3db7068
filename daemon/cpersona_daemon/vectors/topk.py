"""Exact top-k: a quick pass with a proven bound, then float64 over what the bound cannot exclude.

A score is the float64 sum of the exact products of two float32 vectors, added in an order that depends on
the width alone. It is therefore the same whatever the slot, the chunk, the threads or the BLAS.

Contract: contracts.md §3 (floor, order, ties by scan position); quality.md (results equal to the plain exact scan).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .view import View, row_sums

_VERIFY_BYTES = 4 << 20
_GATHER_CHUNK = 256  # rows copied at a time: they stay in the processor's cache until they are multiplied
_EXACT_CHUNK = 64
_GROUP = 64
_UNIT = 2.0**-24

# A first pass: (view, ascending slots, float32 query) -> (scores, margins), both float64, with
# |exact - score| <= margin for every slot. margins may be one number; a sum that is not a number excludes
# nothing. Raises DamagedRows.
FirstPass = Callable[[View, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray | float]]


class DamagedRows(Exception):
    """An index file holds other bytes than were written."""


def best(view: View, slots: np.ndarray, query: np.ndarray, floor: float, k: int, first_pass: FirstPass) -> list[tuple[int, float]]:
    """Return (id, score) of the best ``k`` slots with score >= floor, ordered by score, then scan order.

    ``slots`` ascend and have the matrix's width; ``query`` is float32 of that width. Raises DamagedRows.
    """
    if not len(slots) or k <= 0:
        return []
    scores, margins = first_pass(view, slots, query)
    uppers, bar = scores + margins, floor
    if len(slots) > k:
        # The k rows that look best, scored exactly: whichever row stays below the worst of them is not among the best k.
        chosen = _leading(scores, k)
        scores = _scored(view, slots[chosen], query)
        bar = max(bar, float(scores.min()))
        uppers[chosen] = -np.inf
        rest = np.flatnonzero(~(uppers < bar))
        chosen, scores = np.concatenate([chosen, rest]), np.concatenate([scores, _scored(view, slots[rest], query)])
    else:
        chosen = np.flatnonzero(~(uppers < bar))
        scores = _scored(view, slots[chosen], query)
    passed = scores >= floor
    slots, scores = slots[chosen[passed]], scores[passed]
    ids = view.columns.id[slots]
    order = np.lexsort((ids, -view.columns.created[slots], -scores))[:k]
    return list(zip(ids[order].tolist(), scores[order].tolist(), strict=True))


def _leading(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the places of ``k`` scores that are about the highest; there are more than ``k``."""
    groups = len(scores) // _GROUP
    if groups > 2 * k:
        # Each of the k best groups has a score that is not below the best of the k-th: at least k scores reach it.
        tops = scores[:groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
        found = np.flatnonzero(scores >= np.partition(tops, groups - k)[groups - k])
        if len(found) >= k:
            return found[np.argpartition(scores[found], len(found) - k)[len(found) - k:]]
    return np.argpartition(scores, len(scores) - k)[len(scores) - k:]


def _scored(view: View, slots: np.ndarray, query: np.ndarray) -> np.ndarray:
    verify(view, slots)
    return exact(view.matrix, slots, query)


def float32_scan(view: View, slots: np.ndarray, query: np.ndarray) -> tuple[np.ndarray, float]:
    """First pass by float32 dot products, straight on the mapped rows wherever the slots lie close together."""
    width, matrix = view.width, view.matrix
    scores = np.empty(len(slots), np.float64)
    gathered = np.empty((min(_GATHER_CHUNK, len(slots)), matrix.shape[1]), np.float32)
    with np.errstate(all="ignore"):  # rows between the wanted ones may hold anything
        verify(view, slots)
        at = 0
        while at < len(slots):
            end = dense_run(slots, at, len(slots))
            if end > at:
                low = slots[at]
                scores[at:end] = (matrix[low:slots[end - 1] + 1, :width] @ query)[slots[at:end] - low]
            else:
                end = min(at + _GATHER_CHUNK, len(slots))
                part = np.take(matrix, slots[at:end], axis=0, out=gathered[:end - at], mode="clip")
                scores[at:end] = part[:, :width] @ query
            at = end
        scores[np.isinf(scores)] = np.nan  # beyond float32, and so unknown
    # Any order of summation: |computed - exact| <= n u / (1 - n u) * |x| |y|; the additions cover underflow and float64.
    reach = (width + 2) * _UNIT
    norm = float(np.sqrt(np.dot(query.astype(np.float64), query.astype(np.float64)))) * view.max_norm
    return scores, reach / (1 - reach) * norm * 1.001 + 1e-30


def dense_run(slots: np.ndarray, at: int, end: int) -> int:
    """Return the end of a stretch from ``at`` on in which at least every other slot is wanted, ``at`` when there is none."""
    size = end - at
    while size >= 16 or size == end - at > 0:
        if slots[at + size - 1] - slots[at] < 2 * size:
            return at + size
        size //= 2
    return at


def as_slice(slots: np.ndarray) -> slice | np.ndarray:
    """Return ascending slots as a slice where no slot between them is left out: columns are then read without a copy."""
    if len(slots) and slots[-1] - slots[0] + 1 == len(slots):
        return slice(int(slots[0]), int(slots[-1]) + 1)
    return slots


def exact(matrix: np.ndarray, slots: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the exact scores of rows of ``matrix``, float64, shape (len(slots),)."""
    wide = query.astype(np.float64)
    scores = np.empty(len(slots), np.float64)
    for at in range(0, len(slots), _EXACT_CHUNK):
        rows = matrix.take(slots[at:at + _EXACT_CHUNK], axis=0)[:, :len(wide)].astype(np.float64)
        rows *= wide
        scores[at:at + _EXACT_CHUNK] = rows.sum(axis=1)
    return scores


def verify(view: View, slots: np.ndarray) -> None:
    """Check rows that this process reads for the first time against their checksums. Raises DamagedRows."""
    _verify(view.matrix, view.columns.sum, view.columns.verified, slots)


def verify_sketches(view: View, slots: np.ndarray) -> None:
    """Check int8 rows as ``verify`` checks the others."""
    _verify(view.sketches, view.columns.sketch_sum, view.columns.sketch_verified, slots)


def _verify(rows: np.ndarray, sums: np.ndarray, verified: np.ndarray, slots: np.ndarray) -> None:
    known = verified[as_slice(slots)]
    if known.all():
        return
    fresh = slots[~known]
    chunk = max(1, _VERIFY_BYTES // (rows.shape[1] * rows.itemsize))
    for at in range(0, len(fresh), chunk):
        part = as_slice(fresh[at:at + chunk])
        if not np.array_equal(row_sums(rows[part]), sums[part]):
            raise DamagedRows
        verified[part] = True
