"""A database that an earlier version wrote is brought to this schema with all that it holds. Contract: rows.shape."""

from __future__ import annotations

import apsw
import msgspec
import pytest

from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.cuts import content_key
from cpersona_daemon.storage import schema
from cpersona_daemon.storage.database import Database
from cpersona_daemon.storage.idempotency import Key

FIRST_RELEASED = 4


@pytest.fixture
def old(tmp_path):
    """The path of a database as the first released schema has it, with a row and a kept answer."""
    path = str(tmp_path / "old.db")
    conn = apsw.Connection(path)
    conn.execute(
        "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"
    )
    for version, name, script in schema.MIGRATIONS[:FIRST_RELEASED]:
        conn.execute(script)
        conn.execute("INSERT INTO schema_migrations VALUES (?, ?, '2026-01-05 00:00:00')", (version, name))
    conn.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    conn.execute(
        (
            "INSERT INTO memories (agent_id, created_at, content_key, content)"
            " VALUES ('a', '2026-01-05 00:00:00', ?, 'kept')"
        ),
        (content_key("kept"),),
    )
    conn.execute(
        "INSERT INTO idempotency VALUES ('old key', ?, ?)",
        (SystemClock().now(), msgspec.msgpack.encode({"ok": True, "id": 1})),
    )
    conn.close()
    return path


def test_a_database_of_the_first_released_schema_keeps_its_rows_and_its_kept_answers(old):
    db = Database(old, SystemClock())
    db.open()
    try:
        assert db.read_now(lambda conn: conn.execute("SELECT id, content FROM memories").fetchall()) == [(1, "kept")]
        # Whose it was is not known any more; who asks again within its day is told what was done.
        assert db.write_now(lambda tx: {"ok": False}, Key("old key", b"request")) == {"ok": True, "id": 1}
        assert db.read_now(lambda conn: conn.execute("SELECT max(version) FROM schema_migrations").fetchone()) == (
            schema.SCHEMA_VERSION,
        )
    finally:
        db.close()
