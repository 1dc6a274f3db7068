"""Every statement on named batches: which run wrote a row, so that the run can be taken back.

Contract: batch.undo.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import apsw

from ..model.kinds import EPISODE, MEMORY
from .hidden import seen
from .transaction import Transaction


def label(tx: Transaction, kind: str, row_id: int, batch: str) -> None:
    """Note that a row was written by this batch."""
    tx.execute("INSERT INTO batches (kind, id, batch) VALUES (?, ?, ?)", (kind, row_id, batch))


def unlocked_memories(conn: apsw.Connection, batch: str, agent_id: str, at_most: int) -> list[int]:
    """Return ids of memories of a batch that may be deleted, ascending; agent '' means every agent."""
    return [
        i
        for (i,) in conn.execute(
            "SELECT b.id FROM batches b CROSS JOIN memories m ON m.id = b.id WHERE b.batch = ? AND b.kind = ?"
            f" AND ? IN (m.agent_id, '') AND NOT m.locked AND {seen('memories', 'm.id')} ORDER BY b.id LIMIT ?",
            (batch, MEMORY, agent_id, at_most),
        )
    ]


def locked_memories(conn: apsw.Connection, batch: str, agent_id: str, at_most: int) -> tuple[int, list[int]]:
    """Return how many memories of a batch are locked, and the first of their ids."""
    rows = (
        "FROM batches b CROSS JOIN memories m ON m.id = b.id"
        f" WHERE b.batch = ? AND b.kind = ? AND ? IN (m.agent_id, '') AND m.locked AND {seen('memories', 'm.id')}"
    )
    count: Any
    ((count,),) = conn.execute(f"SELECT count(*) {rows}", (batch, MEMORY, agent_id)).fetchall()
    return count, [
        i for (i,) in conn.execute(f"SELECT b.id {rows} ORDER BY b.id LIMIT ?", (batch, MEMORY, agent_id, at_most))
    ]


def episodes(conn: apsw.Connection, batch: str, agent_id: str, at_most: int) -> list[int]:
    """Return ids of episodes of a batch, ascending; agent '' means every agent."""
    return [
        i
        for (i,) in conn.execute(
            "SELECT b.id FROM batches b CROSS JOIN episodes e ON e.id = b.id WHERE b.batch = ? AND b.kind = ?"
            f" AND ? IN (e.agent_id, '') AND {seen('episodes', 'e.id')} ORDER BY b.id LIMIT ?",
            (batch, EPISODE, agent_id, at_most),
        )
    ]


@dataclass(frozen=True, slots=True)
class Overview:
    """What a batch has: rows by kind, how many are locked, when the first and the last was stored, and whose they
    are.
    """

    batch: str
    memories: int
    episodes: int
    locked: int
    first: str
    last: str
    agents: list[str]


def overview(conn: apsw.Connection, agent_id: str, at_most: int) -> list[Overview]:
    """Return what each batch has, the one with the latest row first; agent '' means every agent."""
    each = " UNION ALL ".join(
        f"SELECT b.batch, b.kind, r.created_at, r.agent_id, {locked} AS locked FROM batches b"
        f" CROSS JOIN {kind.table} r ON r.id = b.id WHERE b.kind = '{kind}' AND ?1 IN (r.agent_id, '')"
        f" AND {seen(kind.table, 'r.id')}"
        for kind, locked in ((MEMORY, "r.locked"), (EPISODE, "0"))
    )
    found: Any = conn.execute(
        f"SELECT batch, sum(kind = '{MEMORY}'), sum(kind = '{EPISODE}'), sum(locked), min(created_at),"
        f" max(created_at), json_group_array(DISTINCT agent_id) FROM ({each}) GROUP BY batch"
        " ORDER BY max(created_at) DESC, batch LIMIT ?2",
        (agent_id, at_most),
    ).fetchall()
    return [Overview(*(*row[:6], json.loads(row[6]))) for row in found]


def total(conn: apsw.Connection, batch: str, agent_id: str) -> int:
    """Count the rows that a batch has; agent '' means every agent."""
    count: Any
    ((count,),) = conn.execute(
        "SELECT count(*) FROM batches b WHERE batch = ?1 AND (?2 = '' OR CASE kind WHEN ?3 THEN (SELECT agent_id"
        " FROM memories WHERE id = b.id)"
        " ELSE (SELECT agent_id FROM episodes WHERE id = b.id) END = ?2)",
        (batch, agent_id, MEMORY),
    ).fetchall()
    return count
