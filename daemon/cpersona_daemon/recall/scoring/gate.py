"""Which rows are good enough to return.

Pure functions. A row passes when the value of its signal reaches the threshold of that signal.

Contract: contracts.md §5, §8 "What gates what"; seeds/behavior-contracts §2 (signal chain), §8, §12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..types import Candidate
from . import blend

SATURATION = 500
PROFILE_POOL = 50
UNSCORED_POOL = 100


def heuristic_minimum(pool: int) -> float:
    """Return h(n): 0.5 for an empty pool, falling to 0.2 from 499 rows on."""
    if pool <= 0:
        return 0.5
    return round(0.5 - 0.3 * min(1.0, math.log(pool + 1) / math.log(SATURATION)), 4)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What each signal is compared with in one recall. ``word_rrf`` is for rows that only words could have found."""

    confidence: float
    rsf: float
    cosine: float
    rrf: float
    word_rrf: float
    pool: int
    blank: bool
    origins: dict
    blend: float = 0.0

    def opened(self, candidates: Sequence[Candidate]) -> Thresholds:
        """Return these for a recall whose rows are known: once one has reached the gate of the blend, others need a share of it."""
        if any(c.blend is not None and c.blend >= self.blend for c in candidates):
            return replace(self, blend=self.blend * blend.FOLLOWING)
        return self

    def of(self, candidate: Candidate, signal: str) -> float:
        if signal == "rrf" and not candidate.has_vector:
            return self.word_rrf
        return getattr(self, signal)


def thresholds(
    pool: int,
    *,
    k: int,
    deep: bool,
    blank: bool,
    admission: float | None,
    measured: dict[str, float],
    blend_gate: float = blend.GATE,
) -> Thresholds:
    """Return the thresholds of a recall.

    ``admission`` is the embedder's declared minimum for cosine (None: h(n)), ``measured`` the calibrated gate of
    each signal that has one, on that signal's own scale, ``blend_gate`` what ``blend.gate_of`` says. ``deep`` halves every number.
    """
    h = heuristic_minimum(pool)
    declared = h if admission is None else admission
    plain = {"confidence": h, "rsf": h, "cosine": declared, "rrf": declared * 3 / (k + 1)}
    origins = {
        s: "measured"
        if s in measured
        else "declared"
        if admission is not None and s in ("cosine", "rrf")
        else "pool size"
        for s in plain
    }
    values = {s: measured.get(s, v) * (0.5 if deep else 1.0) for s, v in plain.items()}
    origins["blend"] = "measured" if "blend" in measured else "shipped"
    return Thresholds(
        **values,
        blend=blend_gate * (0.5 if deep else 1.0),
        word_rrf=min(values["rrf"], 1 / (k + 1)),
        pool=pool,
        blank=blank,
        origins=origins,
    )


def passes(candidate: Candidate, limits: Thresholds, legacy: bool) -> bool:
    """Tell whether a row is returned. Unscored rows need a pool of 100 or a blank query, the profile row a pool of 50.

    A row that was noted to hold an identifier of the question passes by that.
    """
    if candidate.is_profile:
        return limits.pool >= PROFILE_POOL
    signal = candidate.signal(legacy)
    if signal is None:
        return limits.pool >= UNSCORED_POOL or limits.blank
    name, value = signal
    if candidate.identified:
        return True
    return value >= limits.of(candidate, name)


def split(candidates: Sequence[Candidate], limits: Thresholds, legacy: bool) -> tuple[list[Candidate], list[Candidate]]:
    """Return the rows that pass and the rows that do not, each in the given order."""
    kept, dropped = [], []
    for candidate in candidates:
        (kept if passes(candidate, limits, legacy) else dropped).append(candidate)
    return kept, dropped
