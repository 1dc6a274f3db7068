"""Handlers of what rows were: row_history lists it, restore_row brings it back, undo_last takes the last write back,
purge_rows leaves nothing of rows.

Contract: past.kept, past.acts.
"""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from ...errors import InvalidParams
from ...memory import returning, taking_back
from ...model.kinds import MEMORY, Rid, parse_ref
from ...model.scope import Scope
from ...portability import purging
from ...recall.display import episode_row, memory_row
from ...shared import fields
from ...storage import damaged, past, records
from ...storage.damaged import Unreadable
from ...storage.json_columns import load_json, load_source
from ...storage.memories import Memory
from ..common import bounded
from ..registry import Call, Handler

MOST_PURGED = 1_000  # rows of one request
_ROOM = fields.MAX_FRAME_BYTES // 8  # characters of texts in one answer
_DONE = {past.UPDATE: "updated", past.DELETE: "deleted", past.RETURN: "brought back", past.PURGE: "deleted for good"}

_WHEN = ("timestamp", "start_time", "end_time", "keywords")


class HistoryParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    ref: str
    limit: int = 50
    project_id: str | None = None


class RestoreParams(msgspec.Struct, forbid_unknown_fields=True):
    """``version``: which of the texts that row_history numbers, 1 being the latest."""

    ref: str
    version: int = 1
    agent_id: str = ""
    project_id: str | None = None
    session_key: str = ""


class PurgeParams(msgspec.Struct, forbid_unknown_fields=True):
    refs: list[str]
    agent_id: str = ""
    project_id: str | None = None
    session_key: str = ""


class UndoLastParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    dry_run: bool = False
    session_key: str = ""


def _named(ref: str) -> Rid:
    rid = parse_ref(ref)
    if rid is None:
        raise InvalidParams(f"{ref!r} names no row; a ref is mem:N or ep:N")
    return rid


async def row_history(call: Call) -> dict:
    """Answer `{ref, now, entries, days}`: what a row is, null where it is gone, and what it was, newest first.

    An entry is `{at, done, n?, content, …}`: what was done then, and what the row was before; ``n`` numbers those that
    restore_row takes.
    """
    p, rid = call.params, _named(call.params.ref)

    def read(conn: apsw.Connection) -> tuple[Any, tuple[list[past.Entry], int]]:
        found = records.by_rids(conn, [rid], Scope(p.agent_id, p.project_id)).get(rid)
        return found, past.of_row(conn, rid, p.agent_id, p.project_id, bounded(p.limit, 50, 0, 500))

    row, (kept, count) = await call.ctx.db.read(read)
    now = None
    if isinstance(row, Unreadable):
        now = {"left_out": row.reason}
    elif row is not None:
        now = memory_row(row) if isinstance(row, Memory) else episode_row(row)
    entries, number, room = [], 0, _ROOM
    for entry in kept:
        number += entry.text is not None
        room -= len(entry.text or "") + len(str(entry.fields))
        if room < 0:
            break
        entries.append(_told(entry, number))
    return {
        "ref": p.ref,
        "now": now,
        "entries": entries,
        "count": len(entries),
        "more": len(entries) < count,
        "days": call.settings.history_days,
    }


def _told(entry: past.Entry, number: int) -> dict:
    """Return one entry as an answer has it."""
    done = {"at": entry.at, "done": _DONE[entry.act]}
    if entry.text is None:
        return done
    was, told = entry.fields, {"n": number, **done, "created_at": entry.created_at}
    told |= {"project_id": entry.project_id, "channel": entry.channel}
    reason = damaged.unfit(entry.text, was.get("source", ""), was.get("metadata", ""))
    if reason is not None:
        return {**told, "left_out": reason}
    told["content"] = entry.text
    if entry.kind == MEMORY:
        told |= {"source": load_source(was["source"]), "metadata": load_json(was["metadata"])}
    named = {"id": was.get("msg_id"), "batch": entry.batch, **{name: was.get(name) for name in _WHEN}}
    told |= {name: value for name, value in named.items() if value}
    if was["whole_length"] is not None:
        told["cut"] = {"kept": len(entry.text), "of": was["whole_length"]}
    return told


async def restore_row(call: Call) -> dict:
    p = call.params
    return await returning.restore(call.ctx, _named(p.ref), p.version, p.agent_id, p.project_id, call.key)


async def undo_last(call: Call) -> dict:
    p = call.params
    if not p.agent_id:
        raise InvalidParams("agent_id is empty; name the agent whose last write is to be taken back")
    if p.dry_run:
        return {**await call.ctx.db.read(taking_back.looked, call.ctx, p.agent_id), "dry_run": True}
    return await taking_back.undo_last(call.ctx, p.agent_id, call.key, call.progress)


async def purge_rows(call: Call) -> dict:
    p = call.params
    if not 0 < len(p.refs) <= MOST_PURGED:
        raise InvalidParams(f"refs holds {len(p.refs)} entries; send 1 to {MOST_PURGED}")
    rids = list(dict.fromkeys(map(_named, p.refs)))
    return await purging.purge(call.ctx, rids, p.agent_id, p.project_id, call.key, call.progress)


HANDLERS = {
    "purge_rows": Handler(PurgeParams, purge_rows),
    "row_history": Handler(HistoryParams, row_history),
    "restore_row": Handler(RestoreParams, restore_row),
    "undo_last": Handler(UndoLastParams, undo_last),
}
