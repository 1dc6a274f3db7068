"""What the daemon knows about itself: calls, latencies, failures, warnings and work in the background.

Everything is bounded, and no memory content comes in: method names, codes and messages only.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager

from ..model.clock import Clock
from ..model.instants import iso_now

SAMPLES = 512
LAST_ERRORS = 20
LAST_WARNINGS = 50
# The failures that are not the caller's own doing.
NOTEWORTHY = frozenset({"internal", "storage", "full", "read_only", "corrupt", "embedding", "timed_out", "busy"})


class _Method:
    __slots__ = ("count", "failed", "seconds")

    def __init__(self) -> None:
        self.count, self.failed = 0, 0
        self.seconds: deque[float] = deque(maxlen=SAMPLES)


class Status:
    """Counters of one process; every method may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._methods: dict[str, _Method] = {}
        self._errors: deque[dict] = deque(maxlen=LAST_ERRORS)
        self._warnings: dict[str, None] = {}
        self._working: Counter[str] = Counter()
        self.started_at = clock.now()
        self._started = clock.monotonic()

    def record(self, method: str, seconds: float, error_code: str | None = None) -> None:
        """Count one finished call. ``method`` must be a known name: names from outside are not kept."""
        with self._guard:
            entry = self._methods.setdefault(method, _Method())
            entry.count += 1
            entry.seconds.append(seconds)
            if error_code is not None:
                entry.failed += 1
            if error_code in NOTEWORTHY:
                self._errors.append({"at": iso_now(self._clock.now()), "method": method, "code": error_code})

    def warn(self, text: str) -> None:
        """Remember one warning; the same text counts once."""
        with self._guard:
            self._warnings.pop(text, None)
            self._warnings[text] = None
            while len(self._warnings) > LAST_WARNINGS:
                del self._warnings[next(iter(self._warnings))]

    @contextmanager
    def at_work(self, what: str) -> Iterator[None]:
        """Say that work goes on in the background, such as a calibration; the daemon stays until it is done."""
        with self._guard:
            self._working[what] += 1
        try:
            yield
        finally:
            with self._guard:
                self._working[what] -= 1
                if not self._working[what]:
                    del self._working[what]

    @property
    def working(self) -> list[str]:
        """The names of the work that goes on in the background."""
        with self._guard:
            return sorted(self._working)

    def snapshot(self) -> dict:
        """Return counts, latencies in milliseconds over the last 512 calls of each method, failures and warnings."""
        with self._guard:
            methods = {name: _summary(entry) for name, entry in sorted(self._methods.items())}
            return {
                "started_at": iso_now(self.started_at),
                "uptime_seconds": round(self._clock.monotonic() - self._started, 3),
                "methods": methods,
                "working": sorted(self._working),
                "last_errors": list(self._errors),
                "warnings": list(self._warnings),
            }


def _summary(entry: _Method) -> dict:
    ordered = sorted(entry.seconds)
    at = lambda share: round(ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1000, 3)  # noqa: E731
    return {"count": entry.count, "failed": entry.failed, "p50_ms": at(0.5), "p99_ms": at(0.99)}
