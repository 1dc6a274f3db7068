"""A database whose vectors Qdrant's engine searches in a folder, beside the plain scan that it must equal."""

import time

import numpy as np
from vector_kit import House, Row, created, unit

from cpersona_daemon.model.changes import VectorPut
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.kinds import PASSAGES
from cpersona_daemon.storage.vectors import reader
from cpersona_daemon.vectors import plain
from cpersona_daemon.vectors.backend import Ask, QueryVectors, Window
from cpersona_daemon.vectors.qdrant.embedded import Embedded
from cpersona_daemon.vectors.qdrant.engine import QdrantEngine

SECONDS = 30.0
ALL = Window(0, 10_000)


class QdrantHouse(House):
    """``client`` makes the client of each engine; rows are added as in a House."""

    def __init__(self, directory, client=None, exact=True, prefix="", owner="here"):
        self.folder = str(directory / "qdrant")
        self.make = client or (lambda: Embedded(self.folder))
        self.exact, self.prefix, self.owner = exact, prefix, owner
        super().__init__(directory)

    def start(self, background=False):
        super().start(background)
        self.client = self.make()
        self.engine = QdrantEngine(self.client, self.prefix, self.owner, SystemClock(), self.exact)
        self.engine.open(self.db, background=True)
        local = self.store.apply
        self.db.on_commit = lambda changes, reached: (local(changes, reached), self.engine.apply(changes, reached))
        return self

    def stop(self):
        self.engine.leave()
        super().stop()
        self.engine.close()

    def level(self):
        assert self.engine.outbox.wait(SECONDS), self.engine.outbox.problem

    def add_passages(self, kind, row_id, *vectors, model="m"):
        """Give a row passages with these vectors, and return their ids."""
        of, row = PASSAGES[kind], self.rows[kind, row_id]

        def job(tx):
            ids = []
            for at, vector in enumerate(vectors):
                tx.execute(
                    f"INSERT INTO {of.vectors} (row_id, start, stop, model, vector) VALUES (?, ?, ?, ?, ?)",
                    (row_id, at, at + 1, model, vector.astype("<f4").tobytes()),
                )
                ids.append(tx.conn.last_insert_rowid())
                axes = (created(row.second), row.agent, row.project, row.channel, row.source)
                tx.changes.append(VectorPut(of, ids[-1], *axes, model, vector))
            return ids

        return self.db.write_now(job)

    def ask(self, queries, kind, scope, window=ALL, floor=-2.0, k=10, model="m"):
        """Return what the engine says and what the plain scan does."""
        ask = Ask(QueryVectors(np.array(queries, np.float32), model), kind, scope, window, floor, k)
        (found,) = self.engine.ask([ask], "", time.monotonic() + SECONDS)
        with reader(self.path) as conn:
            return found, plain.search(conn, *ask)


def rows(count, rng, pool, kind):
    """Return rows on every axis, many of them with the same vector and the same second."""
    return [
        Row(
            pool[int(rng.integers(len(pool)))],
            int(rng.integers(count // 3 + 1)),
            agent=("a", "a", "b")[i % 3],
            project=("", "p", "q")[int(rng.integers(3))],
            channel=("", "c")[int(rng.integers(2))],
            source=(None, "git:x/1", "git:y", "me")[int(rng.integers(4))] if kind == "mem" else None,
            model=("m", "m", "m", "n", "")[int(rng.integers(5))],
            kind=kind,
        )
        for i in range(count)
    ]


def pool(rng, count, width):
    return [unit(v) for v in rng.normal(size=(count, width))]
