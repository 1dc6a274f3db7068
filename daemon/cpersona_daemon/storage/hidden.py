"""Rows that stand in their tables and that nobody sees: copies of a merge that is not through, and what is being
deleted.

A merge, and a deletion of many rows, take many short transactions, so that other writers come in between. The rows are
hidden meanwhile, and one short transaction changes what is seen: readers find all of it or nothing. Whoever writes
what a hidden row stands in the way of, removes that row. What a start finds hidden was left by a daemon that was
killed, and is deleted.

Contract: merge.copies, forget.agent.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import apsw

from ..model.kinds import Kind
from .transaction import Transaction

TABLES = (*(kind.table for kind in Kind), "entities", "relations")


def seen(table: str, column: str = "id") -> str:
    """Return the condition that the row of ``table`` that ``column`` names is not hidden."""
    return f"{column} NOT IN hidden_{table}"


def some(conn: apsw.Connection, table: str) -> bool:
    """Tell whether any row of a table is hidden."""
    return conn.execute(f"SELECT EXISTS (SELECT 1 FROM hidden_{table})").fetchall() == [(1,)]


def holds(conn: apsw.Connection, table: str, row_id: int) -> bool:
    """Tell whether this row is hidden."""
    return conn.execute(f"SELECT 1 FROM hidden_{table} WHERE id = ?", (row_id,)).fetchone() is not None


def count(conn: apsw.Connection, table: str) -> int:
    """Return how many rows of a table are hidden."""
    return conn.execute(f"SELECT count(*) FROM hidden_{table}").get


def ids(conn: apsw.Connection, table: str, at_most: int = -1) -> list[int]:
    """Return the ids of hidden rows, ascending."""
    return [i for (i,) in conn.execute(f"SELECT id FROM hidden_{table} ORDER BY id LIMIT ?", (at_most,))]


def hide(tx: Transaction, table: str, row_ids: Iterable[int]) -> None:
    """Let nobody see these rows from this transaction on."""
    tx.execute(f"INSERT OR IGNORE INTO hidden_{table} SELECT value FROM json_each(?)", (json.dumps(list(row_ids)),))


def hide_agent(tx: Transaction, table: str, agent_id: str) -> list[int]:
    """Let nobody see any row that an agent has, and return the ids of those that were seen until now, ascending."""
    row_ids = [
        i
        for (i,) in tx.execute(f"SELECT id FROM {table} WHERE agent_id = ? AND {seen(table)} ORDER BY id", (agent_id,))
    ]
    hide(tx, table, row_ids)
    return row_ids


def show_all(tx: Transaction) -> None:
    """Let everybody see every row that is hidden."""
    for table in TABLES:
        tx.execute(f"DELETE FROM hidden_{table}")
