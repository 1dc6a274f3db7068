"""Relative score fusion: a list votes for a row by where its score lies between the list's worst and best. Pure
functions.

Contract: scores.rsf.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model.kinds import Rid
from ..types import FAR, NEAR, Ranked
from .fusion import Votes, weight


def votes(lists: Sequence[Ranked], far_weight: float) -> Votes:
    """Return each row's votes, its min-max normalised score times the weight, over how many lists hold anything.

    Excluded rows are dropped before normalising. Equal scores, or a single row, give 1.0 to each.
    """
    kept = [(ranked, rows) for ranked in lists if (rows := _without_excluded(ranked))]
    out: dict[Rid, list[tuple[str, float]]] = {}
    for ranked, rows in kept:
        worth = weight(ranked.channel, far_weight)
        for (rid, _), value in zip(rows, _normalised([s for _, s in rows], ranked.channel), strict=True):
            out.setdefault(rid, []).append((ranked.channel, value * worth))
    return Votes(out, len(kept))


def _without_excluded(ranked: Ranked) -> list[tuple[Rid, float | None]]:
    scores = ranked.scores if ranked.scores is not None else (None,) * len(ranked.rids)
    return [(rid, s) for rid, s in zip(ranked.rids, scores, strict=True) if rid not in ranked.excluded]


def _normalised(scores: list[float | None], channel: str) -> list[float]:
    # bm25 is better when lower; turned around, every channel reads "more is better".
    sign = 1.0 if channel in (NEAR, FAR) else -1.0
    known = [sign * s for s in scores if s is not None]
    if not known:
        return [1.0] * len(scores)
    low, high = min(known), max(known)
    if high == low:
        return [0.0 if s is None else 1.0 for s in scores]
    return [0.0 if s is None else (sign * s - low) / (high - low) for s in scores]
