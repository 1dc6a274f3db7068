"""Handlers of the single-row methods: store, edit, lock, list, episodes, profile, get_contents.

Contract: store.answer, edit.update, contents.refs, lists.newest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ...errors import InvalidParams, Refused
from ...memory import archive, edit, secrets, undo
from ...memory import store as storing
from ...model.kinds import EPISODE, MEMORY, parse_ref
from ...recall.display import episode_row, left_out, memory_row
from ...shared import fields
from ...storage import episodes, memories, profiles
from ...storage.damaged import Unreadable
from ..common import advise_of_history, bounded, paused, scope_of, stored_at
from ..registry import Call, Method


class StoreParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    content: Any = None
    id: Any = ""
    source: Any = None
    timestamp: Any = ""
    metadata: Any = None
    channel: Any = ""
    project_id: Any = ""
    message: dict | None = None
    associations: dict | None = None
    lock: bool = False
    on_conflict: str = "skip"
    batch: str | None = None
    check_secrets: str | None = None
    cut: Any = None
    fail_if_cut: bool = False
    session_key: str = ""


class UpdateParams(msgspec.Struct, forbid_unknown_fields=True):
    memory_id: int
    content: str
    agent_id: str = ""
    fail_if_cut: bool = False
    session_key: str = ""


class MemoryParams(msgspec.Struct, forbid_unknown_fields=True):
    memory_id: int
    agent_id: str = ""
    session_key: str = ""


class EpisodeParams(msgspec.Struct, forbid_unknown_fields=True):
    episode_id: int
    agent_id: str = ""
    session_key: str = ""


class ArchiveParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    summary: str = ""
    history: Any = None
    keywords: str | None = ""
    resolved: bool = False
    channel: str | None = ""
    project_id: str | None = ""
    fail_if_cut: bool = False
    session_key: str = ""


class ProfileParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    profile: str = ""
    fail_if_cut: bool = False
    session_key: str = ""


class AgentParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str = ""


class ListParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str = ""
    limit: Any = None
    project_id: str | None = None
    channel: str | None = None


class MemoryListParams(ListParams, forbid_unknown_fields=True):
    since: str | None = None
    until: str | None = None
    as_of: str | None = None


class ContentsParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str = ""
    refs: list = []


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
    draft = storing.prepare(
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
            return {**fields.failure("store", secrets.refusal(found)), "secrets": found}
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
    return await edit.update(call.ctx, call.settings, p.memory_id, p.content, p.agent_id, call.key, p.fail_if_cut)


async def delete_memory(call: Call) -> dict:
    p = call.params
    return await call.ctx.db.write(lambda tx: edit.delete_memory(tx, p.memory_id, p.agent_id), call.key)


async def lock_memory(call: Call) -> dict:
    p = call.params
    return await call.ctx.db.write(lambda tx: edit.set_locked(tx, p.memory_id, p.agent_id, True), call.key)


async def unlock_memory(call: Call) -> dict:
    p = call.params
    return await call.ctx.db.write(lambda tx: edit.set_locked(tx, p.memory_id, p.agent_id, False), call.key)


async def archive_episode(call: Call) -> dict:
    p = call.params
    start, end = archive.history_bounds(p.history)
    new = episodes.NewEpisode(
        agent_id=p.agent_id,
        summary=p.summary,
        keywords=p.keywords or "",
        project_id=p.project_id or "",
        channel=p.channel or "",
        start_time=start,
        end_time=end,
        resolved=p.resolved,
    )
    return await archive.archive(call.ctx, call.settings, new, call.key, p.fail_if_cut)


async def delete_episode(call: Call) -> dict:
    p = call.params
    return await call.ctx.db.write(lambda tx: edit.delete_episode(tx, p.episode_id, p.agent_id), call.key)


async def update_profile(call: Call) -> dict:
    p, cap = call.params, call.settings.max_profile_length
    return await call.ctx.db.write(
        lambda tx: archive.put_profile(tx, p.agent_id, p.profile, cap, p.fail_if_cut), call.key
    )


async def get_profile(call: Call) -> dict:
    return {"profile": await call.ctx.db.read(profiles.get, call.params.agent_id)}


async def list_memories(call: Call) -> dict:
    p, scope = call.params, scope_of(call.params)
    since, until = (
        stored_at(p.since, "since"),
        min(filter(None, (stored_at(p.until, "until"), scope.as_of)), default=""),
    )
    found = await call.ctx.db.read(
        memories.newest, p.agent_id, p.project_id, bounded(p.limit, 100, 0, 500), since, until, scope.channel
    )
    answer = _listed(
        "memories",
        MEMORY,
        found,
        lambda m: {
            "id": m.id,
            "ref": f"mem:{m.id}",
            "agent_id": m.agent_id,
            "project_id": m.project_id,
            "channel": m.channel,
            "msg_id": m.msg_id,
            "content": m.content,
            "source": memories.load_source(m.source),
            "timestamp": m.timestamp,
            "metadata": memories.load_json(m.metadata),
            "created_at": m.created_at,
            "locked": bool(m.locked),
            **({"cut": m.cut} if m.cut else {}),
        },
    )
    return await advise_of_history(call, answer, scope, (MEMORY,), stored=(since, until), everyone=not p.agent_id)


async def list_episodes(call: Call) -> dict:
    p = call.params
    found = await call.ctx.db.read(
        episodes.newest, p.agent_id, p.project_id, bounded(p.limit, 50, 0, 200), p.channel or ""
    )
    return _listed(
        "episodes",
        EPISODE,
        found,
        lambda e: {
            "id": e.id,
            "ref": f"ep:{e.id}",
            "agent_id": e.agent_id,
            "project_id": e.project_id,
            "channel": e.channel,
            "summary": e.summary,
            "keywords": e.keywords,
            "start_time": e.start_time,
            "end_time": e.end_time,
            "resolved": bool(e.resolved),
            "created_at": e.created_at,
            **({"cut": e.cut} if e.cut else {}),
        },
    )


def _listed(name: str, kind: str, found: list, shown: Callable[[Any], dict]) -> dict:
    """Return the answer of a list; rows that cannot be given out are named beside it."""
    rows = [shown(row) for row in found if not isinstance(row, Unreadable)]
    without = [left_out(kind, row) for row in found if isinstance(row, Unreadable)]
    return {name: rows, "count": len(rows), **({"left_out": without} if without else {})}


async def get_contents(call: Call) -> dict:
    """Resolve refs to whole rows: in the order asked, duplicates twice, what cannot be served in `missing` as sent.

    `left_out` says why, where a row is there and cannot be given out.
    """
    p = call.params
    if not p.agent_id:
        raise InvalidParams("agent_id is empty; name the agent whose rows these are")
    if not 0 < len(p.refs) <= fields.MAX_REFS:
        raise InvalidParams(f"refs holds {len(p.refs)} entries; send 1 to {fields.MAX_REFS}")
    wanted = [(ref, parse_ref(ref)) for ref in p.refs]

    def read(conn):
        ids = {kind: sorted({rid[1] for _, rid in wanted if rid and rid[0] == kind}) for kind in (MEMORY, EPISODE)}
        rows, without = {}, []
        for kind, table, shown in ((MEMORY, memories, memory_row), (EPISODE, episodes, episode_row)):
            for row in table.by_ids(conn, ids[kind], agent_id=p.agent_id).values():
                if isinstance(row, Unreadable):
                    without.append(left_out(kind, row))
                else:
                    rows[kind, row.id] = shown(row)
        return rows, without

    found, without = await call.ctx.db.read(read)
    items, missing = [], []
    for ref, rid in wanted:
        if rid in found:
            item = {"ref": ref, **found[rid]}
            items.append(item)
        else:
            missing.append(ref)
    return {"items": items, "missing": missing, "count": len(items), **({"left_out": without} if without else {})}


METHODS = {
    "store": Method(StoreParams, store, paused(ok=True, result="skipped", id="no-persist", embedded=False)),
    "update_memory": Method(UpdateParams, update_memory, paused(ok=True, updated_id=None)),
    "delete_memory": Method(MemoryParams, delete_memory, paused(ok=True, deleted_id=None)),
    "lock_memory": Method(MemoryParams, lock_memory, paused(ok=True, locked_id=None)),
    "unlock_memory": Method(MemoryParams, unlock_memory, paused(ok=True, unlocked_id=None)),
    "archive_episode": Method(ArchiveParams, archive_episode, paused(ok=True, episode_id=None)),
    "delete_episode": Method(EpisodeParams, delete_episode, paused(ok=True, deleted_id=None)),
    "update_profile": Method(ProfileParams, update_profile, paused(ok=True, profiles_updated=0)),
    "get_profile": Method(AgentParams, get_profile),
    "list_memories": Method(MemoryListParams, list_memories),
    "list_episodes": Method(ListParams, list_episodes),
    "get_contents": Method(ContentsParams, get_contents),
}
