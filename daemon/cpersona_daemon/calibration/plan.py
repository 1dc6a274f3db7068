"""What to measure, and how.

Contract: calibration.sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import Refused
from .measured import EVERY_AGENT, Measured

SEPARATION, PERCENTILE, ZSCORE = "separation", "percentile", "zscore"
METHODS = (SEPARATION, PERCENTILE, ZSCORE)
LARGEST_SAMPLE = 5000


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure and how. ``agent_id`` '' measures one threshold over all agents, and no gates."""

    agent_id: str = EVERY_AGENT
    sample_size: int = 200
    method: str = SEPARATION
    percentile: float = 0.95
    z_factor: float = 1.0

    def check(self) -> None:
        """Raise Refused for a value out of range."""
        if self.method not in METHODS:
            raise Refused(f"method is one of {', '.join(METHODS)}, not {self.method!r}")
        if not 1 <= self.sample_size <= LARGEST_SAMPLE:
            raise Refused(f"sample_size is a number from 1 to {LARGEST_SAMPLE}, not {self.sample_size}")
        if not 0 <= self.percentile <= 1:
            raise Refused(f"percentile is a number from 0 to 1, not {self.percentile}")
        if not math.isfinite(self.z_factor):
            raise Refused("z_factor is not a finite number")

    @classmethod
    def of_last(cls, held: Measured, agent_id: str) -> Plan:
        """Return how an agent was measured last, so that measuring again does not change what a person chose."""
        last = held.thresholds.get(agent_id)
        if last is None:
            return cls(agent_id)
        return cls(agent_id, last.sample_size, last.method, last.percentile, last.z_factor)
