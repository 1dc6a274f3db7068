"""From similarities and scores to a threshold. Pure functions of numbers.

Contract: calibration.sample, calibration.gates.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from ..model.signals import Signal

CANDIDATES = 256
LEAST_POSITIVE_PAIRS = 10
LEAST_NULL_SCORES, LEAST_POSITIVE_SCORES = 10, 5
TEMPORAL, NEAREST = "temporal", "nn_fallback"
_BLOCK = 512


def pair_similarities(vectors: np.ndarray) -> np.ndarray:
    """Return the similarity of every pair of rows, each once: float64, n (n - 1) / 2 values. ``vectors`` is (n, d) of
    unit rows.
    """
    n = len(vectors)
    rows = vectors.astype(np.float64)
    out = np.empty(n * (n - 1) // 2)
    filled = 0
    for start in range(0, n, _BLOCK):
        block = rows[start : start + _BLOCK] @ rows[start:].T
        for i, similarities in enumerate(block):
            tail = similarities[i + 1 :]
            out[filled : filled + len(tail)] = tail
            filled += len(tail)
    return out


def nearest_similarities(vectors: np.ndarray) -> np.ndarray:
    """Return each row's similarity to its nearest other row: float64, n values."""
    rows = vectors.astype(np.float64)
    out = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK] @ rows.T
        index = np.arange(len(block))
        block[index, start + index] = -np.inf
        out[start : start + len(block)] = block.max(axis=1)
    return out


def separation(null: np.ndarray, positive: np.ndarray, beta: float) -> float:
    """Return the score that best keeps ``positive`` and leaves ``null`` out.

    Of 256 evenly spaced candidates over both it is the first that maximises TPR + beta x (1 - FPR), a score
    counting as kept from the candidate upwards. The shares are compared as whole numbers: a larger beta then
    never gives a lower result, which rounding errors of equal sums could.
    """
    low = min(null.min(), positive.min())
    high = max(null.max(), positive.max())
    candidates = np.linspace(low, high, CANDIDATES)
    kept_null, kept_positive = _kept(null, candidates), _kept(positive, candidates)
    objective = kept_positive * len(null) + beta * ((len(null) - kept_null) * len(positive))
    return float(candidates[int(np.argmax(objective))])


def _kept(scores: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return how many scores reach each candidate. ``candidates`` ascend."""
    reached = np.zeros(len(candidates) + 1, np.int64)
    for start in range(0, len(scores), 1 << 20):
        places = np.searchsorted(candidates, scores[start : start + (1 << 20)], side="right")
        reached += np.bincount(places, minlength=len(candidates) + 1)
    # A score at place p reaches the candidates 0 to p - 1.
    return len(scores) - np.cumsum(reached)[:-1]


def quantile(null: np.ndarray, share: float) -> float:
    """Return the quantile of the null similarities, linear between neighbours."""
    return float(np.quantile(null, share))


def zscore(null: np.ndarray, factor: float) -> float:
    """Return the mean of the null similarities plus ``factor`` population standard deviations."""
    return float(null.mean() + factor * null.std())


def least_gate(signal: str, floor: float, k: int) -> float:
    """Return the floor of a gate on the signal's own scale: a rank-fusion score can never exceed 3 / (k + 1)."""
    return Signal(signal).scaled(floor, k)


def draw_gate(scores: Sequence[float], related: Sequence[bool], beta: float) -> float | None:
    """Return the gate that one draw of queries suggests, None with fewer than 10 null or 5 positive scores."""
    values, flags = np.asarray(scores, np.float64), np.asarray(related, bool)
    null, positive = values[~flags], values[flags]
    if len(null) < LEAST_NULL_SCORES or len(positive) < LEAST_POSITIVE_SCORES:
        return None
    return separation(null, positive, beta)


def gate(
    draws: Sequence[tuple[Sequence[float], Sequence[bool]]], beta: float, least: float, digits: int
) -> float | None:
    """Return the median of the draws' gates, at least ``least``, rounded; None when no draw has scores enough."""
    found = [g for scores, related in draws if (g := draw_gate(scores, related, beta)) is not None]
    return round(max(statistics.median(found), least), digits) if found else None
