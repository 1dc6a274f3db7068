"""Taking a named batch back, in short transactions with other writers between them.

Contract: batch.undo.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw

from ..context import Context
from ..errors import Refused
from ..model.kinds import EPISODE, MEMORY, Kind
from ..storage import batches, episodes, memories
from ..storage.transaction import Transaction
from .cleaning import check_short

ROWS_A_TRANSACTION = 200
REFS_SHOWN = 100


def check_name(batch: object) -> str:
    """Return the name of a batch, '' for none. Raises Refused for what cannot be one."""
    if batch is None or batch == "":
        return ""
    if not isinstance(batch, str) or not batch.strip():
        raise Refused("batch is a name, and not blank")
    return check_short(batch, "batch")


async def undo(
    ctx: Context, batch: str, agent_id: str, progress: Callable[[dict], None] | None, sees_others: bool
) -> dict:
    """Delete what a batch wrote for an agent ('' = all) and return undo_batch's answer.

    Locked memories stay, and stay labelled. What was skipped or updated in the run was not written by it.
    ``sees_others``: whether who asks may know that the run wrote for other agents too. Ended early, it has deleted some
    rows and another call deletes the rest.
    """
    name = _named(batch)
    whole = await ctx.db.read(batches.total, name, agent_id)
    counts = dict.fromkeys(Kind, 0)
    act: int | None = None

    def step(tx: Transaction) -> tuple[int, int, int | None]:
        tx.act = act  # all of a run comes back together
        doomed = batches.unlocked_memories(tx.conn, name, agent_id, ROWS_A_TRANSACTION)
        for memory_id in doomed:
            memories.delete(tx, memory_id)
        gone = batches.episodes(tx.conn, name, agent_id, ROWS_A_TRANSACTION - len(doomed))
        for episode_id in gone:
            episodes.delete(tx, episode_id)
        return len(doomed), len(gone), tx.act

    while True:
        doomed, gone, act = await ctx.db.write(step)
        counts[MEMORY] += doomed
        counts[EPISODE] += gone
        if doomed + gone < ROWS_A_TRANSACTION:
            break
        if progress is not None:
            progress({"done": sum(counts.values()), "total": whole})
    return await ctx.db.read(_answer, name, agent_id, counts[MEMORY], counts[EPISODE], 0, sees_others)


def listed(conn: apsw.Connection, agent_id: str, at_most: int) -> dict:
    """Return list_batches' answer: `{batches: [{batch, memories, episodes, first, last, agents?}], count, more}`, the
    latest first; agents are named where those of all ('') are asked for.
    """
    found = batches.overview(conn, agent_id, at_most + 1)
    rows = [
        {
            "batch": row.batch,
            "memories": row.memories,
            "episodes": row.episodes,
            "locked": row.locked,
            "first": row.first,
            "last": row.last,
            **({} if agent_id else {"agents": row.agents}),
        }
        for row in found[:at_most]
    ]
    return {"batches": rows, "count": len(rows), "more": len(found) > at_most}


def count(conn: apsw.Connection, batch: str, agent_id: str, sees_others: bool) -> dict:
    """Return what ``undo`` would answer, and delete nothing."""
    name, every = _named(batch), -1
    doomed = len(batches.unlocked_memories(conn, name, agent_id, every))
    gone = len(batches.episodes(conn, name, agent_id, every))
    return {**_answer(conn, name, agent_id, doomed, gone, doomed + gone, sees_others), "dry_run": True}


def _answer(
    conn: apsw.Connection, name: str, agent_id: str, doomed: int, gone: int, still: int, sees_others: bool
) -> dict:
    """Return the answer; ``still``: how many of the rows that are counted as deleted are there."""
    kept, shown = batches.locked_memories(conn, name, agent_id, REFS_SHOWN)
    answer = {"ok": True, "batch": name, "deleted_memories": doomed, "deleted_episodes": gone, "kept_locked": kept}
    if kept:
        answer["kept"] = [MEMORY.ref(i) for i in shown]
    if sees_others and (left := batches.total(conn, name, "")) > kept + still:
        answer["other_agents"] = left - kept - still
    return answer


def _named(batch: str) -> str:
    name = check_name(batch)
    if not name:
        raise Refused("batch is empty; name the run to take back")
    return name
