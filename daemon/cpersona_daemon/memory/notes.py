"""Notes that follow something outside, such as commits: where that is rewritten, the old note goes and the new one
comes.

Contract: git.notes, git.paths, locks.hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..context import Context
from ..model.cuts import content_key
from ..model.kinds import MEMORY
from ..shared import commit_notes
from ..storage import backlog, batches, memories
from ..storage.idempotency import Key
from ..storage.transaction import Transaction
from .draft import Draft


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
    ctx: Context, agent_id: str, project_id: str, notes: list[Note], key: Key | None, batch: str = ""
) -> dict:
    """Store each note as `store` would and delete what it replaces, all in one transaction; return replace_notes'
    answer.

    A locked note stays beside the new one. What a refused note was to replace stays too. One that is there without the
    paths that it lists today gets them. Vectors come from the background; ``batch`` names the run of new rows.
    """
    coming = {note.msg_id for note in notes}

    def job(tx: Transaction) -> dict:
        deleted, kept, outcomes = 0, [], []
        for note in notes:
            if note.draft is None:
                outcomes.append({"note": note.msg_id, "result": "rejected", "reason": note.reason})
                continue
            for old in note.replaces:
                row = None if old in coming else memories.find_msg_id_in_project(tx.conn, agent_id, project_id, old)
                if row is not None and row.locked:
                    kept.append(MEMORY.ref(row.id))
                elif row is not None:
                    memories.delete(tx, row.id)
                    deleted += 1
            outcomes.append({"note": note.msg_id, **_put(tx, note.draft, batch, ctx.embedding.enabled)})
        answer = {"ok": True, "deleted": deleted, "notes": outcomes}
        if kept:
            answer["kept_locked"] = kept
        return answer

    answer = await ctx.db.write(job, key)
    ctx.backlog.wake()
    return answer


def _put(tx: Transaction, draft: Draft, batch: str, later: bool) -> dict:
    new = draft.memory
    found, reason = memories.find_duplicate(tx.conn, new.agent_id, new.project_id, new.channel, new.msg_id, draft.key)
    if found is None:
        memory_id = memories.insert(tx, new)
        backlog.attach_or_enqueue(tx, MEMORY, memory_id, None, later)
        if batch:
            batches.label(tx, MEMORY, memory_id, batch)
        return {"result": "stored", "id": memory_id, **draft.remarks()}
    if _lacks_paths_alone(tx, found, draft):
        memories.replace_content(tx, found.id, new.content, keeps_vector=True)
        return {"result": "updated", "id": found.id}
    return {"result": "skipped", "reason": reason, "id": found.id}


def _lacks_paths_alone(tx: Transaction, found: memories.Existing, draft: Draft) -> bool:
    """Tell whether a row may get a note's text, which is the row's own but for the line of paths: what is embedded of
    it stays the same. A row that somebody edited says something else.
    """
    message, files, end = commit_notes.parts(draft.memory.content)
    if not files or found.locked or found.content_key != content_key((message + end).lstrip()):
        return False
    place = (found.agent_id, found.project_id, found.channel)
    return memories.find_in_bucket(tx.conn, *place, draft.key) is None
