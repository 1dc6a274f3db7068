"""What a vector service is told of rows: their texts, by agent, as the outbox lists them.

Contract: remote.told, outbox.now, outbox.anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import apsw

from ...errors import VectorServiceFailure
from ...model.kinds import EPISODE, MEMORY, Kind, Rid, VectorKind
from ...storage import outbox, served
from ...storage.database import Database
from ...storage.generations import Generation
from ...storage.outbox import Entry
from ..drainer import Undelivered
from .service import Service
from .shapes import MOST_ITEMS, Item

_PROBES, _PROBE_CHARS, _PROBED = 3, 1_000, 100


class Batch(NamedTuple):
    """What is to be told: agents of whom nothing is kept, rows that are gone and rows that are there, by agent."""

    purged: list[str]
    gone: dict[str, list[str]]
    there: dict[str, list[Item]]


class Telling:
    """A Receiver: tells one service of the rows that have a vector. ``database`` is where they are read."""

    kinds: tuple[VectorKind, ...] = (MEMORY, EPISODE)
    most = MOST_ITEMS
    following = staticmethod(outbox.following)

    def __init__(self, service: Service, database: Callable[[], Database]) -> None:
        self.target = service.target
        self._service, self._database = service, database
        self._doubted = False

    def check(self) -> None:
        """Ask for rows that the service was told of: one that was begun anew may have lost all.

        A search that fails says nothing of that, nor does one that is cut off: other rows may say the same. A service
        that was sent everything for it and finds none of them all the same is not sent everything again.
        """
        probes = self._database().read_now(_probes)
        for rid, row in probes:
            try:
                found = self._service.search(row.agent_id, row.text[:_PROBE_CHARS], _PROBED, 0.0)
            except VectorServiceFailure:
                return
            if len(found) >= _PROBED or any(named.rid == rid for named in found):
                self._doubted = False
                return
        if probes and not self._doubted:
            self._doubted = True
            raise Undelivered("it does not find what it was told of", lost=True)

    def clear(self) -> None:
        with _delivering():
            for agent_id in self._database().read_now(served.agents):
                self._service.purge(agent_id)

    def read(self, conn: apsw.Connection, entries: list[Entry]) -> Batch:
        rows = [entry for entry in entries if not entry.purges]
        batch = Batch([entry.agent_id for entry in entries if entry.purges], {}, {})
        for kind in Kind:
            there = served.texts(conn, kind, [entry.id for entry in rows if entry.kind == kind])
            for entry in rows:
                if entry.kind != kind:
                    continue
                if (row := there.get(entry.id)) is not None:
                    batch.there.setdefault(row.agent_id, []).append(Item(kind.ref(entry.id), row.text))
                elif entry.agent_id:
                    batch.gone.setdefault(entry.agent_id, []).append(kind.ref(entry.id))
        return batch

    def deliver(self, read: Batch) -> None:
        with _delivering():
            for agent_id in read.purged:
                self._service.purge(agent_id)
            for agent_id, refs in read.gone.items():
                self._service.remove(agent_id, refs)
            for agent_id, items in read.there.items():
                self._service.index(agent_id, items)

    def level(self, reached: Generation) -> None:
        """The service keeps no count of its own."""

    def close(self) -> None:
        self._service.close()


@contextmanager
def _delivering() -> Iterator[None]:
    try:
        yield
    except VectorServiceFailure as error:
        raise Undelivered(str(error), refused=error.refused) from None


def _probes(conn: apsw.Connection) -> list[tuple[Rid, served.Told]]:
    """Return the newest rows that the service was told of: it may look at no others."""
    found: list[tuple[Rid, served.Told]] = []
    for kind in Kind:
        told = served.texts(conn, kind, served.heard_of(conn, kind, _PROBES))
        found += [((kind, row_id), row) for row_id, row in told.items()]
    return found[:_PROBES]
