"""A store that cannot be written to is not called healthy. Contract: health.checks, writes.durable."""

import pytest

from cpersona_daemon.errors import DiskFull
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.storage import memories
from cpersona_daemon.storage.database import Database
from cpersona_daemon.storage.memories import NewMemory


@pytest.fixture
def db(tmp_path):
    database = Database(str(tmp_path / "t.db"), SystemClock())
    database.open()
    yield database
    database.close()


def test_a_write_that_found_no_room_is_remembered_until_one_finds_some(db):
    db.write_now(lambda tx: memories.insert(tx, NewMemory("a", "small")))
    db._writer_conn.execute("PRAGMA max_page_count = 1").fetchall()  # SQLite takes the size that there is
    with pytest.raises(DiskFull):
        db.write_now(
            lambda tx: [memories.insert(tx, NewMemory("a", f"{number} {'long ' * 3000}")) for number in range(50)]
        )
    assert "full" in db.write_problem
    assert db.read_now(lambda conn: conn.execute("SELECT count(*) FROM memories").fetchone()) == (1,)
    db._writer_conn.execute("PRAGMA max_page_count = 1000000").fetchall()
    db.write_now(lambda tx: memories.insert(tx, NewMemory("a", "there is room")))
    assert db.write_problem is None


def test_a_first_start_without_room_says_that_the_disk_is_full(tmp_path, monkeypatch):
    from cpersona_daemon.storage import connection

    opened = connection.open_writing

    def small(path):
        conn = opened(path)
        conn.execute("PRAGMA max_page_count = 8").fetchall()
        return conn

    monkeypatch.setattr(connection, "open_writing", small)
    database = Database(str(tmp_path / "t.db"), SystemClock())
    with pytest.raises(DiskFull, match="full"):
        database.open()
