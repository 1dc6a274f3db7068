"""What a store keeps of the changes and deletions of its rows, and what it costs. Contract: time.asof."""

from __future__ import annotations

import apsw
import pytest

from cpersona_daemon.model.instants import created_text
from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage import episodes, history, memories, schema
from cpersona_daemon.storage.episodes import NewEpisode
from cpersona_daemon.storage.history import Unknown, unknown
from cpersona_daemon.storage.memories import NewMemory
from cpersona_daemon.storage.transaction import Transaction

DAY = 86_400.0
BOTH = (MEMORY, EPISODE)


@pytest.fixture
def conn(tmp_path):
    conn = apsw.Connection(str(tmp_path / "t.db"))
    conn.execute("PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON")
    schema.migrate(conn, 0.0)
    yield conn
    conn.close()


def on(conn, day: float) -> Transaction:
    """A transaction on so many days after the beginning of time."""
    return Transaction(conn, day * DAY)


def text(day: float) -> str:
    return created_text(day * DAY)


def test_a_new_store_misses_nothing_of_its_past(conn):
    assert unknown(conn, Scope("a", as_of=text(1)), BOTH) == Unknown(0, 0, "")


def test_a_changed_row_counts_between_its_storing_and_its_last_change(conn):
    row = memories.insert(on(conn, 1), NewMemory("a", "one"))
    memories.replace_content(on(conn, 3), row, "two")
    memories.replace_content(on(conn, 5), row, "three")
    memories.replace_content(on(conn, 7), row, "three")
    assert [unknown(conn, Scope("a", as_of=text(day)), BOTH).changed for day in (0, 1, 2, 4, 5, 6)] == [
        0,
        1,
        1,
        1,
        0,
        0,
    ]


def test_a_deleted_row_counts_between_its_storing_and_its_end(conn):
    memories.delete(on(conn, 3), memories.insert(on(conn, 1), NewMemory("a", "one")))
    episodes.delete(on(conn, 4), episodes.insert(on(conn, 2), NewEpisode("a", "one")))
    assert [unknown(conn, Scope("a", as_of=text(day)), BOTH).deleted for day in (0, 1, 2, 3, 4)] == [0, 1, 2, 1, 0]
    assert unknown(conn, Scope("a", as_of=text(2)), (MEMORY,)).deleted == 1


def test_only_what_the_scope_sees_is_counted(conn):
    for agent, project, channel in (("a", "p", "c"), ("a", "", ""), ("a", "q", ""), ("b", "p", "c")):
        changed = memories.insert(on(conn, 1), NewMemory(agent, "one", project, channel, source='{"id": "u1"}'))
        gone = memories.insert(on(conn, 1), NewMemory(agent, "two", project, channel, source='{"id": "u2"}'))
        memories.replace_content(on(conn, 3), changed, "three")
        memories.delete(on(conn, 3), gone)

    def seen(everyone=False, **axes):
        return unknown(conn, Scope("a", as_of=text(2), **axes), BOTH, everyone)

    assert seen() == Unknown(3, 3, "")
    assert (
        seen(project_id="p") == Unknown(2, 2, "")
        and seen(project_id="") == Unknown(1, 1, "")
        and seen(project_id="p", channel="d") == Unknown(1, 1, "")
    )
    assert seen(source_id="u2") == Unknown(0, 3, "")  # of a deleted row the source is not kept
    assert seen(everyone=True) == Unknown(4, 4, "") and seen(everyone=True, project_id="q") == Unknown(2, 2, "")
    assert (
        seen(since=text(1.5)) == Unknown(0, 0, "")
        and seen(until=text(0.5)) == Unknown(0, 0, "")
        and seen(since=text(1), until=text(1)) == Unknown(3, 3, "")
    )


def test_no_more_is_counted_than_can_matter(conn, monkeypatch):
    monkeypatch.setattr(history, "COUNTED", 2)
    for n in range(4):
        memories.delete(on(conn, 3), memories.insert(on(conn, 1), NewMemory("a", str(n))))
    assert unknown(conn, Scope("a", as_of=text(2)), BOTH).deleted == 2


def test_the_oldest_notes_go_and_from_when_on_none_is_missing_is_known(conn, monkeypatch):
    monkeypatch.setattr(history, "DELETIONS_KEPT", 3)
    monkeypatch.setattr(history, "DROPPED_TOGETHER", 1)
    for n in range(5):
        memories.delete(on(conn, 10 + n), memories.insert(on(conn, n), NewMemory("a", str(n))))
    assert conn.execute("SELECT count(*) FROM deletions").fetchone() == (3,)
    assert unknown(conn, Scope("a", as_of=text(9)), BOTH) == Unknown(0, 3, text(11))
    assert unknown(conn, Scope("b", as_of=text(9)), BOTH).recorded_since == text(11)


def test_deleting_what_is_not_there_touches_no_note(conn, monkeypatch):
    monkeypatch.setattr(history, "DELETIONS_KEPT", 1)
    monkeypatch.setattr(history, "DROPPED_TOGETHER", 1)
    memories.delete(on(conn, 2), memories.insert(on(conn, 1), NewMemory("a", "one")))
    for n in range(5):
        memories.insert(on(conn, 3), NewMemory("b", str(n)))
    memories.delete(on(conn, 4), 999)
    episodes.delete(on(conn, 4), 999)
    assert conn.execute("SELECT count(*) FROM deletions").fetchone() == (1,)


def test_rows_that_come_with_an_older_time_bring_no_history(conn):
    history.note_arrival(on(conn, 4), "a")
    history.note_arrival(on(conn, 3), "a")
    assert unknown(conn, Scope("a", as_of=text(1)), BOTH).recorded_since == text(4)
    assert unknown(conn, Scope("b", as_of=text(1)), BOTH).recorded_since == "" and unknown(
        conn, Scope("", as_of=text(1)), BOTH, everyone=True
    ).recorded_since == text(4)


@pytest.mark.parametrize("leave_rows", [True, False])
def test_a_store_of_an_earlier_version_knows_from_its_migration_on(tmp_path, monkeypatch, leave_rows):
    conn = apsw.Connection(str(tmp_path / "old.db"))
    with monkeypatch.context() as earlier:
        earlier.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:4])
        earlier.setattr(schema, "SCHEMA_VERSION", 4)
        schema.migrate(conn, 0.0)
    conn.execute(
        "INSERT INTO memories (agent_id, created_at, content_key, content)"
        " VALUES ('a', '2020-01-01 00:00:00', x'00', 'kept')"
    )
    if not leave_rows:
        conn.execute("DELETE FROM memories")
    schema.migrate(conn, 0.0)
    since = unknown(conn, Scope("a", as_of="2021-01-01 00:00:00"), BOTH)
    assert (since.changed, since.deleted) == (0, 0) and since.recorded_since > "2025"
    assert conn.execute("SELECT content, changed_at FROM memories").fetchall() == (
        [("kept", None)] if leave_rows else []
    )
    conn.close()
