"""Handler of store_stats: what a store is made of, for a person who looks after it.

Contract: stats.bounded, access.denial.
"""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, date, datetime, timedelta
from typing import Any

import apsw
import msgspec

from ...context import Context
from ...errors import InvalidParams
from ...model.scope import Scope
from ...shared.paths import Places
from ...storage import stats, vector_counts
from ...vectors.choice import files_of
from ..registry import Call, Handler

MOST_DAYS = 366
_RECALLS = ("recall", "recall_with_context", "reconstruct")


class StatsParams(msgspec.Struct, forbid_unknown_fields=True):
    """``days``: how many days back, today's included, memories are counted a day."""

    agent_id: str = ""
    days: int = 30


async def store_stats(call: Call) -> dict:
    """Answer counts by day, agent, project, channel and source, lengths, recalls and the backlog of an agent, and of
    all where none is named; then recalls since the start and the sizes of the files beside.
    """
    p, ctx = call.params, call.ctx
    if not 1 <= p.days <= MOST_DAYS:
        raise InvalidParams(f"days is {p.days}; it takes 1 to {MOST_DAYS}")
    today = datetime.fromtimestamp(ctx.clock.now(), UTC).date()
    told = await ctx.db.read(_read, p.agent_id, today - timedelta(days=p.days - 1), p.days)
    if not p.agent_id:
        told["asked"] = _asked(ctx)
        told["sizes"] = {**await ctx.db.read(_pages), **await asyncio.to_thread(_files, ctx.places)}
    return {"agent_id": p.agent_id, **told, "backlog": await _backlog(ctx, p.agent_id)}


def _read(conn: apsw.Connection, agent_id: str, first: date, days: int) -> dict[str, Any]:
    return stats.read(conn, agent_id, first, days)


async def _backlog(ctx: Context, agent_id: str) -> dict[str, Any]:
    """Return what waits for vectors; of one agent the rows alone, as the rate is that of all."""
    if not agent_id:
        told: dict[str, Any] = await ctx.backlog.status()
        return told
    return {"pending": await ctx.db.read(vector_counts.waiting, Scope(agent_id))}


def _asked(ctx: Context) -> dict[str, Any]:
    """Return how often recalls of any kind were asked for since the daemon started, and how long the median took."""
    told = ctx.status.snapshot()["methods"]
    return {name: {"calls": told[name]["count"], "p50_ms": told[name]["p50_ms"]} for name in _RECALLS if name in told}


def _pages(conn: apsw.Connection) -> dict[str, int]:
    used, free = stats.pages(conn)
    return {"database": used + free, "free": free}


def _files(places: Places) -> dict[str, int]:
    """Return the bytes of what stands beside the database."""
    return {"wal": _size(places.db + "-wal"), "indexes": sum(_size(path) for path in files_of(places))}


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


HANDLERS = {"store_stats": Handler(StatsParams, store_stats)}
