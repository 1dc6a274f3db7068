"""What check_health can mend by itself: a function for the check of the same name, told what it did.

Postings are written in short transactions with other writers between them; recall goes on meanwhile.

Contract: health.repairs, embedding.identity.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial

from ..calibration.at_start import recalibrate_if_stale
from ..context import Context
from ..model.cuts import content_key
from ..model.kinds import MEMORY, Kind, PassageKind
from ..storage import backlog, health, memories, passages
from ..storage.transaction import Transaction
from .files import open_to_others
from .indexes import damaged
from .rows import echoed, misread
from .view import KINDS, VECTOR_KINDS

CHUNK = 500  # rows whose postings one transaction writes: well below half a second

Repair = Callable[[Context, str], Awaitable[list[str]]]  # the agent whose rows it keeps to, '' for all


async def schema(ctx: Context, agent_id: str) -> list[str]:
    count = await ctx.db.write(health.delete_ownerless)
    return [f"{count} rows without an owner removed"] if count else []


async def lexical_index(ctx: Context, agent_id: str) -> list[str]:
    done = []
    for kind in Kind:
        if await ctx.db.read(health.postings_damage, kind) is not None:
            await ctx.db.write(partial(health.clear_postings, kind=kind))
        surplus = await ctx.db.read(health.postings_without_row, kind)
        for part in chunks(surplus):
            await ctx.db.write(partial(health.drop_postings, kind=kind, ids=part))
        missing = await ctx.db.read(health.rows_without_postings, kind)
        for part in chunks(missing):
            await ctx.db.write(partial(health.put_postings, kind=kind, ids=part))
        if missing or surplus:
            done.append(f"the word index of the {kind.table}: {len(missing)} rows added, {len(surplus)} removed")
    return done


async def vector_index(ctx: Context, agent_id: str) -> list[str]:
    await asyncio.to_thread(ctx.vectors.rebuild)
    return ["the vector indexes were rebuilt"]


async def missing_vectors(ctx: Context, agent_id: str) -> list[str]:
    count = await ctx.db.write(lambda tx: sum(health.enqueue_missing(tx, kind, agent_id) for kind, _ in KINDS))
    long = await ctx.db.write(lambda tx: sum(passages.enqueue_missing(tx, kind, agent_id) for kind in Kind))
    ctx.backlog.wake()
    said = [f"{count} rows were listed for embedding"] if count else []
    return [*said, f"{long} long rows were listed for their passages"] if long else said


async def foreign_vectors(ctx: Context, agent_id: str) -> list[str]:
    count = await enqueue_foreign(ctx, agent_id)
    return [f"{count} rows with a vector of another model were listed for embedding"] if count else []


async def enqueue_foreign(ctx: Context, agent_id: str = "") -> int:
    model, dimension = ctx.embedding.model
    if dimension is None:
        return 0
    count = await ctx.db.write(
        lambda tx: sum(health.enqueue_foreign(tx, kind, model, dimension, agent_id) for kind, _ in VECTOR_KINDS)
    )
    ctx.backlog.wake()
    return count


async def damaged_vectors(ctx: Context, agent_id: str) -> list[str]:
    embeds, removed = ctx.embedding.enabled, 0
    for kind in Kind:
        found = await ctx.db.read(damaged, kind, True, agent_id)

        def job(tx: Transaction, kind: Kind = kind, found: list[int] = found) -> None:
            for row_id in found:
                backlog.detach(tx, kind, [row_id])
                if embeds:
                    backlog.enqueue(tx, kind, row_id)

        if found:
            await ctx.db.write(job)
            removed += len(found)
    for passages_of in PassageKind:
        broken = await ctx.db.read(damaged, passages_of, True, agent_id)
        if broken:
            await ctx.db.write(partial(backlog.make_again, of=passages_of, ids=broken))
            removed += len(broken)
    ctx.backlog.wake()
    return [f"{removed} vectors that were none were removed"] if removed else []


async def permissions(ctx: Context, agent_id: str) -> list[str]:
    done = []
    for path, _ in open_to_others(ctx):
        os.chmod(path, 0o600)
        done.append(f"{path} was closed to others")
    return done


async def contamination(ctx: Context, agent_id: str) -> list[str]:
    embeds, cleaned = ctx.embedding.enabled, 0
    found = [(row_id, text) for row_id, locked, text in await ctx.db.read(echoed, agent_id) if not locked]

    def job(tx: Transaction, part: list[tuple[int, str]]) -> int:
        done = 0
        for row_id, text in part:
            row = memories.find(tx.conn, row_id)
            if row is None or row.locked:
                continue
            if (
                memories.find_in_bucket(tx.conn, row.agent_id, row.project_id, row.channel, content_key(text))
                is not None
            ):
                memories.delete(tx, row_id)  # the memory itself stands beside its echo
            else:
                memories.replace_content(tx, row_id, text)
                if embeds:
                    backlog.enqueue(tx, MEMORY, row_id)
            done += 1
        return done

    for at in range(0, len(found), CHUNK):
        cleaned += await ctx.db.write(partial(job, part=found[at : at + CHUNK]))
    ctx.backlog.wake()
    return [f"{cleaned} memories were freed of the mark of a recalled memory"] if cleaned else []


async def timestamps(ctx: Context, agent_id: str) -> list[str]:
    wrong = await ctx.db.read(misread, agent_id)

    def job(tx: Transaction) -> None:
        for row_id, instant in wrong:
            health.set_instant(tx, row_id, instant)

    if wrong:
        await ctx.db.write(job)
    return [f"{len(wrong)} memories were filed under the instant that their timestamp names"] if wrong else []


async def calibration(ctx: Context, agent_id: str) -> list[str]:
    before = ctx.calibration.current
    await recalibrate_if_stale(ctx)
    return ["the thresholds were measured again"] if ctx.calibration.current is not before else []


async def associations(ctx: Context, agent_id: str) -> list[str]:
    count = await ctx.db.write(lambda tx: health.delete_dangling(tx, agent_id))
    return [f"{count} mentions and relations of what is gone were removed"] if count else []


def chunks(ids: list[int]) -> list[list[int]]:
    return [ids[at : at + CHUNK] for at in range(0, len(ids), CHUNK)]
