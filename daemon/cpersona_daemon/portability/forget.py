"""Erasing an agent: one short transaction after which nobody sees anything of it, then the deletion itself.

Contract: forget.agent, past.purged.
"""

from __future__ import annotations

import asyncio

import numpy as np

from ..context import Context
from ..errors import Refused
from ..model.changes import Hidden, Purged
from ..model.kinds import Kind
from ..storage import canaries, hidden, history, idempotency, past, transfer
from ..storage.idempotency import Key
from ..storage.transaction import Transaction
from . import purging
from .counted import associations
from .progress import Progress
from .sweep import finish


async def forget_agent(ctx: Context, agent_id: str, key: Key | None = None, progress: Progress | None = None) -> dict:
    """Remove everything of an agent, locked rows too, and return delete_agent_data's answer once nothing of it is left.

    Raises Refused for ''. Whatever ends it early leaves all of it or nothing to be seen; the rest is deleted in the
    background.
    """
    if not agent_id:
        raise Refused("agent_id is empty; name the agent whose data is to be deleted")
    async with ctx.moving:
        answer = await ctx.db.write(lambda tx: _hide(tx, agent_id), key)
        await asyncio.to_thread(ctx.calibration.forget, agent_id)
        ctx.recent.forget(agent_id)
        try:
            await finish(
                ctx,
                progress,
                answer["deleted_memories"] + answer["deleted_episodes"],
                f"nobody sees anything of {agent_id!r} any more, but not all of it could be deleted",
            )
            answer |= await purging.leave_no_trace(ctx, progress)
        except asyncio.CancelledError:
            ctx.in_background(purging.finish_quietly(ctx))
            raise
    return answer


def _hide(tx: Transaction, agent_id: str) -> dict:
    declared = transfer.counts(tx.conn, agent_id)
    for table in hidden.TABLES:
        hidden.hide_agent(tx, table, agent_id)
    tx.changes += [Hidden(kind, np.array(hidden.ids(tx.conn, kind.table), np.int64)) for kind in Kind]
    tx.changes.append(Purged(agent_id))
    canaries.remove_agent(tx, agent_id)
    history.forget(tx, agent_id)
    past.forget_agent(tx, agent_id)
    idempotency.forget_told(tx.conn)
    answer = {
        "ok": True,
        "agent_id": agent_id,
        "deleted_memories": declared["memory"],
        "deleted_profiles": transfer.delete_profiles(tx, agent_id),
        "deleted_episodes": declared["episode"],
    }
    if not any(declared.values()):
        answer["unknown_agent"] = True
    if deleted := associations(declared):
        answer["deleted_associations"] = deleted
    return answer
