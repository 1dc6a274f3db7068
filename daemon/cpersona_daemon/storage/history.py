"""What a store can still tell of its past: which texts were changed when, and how many rows were deleted when.

A look at an earlier instant shows the rows of today that were stored by then. These statements say how many of them
had another text then and how many rows are gone since, so that the answer can say what it does not know. Of a deleted
row only its kind, its axes and its two instants are kept, and only of the newest DELETIONS_KEPT of the store.

Contract: time.asof.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import apsw

from ..model.instants import created_text
from ..model.kinds import MEMORY, Kind
from ..model.scope import Scope
from .scope import memory_sql, row_sql, stored_sql
from .transaction import Transaction

DELETIONS_KEPT = 100_000
DROPPED_TOGETHER = 1_000
COUNTED = 10_000  # rows of a sort that are counted at most
EVERYONE = ""  # the agent_id of what holds for every agent of the store


@dataclass(frozen=True, slots=True)
class Unknown:
    """What an answer as of an instant cannot know: how many rows were changed and how many deleted since, COUNTED of
    each at most.

    What was changed or deleted before ``recorded_since``, in created_at's form, is missing from both; '' means that
    nothing is.
    """

    changed: int
    deleted: int
    recorded_since: str


def note_deletion(tx: Transaction, kind: Kind, row_id: int) -> None:
    """Keep that a row, which is there still, is deleted now; now and then the oldest notes above DELETIONS_KEPT go."""
    tx.execute(
        "INSERT INTO deletions (kind, agent_id, project_id, channel, created_at, deleted_at)"
        f" SELECT ?, agent_id, project_id, channel, created_at, ? FROM {kind.table} WHERE id = ?",
        (kind, created_text(tx.now), row_id),
    )
    note = tx.conn.last_insert_rowid() if tx.conn.changes() else 0
    if note and note % DROPPED_TOGETHER == 0:
        _drop_oldest(tx, note)


def note_deletions(tx: Transaction, kind: Kind, row_ids: list[int]) -> None:
    """The same of many rows at once."""
    if row_ids:
        tx.execute(
            "INSERT INTO deletions (kind, agent_id, project_id, channel, created_at, deleted_at)"
            f" SELECT ?, agent_id, project_id, channel, created_at, ? FROM {kind.table}"
            " WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
            (kind, created_text(tx.now), json.dumps(row_ids)),
        )
        _drop_oldest(tx, tx.conn.last_insert_rowid())


def note_return(tx: Transaction, kind: Kind, agent_id: str, created_at: str, deleted_at: str) -> None:
    """Forget that a row was deleted, which is back."""
    tx.execute(
        "DELETE FROM deletions WHERE id = (SELECT id FROM deletions WHERE agent_id = ? AND deleted_at = ? AND kind = ?"
        " AND created_at = ? LIMIT 1)",
        (agent_id, deleted_at, kind, created_at),
    )


def _drop_oldest(tx: Transaction, note: int) -> None:
    if note > DELETIONS_KEPT:
        dropped: Any = tx.execute(
            "DELETE FROM deletions WHERE id <= ? RETURNING deleted_at", (note - DELETIONS_KEPT,)
        ).fetchall()
        if dropped:
            _put_since(tx, EVERYONE, max(at for (at,) in dropped))


def note_arrival(tx: Transaction, agent_id: str) -> None:
    """Keep that an agent gets rows of an earlier time now, from a file or from another agent: what happened to such
    rows before is not known.
    """
    _put_since(tx, agent_id, created_text(tx.now))


def last_arrival(conn: apsw.Connection, agent_id: str) -> str:
    """Return when an agent last got rows of an earlier time, '' for never."""
    row: Any = conn.execute("SELECT since FROM recorded_since WHERE agent_id = ?", (agent_id,)).fetchone()
    return row[0] if row else ""


def _put_since(tx: Transaction, agent_id: str, since: str) -> None:
    tx.execute(
        "INSERT INTO recorded_since VALUES (?, ?)"
        " ON CONFLICT (agent_id) DO UPDATE SET since = max(since, excluded.since)",
        (agent_id, since),
    )


def forget(tx: Transaction, agent_id: str) -> None:
    """Remove what is kept of an agent's deleted rows."""
    tx.execute("DELETE FROM deletions WHERE agent_id = ?", (agent_id,))
    tx.execute("DELETE FROM recorded_since WHERE agent_id = ?", (agent_id,))


def unknown(conn: apsw.Connection, scope: Scope, kinds: tuple[Kind, ...], everyone: bool = False) -> Unknown:
    """Return what a look at ``scope.as_of`` cannot know of rows of these kinds, of every agent with ``everyone``.

    The source of a deleted row is not kept: where the scope names one, rows of any source are counted as deleted.
    """
    # Rows that have changed since are counted here, whatever is kept of them.
    stored = replace(scope, as_of="", until=scope.latest)
    axes = stored_sql(stored, everyone=everyone)
    rows = row_sql(stored, MEMORY.table, everyone=True) if everyone else memory_sql(stored)
    changed = (
        _count(conn, "memories INDEXED BY memories_changed WHERE changed_at > ?", [scope.as_of], rows)
        if MEMORY in kinds
        else 0
    )
    gone = _count(
        conn, f"deletions WHERE deleted_at > ? AND kind IN ({','.join('?' * len(kinds))})", [scope.as_of, *kinds], axes
    )
    since: Any
    ((since,),) = conn.execute(
        "SELECT coalesce(max(since), '') FROM recorded_since WHERE ? OR agent_id IN (?, ?)",
        (everyone, scope.agent_id, EVERYONE),
    ).fetchall()
    return Unknown(changed, gone, since)


def _count(conn: apsw.Connection, rows: str, values: list, where: tuple[str, list]) -> int:
    condition, params = where
    n: Any
    ((n,),) = conn.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM {rows} AND {condition} LIMIT {COUNTED})", (*values, *params)
    ).fetchall()
    return n
