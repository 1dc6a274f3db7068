"""A store whose words an earlier version indexed: every row is found before, while and after its words are written
anew.

Contract: lexical.index.
"""

from __future__ import annotations

import asyncio

import apsw
import pytest

from cpersona_daemon.life.lifecycle import close_context, open_context
from cpersona_daemon.memory.respelling import write_words_anew
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.cuts import content_key
from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage import episodes, existence, former, health, lexical, memories, postings, schema
from cpersona_daemon.storage.memories import NewMemory
from cpersona_daemon.storage.transaction import Transaction
from cpersona_daemon.text.terms import parse_query

FIRST_RELEASED = 4
TEXTS = [
    "Андрей чинит принтер",
    "the kettle boils",
    "kettles everywhere",
    "see CVE-2024-3094",
    "東 東京 京 の駅",
    "naïve café",
] + [f"note number {n}" for n in range(20)]
KIT = Scope("kit")


@pytest.fixture
def path(tmp_path):
    """A database of the first released schema whose rows are indexed as they were then."""
    path = str(tmp_path / "t.db")
    conn = apsw.Connection(path)
    conn.execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL")
    conn.execute(
        "CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL)"
    )
    for version, name, script in schema.MIGRATIONS[:FIRST_RELEASED]:
        conn.execute(script)
        conn.execute("INSERT INTO schema_migrations VALUES (?, ?, '2026-01-05 00:00:00')", (version, name))
    conn.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    for agent in ("kit", "other"):
        for text in TEXTS:
            conn.execute(
                (
                    "INSERT INTO memories (agent_id, created_at, content_key, content)"
                    " VALUES (?, '2026-01-05 00:00:00', ?, ?)"
                ),
                (agent, content_key(text), text),
            )
            conn.execute("INSERT INTO memory_fts (rowid, body) VALUES (last_insert_rowid(), ?)", (text,))
    conn.execute(
        "INSERT INTO episodes (agent_id, created_at, summary, keywords)"
        " VALUES ('kit', '2026-01-05 00:00:00', 'Андрей в отпуске', 'kettle')"
    )
    conn.execute("INSERT INTO episode_fts (rowid, summary, keywords) VALUES (1, 'Андрей в отпуске', 'kettle')")
    conn.close()
    return path


@pytest.fixture
def conn(path):
    conn = apsw.Connection(path)
    conn.execute("PRAGMA synchronous = OFF")
    schema.migrate(conn, 0.0)
    yield conn
    conn.close()


def ids(conn, text, kind=MEMORY, scope=KIT, depth=10):
    return [row_id for row_id, _ in lexical.search(conn, kind, parse_query(text), scope, depth)]


def finds_all(conn):
    assert (
        ids(conn, "Андрей") == [1]
        and sorted(ids(conn, "kettle")) == [2, 3]
        and ids(conn, "CVE-2024-3094")[:1] == [4]
        and ids(conn, "東京")[:1] == [5]
    )
    assert ids(conn, "naïve") == [6] and ids(conn, "Андрей", EPISODE) == ids(conn, "kettle", EPISODE) == [1]
    assert ids(conn, "kettle", scope=Scope("nobody")) == [] and len(ids(conn, "note number", depth=50)) == 20
    (term,) = parse_query("чинит").terms
    assert existence.holds(conn, term, KIT) and not existence.holds(conn, term, Scope("nobody"))
    assert existence.holder(conn, "the kettle boils", parse_query("the kettle boils"), KIT) == ((MEMORY, 2), True)


def test_rows_are_found_before_while_and_after_their_words_are_written_anew(conn):
    finds_all(conn)
    while True:
        left = former.write_anew(conn, 3)
        finds_all(conn)
        if not left:
            break
    assert not former.present(conn) and ids(conn, "андреи") == [1]
    assert not [name for (name,) in conn.execute("SELECT name FROM sqlite_schema") if "former" in name]
    assert health.rows_without_postings(conn, MEMORY) == health.rows_without_postings(conn, EPISODE) == []


def test_the_newest_rows_come_first_and_a_row_counts_by_its_new_words(conn):
    former.write_anew(conn, 5)
    assert conn.execute("SELECT min(id), count(*) FROM memory_fts_docsize").fetchall() == [(2 * len(TEXTS) - 4, 5)]
    postings.put_memory(conn, 2, "a teapot")
    assert ids(conn, "kettle") == [3] and ids(conn, "teapot") == [2]


def test_rows_written_changed_and_deleted_meanwhile_are_what_they_are(conn):
    tx = Transaction(conn, 0.0)
    conn.execute("BEGIN")
    added = memories.insert(tx, NewMemory("kit", "a fresh kettle"))
    memories.replace_content(tx, 2, "a teapot")
    memories.delete(tx, 3)
    episodes.delete(tx, 1)
    conn.execute("COMMIT")
    for _ in range(30):
        assert ids(conn, "kettle") == [added] and ids(conn, "teapot") == [2] and ids(conn, "kettle", EPISODE) == []
        former.write_anew(conn, 4)
    assert not former.present(conn)


def test_rows_that_wait_are_no_damage(conn):
    assert health.rows_without_postings(conn, MEMORY) == [] and health.postings_without_row(conn, MEMORY) == []
    conn.execute("DELETE FROM memory_fts_former WHERE rowid = 7")
    assert health.rows_without_postings(conn, MEMORY) == [7]


def test_a_new_store_keeps_no_former_index(tmp_path):
    conn = apsw.Connection(str(tmp_path / "new.db"))
    schema.migrate(conn, 0.0)
    assert (
        not former.present(conn)
        and not conn.execute("SELECT 1 FROM sqlite_schema WHERE name LIKE '%former%'").fetchall()
    )
    conn.close()


def test_a_daemon_writes_the_words_anew_beside_its_other_work(path, tmp_path):
    async def life():
        settings = load({"HOME": str(tmp_path)}, {"db_path": path, "embedding_mode": "none"})
        ctx = await open_context(settings, places(settings, {"HOME": str(tmp_path)}), SystemClock())
        try:
            await write_words_anew(ctx)
            return await ctx.db.read(former.present), await ctx.db.read(ids, "андреи")
        finally:
            await close_context(ctx)

    assert asyncio.run(life()) == (False, [1])
