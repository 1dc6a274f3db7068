"""Several ranked lists become one: reciprocal rank fusion, relative score fusion, cascade.

Pure functions: ranked lists in, candidates out, best first.

Contract: contracts.md §4; seeds/one-prior-function §2 (far weight); seeds/behavior-contracts §12 (rsf values).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model.kinds import Rid
from ..types import EPISODE_FTS, FAR, NEAR, Candidate, Ranked


def _weight(channel: str, far_weight: float) -> float:
    return far_weight if channel == FAR else 1.0


def cosines_of(lists: Sequence[Ranked]) -> dict[Rid, float]:
    """Return the cosine of every row that a vector list holds."""
    out: dict[Rid, float] = {}
    for ranked in lists:
        if ranked.channel in (NEAR, FAR) and ranked.scores is not None:
            for rid, score in zip(ranked.rids, ranked.scores, strict=True):
                out.setdefault(rid, score)
    return out


def rrf_votes(lists: Sequence[Ranked], k: int, far_weight: float) -> dict[Rid, list[tuple[str, float]]]:
    """Return each row's votes, list by list: weight / (k + rank + 1). Excluded rows keep their rank and do not vote."""
    votes: dict[Rid, list[tuple[str, float]]] = {}
    for ranked in lists:
        weight = _weight(ranked.channel, far_weight)
        for rank, rid in enumerate(ranked.rids):
            if rid not in ranked.excluded:
                votes.setdefault(rid, []).append((ranked.channel, weight / (k + rank + 1)))
    return votes


def rsf_votes(lists: Sequence[Ranked], far_weight: float) -> tuple[dict[Rid, list[tuple[str, float]]], int]:
    """Return each row's votes, its min-max normalised score times the weight, and the divisor: how many lists hold anything.

    Excluded rows are dropped before normalising. Equal scores, or a single row, give 1.0 to each.
    """
    kept = [(r, rows) for r in lists if (rows := _without_excluded(r))]
    votes: dict[Rid, list[tuple[str, float]]] = {}
    for ranked, rows in kept:
        weight = _weight(ranked.channel, far_weight)
        for (rid, _), value in zip(rows, _normalised([s for _, s in rows], ranked.channel), strict=True):
            votes.setdefault(rid, []).append((ranked.channel, value * weight))
    return votes, len(kept)


def _without_excluded(ranked: Ranked) -> list[tuple[Rid, float | None]]:
    scores = ranked.scores if ranked.scores is not None else (None,) * len(ranked.rids)
    return [(rid, s) for rid, s in zip(ranked.rids, scores, strict=True) if rid not in ranked.excluded]


def _normalised(scores: list[float | None], channel: str) -> list[float]:
    known = [s for s in scores if s is not None]
    if not known:
        return [1.0] * len(scores)
    # bm25 is better when lower; turned around, every channel reads "more is better".
    sign = 1.0 if channel in (NEAR, FAR) else -1.0
    low, high = min(sign * s for s in known), max(sign * s for s in known)
    if high == low:
        return [0.0 if s is None else 1.0 for s in scores]
    return [0.0 if s is None else (sign * s - low) / (high - low) for s in scores]


def fuse(lists: Sequence[Ranked], mode: str, k: int, far_weight: float) -> list[Candidate]:
    """Return every row of the lists with its fused score, best first; equal scores keep first-seen order."""
    votes, divisor = (rrf_votes(lists, k, far_weight), 1) if mode == "rrf" else rsf_votes(lists, far_weight)
    cosines = cosines_of(lists)
    fused = [
        Candidate(
            rid,
            cosine=cosines.get(rid),
            lexical=any(c not in (NEAR, FAR) for c, _ in parts),
            **{mode: sum(v for _, v in parts) / divisor},
        )
        for rid, parts in votes.items()
    ]
    fused.sort(key=lambda c: -getattr(c, mode))
    return fused


def cascade(lists: Sequence[Ranked], limit: int) -> list[Candidate]:
    """Return near rows in cosine order, then new episode rows, then the head of the memory list that fits. No fused score."""
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
                out[rid] = Candidate(
                    rid, cosine=ranked.scores[rank] if is_near and ranked.scores else None, lexical=not is_near
                )
    return list(out.values())
