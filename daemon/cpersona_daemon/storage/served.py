"""What a vector service elsewhere is told of rows, and which of those that it names are seen by whom.

Contract: remote.told, scope.axes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import apsw

from ..model.kinds import MEMORY, Kind
from ..model.scope import Scope
from ..text.embedded import episode_text, memory_text
from . import damaged, tables
from .hidden import seen
from .scope import kind_sql


class Told(NamedTuple):
    """Whose a row is, and the text that stands for it."""

    agent_id: str
    text: str


def texts(conn: apsw.Connection, kind: Kind, ids: Sequence[int]) -> dict[int, Told]:
    """Return those of the rows that are seen and have a vector, with the text that their vector is of."""
    if not ids:
        return {}
    said = "m.content, ''" if kind == MEMORY else "m.summary, m.keywords"
    found = damaged.texts(
        conn,
        f"SELECT m.id, m.agent_id, {said} AS more FROM json_each(?) j CROSS JOIN {kind.table} m ON m.id = j.value"
        f" CROSS JOIN {kind.vectors} v ON v.id = m.id WHERE {seen(kind.table, 'm.id')}",
        (json.dumps(list(ids)),),
    )
    return {
        row_id: Told(agent_id, memory_text(text) if kind == MEMORY else episode_text(text, more))
        for row_id, agent_id, text, more in found
    }


def in_scope(conn: apsw.Connection, kind: Kind, ids: Iterable[int], scope: Scope) -> set[int]:
    """Return those of the rows that a scope sees."""
    where, params = kind_sql(scope, kind, "m.")
    found = conn.execute(
        f"SELECT m.id FROM json_each(?) j CROSS JOIN {kind.table} m ON m.id = j.value WHERE {where}",
        (json.dumps(list(ids)), *params),
    )
    return {row_id for (row_id,) in found}


def heard_of(conn: apsw.Connection, kind: Kind, most: int) -> list[int]:
    """Return the newest rows of a kind that have a vector and are not listed for a service."""
    found = conn.execute(
        f"SELECT v.id FROM {kind.vectors} v WHERE NOT EXISTS"
        " (SELECT 1 FROM outbox o WHERE o.kind = ? AND o.id = v.id) ORDER BY v.id DESC LIMIT ?",
        (kind, most),
    )
    return [row_id for (row_id,) in found]


def agents(conn: apsw.Connection) -> list[str]:
    """Return every agent that has rows."""
    return sorted({agent for kind in Kind for agent in tables.agents(conn, kind.table)})
