"""Bringing a row back as it was, from what is kept of it.

Contract: past.kept, past.acts, locks.hold.
"""

from __future__ import annotations

import apsw

from ..context import Context
from ..errors import Refused
from ..model.cuts import Whole
from ..model.identity import Embedded
from ..model.kinds import EPISODE, MEMORY, Kind, Rid
from ..storage import backlog, batches, episodes, hidden, history, memories, past, records, relinking
from ..storage.idempotency import Key
from ..storage.memories import NewMemory
from ..storage.past import Entry
from ..storage.transaction import Transaction
from . import edit
from .store import check_unlocked, held_by

RETURNED, CHANGED, UNCHANGED, REMOVED = "returned", "changed", "unchanged", "removed"


async def restore(
    ctx: Context, rid: Rid, version: int, agent_id: str, project_id: str | None = None, key: Key | None = None
) -> dict:
    """Make a row what it was before the act that ``version`` counts back to (1: the latest), and return restore_row's
    answer: `{ok, ref, result, dropped_links?}`.

    Raises Refused where nothing of it is kept, for a locked row, and where its key or its text stands elsewhere now.
    """
    kind, row_id = Kind(rid[0]), rid[1]
    ref = kind.ref(row_id)

    def job(tx: Transaction) -> dict:
        entry, count = past.former(tx.conn, rid, agent_id, project_id, version)
        if not count:
            raise Refused(f"nothing is kept of {ref}; `cpersona help history` says what is, and for how long")
        if entry is None:
            raise Refused(f"of {ref} {count} earlier {_texts(count)} kept; `cpersona history {ref}` lists them")
        if kind == MEMORY and memories.find(tx.conn, row_id) is not None:
            edit.editable(tx, row_id, agent_id, project_id)
        result, dropped = bring_back(ctx, tx, entry)
        return {"ok": True, "ref": ref, "result": result, **({"dropped_links": dropped} if dropped else {})}

    answer = await ctx.db.write(job, key)
    ctx.backlog.wake()
    return answer


def _texts(count: int) -> str:
    return "text is" if count == 1 else "texts are"


def bring_back(ctx: Context, tx: Transaction, entry: Entry) -> tuple[str, int]:
    """Make a row what an entry says, whatever it is now; return what that took, and how many links name what is gone.

    Raises Refused for a locked row, and where its key or its text stands elsewhere now.
    """
    if entry.text is None:
        return _remove(tx, entry), 0
    there = records.by_rids(tx.conn, [(entry.kind, entry.row_id)]).get((entry.kind, entry.row_id))
    if there is not None and entry.kind == EPISODE:
        return UNCHANGED, 0  # an episode is never changed
    if there is not None:
        return _change(ctx, tx, entry), 0
    new = _memory(entry) if entry.kind == MEMORY else None
    if new is not None:
        _check_room(tx.conn, entry, new)
    gone = past.when_deleted(tx.conn, (entry.kind, entry.row_id)) or entry
    if hidden.holds(tx.conn, entry.kind.table, entry.row_id):
        records.delete(tx, entry.kind, entry.row_id, noted=False)
    past.note_return(tx, entry)
    history.note_return(tx, entry.kind, entry.agent_id, entry.created_at, gone.at)
    if new is None:
        episodes.insert(tx, _episode(entry), entry.row_id)
    else:
        memories.insert_again(tx, entry.row_id, new)
    if entry.batch:
        batches.label(tx, entry.kind, entry.row_id, entry.batch)
    _give_vector(ctx, tx, entry)
    return RETURNED, relinking.relink(tx, entry.kind, entry.row_id, entry.agent_id, gone.links)


def _remove(tx: Transaction, entry: Entry) -> str:
    if entry.kind == MEMORY:
        row = memories.find(tx.conn, entry.row_id)
        if row is None:
            return UNCHANGED
        check_unlocked(row)
    elif episodes.owner(tx.conn, entry.row_id) is None:
        return UNCHANGED
    records.delete(tx, entry.kind, entry.row_id)
    return REMOVED


def _change(ctx: Context, tx: Transaction, entry: Entry) -> str:
    """Give a memory that is there the text, time, source and metadata that it had."""
    row = memories.find(tx.conn, entry.row_id)
    if row is None:
        return UNCHANGED
    check_unlocked(row)
    new = _memory(entry)
    rewritten = row.content_key != new.key or memories.content_of(tx.conn, entry.row_id) != new.content
    if rewritten:
        other = memories.find_in_bucket(tx.conn, entry.agent_id, entry.project_id, entry.channel, new.key)
        if other is not None and other.id != entry.row_id:
            raise Refused(held_by(other))
        memories.replace_content(tx, entry.row_id, new.content, new.whole, act=past.RETURN)
        _give_vector(ctx, tx, entry)
    return CHANGED if memories.replace_facts(tx, entry.row_id, new, act=past.RETURN) or rewritten else UNCHANGED


def _check_room(conn: apsw.Connection, entry: Entry, new: NewMemory) -> None:
    """Raise Refused where another memory has the key or the text of one that comes back."""
    holder = memories.find_msg_id_in_project(conn, new.agent_id, new.project_id, new.msg_id)
    if holder is not None:
        ref = MEMORY.ref(holder.id)
        raise Refused(
            f"{entry.ref} cannot come back: {ref} has its key {new.msg_id!r} now; `cpersona get {ref}` shows it"
        )
    other = memories.find_in_bucket(conn, new.agent_id, new.project_id, new.channel, new.key)
    if other is not None:
        raise Refused(f"{entry.ref} cannot come back: {held_by(other)}")


def _give_vector(ctx: Context, tx: Transaction, entry: Entry) -> None:
    """Give a row the vector that is kept of it, where that is of today's model, else list it for a new one."""
    made = None
    if entry.vector is not None and entry.model is not None and len(entry.vector) % 4 == 0:
        import numpy as np

        width = len(entry.vector) // 4
        known = backlog.known_width(tx.conn) == (entry.model, width)
        if known and (not ctx.embedding.enabled or ctx.embedding.model.fits(entry.model, width)):
            made = Embedded(np.frombuffer(entry.vector, "<f4"), entry.model)
    backlog.attach_or_enqueue(tx, entry.kind, entry.row_id, made, ctx.embedding.enabled)


def _whole(entry: Entry) -> Whole | None:
    length, key = entry.fields["whole_length"], entry.fields["whole_key"]
    return None if length is None or key is None else Whole(length, bytes.fromhex(key))


def _memory(entry: Entry) -> NewMemory:
    told = entry.fields
    return NewMemory(
        entry.agent_id,
        entry.text or "",
        entry.project_id,
        entry.channel,
        told["msg_id"],
        told["source"],
        told["timestamp"],
        told["metadata"],
        entry.created_at,
        bool(told["locked"]),
        told["recall_count"],
        told["last_recalled_at"],
        _whole(entry),
    )


def _episode(entry: Entry) -> episodes.NewEpisode:
    told = entry.fields
    return episodes.NewEpisode(
        entry.agent_id,
        entry.text or "",
        told["keywords"],
        entry.project_id,
        entry.channel,
        told["start_time"],
        told["end_time"],
        bool(told["resolved"]),
        entry.created_at,
        _whole(entry),
    )
