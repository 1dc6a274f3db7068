"""What a write works with: the connection inside its transaction, the instant, and what the vector index must learn of
it.
"""

from __future__ import annotations

from typing import Any

import apsw

from ..model.changes import Change


class Transaction:
    """A write job's hand on the database:

    ``execute`` for SQL, ``changes`` for what the vector index learns after the commit.

    ``now`` is the instant of the write in epoch seconds, the same for all that one job does.
    """

    __slots__ = ("conn", "changes", "now")

    def __init__(self, conn: apsw.Connection, now: float) -> None:
        self.conn, self.now = conn, now
        self.changes: list[Change] = []

    def execute(self, sql: str, params: tuple[Any, ...] = ()) -> apsw.Cursor:
        return self.conn.execute(sql, params)
