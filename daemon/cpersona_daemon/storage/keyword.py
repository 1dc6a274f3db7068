"""The newest memories that hold a text as it stands, found by a scan that the word index spares where it can.

Contract: lexical.keyword.
"""

from __future__ import annotations

import re

import apsw

from ..model.kinds import MEMORY
from ..model.scope import Scope
from ..text.terms import quoted
from .frequencies import COMMON_ROWS, Frequencies
from .scope import memory_sql

SCAN_ROWS = 50_000
_WORD_BETWEEN_BLANKS = re.compile(r"(?<=[ \t\n])[A-Za-z]+(?=[ \t\n])")


def keyword_scan(
    conn: apsw.Connection, text: str, scope: Scope, depth: int, *, scan_rows: int = SCAN_ROWS
) -> list[int]:
    """Return the newest ``depth`` memories in scope that hold the stripped text, ASCII letters in either case.

    Looks at the newest ``scan_rows`` rows in scope. Contract: lexical.keyword.
    """
    needle = text.strip()
    if not needle or depth <= 0 or "\0" in needle or _stands_nowhere(conn, needle):
        return []
    pattern = "%" + needle.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    axes, params = memory_sql(scope)
    found = conn.execute(
        "SELECT id"
        f" FROM (SELECT id, created_at, content FROM memories WHERE {axes} ORDER BY created_at DESC, id DESC LIMIT ?)"
        " WHERE content LIKE ? ESCAPE '\\' ORDER BY created_at DESC, id DESC LIMIT ?",
        (*params, scan_rows, pattern, depth),
    )
    return [row_id for (row_id,) in found]


def _stands_nowhere(conn: apsw.Connection, needle: str) -> bool:
    """Tell whether the index rules a text out: a plain word with blanks around it must stand in whatever row holds the
    text.

    A row without postings (damage that check_health mends) could hold any word, so it counts only while every row has
    them.
    """
    frequencies = Frequencies(conn, MEMORY, COMMON_ROWS)
    if not any(frequencies.of(quoted(word)) == 0 for word in _WORD_BETWEEN_BLANKS.findall(needle)):
        return False
    return conn.execute("SELECT count(*) FROM memories").fetchall() == [(frequencies.rows,)]
