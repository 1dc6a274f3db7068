"""Reciprocal rank fusion: a list votes for a row by the place it gives it. Pure functions.

Contract: fusion.rrf, prior.far.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model.kinds import Rid
from ..types import Ranked
from .fusion import Votes, weight


def votes(lists: Sequence[Ranked], k: int, far_weight: float) -> Votes:
    """Return each row's votes, weight / (k + rank + 1). Excluded rows keep their rank and do not vote."""
    out: dict[Rid, list[tuple[str, float]]] = {}
    for ranked in lists:
        worth = weight(ranked.channel, far_weight)
        for rank, rid in enumerate(ranked.rids):
            if rid not in ranked.excluded:
                out.setdefault(rid, []).append((ranked.channel, worth / (k + rank + 1)))
    return Votes(out)
