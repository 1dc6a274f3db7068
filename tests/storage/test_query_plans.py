"""Every statement on a hot path, as it is really sent: which index it takes, and how much of a large store it walks.

The store has 20,000 rows of one agent and no ANALYZE, as every real one. Contract: speed.plans, stats.bounded.
"""

from __future__ import annotations

import itertools
import json
import re
from contextlib import contextmanager
from datetime import date

import apsw
import numpy as np
import pytest

from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage import (
    as_then,
    axes,
    backlog,
    candidates,
    episodes,
    history,
    idempotency,
    lexical,
    memories,
    note_ids,
    own_ids,
    postings,
    profiles,
    scanning,
    schema,
    stats,
    transfer,
    vector_counts,
)
from cpersona_daemon.storage import calibration as measuring
from cpersona_daemon.storage import narrowing as narrowing_of
from cpersona_daemon.storage.idempotency import Key
from cpersona_daemon.storage.memories import NewMemory
from cpersona_daemon.storage.transaction import Transaction
from cpersona_daemon.text.terms import parse_query

ROWS = 20_000
EPISODES = 2_000
NOW = 1_700_000_000.0
# What a bounded statement may walk: the limits of the reads are below 1,000 rows, a step of SQLite's machine is less
# than a row.
STEPS = 60_000
# What a plan may say: searches by key or index, the rows of a parameter, of FTS5 or of a subquery, and walks along an
# index that end at a limit (their cost is measured).
ALLOWED = re.compile(
    r"SEARCH |SCAN (j|json_each|f|memory_fts|episode_fts|memory_terms|episode_terms) VIRTUAL TABLE|SCAN "
    r"\(subquery|CO-ROUTINE|LIST SUBQUERY|SCALAR SUBQUERY"
    r"|CREATE BLOOM|SCAN CONSTANT ROW|MULTI-INDEX OR|INDEX \d|COMPOUND|LEFT-MOST|UNION ALL|MERGE|LEFT$|RIGHT$|SCAN "
    r"memories USING (COVERING )?INDEX memories_created$"
    r"|SCAN b$|REUSE|CORRELATED|USE TEMP B-TREE FOR|SCAN \d+-ROW VALUES CLAUSE|SCAN \d+ CONSTANT ROWS"
    r"|USING ROWID SEARCH ON TABLE hidden_\w+ FOR IN-OPERATOR$|SCAN hidden_\w+$"
    r"|SCAN sqlite_sequence$"  # a row for each table that numbers its rows
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    conn = apsw.Connection(str(tmp_path_factory.mktemp("plans") / "t.db"))
    conn.execute("PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON")
    schema.migrate(conn, 0.0)
    conn.execute("BEGIN")
    projects, channels = ("", "a", "b"), ("", "x", "y", "z")

    def stamp(i):
        return f"2025-{i // 2000 % 12 + 1:02}-{i // 60 % 28 + 1:02} {i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02}"

    rows = [
        (
            f"id{i}",
            projects[i % 3],
            channels[i % 4],
            f"user:{i % 50}",
            stamp(i),
            float(i),
            i.to_bytes(16, "big"),
            f"note {i} word{i % 700}",
        )
        for i in range(ROWS)
    ]
    conn.executemany(
        (
            "INSERT INTO memories (agent_id, msg_id, project_id, channel, source_id, created_at, instant, content_key,"
            " content) VALUES ('kit',?,?,?,?,?,?,?,?)"
        ),
        rows,
    )
    for i, row in enumerate(rows):
        postings.add_memories(conn, [(i + 1, "kit", row[-1])])
    conn.executemany(
        "INSERT INTO memory_vectors VALUES (?, 'm', ?)", [(i + 1, b"\0\0\x80?") for i in range(0, ROWS, 2)]
    )
    conn.executemany(
        "INSERT INTO embedding_backlog VALUES (?, ?)",
        [("mem", i + 1) for i in range(1, ROWS, 2)] + [("ep", i + 1) for i in range(EPISODES)],
    )
    conn.executemany(
        "INSERT INTO episodes (agent_id, project_id, channel, created_at, summary) VALUES ('kit',?,?,?,?)",
        [(projects[i % 3], channels[i % 4], stamp(i), f"episode {i}") for i in range(EPISODES)],
    )
    for i in range(EPISODES):
        postings.add_episode(conn, i + 1, "kit", f"episode {i}", "")
    conn.executemany(
        "INSERT INTO idempotency (key, answered_at, answer) VALUES (?, ?, x'00')",
        [(f"key{i}", NOW + i) for i in range(9_000)],
    )
    conn.execute("COMMIT")
    assert not conn.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1'").fetchall()
    yield conn
    conn.close()


class Looked:
    """What was sent while looking: each statement with its plan, and the steps that all of them took."""

    def __init__(self):
        self.sent: list[str] = []
        self.plans: dict[str, list[str]] = {}
        self.steps = 0

    @property
    def lines(self) -> list[str]:
        return [line for plan in self.plans.values() for line in plan]

    @property
    def sorts(self) -> bool:
        return any("TEMP B-TREE" in line for line in self.lines)

    def uses(self, index: str) -> bool:
        return any(index in line for line in self.lines)


@contextmanager
def looking(conn):
    """Note every statement, count SQLite's steps, and explain each statement afterwards."""
    looked, sent = Looked(), []

    def step() -> bool:
        looked.steps += 100
        return False

    conn.exec_trace = lambda cursor, sql, bindings: sent.append((sql, bindings)) or True
    conn.set_progress_handler(step, 100)
    try:
        yield looked
    finally:
        conn.exec_trace = None
        conn.set_progress_handler(None)
    for sql, bindings in sent:
        if sql.lstrip().split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH"):
            looked.sent.append(sql)
            looked.plans[sql] = [row[3] for row in conn.execute("EXPLAIN QUERY PLAN " + sql, bindings)]


def bounded(conn, act, steps=STEPS):
    """Do something inside a transaction that is taken back; every plan must be sound and the whole must be cheap."""
    conn.execute("BEGIN")
    try:
        with looking(conn) as looked:
            act(Transaction(conn, NOW))
    finally:
        conn.execute("ROLLBACK")
    bad = [(sql, line) for sql, plan in looked.plans.items() for line in plan if not ALLOWED.match(line)]
    assert not bad, bad
    assert looked.sent and looked.steps <= steps, (looked.steps, looked.plans)
    return looked


SCOPES = {
    "no filter": Scope("kit"),
    "the global pool": Scope("kit", ""),
    "a project": Scope("kit", "a"),
    "a channel": Scope("kit", None, "x"),
    "a project and a channel": Scope("kit", "b", "y"),
    "a day": Scope("kit", as_of="2025-06-01 00:00:00"),
    "a while": Scope("kit", since="2025-02-01 00:00:00", until="2025-06-01 00:00:00"),
    "nobody": Scope("nobody"),
}
in_every_scope = pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)


@in_every_scope
def test_the_pool_is_counted_no_further_than_it_matters(store, scope):
    bounded(
        store, lambda tx: (memories.count_in_scope(tx.conn, scope, 500), episodes.count_in_scope(tx.conn, scope, 500))
    )


@in_every_scope
def test_a_blank_recall_reads_the_newest_rows_and_no_others(store, scope):
    looked = bounded(store, lambda tx: memories.recent(tx.conn, scope, 100))
    assert looked.uses("INDEX memories_recent") and not looked.sorts


@in_every_scope
def test_the_span_of_a_scope_is_read_from_both_ends_of_an_index(store, scope):
    # As of a day the rows stored since are walked over.
    looked = bounded(store, lambda tx: memories.span(tx.conn, scope), steps=2 * STEPS if scope.as_of else STEPS)
    assert looked.uses("INDEX memories_instant") and not looked.sorts


@in_every_scope
def test_the_boundary_of_the_episode_penalty_is_one_step_into_an_index(store, scope):
    looked = bounded(store, lambda tx: episodes.boundary(tx.conn, scope))
    assert looked.uses("INDEX episodes_recent") and not looked.sorts


@pytest.mark.parametrize("agent", ["kit", ""])
def test_numbers_of_a_store_come_from_counts_an_index_a_day_and_the_newest_rows(store, agent):
    first = date(2026, 1, 1)
    with looking(store) as looked:
        told = stats.read(store, agent, first, 30)
    walks = [line for line in looked.lines if line.startswith("SCAN") and not line.startswith("SCAN hidden_")]
    # Backwards from the last row, to a limit; the counts are a row for each bucket.
    assert set(walks) <= {"SCAN vector_counts", "SCAN memories"} and told["looked_at"] == stats.NEWEST
    counting = [plan for sql, plan in looked.plans.items() if sql.startswith("SELECT count(*) FROM memories")]
    index = "memories_recent (agent_id=? AND created_at>?" if agent else "memories_created (created_at>?"
    assert counting and all(f"SEARCH memories USING COVERING INDEX {index}" in plan[0] for plan in counting)


@in_every_scope
def test_rows_without_a_usable_vector_are_read_from_counts(store, scope):
    for model in ("m", "", "another"):
        looked = bounded(
            store, lambda tx: (vector_counts.unusable(tx.conn, scope, 1, model), vector_counts.waiting(tx.conn, scope))
        )
        assert looked.steps <= 2_000 and all(
            "USING PRIMARY KEY (agent_id=? AND kind=?" in line for line in looked.lines if line.startswith("SEARCH")
        )
        assert not any(line.startswith("SCAN") and "counts" in line for line in looked.lines)


@in_every_scope
def test_words_are_looked_up_and_their_rows_are_found_by_id(store, scope):
    def search(tx):
        for text, kind in itertools.product(("word7 word8", "note", "id:7/x word9"), (MEMORY, EPISODE)):
            lexical.search(tx.conn, kind, parse_query(text), scope, 10, common_rows=500)

    looked = bounded_in_words(store, search)
    assert looked.uses("SEARCH m USING INTEGER PRIMARY KEY") == (
        scope.agent_id == "kit"
    )  # of nobody's rows none is looked up


def bounded_in_words(conn, act):
    """Words cost what they find: the plans are held, the steps are those of the rows."""
    with looking(conn) as looked:
        act(Transaction(conn, NOW))
    assert all(
        ALLOWED.match(line) or re.match(r"SCAN (memories|episodes) USING COVERING INDEX", line) for line in looked.lines
    ), looked.plans
    return looked


@pytest.mark.parametrize("project", ["", "a", "unknown"])
@pytest.mark.parametrize("channel", ["", "x"])
def test_the_dedup_probe_reads_one_row_with_an_id_and_without(store, project, channel):
    for msg_id in ("id77", ""):
        for n, key in ((77, (77).to_bytes(16, "big")), (0, b"\xff" * 16)):
            probe = bounded(store, lambda tx: memories.find_duplicate(tx.conn, "kit", project, channel, msg_id, key))
            assert (
                probe.uses("INDEX memories_content (agent_id=? AND content_key=? AND project_id=? AND channel=?)")
                and probe.steps <= 800
            ), n
            assert probe.uses("INDEX memories_msg_id") == bool(msg_id)


def test_notes_that_are_missing_are_one_step_each(store):
    ids = ["id77", "never", "id78"]
    looked = bounded(store, lambda tx: note_ids.find(tx.conn, "kit", "a", ids))
    assert looked.uses("memories_msg_id (agent_id=? AND msg_id=? AND project_id=?)") and looked.steps <= 1_000


def test_notes_under_a_beginning_of_ids_are_read_from_the_index_alone(store):
    looked = bounded(store, lambda tx: note_ids.under(tx.conn, "kit", "a", "id7777", "", 100))
    assert looked.uses("memories_msg_id (agent_id=? AND msg_id>? AND msg_id<?)") and looked.steps <= 2_000


def test_an_id_that_many_projects_have_is_still_one_step(store):
    looked = bounded(store, lambda tx: memories.find_msg_id_in_project(tx.conn, "kit", "a", "id77"))
    assert any("memories_msg_id (agent_id=? AND msg_id=? AND project_id=?)" in line for line in looked.lines)
    looked = bounded(store, lambda tx: memories.find_in_bucket(tx.conn, "kit", "a", "x", b"\0" * 16))
    assert any(
        "memories_content (agent_id=? AND content_key=? AND project_id=? AND channel=?)" in line
        for line in looked.lines
    )


def test_writing_a_row_with_its_vector_and_postings_costs_the_row_alone(store):
    def write(tx):
        row = memories.insert(tx, NewMemory("kit", "a fresh text", msg_id="fresh"))
        backlog.enqueue(tx, MEMORY, row)
        backlog.attach_vector(tx, MEMORY, row, Embedded(np.ones(4, "<f4") / 2, "m"))
        memories.replace_content(tx, row, "another text")
        memories.set_locked(tx, row, True)
        memories.bump_recalls(tx, [row, 5, 6])
        memories.delete(tx, row)

    bounded(store, write)


@pytest.mark.parametrize("everyone", [False, True])
def test_what_a_look_at_an_instant_cannot_know_is_counted_along_indexes(store, everyone):
    def look(tx):
        for row in range(1, 400):
            memories.replace_content(tx, row, f"changed {row}")
            memories.delete(tx, ROWS - row)
        with looking(tx.conn) as looked:
            for axes in ({}, {"project_id": "a"}, {"channel": "x"}, {"source_id": "user:7"}):
                found = history.unknown(
                    tx.conn, Scope("kit", as_of="2025-12-31 00:00:00", **axes), (MEMORY, EPISODE), everyone=everyone
                )
                assert found.changed and found.deleted
        assert looked.uses("memories USING INDEX memories_changed") and looked.steps <= STEPS
        assert everyone or looked.uses("deletions USING INDEX deletions_agent (agent_id=? AND deleted_at>?)")

    store.execute("BEGIN")
    try:
        look(Transaction(store, NOW * 1.1))
    finally:
        store.execute("ROLLBACK")


def test_what_rows_were_is_read_along_indexes_and_what_has_changed_costs_a_look_a_row(store):
    """Contract: time.asof, past.kept."""
    scope = Scope("kit", as_of="2025-12-31 00:00:00")

    def look(tx):
        for row in range(1, 400):
            memories.replace_content(tx, row, f"changed {row}")
            memories.delete(tx, ROWS - row)
        with looking(tx.conn) as looked:
            assert len(as_then.were(tx.conn, scope)) == 798
        assert looked.uses("past USING INDEX past_") and looked.steps <= 2 * STEPS
        lexical.search(tx.conn, MEMORY, parse_query("word399"), Scope("kit"), 100)  # the statistics are read anew
        with looking(tx.conn) as looked:
            assert len(as_then.changed(tx.conn, [(MEMORY, row) for row in range(1, 1_000)], scope.as_of)) == 399
            assert len(lexical.search(tx.conn, MEMORY, parse_query("word399"), scope, 100)) == 29
            assert len(memories.recent(tx.conn, scope, 100)) == 100
        assert looked.uses("past_row (kind=? AND row_id=?)") and looked.steps <= STEPS

    store.execute("BEGIN")
    try:
        look(Transaction(store, NOW * 1.1, history_days=30.0))
    finally:
        store.execute("ROLLBACK")


def test_deleting_an_episode_touches_its_own_rows(store):
    bounded(store, lambda tx: episodes.delete(tx, 100))


@pytest.mark.parametrize("agent", ["", "kit", "nobody"])
@pytest.mark.parametrize("project", [None, "", "a"])
def test_a_list_reads_as_many_rows_as_it_shows(store, agent, project):
    looked = bounded(store, lambda tx: memories.newest(tx.conn, agent, project, 500))
    assert looked.uses("INDEX memories_recent" if agent else "INDEX memories_created") and not looked.sorts
    looked = bounded(
        store,
        lambda tx: memories.newest(
            tx.conn, agent, project, 500, since="2025-05-01 00:00:00", until="2025-05-03 00:00:00"
        ),
    )
    assert looked.uses("INDEX memories_recent" if agent else "INDEX memories_created") and not looked.sorts


@pytest.mark.parametrize("agent", ["", "kit"])
@pytest.mark.parametrize("narrowing", [{"batch": "some"}, {"id_prefix": "k"}, {"locked": True}, {"source_id": "u:"}])
def test_a_narrowed_list_is_walked_newest_first_and_reads_ids_from_their_own_index(store, agent, narrowing):
    """Contract: lists.narrowed."""
    conditions = narrowing_of.conditions(narrowing_of.Narrowing(**narrowing), agent)
    with looking(store) as looked:
        memories.newest(store, agent, None, 500, narrowed=conditions)
    assert looked.uses("INDEX memories_recent" if agent else "INDEX memories_created") and not looked.sorts
    assert "batch" not in narrowing or looked.uses("COVERING INDEX batches_name (batch=? AND kind=?)")
    assert "id_prefix" not in narrowing or looked.uses("COVERING INDEX memories_msg_id")


@pytest.mark.parametrize("kind", [MEMORY, EPISODE])
def test_texts_are_handed_out_by_the_page_along_the_index_of_their_order(store, kind):
    """Contract: grep.written."""
    with looking(store) as looked:
        first = scanning.page(store, kind, Scope("kit"), "no such text", None)
        assert kind == EPISODE or first.next is not None
        after = first.next or scanning.Place("9999-01-01 00:00:00", 1)
        second = scanning.page(store, kind, Scope("kit"), "", after)
    assert not first.rows and second.rows and not looked.sorts
    assert looked.uses(f"SEARCH m USING INDEX {kind.table}_recent (agent_id=? AND created_at<?)")
    assert looked.uses("CO-ROUTINE") and not looked.uses("MATERIALIZE")


def test_keys_of_the_caller_are_found_one_by_one(store):
    """Contract: rows.keyed."""
    looked = bounded(store, lambda tx: own_ids.holders(tx.conn, Scope("kit"), ["k1", "k2"]))
    assert looked.uses("m USING COVERING INDEX memories_msg_id (agent_id=? AND msg_id=?)")


def test_rows_named_by_their_ids_are_found_by_their_ids(store):
    ids = list(range(5, 100))

    def read(tx):
        for scope in SCOPES.values():
            memories.by_ids(tx.conn, ids, scope)
            episodes.by_ids(tx.conn, ids, scope)
        memories.find(tx.conn, 7)
        rids = [(kind, i) for kind in (MEMORY, EPISODE) for i in ids]
        candidates.facts(tx.conn, rids)
        candidates.texts(tx.conn, rids)
        profiles.get(tx.conn, "kit")

    bounded(store, read)


def test_the_backlog_gives_its_newest_rows_without_looking_at_the_others(store):
    looked = bounded(store, lambda tx: backlog.next_batch(tx.conn, 32))
    assert not looked.sorts
    bounded(store, lambda tx: backlog.next_batch(tx.conn, 32, frozenset((MEMORY, i) for i in range(40))))
    with looking(store) as looked:
        backlog.count(store, 256)
    assert looked.steps <= 2_000


def test_a_kept_answer_is_one_step_and_old_ones_are_found_by_their_age(store):
    assert bounded(store, lambda tx: idempotency.known(tx.conn, Key("key5", b""))).steps <= 200
    assert bounded(store, lambda tx: idempotency.answers(tx.conn, ["key5", "key8999", "new"])).steps <= 400


def test_an_import_probes_the_unique_indexes(store):
    new = NewMemory("kit", "text", "a", "x", "id77")
    looked = bounded(store, lambda tx: transfer.find_memory(tx.conn, new))
    assert looked.uses("memories_msg_id (agent_id=? AND msg_id=? AND project_id=?)")


def test_a_calibration_finds_neighbours_in_time_by_the_index(store):
    def neighbours(tx):
        sample = measuring.embedded(tx.conn, list(range(1, 200)))
        measuring.next_in_time(tx.conn, sample, 1800)

    with looking(store) as looked:
        neighbours(Transaction(store, NOW))
    assert looked.uses("memories_instant (agent_id=? AND instant>? AND instant<?)") and all(
        ALLOWED.match(line) for line in looked.lines
    ), looked.plans


def test_the_axes_of_an_agent_are_read_from_its_newest_rows(store):
    with looking(store) as looked:
        assert axes.agents(store) == ["kit"] and axes.below(store, "kit") == {
            "projects": ["a", "b"],
            "channels": ["x", "y", "z"],
        }
    assert looked.uses("memories USING INDEX memories_recent (agent_id=?)") and looked.uses(
        "episodes USING INDEX episodes_recent (agent_id=?)"
    )
    assert not any(re.match("SCAN (memories|episodes)", line) for line in looked.lines), looked.plans
    assert looked.steps <= 3 * STEPS


def test_agents_are_found_by_one_step_each(store):
    with looking(store) as looked:
        assert measuring.agents(store) == ["kit"]
    assert looked.steps <= 500


def test_json_lists_are_walked_from_the_outside(store):
    with looking(store) as looked:
        store.execute(
            "SELECT m.id FROM json_each(?) j CROSS JOIN memories m ON m.id = j.value", (json.dumps([1, 2]),)
        ).fetchall()
    assert looked.lines == ["SCAN j VIRTUAL TABLE INDEX 1:", "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)"]
