"""In how many rows a word stands, of a table and of one agent's, at a cost that does not grow with either, and kept
while nothing it tells changes.

What a table holds says what asking for a word costs; what it is worth to an agent hangs on the agent's own rows alone
(``Own``). Each row's postings name its agent as a word that no text is spelled with, so that both are one index.

What was counted up to some row stays true while rows are only added: a later look counts the rows after it. Whoever
takes postings away or puts others in their place says so (``rewritten``), and everything is counted anew.

Contract: lexical.cost, coverage.share.
"""

from __future__ import annotations

import hashlib
import math
import threading
import weakref
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import apsw

from ..model.kinds import Kind
from ..model.scope import Scope
from ..text.terms import OWNER, quoted

COMMON_ROWS = 20_000  # a term found in more rows finds none by itself beside a rarer one
PRUNED_FROM = (
    1_000  # from this size of the table on, looking at words one by one costs less than ranking all rows of all of them
)
_BM25_LIMIT = 2.2 * (1 + 1e-9)  # FTS5's k1 + 1, and room for the last bits
_EDGES = 8  # a common word is looked at anew when another eighth of ``limit`` rows was added
_KEPT = 20_000
NEWEST_ROWS = 20_000  # of an agent: what a word weighs is counted in these
_CELL = (
    2_500  # the window of the newest rows begins at an id that this divides, so that what was counted holds for a while
)
_FEW_ADDED = 200  # rows are looked at one by one sooner than the postings of an agent from their end
_AGENTS_KEPT = 4_096
_ADDED_AT_MOST = 50_000  # so many new rows are counted one by one; after more, everything is counted anew


def rewritten(conn: apsw.Connection, kind: Kind) -> None:
    """Note that postings of rows that had some change or go: what was counted before is no longer true."""
    conn.execute(
        "INSERT INTO meta VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET value = value + 1", (f"rewritten_{kind}",)
    )


@lru_cache(_AGENTS_KEPT)
def owner(agent_id: str) -> str:
    """Return the word that the postings of an agent's rows hold: digits, which no stemmer changes."""
    digest = hashlib.blake2b(agent_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return OWNER + str(int.from_bytes(digest, "big"))


@dataclass(frozen=True, slots=True)
class Bounded:
    """An expression, the most that it lends a row's score (as a positive number), and how many rows it has (an estimate
    beyond the limit).
    """

    expression: str
    most: float
    rows: int


@dataclass(slots=True)
class _Table:
    """What is known of one table: how far it went when last looked at, and each count with the highest rowid it holds
    for.
    """

    rewrites: int
    rows: int
    highest: int
    values: dict[tuple[Any, ...], tuple[int, Any]] = field(default_factory=dict)


class Known:
    """What all connections to one database have counted. Any thread may use it."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}
        self._lock = threading.Lock()

    def table(self, conn: apsw.Connection, kind: Kind, rewrites: int, rows: int, highest: int) -> _Table:
        """Return what is known of a table that a snapshot shows so far: all of it, where rows were only added since."""
        with self._lock:
            have = self._tables.get(kind)
            if have is not None and (rewrites < have.rewrites or rewrites == have.rewrites and highest < have.highest):
                return _Table(
                    rewrites, rows, highest
                )  # an older snapshot; what it counts is of no use to the next ones
            if (
                have is None
                or have.rewrites != rewrites
                or not self._only_added(conn, kind, have, rows, highest)
                or len(have.values) > _KEPT
            ):
                have = self._tables[kind] = _Table(rewrites, rows, highest)
            have.rows, have.highest = rows, highest
            return have

    @staticmethod
    def _only_added(conn: apsw.Connection, kind: Kind, have: _Table, rows: int, highest: int) -> bool:
        if highest == have.highest:
            return rows == have.rows
        if highest - have.highest > _ADDED_AT_MOST:
            return False
        ((added,),) = conn.execute(f"SELECT count(*) FROM {kind.table} WHERE id > ?", (have.highest,)).fetchall()
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

    def __init__(self, conn: apsw.Connection, kind: Kind, limit: int) -> None:
        self.conn, self.kind, self.limit = conn, kind, limit
        self.fts = kind.fts
        totals: Any
        highest: Any
        rewrites: Any
        ((totals, highest, rewrites),) = conn.execute(
            f"SELECT (SELECT block FROM {self.fts}_data WHERE id = 1), (SELECT max(id) FROM {kind.table}),"
            " (SELECT value FROM meta WHERE key = ?)",
            (f"rewritten_{kind}",),
        ).fetchall()
        self.rows, self._highest = _first_number(totals), highest or 0
        known = _known.get(conn)
        if known is None:
            known = _known[conn] = Known()
        self._values = known.table(conn, kind, rewrites or 0, self.rows, self._highest).values
        self._edge = self._highest - self._highest % max(1, limit // _EDGES)

    @property
    def values(self) -> dict[tuple[Any, ...], tuple[int, Any]]:
        """What is known of the table: for each place the highest rowid that it holds for, and the value."""
        return self._values

    @property
    def highest(self) -> int:
        return self._highest

    @property
    def matter(self) -> bool:
        """False while the table is so small that nothing need be counted."""
        return self.rows > min(self.limit, PRUNED_FROM)

    def of(self, expression: str) -> int:
        """Return the number of rows."""
        count = self._count(expression)
        return count if count <= self.limit else self._estimate(expression)

    def _count(self, expression: str) -> int:
        """Return the number of rows, anything above the limit for more than that many."""
        place = (self.limit, "count", expression)
        at, known = self._values.get(place, (-1, 0))
        if at == self._highest or 0 <= at < self._highest and known > self.limit:
            return known
        if at > self._highest:
            at, known = -1, 0
        more: Any
        ((more,),) = self.conn.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {self.fts} WHERE {self.fts} MATCH ? AND rowid > ? LIMIT ?)",
            (expression, at, self.limit + 1 - known),
        ).fetchall()
        return keep(self._values, place, self._highest, known + more)

    def bounded(self, expression: str) -> Bounded:
        """Return what a word lends a row's bm25 at most: its weight times the limit of what repetition gives."""
        found = self.of(expression)
        least = min(found, self.limit + 1)  # beyond the limit the count is an estimate
        return Bounded(expression, self._most(least), found)

    def unbounded(self, expression: str, rows: int) -> Bounded:
        """Return the same of what is not worth counting (a phrase, a prefix): it has at most ``rows`` rows, and may be
        as rare as can be.
        """
        return Bounded(expression, self._most(0), rows)

    def _most(self, rows: int) -> float:
        return _BM25_LIMIT * max(math.log((max(0, self.rows - rows) + 0.5) / (rows + 0.5)), 1e-6)

    def _estimate(self, expression: str) -> int:
        """Return about how many rows a word has that more than ``limit`` have, by how far its newest ones up to a round
        number reach.
        """
        place = (self.limit, "estimate", expression)
        at, known = self._values.get(place, (-1, 0))
        if at == self._edge:
            return known
        lowest: Any
        ((lowest,),) = self.conn.execute(
            f"SELECT min(id) FROM (SELECT rowid AS id FROM {self.fts} WHERE {self.fts} MATCH ? AND rowid <= ?"
            " ORDER BY rowid DESC LIMIT ?)",
            (expression, self._edge, self.limit),
        ).fetchall()
        return keep(
            self._values,
            place,
            self._edge,
            max(self.limit + 1, self.limit * self._edge // max(1, self._edge - (lowest or 0) + 1)),
        )

    def of_prefix(self, prefix: str) -> int:
        """Return the number of postings of the terms that start with ``prefix``; FTS5 merges all of them before its
        first row.
        """
        place = (self.limit, "prefix", prefix)
        at, known = self._values.get(place, (-1, 0))
        if at == self._highest:
            return known
        ((postings,),) = self.conn.execute(
            "SELECT coalesce(sum(doc), 0)"
            f" FROM (SELECT doc FROM {self.kind.terms} WHERE term >= ? AND term < ? LIMIT ?)",
            (prefix, prefix + "\U0010ffff", self.limit + 1),
        ).fetchall()
        return keep(self._values, place, self._highest, postings)


class Own:
    """In how many of one agent's rows an expression is found, as one snapshot shows them; what other agents store moves
    none of it.

    ``rows`` are the agent's newest, at least NEWEST_ROWS of them and somewhat more, or all (``all``).
    """

    def __init__(self, table: Frequencies, agent_id: str) -> None:
        self._table, self._agent = table, agent_id
        self.owner = quoted(owner(agent_id))
        self._highest = self._newest()
        self._lowest, self.rows, self.all = self._window()
        self._edge = self._highest - self._highest % max(1, table.limit // _EDGES)

    def _newest(self) -> int:
        """Return the agent's highest rowid, 0 without rows."""
        place = ("highest", self._agent)
        at, known = self._table.values.get(place, (-1, 0))
        if at == self._table.highest:
            return known
        if 0 <= at < self._table.highest <= at + _FEW_ADDED:
            ((newest,),) = self._table.conn.execute(
                f"SELECT max(id) FROM {self._table.kind.table} WHERE id > ? AND +agent_id = ?", (at, self._agent)
            ).fetchall()
            return keep(self._table.values, place, self._table.highest, newest or known)
        fts = self._table.fts
        newest = self._table.conn.execute(
            f"SELECT rowid FROM {fts} WHERE {fts} MATCH ? ORDER BY rowid DESC LIMIT 1", (self.owner,)
        ).fetchall()
        return keep(self._table.values, place, self._table.highest, newest[0][0] if newest else 0)

    def _window(self) -> tuple[int, int, bool]:
        """Return where the newest rows begin, how many they are, and whether they are all."""
        place = ("newest", self._agent)
        at, known = self._table.values.get(place, (-1, None))
        if at == self._highest:
            lowest, rows, first_cell = known
        elif (
            0 <= at < self._highest
            and known[1] + (more := self._between(at + 1, self._highest)) - known[2] < NEWEST_ROWS
        ):
            lowest, rows, first_cell = keep(
                self._table.values, place, self._highest, (known[0], known[1] + more, known[2])
            )
        else:
            lowest, rows, first_cell = keep(self._table.values, place, self._highest, self._afresh())
        return lowest, rows, rows < NEWEST_ROWS

    def _afresh(self) -> tuple[int, int, int]:
        """Return (lowest, rows from there on, how many of those lie in the first cell)."""
        fts = self._table.fts
        count: Any
        oldest: Any
        ((count, oldest),) = self._table.conn.execute(
            "SELECT count(*), min(id)"
            f" FROM (SELECT rowid AS id FROM {fts} WHERE {fts} MATCH ? ORDER BY rowid DESC LIMIT ?)",
            (self.owner, NEWEST_ROWS),
        ).fetchall()
        if count < NEWEST_ROWS:
            return 0, count, 0
        lowest = oldest - oldest % _CELL
        before = self._between(lowest, oldest - 1)
        return lowest, count + before, self._between(lowest, lowest + _CELL - 1)

    def _between(self, lowest: int, highest: int) -> int:
        fts = self._table.fts
        count: Any
        ((count,),) = self._table.conn.execute(
            f"SELECT count(*) FROM {fts} WHERE {fts} MATCH ? AND rowid BETWEEN ? AND ?", (self.owner, lowest, highest)
        ).fetchall()
        return count

    @property
    def about(self) -> int:
        """About how many rows the agent has."""
        return self.rows if self.all else self.rows * self._highest // max(1, self._highest - self._lowest + 1)

    def of(self, expression: str) -> int:
        """Return in how many of ``rows`` an expression is found."""
        return self._count(("own", self._agent, self._lowest, expression), expression, self._lowest, -1)

    def up_to(self, expression: str, most: int) -> int:
        """Return in how many of all the agent's rows an expression is found, anything above ``most`` for more than that
        many.
        """
        return self._count(("all", self._agent, most, expression), expression, 0, most + 1)

    def _count(self, place: tuple[Any, ...], expression: str, lowest: int, most: int) -> int:
        values, fts = self._table.values, self._table.fts
        at, known = values.get(place, (-1, 0))
        if at == self._highest or 0 <= at < self._highest and 0 <= most <= known:
            return known
        if at > self._highest:
            at, known = -1, 0
        more: Any
        ((more,),) = self._table.conn.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {fts} WHERE {fts} MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?)",
            (self.within(expression), max(lowest, at + 1), self._highest, most - known if most >= 0 else -1),
        ).fetchall()
        return keep(values, place, self._highest, known + more)

    def begins(self, expression: str) -> int:
        """Return where the agent's newest ``limit`` rows of an expression begin, of those up to a round number below
        the newest row.
        """
        fts, limit = self._table.fts, self._table.limit
        place = ("begins", self._agent, limit, expression)
        at, known = self._table.values.get(place, (-1, None))
        if at == self._edge:
            return known
        lowest: Any
        ((lowest,),) = self._table.conn.execute(
            "SELECT min(id)"
            f" FROM (SELECT rowid AS id FROM {fts} WHERE {fts} MATCH ? AND rowid <= ? ORDER BY rowid DESC LIMIT ?)",
            (self.within(expression), self._edge, limit),
        ).fetchall()
        return keep(self._table.values, place, self._edge, lowest or 0)

    def within(self, expression: str) -> str:
        """Return the expression that finds the same among the agent's rows alone."""
        return f"({expression}) AND {self.owner}"

    def is_narrow(self, scope: Scope) -> bool:
        """Tell whether few of the best rows of the table were found to be in scope a while ago."""
        return self._table.values.get(("narrow", scope), (-1, None))[0] == self._edge

    def note_narrow(self, scope: Scope) -> None:
        keep(self._table.values, ("narrow", scope), self._edge, True)


def keep(values: dict[tuple[Any, ...], tuple[int, Any]], place: tuple[Any, ...], at: int, value: Any) -> Any:
    """Remember a value, and return it.

    Another thread with a newer snapshot may have been faster; what it knows is worth more.
    """
    if values.get(place, (-1, None))[0] <= at:
        values[place] = at, value
    return value


def _first_number(block: bytes | None) -> int:
    """Return the first number of FTS5's record of totals, the number of rows: big-endian, seven bits a byte."""
    number = 0
    for byte in block or b"":
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return number
