"""Counts of words that outlive writes: they are what a fresh look would count, whoever wrote what in between.

Contract: lexical.cost, coverage.share.
"""

import random

import apsw
import pytest

from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage import frequencies, lexical, postings, schema
from cpersona_daemon.storage.frequencies import Frequencies, Known
from cpersona_daemon.text.terms import parse_query

WORDS = ["kettle", "hub", "axle", "spoke", "rim"]


class Table:
    """Memories with postings, written by one connection, looked at by two that share what they counted."""

    def __init__(self, path):
        self.writer = apsw.Connection(str(path))
        self.writer.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")
        schema.migrate(self.writer, 0.0)
        self.readers = [apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) for _ in range(2)]
        known = Known()
        for reader in self.readers:
            frequencies.share(reader, known)

    def add(self, text, row_id=None, agent="kit"):
        self.writer.execute(
            (
                "INSERT INTO memories (id, agent_id, created_at, content_key, content)"
                " VALUES (?, ?, '2026-01-01 00:00:00', randomblob(16), ?)"
            ),
            (row_id, agent, text),
        )
        row_id = self.writer.last_insert_rowid()
        postings.add_memories(self.writer, [(row_id, agent, text)])
        return row_id

    def change(self, row_id, text):
        self.writer.execute("UPDATE memories SET content = ? WHERE id = ?", (text, row_id))
        postings.put_memory(self.writer, row_id, text)

    def delete(self, row_id):
        postings.drop(self.writer, MEMORY, row_id)
        self.writer.execute("DELETE FROM memories WHERE id = ?", (row_id,))

    def counted(self, reader, limit, words=WORDS):
        found = Frequencies(reader, MEMORY, limit)
        return found.rows, [found.of(word) for word in words]

    def afresh(self, limit, words=WORDS):
        """What a connection counts that knows nothing."""
        conn = apsw.Connection(self.writer.db_filename("main"), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return self.counted(conn, limit, words)
        finally:
            conn.close()


@pytest.fixture
def table(tmp_path):
    table = Table(tmp_path / "words.db")
    yield table
    for conn in (*table.readers, table.writer):
        conn.close()


def test_counts_are_those_of_a_fresh_look_after_any_writes(table):
    pick = random.Random(11)
    ids = [table.add("kettle hub")]
    for _ in range(400):
        text = " ".join(pick.choices(WORDS, weights=(9, 5, 3, 2, 1), k=pick.randrange(1, 4)))
        write = pick.random()
        if write < 0.7 or not ids:
            ids.append(table.add(text))
        elif write < 0.8:
            table.change(pick.choice(ids), text)
        elif write < 0.9:
            table.delete(ids.pop(pick.randrange(len(ids))))
        for reader in pick.sample(table.readers, pick.randrange(3)):
            for limit in (20_000, 40):
                assert table.counted(reader, limit) == table.afresh(limit)


def test_a_row_below_the_newest_is_counted_too(table):
    for row_id in (1, 5, 9):
        table.add("kettle", row_id)
    assert table.counted(table.readers[0], 100, ["kettle"]) == (3, [3])
    table.add("kettle", 3)
    assert table.counted(table.readers[0], 100, ["kettle"]) == (4, [4])


def test_a_snapshot_counts_what_it_shows_while_others_are_ahead(table):
    early, late = table.readers
    table.add("kettle")
    early.execute("BEGIN")
    assert table.counted(early, 100, ["kettle"]) == (1, [1])
    table.add("kettle hub")
    assert table.counted(late, 100, ["kettle", "hub"]) == (2, [2, 1])
    assert table.counted(early, 100, ["kettle", "hub"]) == (1, [1, 0])
    table.delete(1)
    assert table.counted(late, 100, ["kettle", "hub"]) == (1, [1, 1])
    assert table.counted(early, 100, ["kettle", "hub"]) == (1, [1, 0])
    early.execute("ROLLBACK")
    assert table.counted(early, 100, ["kettle", "hub"]) == (1, [1, 1])


def test_an_emptied_index_is_counted_anew(table):
    for _ in range(3):
        table.add("kettle")
    assert table.counted(table.readers[0], 100, ["kettle"]) == (3, [3])
    table.writer.execute("INSERT INTO memory_fts (memory_fts) VALUES ('delete-all')")
    frequencies.rewritten(table.writer, MEMORY)
    assert table.counted(table.readers[0], 100, ["kettle"]) == (0, [0])


def test_words_known_to_be_common_are_not_walked_again_for_each_new_row(table):
    for _ in range(50):
        table.add("kettle")
    reader, asked = table.readers[0], []
    table.counted(reader, 40, ["kettle"])
    table.add("kettle")
    reader.exec_trace = lambda cursor, sql, bindings: asked.append(sql) or True
    table.counted(reader, 40, ["kettle"])
    assert not any("MATCH" in sql for sql in asked)


def test_a_scope_with_few_of_the_best_rows_gets_all_of_its_own(table):
    for _ in range(300):
        table.add("kettle")
    mine = [
        table.add(text, agent="mine")
        for text in ("kettle in a much longer note of mine", "kettle in the longest note of all of the notes of mine")
    ]
    for _ in range(2):
        assert [
            i for i, _ in lexical.search(table.readers[0], MEMORY, parse_query("kettle"), Scope("mine"), 10)
        ] == mine
        assert [
            i for i, _ in lexical.search(table.readers[1], MEMORY, parse_query("kettle"), Scope("kit"), 10)
        ] == list(range(1, 11))
