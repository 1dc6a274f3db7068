"""Vectors of questions asked lately, so that asking again costs no embedding.

Contract: embedding.waits.
"""

from __future__ import annotations

from collections import OrderedDict

from ..model.clock import Clock
from ..model.identity import Embedded

CACHE_ENTRIES = 256
CACHE_SECONDS = 300.0
_LONGEST_CACHED_TEXT = 20_000


class QueryCache:
    """The latest ``CACHE_ENTRIES`` questions with their vectors, each for ``CACHE_SECONDS`` and for one model."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[float, Embedded]] = OrderedDict()

    def get(self, text: str, model: str) -> Embedded | None:
        """Return a question's vector of this model, None where there is none or it has grown old."""
        found = self._kept.get((text, model))
        if found is None:
            return None
        until, made = found
        if until <= self._clock.monotonic():
            del self._kept[(text, model)]
            return None
        self._kept.move_to_end((text, model))
        return made

    def put(self, text: str, made: Embedded) -> None:
        """Keep a question's vector, in place of the one that nobody has asked for the longest; a very long text is not
        kept.
        """
        if len(text) > _LONGEST_CACHED_TEXT:
            return
        self._kept[(text, made.model)] = (self._clock.monotonic() + CACHE_SECONDS, made)
        self._kept.move_to_end((text, made.model))
        while len(self._kept) > CACHE_ENTRIES:
            self._kept.popitem(last=False)
