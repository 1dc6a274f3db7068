"""Saved questions, each with the row that must come back, and how their last run went.

Contract: canary.run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw

from ..model.instants import created_text
from ..model.kinds import Kind
from . import damaged
from .transaction import Transaction

FOUND, LOST, GONE = "found", "lost", "gone"
_STAMP = "canaries_ran_with"


@dataclass(frozen=True, slots=True)
class Canary:
    """One saved question. ``project_id`` None asks without that filter; ``state`` is '' before the first run, ``rank``
    1 is best.
    """

    id: int
    agent_id: str
    project_id: str | None
    channel: str
    query: str
    kind: str
    record_id: int
    created_at: str
    ran_at: str | None
    state: str
    rank: int | None

    @property
    def ref(self) -> str:
        return Kind(self.kind).ref(self.record_id)


_COLUMNS = "id, agent_id, project_id, channel, query, kind, record_id, created_at, ran_at, state, rank"


def listed(conn: apsw.Connection, agent_id: str = "") -> list[Canary]:
    """Return the canaries of an agent ('' = all) in the order they were saved."""
    where, params = ("WHERE agent_id = ?", (agent_id,)) if agent_id else ("", ())
    return [Canary(*row) for row in damaged.texts(conn, f"SELECT {_COLUMNS} FROM canaries {where} ORDER BY id", params)]


def counts(conn: apsw.Connection, agent_id: str = "") -> dict[str, int]:
    """Return `{total, lost}` of an agent's canaries ('' = all) as their last run left them."""
    where, params = ("WHERE agent_id = ?", (agent_id,)) if agent_id else ("", ())
    total: Any
    lost: Any
    ((total, lost),) = conn.execute(
        f"SELECT count(*), coalesce(sum(state IN ('{LOST}', '{GONE}')), 0) FROM canaries {where}", params
    ).fetchall()
    return {"total": total, "lost": lost}


def same(
    conn: apsw.Connection, agent_id: str, project_id: str | None, channel: str, query: str, kind: str, record_id: int
) -> Canary | None:
    """Return the canary that asks exactly this, if there is one."""
    row = conn.execute(
        f"SELECT {_COLUMNS} FROM canaries WHERE agent_id = ? AND project_id IS ? AND channel = ? AND query = ?"
        " AND kind = ? AND record_id = ?",
        (agent_id, project_id, channel, query, kind, record_id),
    ).fetchone()
    return None if row is None else Canary(*row)


def count(conn: apsw.Connection, agent_id: str) -> int:
    count: Any = conn.execute("SELECT count(*) FROM canaries WHERE agent_id = ?", (agent_id,)).fetchone()
    return count[0]


def insert(
    tx: Transaction, agent_id: str, project_id: str | None, channel: str, query: str, kind: str, record_id: int
) -> int:
    """Save a question and return its id."""
    tx.execute(
        "INSERT INTO canaries (agent_id, project_id, channel, query, kind, record_id, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (agent_id, project_id, channel, query, kind, record_id, created_text(tx.now)),
    )
    return tx.conn.last_insert_rowid()


def remove(tx: Transaction, canary_id: int, agent_id: str = "") -> bool:
    """Remove a saved question (of this agent, if one is named) and tell whether it was there."""
    tx.execute("DELETE FROM canaries WHERE id = ? AND (? = '' OR agent_id = ?)", (canary_id, agent_id, agent_id))
    return tx.conn.changes() > 0


def remove_agent(tx: Transaction, agent_id: str) -> None:
    tx.execute("DELETE FROM canaries WHERE agent_id = ?", (agent_id,))


def record(tx: Transaction, outcomes: list[tuple[int, str, int | None]]) -> None:
    """Keep how a run went: (id, state, rank) each."""
    for canary_id, state, rank in outcomes:
        tx.execute(
            "UPDATE canaries SET ran_at = ?, state = ?, rank = ? WHERE id = ?",
            (created_text(tx.now), state, rank, canary_id),
        )


def ran_with(conn: apsw.Connection) -> str | None:
    """Return what the store looked like to recall when all canaries ran last, as ``keep_ran_with`` was told."""
    row = conn.execute("SELECT value FROM meta WHERE key = ?", (_STAMP,)).fetchone()
    return None if row is None else row[0]


def keep_ran_with(tx: Transaction, stamp: str) -> None:
    tx.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_STAMP, stamp))
