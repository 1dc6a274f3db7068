"""Asking a store: what both kinds of gates are measured on.

Contract: calibration.gates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..context import Context
from ..model.identity import Embedded
from ..model.kinds import Rid
from ..recall import pipeline
from ..recall.types import Candidate, Query
from ..shared.settings import Settings
from ..storage.candidates import facts

QUERIES_AT_ONCE = 2  # of four readers: the others stay free for requests


async def ask(
    ctx: Context, settings: Settings, queries: Sequence[tuple[Query, Embedded | None]]
) -> list[list[Candidate]]:
    """Put queries, each with its vector, to the live pipeline and return the rows that each found."""
    free = asyncio.Semaphore(QUERIES_AT_ONCE)

    async def one(query: Query, made: Embedded | None) -> list[Candidate]:
        async with free:
            return [c for c in await pipeline.candidates(ctx, settings, query, made) if not c.is_profile]

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(*query)) for query in queries]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def instants_of(ctx: Context, found: Sequence[Sequence[Candidate]]) -> dict[Rid, float | None]:
    """Return the instant of every row found."""
    known = await ctx.db.read(facts, sorted({c.rid for rows in found for c in rows}))
    return {rid: fact.instant for rid, fact in known.items()}


def near(one: float | None, other: float | None, window: float) -> bool:
    """Tell whether two instants lie within ``window`` seconds; one that is not known is near to nothing."""
    return one is not None and other is not None and abs(one - other) <= window
