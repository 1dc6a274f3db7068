"""Cutting a similarity-ordered list at its largest gap.

Pure functions. Rank-fusion scores decay by construction, so their gaps mean nothing and are left alone.

Contract: contracts.md §5 "autocut"; seeds/behavior-contracts §6.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..types import Candidate


def cut_position(scores: Sequence[float], min_results: int, min_gap_ratio: float) -> int:
    """Return how many rows stay: all, or those before the first largest gap when it is wide enough."""
    if len(scores) < max(min_results, 2):
        return len(scores)
    gaps = [a - b for a, b in zip(scores, scores[1:])]
    largest = max(gaps)
    if largest <= 0 or largest < min_gap_ratio * scores[0]:
        return len(scores)
    return gaps.index(largest) + 1


def autocut(
    candidates: Sequence[Candidate], *, legacy: bool, min_results: int, min_gap_ratio: float
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the rows that stay and the rows cut. Profile rows take no part and always stay."""
    rows = [c for c in candidates if not c.is_profile]
    scores = _comparable(rows, legacy)
    if scores is None:
        return list(candidates), []
    dropped = {c.rid for c in rows[cut_position(scores, min_results, min_gap_ratio) :]}
    return [c for c in candidates if c.rid not in dropped], [c for c in candidates if c.rid in dropped]


def _comparable(rows: Sequence[Candidate], legacy: bool) -> list[float] | None:
    if not rows:
        return None
    if legacy:
        scores = [c.confidence for c in rows]
        return None if None in scores else scores
    if any(getattr(rows[0], fused) is not None for fused in ("blend", "rrf", "rsf")) or any(
        c.cosine is None for c in rows
    ):
        return None
    return [c.cosine for c in rows]
