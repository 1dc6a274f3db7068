"""Handlers of single memories: store, edit, lock, list.

Contract: store.answer, edit.update, lists.newest, lists.narrowed.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ...errors import Refused
from ...memory import edit, secrets, undo
from ...memory import store as storing
from ...memory.draft import prepare
from ...model.kinds import MEMORY
from ...shared import methods
from ...storage import as_then, memories
from ...storage.json_columns import load_json, load_source
from ...storage.narrowing import Narrowing, conditions
from ..common import Map, Text, advise_of_history, bounded, scope_of
from ..listing import ListParams, listed
from ..registry import Call, Handler

Source = Annotated[Any, msgspec.Meta(extra_json_schema={"type": ["object", "string"]})]


class StoreParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    content: Text = None
    id: Text = ""
    source: Source = None
    timestamp: Text = ""
    metadata: Map = None
    channel: Text = ""
    project_id: Text = ""
    message: dict | None = None
    associations: dict | None = None
    lock: bool = False
    on_conflict: str = "skip"
    batch: str | None = None
    check_secrets: str | None = None
    cut: Map = None
    fail_if_cut: bool = False
    session_key: str = ""


class UpdateParams(msgspec.Struct, forbid_unknown_fields=True):
    memory_id: int
    content: str
    agent_id: str = ""
    project_id: str | None = None
    fail_if_cut: bool = False
    if_content: str | None = None
    session_key: str = ""


class MemoryParams(msgspec.Struct, forbid_unknown_fields=True):
    memory_id: int
    agent_id: str = ""
    project_id: str | None = None
    session_key: str = ""


class MemoryListParams(ListParams, forbid_unknown_fields=True):
    source_id: str | None = None
    locked: bool = False
    batch: str | None = None
    id_prefix: str | None = None
    since: str | None = None
    until: str | None = None
    as_of: str | None = None


async def store(call: Call) -> dict:
    p, settings = call.params, call.settings
    if p.on_conflict not in storing.ON_CONFLICT:
        raise Refused(f"on_conflict is one of {', '.join(storing.ON_CONFLICT)}, not {p.on_conflict!r}")
    given = {"content": p.content, "id": p.id, "source": p.source, "timestamp": p.timestamp, "metadata": p.metadata}
    if p.message is not None:
        if p.content is not None:
            raise Refused("content and message were both given; send one of them")
        unknown = sorted(set(p.message) - set(given))
        if unknown:
            raise Refused(f"message has an unknown key {unknown[0]!r}")
        given.update(p.message)
    draft = prepare(
        agent_id=p.agent_id,
        content=given["content"],
        msg_id=_text(given["id"]),
        source=given["source"],
        timestamp=_text(given["timestamp"]),
        metadata=given["metadata"],
        channel=_text(p.channel),
        project_id=_text(p.project_id),
        locked=p.lock,
        now=call.ctx.clock.now(),
        settings=settings,
        cut=p.cut,
        fail_if_cut=p.fail_if_cut,
    )
    found = []
    if (p.check_secrets or "off") != "off":
        if p.check_secrets not in secrets.MODES:
            raise Refused(f"check_secrets is one of {', '.join(secrets.MODES)}, not {p.check_secrets!r}")
        found = secrets.search(draft.memory.content, draft.memory.source, draft.memory.metadata)
        if found and p.check_secrets == "refuse":
            return {**methods.of("store").failed(secrets.refusal(found)), "secrets": found}
    answer = await storing.store(
        call.ctx,
        draft,
        on_conflict=p.on_conflict,
        associations=p.associations,
        declared_by=call.caller.client_id,
        key=call.key,
        batch=undo.check_name(p.batch),
    )
    return {**answer, "secrets": found} if found else answer


def _text(value: Any) -> Any:
    return "" if value is None else value


async def update_memory(call: Call) -> dict:
    p = call.params
    return await edit.update(
        call.ctx, call.settings, p.memory_id, p.content, p.agent_id, call.key, p.fail_if_cut, p.project_id, p.if_content
    )


async def delete_memory(call: Call) -> dict:
    p = call.params
    return await call.ctx.db.write(lambda tx: edit.delete_memory(tx, p.memory_id, p.agent_id, p.project_id), call.key)


async def lock_memory(call: Call) -> dict:
    p = call.params
    return await call.ctx.db.write(
        lambda tx: edit.set_locked(tx, p.memory_id, p.agent_id, True, p.project_id), call.key
    )


async def unlock_memory(call: Call) -> dict:
    p = call.params
    return await call.ctx.db.write(
        lambda tx: edit.set_locked(tx, p.memory_id, p.agent_id, False, p.project_id), call.key
    )


async def list_memories(call: Call) -> dict:
    p, scope = call.params, scope_of(call.params)
    narrowing = Narrowing(scope.source_id, p.locked, p.batch or "", p.id_prefix or "")
    limit, shown = bounded(p.limit, 100, 0, 500), None
    if scope.as_of:
        found, shown = await call.ctx.db.read(as_then.newest, scope, narrowing, limit)
    else:
        found = await call.ctx.db.read(
            memories.newest,
            p.agent_id,
            p.project_id,
            limit,
            scope.since,
            scope.latest,
            scope.channel,
            conditions(narrowing, p.agent_id),
        )
    answer = listed(
        "memories",
        MEMORY,
        found,
        lambda m: {
            "id": m.id,
            "ref": MEMORY.ref(m.id),
            "agent_id": m.agent_id,
            "project_id": m.project_id,
            "channel": m.channel,
            "msg_id": m.msg_id,
            "content": m.content,
            "source": load_source(m.source),
            "timestamp": m.timestamp,
            "metadata": load_json(m.metadata),
            "created_at": m.created_at,
            "locked": bool(m.locked),
            **({"cut": m.cut} if m.cut else {}),
        },
    )
    return await advise_of_history(call, answer, scope, (MEMORY,), everyone=not p.agent_id, shown=shown)


HANDLERS = {
    "store": Handler(StoreParams, store),
    "update_memory": Handler(UpdateParams, update_memory),
    "delete_memory": Handler(MemoryParams, delete_memory),
    "lock_memory": Handler(MemoryParams, lock_memory),
    "unlock_memory": Handler(MemoryParams, unlock_memory),
    "list_memories": Handler(MemoryListParams, list_memories),
}
