"""p(row): every weight that makes a row rank higher for where it sits in time. It orders; it never admits.

Pure functions.

Contract: prior.age, prior.order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...model.instants import HOUR
from ...model.kinds import Rid
from ...model.signals import Signal
from ...storage.candidates import Facts
from ..types import Candidate


def age_weight(age_hours: float, rate: float, floor: float) -> float:
    """Return max(floor, 1 / (1 + age * rate))."""
    return max(floor, 1 / (1 + age_hours * rate))


def age_hours(instant: float | None, anchor: float, span: tuple[float, float]) -> float:
    """Return a row's age from the anchor in hours; an undated row stands at the middle of the scope's range, a newer
    one at 0.
    """
    if instant is None:
        oldest, newest = span
        return (max(0.0, anchor - newest) + (newest - oldest) / 2) / HOUR
    return max(0.0, anchor - instant) / HOUR


def apply(
    candidates: Sequence[Candidate],
    facts: Mapping[Rid, Facts],
    span: tuple[float, float] | None,
    *,
    signal: Signal,
    rate: float,
    floor: float,
    anchor: str,
    now: float,
) -> list[Candidate]:
    """Return the same rows ordered by fused score times p(row), each carrying its weight; profile rows keep the end.

    Nothing changes where the rate is 0, the scope has no dated memory, or some row lacks the fused score.
    """
    rows = [(score, c) for c in candidates if not c.is_profile and (score := c.value(signal)) is not None]
    profiles = [c for c in candidates if c.is_profile]
    if rate <= 0 or span is None or len(rows) + len(profiles) < len(candidates):
        return list(candidates)
    start = now if anchor == "now" else span[1]
    weighed = [
        (score, p := age_weight(age_hours(_instant(facts, c.rid), start, span), rate, floor), c.with_(prior=p))
        for score, c in rows
    ]
    weighed.sort(key=lambda entry: -(entry[0] * entry[1]))
    return [c for _, _, c in weighed] + profiles


def _instant(facts: Mapping[Rid, Facts], rid: Rid) -> float | None:
    found = facts.get(rid)
    return None if found is None else found.instant
