"""What brings the outbox to Qdrant, and knows whether what is there is still what was brought.

Contract: qdrant.collections, outbox.now, outbox.anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import apsw
import numpy as np

from ...model.changes import VectorPut
from ...model.kinds import Kind, VectorKind
from ...storage import hidden, outbox, vector_counts
from ...storage import vectors as rows
from ...storage.database import Database
from ...storage.generations import Generation
from ...storage.outbox import Entry
from ..cosine import is_usable
from ..drainer import Undelivered
from . import filters
from .client import Client, Failed, Point
from .collection import KINDS, Collections, Mark, somebody_else

TOGETHER = 256
MARK_SECONDS = 60.0  # the mark is written no more often

T = TypeVar("T")


class Read(NamedTuple):
    """What some entries are now: rows with their vectors, ids by kind of what is gone, agents with nothing left."""

    puts: list[VectorPut]
    gone: dict[VectorKind, list[int]]
    purged: list[str]


class QdrantReceiver:
    """A Receiver over the collections of a database. ``owner`` tells its place from that of a copy of it."""

    kinds = KINDS
    most = TOGETHER
    following = staticmethod(outbox.following)

    def __init__(self, client: Client, collections: Collections, owner: str, now: Callable[[], float]) -> None:
        self.target = f"{client.place}, {collections.prefix}"
        self._client, self._collections, self._owner, self._now = client, collections, owner, now
        self._marked_at = 0.0
        self._db: Database | None = None

    def open(self, db: Database) -> None:
        """Work for a database."""
        self._db = db

    def check(self) -> None:
        """Compare what is there with what the database says was brought."""
        assert self._db is not None
        self._collections.forget()
        mark = self._asked(self._collections.mark)
        if somebody_else(mark, self._owner, self._now()):
            raise Undelivered(
                f"another database at work has the same identity, and the collections {self._collections.prefix}-*;"
                " give one of the two its own CPERSONA_QDRANT_COLLECTION"
            )
        filling, level, reached = self._db.read_now(outbox.mark)
        if mark is None:
            raise Undelivered("the collections are not there", lost=True)
        if mark.filling != filling or not level <= mark.generation <= reached.number:
            raise Undelivered("the collections are of another state of the database", lost=True)
        there = self._asked(self._collections.counts)
        for name, least, most in self._db.read_now(self._expected_counts):
            if not least <= there.get(name, 0) <= most:
                raise Undelivered(f"{name} holds {there.get(name, 0)} points and not {most}", lost=True)
        self._mark(filling, reached)

    def clear(self) -> None:
        """Take away every collection of this database, and begin a filling."""
        assert self._db is not None
        filling, _, _ = self._db.read_now(outbox.mark)
        mark = self._asked(self._collections.mark)
        if somebody_else(mark, self._owner, self._now()) and mark is not None and mark.filling != filling:
            raise Undelivered("another database is at work on the collections")
        self._asked(self._collections.clear)
        self._asked(self._collections.set_mark, Mark(filling, 0, self._owner, self._now()))

    def read(self, conn: apsw.Connection, entries: list[Entry]) -> Read:
        """Return what rows are now. Of a hidden row nobody knows; its passages are passed over where they are found."""
        wanted: dict[VectorKind, list[int]] = defaultdict(list)
        for entry in entries:
            if not entry.purges:
                wanted[entry.of].append(entry.id)
        puts: list[VectorPut] = []
        gone: dict[VectorKind, list[int]] = {}
        for kind, ids in wanted.items():
            found = _there(conn, kind, ids)
            puts += found.values()
            gone[kind] = [row_id for row_id in ids if row_id not in found]
        return Read(puts, gone, [entry.agent_id for entry in entries if entry.purges])

    def deliver(self, read: Read) -> None:
        """Bring rows there."""
        for agent in read.purged:
            for name in (name for kind in KINDS for name in self._asked(self._collections.of_kind, kind)):
                self._asked(self._client.delete_all, name, filters.of_agent(agent))
        kept = self._put(read.puts)
        for kind in KINDS:
            self._remove(kind, {*read.gone.get(kind, ()), *(put.id for put in read.puts if put.kind == kind)}, kept)

    def _put(self, puts: list[VectorPut]) -> dict[str, set[int]]:
        """Bring rows to the collections of their models, and return which to which."""
        by_form: dict[tuple[VectorKind, int, str], list[VectorPut]] = defaultdict(list)
        for put in puts:
            by_form[put.kind, put.vector.size, put.model].append(put)
        kept = {}
        for form, alike in by_form.items():
            name = self._asked(self._collections.ready, *form)
            points = [Point(put.id, put.vector, filters.payload(put)) for put in alike]
            self._asked(self._client.upsert, name, points)
            kept[name] = {put.id for put in alike}
        return kept

    def _remove(self, kind: VectorKind, ids: set[int], kept: dict[str, set[int]]) -> None:
        """Take rows from every collection of their kind but the one that keeps them: a row may have had another
        model.
        """
        for name in self._asked(self._collections.of_kind, kind) if ids else ():
            if elsewhere := sorted(ids - kept.get(name, set())):
                self._asked(self._client.delete, name, elsewhere)

    def level(self, reached: Generation) -> None:
        """Note beside the collections how far they have got, now and then."""
        assert self._db is not None
        if self._now() - self._marked_at >= MARK_SECONDS:
            filling, _, _ = self._db.read_now(outbox.mark)
            self._mark(filling, reached)

    def close(self) -> None:
        self._client.close()

    def _mark(self, filling: str, reached: Generation) -> None:
        assert self._db is not None
        pending = self._db.read_now(outbox.oldest, 1)
        number = min([reached.number, *(entry.generation - 1 for entry in pending)])
        self._asked(self._collections.set_mark, Mark(filling, number, self._owner, self._now()))
        self._db.write_now(lambda tx: outbox.note_level(tx, number))
        self._marked_at = self._now()

    def _expected_counts(self, conn: apsw.Connection) -> list[tuple[str, int, int]]:
        """Return of each collection the least and the most points that it holds: what waits may be there or not."""
        out = []
        for kind in KINDS:
            unsure = outbox.count(conn, kind)
            unseen = hidden.count(conn, kind.table) if isinstance(kind, Kind) else 0
            for width, model, count in vector_counts.forms(conn, kind):
                out.append((self._collections.name(kind, width, model), count - unsure - unseen, count + unsure))
        return out

    def _asked(self, work: Callable[..., T], *given: Any) -> T:
        try:
            return work(*given)
        except Failed as error:
            raise Undelivered(str(error), refused=error.unfit, lost=error.missing) from None


def _there(conn: apsw.Connection, kind: VectorKind, ids: list[int]) -> dict[int, VectorPut]:
    """Return those of some rows that have a vector that counts, and are not hidden."""
    found = {put.id: put for put in rows.with_vectors(conn, kind, np.array(ids)) if is_usable(put.vector)}
    if isinstance(kind, Kind) and hidden.some(conn, kind.table):
        return {row_id: put for row_id, put in found.items() if not hidden.holds(conn, kind.table, row_id)}
    return found
