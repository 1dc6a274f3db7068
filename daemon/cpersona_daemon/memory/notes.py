"""Notes that follow something outside, such as commits or files: where that is rewritten, the old note goes and the new
one comes.

Contract: git.notes, git.paths, notes.upsert, locks.hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..context import Context
from ..model.cuts import content_key
from ..model.kinds import MEMORY
from ..shared import commit_notes
from ..storage import backlog, batches, memories
from ..storage.idempotency import Key
from ..storage.transaction import Transaction
from .draft import Draft

ON_CONFLICT = ("skip", "update")


@dataclass(frozen=True, slots=True)
class Note:
    """A checked memory and the message ids of those it replaces; ``draft`` None, with the reason, for one that was
    refused.
    """

    draft: Draft | None
    replaces: tuple[str, ...]
    msg_id: str
    reason: str = ""


async def replace(
    ctx: Context,
    agent_id: str,
    project_id: str,
    notes: list[Note],
    key: Key | None,
    batch: str = "",
    update: bool = False,
    gone: Sequence[str] = (),
) -> dict:
    """Store each note as `store` would and delete what it replaces, and before all the message ids ``gone``, in one
    transaction; return replace_notes' answer. With ``update`` a note that is there becomes what it is given.

    A locked note stays beside the new one. What a refused note was to replace stays too. One that is there without the
    paths that it lists today gets them. Vectors come from the background; ``batch`` names the run of new rows.
    """
    coming = {note.msg_id for note in notes}

    def job(tx: Transaction) -> dict:
        deleted, kept, outcomes = 0, [], []

        def remove(msg_id: str) -> None:
            nonlocal deleted
            row = memories.find_msg_id_in_project(tx.conn, agent_id, project_id, msg_id)
            if row is not None and row.locked:
                kept.append(MEMORY.ref(row.id))
            elif row is not None:
                memories.delete(tx, row.id)
                deleted += 1

        for old in gone:
            remove(old)
        for note in notes:
            if note.draft is None:
                outcomes.append({"note": note.msg_id, "result": "rejected", "reason": note.reason})
                continue
            for old in note.replaces:
                if old not in coming:
                    remove(old)
            outcomes.append({"note": note.msg_id, **_put(tx, note.draft, batch, ctx.embedding.enabled, update)})
        answer = {"ok": True, "deleted": deleted, "notes": outcomes}
        if kept:
            answer["kept_locked"] = kept
        return answer

    answer = await ctx.db.write(job, key)
    ctx.backlog.wake()
    return answer


def _put(tx: Transaction, draft: Draft, batch: str, later: bool, update: bool) -> dict:
    new = draft.memory
    found, reason = memories.find_duplicate(tx.conn, new.agent_id, new.project_id, new.channel, new.msg_id, draft.key)
    if found is None:
        memory_id = memories.insert(tx, new)
        backlog.attach_or_enqueue(tx, MEMORY, memory_id, None, later)
        if batch:
            batches.label(tx, MEMORY, memory_id, batch)
        return {"result": "stored", "id": memory_id, **draft.remarks()}
    if update and reason == memories.SAME_ID:
        return _update(tx, found, draft, later)
    if _lacks_paths_alone(tx, found, draft):
        memories.replace_content(tx, found.id, new.content, keeps_vector=True)
        return {"result": "updated", "id": found.id}
    return {"result": "skipped", "reason": reason, "id": found.id}


def _update(tx: Transaction, found: memories.Existing, draft: Draft, later: bool) -> dict:
    """Give a row the text, time, source and metadata of a note; the same text keeps its vector."""
    new, skipped = draft.memory, {"result": "skipped", "id": found.id}
    if found.locked:
        return {**skipped, "reason": "locked"}
    other = memories.find_in_bucket(tx.conn, found.agent_id, found.project_id, found.channel, draft.key)
    if other is not None and other.id != found.id:
        return {**skipped, "reason": memories.SAME_CONTENT, "held_by": MEMORY.ref(other.id)}
    rewritten = found.content_key != draft.key or found.cut != draft.cut
    if rewritten:
        memories.replace_content(tx, found.id, new.content, new.whole)
        backlog.attach_or_enqueue(tx, MEMORY, found.id, None, later)
    if not (memories.replace_facts(tx, found.id, new) or rewritten):
        return {**skipped, "reason": memories.SAME_ID}
    return {"result": "updated", "id": found.id, **draft.remarks()}


def _lacks_paths_alone(tx: Transaction, found: memories.Existing, draft: Draft) -> bool:
    """Tell whether a row may get a note's text, which is the row's own but for the line of paths: what is embedded of
    it stays the same. A row that somebody edited says something else.
    """
    message, files, end = commit_notes.parts(draft.memory.content)
    if not files or found.locked or found.content_key != content_key((message + end).lstrip()):
        return False
    place = (found.agent_id, found.project_id, found.channel)
    return memories.find_in_bucket(tx.conn, *place, draft.key) is None
