"""A value beside each row that blends similarity, age, resolution and recalls. It is not match strength.

Pure functions.

Contract: confidence.score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...model.instants import HOUR
from ...shared.settings import Settings
from ...storage.candidates import Facts

UNDATED_HALF_SPAN_HOURS = 12.0


@dataclass(frozen=True, slots=True)
class Frame:
    """What every row of one recall is measured against: the clock, the scope's span, the cosine scale.

    ``span`` is (oldest, newest) in epoch seconds, None without dated memories.
    """

    settings: Settings
    now: float
    span: tuple[float, float] | None
    cosine_floor: float
    cosine_ceil: float
    deep: bool

    @property
    def unknown_age_hours(self) -> float:
        if self.span is None:
            return UNDATED_HALF_SPAN_HOURS
        oldest, newest = self.span
        return max(0.0, self.now - newest) / HOUR + (newest - oldest) / 2 / HOUR

    @property
    def rate(self) -> float:
        s = self.settings
        span_hours = 0.0 if self.span is None else (self.span[1] - self.span[0]) / HOUR
        return s.decay_rate / max(1.0, max(s.min_time_range_hours, span_hours) / s.reference_hours)


def _decay(frame: Frame, age_hours: float, facts: Facts) -> float:
    if frame.deep:
        return 1.0
    s = frame.settings
    boost = math.log(1 + facts.recall_count) * s.recall_boost
    if facts.last_recalled is not None:
        boost *= 1 / (1 + max(0.0, frame.now - facts.last_recalled) / HOUR * s.boost_decay_rate)
    floor = min(s.decay_ceil, s.decay_floor + boost)
    return max(floor, 1 / (1 + age_hours * frame.rate))


def confidence(frame: Frame, facts: Facts, cosine: float | None) -> dict[str, Any]:
    """Return `{age_hours, age_unknown?, resolved?, cosine?, score}` of one row."""
    s = frame.settings
    unknown = facts.instant is None
    age = frame.unknown_age_hours if facts.instant is None else max(0.0, frame.now - facts.instant) / HOUR
    decay = _decay(frame, age, facts)
    factor = 1.0
    if not frame.deep:
        if facts.resolved:
            factor *= s.resolved_decay_factor
        if facts.last_recalled is not None and 0 <= frame.now - facts.last_recalled < s.recent_recall_window_min * 60:
            factor *= s.recent_recall_penalty
    out: dict[str, Any] = {"age_hours": round(age, 1)}
    if unknown:
        out["age_unknown"] = True
    if facts.resolved:
        out["resolved"] = True
    if cosine is None:
        out["score"] = round(math.sqrt(decay) * factor, 4)
    else:
        n = min(1.0, max(0.0, (cosine - frame.cosine_floor) / (frame.cosine_ceil - frame.cosine_floor)))
        out["cosine"] = round(cosine, 4)
        out["score"] = round(math.sqrt(n * decay) * factor, 4)
    return out
