"""Reads that are given up: they end, and who reads next on the same connection notices nothing.

Contract: reads.free.
"""

import asyncio
import os
import random
import threading
import time

import apsw
import pytest

from cpersona_daemon.errors import TimedOut
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.storage import memories
from cpersona_daemon.storage.database import Database
from cpersona_daemon.storage.memories import NewMemory
from cpersona_daemon.storage.readers import READERS, Ticket

COUNTING = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT count(*) FROM n"


@pytest.fixture
def db(tmp_path):
    database = Database(str(tmp_path / "t.db"), SystemClock())
    database.open()
    database.write_now(lambda tx: [memories.insert(tx, NewMemory("a", f"row {i}")) for i in range(300)])
    yield database
    database.close()


def total(conn):
    return conn.execute("SELECT count(*) FROM memories").fetchone()[0]


def every_reader(db, job):
    """Run ``job`` on all reader threads at once and return what each answered."""
    together = threading.Barrier(READERS)

    def run(conn):
        together.wait(30)
        return job(conn)

    async def ask():
        return await asyncio.gather(*(db.read(run) for _ in range(READERS)))

    return asyncio.run(ask())


def log_folds(db):
    conn = apsw.Connection(db.path)
    try:
        conn.set_busy_timeout(0)
        return conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    finally:
        conn.close()


def test_an_interrupt_that_outlives_its_statement_spoils_nothing_for_the_next_read(db):
    ticket, held = Ticket(), []

    def leaves_a_statement_open(conn):
        held.append(conn.execute("SELECT id FROM memories"))
        next(held[0])
        ticket.give_up()
        return "done"

    assert db._readers.read_now(leaves_a_statement_open, ticket=ticket) == "done"
    assert db.read_now(total) == 300
    db.write_now(lambda tx: memories.insert(tx, NewMemory("a", "one more")))
    assert db.read_now(total) == 301, "the reader stands in an old snapshot"
    assert log_folds(db)


def test_a_read_given_up_before_it_began_does_not_run(db):
    ticket, ran = Ticket(), []
    ticket.give_up()
    with pytest.raises(TimedOut):
        db._readers.read_now(lambda conn: ran.append(conn), ticket=ticket)
    assert not ran and db.read_now(total) == 300


def test_a_read_given_up_between_two_statements_begins_no_more_of_them(db):
    ticket = Ticket()

    def job(conn):
        conn.execute("SELECT 1").fetchall()
        ticket.give_up()
        return conn.execute("SELECT 2").fetchall()

    with pytest.raises(TimedOut):
        db._readers.read_now(job, ticket=ticket)
    assert db.read_now(total) == 300


def test_giving_up_a_read_that_has_ended_does_not_touch_the_one_after_it(db):
    ticket, begun = Ticket(), threading.Event()
    db._readers.read_now(total, ticket=ticket)

    def job(conn):
        begun.set()
        return conn.execute(COUNTING.format(200_000)).fetchone()[0]

    late = threading.Thread(target=lambda: (begun.wait(30), ticket.give_up()))
    late.start()
    assert db.read_now(job) == 200_000
    late.join()


def test_a_long_statement_ends_when_its_caller_is_cancelled(db):
    async def main():
        begun = threading.Event()

        def job(conn):
            begun.set()
            return conn.execute(COUNTING.format(10**9)).fetchone()

        asked = asyncio.ensure_future(db.read(job))
        await asyncio.to_thread(begun.wait, 30)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked

    asyncio.run(main())
    started = time.monotonic()
    assert every_reader(db, total) == [300] * READERS
    assert time.monotonic() - started < 20


@pytest.mark.stress
def test_reads_cut_at_any_moment_leave_every_reader_sound_and_the_log_foldable(db):
    """A third is cancelled after a random part of the time that such a read takes; writes go on beside them."""
    reads = 10_000 if os.environ.get("CPERSONA_STRESS") == "full" else 1_500
    chance = random.Random(7)

    def job(conn):
        # One statement inside another: the outer one is still open while the interrupt of the inner one is on its way
        # up.
        return sum(
            conn.execute("SELECT length(content) FROM memories WHERE id = ?", row).fetchone()[0] > 0
            for row in conn.execute("SELECT id FROM memories WHERE content LIKE ?", ("%row%",))
        )

    async def one(number):
        if number % 50 == 0:
            await db.write(lambda tx: memories.insert(tx, NewMemory("b", f"beside {number}")))
        if number % 3:
            assert await db.read(job) == 300
            return
        try:
            async with asyncio.timeout(chance.random() * 0.002):
                await db.read(job)
        except TimeoutError:
            pass

    async def main():
        for first in range(0, reads, 8):
            await asyncio.gather(*(one(number) for number in range(first, min(first + 8, reads))))

    asyncio.run(main())
    assert every_reader(db, total) == [300 + (reads + 49) // 50] * READERS
    assert log_folds(db)


@pytest.mark.parametrize("fails", [True, False])
def test_a_statement_that_a_job_left_open_keeps_nobody_in_an_old_snapshot(db, fails):
    held = []

    def leaves_a_statement_open(conn):
        held.append(conn.execute("SELECT id FROM memories"))
        next(held[0])
        if fails:
            raise ValueError("a failure that is none of SQLite's")

    if fails:
        with pytest.raises(ValueError):
            db.read_now(leaves_a_statement_open)
    else:
        db.read_now(leaves_a_statement_open)
    db.write_now(lambda tx: memories.insert(tx, NewMemory("a", "one more")))
    assert db.read_now(total) == 301, "the reader stands in an old snapshot"
    assert log_folds(db)
