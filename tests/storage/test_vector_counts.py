"""The counts of rows without a usable vector: equal to what the tables hold, whatever was written, and cheap to ask.

Contract: advisory.says, speed.plans.
"""

from __future__ import annotations

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage import backlog, episodes, memories, schema, vector_counts
from cpersona_daemon.storage.episodes import NewEpisode
from cpersona_daemon.storage.memories import NewMemory
from cpersona_daemon.storage.scope import axes_sql
from cpersona_daemon.storage.transaction import Transaction

AGENTS, PROJECTS, CHANNELS = ("a", "b"), ("", "p", "q"), ("", "c", "d")
WIDTHS, MODELS = (2, 3), ("", "m", "n")
SCOPES = [Scope(agent, project, channel) for agent in AGENTS for project in (None, *PROJECTS) for channel in CHANNELS]


def opened() -> apsw.Connection:
    conn = apsw.Connection(":memory:")
    conn.execute("PRAGMA foreign_keys = ON")
    schema.migrate(conn, 0.0)
    return conn


def counted_by_hand(conn: apsw.Connection, scope: Scope, width: int, model: str) -> tuple[int, int]:
    """Return (unusable, waiting) of a scope by looking at every row."""
    unusable = waiting = 0
    for kind, rows, vectors in ((MEMORY, "memories", "memory_vectors"), (EPISODE, "episodes", "episode_vectors")):
        condition, params = axes_sql(scope, "m.")
        for vector, named, listed in conn.execute(
            f"SELECT v.vector, v.model, b.id FROM {rows} m LEFT JOIN {vectors} v ON v.id = m.id"
            f" LEFT JOIN embedding_backlog b ON b.kind = '{kind}' AND b.id = m.id WHERE {condition}",
            tuple(params),
        ):
            usable = vector is not None and len(vector) == 4 * width and (not model or not named or named == model)
            unusable += not usable
            waiting += listed is not None
    return unusable, waiting


def assert_counts_are_true(conn: apsw.Connection) -> None:
    for scope in SCOPES:
        for width in (*WIDTHS, 5):
            for model in (*MODELS, "other"):
                kept = vector_counts.unusable(conn, scope, width, model), vector_counts.waiting(conn, scope)
                assert kept == counted_by_hand(conn, scope, width, model), (scope, width, model)
    assert conn.execute("SELECT count(*) FROM vector_counts WHERE rows < 1").fetchall() == [(0,)]
    assert conn.execute("SELECT count(*) FROM backlog_counts WHERE rows < 1").fetchall() == [(0,)]


ROW = st.integers(1, 8)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("add"),
            st.sampled_from((MEMORY, EPISODE)),
            st.sampled_from(AGENTS),
            st.sampled_from(PROJECTS),
            st.sampled_from(CHANNELS),
        ),
        st.tuples(
            st.just("embed"), st.sampled_from((MEMORY, EPISODE)), ROW, st.sampled_from(WIDTHS), st.sampled_from(MODELS)
        ),
        st.tuples(st.just("list"), st.sampled_from((MEMORY, EPISODE)), ROW),
        st.tuples(st.just("change"), ROW),
        st.tuples(st.just("delete"), st.sampled_from((MEMORY, EPISODE)), ROW),
        st.tuples(st.just("delete by a foreign hand"), st.sampled_from(("memories", "episodes")), ROW),
        st.tuples(st.just("spoil"), ROW),
    ),
    max_size=25,
)


@given(STEPS)
@settings(max_examples=60)
def test_the_counts_equal_what_the_tables_hold_after_any_writes(steps):
    conn = opened()
    tx = Transaction(conn, 0.0)
    for number, (what, *values) in enumerate(steps):
        if what == "add":
            kind, agent, project, channel = values
            if kind == MEMORY:
                memories.insert(tx, NewMemory(agent, f"text {number}", project, channel))
            else:
                episodes.insert(tx, NewEpisode(agent, f"text {number}", "", project, channel))
        elif what == "embed":
            kind, row_id, width, model = values
            backlog.attach_vector(tx, kind, row_id, Embedded(np.ones(width, np.float32), model))
        elif (
            what == "list"
            and conn.execute(
                f"SELECT 1 FROM {'memories' if values[0] == MEMORY else 'episodes'} WHERE id = ?", values[1:]
            ).fetchone()
        ):
            backlog.enqueue(tx, *values)
        elif what == "change" and memories.find(conn, values[0]):
            memories.replace_content(tx, values[0], f"changed {number}")
        elif what == "delete" and values[0] == MEMORY and memories.find(conn, values[1]):
            memories.delete(tx, values[1])
        elif what == "delete" and values[0] == EPISODE and episodes.owner(conn, values[1]):
            episodes.delete(tx, values[1])
        elif what == "delete by a foreign hand":
            conn.execute(f"DELETE FROM {values[0]} WHERE id = ?", (values[1],))
        elif what == "spoil":
            conn.execute("UPDATE memory_vectors SET vector = x'010203' WHERE id = ?", values)
    assert_counts_are_true(conn)
    conn.close()


@pytest.fixture
def old():
    """A database of the first released schema with rows of every kind."""
    conn = apsw.Connection(":memory:")
    for _, _, script in schema.MIGRATIONS[:4]:
        conn.execute(script)
    for number in range(40):
        axes = (AGENTS[number % 2], PROJECTS[number % 3], CHANNELS[number % 3], f"2026-01-05 00:00:{number:02}")
        conn.execute(
            (
                "INSERT INTO memories (agent_id, project_id, channel, created_at, content_key, content)"
                " VALUES (?,?,?,?,?,?)"
            ),
            (*axes, bytes([number]), str(number)),
        )
        conn.execute(
            "INSERT INTO episodes (agent_id, project_id, channel, created_at, summary) VALUES (?,?,?,?,'e')", axes
        )
        if number % 4:
            conn.execute(
                "INSERT INTO memory_vectors VALUES (?, ?, ?)",
                (number + 1, MODELS[number % 3], b"\0\0\x80?" * WIDTHS[number % 2]),
            )
        else:
            conn.execute("INSERT INTO embedding_backlog VALUES (?, ?)", (("mem", "ep")[number % 8 // 4], number + 1))
    conn.execute("INSERT INTO embedding_backlog VALUES ('mem', 999)")  # a row that is gone
    conn.execute(
        "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"
    )
    conn.executemany(
        "INSERT INTO schema_migrations VALUES (?, ?, '2026-01-05 00:00:00')",
        [(version, name) for version, name, _ in schema.MIGRATIONS[:4]],
    )
    yield conn
    conn.close()


def test_an_earlier_database_is_counted_when_it_is_migrated(old):
    schema.migrate(old, 0.0)
    assert_counts_are_true(old)
    tx = Transaction(old, 0.0)
    backlog.forget_missing(tx)
    for row_id in range(1, 20):
        backlog.attach_vector(tx, MEMORY, row_id, Embedded(np.ones(2, np.float32), "m"))
        memories.delete(tx, row_id + 20)
    assert_counts_are_true(old)
