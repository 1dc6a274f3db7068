"""Kept answers of writes, so that a lost answer can be asked for again safely.

Contract: interface.md "The wire" (idempotency keys). The writer keeps and serves them in ``database.py``.
"""

from __future__ import annotations

import apsw


def known(conn: apsw.Connection, key: str) -> bool:
    """Tell whether a write with this key was answered already."""
    return conn.execute("SELECT 1 FROM idempotency WHERE key = ?", (key,)).fetchone() is not None
