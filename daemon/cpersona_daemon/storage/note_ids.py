"""Which of many notes are there, asked by the keys that their writer gave them.

Contract: git.notes, git.paths, notes.upsert, dedup.skip.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import apsw

from ..model.kinds import MEMORY
from ..shared.commit_notes import FILES
from .hidden import seen


@dataclass(frozen=True, slots=True)
class NoteIds:
    """Message ids in the order asked: those that no memory has, those of unlocked memories whose metadata name paths
    that their text does not list, and the refs of those that are there.
    """

    missing: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    refs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kept:
    """A note that is there: its message id, its ref, whether it is locked, whether it lies in the project that was
    asked for (else in the global one), and the digest that its writer left in its metadata, None where there is none.
    """

    id: str
    ref: str
    locked: bool
    own: bool
    digest: str | None


def find(conn: apsw.Connection, agent_id: str, project_id: str, ids: Sequence[str]) -> NoteIds:
    """Look for memories with these message ids, in the project before the global one."""
    found = NoteIds()
    for msg_id, memory_id, old in conn.execute(
        "SELECT j.value, m.id, CASE WHEN m.locked OR instr(m.content, ?) THEN 0"
        " WHEN json_valid(m.metadata) THEN json_array_length(m.metadata, '$.paths') END"
        " FROM json_each(?) j LEFT JOIN memories m ON m.agent_id = ? AND m.msg_id = j.value AND m.msg_id <> ''"
        f" AND m.project_id IN (?, '') AND {seen('memories', 'm.id')} ORDER BY j.id, m.project_id = ''",
        (FILES, json.dumps(ids), agent_id, project_id),
    ):
        if memory_id is None:
            found.missing.append(msg_id)
        elif msg_id not in found.refs:
            found.refs[msg_id] = MEMORY.ref(memory_id)
            if old:
                found.outdated.append(msg_id)
    return found


def under(
    conn: apsw.Connection, agent_id: str, project_id: str, prefix: str, after: str, at_most: int
) -> tuple[list[Kept], bool]:
    """Return the memories whose message ids begin with ``prefix`` and come behind ``after``, by message id, and whether
    there are more. Of one in the project and one in the global one it is the project's.
    """
    kept: list[Kept] = []
    for msg_id, memory_id, locked, project, digest in conn.execute(
        "SELECT msg_id, id, locked, project_id,"
        " CASE WHEN json_valid(metadata) THEN json_extract(metadata, '$.digest') END"
        " FROM memories WHERE agent_id = ? AND msg_id >= ? AND msg_id < ? || char(0x10ffff) AND msg_id > ?"
        f" AND msg_id <> '' AND project_id IN (?, '') AND {seen('memories')} ORDER BY msg_id, project_id DESC LIMIT ?",
        (agent_id, prefix, prefix, after, project_id, 2 * at_most + 1),
    ):
        if not kept or kept[-1].id != msg_id:
            kept.append(Kept(msg_id, MEMORY.ref(memory_id), bool(locked), project == project_id, digest))
    return kept[:at_most], len(kept) > at_most
