"""A database whose files are taken away while it is open: nothing is acknowledged that is not kept, and nobody waits
for ever.

Contract: writes.durable.
"""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from cpersona_daemon.errors import ShuttingDown
from cpersona_daemon.model.changes import VectorDrop
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.storage import memories
from cpersona_daemon.storage.database import Database
from cpersona_daemon.storage.memories import NewMemory

WAIT = 30


class House:
    def __init__(self, path):
        self.path, self.told = str(path), []
        self.db = Database(self.path, SystemClock())
        self.db.on_lost = self.told.append
        self.db.open()

    def store(self, text):
        def job(tx):
            tx.changes.append(VectorDrop(MEMORY, 1))
            return memories.insert(tx, NewMemory("a", text))

        return self.db.submit(job).result(WAIT)


@pytest.fixture
def house(tmp_path):
    made = House(tmp_path / "t.db")
    made.store("before")
    yield made
    made.db.close()


def texts(path):
    with closing(sqlite3.connect(path)) as conn:
        return [text for (text,) in conn.execute("SELECT content FROM memories ORDER BY id")]


def another_database(path):
    other = Database(path, SystemClock())
    other.open()
    other.write_now(lambda tx: memories.insert(tx, NewMemory("a", "of another database")))
    other.close()


def test_a_write_into_a_file_that_another_was_moved_over_is_not_acknowledged(house, tmp_path):
    another_database(str(tmp_path / "other.db"))
    os.replace(tmp_path / "other.db", house.path)
    with pytest.raises(ShuttingDown, match="removed or replaced.*not kept"):
        house.store("after")
    assert len(house.told) == 1 and "removed or replaced" in house.told[0]
    house.db.close()
    assert texts(house.path) == ["of another database"]


def test_a_write_into_a_deleted_database_is_not_acknowledged(house):
    os.unlink(house.path)
    with pytest.raises(ShuttingDown, match="removed or replaced"):
        house.store("after")
    with pytest.raises(ShuttingDown, match="removed or replaced"):
        house.store("later")


def test_a_moved_database_is_whole_without_its_log(house, tmp_path):
    os.rename(house.path, tmp_path / "moved.db")
    with pytest.raises(ShuttingDown):
        house.store("after")
    house.db.close()
    assert texts(tmp_path / "moved.db") == ["before"], "what was not acknowledged was kept elsewhere"
    assert not os.path.exists(house.path + "-wal") or not os.path.getsize(house.path + "-wal"), (
        "another database in this place would take that log in"
    )


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_what_is_acknowledged_after_the_log_was_removed_stands_in_the_database_itself(house, tmp_path, suffix):
    os.unlink(house.path + suffix)
    assert house.store("after") == 2
    assert len(house.told) == 1 and suffix in house.told[0]
    shutil.copy(house.path, tmp_path / "copy.db")  # as a kill at this moment would leave it
    assert texts(tmp_path / "copy.db") == ["before", "after"]
    with pytest.raises(ShuttingDown, match="leaving"):
        house.store("later")
    assert house.db.read_now(lambda conn: conn.execute("SELECT count(*) FROM memories").fetchone()) == (2,)


def test_a_directory_that_was_moved_away_ends_the_writing_with_a_reason(tmp_path):
    (tmp_path / "here").mkdir()
    house = House(tmp_path / "here" / "t.db")
    house.store("before")
    os.rename(tmp_path / "here", tmp_path / "there")
    with pytest.raises(ShuttingDown, match="removed or replaced"):
        house.store("after")
    house.db.close()
    assert texts(tmp_path / "there" / "t.db")[0] == "before"


def test_files_that_vanish_in_a_quiet_time_are_noticed_by_a_look(house):
    os.unlink(house.path + "-wal")
    house.db.look()
    while not house.told:
        pass
    house.db.close()
    assert texts(house.path) == ["before"]


def test_a_failure_that_nobody_foresaw_is_told_to_who_waits_and_to_all_who_come(house):
    def fails(changes, generation):
        raise RuntimeError("what follows each commit")

    house.db.on_commit = fails
    with pytest.raises(ShuttingDown, match="RuntimeError.*not known"):
        house.store("after")
    assert house.db.writes_in_flight == 0 and len(house.told) == 1
    with pytest.raises(ShuttingDown, match="leaving"):
        house.store("later")
