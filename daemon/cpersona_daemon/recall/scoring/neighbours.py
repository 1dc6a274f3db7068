"""Which memories were stored beside each other, of places that were read already.

Pure functions.

Contract: blend.score, time.asof.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """Where a memory stands: its ``axes`` are agent, project, channel and source, the last None where it names none;
    ``instant`` is in epoch seconds, None where it names none.
    """

    id: int
    axes: tuple[str, str, str, str | None]
    instant: float | None


def beside(leaders: Sequence[int], places: Sequence[Place], seconds: float, near_ids: int) -> list[tuple[int, int]]:
    """Return pairs of ids: each of ``leaders`` with the place just before it and the one just after.

    Neighbours share all axes, their instants lie within ``seconds`` and their ids at most ``near_ids`` apart.
    """
    by_id = {place.id: place for place in places}
    pairs = []
    for leader in leaders:
        one = by_id.get(leader)
        if one is None or one.instant is None or one.axes[-1] is None:
            continue
        for step in (-1, 1):
            for at in range(1, near_ids + 1):
                other = by_id.get(leader + step * at)
                if other is not None and _neighbours(one, other, seconds):
                    pairs.append((leader, other.id))
                    break
    return pairs


def _neighbours(one: Place, other: Place, seconds: float) -> bool:
    if one.axes != other.axes or one.instant is None or other.instant is None:
        return False
    return abs(one.instant - other.instant) <= seconds
