"""Kept answers of writes, so that a lost answer can be asked for again safely.

Contract: interface.md "The wire" (idempotency keys). The writer keeps and serves them in ``database.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw


def known(conn: apsw.Connection, key: str) -> bool:
    """Tell whether a write with this key was answered already."""
    return conn.execute("SELECT 1 FROM idempotency WHERE key = ?", (key,)).fetchone() is not None


def answers(conn: apsw.Connection, keys: Sequence[str]) -> dict[str, bytes]:
    """Return the kept answers, encoded, of those of the keys that have one."""
    return dict(conn.executemany("SELECT key, answer FROM idempotency WHERE key = ?", [(key,) for key in keys]))


def keep(conn: apsw.Connection, now: float, given: Mapping[str, bytes]) -> None:
    """Keep encoded answers by their keys."""
    conn.executemany("INSERT INTO idempotency VALUES (?, ?, ?)", [(key, now, answer) for key, answer in given.items()])


def prune(conn: apsw.Connection, before: float, most: int) -> None:
    """Forget answers given before an instant, and of the others the oldest above ``most``."""
    conn.execute("DELETE FROM idempotency WHERE answered_at < ?", (before,))
    conn.execute("DELETE FROM idempotency WHERE key IN (SELECT key FROM idempotency ORDER BY answered_at DESC LIMIT -1 OFFSET ?)", (most,))
