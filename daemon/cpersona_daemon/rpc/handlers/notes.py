"""Handlers of notes, many in one request: which of a history are missing, and what a rewritten one does to them.

Contract: git.notes.
"""

from __future__ import annotations

import msgspec

from ...errors import InvalidParams, Refused
from ...memory import notes as library
from ...memory import undo
from ...memory.draft import prepare
from ...storage import note_ids
from ..common import Map, Text
from ..registry import Call, Handler

MAX_NOTES = 1000
MAX_REPLACED = 10_000
MAX_IDS = 10_000


class NoteParams(msgspec.Struct, forbid_unknown_fields=True):
    """One note: store's parameters, an id that is not empty, and the ids of the notes whose place it takes."""

    id: str
    content: Text
    source: Map = None
    timestamp: str = ""
    metadata: Map = None
    replaces: list[str] = []


class ReplaceParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    notes: list[NoteParams]
    channel: str | None = ""
    project_id: str | None = ""
    batch: str | None = None
    session_key: str = ""


class FindParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    ids: list[str]
    project_id: str | None = ""
    refs: bool = False


async def find_notes(call: Call) -> dict:
    """Answer `{missing, outdated, refs?}`: the ids that no memory has, those of notes that list no paths yet, and where
    it is asked for, the ref of each that is there.
    """
    p = call.params
    if len(p.ids) > MAX_IDS:
        raise InvalidParams(f"ids holds {len(p.ids)} entries; send {MAX_IDS} at most")
    found = await call.ctx.db.read(note_ids.find, p.agent_id, p.project_id or "", p.ids)
    return {"missing": found.missing, "outdated": found.outdated, **({"refs": found.refs} if p.refs else {})}


async def replace_notes(call: Call) -> dict:
    p = call.params
    if not 0 < len(p.notes) <= MAX_NOTES:
        raise InvalidParams(f"notes holds {len(p.notes)} entries; send 1 to {MAX_NOTES}")
    if sum(len(note.replaces) for note in p.notes) > MAX_REPLACED:
        raise InvalidParams(f"replaces names more than {MAX_REPLACED} notes in all; send them in parts")
    return await library.replace(
        call.ctx,
        p.agent_id,
        p.project_id or "",
        [_note(call, note) for note in p.notes],
        call.key,
        undo.check_name(p.batch),
    )


def _note(call: Call, note: NoteParams) -> library.Note:
    p = call.params
    if not note.id:
        raise InvalidParams("a note has no id; it is what a later one replaces it by")
    try:
        draft = prepare(
            agent_id=p.agent_id,
            content=note.content,
            msg_id=note.id,
            source=note.source,
            timestamp=note.timestamp,
            metadata=note.metadata,
            channel=p.channel or "",
            project_id=p.project_id or "",
            locked=False,
            now=call.ctx.clock.now(),
            settings=call.settings,
        )
    except Refused as error:
        return library.Note(None, (), note.id, str(error))
    return library.Note(draft, tuple(note.replaces), note.id)


HANDLERS = {"find_notes": Handler(FindParams, find_notes), "replace_notes": Handler(ReplaceParams, replace_notes)}
