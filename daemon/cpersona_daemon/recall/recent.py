"""The last questions that were asked, so that a calibration can say how many of their answers it changes.

In this process's memory and nowhere else: never on disk, never in a log, gone when the daemon leaves.

Contract: canary.run.
"""

from __future__ import annotations

from dataclasses import replace

from ..shared.settings import Settings
from .types import Query

MOST = 50


class RecentRecalls:
    """At most 50 questions, the newest last; asking one again makes it the newest. Used on the loop's thread alone."""

    def __init__(self) -> None:
        self._asked: dict[tuple, tuple[Query, Settings]] = {}

    def add(self, query: Query, settings: Settings) -> None:
        """Remember a question and the settings it was asked under. A blank one and an excluding one say nothing about a
        gate.
        """
        if not query.text.strip() or query.exclude or query.limit <= 0:
            return
        kept = replace(query, trace=False, why_not=None, wait_seconds=0.0)
        key = (kept.text, kept.scope, kept.limit, kept.deep)
        self._asked.pop(key, None)
        self._asked[key] = (kept, settings)
        while len(self._asked) > MOST:
            del self._asked[next(iter(self._asked))]

    def of(self, agent_id: str = "") -> list[tuple[Query, Settings]]:
        """Return the questions of an agent ('' = all), the newest last."""
        return [
            (query, settings)
            for query, settings in self._asked.values()
            if not agent_id or query.scope.agent_id == agent_id
        ]

    def forget(self, agent_id: str) -> None:
        """Drop the questions of an agent."""
        self._asked = {key: held for key, held in self._asked.items() if held[0].scope.agent_id != agent_id}
