"""What check_health can mend by itself, by the name of the check, and the rebuilding of every index.

Postings are written in short transactions with other writers between them; recall goes on meanwhile.

Contract: health.repairs, embedding.identity.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

from ..calibration.run import recalibrate_if_stale
from ..context import Context
from ..model.kinds import MEMORY
from ..storage import backlog, health, memories
from ..storage.transaction import Transaction
from .checks import KINDS, damaged, echoed, misread, open_to_others

CHUNK = 500  # rows whose postings one transaction writes: well below half a second
LOAD_WAIT_SECONDS = 30.0

Progress = Callable[[dict], None]
Repair = Callable[[Context, str], Awaitable[list[str]]]  # the agent whose rows it keeps to, '' for all


async def _schema(ctx: Context, agent_id: str) -> list[str]:
    count = await ctx.db.write(health.delete_ownerless)
    return [f"{count} rows without an owner removed"] if count else []


async def _lexical_index(ctx: Context, agent_id: str) -> list[str]:
    done = []
    for kind, name in KINDS:
        if await ctx.db.read(health.postings_damage, kind) is not None:
            await ctx.db.write(lambda tx, kind=kind: health.clear_postings(tx, kind))
        surplus = await ctx.db.read(health.postings_without_row, kind)
        for part in _chunks(surplus):
            await ctx.db.write(lambda tx, kind=kind, part=part: health.drop_postings(tx, kind, part))
        missing = await ctx.db.read(health.rows_without_postings, kind)
        for part in _chunks(missing):
            await ctx.db.write(lambda tx, kind=kind, part=part: health.put_postings(tx, kind, part))
        if missing or surplus:
            done.append(f"the word index of the {name}: {len(missing)} rows added, {len(surplus)} removed")
    return done


async def _vector_index(ctx: Context, agent_id: str) -> list[str]:
    await asyncio.to_thread(ctx.vectors.rebuild)
    return ["the vector indexes were rebuilt"]


async def _missing_vectors(ctx: Context, agent_id: str) -> list[str]:
    count = await ctx.db.write(lambda tx: sum(health.enqueue_missing(tx, kind, agent_id) for kind, _ in KINDS))
    ctx.backlog.wake()
    return [f"{count} rows were listed for embedding"] if count else []


async def _foreign_vectors(ctx: Context, agent_id: str) -> list[str]:
    count = await _enqueue_foreign(ctx, agent_id)
    return [f"{count} rows with a vector of another model were listed for embedding"] if count else []


async def _enqueue_foreign(ctx: Context, agent_id: str = "") -> int:
    model, dimension = ctx.embedding.model
    if dimension is None:
        return 0
    count = await ctx.db.write(
        lambda tx: sum(health.enqueue_foreign(tx, kind, model, dimension, agent_id) for kind, _ in KINDS)
    )
    ctx.backlog.wake()
    return count


async def _damaged_vectors(ctx: Context, agent_id: str) -> list[str]:
    embeds, removed = ctx.embedding.enabled, 0
    for kind, _ in KINDS:
        found = await ctx.db.read(damaged, kind, True, agent_id)

        def job(tx: Transaction, kind: str = kind, found: list[int] = found) -> None:
            for row_id in found:
                health.drop_vector(tx, kind, row_id)
                if embeds:
                    backlog.enqueue(tx, kind, row_id)

        if found:
            await ctx.db.write(job)
            removed += len(found)
    ctx.backlog.wake()
    return [f"{removed} vectors that were none were removed"] if removed else []


async def _permissions(ctx: Context, agent_id: str) -> list[str]:
    done = []
    for path, _ in open_to_others(ctx):
        os.chmod(path, 0o600)
        done.append(f"{path} was closed to others")
    return done


async def _contamination(ctx: Context, agent_id: str) -> list[str]:
    embeds, cleaned = ctx.embedding.enabled, 0
    found = [(row_id, text) for row_id, locked, text in await ctx.db.read(echoed, agent_id) if not locked]

    def job(tx: Transaction, part: list[tuple[int, str]]) -> int:
        done = 0
        for row_id, text in part:
            row = memories.find(tx.conn, row_id)
            if row is None or row.locked:
                continue
            if (
                memories.find_in_bucket(tx.conn, row.agent_id, row.project_id, row.channel, memories.content_key(text))
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
        cleaned += await ctx.db.write(lambda tx, part=found[at : at + CHUNK]: job(tx, part))
    ctx.backlog.wake()
    return [f"{cleaned} memories were freed of the mark of a recalled memory"] if cleaned else []


async def _timestamps(ctx: Context, agent_id: str) -> list[str]:
    wrong = await ctx.db.read(misread, agent_id)

    def job(tx: Transaction) -> None:
        for row_id, instant in wrong:
            health.set_instant(tx, row_id, instant)

    if wrong:
        await ctx.db.write(job)
    return [f"{len(wrong)} memories were filed under the instant that their timestamp names"] if wrong else []


async def _calibration(ctx: Context, agent_id: str) -> list[str]:
    before = ctx.calibration.current
    await recalibrate_if_stale(ctx)
    return ["the thresholds were measured again"] if ctx.calibration.current is not before else []


async def _associations(ctx: Context, agent_id: str) -> list[str]:
    count = await ctx.db.write(lambda tx: health.delete_dangling(tx, agent_id))
    return [f"{count} mentions and relations of what is gone were removed"] if count else []


REPAIRS: dict[str, Repair] = {
    "schema": _schema,
    "lexical_index": _lexical_index,
    "vector_index": _vector_index,
    "missing_vectors": _missing_vectors,
    "foreign_vectors": _foreign_vectors,
    "damaged_vectors": _damaged_vectors,
    "permissions": _permissions,
    "contamination": _contamination,
    "timestamps": _timestamps,
    "calibration": _calibration,
    "associations": _associations,
}


async def reindex(ctx: Context, progress: Progress | None = None) -> dict:
    """Write all postings anew, rebuild the vector indexes, and list for embedding what has no vector of the present model.

    Answers `{ok, memories, episodes, vectors: {memories, episodes}, listed_for_embedding, waiting_for_embedding}`.
    ``progress`` is called with `{done, total}` in rows.
    """
    counts = {kind: await ctx.db.read(health.count_rows, kind) for kind, _ in KINDS}
    total, done = sum(counts.values()), 0
    answer: dict[str, Any] = {"ok": True}
    for kind, name in KINDS:
        if await ctx.db.read(health.postings_damage, kind) is not None:
            await ctx.db.write(lambda tx, kind=kind: health.clear_postings(tx, kind))
        answer[name], after = 0, 0
        while ids := await ctx.db.read(health.ids_after, kind, after, CHUNK):
            answer[name] += await ctx.db.write(lambda tx, kind=kind, ids=ids: health.put_postings(tx, kind, ids))
            after, done = ids[-1], done + len(ids)
            if progress is not None:
                progress({"done": min(done, total), "total": total})
        for part in _chunks(await ctx.db.read(health.postings_without_row, kind)):
            await ctx.db.write(lambda tx, kind=kind, part=part: health.drop_postings(tx, kind, part))
        more = await ctx.db.write(lambda tx, kind=kind: health.merge_postings(tx, kind, True))
        while more:
            more = await ctx.db.write(lambda tx, kind=kind: health.merge_postings(tx, kind, False))
    await asyncio.to_thread(ctx.vectors.rebuild)
    answer["vectors"] = {name: await ctx.db.read(health.usable_vectors, kind) for kind, name in KINDS}
    answer["listed_for_embedding"] = 0
    if ctx.embedding.enabled:
        # Where it does not answer, what is missing is listed all the same, and the backlog goes on when it is back.
        await ctx.embedding.learn(LOAD_WAIT_SECONDS)
        answer["listed_for_embedding"] = await ctx.db.write(
            lambda tx: sum(health.enqueue_missing(tx, kind) for kind, _ in KINDS)
        )
        answer["listed_for_embedding"] += await _enqueue_foreign(ctx)
        ctx.backlog.wake()
    answer["waiting_for_embedding"] = await ctx.db.read(backlog.count)
    return answer


def _chunks(ids: list[int]) -> list[list[int]]:
    return [ids[at : at + CHUNK] for at in range(0, len(ids), CHUNK)]
