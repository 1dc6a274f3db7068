"""What is asked of the table of memories and of the table of episodes alike; each names its table and its columns.

Contract: scope.axes, lists.newest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import apsw

from ..model.scope import Scope
from ..shared import fields
from . import hidden
from .damaged import Unreadable, rows
from .scope import pool_sql, row_sql


class _Numbered(Protocol):
    @property
    def id(self) -> int: ...


_Row = TypeVar("_Row", bound=_Numbered)


def by_ids(
    conn: apsw.Connection, table: str, columns: str, ids: list[int], seen: tuple[str, list] | None, agent_id: str | None
) -> Iterable[tuple | Unreadable]:
    """Return the rows with these ids for which the condition ``seen`` holds, or that the agent owns where None."""
    condition, params = seen or (hidden.seen(table), [])
    if seen is None and agent_id is not None:
        condition, params = f"agent_id = ? AND {condition}", [agent_id]
    # Left to itself SQLite would walk through the whole index of the agent and look each row up in the list.
    return rows(
        conn,
        f"SELECT {columns} FROM {table} NOT INDEXED WHERE id IN (SELECT value FROM json_each(?)) AND {condition}",
        (json.dumps(ids), *params),
    )


def agents(conn: apsw.Connection, table: str, at_most: int = -1) -> list[str]:
    """Return the agents that have rows in the table, in their order, one step in an index each; -1 means all."""

    def after(name: str) -> str:
        return (
            f"(SELECT agent_id FROM {table} WHERE agent_id > {name} AND {hidden.seen(table)} ORDER BY agent_id LIMIT 1)"
        )

    rows = conn.execute(
        f"WITH RECURSIVE a(agent) AS (SELECT {after('?1')} UNION ALL SELECT {after('a.agent')} FROM a"
        " WHERE a.agent IS NOT NULL) SELECT agent FROM a WHERE agent IS NOT NULL LIMIT ?2",
        ("", at_most),
    )
    return [agent for (agent,) in rows]


def owns(conn: apsw.Connection, table: str, agent_id: str, row_id: int) -> bool:
    """Tell whether the agent has the row of ``table`` with this id, and it is seen."""
    return (
        conn.execute(
            f"SELECT 1 FROM {table} WHERE id = ? AND agent_id = ? AND {hidden.seen(table)}", (row_id, agent_id)
        ).fetchone()
        is not None
    )


def newest(
    conn: apsw.Connection,
    table: str,
    columns: str,
    agent_id: str,
    project_id: str | None,
    limit: int,
    since: str = "",
    until: str = "",
    channel: str = "",
    narrowed: Sequence[tuple[str, tuple]] = (),
) -> Iterable[tuple | Unreadable]:
    """Return rows created_at DESC, id DESC; agent '' means all agents, ``since`` and ``until`` are inclusive, and '' is
    open, as is channel ''. ``narrowed`` are more conditions with their parameters.
    """
    asked = [
        ("agent_id = ?", agent_id or None),
        ("project_id IN (?, '')", project_id),
        ("channel IN (?, '')", channel or None),
        ("created_at >= ?", since or None),
        ("created_at <= ?", until or None),
    ]
    conditions = [(condition, value) for condition, value in asked if value is not None]
    where = " AND ".join([hidden.seen(table), *(condition for condition, _ in (*conditions, *narrowed))])
    values = [value for _, value in conditions] + [value for _, more in narrowed for value in more]
    return rows(
        conn, f"SELECT {columns} FROM {table} WHERE {where} ORDER BY created_at DESC, id DESC LIMIT ?", (*values, limit)
    )


def within_a_frame(found: Iterable[_Row | Unreadable], size: Callable[[_Row], int]) -> list[_Row | Unreadable]:
    """Return rows until they have more characters than one answer carries; of those behind only the name is kept."""
    out: list[_Row | Unreadable] = []
    room = fields.MAX_FRAME_BYTES
    for row in found:
        if not isinstance(row, Unreadable):
            room -= size(row)
            row = (
                row if room >= 0 else Unreadable(row.id, "the answer is full without it; ask for fewer rows at a time")
            )
        out.append(row)
    return out


def count_in_scope(conn: apsw.Connection, table: str, scope: Scope, at_most: int) -> int:
    """Count the rows in the agent, project and channel scope, stopping at ``at_most``; stored at any time that is
    known of.
    """
    return _counted(conn, table, at_most, *pool_sql(scope, table))


def count_seen(conn: apsw.Connection, table: str, scope: Scope, at_most: int) -> int:
    """Count the rows of a scope but for its source, stopping at ``at_most``."""
    return _counted(conn, table, at_most, *row_sql(scope, table))


def _counted(conn: apsw.Connection, table: str, at_most: int, condition: str, params: list) -> int:
    n: Any
    ((n,),) = conn.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {condition} LIMIT ?)", (*params, at_most)
    ).fetchall()
    return n
