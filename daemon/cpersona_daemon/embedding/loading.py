"""The model of an embedder in memory: loaded in the background, tried again after a failure, dropped when idle long.

Contract: embedding.waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from ..errors import EmbeddingFailure
from ..model.clock import Clock
from .base import Embedder

IDLE_SECONDS = 900.0
RETRY_LOAD_SECONDS = 60.0

OFF, LOADING, READY, FAILED = "off", "loading", "ready", "failed"


def said(error: BaseException) -> str:
    """Return what a person is told of an error: our own words as they are, others' with the name of their kind."""
    return str(error) if isinstance(error, EmbeddingFailure) else f"{type(error).__name__}: {error}"


class Loading:
    """Whether the model is there. Every method belongs on the event loop that called ``begin``; one thread does the
    work.

    ``state`` is "off" until ``begin`` and for a model dropped while idle (the next call that needs it loads it), else
    "loading", "ready" or "failed"; ``problem`` says what is wrong, if anything.
    """

    def __init__(self, embedder: Embedder, clock: Clock, idle_seconds: float) -> None:
        self._embedder, self._clock, self._idle_seconds = embedder, clock, idle_seconds
        self.state = OFF
        self.problem: str | None = None
        self.closing = False
        self._loading: asyncio.Future[None] | None = None
        self._tried = self.used = clock.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self._active = 0
        # One thread loads and unloads, so that the two happen in the order in which they were decided.
        self._keeper = ThreadPoolExecutor(1, "embedder-load")

    def begin(self) -> None:
        """Begin loading in the background what has to be loaded."""
        if self._embedder.resident:
            self._begin_loading()
        else:
            self.state = READY

    async def ready(self, wait_seconds: float) -> None:
        """Return when texts can be embedded; raises EmbeddingFailure when that is not so in time."""
        self.check_open()
        if self.state == READY:
            return
        if self.state == FAILED and self._clock.monotonic() - self._tried < RETRY_LOAD_SECONDS:
            raise EmbeddingFailure(self.problem)
        loading = self._begin_loading()
        if wait_seconds > 0:
            await asyncio.wait((loading,), timeout=wait_seconds)
        if self.state == FAILED:
            raise EmbeddingFailure(self.problem)
        if self.state != READY:
            raise EmbeddingFailure("the embedding model is still loading")

    def check_open(self) -> None:
        """Raise EmbeddingFailure once nothing more is to be done."""
        if self.closing:
            raise EmbeddingFailure("the daemon is stopping")

    def touch(self) -> None:
        """Say that the model is needed now: its idle time begins anew."""
        self.used = self._clock.monotonic()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the model while the block runs."""
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1
            self.touch()

    def close(self) -> None:
        """Take no more work; ``unloaded`` ends it."""
        self.closing = True
        if self._timer is not None:
            self._timer.cancel()

    async def unloaded(self) -> None:
        """Drop the model and wait until it is gone. A service's connections are closed, which ends calls that wait for
        it.
        """
        self._keeper.submit(self._embedder.unload)
        await asyncio.get_running_loop().run_in_executor(None, self._keeper.shutdown)
        self.state = OFF

    def _begin_loading(self) -> asyncio.Future[None]:
        if self._loading is None:
            loop = asyncio.get_running_loop()
            self.state, self._tried = LOADING, self._clock.monotonic()
            self._loading = loop.create_future()
            running = loop.run_in_executor(self._keeper, self._embedder.load)
            running.add_done_callback(self._loaded)
        return self._loading

    def _loaded(self, running: asyncio.Future[None]) -> None:
        waiting, self._loading = self._loading, None
        error = None if running.cancelled() else running.exception()
        if error is None and not running.cancelled():
            self.state, self.problem = READY, None
            self.touch()
            self._arm(self._idle_seconds)
        else:
            self.state, self.problem = FAILED, said(error) if error else "loading was cancelled"
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def _arm(self, seconds: float) -> None:
        if not self.closing:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._drop_if_idle)

    def _drop_if_idle(self) -> None:
        # One timer at a time, armed anew for what is left: a busy daemon wakes for it once in a quarter of an hour.
        left = self.used + self._idle_seconds - self._clock.monotonic()
        if self._active or left > 0:
            self._arm(max(left, 1.0))
            return
        self.state = OFF
        self._keeper.submit(self._embedder.unload)
