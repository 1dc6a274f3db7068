"""Storing a memory: probe, embed outside any transaction, write once.

Contract: store.answer, store.embeds, dedup.skip, dedup.conflict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw

from ..associations import declare
from ..context import Context
from ..errors import Refused
from ..model.identity import Embedded
from ..model.kinds import MEMORY
from ..storage import backlog, batches, idempotency, memories
from ..storage.idempotency import Key
from ..storage.transaction import Transaction
from ..text.embedded import memory_text
from .cleaning import remarks
from .draft import Draft

ON_CONFLICT = ("skip", "update", "fail")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What one call of store wants written, and under which conditions."""

    draft: Draft
    on_conflict: str
    associations: Any
    declared_by: str
    batch: str

    def needs_vector(self, conn: apsw.Connection, key: Key | None) -> bool:
        """Tell whether the write would put a text in place, so that its vector is worth making before."""
        if key is not None and idempotency.known(conn, key):
            return False
        existing, _ = self._duplicate(conn)
        return existing is None or (self.on_conflict == "update" and self._brings_more(existing))

    def write(self, tx: Transaction, made: Embedded | None, later: bool) -> dict:
        """Store, update or skip, and return the answer. Raises Refused."""
        existing, reason = self._duplicate(tx.conn)
        if existing is None:
            return self._insert(tx, made, later)
        if self.on_conflict == "fail":
            ref = MEMORY.ref(existing.id)
            raise Refused(f"{reason}: {ref} is there already; `cpersona get {ref}` shows it")
        if self.on_conflict == "update" and self._brings_more(existing):
            return self._update(tx, existing, made, later)
        answer = {"ok": True, "result": "skipped", "reason": reason, "id": existing.id}
        if existing.content_key != self.draft.key:
            answer["content_differs"] = True
        return answer | remarks(existing.cut)

    def _duplicate(self, conn: apsw.Connection) -> tuple[memories.Existing | None, str]:
        new = self.draft.memory
        return memories.find_duplicate(conn, new.agent_id, new.project_id, new.channel, new.msg_id, self.draft.key)

    def _brings_more(self, existing: memories.Existing) -> bool:
        """Tell whether the draft is another text than a row's, or more of the text that the row begins."""
        more = existing.kept_length is not None and len(self.draft.memory.content) > existing.kept_length
        return existing.content_key != self.draft.key or more

    def _insert(self, tx: Transaction, made: Embedded | None, later: bool) -> dict:
        new = self.draft.memory
        memory_id = memories.insert(tx, new)
        backlog.attach_or_enqueue(tx, MEMORY, memory_id, made, later)
        answer = {"ok": True, "result": "stored", "id": memory_id, "embedded": made is not None, **self.draft.remarks()}
        if new.locked:
            answer["locked"] = True
        if self.associations:
            answer["associations"] = declare.declare(
                tx,
                new.agent_id,
                new.project_id,
                new.channel,
                self.associations,
                anchor_ref=MEMORY.ref(memory_id),
                declared_by=self.declared_by,
            )
        if self.batch:
            batches.label(tx, MEMORY, memory_id, self.batch)
        return answer

    def _update(self, tx: Transaction, existing: memories.Existing, made: Embedded | None, later: bool) -> dict:
        check_unlocked(existing)
        other = memories.find_in_bucket(
            tx.conn, existing.agent_id, existing.project_id, existing.channel, self.draft.key
        )
        if other is not None and other.id != existing.id:
            raise Refused(held_by(other))
        memories.replace_content(tx, existing.id, self.draft.memory.content, self.draft.memory.whole)
        backlog.attach_or_enqueue(tx, MEMORY, existing.id, made, later)
        return {
            "ok": True,
            "result": "updated",
            "id": existing.id,
            "embedded": made is not None,
            **self.draft.remarks(),
        }


async def store(
    ctx: Context,
    draft: Draft,
    *,
    on_conflict: str = "skip",
    associations: Any = None,
    declared_by: str = "",
    key: Key | None = None,
    batch: str = "",
) -> dict:
    """Write a prepared memory unless it is there already, and return store's answer.

    The probe runs before the embedding, so that a skip costs none, and again inside the transaction, where
    it decides. Without a vector (backend down or still loading) the row is stored and embedded later.
    ``batch`` names the run that a new row belongs to.
    Raises Refused when ``on_conflict`` says so or a locked row would change.
    """
    wanted = _Wanted(draft, on_conflict, associations, declared_by, batch)
    made = None
    if ctx.embedding.at_hand and await ctx.db.read(wanted.needs_vector, key):
        made = await ctx.embedding.try_now(memory_text(draft.memory.content))
    answer = await ctx.db.write(lambda tx: wanted.write(tx, made, ctx.embedding.enabled), key)
    if answer.get("embedded") is False:
        ctx.backlog.wake()
    return answer


def check_unlocked(row: memories.Existing) -> None:
    """Raise Refused for a row that is locked."""
    if row.locked:
        ref = MEMORY.ref(row.id)
        raise Refused(f"{ref} is locked; `cpersona unlock {ref}` frees it")


def held_by(other: memories.Existing) -> str:
    """Return what a caller is told whose text another row of the bucket has."""
    ref = MEMORY.ref(other.id)
    return f"{ref} has this content already; `cpersona get {ref}` shows it"
