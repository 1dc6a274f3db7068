"""A store of an earlier version gets the words inside its camel case, a few rows at a time. Contract: lexical.index."""

from __future__ import annotations

import apsw
import pytest

from cpersona_daemon.model.cuts import content_key
from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage import camel_case, lexical, schema
from cpersona_daemon.storage.frequencies import owner
from cpersona_daemon.text.terms import parse_query

BEFORE = 11
KIT = Scope("kit")


@pytest.fixture
def conn(tmp_path):
    """A database as the version before wrote it: the words inside camel case are not in its index."""
    conn = apsw.Connection(str(tmp_path / "t.db"))
    conn.execute("PRAGMA synchronous = OFF")
    schema.migrate(conn, 0.0, until=BEFORE)
    for n in range(9):
        text = f"row {n}" if n % 2 else f"row {n} calls fetchLedgerTotals"
        conn.execute(
            "INSERT INTO memories (agent_id, created_at, content_key, content)"
            " VALUES ('kit', '2026-01-05 00:00:00', ?, ?)",
            (content_key(text), text),
        )
        conn.execute(
            "INSERT INTO memory_fts (rowid, body, owner) VALUES (last_insert_rowid(), ?, ?)", (text, owner("kit"))
        )
    conn.execute(
        "INSERT INTO episodes (agent_id, created_at, summary, keywords)"
        " VALUES ('kit', '2026-01-05 00:00:00', 'the day of LedgerTotals', '')"
    )
    conn.execute(
        "INSERT INTO episode_fts (rowid, summary, keywords, owner) VALUES (1, 'the day of LedgerTotals', '', ?)",
        (owner("kit"),),
    )
    schema.migrate(conn, 0.0)
    yield conn
    conn.close()


def ids(conn, kind=MEMORY):
    return sorted(i for i, _ in lexical.search(conn, kind, parse_query("ledger totals"), KIT, 20))


def test_every_row_gets_its_turn_the_newest_first(conn):
    assert camel_case.present(conn) and ids(conn) == ids(conn, EPISODE) == []
    assert camel_case.write(conn, 2) and ids(conn) == [7, 9]
    while camel_case.write(conn, 2):
        pass
    assert ids(conn) == [1, 3, 5, 7, 9] and ids(conn, EPISODE) == [1] and not camel_case.present(conn)


def test_rows_without_such_words_are_looked_at_in_large_steps(conn, monkeypatch):
    monkeypatch.setattr(camel_case, "LOOKED_AT", 3)
    steps = 1
    while camel_case.write(conn, 100):
        steps += 1
    assert ids(conn) == [1, 3, 5, 7, 9] and steps == 5  # three full ones and an empty one of memories, one of episodes


def test_a_new_store_has_nothing_to_look_at(tmp_path):
    conn = apsw.Connection(str(tmp_path / "new.db"))
    schema.migrate(conn, 0.0)
    assert not camel_case.present(conn)
    conn.close()
