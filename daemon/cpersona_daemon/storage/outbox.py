"""The outbox: what a service elsewhere has yet to hear of, written in the transaction that changes it.

An entry names a row, not a change: whoever drains it reads what the row is by then, and puts or removes that. A row is
therefore listed once however often it changes, in the place of its last change, and to deliver an entry twice does no
harm. Nothing is listed unless a service is configured: a store that was written without is known by the stamp of its
last transaction, and everything is then sent anew.

Contract: outbox.durable, outbox.now, outbox.anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np

from ..model.changes import Change, Hidden, Purged, VectorDrop, VectorPut
from ..model.kinds import Kind, PassageKind, VectorKind
from . import hidden
from .generations import Generation, current
from .transaction import Transaction

PURGE = "agent"  # the kind of an entry that means everything of an agent

_KINDS: dict[str, VectorKind] = {kind.value: kind for kind in (*Kind, *PassageKind)}
_LIST = (
    "INSERT INTO outbox (kind, id, agent_id, generation, at) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (kind, id, agent_id) DO UPDATE SET generation = excluded.generation"
)


class Entry(NamedTuple):
    """A row, or everything of an agent (``PURGE``, id 0), that a service is to hear of.

    ``generation`` is that of its last change. ``agent_id`` is '' of a passage that is gone.
    """

    kind: str
    id: int
    agent_id: str
    generation: int

    @property
    def purges(self) -> bool:
        return self.kind == PURGE

    @property
    def of(self) -> VectorKind:
        """The kind of the row. Not of an agent."""
        return _KINDS[self.kind]


class Filling(NamedTuple):
    """How far a service has got that is sent everything: the kind that is at its turn, and the last id of it."""

    kind: str
    id: int
    begun: bool = False


class Feed:
    """Lists what a transaction changes, for a service that takes some ``kinds``. Belongs to the writer thread.

    What it knows of hidden rows moves on only when the transaction is committed.
    """

    def __init__(self, conn: apsw.Connection, kinds: Sequence[VectorKind]) -> None:
        self._kinds = frozenset(kinds)
        self._hidden: dict[VectorKind, np.ndarray] = {
            kind: np.array(hidden.ids(conn, kind.table), np.int64) for kind in Kind
        }
        self._now_hidden = self._hidden

    def note(self, conn: apsw.Connection, changes: Sequence[Change], reached: Generation, now: float) -> None:
        """List in the running transaction what it changes."""
        self._now_hidden = self._hidden | {c.kind: c.ids for c in changes if isinstance(c, Hidden)}
        purged = {change.agent_id for change in changes if isinstance(change, Purged)}
        entries = [(PURGE, 0, agent) for agent in purged]
        entries += [entry for entry in self._moved(conn) if entry[2] not in purged]
        entries += [
            (change.kind, change.id, change.agent_id)
            for change in changes
            if isinstance(change, VectorPut | VectorDrop) and change.kind in self._kinds and not self._unseen(change)
        ]
        conn.executemany(_LIST, [(*entry, reached.number, now) for entry in entries])
        conn.execute("INSERT OR REPLACE INTO meta VALUES ('outbox_stamp', ?)", (reached.stamp,))

    def committed(self) -> None:
        """Learn that the transaction noted last is durable."""
        self._hidden = self._now_hidden

    def _moved(self, conn: apsw.Connection) -> Iterable[tuple[str, int, str]]:
        """Yield the rows that are hidden from now on, and those that are no longer."""
        for kind in Kind:
            if self._now_hidden[kind] is self._hidden[kind]:
                continue
            ids = np.setxor1d(self._now_hidden[kind], self._hidden[kind])
            yield from (
                (kind, row_id, agent)
                for row_id, agent in conn.execute(
                    f"SELECT m.id, m.agent_id FROM json_each(?) j CROSS JOIN {kind.table} m ON m.id = j.value",
                    (json.dumps(ids.tolist()),),
                )
            )

    def _unseen(self, change: VectorPut | VectorDrop) -> bool:
        """Tell whether nobody saw the row before, or will: of such a row no service knows."""
        both = [self._hidden.get(change.kind), self._now_hidden.get(change.kind)]
        if isinstance(change, VectorDrop):
            del both[1]  # it is no longer hidden because it is gone
        return all(ids is not None and _holds(ids, change.id) for ids in both)


def _holds(ids: np.ndarray, row_id: int) -> bool:
    at = int(np.searchsorted(ids, row_id))
    return at < len(ids) and int(ids[at]) == row_id


# -- draining


def oldest(conn: apsw.Connection, most: int) -> list[Entry]:
    """Return the entries to be delivered next, in the order of the commits; an agent goes before rows of the same."""
    found: Any = conn.execute(
        "SELECT kind, id, agent_id, generation FROM outbox ORDER BY generation, id LIMIT ?", (most,)
    ).fetchall()
    return [Entry(*entry) for entry in found]


def delivered(tx: Transaction, entries: Sequence[Entry]) -> None:
    """Take entries off the list, but for rows that changed again since they were read."""
    tx.conn.executemany(
        "DELETE FROM outbox WHERE kind = ? AND id = ? AND agent_id = ? AND generation = ?",
        [(entry.kind, entry.id, entry.agent_id, entry.generation) for entry in entries],
    )


def length(conn: apsw.Connection, most: int = -1) -> int:
    """Return how many entries wait, counting no further than ``most``."""
    return conn.execute("SELECT count(*) FROM (SELECT 1 FROM outbox LIMIT ?)", (most,)).get


def since(conn: apsw.Connection) -> float | None:
    """Return when the entry that waits longest was listed, in epoch seconds; None where none waits."""
    return conn.execute("SELECT min(at) FROM outbox").get


def waiting(conn: apsw.Connection, kind: VectorKind, most: int) -> list[int]:
    """Return the ids of at most so many rows of a kind that are listed."""
    return [row_id for (row_id,) in conn.execute("SELECT id FROM outbox WHERE kind = ? LIMIT ?", (kind, most))]


def count(conn: apsw.Connection, kind: VectorKind) -> int:
    """Return how many rows of a kind are listed, and all of them where an agent is: they may be its."""
    return conn.execute(
        "SELECT count(*) + 1000000000000 * EXISTS (SELECT 1 FROM outbox WHERE kind = ?) FROM outbox WHERE kind = ?",
        (PURGE, kind),
    ).get


def purging(conn: apsw.Connection, agent_id: str) -> bool:
    """Tell whether everything of an agent is still to be removed."""
    return bool(conn.execute("SELECT 1 FROM outbox WHERE kind = ? AND agent_id = ?", (PURGE, agent_id)).fetchall())


# -- sending everything


def in_step(conn: apsw.Connection, target: str) -> bool:
    """Tell whether the list is kept for this service, and every transaction was noted in it."""
    said = _meta(conn)
    return said.get("outbox_target") == target and said.get("outbox_stamp") == said.get("vector_stamp")


def begin_anew(tx: Transaction, target: str, first: VectorKind) -> None:
    """Have everything sent to a service, from the ``first`` kind on; what is listed stands among that."""
    stamp = tx.execute("SELECT value FROM meta WHERE key = 'vector_stamp'").get
    tx.execute("DELETE FROM outbox")
    tx.execute("DELETE FROM meta WHERE key = 'outbox_level'")
    tx.execute(
        "INSERT OR REPLACE INTO meta VALUES ('outbox_target', ?), ('outbox_stamp', ?), ('outbox_filling', ?),"
        " ('outbox_mark', lower(hex(randomblob(8))))",
        (target, stamp, json.dumps(Filling(first, 0))),
    )


def forget(conn: apsw.Connection) -> None:
    """Take out of a copy of the database what some service has heard, so that a service is sent everything of it.

    The copy of an older version has no list.
    """
    conn.execute("DELETE FROM meta WHERE key >= 'outbox_' AND key < 'outbox`'")
    if conn.execute("SELECT 1 FROM sqlite_schema WHERE name = 'outbox'").fetchone() is not None:
        conn.execute("DELETE FROM outbox")


def filling(conn: apsw.Connection) -> Filling | None:
    """Return how far a service has got that is sent everything, None where it has been."""
    said: Any = conn.execute("SELECT value FROM meta WHERE key = 'outbox_filling'").get
    return None if said is None else Filling(*json.loads(said))


def filled(tx: Transaction, reached: Filling | None) -> None:
    """Note how far a service has got, None where it has everything."""
    if reached is None:
        tx.execute("DELETE FROM meta WHERE key = 'outbox_filling'")
    else:
        tx.execute("INSERT OR REPLACE INTO meta VALUES ('outbox_filling', ?)", (json.dumps(reached),))


def mark(conn: apsw.Connection) -> tuple[str, int, Generation]:
    """Return what a service may keep beside what it was sent, to know it by: a name that no other sending everything
    has, the generation up to which it was last told that this goes (0: never), and the present one.
    """
    said = dict(conn.execute("SELECT key, value FROM meta WHERE key IN ('outbox_mark', 'outbox_level')"))
    return said.get("outbox_mark", ""), said.get("outbox_level", 0), current(conn)[0]


def note_level(tx: Transaction, number: int) -> None:
    """Note that a service was told that what it has goes up to a generation."""
    tx.execute("INSERT OR REPLACE INTO meta VALUES ('outbox_level', ?)", (number,))


def following(conn: apsw.Connection, kind: VectorKind, after: int, most: int) -> list[Entry]:
    """Return the next rows of a kind that have a vector, by their ids, as if they were listed."""
    found = conn.execute(f"SELECT id FROM {kind.vectors} WHERE id > ? ORDER BY id LIMIT ?", (after, most))
    return [Entry(kind, row_id, "", 0) for (row_id,) in found]


def _meta(conn: apsw.Connection) -> dict[str, Any]:
    return dict(
        conn.execute("SELECT key, value FROM meta WHERE key IN ('outbox_target', 'outbox_stamp', 'vector_stamp')")
    )
