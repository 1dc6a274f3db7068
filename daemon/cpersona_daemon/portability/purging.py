"""Deleting rows for good: what they said is neither in the history nor anywhere else in the store's files.

A deletion leaves words in segments of the word index until they are merged, codes of vectors in the index files until
these are built anew, and texts on free pages and in the log. So the segments are merged, the files built and the
database written anew.

Contract: past.purged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from ..context import Context
from ..errors import CPersonaError, Refused, StorageFailure
from ..memory import edit
from ..model.kinds import MEMORY, Kind, Rid
from ..storage import idempotency, past, records
from ..storage.idempotency import Key
from ..storage.transaction import Transaction
from .progress import Progress
from .sweep import tidy

log = logging.getLogger("cpersona.purging")


async def purge(
    ctx: Context,
    rids: Sequence[Rid],
    agent_id: str,
    project_id: str | None = None,
    key: Key | None = None,
    progress: Progress | None = None,
) -> dict:
    """Delete rows, and all that is kept of them, for good, and return purge_rows' answer: `{ok, purged, kept?,
    log_held?}`.

    ``kept`` are those that stay, with the reasons; rows that are gone already are purged of what is kept of them.
    Raises Refused where none can be purged. Where the caller leaves, the rest is done in the background.
    """

    def job(tx: Transaction) -> dict:
        purged, kept, why = [], [], ""
        for kind, row_id in rids:
            ref = Kind(kind).ref(row_id)
            try:
                _delete(tx, (kind, row_id), agent_id, project_id)
            except Refused as error:
                why = why or str(error)
                kept.append({"ref": ref, "reason": str(error)})
            else:
                purged.append(ref)
        if not purged:
            raise Refused(why)
        idempotency.forget_told(tx.conn)
        return {"ok": True, "purged": purged, **({"kept": kept} if kept else {})}

    async with ctx.moving:
        answer = await ctx.db.write(job, key)
        try:
            return answer | await leave_no_trace(ctx, progress)
        except asyncio.CancelledError:
            ctx.in_background(finish_quietly(ctx))
            raise


def _delete(tx: Transaction, rid: Rid, agent_id: str, project_id: str | None) -> None:
    kind, row_id = Kind(rid[0]), rid[1]
    if not records.by_rids(tx.conn, [rid]):
        if not past.of_row(tx.conn, rid, agent_id, project_id, 1)[0]:
            raise Refused(f"{kind.ref(row_id)} does not exist, and nothing is kept of it")
    elif kind == MEMORY:
        edit.delete_memory(tx, row_id, agent_id, project_id)
    else:
        edit.delete_episode(tx, row_id, agent_id, project_id)
    past.purge(tx, rid)


async def leave_no_trace(ctx: Context, progress: Progress | None = None) -> dict:
    """Write every file of the store anew without what was deleted before; the caller holds ``ctx.moving``.

    Answers `{log_held: true}` where another program kept the log from being emptied. Writes wait while the database is
    written. An engine elsewhere is told of deletions as ever. Raises StorageFailure.
    """
    told = progress or (lambda stage: None)
    try:
        told({"stage": "merging words"})
        await tidy(ctx)
        if ctx.vectors.elsewhere is None:
            told({"stage": "building indexes"})
            await asyncio.to_thread(ctx.vectors.rebuild)
        told({"stage": "writing the database"})
        emptied = await ctx.db.rewrite()
    except CPersonaError as error:
        raise StorageFailure(
            f"all is deleted, but what it said may still stand in the store's files ({error});"
            " purge any row, or forget any agent, once that is mended"
        ) from error
    return {} if emptied else {"log_held": True}


async def finish_quietly(ctx: Context) -> None:
    """Do the same in the background, for a caller that left; what keeps it from that is logged."""
    try:
        async with ctx.moving:
            with ctx.status.at_work("purge"):
                await leave_no_trace(ctx)
    except CPersonaError as error:
        log.warning("%s", error)
        ctx.status.warn(str(error))
