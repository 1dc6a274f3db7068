"""The daemon's embedder, asked off the loop: who may ask when, what is remembered and what is counted.

Queries have a lane of their own, and so have the rows that are being stored and those embedded in the background; who
goes before whom is ``turns``' to say. State changes on the event loop only; threads do the work.

Contract: embedding.waits, embedding.prefixes, advisory.says, store.embeds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..errors import EmbeddingFailure
from ..model.clock import Clock
from ..model.identity import Embedded, VectorModel
from ..shared.settings import Settings
from ..text.passages import is_long
from . import advice
from .base import Embedder
from .cache import QueryCache
from .loading import IDLE_SECONDS, LOADING, READY, Loading, said
from .turns import QUESTION, STORED, Aside, Turns, smoothed
from .values import Advice, Declared, Embeddings

# A row that is being stored waits this long at most for a pause between questions: a steady stream of them does not
# starve it.
_YIELD_SECONDS = 0.25
# While questions come, a request of the background to a service is so small that it takes no longer than this.
SLICE_SECONDS = 0.015
_ASKED_LATELY_SECONDS = 2.0
# Where the rows being stored would wait longer than this for each other, those that come on top are left to the
# background.
CROWDED_SECONDS = 0.25
PATIENCE_SECONDS = 5.0  # what a store waits for its vector before the background takes over


def make_embedder(settings: Settings) -> Embedder:
    """Return the embedder that the settings name. Raises SettingsConflict for an address that is none."""
    if settings.embedding_mode == "builtin":
        from .builtin.embedder import BuiltinEmbedder

        return BuiltinEmbedder()
    if settings.embedding_mode == "http":
        from .http import embedder_of

        return embedder_of(settings)
    from .none import NoneEmbedder

    return NoneEmbedder()


class EmbeddingService:
    """One embedder for one daemon. Every method belongs on the event loop that called ``start``.

    ``state`` is "off" under mode none and for a builtin model dropped while idle (the next call that needs
    it loads it), else "loading", "ready" or "failed"; ``problem`` says what is wrong, if anything.
    """

    def __init__(
        self, settings: Settings, clock: Clock, embedder: Embedder | None = None, idle_seconds: float = IDLE_SECONDS
    ) -> None:
        self._embedder = embedder if embedder is not None else make_embedder(settings)
        self.mode = self._embedder.name
        self._clock = clock
        self._cache = QueryCache(clock)
        self._loading = Loading(self._embedder, clock, idle_seconds)
        self._failures = self._storing = 0
        # What a text took lately: of a store, of a slice of the background.
        self._storing_seconds = self._background_seconds = 0.0
        self._asked = float("-inf")
        self.turns = Turns()
        self._aside = Aside(self.turns, self._loading.check_open)
        self._counts = {"queries": 0, "cache_hits": 0, "failed_queries": 0, "documents": 0}
        # Threads start with their first job: a lane that is not used costs nothing.
        self._query_lane = ThreadPoolExecutor(self._embedder.query_threads, "embed-query")
        self._document_lane = ThreadPoolExecutor(1, "embed-document")
        self._background_lane = ThreadPoolExecutor(1, "embed-background")

    # -- what it is

    @property
    def enabled(self) -> bool:
        """Whether there is an embedder at all."""
        return self.mode != "none"

    @property
    def state(self) -> str:
        return self._loading.state

    @property
    def problem(self) -> str | None:
        return self._loading.problem

    @property
    def model(self) -> VectorModel:
        """Which model is at work: of a service, the one of its latest answer.

        What made a vector is told beside the vector, and never read from here.
        """
        return self._embedder.model

    @property
    def declared(self) -> Declared | None:
        return self._embedder.declared

    def sense(self, words: Sequence[str]) -> float:
        """Return the share of a question's words that the embedder knows; 1 where nobody can tell."""
        return self._embedder.sense(words)

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
        """Return what the answer to a query must say that got no vector: because of this failure, just caught, or
        without an embedder.
        """
        if failure is None:
            return advice.without_embedder()
        return advice.after(failure, self.state, self.problem, self._failures)

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
        self._loading.begin()

    async def close(self) -> None:
        """Stop everything; calls under way end with EmbeddingFailure."""
        if self._loading.closing:
            return
        self._loading.close()
        for lane in (self._query_lane, self._document_lane, self._background_lane):
            lane.shutdown(wait=False)
        self.turns.close()
        await self._loading.unloaded()

    async def learn(self, wait_seconds: float) -> None:
        """Have the embedder say which model it is and how wide its vectors are, where it tells that only with an
        answer.

        Waits so long at most; an embedder that does not answer leaves ``model`` unknown.
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
        self._loading.touch()
        self._asked = self._loading.used
        self._counts["queries"] += 1
        text = self._embedder.prefixes.query + text
        known = self._cache.get(text, self.model.identity)
        if known is not None:
            self._counts["cache_hits"] += 1
            return known
        try:
            await self._loading.ready(wait_seconds)
            try:
                with self.turns.claim(QUESTION):
                    answer = await asyncio.wait_for(
                        self._call(self._query_lane, lambda: self._embedder.embed([text])), limit_seconds
                    )
            except TimeoutError:
                raise EmbeddingFailure(f"the embedder did not answer within {limit_seconds:.3g} s") from None
        except EmbeddingFailure as error:
            if self.state != LOADING and not self._loading.closing:
                self._failures += 1
                self._counts["failed_queries"] += 1
                self._loading.problem = str(error)
            raise
        self._failures, self._loading.problem = 0, None
        (made,) = answer.each()
        made.vector.flags.writeable = False
        self._cache.put(text, made)
        return made

    @property
    def at_hand(self) -> bool:
        """Whether a text that is being stored gets its vector soon: the model is loaded, and no crowd waits for it."""
        return self.enabled and self.state == READY and not self.crowded

    async def try_now(self, text: str) -> Embedded | None:
        """Return the vector of a text that is being stored, or None where the background is to make it, or nobody.

        None without an embedder, while the model loads or cannot be loaded, after a failure, after
        ``PATIENCE_SECONDS``, where a crowd waits already, and of a long text, which would keep its store waiting. The
        one place where a write decides between now and later.
        """
        if not self.at_hand or is_long(text):
            return None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                (made,) = (await self.embed_documents([text])).each()
        except (EmbeddingFailure, TimeoutError):
            return None
        return made

    @property
    def crowded(self) -> bool:
        """Whether so many rows are being stored that one more would wait noticeably for its vector."""
        return self._storing * self._storing_seconds > CROWDED_SECONDS

    async def embed_documents(
        self, texts: list[str], wait_seconds: float = 0.0, background: bool = False, as_questions: bool = False
    ) -> Embeddings:
        """Return one unit row a text, float32 of shape (len(texts), dimension), with the model that made them.

        In the ``background`` everybody else goes first; ``as_questions`` they get the prefix of questions. Raises
        EmbeddingFailure, also while loading and where the service changes its model between two requests of one call.
        """
        if not self.enabled:
            raise EmbeddingFailure("no embedder is configured (CPERSONA_EMBEDDING_MODE=none)")
        self._loading.touch()
        await self._loading.ready(wait_seconds)
        texts = self._embedder.prefixes.before(texts, as_questions)
        parts: list[Embeddings] = []
        start = 0
        while start < len(texts):
            some = texts[start : start + (self._background_slice() if background else self.slice_size)]
            parts.append(await (self._in_background(some) if background else self._for_store(some)))
            start += len(some)
        if not parts:
            identity, dimension = self.model
            return Embeddings(np.empty((0, dimension or 0), dtype=np.float32), identity)
        model, width = parts[0].model, parts[0].vectors.shape[1]
        if any(part.model != model or part.vectors.shape[1] != width for part in parts):
            raise EmbeddingFailure("the embedding service changed its model in the middle of a batch")
        self._counts["documents"] += len(texts)
        return Embeddings(np.concatenate([part.vectors for part in parts]), model)

    async def _for_store(self, texts: list[str]) -> Embeddings:
        def work() -> Embeddings:
            self.turns.wait(STORED, _YIELD_SECONDS)
            self._loading.check_open()
            started = time.perf_counter()
            made = self._embedder.embed(texts)
            self._storing_seconds = smoothed(self._storing_seconds, (time.perf_counter() - started) / len(texts))
            return made

        self._storing += 1
        try:
            with self.turns.claim(STORED):
                return await self._call(self._document_lane, work)
        finally:
            self._storing -= 1

    async def _in_background(self, texts: list[str]) -> Embeddings:
        def work() -> Embeddings:
            before = self._aside.spent
            made = self._embedder.embed(texts, self._aside.piece)
            self._background_seconds = smoothed(self._background_seconds, (self._aside.spent - before) / len(texts))
            return made

        return await self._call(self._background_lane, work)

    def _background_slice(self) -> int:
        """Return how many texts the next request of the background may have."""
        if self._clock.monotonic() - self._asked > _ASKED_LATELY_SECONDS:
            return self.slice_size
        return (
            min(max(int(SLICE_SECONDS / self._background_seconds), 1), self.slice_size)
            if self._background_seconds
            else 1
        )

    async def _call(self, lane: ThreadPoolExecutor, work: Callable[[], Embeddings]) -> Embeddings:
        with self._loading.in_use():
            try:
                self._loading.check_open()
                return await asyncio.get_running_loop().run_in_executor(lane, work)
            except EmbeddingFailure:
                raise
            except Exception as error:
                # Whatever a model or a service can do wrong is one kind of failure to the callers.
                raise EmbeddingFailure(said(error)) from error
