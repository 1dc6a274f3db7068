"""p(row): every weight that makes a row rank higher for where it sits in time. It orders; it never admits.

Pure functions.

Contract: seeds/one-prior-function §2 to §4; contracts.md §6 "Prior".
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model.kinds import Rid
from ...storage.candidates import Facts
from ..types import Candidate

HOUR = 3600.0


def age_weight(age_hours: float, rate: float, floor: float) -> float:
    """Return max(floor, 1 / (1 + age * rate))."""
    return max(floor, 1 / (1 + age_hours * rate))


def age_hours(instant: float | None, anchor: float, span: tuple[float, float]) -> float:
    """Return a row's age from the anchor in hours; an undated row stands at the middle of the scope's range, a newer one at 0."""
    if instant is None:
        oldest, newest = span
        return (max(0.0, anchor - newest) + (newest - oldest) / 2) / HOUR
    return max(0.0, anchor - instant) / HOUR


def apply(
    candidates: Sequence[Candidate],
    facts: dict[Rid, Facts],
    span: tuple[float, float] | None,
    *,
    mode: str,
    rate: float,
    floor: float,
    anchor: str,
    now: float,
) -> list[Candidate]:
    """Return the same rows ordered by fused score times p(row), each carrying its weight; profile rows keep the end.

    Nothing changes where the rate is 0, the scope has no dated memory, or some row lacks the mode's fused score.
    """
    rows = [c for c in candidates if not c.is_profile]
    if rate <= 0 or span is None or mode not in ("blend", "rrf", "rsf") or any(getattr(c, mode) is None for c in rows):
        return list(candidates)
    start = now if anchor == "now" else span[1]
    weighed = [c.with_(prior=age_weight(age_hours(_instant(facts, c.rid), start, span), rate, floor)) for c in rows]
    weighed.sort(key=lambda c: -(getattr(c, mode) * c.prior))
    return weighed + [c for c in candidates if c.is_profile]


def _instant(facts: dict[Rid, Facts], rid: Rid) -> float | None:
    found = facts.get(rid)
    return None if found is None else found.instant
