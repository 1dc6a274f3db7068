"""Which rows are good enough to return: what each signal is compared with, and who passes. Pure functions.

A row passes when the value of its signal reaches the threshold of that signal.

Contract: gate.signal, gate.minimum, gate.measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...model.signals import Signal
from ..types import Candidate
from . import blend

SATURATION = 500
PROFILE_POOL = 50
UNSCORED_POOL = 100
MEASURED, DECLARED, BY_SIZE, BY_POOL = "measured", "declared", "store size", "pool size"


def heuristic_minimum(pool: int) -> float:
    """Return h(n): 0.5 for an empty pool, falling to 0.2 from 499 rows on."""
    if pool <= 0:
        return 0.5
    return round(0.5 - 0.3 * min(1.0, math.log(pool + 1) / math.log(SATURATION)), 4)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What each signal is compared with in one recall, and where that comes from.

    ``word_rrf`` is for rows that only words could have found. ``pool`` is how many rows are in scope.
    """

    values: Mapping[Signal, float] = field(default_factory=dict)
    origins: Mapping[Signal, str] = field(default_factory=dict)
    word_rrf: float = 0.0
    pool: int = 0
    blank: bool = False

    def opened(self, candidates: Sequence[Candidate]) -> Thresholds:
        """Return these for a recall whose rows are known: once one has reached the gate of the blend, others need a
        share of it.
        """
        least = self.values[Signal.BLEND]
        if any(c.blend is not None and c.blend >= least for c in candidates):
            return replace(self, values={**self.values, Signal.BLEND: least * blend.FOLLOWING})
        return self

    def of(self, candidate: Candidate, signal: Signal) -> float:
        """Return what a row's value of a signal is compared with."""
        if signal is Signal.RRF and not candidate.has_vector:
            return self.word_rrf
        return self.values[signal]


UNGATED = Thresholds()


def thresholds(
    pool: int,
    *,
    k: int,
    deep: bool,
    blank: bool,
    admission: float | None,
    measured: Mapping[Signal, float],
    blend_gate: float = blend.GATE,
) -> Thresholds:
    """Return the thresholds of a recall over ``pool`` rows; ``k`` is the constant of rank fusion, ``deep`` halves every
    number.

    ``admission`` is the embedder's declared minimum (None: h(n)), ``measured`` the calibrated gate of each signal that
    has one, on that signal's own scale, ``blend_gate`` what ``blend.gate_of`` says.
    """
    h = heuristic_minimum(pool)
    values: dict[Signal, float] = {}
    origins: dict[Signal, str] = {}
    for signal in Signal:
        minimum, origin = h, BY_POOL
        if signal.declared and admission is not None:
            minimum, origin = admission, DECLARED
        value = signal.scaled(minimum, k)
        if signal is Signal.BLEND:
            value, origin = blend_gate, BY_SIZE
        elif signal in measured:
            value = measured[signal]
        values[signal] = value * (0.5 if deep else 1.0)
        origins[signal] = MEASURED if signal in measured else origin
    return Thresholds(values, origins, min(values[Signal.RRF], 1 / (k + 1)), pool, blank)


def passes(candidate: Candidate, limits: Thresholds) -> bool:
    """Tell whether a row is returned. Unscored rows need a pool of 100 or a blank query, the profile row a pool of 50.

    A row that was noted to hold an identifier of the question passes by that.
    """
    if candidate.is_profile:
        return limits.pool >= PROFILE_POOL
    signal = candidate.signal()
    if signal is None:
        return limits.pool >= UNSCORED_POOL or limits.blank
    return candidate.identified or signal[1] >= limits.of(candidate, signal[0])


def split(candidates: Sequence[Candidate], limits: Thresholds) -> tuple[list[Candidate], list[Candidate]]:
    """Return the rows that pass and the rows that do not, each in the given order."""
    kept: list[Candidate] = []
    below: list[Candidate] = []
    for candidate in candidates:
        (kept if passes(candidate, limits) else below).append(candidate)
    return kept, below
