"""A real database with hand-made rows, its vector store, and the plain search that both must equal."""

import hashlib
import os
from dataclasses import dataclass, replace

import numpy as np

from cpersona_daemon.model.changes import VectorDrop, VectorPut
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.kinds import EPISODE, MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.shared.paths import Places
from cpersona_daemon.storage.database import Database
from cpersona_daemon.storage.generations import Generation
from cpersona_daemon.storage.vectors import reader
from cpersona_daemon.vectors.backend import QueryVectors, Window
from cpersona_daemon.vectors.fallback import WithFallback
from cpersona_daemon.vectors.local.engine import LocalEngine
from cpersona_daemon.vectors.local.names import SUFFIXES


def unit(values) -> np.ndarray:
    vector = np.asarray(values, np.float64)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def created(seconds: int) -> str:
    return f"2024-01-{1 + seconds // 86400:02d} {seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def following(reached: Generation) -> Generation:
    """Return a state that one transaction leads to."""
    return Generation(reached.number + 1, os.urandom(8), reached.stamp)


@dataclass(frozen=True)
class Row:
    """What a test says of a row; the database gives the id."""

    vector: np.ndarray
    second: int = 0
    agent: str = "a"
    project: str = ""
    channel: str = ""
    source: str | None = None
    model: str = "m"
    kind: str = MEMORY


class House:
    """The database and the store over it. ``rows`` mirrors what the database holds, for the reference."""

    def __init__(self, directory, background=False):
        self.path = str(directory / "d.db")
        self.places = Places(self.path, "", "")
        self.rows: dict[tuple[str, int], Row] = {}
        self.serial = 0
        self.start(background)

    def start(self, background=False):
        self.db = Database(self.path, SystemClock())
        self.db.open()
        self.store = WithFallback(LocalEngine(self.places))
        self.store.open(self.db, background)
        self.db.on_commit = self.store.apply
        return self

    def stop(self):
        self.db.close()
        self.store.close()

    def restart(self):
        self.stop()
        return self.start()

    def add(self, *rows: Row) -> list[int]:
        """Insert rows with their vectors in one commit and return their ids."""
        ids = self.db.write_now(lambda tx: [self._insert(tx, row) for row in rows])
        self.rows.update(((row.kind, row_id), row) for row, row_id in zip(rows, ids, strict=True))
        return ids

    def _insert(self, tx, row: Row) -> int:
        self.serial += 1
        if row.kind == MEMORY:
            cursor = tx.execute(
                (
                    "INSERT INTO memories (agent_id, project_id, channel, source_id, created_at, content_key, content)"
                    " VALUES (?,?,?,?,?,?,?) RETURNING id"
                ),
                (
                    row.agent,
                    row.project,
                    row.channel,
                    row.source,
                    created(row.second),
                    hashlib.md5(b"%d" % self.serial).digest(),
                    str(self.serial),
                ),
            )
        else:
            cursor = tx.execute(
                (
                    "INSERT INTO episodes (agent_id, project_id, channel, created_at, summary) VALUES (?,?,?,?,?)"
                    " RETURNING id"
                ),
                (row.agent, row.project, row.channel, created(row.second), str(self.serial)),
            )
        row_id = cursor.fetchall()[0][0]
        self._put(tx, row, row_id)
        return row_id

    def _put(self, tx, row: Row, row_id: int) -> None:
        tx.execute(
            f"INSERT OR REPLACE INTO {row.kind.vectors} VALUES (?, ?, ?)",
            (row_id, row.model, row.vector.astype("<f4").tobytes()),
        )
        source = row.source if row.kind == MEMORY else None
        tx.changes.append(
            VectorPut(
                row.kind,
                row_id,
                created(row.second),
                row.agent,
                row.project,
                row.channel,
                source,
                row.model,
                row.vector,
            )
        )

    def update(self, rid, vector, model="m"):
        """Give a row another vector, as update_memory and reindex do."""
        row = replace(self.rows[rid], vector=vector, model=model)
        self.db.write_now(lambda tx: self._put(tx, row, rid[1]))
        self.rows[rid] = row

    def delete(self, *rids):
        def job(tx):
            for kind, row_id in rids:
                tx.execute(f"DELETE FROM {kind.table} WHERE id = ?", (row_id,))
                tx.changes.append(VectorDrop(kind, row_id, self.rows[kind, row_id].agent))

        self.db.write_now(job)
        for rid in rids:
            del self.rows[rid]

    def db_reader(self):
        """Open a connection of its own, as a scan without an index does."""
        return reader(self.path)

    def files(self) -> dict[str, bytes]:
        found = {}
        for path in (self.places.memory_vectors, self.places.episode_vectors):
            for suffix in SUFFIXES:
                try:
                    with open(path + suffix, "rb") as file:
                        found[path + suffix] = file.read()
                except FileNotFoundError:
                    pass
        return found

    def search(self, query, kind=MEMORY, scope=None, start=0, stop=10_000, floor=-2.0, k=10, model="m"):
        return [
            (hit.id, hit.score)
            for hit in self.store.search(
                QueryVectors.one(query, model), kind, scope or Scope("a"), Window(start, stop), floor, k
            )[0]
        ]

    def expected(self, query, kind=MEMORY, scope=None, start=0, stop=10_000, floor=-2.0, k=10, model="m"):
        return reference(self.rows, query, kind, scope or Scope("a"), start, stop, floor, k, model)

    def check(self, query, **asked):
        found, expected = self.search(query, **asked), self.expected(query, **asked)
        assert [row_id for row_id, _ in found] == [row_id for row_id, _ in expected], asked
        np.testing.assert_allclose([score for _, score in found], [score for _, score in expected], rtol=0, atol=1e-12)


def reference(rows, query, kind, scope, start, stop, floor, k, model):
    """The contract read aloud, row by row."""
    if kind == EPISODE and scope.source_id and not scope.channel:
        return []
    seen = []
    for (row_kind, row_id), row in rows.items():
        if row_kind != kind or row.agent != scope.agent_id:
            continue
        if scope.project_id is not None and row.project not in (scope.project_id, ""):
            continue
        if scope.channel and row.channel not in (scope.channel, ""):
            continue
        if kind == MEMORY and scope.source_id:
            if row.source is None:
                continue
            if not (
                row.source == scope.source_id
                if scope.source_id[-1].isalnum()
                else row.source.startswith(scope.source_id)
            ):
                continue
        if np.isfinite(row.vector).all() and row.vector.any():
            seen.append((-row.second, row_id, row))
    seen.sort(key=lambda entry: entry[:2])
    scored = []
    for position, (_, row_id, row) in enumerate(seen[start:stop]):
        if row.vector.size == query.size and (not model or not row.model or model == row.model):
            # products of float32 are exact in float64; equal vectors give equal sums
            score = float((row.vector.astype(np.float64) * query.astype(np.float64)).sum())
            if score >= floor:
                scored.append((-score, position, row_id))
    return [(row_id, -score) for score, _, row_id in sorted(scored)[:k]]
