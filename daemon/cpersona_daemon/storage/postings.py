"""The words of rows in the full-text indexes: written, replaced, removed, and kept compact.

Contract: lexical.index.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from ..model.kinds import EPISODE, MEMORY, Kind
from ..text.terms import index_text
from .frequencies import owner, rewritten
from .transaction import Transaction


def add_memories(conn: apsw.Connection, rows: list[tuple[int, str, str]]) -> None:
    """Write the postings of rows that have none yet: (id, agent, what ``index_text`` made of the content)."""
    conn.execute(
        f"INSERT INTO memory_fts (rowid, body, owner) VALUES {','.join(['(?,?,?)'] * len(rows))}",
        tuple(value for row_id, agent, body in rows for value in (row_id, body, owner(agent))),
    )


def put_memory(conn: apsw.Connection, id: int, content: str) -> None:
    """Write the postings of a stored memory, in place of those it may have. Call it only when the content changed."""
    conn.execute(
        "INSERT OR REPLACE INTO memory_fts (rowid, body, owner) VALUES (?, ?, ?)",
        (id, index_text(content), _owner_of(conn, MEMORY, id)),
    )
    rewritten(conn, MEMORY)


def drop(conn: apsw.Connection, kind: Kind, id: int) -> None:
    """Remove the postings of a row."""
    conn.execute(f"DELETE FROM {kind.fts} WHERE rowid = ?", (id,))
    rewritten(conn, kind)


def add_episode(conn: apsw.Connection, id: int, agent_id: str, summary: str, keywords: str) -> None:
    """Write the postings of an episode that has none yet."""
    conn.execute(
        "INSERT INTO episode_fts (rowid, summary, keywords, owner) VALUES (?, ?, ?, ?)",
        (id, index_text(summary), index_text(keywords), owner(agent_id)),
    )


def put_episode(conn: apsw.Connection, id: int, summary: str, keywords: str) -> None:
    """Write the postings of a stored episode, in place of those it may have."""
    conn.execute(
        "INSERT OR REPLACE INTO episode_fts (rowid, summary, keywords, owner) VALUES (?, ?, ?, ?)",
        (id, index_text(summary), index_text(keywords), _owner_of(conn, EPISODE, id)),
    )
    rewritten(conn, EPISODE)


def drop_rows(conn: apsw.Connection, kind: Kind, ids: Sequence[int]) -> None:
    """Remove the postings of many rows of a kind."""
    conn.execute(f"DELETE FROM {kind.fts} WHERE rowid IN (SELECT value FROM json_each(?))", (json.dumps(ids),))
    rewritten(conn, kind)


# FTS5 merges a segment of the index anew as soon as a tenth of its rows is deleted, in the very commit that deletes
# them: in a large index that takes seconds. While many rows go, it is told not to; afterwards the merge is done a piece
# at a time.
_INDEXES = tuple(kind.fts for kind in Kind)
_MERGE_SHARE = 10  # per cent, its own default


def pause_tidying(tx: Transaction) -> None:
    """Let deletions leave the index untidy until ``tidy`` says that it is done.

    Kept in the database, so that a restart knows.
    """
    for fts in _INDEXES:
        tx.execute(f"INSERT INTO {fts} ({fts}, rank) VALUES ('deletemerge', 0)")


def tidying_is_paused(conn: apsw.Connection) -> bool:
    return any(
        conn.execute(f"SELECT 1 FROM {fts}_config WHERE k = 'deletemerge' AND v = 0").fetchone() for fts in _INDEXES
    )


def tidy(tx: Transaction, kind: Kind, pages: int, begin: bool) -> bool:
    """Merge a piece of the index of a kind, about so many pages; ``begin`` takes in all of it as it is now.

    Tell whether there was something to do.
    """
    fts, before = kind.fts, tx.conn.total_changes()
    tx.execute(f"INSERT INTO {fts} ({fts}, rank) VALUES ('merge', ?)", (-pages if begin else pages,))
    return tx.conn.total_changes() - before > 1


def resume_tidying(tx: Transaction) -> None:
    """Let deletions keep the index tidy by themselves again."""
    for fts in _INDEXES:
        tx.execute(f"INSERT INTO {fts} ({fts}, rank) VALUES ('deletemerge', {_MERGE_SHARE})")


def _owner_of(conn: apsw.Connection, kind: Kind, id: int) -> str:
    ((agent_id,),) = conn.execute(f"SELECT agent_id FROM {kind.table} WHERE id = ?", (id,)).fetchall()
    return owner(agent_id)
