"""The worker that embeds what was stored before a vector could be had.

A store is acknowledged at once; the rows it leaves in embedding_backlog are embedded here in batches,
outside any transaction, and attached only when the text is still what was embedded. A restart goes on
where the last process stopped. Once every row has its vector, long rows get their passages, one row after the other.

Contract: backlog.order, store.embeds, passages.derived, progress.measured.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from itertools import islice
from typing import Any

import apsw

from ..errors import StorageFailure
from ..shared.pace import Pace, seconds_left
from ..storage import backlog as rows
from ..storage.backlog import Waiting
from ..storage.database import Database
from ..storage.transaction import Transaction
from .loading import READY
from .service import EmbeddingService

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 300.0
LOAD_WAIT_SECONDS = 60.0
# A batch is about half a second of the builtin model: short enough to see progress, long enough to share a commit.
_SMALLEST_FULL_BATCH = 16
_COUNTED = 1000
# On a busy machine a pace is a guess, and a question that does not wait keeps the rows from being embedded.
SLACK = 3

_log = logging.getLogger(__name__)


class BacklogWorker:
    """One background task over one database. Every method belongs on the event loop."""

    def __init__(self, db: Database, service: EmbeddingService, first_pause: float = FIRST_PAUSE_SECONDS) -> None:
        self._db, self._service, self._first_pause = db, service, first_pause
        self._full = max(_SMALLEST_FULL_BATCH, service.slice_size)
        self._size = self._full
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._drained = asyncio.Event()
        self._pause = 0.0  # seconds of the current pause after a failure, 0 when all is well
        self._deferred: set[tuple[str, int]] = set()  # rows that failed alone; others go first
        self._waiters: dict[asyncio.Future[bool], int] = {}
        self._done = self._failures = 0
        # Rows listed for their vector and for their passages when the last batch was read, counted up to _COUNTED, and
        # the seconds that one took lately, without those in which others went first.
        self._listed, self._paces = (0, 0), [0.0, 0.0]
        # How many rows a second got their vector, and how many long ones their passages.
        self._measured = (Pace(), Pace())
        self._problem: str | None = None

    # -- life

    def start(self) -> None:
        """Begin work on what is listed; under mode none, and where nothing can be written, there is nothing to do,
        ever.
        """
        if not self._service.enabled or self._db.read_only:
            self._drained.set()
            return
        known = self._db.read_now(rows.known_width)
        if known is not None:
            self._service.expect(*known)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="embedding-backlog")

    async def stop(self) -> None:
        """End the work after the write under way; what is left is still listed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._settle(False)

    def wake(self) -> None:
        """Say that rows were listed (after their commit)."""
        if self._task is not None:
            self._drained.clear()
            self._woken.set()

    # -- what others ask

    @property
    def busy(self) -> bool:
        """Whether rows are being embedded; waiting out a pause after a failure is not work."""
        return not self._drained.is_set() and not self._pause and self._task is not None

    async def pending(self) -> int:
        """Return how many rows wait for their vector."""
        return await self._db.read(rows.count)

    @property
    def rate(self) -> float | None:
        """How many rows a second get their vector lately; None where that was not measured since the last rest."""
        return self._measured[0].rate

    async def status(self, upto: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Return the backlog's part of `daemon status`; ``upto`` counts no row beyond the id given for its kind.

        `rows_per_second` and `passages_per_second` (in long rows) are there where they were measured, `eta_seconds`
        until the rows have their vectors and `passages_eta_seconds` until the long ones have their passages too where
        what is needed for them was. Rows stored later are embedded first, so that the times are those of all that wait.
        """
        all_rows, all_long = await self._db.read(_listed, None)
        rate, long_rate = (pace.rate for pace in self._measured)
        left = None if self._pause else seconds_left(all_rows, rate)
        long_left = None if self._pause else seconds_left(all_long, long_rate)
        told = {
            "rows_per_second": rate,
            "eta_seconds": left if all_rows else None,
            "passages_per_second": long_rate,
            "passages_eta_seconds": None if left is None or long_left is None or not all_long else left + long_left,
        }
        waiting, long_waiting = (all_rows, all_long) if upto is None else await self._db.read(rows.count_upto, upto)
        return {
            "pending": waiting,
            "passages_pending": long_waiting,
            "done": self._done,
            "failures": self._failures,
            "paused_seconds": self._pause,
            "problem": self._problem,
            **{name: round(value, 2) for name, value in told.items() if value is not None},
        }

    @property
    def works(self) -> bool:
        """Whether what is listed is ever embedded here: there is an embedder, and its vectors can be written."""
        return self._task is not None

    def worth_waiting_for(self, limit_rows: int, seconds: float) -> bool:
        """Whether rows are being embedded, and so few that at the pace of the latest ones most of them may be through
        in that time.
        """
        expected = sum(number * pace for number, pace in zip(self._listed, self._paces, strict=True))
        return self.busy and sum(self._listed) <= limit_rows and expected <= SLACK * seconds

    async def wait_until_drained(self, limit_rows: int = 256, wait_seconds: float = 5.0) -> bool:
        """Wait until as many rows as are listed now have been embedded, passages and all; tell whether that is so.

        Answers False at once when more than ``limit_rows`` are listed or the last attempt failed, and after
        ``wait_seconds``.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + wait_seconds
        # A long row is listed for its passages once it has its vector.
        return await self._wait(limit_rows, wait_seconds) and await self._wait(limit_rows, max(0.0, end - loop.time()))

    async def _wait(self, limit_rows: int, wait_seconds: float) -> bool:
        if self._drained.is_set():
            return True
        if self._task is None or self._pause:
            return False
        listed = sum(await self._db.read(_listed, limit_rows + 1))
        if self._drained.is_set() or not listed:
            return True
        if listed > limit_rows or self._pause:
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = self._done + listed
        try:
            return await asyncio.wait_for(waiter, wait_seconds)
        except TimeoutError:
            return False
        finally:
            self._waiters.pop(waiter, None)

    # -- the work

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            batch: list[Waiting] = []
            try:
                batch, self._listed = await self._db.read(self._look)
                if batch:
                    await self._embed(batch)
                else:
                    await self._rest()
            except Exception as error:
                # A worker that died would leave the list as it is, without a word, until a restart.
                self._failed(batch, error)
                await asyncio.sleep(self._pause)

    def _look(self, conn: apsw.Connection) -> tuple[list[Waiting], tuple[int, int]]:
        return rows.next_batch(conn, self._size, frozenset(self._deferred)), _listed(conn, _COUNTED)

    async def _embed(self, batch: list[Waiting]) -> None:
        spent, measures = self._service.background_spent, self._service.state == READY
        started = asyncio.get_running_loop().time()
        texts = [text for row in batch for text in row.texts]
        answer = await self._service.embed_documents(texts, LOAD_WAIT_SECONDS, background=True)

        def attach(tx: Transaction) -> int:
            made = iter(answer.each())
            return sum(rows.attach(tx, row, list(islice(made, len(row.texts)))) for row in batch)

        self._done += await self._db.write(attach)
        # Who waits for the rows lets them go first, so that what a row was put off for says nothing of how long that
        # takes.
        self._paces[batch[0].spans is not None] = (self._service.background_spent - spent) / len(batch)
        if measures:  # a model that was still loading says nothing of the rows behind
            seconds = asyncio.get_running_loop().time() - started
            self._measured[batch[0].spans is not None].add(seconds, len(batch))
        self._pause, self._problem = 0.0, None
        self._size = min(self._full, self._size * 2)
        for waiter, target in list(self._waiters.items()):
            if self._done >= target and not waiter.done():
                waiter.set_result(True)

    async def _rest(self) -> None:
        """Wait for the next row, or for the time to try again those that failed alone."""
        self._forget_rates()
        if self._deferred:
            self._pause = LONGEST_PAUSE_SECONDS
            self._settle(False)
            try:
                await asyncio.wait_for(self._woken.wait(), self._pause)
            except TimeoutError:
                self._deferred.clear()
            self._pause = 0.0
            return
        if sum(await self._db.read(_listed, 1)):
            await self._db.write(rows.forget_missing)
        if not self._woken.is_set():
            self._drained.set()
            self._settle(True)
        await self._woken.wait()

    def _failed(self, batch: list[Waiting], error: Exception) -> None:
        """Lengthen the pause, and find out whether one text is to blame: the next batch is a single row."""
        self._failures += 1
        self._forget_rates()
        self._problem = str(error) or type(error).__name__
        if isinstance(error, StorageFailure):  # a full disk, and no fault of an embedder or a text
            self._pause = self._first_pause
            self._settle(False)
            _log.warning("vectors could not be written, next attempt in %.0f s: %s", self._pause, error)
            return
        if len(batch) == 1:
            self._deferred.add(batch[0].listed)
        self._size = 1
        self._pause = min(LONGEST_PAUSE_SECONDS, self._pause * 2 or self._first_pause)
        self._settle(False)
        _log.warning("embedding in the background failed, next attempt in %.0f s: %s", self._pause, error)

    def _forget_rates(self) -> None:
        for pace in self._measured:
            pace.forget()

    def _settle(self, outcome: bool) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(outcome)


def _listed(conn: apsw.Connection, most: int | None) -> tuple[int, int]:
    """Return how many rows wait for their vector and how many for their passages, each counted up to ``most``."""
    return rows.count(conn, most), rows.count_passages(conn, most)
