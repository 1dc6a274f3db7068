"""Passages are derived from their rows: whatever moves, changes or ends a row, they are those of its text, of today's
model, or on their way.

Contract: passages.derived.
"""

from __future__ import annotations

import os
import signal
import threading

import apsw
import pytest
from house_kit import House
from passages_kit import ANSWER, Bag, held, indexed, long_text, put, recall, settle

from cpersona_cli.wire import client, control
from cpersona_daemon.life import ownership
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.cuts import content_key
from cpersona_daemon.portability.backup import restore
from cpersona_daemon.shared import paths
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage import passages as stored
from cpersona_daemon.storage import schema
from cpersona_daemon.storage.database import Database
from cpersona_daemon.text.passages import split

TEXT = long_text("Ada", ANSWER)
PASSAGES = [TEXT[span.start : span.end] for span in split(TEXT)]


@pytest.fixture
def service():
    server = Bag()
    yield server
    server.stop()


@pytest.fixture
def make(make_house, service):
    """Open houses of which each asks the same model, if any."""

    def made(name: str = "one", **environ: str) -> House:
        asks = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": service.url}
        return make_house(name, **{"CPERSONA_RECALL_MODE": "blend", **asks, **environ})

    return made


def counted(house: House) -> dict[str, int]:
    return house.ctx.db.read_now(stored.count)


def models(house: House) -> set[str]:
    return {model for (model,) in house.sql("SELECT model FROM memory_passages")}


def best(house: House, **more) -> dict:
    return recall(house, "Marguerite hid the violin", **more)["messages"][-1]


def answers(house: House) -> None:
    """Assert that the row is known by the passage that holds the answer."""
    found = best(house, full_content=True)
    assert ANSWER in found["content"][found["passage"]["start"] : found["passage"]["end"]]


def test_another_model_makes_them_anew(make, service):
    house = make()
    row = put(house, TEXT)
    settle(house)
    assert models(house) == {"bag"}
    service.model = "other"
    put(house, "a short note tells which model it is now")
    assert house.ask("reindex")["listed_for_embedding"]
    settle(house)
    assert models(house) == {"other"} and held(house, row) == PASSAGES and indexed(house) == len(PASSAGES)
    answers(house)


def test_an_export_carries_none_and_an_import_makes_them(make):
    one = make()
    put(one, TEXT)
    one.ask("archive_episode", agent_id="a", history=[], summary=TEXT)
    settle(one)
    lines = one.export("out.jsonl", include_embeddings=True)
    assert sum("embedding_b64" in line for line in lines) == 2
    two = make("two")
    answer = two.ask("import_memories", input_path=str(one.root / "out.jsonl"))
    assert answer["ok"] and "listed_for_embedding" not in answer
    settle(two)
    assert counted(two) == {"passages": 2 * len(PASSAGES), "rows": 2, "waiting": 0}
    answers(two)


def test_a_backup_is_restored_with_its_passages_and_their_index_is_made_anew(make, tmp_path):
    one = make()
    put(one, TEXT)
    settle(one)
    assert one.ask("backup_database", output_path=str(tmp_path / "b.tar"))["ok"]
    (tmp_path / "two" / "db").mkdir(parents=True)
    environ = {"HOME": str(tmp_path / "two"), "CPERSONA_DB_PATH": str(tmp_path / "two" / "db" / "t.db")}
    settings = load(environ)
    restore.restore(str(tmp_path / "b.tar"), settings, paths.places(settings, environ), ownership.held)
    (tmp_path / "two" / "db").rename(tmp_path / "db")
    (tmp_path / "two").rmdir()
    two = make("two", CPERSONA_DB_PATH=str(tmp_path / "db" / "t.db"))
    assert counted(two) == {"passages": len(PASSAGES), "rows": 1, "waiting": 0}
    answers(two)
    two.ctx.vectors.rebuild()
    assert indexed(two) == len(PASSAGES)
    answers(two)


def test_rows_that_are_merged_into_another_agent_get_theirs_there(make):
    house = make()
    put(house, long_text("Ben"))
    put(house, TEXT, agent="b")
    settle(house)
    answer = house.ask("merge_memories", source_agent_id="b", target_agent_id="a", strategy="skip")
    assert answer["ok"] and answer["merged_memories"] == 1, answer
    settle(house)
    answers(house)
    counts = house.sql("SELECT sum(rows) FROM vector_counts WHERE kind = 'mem+'")
    assert counts == [(counted(house)["passages"],)] and indexed(house) == counted(house)["passages"]


def test_they_go_with_their_agent(make):
    house = make()
    put(house, TEXT, agent="b")
    house.ask("archive_episode", agent_id="b", history=[], summary=TEXT)
    row = put(house, TEXT)
    settle(house)
    put(house, long_text("Ben"), agent="b")  # one that is listed still
    house.ask("delete_agent_data", agent_id="b")
    settle(house)
    assert counted(house) == {"passages": len(PASSAGES), "rows": 1, "waiting": 0} and held(house, row) == PASSAGES
    assert indexed(house) == len(PASSAGES) and house.sql("SELECT count(*) FROM episode_passages") == [(0,)]
    assert house.sql("SELECT DISTINCT agent_id FROM vector_counts") == [("a",)]


@pytest.mark.parametrize("mend", ["reindex", "health"])
def test_what_lacks_them_is_listed(make, mend):
    house = make()
    row = put(house, TEXT)
    settle(house)
    house.change("DELETE FROM memory_passages WHERE row_id = ?", row)
    issues = [issue["message"] for issue in house.ask("check_health")["issues"]]
    assert any("1 long memories have no passages and do not wait for any" in message for message in issues), issues
    house.ask("reindex") if mend == "reindex" else house.ask("check_health", fix=True)
    settle(house)
    assert held(house, row) == PASSAGES and indexed(house) == len(PASSAGES)
    assert house.ask("check_health", deep=True)["issues"] == []
    answers(house)


def test_passages_of_another_model_are_passed_over_and_made_anew(make):
    house = make()
    row = put(house, TEXT)
    settle(house)
    house.change("UPDATE memory_passages SET model = 'other'")
    house.ctx.vectors.rebuild()
    assert best(house)["ref"] == f"mem:{row}" and "passage" not in best(house)
    issues = house.ask("check_health")["issues"]
    assert any("another model" in issue["message"] for issue in issues), issues
    house.ask("check_health", fix=True)
    settle(house)
    assert models(house) == {"bag"} and held(house, row) == PASSAGES
    answers(house)


def test_a_vector_that_is_none_takes_its_passages_along(make, service):
    house = make()
    row = put(house, TEXT)
    settle(house)
    house.change("UPDATE memory_vectors SET vector = zeroblob(7)")
    reply, go_on = service.reply, threading.Event()
    service.reply = lambda texts: go_on.wait(30) and reply(texts)
    house.ask("check_health", fix=True)
    assert held(house, row) == [] and indexed(house) == 0
    go_on.set()
    settle(house)
    assert held(house, row) == PASSAGES and house.ask("check_health", deep=True)["issues"] == []
    answers(house)


def test_no_passages_of_a_text_that_was_changed_while_they_were_made_are_kept(make, service):
    house = make()
    reply, asked, go_on = service.reply, threading.Event(), threading.Event()

    def slow(texts: list[str]) -> dict:
        if ANSWER in "".join(texts) and TEXT not in texts:
            asked.set()
            assert go_on.wait(30)
        return reply(texts)

    service.reply = slow
    row = put(house, TEXT)
    assert asked.wait(30)
    other = long_text("Eve", pages=40)
    house.change("UPDATE memories SET content = ?, content_key = ? WHERE id = ?", other, content_key(other), row)
    go_on.set()
    settle(house)
    assert held(house, row) == [other[span.start : span.end] for span in split(other)]


@pytest.mark.parametrize("suffix", ["", ".int8", ".rows"])
@pytest.mark.parametrize("damage", ["cut", "overwritten", "gone"])
def test_an_index_of_passages_that_was_damaged_is_made_anew(make, suffix, damage):
    house = make()
    put(house, TEXT)
    settle(house)
    before, path = best(house), house.places.memory_passages + suffix
    house.close()
    if not os.path.exists(path):
        pytest.skip("this machine keeps no such file")
    if damage == "cut":
        os.truncate(path, 100)
    elif damage == "gone":
        os.unlink(path)
    else:
        with open(path, "r+b") as file:
            file.write(b"\xff" * 200)
    house.__init__(house.root, **{name: house.environ[name] for name in house.environ if name.startswith("CPERSONA_")})
    assert best(house) == before
    house.ctx.vectors.wait()
    assert best(house) == before and indexed(house) == len(PASSAGES)


def test_a_database_from_before_lists_its_long_rows(tmp_path):
    path = str(tmp_path / "old.db")
    conn = apsw.Connection(path)
    conn.execute(
        "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"
    )
    for version, name, script in schema.MIGRATIONS[:12]:
        script(conn) if callable(script) else conn.execute(script)
        conn.execute("INSERT INTO schema_migrations VALUES (?, ?, '2026-01-05 00:00:00')", (version, name))
    conn.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    for row, text in enumerate((TEXT, "short", long_text("Ben")), 1):
        conn.execute(
            "INSERT INTO memories (id, agent_id, created_at, content_key, content) VALUES (?, 'a', ?, ?, ?)",
            (row, "2026-01-05 00:00:00", content_key(text), text),
        )
        if row < 3:  # the third waits for its vector still
            conn.execute("INSERT INTO memory_vectors (id, model, vector) VALUES (?, 'bag', zeroblob(1024))", (row,))
    conn.close()
    db = Database(path, SystemClock())
    db.open()
    try:
        listed = db.read_now(lambda conn: conn.execute("SELECT kind, id FROM embedding_backlog").fetchall())
    finally:
        db.close()
    assert listed == [("mem+", 1)]


def test_what_was_stored_is_what_an_earlier_instant_is_answered_with(make):
    house = make()
    row = put(house, TEXT)
    house.change("UPDATE memories SET created_at = '2026-01-05 00:00:00'")
    settle(house)
    house.ctx.vectors.rebuild()
    assert best(house, as_of="2026-02-01T00:00:00Z")["ref"] == f"mem:{row}"
    assert ANSWER in TEXT[slice(*best(house, as_of="2026-02-01T00:00:00Z")["passage"].values())]
    assert recall(house, "Marguerite hid the violin", as_of="2025-12-31T00:00:00Z")["messages"] == []


def test_kill_9_while_they_are_made_loses_none(home, service):
    """Each text has many, which are written together: where a daemon is killed there are all of a row or none."""
    reply, asked = service.reply, threading.Semaphore(0)

    def told(texts: list[str]) -> dict:
        asked.release()
        return reply(texts)

    service.reply = told
    environ = home | {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": service.url}
    texts = [long_text(f"Ada {n}", ANSWER) for n in range(12)]
    with client.connect(load(environ), environ) as connection:
        ids = [connection.call("store", {"agent_id": "a", "content": text})[0]["id"] for text in texts]
    for _ in range(4):
        with client.connect(load(environ), environ):
            for _ in range(3):
                assert asked.acquire(timeout=30)
            os.kill(control.find_daemon(load(environ), environ)["pid"], signal.SIGKILL)
    with client.connect(load(environ), environ) as connection:
        while (status := connection.call("daemon_status", {})[0]["backlog"])["pending"] + status["passages_pending"]:
            pass
        health, code = connection.call("check_health", {"deep": True})
        assert code is None and health["issues"] == [], health
        assert control.stop_daemon(load(environ), 30, environ)
    conn = apsw.Connection(environ["CPERSONA_DB_PATH"])
    try:
        spans = conn.execute("SELECT row_id, start, stop FROM memory_passages ORDER BY row_id, start").fetchall()
    finally:
        conn.close()
    assert spans == [(row, *span) for row, text in zip(ids, texts, strict=True) for span in split(text)]
