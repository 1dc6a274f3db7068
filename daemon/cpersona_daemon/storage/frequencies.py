"""In how many rows a word stands, at a cost that does not grow with the table, and kept while nothing it tells changes.

What was counted up to some row stays true while rows are only added: a later look counts the rows after it. Whoever
takes postings away or puts others in their place says so (``rewritten``), and everything is counted anew.

Contract: contracts.md §3 "Bounded cost".
"""

from __future__ import annotations

import math
import threading
import weakref
from dataclasses import dataclass, field

import apsw

from ..vectors.changes import EPISODE, MEMORY
from .scope import Scope

TABLES = {MEMORY: ("memory_fts", "memory_terms", "memories"), EPISODE: ("episode_fts", "episode_terms", "episodes")}
PRUNED_FROM = 1_000  # from this size of the table on, looking at words one by one costs less than ranking all rows of all of them
_BM25_LIMIT = 2.2 * (1 + 1e-9)  # FTS5's k1 + 1, and room for the last bits
_EDGES = 8  # a common word is looked at anew when another eighth of ``limit`` rows was added
_KEPT = 20_000
_ADDED_AT_MOST = 50_000  # so many new rows are counted one by one; after more, everything is counted anew


def rewritten(conn: apsw.Connection, kind: str) -> None:
    """Note that postings of rows that had some change or go: what was counted before is no longer true."""
    conn.execute("INSERT INTO meta VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET value = value + 1", (f"rewritten_{kind}",))


@dataclass(frozen=True, slots=True)
class Common:
    """A word in more than ``limit`` rows: about how many, and the rowid that its newest ``limit`` rows begin at."""

    rows: int
    lowest: int


@dataclass(frozen=True, slots=True)
class Bounded:
    """An expression, the most that it lends a row's score (as a positive number), and how many rows it has (an estimate beyond the limit)."""

    expression: str
    most: float
    rows: int


@dataclass(slots=True)
class _Table:
    """What is known of one table: how far it went when last looked at, and each count with the highest rowid it holds for."""

    rewrites: int
    rows: int
    highest: int
    values: dict[tuple, tuple[int, object]] = field(default_factory=dict)


class Known:
    """What all connections to one database have counted. Any thread may use it."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}
        self._lock = threading.Lock()

    def table(self, conn: apsw.Connection, kind: str, rewrites: int, rows: int, highest: int) -> _Table:
        """Return what is known of a table that a snapshot shows so far: all of it, where rows were only added since."""
        with self._lock:
            have = self._tables.get(kind)
            if have is not None and (rewrites < have.rewrites or rewrites == have.rewrites and highest < have.highest):
                return _Table(rewrites, rows, highest)  # an older snapshot; what it counts is of no use to the next ones
            if have is None or have.rewrites != rewrites or not self._only_added(conn, kind, have, rows, highest) or len(have.values) > _KEPT:
                have = self._tables[kind] = _Table(rewrites, rows, highest)
            have.rows, have.highest = rows, highest
            return have

    @staticmethod
    def _only_added(conn: apsw.Connection, kind: str, have: _Table, rows: int, highest: int) -> bool:
        if highest == have.highest:
            return rows == have.rows
        if highest - have.highest > _ADDED_AT_MOST:
            return False
        ((added,),) = conn.execute(f"SELECT count(*) FROM {TABLES[kind][2]} WHERE id > ?", (have.highest,)).fetchall()
        return added == rows - have.rows


_known: weakref.WeakKeyDictionary[apsw.Connection, Known] = weakref.WeakKeyDictionary()


def share(conn: apsw.Connection, known: Known) -> None:
    """Let a connection use what other connections to the same database have counted."""
    _known[conn] = known


class Frequencies:
    """In how many rows of one kind an expression is found, as one snapshot shows them.

    Up to ``limit`` rows the count is exact. Beyond, it is estimated from the stretch of rowids that the newest
    ``limit`` rows of the expression take. Same database, same numbers, whatever was counted before.
    """

    def __init__(self, conn: apsw.Connection, kind: str, limit: int):
        self._conn, self.kind, self.limit = conn, kind, limit
        self._fts, self._vocabulary, table = TABLES[kind]
        ((totals, highest, rewrites),) = conn.execute(
            f"SELECT (SELECT block FROM {self._fts}_data WHERE id = 1), (SELECT max(id) FROM {table}), (SELECT value FROM meta WHERE key = ?)",
            (f"rewritten_{kind}",),
        ).fetchall()
        self.rows, self._highest = _first_number(totals), highest or 0
        known = _known.get(conn)
        if known is None:
            known = _known[conn] = Known()
        self._values = known.table(conn, kind, rewrites or 0, self.rows, self._highest).values
        self._edge = self._highest - self._highest % max(1, limit // _EDGES)

    @property
    def matter(self) -> bool:
        """False while the table is so small that nothing need be counted."""
        return self.rows > min(self.limit, PRUNED_FROM)

    def of(self, expression: str) -> int:
        """Return the number of rows."""
        count = self._count(expression)
        return count if count <= self.limit else self.common(expression).rows

    def _count(self, expression: str) -> int:
        """Return the number of rows, anything above the limit for more than that many."""
        place = (self.limit, "count", expression)
        at, known = self._values.get(place, (-1, 0))
        if at == self._highest or 0 <= at < self._highest and known > self.limit:
            return known
        if at > self._highest:
            at, known = -1, 0
        ((more,),) = self._conn.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {self._fts} WHERE {self._fts} MATCH ? AND rowid > ? LIMIT ?)", (expression, at, self.limit + 1 - known)
        ).fetchall()
        return self._keep(place, self._highest, known + more)

    def bounded(self, expression: str) -> Bounded:
        """Return what a word lends a row's bm25 at most: its weight times the limit of what repetition gives."""
        found = self.of(expression)
        least = min(found, self.limit + 1)  # beyond the limit the count is an estimate
        return Bounded(expression, self._most(least), found)

    def unbounded(self, expression: str, rows: int) -> Bounded:
        """Return the same of what is not worth counting (a phrase, a prefix): it has at most ``rows`` rows, and may be as rare as can be."""
        return Bounded(expression, self._most(0), rows)

    def _most(self, rows: int) -> float:
        return _BM25_LIMIT * max(math.log((max(0, self.rows - rows) + 0.5) / (rows + 0.5)), 1e-6)

    def common(self, expression: str) -> Common:
        """Return where the newest rows of a word found in more than ``limit`` begin, of those up to a round number below the newest row."""
        place = (self.limit, "common", expression)
        at, known = self._values.get(place, (-1, None))
        return known if at == self._edge else self._keep(place, self._edge, self._stretch(expression))

    def _stretch(self, expression: str) -> Common:
        ((lowest,),) = self._conn.execute(
            f"SELECT min(id) FROM (SELECT rowid AS id FROM {self._fts} WHERE {self._fts} MATCH ? AND rowid <= ? ORDER BY rowid DESC LIMIT ?)",
            (expression, self._edge, self.limit),
        ).fetchall()
        lowest = lowest or 0
        return Common(max(self.limit + 1, self.limit * self._edge // max(1, self._edge - lowest + 1)), lowest)

    def of_prefix(self, prefix: str) -> int:
        """Return the number of postings of the terms that start with ``prefix``; FTS5 merges all of them before its first row."""
        place = (self.limit, "prefix", prefix)
        at, known = self._values.get(place, (-1, 0))
        if at == self._highest:
            return known
        ((postings,),) = self._conn.execute(
            f"SELECT coalesce(sum(doc), 0) FROM (SELECT doc FROM {self._vocabulary} WHERE term >= ? AND term < ? LIMIT ?)",
            (prefix, prefix + "\U0010ffff", self.limit + 1),
        ).fetchall()
        return self._keep(place, self._highest, postings)

    def is_narrow(self, scope: Scope) -> bool:
        """Tell whether few of the best rows of the table were found to be in scope a while ago."""
        return self._values.get(("narrow", scope), (-1, None))[0] == self._edge

    def note_narrow(self, scope: Scope) -> None:
        self._keep(("narrow", scope), self._edge, True)

    def _keep(self, place: tuple, at: int, value):
        # Another thread with a newer snapshot may have been faster; what it knows is worth more.
        if self._values.get(place, (-1, None))[0] <= at:
            self._values[place] = at, value
        return value


def _first_number(block: bytes | None) -> int:
    """Return the first number of FTS5's record of totals, which is the number of rows: big-endian, seven bits a byte."""
    number = 0
    for byte in block or b"":
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return number
