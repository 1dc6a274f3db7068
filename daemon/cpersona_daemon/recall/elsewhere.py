"""Reading for one recall where vectors are searched elsewhere: the engine is asked before the snapshot.

Nothing here costs a recall anything whose engine is in this process.

Contract: vectors.ahead, advisory.says.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import apsw

from ..context import Context
from ..embedding.advice import FAULT_AFTER
from ..embedding.values import Advice
from ..vectors.ahead import ASK_SECONDS, Ahead, Asking, Unasked
from .channels.vectors import asks_of
from .run import Run
from .types import Result

MOST_BEGUN = 8  # times that a recall is begun anew for hits that it turns out to need

T = TypeVar("T")


class Reader:
    """Runs work in a snapshot with the vectors that one recall may ask; ``make`` makes its run of a connection."""

    def __init__(self, ctx: Context, make: partial[Run]) -> None:
        self._ctx, self.make = ctx, make

    async def read(self, work: Callable[[apsw.Connection, Callable[[apsw.Connection], Run]], T]) -> T:
        """Return what the work returns."""
        found: T = await self._ctx.db.read(work, self.make)
        return found

    def advice(self) -> Advice | None:
        """Return what the answer must say of its vectors."""
        return None

    def told(self) -> dict[str, Any] | None:
        """Return who compared vectors, for the account; None where nobody else could have."""
        return None

    def tell(self, result: Result, advisory: bool) -> None:
        """Say in an answer who compared vectors, in its account and where an ``advisory`` is wanted."""
        if result.trace is not None and (told := self.told()) is not None:
            result.trace["vectors"] = told
        if advisory and (advice := self.advice()) is not None:
            result.advice.append(advice)


class _ReaderAhead(Reader):
    def __init__(self, ctx: Context, make: partial[Run], asking: Asking, ahead: Ahead) -> None:
        super().__init__(ctx, partial(make, vectors=ahead))
        self.asking, self.ahead = asking, ahead
        self.deadline = time.monotonic() + ASK_SECONDS

    async def read(self, work: Callable[[apsw.Connection, Callable[[apsw.Connection], Run]], T]) -> T:
        for _ in range(MOST_BEGUN):
            try:
                return await super().read(work)
            except Unasked as more:
                await self.asking.ask(self.ahead, more.asks, self.deadline)
        self.ahead.lack = "it was asked too often for one question"
        return await super().read(work)

    def advice(self) -> Advice | None:
        lack, failures = self.ahead.lack, self.asking.failures
        if lack is None:
            return None
        who = "nobody" if self.ahead.by_words else "the database itself"
        return Advice(
            "fault" if failures >= FAULT_AFTER else "hint",
            f"vectors were compared by {who}, not by the vector service"
            + (", so rows were found by words alone" if self.ahead.by_words else ""),
            lack,
            "`cpersona daemon status` shows what it lacks; nothing is lost, and the next answer of it clears this",
        )

    def told(self) -> dict[str, Any] | None:
        lack, kept = self.ahead.lack, self.asking.capabilities
        told: dict[str, Any] = {"by": "service" if lack is None else "nobody" if self.ahead.by_words else "database"}
        if lack is not None:
            return told | {"why": lack}
        return told | {name: getattr(kept, name) for name in ("exact", "window", "reach")}


async def reader(ctx: Context, make: partial[Run]) -> Reader:
    """Return what reads for a recall; an engine elsewhere is asked now for all that is known to be needed."""
    asking, vector, query = ctx.vectors.elsewhere, make.keywords["vector"], make.keywords["query"]
    if asking is None or vector is None:
        return Reader(ctx, make)
    found = _ReaderAhead(ctx, make, asking, asking.begin(ctx.vectors, ctx.vectors.path, make.keywords["question"].text))
    asks = asks_of(query, vector, make.keywords["scans"], make.keywords["settings"].recall_mode)
    await asking.ask(found.ahead, asks, found.deadline)
    return found
