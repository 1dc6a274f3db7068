"""The backlog worker over a real database and a real http service. Contract: backlog.order, store.embeds."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest

from cpersona_daemon.embedding.backlog import BacklogWorker
from cpersona_daemon.embedding.service import EmbeddingService
from cpersona_daemon.embedding.turns import QUESTION
from cpersona_daemon.model.changes import VectorPut
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.cuts import content_key
from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.storage import backlog, episodes, memories
from cpersona_daemon.storage.database import Database
from cpersona_daemon.text.embedded import episode_text

PAUSE = 0.01  # the first pause after a failure, so that a test sees the attempt after it


@pytest.fixture
def changes():
    return []


@pytest.fixture
def db(tmp_path, changes):
    opened = Database(str(tmp_path / "cpersona.db"), SystemClock(), lambda new, generation: changes.extend(new))
    opened.open()
    yield opened
    opened.close()


def worked(make_settings, embed_service, db, test, mode="http"):
    """Run ``test(worker, service)`` with a started worker."""

    async def run():
        service = EmbeddingService(make_settings(mode, embed_service.url if mode == "http" else ""), SystemClock())
        service.start()
        worker = BacklogWorker(db, service, first_pause=PAUSE)
        worker.start()
        try:
            await test(worker, service)
        finally:
            await worker.stop()
            await service.close()

    asyncio.run(run())


def put_memory(db, content, listed=True, **axes):
    (row,) = put_memories(db, [content], listed, **axes)
    return row


def put_memories(db, contents, listed=True, **axes):
    """Store memories in one transaction: whoever looks meanwhile sees none of them or all."""

    def job(tx):
        found = [memories.insert(tx, memories.NewMemory(agent_id="a", content=c, **axes)) for c in contents]
        for row in found if listed else ():
            backlog.enqueue(tx, MEMORY, row)
        return found

    return db.write_now(job)


def put_episode(db, summary, keywords=""):
    def job(tx):
        row = episodes.insert(tx, episodes.NewEpisode(agent_id="a", summary=summary, keywords=keywords))
        backlog.enqueue(tx, EPISODE, row)
        return row

    return db.write_now(job)


def vectors(db, table="memory_vectors"):
    return db.read_now(
        lambda conn: {
            row: (model, np.frombuffer(raw, "<f4"))
            for row, model, raw in conn.execute(f"SELECT id, model, vector FROM {table}")
        }
    )


def listed(db):
    return db.read_now(lambda conn: set(conn.execute("SELECT kind, id FROM embedding_backlog")))


async def until(condition):
    """Wait for something that nobody announces; 20 seconds are a failure."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


def test_keywords_stand_on_a_second_line_of_an_episodes_text():
    assert episode_text("what happened", "alpha beta") == "what happened\nalpha beta"
    assert episode_text("what happened", "") == episode_text("what happened", " ") == "what happened"


def test_listed_rows_get_their_vectors_and_the_index_hears_of_them(make_settings, embed_service, db, changes):
    embed_service.model = "m1"
    one = put_memory(db, "first", project_id="p", channel="c", source='{"id": "s"}')
    two = put_memory(db, "second")
    episode = put_episode(db, "an episode", "with keywords")

    async def test(worker, service):
        assert await worker.wait_until_drained(256, 20)
        found = vectors(db)
        assert set(found) == {one, two} and {model for model, _ in found.values()} == {"m1"}
        assert np.array_equal(found[one][1], (await service.embed_query("first", 1)).vector)
        ((model, vector),) = vectors(db, "episode_vectors").values()
        assert np.array_equal(vector, (await service.embed_query("an episode\nwith keywords", 1)).vector)
        assert listed(db) == set() and await worker.pending() == 0
        assert (await worker.status())["done"] == 3
        assert not worker.busy
        puts = {(put.kind, put.id): put for put in changes}
        assert set(puts) == {(MEMORY, one), (MEMORY, two), (EPISODE, episode)}
        put = puts[MEMORY, one]
        assert isinstance(put, VectorPut) and (put.agent_id, put.project_id, put.channel, put.source_id, put.model) == (
            "a",
            "p",
            "c",
            "s",
            "m1",
        )
        assert np.array_equal(put.vector, found[one][1]) and put.created_at

    worked(make_settings, embed_service, db, test)


def test_a_row_listed_later_is_embedded_once_the_worker_is_woken(make_settings, embed_service, db):
    async def test(worker, service):
        assert await worker.wait_until_drained(256, 20)
        row = put_memory(db, "late")
        worker.wake()
        assert await worker.wait_until_drained(256, 20)
        assert set(vectors(db)) == {row}

    worked(make_settings, embed_service, db, test)


def test_a_long_list_is_embedded_in_batches_with_the_newest_rows_first(make_settings, embed_service, db):
    rows = [put_memory(db, f"text {n}") for n in range(100)]

    async def test(worker, service):
        await until(lambda: not worker.busy)
        assert set(vectors(db)) == set(rows) and listed(db) == set()
        assert [len(asked) for asked in embed_service.asked] == [32, 32, 32, 4]
        assert embed_service.asked[0][0] == "text 99"

    worked(make_settings, embed_service, db, test)


def test_more_rows_than_the_limit_are_not_waited_for(make_settings, embed_service, db):
    for n in range(3):
        put_memory(db, f"text {n}")
    embed_service.gate.clear()

    async def test(worker, service):
        assert worker.busy
        assert await worker.wait_until_drained(2, 20) is False
        waiting = asyncio.ensure_future(worker.wait_until_drained(3, 20))
        await asyncio.sleep(0)
        embed_service.gate.set()
        assert await waiting is True

    worked(make_settings, embed_service, db, test)


def test_waiting_ends_at_its_timeout(make_settings, embed_service, db):
    put_memory(db, "text")
    embed_service.gate.clear()

    async def test(worker, service):
        assert await worker.wait_until_drained(256, 0.02) is False

    worked(make_settings, embed_service, db, test)


def test_a_row_that_changed_meanwhile_keeps_its_place_and_gets_the_vector_of_its_new_text(
    make_settings, embed_service, db
):
    row = put_memory(db, "old text")
    embed_service.gate.clear()

    async def test(worker, service):
        await until(lambda: embed_service.asked)
        db.write_now(
            lambda tx: tx.execute(
                "UPDATE memories SET content = ?, content_key = ? WHERE id = ?",
                ("new text", content_key("new text"), row),
            )
        )
        embed_service.gate.set()
        await until(lambda: not worker.busy)
        assert embed_service.asked == [["old text"], ["new text"]]
        assert np.array_equal(vectors(db)[row][1], (await service.embed_query("new text", 1)).vector)

    worked(make_settings, embed_service, db, test)


def test_an_episode_whose_keywords_changed_meanwhile_is_embedded_again(make_settings, embed_service, db):
    row = put_episode(db, "summary", "old")
    embed_service.gate.clear()

    async def test(worker, service):
        await until(lambda: embed_service.asked)
        db.write_now(lambda tx: tx.execute("UPDATE episodes SET keywords = 'new' WHERE id = ?", (row,)))
        embed_service.gate.set()
        await until(lambda: not worker.busy)
        assert embed_service.asked == [["summary\nold"], ["summary\nnew"]]

    worked(make_settings, embed_service, db, test)


def test_a_row_deleted_meanwhile_gets_no_vector_and_leaves_the_list(make_settings, embed_service, db, changes):
    row = put_memory(db, "text")
    put_memory(db, "other text")
    embed_service.gate.clear()

    async def test(worker, service):
        await until(lambda: embed_service.asked)
        # As a tool that knows nothing of the list would delete it.
        db.write_now(lambda tx: tx.execute("DELETE FROM memories WHERE id = ?", (row,)))
        embed_service.gate.set()
        await until(lambda: not worker.busy)
        assert len(vectors(db)) == 1 and row not in vectors(db) and listed(db) == set()
        assert row not in {put.id for put in changes}

    worked(make_settings, embed_service, db, test)


def test_listed_rows_that_do_not_exist_are_struck_off(make_settings, embed_service, db):
    db.write_now(lambda tx: (backlog.enqueue(tx, MEMORY, 41), backlog.enqueue(tx, EPISODE, 42)))

    async def test(worker, service):
        assert await worker.wait_until_drained(256, 20)
        await until(lambda: not worker.busy)
        assert listed(db) == set() and embed_service.asked == []

    worked(make_settings, embed_service, db, test)


def test_after_a_failure_nobody_waits_and_the_work_goes_on_by_itself(make_settings, embed_service, db):
    rows = [put_memory(db, f"text {n}") for n in range(5)]
    embed_service.say(b"", 503)

    async def test(worker, service):
        await until(lambda: worker._failures >= 2)
        assert not worker.busy
        assert await worker.wait_until_drained(256, 20) is False
        status = await worker.status()
        assert status["pending"] == 5 and status["paused_seconds"] > 0 and "HTTP 503" in status["problem"]
        embed_service.answer = embed_service.good
        await until(lambda: len(vectors(db)) >= 3)

    worked(make_settings, embed_service, db, test)
    assert set(vectors(db)) <= set(rows)


def test_a_text_that_the_service_cannot_embed_does_not_hold_up_the_others(make_settings, embed_service, db):
    rows = [put_memory(db, f"text {n}") for n in range(20)]
    poison = put_memory(db, "poison")
    embed_service.answer = lambda texts: (400, b"") if "poison" in texts else embed_service.good(texts)

    async def test(worker, service):
        await until(lambda: len(vectors(db)) == 20)
        assert set(vectors(db)) == set(rows) and listed(db) == {(MEMORY, poison)}
        assert await worker.pending() == 1

    worked(make_settings, embed_service, db, test)


def test_what_one_process_left_is_embedded_by_the_next(make_settings, embed_service, db):
    row = put_memory(db, "text")
    embed_service.gate.clear()

    async def stopped_early(worker, service):
        await until(lambda: embed_service.asked)
        await worker.stop()
        assert listed(db) == {(MEMORY, row)}

    worked(make_settings, embed_service, db, stopped_early)
    embed_service.gate.set()

    async def test(worker, service):
        assert await worker.wait_until_drained(256, 20)
        assert set(vectors(db)) == {row}

    worked(make_settings, embed_service, db, test)


def test_without_an_embedder_the_list_is_left_alone(make_settings, embed_service, db):
    row = put_memory(db, "text")

    async def test(worker, service):
        worker.wake()
        assert not worker.busy
        assert await worker.wait_until_drained(256, 20)
        assert listed(db) == {(MEMORY, row)}

    worked(make_settings, embed_service, db, test, mode="none")


def test_the_width_of_the_first_vector_is_remembered_across_processes(make_settings, embed_service, db):
    put_memory(db, "text")

    async def first(worker, service):
        assert await worker.wait_until_drained(256, 20)

    worked(make_settings, embed_service, db, first)
    assert db.read_now(backlog.known_width) == ("", 8)
    embed_service.width = 16
    row = put_memory(db, "more text")

    async def test(worker, service):
        await until(lambda: worker._failures >= 1)
        assert "16 numbers, the database's have 8" in worker._problem
        assert row not in vectors(db)

    worked(make_settings, embed_service, db, test)


def test_the_remembered_width_follows_a_model_that_is_surely_another(db):
    row = put_memory(db, "text")

    def attach(model, width):
        db.write_now(
            lambda tx: backlog.attach_vector(tx, MEMORY, row, Embedded(np.ones(width, dtype=np.float32), model))
        )
        return db.read_now(backlog.known_width)

    assert attach("builtin:x:1", 896) == ("builtin:x:1", 896)
    assert attach("", 8) == ("", 8)
    assert attach("m1", 8) == ("m1", 8)
    assert attach("", 8) == ("m1", 8)
    assert attach("m2", 4) == ("m2", 4)
    assert set(vectors(db)) == {row} and listed(db) == set()


def test_rows_that_would_not_be_through_in_time_are_not_worth_waiting_for(make_settings, embed_service, db):
    for number in range(200):
        put_memory(db, f"row {number}")

    def slow(texts):
        time.sleep(0.01 * len(texts))
        return embed_service.good(texts)

    async def test(worker, service):
        await until(lambda: worker._done)  # one batch is through, and its pace is known
        assert not worker.worth_waiting_for(256, 0.1) and worker.worth_waiting_for(256, 60.0)
        assert not worker.worth_waiting_for(8, 60.0)
        await until(lambda: not worker.busy)
        assert not worker.worth_waiting_for(256, 60.0)

    embed_service.answer = slow
    worked(make_settings, embed_service, db, test)


def test_rows_that_others_went_before_are_as_worth_waiting_for_as_ever(make_settings, embed_service, db):
    """Otherwise questions that come one after the other would keep the rows from being embedded, and never wait for
    them.
    """

    async def test(worker, service):
        with service.turns.claim(QUESTION):
            put_memory(db, "stored while a question is asked")
            worker.wake()
            await until(lambda: worker._done)  # it was put off as long as it can be
            put_memories(db, [f"row {number}" for number in range(60)])
            worker.wake()
            await until(lambda: sum(worker._listed) >= 60)
            assert worker.worth_waiting_for(256, 5.0)

    worked(make_settings, embed_service, db, test)


def test_rate_and_time_left_are_told_while_they_are_measured_and_never_otherwise(make_settings, embed_service, db):
    """Contract: progress.measured."""
    put_memories(db, [f"row {number}" for number in range(100)])
    held, answers = threading.Event(), []

    def slow(texts):
        answers.append(len(texts))
        time.sleep(0.002 * len(texts))
        if len(answers) == 3:
            held.wait(20)
        return embed_service.good(texts)

    async def test(worker, service):
        assert not {"rows_per_second", "eta_seconds"} & set(await worker.status())
        await until(lambda: len(answers) == 3)
        told = await worker.status()
        assert told["rows_per_second"] == pytest.approx(worker.rate, abs=0.01) and worker.rate > 0
        assert told["eta_seconds"] == pytest.approx(told["pending"] / worker.rate, abs=0.02) and told["pending"] < 100
        assert (await worker.status({"mem": 10}))["pending"] == 10  # the oldest are embedded last
        held.set()
        await until(lambda: not worker.busy)
        assert worker.rate is None and "eta_seconds" not in await worker.status()
        embed_service.answer = lambda texts: {}
        put_memory(db, "one that fails")
        worker.wake()
        await until(lambda: worker._failures)
        assert worker.rate is None and "eta_seconds" not in await worker.status()

    embed_service.answer = slow
    worked(make_settings, embed_service, db, test)
