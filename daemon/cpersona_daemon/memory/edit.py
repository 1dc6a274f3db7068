"""Changing, deleting, locking and unlocking one row.

Contract: edit.update, edit.within, locks.hold.
"""

from __future__ import annotations

from ..context import Context
from ..errors import Refused
from ..model.cuts import Whole, content_key
from ..model.kinds import EPISODE, MEMORY
from ..shared import fields
from ..shared.settings import Settings
from ..storage import backlog, episodes, memories
from ..storage.idempotency import Key
from ..storage.transaction import Transaction
from ..text.embedded import memory_text
from .cleaning import check_text, fit, remarks, sanitise
from .store import check_unlocked, held_by


def within(project: str, agent: str, agent_id: str, project_id: str | None) -> bool:
    """Tell whether a row of this project and agent is one of those that an edit is bound to: '' and None bind nothing.

    As on every read, a project has the global pool's rows with it.
    """
    return (not agent_id or agent == agent_id) and (project_id is None or project in (project_id, ""))


def _refused(why: str, ref: str, project_id: str | None) -> Refused:
    return Refused(why.format(ref=ref) + ("" if project_id is None else ", or lies in another project"))


def _owned(tx: Transaction, memory_id: int, agent_id: str, project_id: str | None) -> memories.Existing:
    row = memories.find(tx.conn, memory_id)
    if row is None or not within(row.project_id, row.agent_id, agent_id, project_id):
        raise _refused(fields.NOT_OWNED, MEMORY.ref(memory_id), project_id)
    return row


def editable(tx: Transaction, memory_id: int, agent_id: str, project_id: str | None) -> memories.Existing:
    """Return a row that may change. With an agent or project given, missing, foreign and locked are one refusal that
    tells nothing apart.
    """
    row = memories.find(tx.conn, memory_id)
    if agent_id or project_id is not None:
        if row is None or row.locked or not within(row.project_id, row.agent_id, agent_id, project_id):
            raise _refused(fields.NOT_EDITABLE, MEMORY.ref(memory_id), project_id)
        return row
    if row is None:
        raise Refused(f"{MEMORY.ref(memory_id)} does not exist")
    check_unlocked(row)
    return row


async def update(
    ctx: Context,
    settings: Settings,
    memory_id: int,
    content: str,
    agent_id: str,
    key: Key | None,
    fail_if_cut: bool = False,
    project_id: str | None = None,
    if_content: str | None = None,
) -> dict:
    """Give a row another text and another vector. Raises Refused for a blank text, a locked, missing or foreign row,
    or a text that another row of the bucket has, and where the row does not say ``if_content``, if that is given. When
    embedding fails the old vector goes, it is never kept.
    """
    cleaned = sanitise(check_text(content, "content"))
    if not cleaned:
        raise Refused("content is empty")
    text, cut = fit(cleaned, settings.max_content_length, "the text", fail_if_cut)
    whole = Whole.of(cleaned, text)
    known_by = content_key(cleaned)
    made = await ctx.embedding.try_now(memory_text(text))

    def job(tx: Transaction) -> dict:
        row = editable(tx, memory_id, agent_id, project_id)
        if if_content is not None and memories.content_of(tx.conn, memory_id) != if_content:
            raise Refused(f"{MEMORY.ref(memory_id)} was changed meanwhile; `cpersona get` shows what it says now")
        other = memories.find_in_bucket(tx.conn, row.agent_id, row.project_id, row.channel, known_by)
        if other is not None and other.id != memory_id:
            raise Refused(held_by(other))
        memories.replace_content(tx, memory_id, text, whole)
        backlog.attach_or_enqueue(tx, MEMORY, memory_id, made, ctx.embedding.enabled)
        return {"ok": True, "updated_id": memory_id, **remarks(cut)}

    answer = await ctx.db.write(job, key)
    if made is None:
        ctx.backlog.wake()
    return answer


def delete_memory(tx: Transaction, memory_id: int, agent_id: str, project_id: str | None = None) -> dict:
    """Remove a row. Raises Refused for a locked, missing or foreign one."""
    editable(tx, memory_id, agent_id, project_id)
    memories.delete(tx, memory_id)
    return {"ok": True, "deleted_id": memory_id}


def set_locked(tx: Transaction, memory_id: int, agent_id: str, locked: bool, project_id: str | None = None) -> dict:
    """Lock or unlock a row; doing it again succeeds. Raises Refused for a missing or foreign one."""
    _owned(tx, memory_id, agent_id, project_id)
    memories.set_locked(tx, memory_id, locked)
    return {"ok": True, ("locked_id" if locked else "unlocked_id"): memory_id}


def delete_episode(tx: Transaction, episode_id: int, agent_id: str, project_id: str | None = None) -> dict:
    """Remove an episode. Raises Refused for a missing or foreign one."""
    owner = episodes.owner(tx.conn, episode_id)
    if owner is None or not within(owner[1], owner[0], agent_id, project_id):
        raise _refused(fields.NOT_OWNED, EPISODE.ref(episode_id), project_id)
    episodes.delete(tx, episode_id)
    return {"ok": True, "deleted_id": episode_id}
