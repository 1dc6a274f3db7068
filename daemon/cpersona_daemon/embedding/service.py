"""The daemon's embedder: loaded in the background, asked off the loop, dropped when idle long.

Queries have a lane of their own, and so have the rows that are being stored and those embedded in the background; who
goes before whom is ``turns``' to say. State changes on the event loop only; threads do the work.

Contract: contracts.md §7 "Advisory", §12; interface.md ("The embedder loads in the background", "Never a
silent lexical answer").
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..errors import EmbeddingFailure
from ..model.identity import Embedded, VectorModel
from .base import Embedder
from .turns import QUESTION, STORED, Aside, Stop, Turns
from .values import Advice, Batch, Profile

CACHE_ENTRIES = 256
CACHE_SECONDS = 300.0
IDLE_SECONDS = 900.0
RETRY_LOAD_SECONDS = 60.0
FAULT_AFTER = 2
# A row that is being stored waits this long at most for a pause between questions: a steady stream of them does not starve it.
_YIELD_SECONDS = 0.25
# While questions come, a request of the background to a service is so small that it takes no longer than this.
SLICE_SECONDS = 0.015
_ASKED_LATELY_SECONDS = 2.0
# Where the rows being stored would wait longer than this for each other, those that come on top are left to the background.
CROWDED_SECONDS = 0.25
_LONGEST_CACHED_TEXT = 20_000
PATIENCE_SECONDS = 5.0  # what a store waits for its vector before the background takes over

OFF, LOADING, READY, FAILED = "off", "loading", "ready", "failed"


def make_embedder(settings: Any) -> Embedder:
    """Return the embedder that the settings name. Raises SettingsConflict for an address that is none."""
    if settings.embedding_mode == "builtin":
        from .builtin.embedder import BuiltinEmbedder

        return BuiltinEmbedder()
    if settings.embedding_mode == "http":
        from .http import HttpEmbedder

        return HttpEmbedder(settings.embedding_url, settings.embedding_timeout_secs)
    from .none import NoneEmbedder

    return NoneEmbedder()


class EmbeddingService:
    """One embedder for one daemon. Every method belongs on the event loop that called ``start``.

    ``state`` is "off" under mode none and for a builtin model dropped while idle (the next call that needs
    it loads it), else "loading", "ready" or "failed"; ``problem`` says what is wrong, if anything.
    """

    def __init__(self, settings: Any, clock: Any, embedder: Embedder | None = None, idle_seconds: float = IDLE_SECONDS):
        self._embedder = embedder if embedder is not None else make_embedder(settings)
        self.mode = self._embedder.name
        self.state = OFF
        self.problem: str | None = None
        self._clock, self._idle_seconds = clock, idle_seconds
        self._cache: OrderedDict[tuple[str, str], tuple[float, Embedded]] = OrderedDict()
        self._failures = 0
        self._closing = False
        self._loading: asyncio.Future[None] | None = None
        self._tried_loading = self._used = clock.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self._active = self._storing = 0
        self._storing_seconds = self._background_seconds = (
            0.0  # what a text took lately: of a store, of a slice of the background
        )
        self._asked = float("-inf")
        self.turns = Turns()
        self._aside = Aside(self.turns, self._check_open)
        self._counts = {"queries": 0, "cache_hits": 0, "failed_queries": 0, "documents": 0}
        # Threads start with their first job: a lane that is not used costs nothing.
        self._keeper = ThreadPoolExecutor(1, "embedder-load")
        self._query_lane = ThreadPoolExecutor(self._embedder.query_threads, "embed-query")
        self._document_lane = ThreadPoolExecutor(1, "embed-document")
        self._background_lane = ThreadPoolExecutor(1, "embed-background")

    # -- what it is

    @property
    def enabled(self) -> bool:
        """Whether there is an embedder at all."""
        return self.mode != "none"

    @property
    def model(self) -> VectorModel:
        """Which model is at work: of a service, the one of its latest answer. What made a vector is told by the vector."""
        return self._embedder.model

    @property
    def profile(self) -> Profile | None:
        return self._embedder.profile

    @property
    def slice_size(self) -> int:
        return self._embedder.slice_size

    @property
    def background_spent(self) -> float:
        """The seconds that documents have taken in the background, without those in which others went first."""
        return self._aside.spent

    def expect(self, model: str, dimension: int) -> None:
        """Learn the identity and width of the database's vectors; an http answer of another width is then a failure."""
        self._embedder.expect(model, dimension)

    def advice(self, failure: EmbeddingFailure | None = None) -> Advice:
        """Return what the answer to a query must say that got no vector: because of this failure, just caught, or without an embedder.

        A ``hint`` when no embedder is configured, the model is still loading, or one query failed; a ``fault`` when the
        model cannot be loaded and from the second failed query in a row on.
        """
        if failure is None:
            return Advice(
                "hint",
                "no embedder is configured, so recall is lexical only",
                "CPERSONA_EMBEDDING_MODE=none",
                "set CPERSONA_EMBEDDING_MODE to builtin or http and run `cpersona daemon restart`",
            )
        if self.state == FAILED:
            return Advice(
                "fault",
                "the embedding model cannot be loaded, so recall is lexical only",
                self.problem or "",
                "mend what the evidence names; loading is tried again every minute, `cpersona daemon restart` tries at once",
            )
        if self._failures >= FAULT_AFTER:
            return Advice(
                "fault",
                "query embedding fails, so recall is lexical only",
                f"{self._failures} query embeddings in a row failed; the last one: {self.problem}",
                "check the embedding backend with `cpersona daemon status`; the next query that can be embedded clears this",
            )
        if self.state == LOADING:
            return Advice(
                "hint",
                "the embedding model is still loading, so this recall was lexical only",
                f"state: {self.state}",
                "ask again in a moment; a recall waits up to 5 s for the model unless it is told --no-wait",
            )
        return Advice(
            "hint",
            "this question could not be embedded, so rows were found by words alone",
            str(failure),
            "ask again; if it stays, `cpersona daemon status` shows what the embedding backend lacks",
        )

    def status(self) -> dict[str, Any]:
        """Return the embedder's part of `daemon status`."""
        identity, dimension = self.model
        return {
            "mode": self.mode,
            "state": self.state,
            "problem": self.problem,
            "identity": identity,
            "dimension": dimension,
            "consecutive_failures": self._failures,
            **self._counts,
        }

    # -- life

    def start(self) -> None:
        """Begin loading in the background."""
        if not self.enabled:
            return
        if self._embedder.resident:
            self._begin_loading()
        else:
            self.state = READY

    async def close(self) -> None:
        """Stop everything; calls under way end with EmbeddingFailure."""
        if self._closing:
            return
        self._closing = True
        if self._timer is not None:
            self._timer.cancel()
        for lane in (self._query_lane, self._document_lane, self._background_lane):
            lane.shutdown(wait=False)
        self.turns.close()
        # Closing the connections of an http embedder ends a call that would wait for its timeout.
        self._keeper.submit(self._embedder.unload)
        await asyncio.get_running_loop().run_in_executor(None, self._keeper.shutdown)
        self.state = OFF

    def _begin_loading(self) -> asyncio.Future[None]:
        if self._loading is None:
            loop = asyncio.get_running_loop()
            self.state, self._tried_loading = LOADING, self._clock.monotonic()
            self._loading = loop.create_future()
            # One thread loads and unloads, so that the two happen in the order in which they were decided.
            running = loop.run_in_executor(self._keeper, self._embedder.load)
            running.add_done_callback(self._loaded)
        return self._loading

    def _loaded(self, running: asyncio.Future[None]) -> None:
        waiting, self._loading = self._loading, None
        error = None if running.cancelled() else running.exception()
        if error is None and not running.cancelled():
            self.state, self.problem = READY, None
            self._touch()
            self._arm(self._idle_seconds)
        else:
            self.state, self.problem = FAILED, _text(error) if error else "loading was cancelled"
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def _touch(self) -> None:
        self._used = self._clock.monotonic()

    def _arm(self, seconds: float) -> None:
        if not self._closing:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._drop_if_idle)

    def _drop_if_idle(self) -> None:
        # One timer at a time, armed anew for what is left: a busy daemon wakes for it once in a quarter of an hour.
        left = self._used + self._idle_seconds - self._clock.monotonic()
        if self._active or left > 0:
            self._arm(max(left, 1.0))
            return
        self.state = OFF
        self._keeper.submit(self._embedder.unload)

    async def _ready(self, wait_seconds: float) -> None:
        """Return when texts can be embedded; raises EmbeddingFailure when that is not so in time."""
        if self._closing:
            raise EmbeddingFailure("the daemon is stopping")
        if self.state == READY:
            return
        if self.state == FAILED and self._clock.monotonic() - self._tried_loading < RETRY_LOAD_SECONDS:
            raise EmbeddingFailure(self.problem)
        loading = self._begin_loading()
        if wait_seconds > 0:
            await asyncio.wait((loading,), timeout=wait_seconds)
        if self.state == FAILED:
            raise EmbeddingFailure(self.problem)
        if self.state != READY:
            raise EmbeddingFailure("the embedding model is still loading")

    async def learn(self, wait_seconds: float) -> None:
        """Have the embedder say which model it is and how wide its vectors are, where it tells that only with an answer.

        Waits so long at most; an embedder that does not answer leaves ``identity`` and ``dimension`` unknown.
        """
        if not self.enabled or self.model.dimension is not None:
            return
        try:
            async with asyncio.timeout(wait_seconds):
                await self.embed_documents(["which model is this"], wait_seconds)
        except (EmbeddingFailure, TimeoutError):
            pass

    # -- embedding

    async def embed_query(self, text: str, wait_seconds: float, limit_seconds: float | None = None) -> Embedded | None:
        """Return the vector of a query, read-only, with its model; None when no embedder is configured.

        Waits up to ``wait_seconds`` for a model that is loading, and up to ``limit_seconds`` in all for the
        vector. Raises EmbeddingFailure; failures in a row are counted for ``advice``.
        """
        if not self.enabled:
            return None
        self._touch()
        self._asked = self._used
        self._counts["queries"] += 1
        known = self._cached(text)
        if known is not None:
            self._counts["cache_hits"] += 1
            return known
        try:
            await self._ready(wait_seconds)
            try:
                with self.turns.claim(QUESTION):
                    batch = await asyncio.wait_for(
                        self._call(self._query_lane, lambda: self._embedder.embed([text])), limit_seconds
                    )
            except TimeoutError:
                raise EmbeddingFailure(f"the embedder did not answer within {limit_seconds:.3g} s") from None
        except EmbeddingFailure as error:
            if self.state != LOADING and not self._closing:
                self._failures += 1
                self._counts["failed_queries"] += 1
                self.problem = str(error)
            raise
        self._failures, self.problem = 0, None
        made = Embedded(batch.vectors[0], batch.model)
        made.vector.flags.writeable = False
        self._remember(text, made)
        return made

    @property
    def at_hand(self) -> bool:
        """Whether a text that is being stored gets its vector soon: the model is loaded, and no crowd waits for it."""
        return self.enabled and self.state == READY and not self.crowded

    async def try_now(self, text: str) -> Embedded | None:
        """Return the vector of a text that is being stored, or None where the background is to make it, or nobody.

        None without an embedder, while the model loads or cannot be loaded, after a failure, after ``PATIENCE_SECONDS``
        and where a crowd waits already. The one place where a write decides between now and later.
        """
        if not self.at_hand:
            return None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                made = await self.embed_documents([text])
        except (EmbeddingFailure, TimeoutError):
            return None
        return Embedded(made.vectors[0], made.model)

    @property
    def crowded(self) -> bool:
        """Whether so many rows are being stored that one more would wait noticeably for its vector."""
        return self._storing * self._storing_seconds > CROWDED_SECONDS

    async def embed_documents(self, texts: list[str], wait_seconds: float = 0.0, background: bool = False) -> Batch:
        """Return one unit row a text, float32 of shape (len(texts), dimension), with the model that made them.

        In the ``background`` everybody else goes first. Raises EmbeddingFailure, also while loading and where the
        service changes its model between two requests of one call.
        """
        if not self.enabled:
            raise EmbeddingFailure("no embedder is configured (CPERSONA_EMBEDDING_MODE=none)")
        self._touch()
        await self._ready(wait_seconds)
        parts: list[Batch] = []
        start = 0
        while start < len(texts):
            some = texts[start : start + (self._background_slice() if background else self.slice_size)]
            parts.append(await (self._in_background(some) if background else self._for_store(some)))
            start += len(some)
        if not parts:
            identity, dimension = self.model
            return Batch(np.empty((0, dimension or 0), dtype=np.float32), identity)
        model, width = parts[0].model, parts[0].vectors.shape[1]
        if any(part.model != model or part.vectors.shape[1] != width for part in parts):
            raise EmbeddingFailure("the embedding service changed its model in the middle of a batch")
        self._counts["documents"] += len(texts)
        return Batch(np.concatenate([part.vectors for part in parts]), model)

    async def _for_store(self, texts: list[str]) -> Batch:
        def work() -> Batch:
            self.turns.wait(STORED, _YIELD_SECONDS)
            self._check_open()
            started = time.perf_counter()
            made = self._embedder.embed(texts)
            self._storing_seconds = _smoothed(self._storing_seconds, (time.perf_counter() - started) / len(texts))
            return made

        self._storing += 1
        try:
            with self.turns.claim(STORED):
                return await self._call(self._document_lane, work)
        finally:
            self._storing -= 1

    async def _in_background(self, texts: list[str]) -> Batch:
        def piece(kind: str, work: Callable[[Stop | None], Any]) -> Any:
            def timed(stop: Stop | None) -> Any:
                started = time.perf_counter()
                result = work(stop)
                self._background_seconds = _smoothed(
                    self._background_seconds, (time.perf_counter() - started) / len(texts)
                )
                return result

            return self._aside.piece(kind, timed)

        return await self._call(self._background_lane, lambda: self._embedder.embed(texts, piece))

    def _background_slice(self) -> int:
        """Return how many texts the next request of the background may have."""
        if self._clock.monotonic() - self._asked > _ASKED_LATELY_SECONDS:
            return self.slice_size
        return (
            min(max(int(SLICE_SECONDS / self._background_seconds), 1), self.slice_size)
            if self._background_seconds
            else 1
        )

    def _check_open(self) -> None:
        if self._closing:
            raise EmbeddingFailure("the daemon is stopping")

    async def _call(self, lane: ThreadPoolExecutor, work: Callable[[], Batch]) -> Batch:
        self._active += 1
        try:
            self._check_open()
            return await asyncio.get_running_loop().run_in_executor(lane, work)
        except EmbeddingFailure:
            raise
        except Exception as error:  # whatever a model or a service can do wrong is one kind of failure to the callers
            raise EmbeddingFailure(_text(error)) from error
        finally:
            self._active -= 1
            self._touch()

    # -- the query cache

    def _cached(self, text: str) -> Embedded | None:
        key = (text, self.model.identity)
        found = self._cache.get(key)
        if found is None:
            return None
        if found[0] <= self._clock.monotonic():
            del self._cache[key]
            return None
        self._cache.move_to_end(key)
        return found[1]

    def _remember(self, text: str, made: Embedded) -> None:
        if len(text) > _LONGEST_CACHED_TEXT:
            return
        self._cache[(text, made.model)] = (self._clock.monotonic() + CACHE_SECONDS, made)
        self._cache.move_to_end((text, made.model))
        while len(self._cache) > CACHE_ENTRIES:
            self._cache.popitem(last=False)


def _smoothed(before: float, now: float) -> float:
    return now if not before else 0.8 * before + 0.2 * now


def _text(error: BaseException) -> str:
    return str(error) if isinstance(error, EmbeddingFailure) else f"{type(error).__name__}: {error}"
