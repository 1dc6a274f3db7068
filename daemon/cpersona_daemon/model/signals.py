"""What the score of a row may be called: one row a signal, from which every list of signals is derived. Values, and no
work.

Contract: gate.signal.
"""

from __future__ import annotations

from enum import StrEnum

BEST_RANKS = 3  # first places that a row can have under rank fusion, which is what its scale ends at


class Signal(StrEnum):
    """A score of a row. They stand in the order of precedence: the gate compares the first that a row has.

    ``modes`` are the recall modes whose gate may compare it; none for the one that the legacy ordering compares.
    ``absolute``: its values compare between questions. ``fused``: it is made of several lists, so the prior may weigh
    it and gaps in it mean nothing. ``declared``: an embedder's declared admission counts for it. ``of_ranks``: it lies
    on the scale of rank fusion, which ends at 3/(k+1), and not between 0 and 1. ``digits`` are kept of a measured gate.
    """

    modes: tuple[str, ...]
    absolute: bool
    fused: bool
    declared: bool
    of_ranks: bool
    digits: int

    # name, modes, absolute, fused, declared, of_ranks, digits
    CONFIDENCE = "confidence", (), True
    BLEND = "blend", ("blend",), True, True
    RSF = "rsf", ("rsf",), False, True
    COSINE = "cosine", ("rrf", "rsf", "cascade"), True, False, True
    RRF = "rrf", ("rrf",), False, True, True, True, 6

    def __new__(
        cls,
        name: str,
        modes: tuple[str, ...] = (),
        absolute: bool = False,
        fused: bool = False,
        declared: bool = False,
        of_ranks: bool = False,
        digits: int = 4,
    ) -> Signal:
        signal = str.__new__(cls, name)
        signal._value_ = name
        signal.modes, signal.absolute, signal.fused = modes, absolute, fused
        signal.declared, signal.of_ranks, signal.digits = declared, of_ranks, digits
        return signal

    def scaled(self, minimum: float, k: int) -> float:
        """Return a minimum between 0 and 1 on this signal's scale; ``k`` is the constant of rank fusion."""
        return minimum * BEST_RANKS / (k + 1) if self.of_ranks else minimum


PRECEDENCE = tuple(Signal)
FUSED = tuple(signal for signal in Signal if signal.fused)
ORDERING = (*FUSED, Signal.COSINE)  # what rows are sorted by: the first that a row has
PENALISED = tuple(signal for signal in Signal if signal.modes)  # confidence knows a row's age already
LEGACY = tuple(signal for signal in Signal if not signal.modes)
LISTED = (*sorted(PENALISED), *LEGACY)  # the order in which accounts and answers name them
BESIDE = tuple(
    signal for signal in LISTED if signal.modes and signal is not Signal.BLEND
)  # told beside the one compared


def compared_in(mode: str) -> tuple[Signal, ...]:
    """Return the signals that the gate of a recall mode may compare, in the order of precedence."""
    return tuple(signal for signal in Signal if mode in signal.modes)
