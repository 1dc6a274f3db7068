"""Pausing persistence: while a pause lasts, writes answer as if done and nothing is kept.

Contract: pause.answers.
"""

from __future__ import annotations

import math

from ..errors import Refused
from ..model.clock import Clock
from ..model.instants import iso_now

DEFAULT_TTL_SECONDS = 1800
MIN_TTL_SECONDS, MAX_TTL_SECONDS = 1, 86_400
MAX_PAUSES = 256


class Pauses:
    """The pauses of one process, in memory, by session key; '' is everyone who has no key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}

    def pause(self, ttl_seconds: int = DEFAULT_TTL_SECONDS, session_key: str = "") -> dict:
        """Pause one key for ``ttl_seconds`` from now (86,400 at most), replacing a pause that it has.

        Raises Refused for what is no whole number from 1 on, and when 256 other pauses are live.
        """
        if isinstance(ttl_seconds, bool) or not isinstance(ttl_seconds, int) or ttl_seconds < MIN_TTL_SECONDS:
            raise Refused(
                f"ttl_seconds must be a whole number, {MIN_TTL_SECONDS} at least and {MAX_TTL_SECONDS} at most"
            )
        ttl_seconds = min(ttl_seconds, MAX_TTL_SECONDS)
        self._forget_expired()
        if session_key not in self._until and len(self._until) >= MAX_PAUSES:
            raise Refused(f"{MAX_PAUSES} pauses are live already; resume one of them first")
        self._until[session_key] = self._clock.monotonic() + ttl_seconds
        return {
            "paused": True,
            "ttl_seconds": ttl_seconds,
            "expires_at": iso_now(self._clock.now() + ttl_seconds),
            "scope": _scope(session_key),
        }

    def resume(self, session_key: str = "") -> dict:
        """End the pause of one key; without one this changes nothing."""
        was_active = self.is_paused(session_key)
        self._until.pop(session_key, None)
        return {"paused": False, "was_active": was_active, "scope": _scope(session_key)}

    def status(self, session_key: str = "") -> dict:
        """Return whether one key is paused, and for how many whole seconds more (at least 1), or None."""
        remaining = (
            math.ceil(self._until[session_key] - self._clock.monotonic()) if self.is_paused(session_key) else None
        )
        return {"paused": remaining is not None, "ttl_remaining_seconds": remaining, "scope": _scope(session_key)}

    def is_paused(self, session_key: str = "") -> bool:
        until = self._until.get(session_key)
        return until is not None and self._clock.monotonic() < until

    def _forget_expired(self) -> None:
        now = self._clock.monotonic()
        for key in [k for k, until in self._until.items() if until <= now]:
            del self._until[key]


def _scope(session_key: str) -> str:
    return "session" if session_key else "process"
