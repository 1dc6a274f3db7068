"""Handlers of get_contents, rows by their refs, whole, of find_ids, refs by the caller's own keys, and of scan_texts,
all texts by the page.

Contract: contents.refs, edit.within, rows.keyed, grep.written.
"""

from __future__ import annotations

from typing import Annotated, Literal

import apsw
import msgspec

from ...errors import InvalidParams
from ...model.kinds import MEMORY, Kind, Rid, parse_ref
from ...model.scope import Scope
from ...recall.display import episode_row, left_out, memory_row
from ...shared import fields
from ...storage import as_then, own_ids, records, scanning
from ...storage.damaged import Unreadable
from ...storage.episodes import Episode
from ...storage.memories import Memory
from ..common import scope_of, stored_at
from ..registry import Call, Handler

MAX_HELD = 1000  # characters of a text that is looked for as it is

Refs = Annotated[
    list, msgspec.Meta(extra_json_schema={"items": {"type": "string"}, "minItems": 1, "maxItems": fields.MAX_REFS})
]


class ContentsParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str = ""
    refs: Refs = []
    project_id: str | None = None
    as_of: str | None = None
    placed: bool = False


class FindIdsParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    ids: list[str]
    project_id: str | None = None


class ScanParams(msgspec.Struct, forbid_unknown_fields=True):
    """``holds``: only texts that hold this as it is; ``after``: where the page before this one ended, as it told."""

    agent_id: str
    kind: Literal["mem", "ep"] = "mem"
    holds: str = ""
    project_id: str | None = None
    channel: str | None = None
    source_id: str | None = None
    since: str | None = None
    until: str | None = None
    after: list | None = None


async def get_contents(call: Call) -> dict:
    """Resolve refs to whole rows: in the order asked, duplicates twice, what cannot be served in `missing` as sent.

    With a project given, rows of other projects cannot. With ``as_of`` rows are as they were then, deleted ones too;
    one that has changed since and is not kept as it was has `changed_since: true`.
    `left_out` says why, where a row is there and cannot be given out. With `placed` each row has its axes, when it was
    stored, and of a memory whether it is locked.
    """
    p = call.params
    if not p.agent_id:
        raise InvalidParams("agent_id is empty; name the agent whose rows these are")
    if not 0 < len(p.refs) <= fields.MAX_REFS:
        raise InvalidParams(f"refs holds {len(p.refs)} entries; send 1 to {fields.MAX_REFS}")
    wanted = [(ref, parse_ref(ref)) for ref in p.refs]
    scope = Scope(p.agent_id, p.project_id, as_of=stored_at(p.as_of, "as_of"))

    def read(conn: apsw.Connection) -> tuple[dict[Rid, dict], list[dict]]:
        rids = sorted({rid for _, rid in wanted if rid})
        untrue: set[Rid] = set()
        if scope.as_of:
            found, untrue = as_then.by_rids(conn, rids, scope)
        else:
            found = records.by_rids(conn, rids, scope)
        rows: dict[Rid, dict] = {}
        without: list[dict] = []
        for rid, row in found.items():
            if isinstance(row, Unreadable):
                without.append(left_out(rid[0], row))
            else:
                rows[rid] = memory_row(row) if isinstance(row, Memory) else episode_row(row)
                if p.placed:
                    rows[rid] |= _place_of(row)
        for rid in untrue & rows.keys():
            rows[rid]["changed_since"] = True
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


def _place_of(row: Memory | Episode) -> dict:
    """Return where a row stands: what get_contents leaves out unless it is asked."""
    place = {"project_id": row.project_id, "channel": row.channel, "created_at": row.created_at}
    return {**place, "locked": bool(row.locked)} if isinstance(row, Memory) else place


async def find_ids(call: Call) -> dict:
    """Answer `{found: [{id, ref, project_id}], count}`: the memories that have these keys of their writer."""
    p = call.params
    if not 0 < len(p.ids) <= fields.MAX_IDS:
        raise InvalidParams(f"ids holds {len(p.ids)} entries; send 1 to {fields.MAX_IDS}")
    rows = await call.ctx.db.read(own_ids.holders, Scope(p.agent_id, p.project_id), p.ids)
    found = [{"id": key, "ref": MEMORY.ref(memory_id), "project_id": project} for key, memory_id, project in rows]
    return {"found": found, "count": len(found)}


def _place(told: list) -> scanning.Place:
    if len(told) == 2 and isinstance(told[0], str) and type(told[1]) is int and abs(told[1]) < 1 << 63:
        return scanning.Place(*told)
    raise InvalidParams("after is no place; send what the page before this one told as after")


async def scan_texts(call: Call) -> dict:
    """Answer `{rows: [{ref, created_at, project_id, channel, id?, text}], after, left_out?}`, the newest first.

    A page has as many rows as an answer carries and as are looked at in a moment, so that it may be empty; ``after`` is
    null behind the last one.
    """
    p, kind, scope = call.params, Kind(call.params.kind), scope_of(call.params)
    if len(p.holds) > MAX_HELD:
        raise InvalidParams(f"holds has {len(p.holds)} characters, at most {MAX_HELD} are taken")
    if kind not in scope.kinds:
        return {"rows": [], "after": None}
    after = None if p.after is None else _place(p.after)
    found = await call.ctx.db.read(scanning.page, kind, scope, p.holds, after)
    rows = [
        {
            "ref": kind.ref(row.id),
            "created_at": row.created_at,
            "project_id": row.project_id,
            "channel": row.channel,
            **({"id": row.key} if row.key else {}),
            "text": row.text,
        }
        for row in found.rows
    ]
    without = [left_out(kind, row) for row in found.unreadable]
    after_this = None if found.next is None else [found.next.created_at, found.next.id]
    return {"rows": rows, "after": after_this, **({"left_out": without} if without else {})}


HANDLERS = {
    "get_contents": Handler(ContentsParams, get_contents),
    "find_ids": Handler(FindIdsParams, find_ids),
    "scan_texts": Handler(ScanParams, scan_texts),
}
