"""Handlers of notes, many in one request: which of a history or a directory are there, and what becomes of them when
that changes.

Contract: git.notes, notes.upsert.
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
    on_conflict: str = "skip"
    gone: list[str] = []
    session_key: str = ""


class FindParams(msgspec.Struct, forbid_unknown_fields=True):
    """Either ids, or a prefix of ids: then ``after`` is the last id that an earlier answer had."""

    agent_id: str
    ids: list[str] = []
    project_id: str | None = ""
    refs: bool = False
    prefix: str = ""
    after: str = ""


async def find_notes(call: Call) -> dict:
    """Answer `{missing, outdated, refs?}`: the ids that no memory has, those of notes that list no paths yet, and where
    it is asked for, the ref of each that is there. With a prefix `{notes: [{id, ref, locked, own, digest?}], more}`.
    """
    p = call.params
    if p.prefix:
        kept, more = await call.ctx.db.read(note_ids.under, p.agent_id, p.project_id or "", p.prefix, p.after, MAX_IDS)
        return {"notes": [_told(note) for note in kept], "more": more}
    if len(p.ids) > MAX_IDS:
        raise InvalidParams(f"ids holds {len(p.ids)} entries; send {MAX_IDS} at most")
    found = await call.ctx.db.read(note_ids.find, p.agent_id, p.project_id or "", p.ids)
    return {"missing": found.missing, "outdated": found.outdated, **({"refs": found.refs} if p.refs else {})}


def _told(note: note_ids.Kept) -> dict:
    told = {"id": note.id, "ref": note.ref, "locked": note.locked, "own": note.own}
    return told if note.digest is None else told | {"digest": note.digest}


async def replace_notes(call: Call) -> dict:
    p = call.params
    if len(p.notes) > MAX_NOTES or not (p.notes or p.gone):
        raise InvalidParams(f"notes holds {len(p.notes)} entries; send 1 to {MAX_NOTES}")
    if len(p.gone) + sum(len(note.replaces) for note in p.notes) > MAX_REPLACED:
        raise InvalidParams(f"replaces and gone name more than {MAX_REPLACED} notes in all; send them in parts")
    if p.on_conflict not in library.ON_CONFLICT:
        raise InvalidParams(f"on_conflict is one of {', '.join(library.ON_CONFLICT)}, not {p.on_conflict!r}")
    return await library.replace(
        call.ctx,
        p.agent_id,
        p.project_id or "",
        [_note(call, note) for note in p.notes],
        call.key,
        undo.check_name(p.batch),
        update=p.on_conflict == "update",
        gone=p.gone,
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
