"""Exact top-k: a quick pass with a proven bound, then float64 over what the bound cannot exclude.

Contract: window.near, vectors.exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..cosine import EXACT_CHUNK, exact
from .view import View

_READ_BYTES = 1 << 20  # rows read at a time: they stay in the processor's cache until they are multiplied
_GROUP = 64
_UNIT = 2.0**-24

# A first pass: (view, ascending slots, float32 query) -> (scores, margins), both float64, with
# |exact - score| <= margin for every slot. margins may be one number; a sum that is not a number excludes
# nothing. Raises DamagedRows.
FirstPass = Callable[[View, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray | float]]


def best(
    view: View, slots: np.ndarray, query: np.ndarray, floor: float, k: int, first_pass: FirstPass
) -> list[tuple[int, float]]:
    """Return (id, score) of the best ``k`` slots with score >= floor, ordered by score, then scan order.

    ``slots`` ascend and have the matrix's width; ``query`` is float32 of that width. Raises DamagedRows.
    """
    if not len(slots) or k <= 0:
        return []
    scores, margins = first_pass(view, slots, query)
    uppers, bar = scores + margins, floor
    if len(slots) > k:
        # The k rows that look best, scored exactly: whichever row stays below the worst of them is not among the best
        # k.
        chosen = _leading(scores, k)
        scores = scored(view, slots[chosen], query)
        bar = max(bar, float(scores.min()))
        uppers[chosen] = -np.inf
        rest = np.flatnonzero(~(uppers < bar))
        chosen, scores = np.concatenate([chosen, rest]), np.concatenate([scores, scored(view, slots[rest], query)])
    else:
        chosen = np.flatnonzero(~(uppers < bar))
        scores = scored(view, slots[chosen], query)
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
        tops = scores[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
        found = np.flatnonzero(scores >= np.partition(tops, groups - k)[groups - k])
        if len(found) >= k:
            return found[np.argpartition(scores[found], len(found) - k)[len(found) - k :]]
    return np.argpartition(scores, len(scores) - k)[len(scores) - k :]


def scored(view: View, slots: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the exact scores of the rows at ``slots``, float64, shape (len(slots),). Raises DamagedRows."""
    scores = np.empty(len(slots), np.float64)
    for at in range(0, len(slots), EXACT_CHUNK):
        scores[at : at + EXACT_CHUNK] = exact(view.rows(slots[at : at + EXACT_CHUNK]), query)
    return scores


def float32_scan(view: View, slots: np.ndarray, query: np.ndarray) -> tuple[np.ndarray, float]:
    """First pass by float32 dot products, for where there is no quicker one: every row is read from the file."""
    width = view.width
    scores = np.empty(len(slots), np.float64)
    step = max(1, _READ_BYTES // (4 * width))
    with np.errstate(all="ignore"):
        for at in range(0, len(slots), step):
            scores[at : at + step] = view.rows(slots[at : at + step]) @ query
        scores[np.isinf(scores)] = np.nan  # beyond float32, and so unknown
    # Any order of summation: |computed - exact| <= n u / (1 - n u) * |x| |y|; the additions cover underflow and
    # float64.
    reach = (width + 2) * _UNIT
    norm = float(np.sqrt(np.dot(query.astype(np.float64), query.astype(np.float64)))) * view.max_norm
    return scores, reach / (1 - reach) * norm * 1.001 + 1e-30
