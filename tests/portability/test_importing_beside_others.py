"""An import among other writers, and one that ends early. Contract: import.lines."""

import threading

import pytest
from house_kit import memory

from cpersona_daemon.errors import StorageFailure
from cpersona_daemon.portability.imports import reading, run


def rows(house):
    return house.sql("SELECT count(*) FROM memories")[0][0]


@pytest.fixture
def short_transactions(monkeypatch):
    monkeypatch.setattr(run, "TRANSACTION_SECONDS", 0.0)
    monkeypatch.setattr(reading, "CHUNK_LINES", 50)
    monkeypatch.setattr(reading, "ROWS_TOGETHER", 1)


def test_other_writers_come_in_between(house, short_transactions):
    path = house.write("in.jsonl", *[memory(f"row {i}") for i in range(400)])
    running = house.start("import_memories", input_path=path)
    stored = house.ask("store", agent_id="b", content="between")
    answer, _ = running.result(60)
    assert answer["imported_memories"] == 400 and stored["result"] == "stored"
    assert stored["id"] < 401


def test_an_import_that_ends_early_says_what_it_stored_and_can_be_run_again(house, short_transactions):
    path = house.write("in.jsonl", *[memory(f"row {i}") for i in range(400)])
    # As on a full disk: the database may not grow beyond a few more pages.
    pages = house.sql("PRAGMA page_count")[0][0]
    house.change(f"PRAGMA max_page_count = {pages + 8}")
    answer = house.ask("import_memories", input_path=path)
    assert answer["ok"] is False and "ended early" in answer["error"] and "again is harmless" in answer["error"]
    assert 0 < rows(house) < 400 and answer["imported_memories"] == rows(house)
    house.change("PRAGMA max_page_count = 1000000")
    again = house.ask("import_memories", input_path=path)
    assert again["ok"] is True and rows(house) == 400
    assert again["skipped_memories"] == answer["imported_memories"]


def test_a_daemon_that_stops_ends_the_import_between_two_transactions(house, short_transactions):
    path = house.write("in.jsonl", *[memory(f"row {i}") for i in range(3000)])
    begun = threading.Event()
    commit = house.ctx.db.on_commit
    seen = house.ctx.db._commit

    def noticed(group):
        outcomes = seen(group)
        begun.set()
        return outcomes

    house.ctx.db._commit = noticed
    running = house.start("import_memories", input_path=path)
    assert begun.wait(30)
    house.run(_close(house))
    answer, code = running.result(60)
    assert answer["ok"] is False and 0 < answer["imported_memories"] < 3000 and commit is house.ctx.db.on_commit


async def _close(house):
    house.ctx.db.close()


def test_a_cancelled_import_stops_writing(house, short_transactions):
    path = house.write("in.jsonl", *[memory(f"row {i}") for i in range(3000)])
    running = house.start("import_memories", input_path=path)
    stores = 0
    while rows(house) <= stores:
        stores += house.ask("store", agent_id="b", content=f"meanwhile {stores}")["result"] == "stored"
    running.cancel()
    # The write that was under way is committed before this one; after it nothing more may come.
    house.ask("store", agent_id="b", content="afterwards")
    left = rows(house)
    house.ask("store", agent_id="b", content="later")
    assert rows(house) == left + 1 < 3000


def test_a_failure_of_the_disk_is_the_imports_own_answer_not_an_exception(house, monkeypatch):
    def full(*args):
        raise StorageFailure("the disk is full, nothing was written")

    monkeypatch.setattr(run, "apply", full)
    answer = house.ask("import_memories", input_path=house.write("in.jsonl", memory("x")))
    assert answer["ok"] is False and "disk is full" in answer["error"] and answer["imported_memories"] == 0
