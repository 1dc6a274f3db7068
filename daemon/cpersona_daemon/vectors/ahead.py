"""The vectors of one request where the engine is elsewhere: asked before the snapshot, read inside it.

What a stage asks inside that was not asked before raises ``Unasked``: the snapshot is left, the engine asked for that
too, and the work begun anew. Where the engine has no answer, everything is answered from the database, inside the
snapshot, and ``lack`` says why; where that takes too long as well, there are no hits, and words alone find rows.

Contract: vectors.ahead, vectors.exact.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..model.kinds import PASSAGES, Kind, Rid, VectorKind
from ..model.scope import Scope
from ..storage import vectors as rows
from . import plain
from .backend import Ask, Background, Capabilities, Elsewhere, Hit, NoAnswer, NotReady, QueryVectors, Vectors, Window

ASK_SECONDS = 5.0  # for all that an engine is asked for one request
SCAN_SECONDS = 10.0  # for all that the database is asked in its place
# An engine that failed so often in a row is let alone for a while, so that not every request waits for it.
TRIES = 2
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 15.0
_ASKERS = 4

_Name = tuple[VectorKind, Scope, Window]


class Unasked(Exception):
    """Something is asked inside a snapshot that only an engine elsewhere can answer well."""

    def __init__(self, asks: list[Ask]) -> None:
        super().__init__("not asked before the snapshot")
        self.asks = asks


class Ahead:
    """The vectors of one request; ``whole`` are those of all, ``text`` is the question in words.

    ``lack`` says why the engine did not answer, None where it did; ``by_words`` whether nobody did.
    """

    def __init__(self, engine: Elsewhere, whole: Vectors, path: str, text: str) -> None:
        self._engine, self._whole, self._path, self._text = engine, whole, path, text
        self._found: dict[_Name, list[tuple[Ask, list[list[Hit]]]]] = {}
        self._scan_until: float | None = None
        self.lack: str | None = None
        self.by_words = False

    def ask(self, asks: Sequence[Ask], deadline: float) -> None:
        """Ask the engine, outside of any snapshot; ``deadline`` is of time.monotonic. Raises NoAnswer."""
        for ask, hits in zip(asks, self._engine.ask(asks, self._text, deadline), strict=True):
            self._found.setdefault((ask.kind, ask.scope, ask.window), []).append((ask, hits))

    def search(
        self, queries: QueryVectors, kind: VectorKind, scope: Scope, window: Window, floor: float, k: int
    ) -> list[list[Hit]]:
        """Return what the engine said; what the database says where it said nothing. Raises Unasked."""
        ask = Ask(queries, kind, scope, window, floor, k)
        if self.lack is not None:
            return self._scanned(ask)
        held = self._found.get((kind, scope, window), ())
        found = next((hits for asked, known in held if (hits := _covered(ask, asked, known)) is not None), None)
        if found is None:
            of_rows = isinstance(kind, Kind)
            raise Unasked([ask._replace(kind=kin if of_rows else PASSAGES[kin]) for kin in scope.kinds])
        return found

    def _scanned(self, ask: Ask) -> list[list[Hit]]:
        try:
            return self._engine.search(*ask)
        except NoAnswer:
            pass
        if self._scan_until is None:
            self._scan_until = time.monotonic() + SCAN_SECONDS
        try:
            with rows.reader(self._path) as conn:
                return plain.search(conn, *ask, deadline=self._scan_until)
        except NoAnswer:
            self.by_words = True
            return [[] for _ in ask.queries.vectors]

    # What is asked of rows by their ids, and what all of a store is like, the database says at once.

    def cosines(self, query: np.ndarray, rids: Iterable[Rid], model: str) -> dict[Rid, float]:
        return self._whole.cosines(query, rids, model)

    def rows_of(self, rids: Iterable[Rid], width: int, model: str) -> tuple[list[Rid], np.ndarray]:
        return self._whole.rows_of(rids, width, model)

    def background(self, scope: Scope, window_rows: int, width: int, model: str, size: int = 256) -> Background | None:
        return self._whole.background(scope, window_rows, width, model, size)


def _covered(ask: Ask, asked: Ask, known: list[list[Hit]]) -> list[list[Hit]] | None:
    """Return what is known of an ask from one that reached as far or further; None where it did not."""
    if ask.floor < asked.floor or ask.queries.model != asked.queries.model:
        return None
    out = []
    for vector in ask.queries.vectors:
        at = next((i for i, other in enumerate(asked.queries.vectors) if np.array_equal(vector, other)), None)
        if at is None:
            return None
        full = len(known[at]) >= asked.k or getattr(known[at], "more", False)
        if ask.k > asked.k and full:
            return None
        out.append([hit for hit in known[at] if hit.score >= ask.floor][: ask.k])
    return out


class Asking:
    """Asks an engine elsewhere on threads of its own, so that one that hangs holds up nothing else.

    Belongs on the event loop. ``failures`` counts those in a row.
    """

    def __init__(self, engine: Elsewhere) -> None:
        self._engine = engine
        self._threads = ThreadPoolExecutor(_ASKERS, "vectors-elsewhere")
        self._again_at = 0.0
        self._problem: str | None = None
        self._asked = self._failed = 0
        self.failures = 0

    @property
    def capabilities(self) -> Capabilities:
        """What the engine's search keeps to."""
        return self._engine.capabilities

    def status(self) -> dict[str, Any]:
        """Return the engine's part of `daemon status`."""
        return {
            "place": self._engine.place,
            "problem": self._problem,
            "consecutive_failures": self.failures,
            "queries": self._asked,
            "failed_queries": self._failed,
        }

    def begin(self, whole: Vectors, path: str, text: str) -> Ahead:
        """Return the vectors of a request, with nothing asked yet."""
        return Ahead(self._engine, whole, path, text)

    async def ask(self, ahead: Ahead, asks: Sequence[Ask], deadline: float) -> None:
        """Ask for a request; where that fails ``ahead.lack`` says why. ``deadline`` is of time.monotonic."""
        if time.monotonic() < self._again_at:
            ahead.lack = f"{self._problem}; it is asked again in a moment"
            return
        self._asked += 1
        loop, left = asyncio.get_running_loop(), deadline - time.monotonic()
        try:
            await asyncio.wait_for(loop.run_in_executor(self._threads, ahead.ask, asks, deadline), max(0.0, left))
        except (NoAnswer, TimeoutError) as why:
            ahead.lack = str(why) or "it did not answer in time"
            if isinstance(why, NotReady):
                return
            self._problem, self.failures = ahead.lack, self.failures + 1
            self._failed += 1
            if self.failures >= TRIES:
                pause = FIRST_PAUSE_SECONDS * 2 ** min(self.failures - TRIES, 10)
                self._again_at = time.monotonic() + min(LONGEST_PAUSE_SECONDS, pause)
        else:
            self.failures, self._again_at, self._problem = 0, 0.0, None

    def close(self) -> None:
        """Ask nothing more; what hangs ends by its own deadline."""
        self._threads.shutdown(wait=False, cancel_futures=True)
