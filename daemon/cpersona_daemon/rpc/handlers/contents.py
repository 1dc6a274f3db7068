"""Handlers of get_contents, rows by their refs, whole, and of find_ids, refs by the caller's own keys.

Contract: contents.refs, edit.within, rows.keyed.
"""

from __future__ import annotations

from typing import Annotated

import apsw
import msgspec

from ...errors import InvalidParams
from ...model.kinds import MEMORY, Rid, parse_ref
from ...model.scope import Scope
from ...recall.display import episode_row, left_out, memory_row
from ...shared import fields
from ...storage import own_ids, records
from ...storage.damaged import Unreadable
from ...storage.memories import Memory
from ..registry import Call, Handler

Refs = Annotated[
    list, msgspec.Meta(extra_json_schema={"items": {"type": "string"}, "minItems": 1, "maxItems": fields.MAX_REFS})
]


class ContentsParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str = ""
    refs: Refs = []
    project_id: str | None = None


class FindIdsParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    ids: list[str]
    project_id: str | None = None


async def get_contents(call: Call) -> dict:
    """Resolve refs to whole rows: in the order asked, duplicates twice, what cannot be served in `missing` as sent.

    With a project given, rows of other projects cannot.
    `left_out` says why, where a row is there and cannot be given out.
    """
    p = call.params
    if not p.agent_id:
        raise InvalidParams("agent_id is empty; name the agent whose rows these are")
    if not 0 < len(p.refs) <= fields.MAX_REFS:
        raise InvalidParams(f"refs holds {len(p.refs)} entries; send 1 to {fields.MAX_REFS}")
    wanted = [(ref, parse_ref(ref)) for ref in p.refs]
    scope = Scope(p.agent_id, p.project_id)

    def read(conn: apsw.Connection) -> tuple[dict[Rid, dict], list[dict]]:
        found = records.by_rids(conn, sorted({rid for _, rid in wanted if rid}), scope)
        rows: dict[Rid, dict] = {}
        without: list[dict] = []
        for rid, row in found.items():
            if isinstance(row, Unreadable):
                without.append(left_out(rid[0], row))
            else:
                rows[rid] = memory_row(row) if isinstance(row, Memory) else episode_row(row)
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


async def find_ids(call: Call) -> dict:
    """Answer `{found: [{id, ref, project_id}], count}`: the memories that have these keys of their writer."""
    p = call.params
    if not 0 < len(p.ids) <= fields.MAX_IDS:
        raise InvalidParams(f"ids holds {len(p.ids)} entries; send 1 to {fields.MAX_IDS}")
    rows = await call.ctx.db.read(own_ids.holders, Scope(p.agent_id, p.project_id), p.ids)
    found = [{"id": key, "ref": MEMORY.ref(memory_id), "project_id": project} for key, memory_id, project in rows]
    return {"found": found, "count": len(found)}


HANDLERS = {"get_contents": Handler(ContentsParams, get_contents), "find_ids": Handler(FindIdsParams, find_ids)}
