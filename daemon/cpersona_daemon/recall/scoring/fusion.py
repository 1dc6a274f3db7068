"""Votes for rows become their scores. What one list votes for its rows, ``rrf`` and ``rsf`` say.

Pure functions: ranked lists in, candidates out, best first.

Contract: fusion.rrf, scores.rsf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...model.kinds import Rid
from ...model.signals import Signal
from ..types import FAR, NEAR, Candidate, Ranked


@dataclass(frozen=True, slots=True)
class Votes:
    """Each row's votes, (channel, worth) list by list, and what their sum is divided by."""

    of: Mapping[Rid, list[tuple[str, float]]] = field(default_factory=dict)
    divisor: int = 1


def weight(channel: str, far_weight: float) -> float:
    """Return what the votes of a list are multiplied by."""
    return far_weight if channel == FAR else 1.0


def cosines_of(lists: Sequence[Ranked]) -> dict[Rid, float]:
    """Return the cosine of every row that a vector list holds."""
    out: dict[Rid, float] = {}
    for ranked in lists:
        if ranked.channel in (NEAR, FAR) and ranked.scores is not None:
            for rid, score in zip(ranked.rids, ranked.scores, strict=True):
                out.setdefault(rid, score)
    return out


def fused(lists: Sequence[Ranked], votes: Votes, signal: Signal) -> list[Candidate]:
    """Return every row that has a vote with its fused score, best first; equal scores keep first-seen order."""
    cosines = cosines_of(lists)
    scored = [(sum(worth for _, worth in parts) / votes.divisor, rid, parts) for rid, parts in votes.of.items()]
    scored.sort(key=lambda entry: -entry[0])
    return [
        Candidate(
            rid,
            cosine=cosines.get(rid),
            rrf=score if signal is Signal.RRF else None,
            rsf=score if signal is Signal.RSF else None,
            lexical=any(channel not in (NEAR, FAR) for channel, _ in parts),
        )
        for score, rid, parts in scored
    ]
