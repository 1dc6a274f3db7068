"""The daemon about itself: how it is, and its end.

Contract: daemon.tells, daemon.life, progress.measured, progress.committed.
"""

from __future__ import annotations

import os
from typing import Any

import apsw
import msgspec

from ... import __version__
from ...errors import Busy
from ...shared import fields
from ...storage import backlog, canaries, passages, past
from ..registry import Call, Handler

LONGEST_WAIT_SECONDS = 10.0  # for the end of a run that is asked about
_NAMED = 5  # clients that are named in one line


class DaemonStatusParams(msgspec.Struct, forbid_unknown_fields=True):
    """No parameters."""


class DaemonStopParams(msgspec.Struct, forbid_unknown_fields=True):
    """``unless_others``: only where nobody else is connected; the daemon's own work in the background is nobody."""

    unless_others: bool = False


class BacklogStatusParams(msgspec.Struct, forbid_unknown_fields=True):
    """``upto``: the largest id of each kind (`mem`, `ep`) that counts, as an earlier answer told it."""

    upto: dict[str, int] | None = None


class RunStatusParams(msgspec.Struct, forbid_unknown_fields=True):
    """``key``: the idempotency key of the request that is asked about; ``wait_seconds``: how long its end is waited
    for, bounded to 10.
    """

    key: str
    wait_seconds: float = 0.0


async def daemon_status(call: Call) -> dict:
    """Answer versions, process, storage counts, vectors, embedding, calibration, load, failures and warnings."""
    ctx = call.ctx
    return {
        "version": __version__,
        "protocol": fields.PROTOCOL,
        "pid": os.getpid(),
        "db": ctx.places.db,
        "log": ctx.places.log,
        "rows": await ctx.db.read(_counts),
        "vectors": ctx.vectors.status(),
        **({} if ctx.vectors.outbox is None else {"outbox": await ctx.db.read(ctx.vectors.outbox.status)}),
        **({} if ctx.vectors.elsewhere is None else {"vector_service": ctx.vectors.elsewhere.status()}),
        "passages": await ctx.db.read(passages.count),
        "history": {**await ctx.db.read(past.size), "days": ctx.settings.history_days},
        "embedding": ctx.embedding.status(),
        **({} if ctx.reranker is None else {"rerank": ctx.reranker.status()}),
        "backlog": await ctx.backlog.status(),
        "spool": ctx.spool.status(),
        "calibration": ctx.calibration.summary(),
        "canaries": await ctx.db.read(canaries.counts),
        "writes_in_flight": ctx.db.writes_in_flight,
        "access_file": not ctx.access.open,
        "settings": {n: ctx.settings.origin(n) for n in sorted(ctx.daemon.server.identity["settings"])},
        **ctx.daemon.status(),
        **ctx.status.snapshot(),
    }


async def backlog_status(call: Call) -> dict:
    """Answer what waits for vectors, how fast it goes and how long it takes, as far as that was measured.

    `works` tells whether anything is ever embedded here, `upto` what is stored now, to ask later for that alone.
    """
    ctx, upto = call.ctx, call.params.upto
    told = await ctx.backlog.status(upto)
    return {**told, "works": ctx.backlog.works, "upto": upto or await ctx.db.read(backlog.newest)}


async def run_status(call: Call) -> dict:
    """Answer how far a long request came, `{known, running, reached, final}`: ``final`` where ``reached`` is the last
    that was committed, and nothing more will be.
    """
    p = call.params
    return await call.ctx.runs.told(call.caller.client_id, p.key, min(max(p.wait_seconds, 0.0), LONGEST_WAIT_SECONDS))


async def daemon_stop(call: Call) -> dict:
    """Ask the daemon to leave; it answers this, finishes what runs and is gone when the database's lock is free.

    Raises Busy with the names of others, where it is to spare them.
    """
    server = call.ctx.daemon.server
    others = server.clients(besides=server.asking()) if call.params.unless_others else []
    if others:
        raise Busy(f"others are at work with the daemon: {_named(others)}")
    call.ctx.daemon.request_stop("a client asked for it")
    return {"ok": True, "stopping": True, "pid": os.getpid()}


def _named(clients: list[dict]) -> str:
    names = [
        f"process {one['pid'] or 'unknown'} ({one['method'] or 'connected'} for {_age(one['seconds'])})"
        for one in clients[:_NAMED]
    ]
    rest = len(clients) - _NAMED
    return ", ".join(names) + (f" and {rest} more" if rest > 0 else "")


def _age(seconds: float) -> str:
    for limit, unit, name in ((120, 1, "s"), (7200, 60, "min")):
        if seconds < limit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds / 3600:.0f} h"


def _counts(conn: apsw.Connection) -> dict[str, Any]:
    names = ("memories", "episodes", "profiles", "entities", "relations")
    (counts,) = conn.execute("SELECT " + ", ".join(f"(SELECT count(*) FROM {n})" for n in names))
    return dict(zip(names, counts, strict=True))


HANDLERS = {
    "daemon_status": Handler(DaemonStatusParams, daemon_status),
    "backlog_status": Handler(BacklogStatusParams, backlog_status),
    "run_status": Handler(RunStatusParams, run_status),
    "daemon_stop": Handler(DaemonStopParams, daemon_stop),
}
