"""Storing a memory: check, probe, embed outside any transaction, write once.

Contract: store.checks, store.answer, store.embeds, dedup.skip, dedup.conflict.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import apsw

from ..associations import declare
from ..context import Context
from ..errors import Refused
from ..model.identity import Embedded
from ..model.instants import iso_now, parse_instant
from ..model.kinds import MEMORY
from ..shared import fields
from ..shared.settings import Settings
from ..storage import backlog, batches, idempotency, memories
from ..storage.damaged import nests_deeper
from ..storage.idempotency import Key
from ..storage.transaction import Transaction
from ..text.embedded import memory_text
from .cleaning import check_axes, check_text, fit, remarks, sanitise
from .source import normalise_source

MAX_TIMESTAMP_LENGTH = 64
CLOCK_ALLOWANCE_SECONDS = 300
_as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
ON_CONFLICT = ("skip", "update", "fail")


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory that passed every check, and what the answer must say about it."""

    memory: memories.NewMemory
    cut: dict | None
    ahead: dict | None

    @property
    def key(self) -> bytes:
        return self.memory.key

    def remarks(self) -> dict:
        out: dict[str, Any] = remarks(self.cut)
        if self.ahead:
            out["timestamp_ahead_of_clock"] = self.ahead
        return out


def prepare(
    *,
    agent_id: str,
    content: Any,
    msg_id: Any,
    source: Any,
    timestamp: Any,
    metadata: Any,
    channel: str,
    project_id: str,
    locked: bool,
    now: float,
    settings: Settings,
    cut: Any = None,
    fail_if_cut: bool = False,
) -> Draft:
    """Check and clean what a caller wants stored. Raises Refused, in the contract's order of checks.

    ``cut`` is the mark of a text that was cut before, as rows carry it; what it was then is what it is known by.
    """
    if not isinstance(content, str) or not content.strip():
        raise Refused(
            "content is empty"
            if isinstance(content, str) or content is None
            else f"content is text, not {type(content).__name__}"
        )
    for name, value in (("id", msg_id), ("channel", channel), ("project_id", project_id), ("agent_id", agent_id)):
        if not isinstance(value, str):
            raise Refused(f"{name} is text, not {type(value).__name__}")
        check_axes(**{name: value})
    if not isinstance(timestamp, str):
        raise Refused(f"timestamp is text, not {type(timestamp).__name__}")
    if len(timestamp) > MAX_TIMESTAMP_LENGTH:
        raise Refused(f"timestamp has {len(timestamp)} characters, at most {MAX_TIMESTAMP_LENGTH} are kept")
    check_text(timestamp, "timestamp")
    source_text = _serialised(normalise_source(source), "source", settings)
    metadata_text = _serialised({} if metadata is None else metadata, "metadata", settings)
    check_text(content, "content")
    cleaned = sanitise(content)
    if not cleaned:
        raise Refused("content is empty once its memory annotations are removed")
    text, lost = fit(cleaned, settings.max_content_length, "the text", fail_if_cut)
    whole = memories.Whole.of(cleaned, text)
    if cut is not None:
        whole = _whole_before(cut, cleaned)
        lost = {"kept": len(text), "of": whole.length}
    ahead = _ahead_of_clock(timestamp, now, settings.future_timestamp_mode)
    memory = memories.NewMemory(
        agent_id=agent_id,
        content=text,
        project_id=project_id,
        channel=channel,
        msg_id=msg_id,
        source=source_text,
        timestamp=timestamp or iso_now(now),
        metadata=metadata_text,
        locked=locked,
        whole=whole,
    )
    return Draft(memory, lost, ahead)


def _whole_before(mark: Any, text: str) -> memories.Whole:
    try:
        return memories.read_mark(mark, text)
    except ValueError as error:
        raise Refused(str(error)) from None


def _serialised(value: Any, what: str, settings: Settings) -> str:
    try:
        text = _as_json(value)
    except ValueError as error:
        raise Refused(f"{what} cannot be written as JSON: {error}") from None
    except RecursionError:
        text = None
    if text is None or nests_deeper(text, fields.MAX_VALUE_NESTING):
        raise Refused(f"{what} nests deeper than {fields.MAX_VALUE_NESTING} levels; nothing could give it out again")
    if len(text) > settings.max_metadata_length:
        raise Refused(
            f"{what} has {len(text)} characters as JSON,"
            f" at most {settings.max_metadata_length} are kept (CPERSONA_MAX_METADATA_LENGTH)"
        )
    return check_text(text, what)


def _ahead_of_clock(timestamp: str, now: float, mode: str) -> dict | None:
    instant = parse_instant(timestamp)
    if mode == "off" or instant is None or instant - now <= CLOCK_ALLOWANCE_SECONDS:
        return None
    ahead = {
        "timestamp": timestamp,
        "ahead_by_seconds": round(instant - now),
        "allowance_seconds": CLOCK_ALLOWANCE_SECONDS,
    }
    if mode == "reject":
        raise Refused(
            f"timestamp {timestamp} is {ahead['ahead_by_seconds']} s ahead of the clock,"
            f" {CLOCK_ALLOWANCE_SECONDS} s are allowed"
        )
    return ahead


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
    made = None
    if ctx.embedding.at_hand and await ctx.db.read(_needs_vector, draft, on_conflict, key):
        made = await ctx.embedding.try_now(memory_text(draft.memory.content))

    def job(tx: Transaction) -> dict:
        answer = _write(tx, draft, on_conflict, associations, declared_by, made, later=ctx.embedding.enabled)
        if batch and answer["result"] == "stored":
            batches.label(tx, MEMORY, answer["id"], batch)
        return answer

    answer = await ctx.db.write(job, key)
    if answer.get("embedded") is False:
        ctx.backlog.wake()
    return answer


def _needs_vector(conn: apsw.Connection, draft: Draft, on_conflict: str, key: Key | None) -> bool:
    if key is not None and idempotency.known(conn, key):
        return False
    existing, _ = _duplicate(conn, draft)
    return existing is None or (on_conflict == "update" and _brings_more(draft, existing))


def _brings_more(draft: Draft, existing: memories.Existing) -> bool:
    """Tell whether a draft holds what a row does not: another text, or more of the text that the row holds the
    beginning of.
    """
    more = existing.kept_length is not None and len(draft.memory.content) > existing.kept_length
    return existing.content_key != draft.key or more


def _duplicate(conn: apsw.Connection, draft: Draft) -> tuple[memories.Existing | None, str]:
    new = draft.memory
    return memories.find_duplicate(conn, new.agent_id, new.project_id, new.channel, new.msg_id, draft.key)


def _write(
    tx: Transaction,
    draft: Draft,
    on_conflict: str,
    associations: Any,
    declared_by: str,
    made: Embedded | None,
    later: bool,
) -> dict:
    existing, reason = _duplicate(tx.conn, draft)
    if existing is not None:
        if on_conflict == "fail":
            raise Refused(f"{reason}: mem:{existing.id} is there already; `cpersona get mem:{existing.id}` shows it")
        if on_conflict == "update" and _brings_more(draft, existing):
            return _update_existing(tx, existing, draft, made, later)
        differs = existing.content_key != draft.key
        return {
            "ok": True,
            "result": "skipped",
            "reason": reason,
            "id": existing.id,
            **({"content_differs": True} if differs else {}),
            **remarks(existing.cut),
        }
    memory_id = memories.insert(tx, draft.memory)
    backlog.attach_or_enqueue(tx, MEMORY, memory_id, made, later)
    answer = {"ok": True, "result": "stored", "id": memory_id, "embedded": made is not None, **draft.remarks()}
    if draft.memory.locked:
        answer["locked"] = True
    if associations:
        answer["associations"] = declare.declare(
            tx,
            draft.memory.agent_id,
            draft.memory.project_id,
            draft.memory.channel,
            associations,
            anchor_ref=MEMORY.ref(memory_id),
            declared_by=declared_by,
        )
    return answer


def _update_existing(
    tx: Transaction, existing: memories.Existing, draft: Draft, made: Embedded | None, later: bool
) -> dict:
    check_unlocked(existing)
    other = memories.find_in_bucket(tx.conn, existing.agent_id, existing.project_id, existing.channel, draft.key)
    if other is not None and other.id != existing.id:
        raise Refused(held_by(other))
    memories.replace_content(tx, existing.id, draft.memory.content, draft.memory.whole)
    backlog.attach_or_enqueue(tx, MEMORY, existing.id, made, later)
    return {"ok": True, "result": "updated", "id": existing.id, "embedded": made is not None, **draft.remarks()}


def check_unlocked(row: memories.Existing) -> None:
    """Raise Refused for a row that is locked."""
    if row.locked:
        raise Refused(f"{MEMORY.ref(row.id)} is locked; `cpersona unlock {MEMORY.ref(row.id)}` frees it")


def held_by(other: memories.Existing) -> str:
    """Return what a caller is told whose text another row of the bucket has."""
    return f"{MEMORY.ref(other.id)} has this content already; `cpersona get {MEMORY.ref(other.id)}` shows it"
