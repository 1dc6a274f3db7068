"""Whether some row holds a text, by its words, all of them, in one row; or a single term: no score and no threshold.

Contract: exists.words.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import apsw

from ..model.kinds import EPISODE, MEMORY, Rid
from ..model.scope import Scope
from ..text.folding import as_meant
from ..text.terms import LexicalQuery, Term, quoted
from . import former
from .damaged import texts
from .frequencies import owner
from .scope import kind_sql

LOOKED_AT = 50  # the newest rows with all words, among which one that holds the text itself is preferred
LOOKED_THROUGH = (
    1_000  # the agent's newest rows with a term, of which one in scope is sought; a term in more rows is taken for held
)

_BODY = {MEMORY: "m.content", EPISODE: "m.summary || ' ' || m.keywords"}


def holder(conn: apsw.Connection, text: str, query: LexicalQuery, scope: Scope) -> tuple[Rid, bool] | None:
    """Return a row in scope that holds every term of ``query``, and whether it holds ``text`` itself; None where none
    does.

    A memory comes before an episode, one with the very text before one with its words, the newest first.
    """
    if not query.terms:
        return None
    expression, needle = (
        _within(scope, " AND ".join(f"({' OR '.join(term.forms)})" for term in query.terms)),
        as_meant(text),
    )
    both = former.present(conn)
    by_words: tuple[Rid, bool] | None = None
    for kind in scope.kinds:
        fts, table, body = kind.fts, kind.table, _BODY[kind]
        axes, params = kind_sql(scope, kind, "m.")
        rows = texts(
            conn,
            f"SELECT m.id, {body} FROM {fts} f CROSS JOIN {table} m ON m.id = f.rowid WHERE {fts} MATCH ? AND {axes}"
            " ORDER BY f.rowid DESC LIMIT ?",
            (expression, *params, LOOKED_AT),
        )
        if both and (waiting := former.holders(conn, kind, query.terms, scope, LOOKED_AT)):
            rows += texts(
                conn,
                f"SELECT m.id, {body} FROM {table} m WHERE m.id IN (SELECT value FROM json_each(?))",
                (json.dumps(waiting),),
            )
            rows.sort(reverse=True)
        for row_id, content in rows:
            if needle in as_meant(content):
                return (kind, row_id), True
        if rows and by_words is None:
            by_words = (kind, rows[0][0]), False
    return by_words


def holds(conn: apsw.Connection, term: Term, scope: Scope, reads: Callable[[str], bool] | None = None) -> bool:
    """Tell whether a row in scope holds a term in any of its forms; ``reads`` tells it of a text, where words are not
    enough.
    """
    if reads is not None:
        return _read(conn, term, scope, reads)
    for kind in scope.kinds:
        fts, table = kind.fts, kind.table
        axes, params = kind_sql(scope, kind, "m.")
        newest = f"SELECT rowid FROM {fts} WHERE {fts} MATCH ? ORDER BY rowid DESC LIMIT ?"
        ((inside, looked_through),) = conn.execute(
            f"WITH f AS MATERIALIZED ({newest})"
            f" SELECT EXISTS (SELECT 1 FROM f CROSS JOIN {table} m ON m.id = f.rowid WHERE {axes}),"
            " (SELECT count(*) FROM f)",
            (_within(scope, " OR ".join(term.forms)), LOOKED_THROUGH, *params),
        ).fetchall()
        if (
            inside
            or looked_through == LOOKED_THROUGH
            or former.present(conn)
            and former.holders(conn, kind, [term], scope, 1)
        ):
            return True
    return False


def _read(conn: apsw.Connection, term: Term, scope: Scope, reads: Callable[[str], bool]) -> bool:
    """Tell whether one of the newest rows in scope with the words of a term holds it as its text says."""
    for kind in scope.kinds:
        fts, table = kind.fts, kind.table
        axes, params = kind_sql(scope, kind, "m.")
        rows = texts(
            conn,
            f"SELECT {_BODY[kind]} FROM {fts} f CROSS JOIN {table} m ON m.id = f.rowid WHERE {fts} MATCH ? AND {axes}"
            " ORDER BY f.rowid DESC LIMIT ?",
            (_within(scope, " OR ".join(term.forms)), *params, LOOKED_AT),
        )
        if any(reads(body) for (body,) in rows):
            return True
        if former.present(conn) and former.holders(conn, kind, [term], scope, 1):
            return True
    return False


def _within(scope: Scope, expression: str) -> str:
    return f"({expression}) AND {quoted(owner(scope.agent_id))}"
