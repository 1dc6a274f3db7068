"""Weighing down memories from before the latest episode. Off by default; unlike the prior it reaches the gate.

Pure functions.

Contract: penalty.episode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...model.instants import HOUR
from ...model.kinds import Rid
from ...model.signals import ORDERING, PENALISED
from ...storage.candidates import Facts
from ..types import Candidate


def factor(hours_before: float, rate: float, floor: float) -> float:
    """Return max(exp(-rate * hours), floor)."""
    return max(math.exp(-rate * hours_before), floor)


def apply(
    candidates: Sequence[Candidate], facts: Mapping[Rid, Facts], boundary: float | None, *, rate: float, floor: float
) -> list[Candidate]:
    """Return the rows with cosine, rrf, rsf and blend of those before the boundary multiplied, sorted again by their
    ordering score.

    Episodes, undated rows and the profile row are exempt. No boundary changes nothing.
    """
    if boundary is None:
        return list(candidates)
    return sorted((_weighed(c, facts, boundary, rate, floor) for c in candidates), key=_order)


def _weighed(candidate: Candidate, facts: Mapping[Rid, Facts], boundary: float, rate: float, floor: float) -> Candidate:
    found = facts.get(candidate.rid)
    if found is None or found.is_episode or found.instant is None or found.instant >= boundary:
        return candidate
    f = factor((boundary - found.instant) / HOUR, rate, floor)
    return candidate.with_(**{s.value: value * f for s in PENALISED if (value := candidate.value(s)) is not None})


def _order(candidate: Candidate) -> tuple[bool, float]:
    """Scored rows by their ordering score, best first; unscored rows and the profile after them in the order they
    had.
    """
    value = candidate.first(ORDERING)
    return (True, 0.0) if value is None else (False, -value)
