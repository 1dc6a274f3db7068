"""How far long requests came, for whoever asks after the one who asked for them left.

A client that is interrupted cannot know what was committed: the last that it was told is older than that. It asks here
under the idempotency key of its request. Kept in memory, a few of the latest.

Contract: progress.committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

KEPT = 64

Progress = Callable[[dict], None]


class _Run:
    __slots__ = ("reached", "final", "ended")

    def __init__(self) -> None:
        self.reached: dict = {}
        self.final = False
        self.ended = asyncio.Event()


class Runs:
    """The latest long requests, by who asked and under which key. Every method belongs on the event loop."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], _Run] = {}

    @contextmanager
    def followed(self, client_id: str, key: str, tell: Progress | None) -> Iterator[Progress]:
        """Note how far a request comes while the block lasts: give it what is yielded in place of ``tell``.

        What is told may come from any thread. A step with `final` says that it is exact and the last.
        """
        run = _Run()
        self._runs.pop((client_id, key), None)
        self._runs[client_id, key] = run
        while len(self._runs) > KEPT:
            del self._runs[next(iter(self._runs))]

        def note(step: dict) -> None:
            run.final = run.final or bool(step.get("final"))
            run.reached = {**run.reached, **{name: value for name, value in step.items() if name != "final"}}
            if tell is not None:
                tell(step)

        try:
            yield note
        finally:
            run.ended.set()

    async def told(self, client_id: str, key: str, wait_seconds: float) -> dict:
        """Return `{known, running, reached, final}` of a request, after waiting so long at most for its end."""
        run = self._runs.get((client_id, key))
        if run is None:
            return {"known": False, "running": False, "reached": {}, "final": False}
        if wait_seconds > 0:
            try:
                await asyncio.wait_for(run.ended.wait(), wait_seconds)
            except TimeoutError:
                pass
        ended = run.ended.is_set()
        return {"known": True, "running": not ended, "reached": run.reached, "final": run.final and ended}
