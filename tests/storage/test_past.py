"""What is kept of rows before they are changed or deleted, and how it goes. Contract: past.kept, past.acts."""

from __future__ import annotations

import apsw
import numpy as np
import pytest

from cpersona_daemon.model.cuts import Whole
from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.storage import backlog, batches, episodes, memories, past, schema
from cpersona_daemon.storage.episodes import NewEpisode
from cpersona_daemon.storage.memories import NewMemory
from cpersona_daemon.storage.transaction import Transaction

DAY = past.DAY_SECONDS


@pytest.fixture
def conn(tmp_path):
    conn = apsw.Connection(str(tmp_path / "t.db"))
    conn.execute("PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON")
    schema.migrate(conn, 0.0)
    yield conn
    conn.close()


def on(conn, day: float = 1, days: float = 30) -> Transaction:
    return Transaction(conn, day * DAY, days)


def kept(conn, kind=MEMORY, row_id=1):
    return past.of_row(conn, (kind, row_id), "", None, 100)[0]


def test_an_update_keeps_the_whole_row_as_it_was(conn):
    tx = on(conn)
    whole = Whole.of("one and more", "one")
    row = memories.insert(
        tx,
        NewMemory("a", "one", "p", "c", "key", '{"id": "u"}', "then", '{"m": 1}', "2020-01-01 00:00:00", whole=whole),
    )
    batches.label(tx, MEMORY, row, "run")
    backlog.attach_vector(tx, MEMORY, row, Embedded(np.ones(4, np.float32) / 2, "model"))
    memories.replace_content(on(conn, 2), row, "two")
    (entry,) = kept(conn)
    assert (entry.text, entry.act, entry.at, entry.batch) == ("one", "update", "1970-01-03 00:00:00", "run")
    assert (entry.agent_id, entry.project_id, entry.channel, entry.created_at) == ("a", "p", "c", "2020-01-01 00:00:00")
    told = entry.fields
    assert (told["msg_id"], told["timestamp"], told["source"], told["metadata"]) == (
        "key",
        "then",
        '{"id": "u"}',
        '{"m": 1}',
    )
    assert told["whole_length"] == 12 and bytes.fromhex(told["whole_key"]) == whole.key
    assert (entry.model, np.frombuffer(entry.vector, "<f4").tolist()) == ("model", [0.5] * 4)


def test_what_changes_nothing_and_what_is_stored_keeps_nothing(conn):
    row = memories.insert(on(conn), NewMemory("a", "one"))
    memories.replace_content(on(conn), row, "one")
    memories.replace_facts(on(conn), row, NewMemory("a", "one"))
    memories.delete(on(conn), 999)
    episodes.insert(on(conn), NewEpisode("a", "day"))
    assert past.size(conn) == {"entries": 0, "bytes": 0, "since": None}


def test_what_a_job_does_to_a_row_twice_is_one_entry_and_all_that_it_does_one_act(conn):
    first, second = (memories.insert(on(conn), NewMemory("a", text)) for text in ("one", "two"))
    tx = on(conn)
    memories.replace_content(tx, first, "three")
    memories.replace_facts(tx, first, NewMemory("a", "three", timestamp="now"))
    memories.delete(tx, second)
    memories.delete(on(conn), first)
    (deleted, updated), (other,) = kept(conn, row_id=first), kept(conn, row_id=second)
    assert (updated.text, other.text, deleted.text) == ("one", "two", "three")
    assert updated.together == other.together == updated.id < deleted.together == deleted.id
    assert (deleted.newest_memory, deleted.newest_episode) == (2, 0)


def test_rows_that_nobody_saw_are_not_kept(conn):
    row = memories.insert(on(conn), NewMemory("a", "one"))
    conn.execute("INSERT INTO hidden_memories VALUES (?)", (row,))
    memories.insert(on(conn), NewMemory("a", "one"))
    assert past.size(conn)["entries"] == 0 and conn.execute("SELECT count(*) FROM deletions").get == 0


def test_an_episode_is_kept_when_it_goes(conn):
    row = episodes.insert(on(conn), NewEpisode("a", "day", "words", start_time="then", resolved=True))
    episodes.delete(on(conn), row)
    (entry,) = kept(conn, EPISODE)
    assert (entry.text, entry.fields["keywords"], entry.fields["start_time"], entry.fields["resolved"]) == (
        "day",
        "words",
        "then",
        1,
    )


def test_a_text_that_is_damaged_can_still_be_deleted_and_its_history_read(conn):
    row = memories.insert(on(conn), NewMemory("a", "one"))
    conn.execute("UPDATE memories SET content = CAST(x'61ff62' AS TEXT), source = x'ff' WHERE id = ?", (row,))
    memories.delete(on(conn), row)
    assert kept(conn)[0].text == "a\ufffdb"


def test_what_is_older_than_its_days_goes_a_bounded_number_at_a_time(conn):
    rows = [memories.insert(on(conn), NewMemory("a", str(n))) for n in range(5)]
    for day, row in enumerate(rows):
        memories.delete(on(conn, 10 + day), row)
    assert not past.some_old(conn, 40 * DAY, 30)
    now = on(conn, 43.5)
    assert past.some_old(conn, now.now, 30)
    past.sweep(now, 2)
    assert past.size(conn)["entries"] == 3 and past.size(conn)["since"] == "1970-01-13 00:00:00"
    past.sweep(now, 100)
    assert past.size(conn)["entries"] == 1 and not past.some_old(conn, now.now, 30)


def test_with_no_days_nothing_is_kept_and_what_was_goes(conn):
    row = memories.insert(on(conn), NewMemory("a", "one"))
    memories.replace_content(on(conn), row, "two")
    none = on(conn, days=0)
    memories.replace_content(none, row, "three")
    memories.delete(none, row)
    assert [entry.text for entry in kept(conn)] == ["one"] and past.some_old(conn, 0.0, 0)
    past.sweep(none)
    assert past.size(conn)["entries"] == 0


def test_no_statement_reads_all_that_is_kept(conn):
    """Contract: speed.plans."""
    plans = []

    def noted(cursor, sql, params):
        if not sql.startswith("EXPLAIN"):
            found = cursor.connection.cursor().execute("EXPLAIN QUERY PLAN " + sql, params)
            plans.extend(f"{row[-1]} | {sql[:60]}" for row in found)
        return True

    tx = on(conn)
    row = memories.insert(tx, NewMemory("a", "one"))
    conn.exec_trace = noted
    memories.replace_content(tx, row, "two")
    past.sweep(tx)
    past.some_old(conn, 0.0, 30)
    past.of_row(conn, (MEMORY, row), "a", None, 5)
    past.former(conn, (MEMORY, row), "a", None, 1)
    past.when_deleted(conn, (MEMORY, row))
    past.forget_agent(tx, "b")
    conn.exec_trace = None
    assert any("past_row" in plan for plan in plans)
    assert not [plan for plan in plans if plan.startswith("SCAN past") and "INDEX past_at" not in plan]


def test_a_database_of_the_schema_before_gets_the_table_and_keeps_from_then_on(tmp_path, monkeypatch):
    """Contract: rows.shape."""
    conn = apsw.Connection(str(tmp_path / "old.db"))
    version = next(m.version for m in schema.MIGRATIONS if m.name == "what rows were before")
    schema.migrate(conn, 0.0, until=version - 1)
    assert not conn.execute("SELECT 1 FROM sqlite_schema WHERE name = 'past'").fetchall()
    conn.execute(
        "INSERT INTO memories (agent_id, created_at, content_key, content)"
        " VALUES ('a', '2020-01-01 00:00:00', x'00', 'old')"
    )
    schema.migrate(conn, 0.0)
    memories.replace_content(on(conn), 1, "new")
    assert [entry.text for entry in kept(conn)] == ["old"]
    conn.close()
