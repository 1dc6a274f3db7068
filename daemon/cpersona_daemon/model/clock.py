"""The clock, passed in wherever time matters so that a test can hold it still."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What tells the time."""

    def now(self) -> float:
        """Return the wall time as epoch seconds (UTC)."""

    def monotonic(self) -> float:
        """Return seconds that never go back, for durations."""


class SystemClock:
    """Wall time as epoch seconds (UTC) and a monotonic one for durations."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()
