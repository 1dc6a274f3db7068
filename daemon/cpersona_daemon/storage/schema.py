"""Bringing a database to this version's schema, one committed step at a time, and refusing one that is not ours.

Contract: rows.shape.
"""

from __future__ import annotations

from shlex import quote

import apsw

from ..errors import NewerSchema, ReadOnly, SettingsConflict
from ..model.instants import created_text
from ..shared.header import APPLICATION_ID, ELSEWHERE
from .migrations import MIGRATIONS, SCHEMA_VERSION


def migrate(conn: apsw.Connection, now: float, until: int = SCHEMA_VERSION) -> None:
    """Bring the database to this version's schema, one transaction a step.

    Raises NewerSchema for a database that a later version wrote, SettingsConflict for one that is not ours.
    """
    applied = known(conn)
    for version, name, script in MIGRATIONS[:until]:
        if version in applied:
            continue
        conn.execute("BEGIN IMMEDIATE")
        try:
            conn.execute(
                "CREATE TABLE IF NOT EXISTS schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL,"
                " applied_at TEXT NOT NULL)"
            )
            if callable(script):
                script(conn)
            else:
                conn.execute(script)
            conn.execute("INSERT INTO schema_migrations VALUES (?, ?, ?)", (version, name, created_text(now)))
            conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            conn.execute("COMMIT")
        except BaseException:
            if conn.in_transaction:  # a full disk ends it by itself
                conn.execute("ROLLBACK")
            raise


def check(conn: apsw.Connection) -> None:
    """Find a database fit to be read as it is.

    Raises NewerSchema, SettingsConflict, and ReadOnly for one that would have to be migrated.
    """
    applied = known(conn)
    if SCHEMA_VERSION not in applied:
        raise ReadOnly(
            f"the database has schema {max(applied, default=0)}, this version needs {SCHEMA_VERSION}, and it cannot"
            " be written to"
        )


def known(conn: apsw.Connection) -> set[int]:
    """Return the steps that a database has taken; nothing is written.

    Raises NewerSchema, SettingsConflict for one that is not ours.
    """
    applied = _applied(conn)
    if applied and max(applied) > SCHEMA_VERSION:
        raise NewerSchema(f"the database has schema {max(applied)}, this version knows {SCHEMA_VERSION}")
    return applied


def _applied(conn: apsw.Connection) -> set[int]:
    tables = {name for (name,) in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if "schema_migrations" in tables:
        return {version for (version,) in conn.execute("SELECT version FROM schema_migrations")}
    if tables:
        raise SettingsConflict(
            f"{conn.filename} is a SQLite database of another program and stays as it is; {ELSEWHERE}"
            + (f", and `cpersona import {quote(conn.filename)}` takes its rows over" if "memories" in tables else "")
        )
    return set()
