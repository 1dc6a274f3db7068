"""What the blend reads of rows: their texts and instants, their neighbours, and in how many rows a term stands.

Contract: blend.score, coverage.share.
"""

import apsw
import pytest

from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.storage import candidates, postings, schema, stemmer, word_counts
from cpersona_daemon.text.terms import parse_query


class Store:
    """A migrated database with the rows that a test writes; ids count from 1."""

    def __init__(self):
        self.conn = apsw.Connection(":memory:")
        schema.migrate(self.conn, 0.0)
        self.count = 0

    def add(self, text, minute=0.0, agent="kit", source="me", channel=""):
        self.count += 1
        self.conn.execute(
            (
                "INSERT INTO memories (id, agent_id, channel, source_id, created_at, instant, content_key, content)"
                " VALUES (?, ?, ?, ?, '2026-01-01 00:00:00', ?, ?, ?)"
            ),
            (
                self.count,
                agent,
                channel,
                source,
                None if minute is None else minute * 60,
                str(self.count).encode(),
                text,
            ),
        )
        postings.put_memory(self.conn, self.count, text)
        return self.count

    def episode(self, summary, keywords="", start=None):
        self.conn.execute(
            (
                "INSERT INTO episodes (id, agent_id, created_at, start_time, summary, keywords)"
                " VALUES (1, 'kit', '2026-01-01 00:00:00', ?, ?, ?)"
            ),
            (start, summary, keywords),
        )
        postings.put_episode(self.conn, 1, summary, keywords)

    def pairs(self, *ids, seconds=1800):
        return sorted(candidates.beside(self.conn, ids, seconds, Scope("kit")))

    def counted(self, question, kinds=(MEMORY,)):
        found = word_counts.counted(self.conn, "kit", kinds, parse_query(question).terms)
        return found.rows, found.terms


@pytest.fixture
def store():
    made = Store()
    yield made
    made.conn.close()


def test_a_reading_is_the_indexed_text_and_the_instant(store):
    store.add("a note", minute=2)
    store.episode("a summary", "and keywords", "1970-01-01T00:05:00Z")
    assert candidates.readings(store.conn, [(MEMORY, 1), (EPISODE, 1), (MEMORY, 9)]) == {
        (MEMORY, 1): ("a note", 120.0),
        (EPISODE, 1): ("a summary\nand keywords", 300.0),
    }


def test_neighbours_are_the_nearest_of_the_same_source_on_either_side(store):
    mine = [store.add("a", 0), store.add("x", 1, source="you"), store.add("b", 2), store.add("c", 3)]
    assert store.pairs(mine[2]) == [(3, 1), (3, 4)]
    assert store.pairs(mine[0], mine[3]) == [(1, 3), (4, 3)]


@pytest.mark.parametrize(
    "other", [{"agent": "b"}, {"source": "you"}, {"source": None}, {"channel": "c"}, {"minute": 31}, {"minute": None}]
)
def test_a_row_of_another_axis_or_far_in_time_is_no_neighbour(store, other):
    store.add("a", 0)
    store.add("b", **{"minute": 1, **other})
    assert store.pairs(1) == []


def test_memories_without_a_source_are_nobodys_neighbours(store):
    store.add("a", 0, source=None)
    store.add("b", 1, source=None)
    assert store.pairs(1, 2) == []


def test_neighbours_are_looked_for_among_a_few_ids_only(store):
    store.add("a", 0)
    for _ in range(8):
        store.add("between", 0, agent="b")
    store.add("z", 0)
    assert store.pairs(1) == []


def test_a_term_is_counted_in_whatever_form_it_stands(store):
    for text in ("commit 9d3fe55ab01c", "commits made", "9d3fe55 again", "nothing"):
        store.add(text)
    assert store.counted("commit 9d3fe55 kite") == (4, (2, 2, 0))


def test_episodes_count_beside_memories_where_they_are_seen(store):
    store.add("a kite")
    store.episode("the kite", "kites")
    assert store.counted("kite", (MEMORY, EPISODE)) == (2, (2,)) and store.counted("kite") == (1, (1,))


def test_stems_are_those_of_the_index_and_survive_another_connection(store):
    assert stemmer.stemmer(store.conn)("Running cafés E1103") == ("run", "cafe", "e1103")
    other = apsw.Connection(":memory:")
    assert stemmer.stemmer(other)("walked") == ("walk",)
    other.close()
