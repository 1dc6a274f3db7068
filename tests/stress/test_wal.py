"""The write-ahead log grows only while another program keeps a read open, and is cut back when it ends.

Contract: reads.free.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing

import pytest

from cpersona_cli.wire import client
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage.database import WAL_KEPT_BYTES

pytestmark = pytest.mark.stress

CHECKPOINT_BYTES = 1000 * 4096  # SQLite folds the log into the database from this size on


def wal(environ: dict[str, str]) -> int:
    return os.path.getsize(environ["CPERSONA_DB_PATH"] + "-wal")


def store(connection: client.Connection, count: int, name: str) -> None:
    """Store so many notes of 12,000 characters, all under way at once."""
    for number in range(count):
        connection.send("store", {"agent_id": "a", "content": f"{name} {number} " + "word" * 3000})
    assert {connection.receive()[1]["result"] for _ in range(count)} == {"stored"}


def test_a_parked_reader_stops_nothing_and_what_the_log_grew_by_is_given_back(home, daemon):
    store(daemon, 20, "before")
    with closing(sqlite3.connect(home["CPERSONA_DB_PATH"], isolation_level=None)) as parked:
        parked.execute("BEGIN")
        parked.execute("SELECT count(*) FROM memories").fetchone()
        rounds = 0
        while wal(home) < WAL_KEPT_BYTES + CHECKPOINT_BYTES:
            store(daemon, 100, f"parked {rounds}")
            rounds += 1
        assert parked.execute("SELECT count(*) FROM memories").fetchone() == (20,)
        assert rounds < 15
    store(daemon, 20, "after")  # folds the log
    store(daemon, 20, "again")  # begins it anew
    assert wal(home) <= WAL_KEPT_BYTES


def test_the_daemons_own_readers_never_keep_the_log_growing(home, daemon):
    enough = threading.Event()

    def read(number: int) -> None:
        with client.connect(load(home), home) as connection:
            while not enough.is_set():
                connection.call("recall", {"agent_id": "a", "query": f"word {number}"})

    readers = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for reader in readers:
        reader.start()
    try:
        for turn in range(30):
            store(daemon, 50, f"busy {turn}")
    finally:
        enough.set()
        for reader in readers:
            reader.join()
    # A parked reader lets fewer notes than these grow it beyond this, as the test above shows.
    assert wal(home) <= WAL_KEPT_BYTES
