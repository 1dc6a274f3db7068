"""Cutting a list that is ordered by an absolute score at its largest gap.

A fused score decays by construction, so its gaps mean nothing: no plan that fuses has this stage.

Contract: autocut.gap.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model.signals import Signal
from ..run import Run
from ..types import Candidate


def cut_position(scores: Sequence[float], min_results: int, min_gap_ratio: float) -> int:
    """Return how many rows stay: all, or those before the first largest gap when it is wide enough."""
    if len(scores) < max(min_results, 2):
        return len(scores)
    gaps = [a - b for a, b in zip(scores, scores[1:], strict=False)]
    largest = max(gaps)
    if largest <= 0 or largest < min_gap_ratio * scores[0]:
        return len(scores)
    return gaps.index(largest) + 1


def cut(
    candidates: Sequence[Candidate], signal: Signal, *, min_results: int, min_gap_ratio: float
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the rows that stay and the rows cut by their values of a signal; all stay where some row has none.

    Profile rows take no part and always stay.
    """
    rows = [c for c in candidates if not c.is_profile]
    scores = [value for c in rows if (value := c.value(signal)) is not None]
    if len(scores) < len(rows):
        return list(candidates), []
    dropped = {c.rid for c in rows[cut_position(scores, min_results, min_gap_ratio) :]}
    return [c for c in candidates if c.rid not in dropped], [c for c in candidates if c.rid in dropped]


def cut_cosines(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Cut rows in cosine order."""
    return _autocut(run, rows, Signal.COSINE)


def cut_confidences(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Cut rows in the order of their confidence, unless these are the rescued ones."""
    return rows if run.rescued else _autocut(run, rows, Signal.CONFIDENCE)


def _autocut(run: Run, rows: list[Candidate], signal: Signal) -> list[Candidate]:
    s = run.settings
    if not s.autocut_enabled:
        return rows
    kept, run.account.cut = cut(rows, signal, min_results=s.autocut_min_results, min_gap_ratio=s.autocut_min_gap_ratio)
    return kept
