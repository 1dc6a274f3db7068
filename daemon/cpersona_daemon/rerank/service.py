"""The daemon's reranker, asked off the loop and within a deadline.

It has threads of its own: a slow one holds up neither reads nor embedding. State changes on the event loop only.

Contract: rerank.asks.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..errors import RerankFailure
from ..model.clock import Clock
from ..services.address import RERANK, checked, variable_of
from ..services.answers import Unfit
from ..services.http import HttpService
from ..shared.settings import Settings
from .shapes import probabilities, shapes_of

AT_ONCE = 4
# After so many failures in a row it is left alone for so long: else each recall would wait for its deadline.
FAILURES, REST_SECONDS = 3, 30.0
_OTHER_SHAPE = (400, 422)  # what a service says to a request that it does not understand


class Asker:
    """Puts one question after the other to a reranking service. Calls block; several threads may call at once.

    Raises SettingsConflict for an address that is none.
    """

    def __init__(self, settings: Settings) -> None:
        parts, key = checked(settings, RERANK)
        seconds = settings.rerank_timeout_secs
        self._service = HttpService("reranker", variable_of(RERANK), parts, key, seconds, RerankFailure)
        self._shapes, self._model, self.place = (
            shapes_of(settings.rerank_api),
            settings.rerank_model,
            self._service.place,
        )

    def scores(self, query: str, texts: list[str], deadline: float) -> list[float]:
        """Return what the service says of each text, in their order, on its own scale. Raises RerankFailure; never a
        part of the answer.
        """
        status = 0
        for shape in self._shapes:
            status, body = self._service.post(shape.body(query, texts, self._model), deadline)
            if status == 200:
                try:
                    scores = shape.read(body, len(texts))
                except Unfit as error:
                    raise self._service.refused(str(error)) from None
                self._shapes = (shape, *(other for other in self._shapes if other is not shape))
                return scores
            if status not in _OTHER_SHAPE:
                break
        raise self._service.denied(status)

    def close(self) -> None:
        self._service.close()


class Reranker:
    """One reranker for one daemon. Every method belongs on one event loop."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._asker, self._clock, self._seconds = Asker(settings), clock, settings.rerank_timeout_secs
        self._lane = ThreadPoolExecutor(AT_ONCE, "rerank")
        self._asked = self._failed = 0
        self._rests_until = float("-inf")
        self.failures = 0  # in a row
        self.problem: str | None = None

    async def scores(self, query: str, texts: list[str]) -> list[float]:
        """Return how well each text answers the question, 0 to 1, in their order. Raises RerankFailure, at the deadline
        at the latest.
        """
        if (rest := self._rests_until - self._clock.monotonic()) > 0:
            raise RerankFailure(f"it is left alone for {rest:.0f} s more: {self.failures} failures, {self.problem}")
        self._asked += 1
        deadline = time.monotonic() + self._seconds
        asking = asyncio.get_running_loop().run_in_executor(self._lane, self._asker.scores, query, texts, deadline)
        try:
            try:
                scores = await asyncio.wait_for(asking, self._seconds)
            except TimeoutError:
                raise RerankFailure(
                    f"the reranker at {self._asker.place} did not answer within {self._seconds:.3g} s"
                ) from None
        except RerankFailure as error:
            self._note(error)
            raise
        self.failures, self.problem = 0, None
        return probabilities(scores)

    def _note(self, error: RerankFailure) -> None:
        self._failed += 1
        self.failures += 1
        self.problem = str(error)
        if self.failures >= FAILURES:
            self._rests_until = self._clock.monotonic() + REST_SECONDS

    def status(self) -> dict[str, Any]:
        """Return the reranker's part of `daemon status`."""
        return {
            "place": self._asker.place,
            "problem": self.problem,
            "consecutive_failures": self.failures,
            "queries": self._asked,
            "failed_queries": self._failed,
        }

    def close(self) -> None:
        """Take no more work; calls under way end with RerankFailure."""
        self._lane.shutdown(wait=False, cancel_futures=True)
        self._asker.close()
