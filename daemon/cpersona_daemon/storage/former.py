"""The words of rows that an earlier version indexed, until they are written anew.

An index whose rows name no agent and whose words were spelled otherwise cannot be turned into today's: its rows are
written anew, the newest first, a few at a time beside other work. Until a row's turn comes it is found by the former
index; a row that has postings in both counts by the new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from ..model.kinds import EPISODE, MEMORY, Kind
from ..model.scope import Scope
from ..text.terms import Term, index_text, quoted
from . import damaged
from .frequencies import owner, rewritten
from .scope import kind_sql

_TEXT = {MEMORY: "content", EPISODE: "summary, keywords"}
_WRITE = {
    MEMORY: "INSERT INTO memory_fts (rowid, body, owner) VALUES (?, ?, ?)",
    EPISODE: "INSERT INTO episode_fts (rowid, summary, keywords, owner) VALUES (?, ?, ?, ?)",
}


def _index_of(kind: Kind) -> str:
    return f"{kind.fts}_former"


def present(conn: apsw.Connection) -> bool:
    """Tell whether some rows may still have to be written anew."""
    return bool(conn.execute("SELECT 1 FROM meta WHERE key = 'former_words'").fetchall())


def any_form(term: Term) -> str:
    """Return what finds a term as it was indexed then: in today's spelling, or as it is written."""
    forms = dict.fromkeys((*term.forms, quoted(term.text)))
    return f"({' OR '.join(forms)})"


def search(
    conn: apsw.Connection, kind: Kind, terms: Sequence[Term], scope: Scope, depth: int
) -> list[tuple[int, float]]:
    """Return the best ``depth`` rows in scope that wait for new postings as (id, bm25), best first."""
    if not terms:
        return []
    fts, today, table = _index_of(kind), kind.fts, kind.table
    axes, params = kind_sql(scope, kind, "m.")
    found: Any = conn.execute(
        f"SELECT f.rowid, bm25({fts}) AS score FROM {fts} AS f CROSS JOIN {table} m ON m.id = f.rowid"
        f" WHERE {fts} MATCH ? AND {axes} AND f.rowid NOT IN (SELECT id FROM {today}_docsize)"
        " ORDER BY score, f.rowid LIMIT ?",
        (" OR ".join(map(any_form, terms)), *params, depth),
    ).fetchall()
    return list(found)


def holders(conn: apsw.Connection, kind: Kind, terms: Sequence[Term], scope: Scope, most: int) -> list[int]:
    """Return the newest ``most`` rows in scope that wait for new postings and hold every term."""
    fts, today, table = _index_of(kind), kind.fts, kind.table
    axes, params = kind_sql(scope, kind, "m.")
    return [
        i
        for (i,) in conn.execute(
            f"SELECT f.rowid FROM {fts} AS f CROSS JOIN {table} m ON m.id = f.rowid WHERE {fts} MATCH ? AND {axes}"
            f" AND f.rowid NOT IN (SELECT id FROM {today}_docsize) ORDER BY f.rowid DESC LIMIT ?",
            (" AND ".join(map(any_form, terms)), *params, most),
        )
    ]


def write_anew(conn: apsw.Connection, most: int) -> bool:
    """Give the newest ``most`` rows that wait their new postings, and tell whether any are left; after the last the
    former index goes.
    """
    if not present(conn):
        return False
    for kind in Kind:
        rows = damaged.texts(
            conn,
            f"SELECT id, agent_id, {_TEXT[kind]} FROM {kind.table} WHERE id < coalesce((SELECT value FROM meta"
            " WHERE key = ?), 9e18)"
            f" AND id NOT IN (SELECT id FROM {kind.fts}_docsize) ORDER BY id DESC LIMIT ?",
            (f"former_{kind}", most),
        )
        for row_id, agent_id, *body in reversed(rows):  # FTS5 writes out what it gathered before a row with a lower id
            conn.execute(_WRITE[kind], (row_id, *map(index_text, body), owner(agent_id)))
        if rows:
            conn.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"former_{kind}", rows[-1][0]))
            rewritten(conn, kind)
            return True
    forget(conn)
    return False


def forget(conn: apsw.Connection) -> None:
    """Remove the former index."""
    for kind in Kind:
        conn.execute(f"DROP TABLE IF EXISTS {_index_of(kind)}")
    conn.execute("DELETE FROM meta WHERE key IN ('former_words', 'former_mem', 'former_ep')")
