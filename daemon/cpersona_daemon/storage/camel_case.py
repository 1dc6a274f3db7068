"""The words inside camel-case runs of rows that an earlier version indexed: written beside their other words, the
newest rows first, a few at a time beside other work. Until its turn comes a row is found by its other words.

Contract: lexical.index.
"""

from __future__ import annotations

from typing import Any

import apsw

from ..model.kinds import EPISODE, MEMORY, Kind
from ..text.identifiers import humped
from . import damaged, postings

LOOKED_AT = 2_000  # rows of one step, most of which hold no such run

_TEXT = {MEMORY: "content", EPISODE: "summary, keywords"}


def _key(kind: Kind) -> str:
    return f"camel_case_{kind}"


def begin(conn: apsw.Connection) -> None:
    """Note that all rows which are there now have to be looked at."""
    for kind in Kind:
        conn.execute(
            f"INSERT INTO meta SELECT ?, max(id) + 1 FROM {kind.table} HAVING max(id) IS NOT NULL", (_key(kind),)
        )


def present(conn: apsw.Connection) -> bool:
    """Tell whether some rows may still have to be looked at."""
    keys = [_key(kind) for kind in Kind]
    return bool(conn.execute("SELECT 1 FROM meta WHERE key IN (?, ?)", keys).fetchall())


def write(conn: apsw.Connection, most: int) -> bool:
    """Look at the newest rows that wait and write the words of ``most`` of them at most; tell whether any are left."""
    for kind in Kind:
        below: Any = conn.execute("SELECT value FROM meta WHERE key = ?", (_key(kind),)).fetchall()
        if below:
            _write(conn, kind, below[0][0], most)
            return present(conn)
    return False


def _write(conn: apsw.Connection, kind: Kind, below: int, most: int) -> None:
    rows = damaged.texts(
        conn, f"SELECT id, {_TEXT[kind]} FROM {kind.table} WHERE id < ? ORDER BY id DESC LIMIT ?", (below, LOOKED_AT)
    )
    due = [row for row in rows if any(map(humped, row[1:]))][:most]
    for row_id, *body in reversed(due):  # FTS5 writes out what it gathered before a row with a lower id
        (postings.put_memory if kind == MEMORY else postings.put_episode)(conn, row_id, *body)
    if len(due) == most:
        below = due[-1][0]
    elif len(rows) == LOOKED_AT:
        below = rows[-1][0]
    else:
        conn.execute("DELETE FROM meta WHERE key = ?", (_key(kind),))
        return
    conn.execute("UPDATE meta SET value = ? WHERE key = ?", (below, _key(kind)))
