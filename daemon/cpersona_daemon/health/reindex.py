"""Rebuilding every index from the rows.

Contract: health.repairs, embedding.identity.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from ..context import Context
from ..storage import backlog, health, passages
from .repairs import CHUNK, chunks, enqueue_foreign
from .view import KINDS

LOAD_WAIT_SECONDS = 30.0

Progress = Callable[[dict[str, Any]], None]


async def reindex(ctx: Context, progress: Progress | None = None, vectors: bool = False) -> dict:
    """Write all postings anew, rebuild the vector indexes, and list for embedding what has no vector of today's model.

    With ``vectors`` the postings stay as they are. A vector service is sent everything anew.

    Answers `{ok, memories, episodes, vectors: {memories, episodes}, listed_for_embedding, waiting_for_embedding,
    waiting_for_passages}`, without memories and episodes where these stay; a row whose vector is made anew is listed
    for passages once it has it. ``progress`` is called with `{done, total}` in rows.
    """
    answer: dict[str, Any] = {"ok": True}
    if not vectors:
        answer |= await _postings(ctx, progress)
    await asyncio.to_thread(ctx.vectors.rebuild)
    answer["vectors"] = {name: await ctx.db.read(health.usable_vectors, kind) for kind, name in KINDS}
    answer["listed_for_embedding"] = 0
    if ctx.embedding.enabled:
        # Where it does not answer, what is missing is listed all the same, and the backlog goes on when it is back.
        await ctx.embedding.learn(LOAD_WAIT_SECONDS)
        answer["listed_for_embedding"] = await ctx.db.write(
            lambda tx: sum(health.enqueue_missing(tx, kind) for kind, _ in KINDS)
        )
        answer["listed_for_embedding"] += await enqueue_foreign(ctx)
        await ctx.db.write(lambda tx: sum(passages.enqueue_missing(tx, kind) for kind, _ in KINDS))
        ctx.backlog.wake()
    rate = ctx.backlog.rate
    if rate is not None:
        answer["rows_per_second"] = round(rate, 2)
    answer["waiting_for_embedding"] = await ctx.db.read(backlog.count)
    answer["waiting_for_passages"] = await ctx.db.read(backlog.count_passages)
    return answer


async def _postings(ctx: Context, progress: Progress | None) -> dict[str, int]:
    """Write all postings anew, and return of how many memories and episodes."""
    counts = {kind: await ctx.db.read(health.count_rows, kind) for kind, _ in KINDS}
    total, done = sum(counts.values()), 0
    written: dict[str, int] = {}
    for kind, name in KINDS:
        if await ctx.db.read(health.postings_damage, kind) is not None:
            await ctx.db.write(partial(health.clear_postings, kind=kind))
        written[name], after = 0, 0
        while ids := await ctx.db.read(health.ids_after, kind, after, CHUNK):
            written[name] += await ctx.db.write(partial(health.put_postings, kind=kind, ids=ids))
            after, done = ids[-1], done + len(ids)
            if progress is not None:
                progress({"done": min(done, total), "total": total})
        for part in chunks(await ctx.db.read(health.postings_without_row, kind)):
            await ctx.db.write(partial(health.drop_postings, kind=kind, ids=part))
        more = await ctx.db.write(partial(health.merge_postings, kind=kind, begin=True))
        while more:
            more = await ctx.db.write(partial(health.merge_postings, kind=kind, begin=False))
    return written
