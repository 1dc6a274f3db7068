"""The cascade: meaning first, then words fill up. It orders and scores nothing. Pure functions.

Contract: fusion.cascade.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model.kinds import Rid
from ..types import EPISODE_FTS, FAR, NEAR, Candidate, Ranked


def cascade(lists: Sequence[Ranked], limit: int) -> list[Candidate]:
    """Return near rows in cosine order, then new episode rows, then the head of the memory list that fits."""
    out: dict[Rid, Candidate] = {}
    for ranked in lists:
        if ranked.channel == FAR:
            continue
        is_near = ranked.channel == NEAR
        rids = ranked.rids
        if not is_near and ranked.channel != EPISODE_FTS:
            rids = rids[: max(0, limit - len(out))]
        for rank, rid in enumerate(rids):
            if rid not in out and rid not in ranked.excluded:
                cosine = ranked.scores[rank] if is_near and ranked.scores else None
                out[rid] = Candidate(rid, cosine=cosine, lexical=not is_near)
    return list(out.values())
