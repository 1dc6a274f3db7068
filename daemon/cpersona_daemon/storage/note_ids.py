"""Which of many notes are there, asked by the keys that their writer gave them.

Contract: git.notes, git.paths, dedup.skip.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from ..shared.commit_notes import FILES
from .hidden import seen


def missing_and_outdated(
    conn: apsw.Connection, agent_id: str, project_id: str, ids: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return those of the message ids that no memory has in the project or the global one, and those of unlocked
    memories whose metadata name paths that their text does not list; both in the order asked.
    """
    missing, outdated = [], []
    for msg_id, found, old in conn.execute(
        "SELECT j.value, count(m.id), max(CASE WHEN m.locked OR instr(m.content, ?) THEN 0"
        " WHEN json_valid(m.metadata) THEN coalesce(json_array_length(m.metadata, '$.paths'), 0) END)"
        " FROM json_each(?) j LEFT JOIN memories m ON m.agent_id = ? AND m.msg_id = j.value AND m.msg_id <> ''"
        f" AND m.project_id IN (?, '') AND {seen('memories', 'm.id')} GROUP BY j.id ORDER BY j.id",
        (FILES, json.dumps(ids), agent_id, project_id),
    ):
        if not found:
            missing.append(msg_id)
        elif old:
            outdated.append(msg_id)
    return missing, outdated
