"""What ranking needs to know of candidate rows beside their scores, without their text.

Contract: confidence.counts, prior.age, exclude.texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from ..model.instants import parse_instant
from ..model.kinds import EPISODE, MEMORY, Rid, by_kind
from ..model.scope import Scope
from . import damaged
from .scope import time_sql

NEAR_IDS = 8  # rows of other agents and sources that may have been stored in between


@dataclass(frozen=True, slots=True)
class Facts:
    """Times as epoch seconds, None where a row names none."""

    instant: float | None
    recall_count: int = 0
    last_recalled: float | None = None
    resolved: bool = False
    is_episode: bool = False


def facts(conn: apsw.Connection, rids: list[Rid]) -> dict[Rid, Facts]:
    """Return the facts of those rows that exist."""
    out: dict[Rid, Facts] = {}
    ids = by_kind(rids)
    for row_id, instant, count, last in damaged.texts(
        conn,
        "SELECT id, instant, recall_count, last_recalled_at FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids[MEMORY]),),
    ):
        out[MEMORY, row_id] = Facts(instant, count, parse_instant(last))
    for row_id, start, created, resolved in damaged.texts(
        conn,
        "SELECT id, start_time, created_at, resolved FROM episodes WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids[EPISODE]),),
    ):
        out[EPISODE, row_id] = Facts(parse_instant(start or created), resolved=bool(resolved), is_episode=True)
    return out


def readings(conn: apsw.Connection, rids: Iterable[Rid]) -> dict[Rid, tuple[str, float | None]]:
    """Return the indexed text of those rows that exist and the instant they tell of: epoch seconds, None where they
    name none.
    """
    out: dict[Rid, tuple[str, float | None]] = {}
    ids = by_kind(rids)
    for row_id, content, instant in damaged.texts(
        conn,
        "SELECT id, content, instant FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids[MEMORY]),),
    ):
        out[MEMORY, row_id] = content, instant
    for row_id, summary, keywords, start, created in damaged.texts(
        conn,
        "SELECT id, summary, keywords, start_time, created_at FROM episodes WHERE id IN (SELECT value"
        " FROM json_each(?))",
        (json.dumps(ids[EPISODE]),),
    ):
        out[EPISODE, row_id] = f"{summary}\n{keywords}", parse_instant(start or created)
    return out


def beside(conn: apsw.Connection, ids: Iterable[int], seconds: float, scope: Scope) -> list[tuple[int, int]]:
    """Return pairs of memories: each of ``ids`` with the one stored just before it and the one just after.

    Neighbours share all axes and the source, are of the times that the scope sees, and their instants lie within
    ``seconds``, at most ``NEAR_IDS`` ids apart. Memories that name no source have none: nothing says that one who
    noted two things in a row spoke of one.
    """
    nearest: dict[tuple[int, bool], int] = {}
    time, instants = time_sql(scope, "+n.")  # as the agent: no index is to be chosen for it
    rows = conn.execute(
        "SELECT m.id, n.id FROM json_each(?) j CROSS JOIN memories m ON m.id = j.value"
        " CROSS JOIN memories n ON n.id BETWEEN m.id - ? AND m.id + ?"
        # The plus keeps the walk to the few ids: an index on the agent would offer all of its rows.
        " WHERE n.id <> m.id AND +n.agent_id = m.agent_id AND n.project_id = m.project_id AND n.channel = m.channel"
        " AND n.source_id = m.source_id AND abs(n.instant - m.instant) <= ?" + time,
        (json.dumps(list(ids)), NEAR_IDS, NEAR_IDS, seconds, *instants),
    )
    for row, other in rows:
        side = (row, other > row)
        if side not in nearest or abs(other - row) < abs(nearest[side] - row):
            nearest[side] = other
    return [(row, other) for (row, _), other in nearest.items()]


def around(conn: apsw.Connection, ids: list[int], scope: Scope) -> list[tuple[int, tuple[str, str, str, str], float]]:
    """Return of the memories at most ``NEAR_IDS`` ids from one of ``ids`` their agent, project, channel and source, and
    their instant: those that name a source and an instant and are of the times that the scope sees.
    """
    time, instants = time_sql(scope, "+n.")
    return [
        (row_id, (agent, project, channel, source), instant)
        for row_id, agent, project, channel, source, instant in damaged.texts(
            conn,
            "SELECT DISTINCT n.id, n.agent_id, n.project_id, n.channel, n.source_id, n.instant FROM json_each(?) j"
            " CROSS JOIN memories n ON n.id BETWEEN j.value - ? AND j.value + ?"
            " WHERE n.source_id IS NOT NULL AND n.instant IS NOT NULL" + time,
            (json.dumps(ids), NEAR_IDS, NEAR_IDS, *instants),
        )
    ]


def sources(conn: apsw.Connection, ids: list[int]) -> dict[int, tuple[str, ...]]:
    """Return of those memories that exist who said them and where: project, channel and source as they are stored."""
    return {
        row_id: tuple(axes)
        for row_id, *axes in damaged.texts(
            conn,
            "SELECT id, project_id, channel, source FROM memories WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps(ids),),
        )
    }


def texts(conn: apsw.Connection, rids: list[Rid]) -> dict[Rid, str]:
    """Return the displayed texts of those rows that exist."""
    out: dict[Rid, str] = {}
    ids = by_kind(rids)
    for row_id, content in damaged.texts(
        conn,
        "SELECT id, content FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids[MEMORY]),),
    ):
        out[MEMORY, row_id] = content
    for row_id, summary in damaged.texts(
        conn,
        "SELECT id, summary FROM episodes WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(ids[EPISODE]),),
    ):
        out[EPISODE, row_id] = f"[Episode] {summary}"
    return out
