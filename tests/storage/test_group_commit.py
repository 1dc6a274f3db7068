"""Writes that share a commit: what one does to the others, and who is told what. Contract: writes.durable."""

import asyncio
import threading

import pytest

from cpersona_daemon.errors import KeyUsed, Refused, ShuttingDown
from cpersona_daemon.model.changes import VectorDrop
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.storage import memories
from cpersona_daemon.storage.database import Database
from cpersona_daemon.storage.idempotency import Key
from cpersona_daemon.storage.memories import NewMemory

KEY, OTHER = Key("key", b"request"), Key("other", b"request")


class House:
    """A database whose writer can be held, so that what is asked meanwhile becomes one group."""

    def __init__(self, path):
        self.commits = []
        self.db = Database(
            str(path), SystemClock(), lambda changes, generation: self.commits.append([change.id for change in changes])
        )
        self.db.open()

    def together(self, *jobs):
        """Run jobs in one group and return for each its result or its error."""
        begun, go = threading.Event(), threading.Event()
        held = self.db.submit(lambda tx: (begun.set(), go.wait(30)))
        assert begun.wait(30)
        asked = [self.db.submit(*job) if isinstance(job, tuple) else self.db.submit(job) for job in jobs]
        go.set()
        held.result(30)
        return [one.exception(30) or one.result(30) for one in asked]

    def texts(self):
        return [
            text
            for (text,) in self.db.read_now(
                lambda conn: conn.execute("SELECT content FROM memories ORDER BY id").fetchall()
            )
        ]


@pytest.fixture
def house(tmp_path):
    house = House(tmp_path / "t.db")
    yield house
    house.db.close()


def storing(text):
    def job(tx):
        tx.changes.append(VectorDrop(MEMORY, len(text)))
        return memories.insert(tx, NewMemory("a", text))

    return job


def refusing(text=None):
    """A job that is refused, after writing a row where it has a text."""

    def job(tx):
        if text:
            storing(text)(tx)
        raise Refused("no")

    return job


def test_a_job_that_is_refused_before_it_wrote_costs_the_others_nothing(house):
    first, refused, second = house.together(storing("one"), refusing(), storing("two!"))
    assert (first, second) == (1, 2) and isinstance(refused, Refused)
    assert house.texts() == ["one", "two!"] and house.commits == [[3, 4]]


def test_a_job_that_fails_after_it_wrote_leaves_nothing_and_the_others_stay(house):
    first, refused, second = house.together(storing("one"), refusing("half"), storing("two!!"))
    assert (first, second) == (1, 2) and isinstance(refused, Refused)
    assert house.texts() == ["one", "two!!"] and house.commits == [[3, 5]]
    assert (
        house.db.read_now(
            lambda conn: conn.execute("SELECT rowid FROM memory_fts WHERE memory_fts MATCH 'half'").fetchall()
        )
        == []
    )


def test_a_job_alone_that_fails_after_it_wrote_leaves_nothing(house):
    with pytest.raises(Refused):
        house.db.write_now(refusing("half"))
    assert house.texts() == [] and house.commits == [] and house.db.write_now(storing("next")) == 1


def test_a_known_key_answers_what_was_kept_and_a_refusal_is_not_kept(house):
    answers = house.together(
        (storing("one"), KEY), (storing("again"), KEY), (refusing("half"), OTHER), (storing("two"), OTHER)
    )
    assert answers[:2] == [1, 1] and isinstance(answers[2], Refused) and answers[3] == 2
    assert house.texts() == ["one", "two"]


def test_a_key_of_another_request_is_refused_in_the_same_group_and_later(house):
    foreign = Key(KEY.text, b"another request")
    first, refused, again = house.together((storing("one"), KEY), (storing("lost?"), foreign), (storing("one"), KEY))
    assert first == again == 1 and isinstance(refused, KeyUsed)
    with pytest.raises(KeyUsed):
        house.db.write_now(storing("lost?"), foreign)
    assert house.texts() == ["one"]


def test_answers_are_kept_by_any_key_a_client_may_choose(house):
    keys = [Key(text, b"r") for text in ("", "\0", "a\0b", "a\0c", "ключ", "x" * 5_000)]
    first = house.together(*((storing(f"text {place}"), key) for place, key in enumerate(keys)))
    assert house.together(*((storing("again"), key) for key in keys)) == first == [1, 2, 3, 4, 5, 6]


def test_waiters_of_a_loop_are_told_and_one_that_left_is_not_missed(house):
    async def main():
        begun, go = threading.Event(), threading.Event()
        held = asyncio.ensure_future(house.db.write(lambda tx: (begun.set(), go.wait(30))))
        await asyncio.to_thread(begun.wait, 30)
        stays, leaves, fails = (
            asyncio.ensure_future(house.db.write(job)) for job in (storing("stays"), storing("leaves"), refusing())
        )
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.gather(leaves, return_exceptions=True)
        go.set()
        await held
        assert await stays == 1
        with pytest.raises(Refused):
            await fails

    asyncio.run(main())
    assert house.texts() == ["stays"] and house.db.writes_in_flight == 0


def test_a_closed_database_takes_no_more(house):
    house.db.close()
    with pytest.raises(ShuttingDown):
        house.db.write_now(storing("late"))
    with pytest.raises(ShuttingDown):
        asyncio.run(house.db.write(storing("late")))
