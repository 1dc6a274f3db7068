"""What a write works with: the connection inside its transaction, the instant, and what the vector index must learn of
it.
"""

from __future__ import annotations

from typing import Any

import apsw

from ..model.changes import Change

HISTORY_DAYS = 30.0


class Transaction:
    """A write job's hand on the database:

    ``execute`` for SQL, ``changes`` for what the vector index learns after the commit.

    ``now`` is the instant of the write in epoch seconds, the same for all that one job does. ``history_days``: how long
    what a row was before is kept, 0 for not at all; ``act`` the number of this job's act, None before its first entry,
    and ``kept`` the rows that have one (``past``).
    """

    __slots__ = ("conn", "changes", "now", "history_days", "act", "kept")

    def __init__(self, conn: apsw.Connection, now: float, history_days: float = HISTORY_DAYS) -> None:
        self.conn, self.now, self.history_days = conn, now, history_days
        self.changes: list[Change] = []
        self.act: int | None = None
        self.kept: set[tuple[str, int]] = set()

    def execute(self, sql: str, params: tuple[Any, ...] = ()) -> apsw.Cursor:
        return self.conn.execute(sql, params)
