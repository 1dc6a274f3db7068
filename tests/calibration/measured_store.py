"""A real store with hand-made vectors: bursts of related memories, days apart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
from embed_kit import EmbedServer

from cpersona_daemon.calibration.file import CalibrationFile
from cpersona_daemon.context import Context
from cpersona_daemon.embedding.backlog import BacklogWorker
from cpersona_daemon.embedding.service import EmbeddingService
from cpersona_daemon.life.status import Status
from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.instants import iso_now
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.recall.recent import RecentRecalls
from cpersona_daemon.rpc.access import AccessList
from cpersona_daemon.rpc.pauses import Pauses
from cpersona_daemon.shared.paths import Places
from cpersona_daemon.shared.settings import Settings
from cpersona_daemon.storage import backlog, memories
from cpersona_daemon.storage.database import Database
from cpersona_daemon.storage.memories import NewMemory
from cpersona_daemon.vectors.fallback import WithFallback
from cpersona_daemon.vectors.local.engine import LocalEngine

START = 1_750_000_000.0
WIDTH = 16
WORDS = (
    "harbour lantern violin granite orchard compass meadow turbine saddle glacier pepper cinema anchor velvet magnet"
).split()


class HeldClock:
    """A clock that stands still."""

    def now(self) -> float:
        return START + 90 * 86_400

    def monotonic(self) -> float:
        return 1000.0


@asynccontextmanager
async def opened(settings: Settings, places: Places) -> AsyncIterator[Context]:
    """Open the parts that a calibration works with, and close them in the daemon's order."""
    clock = HeldClock()
    vectors = WithFallback(LocalEngine(places, clock))
    db = Database(places.db, clock, vectors.apply)
    db.open()
    try:
        vectors.open(db)
        embedding = EmbeddingService(settings, clock)
        embedding.start()
        try:
            yield Context(
                settings=settings,
                places=places,
                clock=clock,
                db=db,
                vectors=vectors,
                embedding=embedding,
                backlog=BacklogWorker(db, embedding),
                calibration=CalibrationFile(places.calibration),
                recent=RecentRecalls(),
                access=AccessList(),
                pauses=Pauses(clock),
                status=Status(clock),
            )
        finally:
            await embedding.close()
    finally:
        db.close()
        vectors.close()


def unit(vector: np.ndarray) -> np.ndarray:
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def bursts(topics: int, each: int, seed: int = 7, noise: float = 0.35) -> list[tuple[str, float, np.ndarray]]:
    """Return (text, instant, vector) of memories in bursts of one topic, five minutes between them, a day between
    topics.
    """
    random = np.random.default_rng(seed)
    shared, out = unit(random.normal(size=WIDTH)), []
    for topic in range(topics):
        centre = unit(random.normal(size=WIDTH)) + 0.4 * shared
        for n in range(each):
            vector = unit(centre + noise * random.normal(size=WIDTH))
            words = " ".join((WORDS[topic % len(WORDS)], WORDS[(topic * 7 + n) % len(WORDS)]))
            out.append((f"the {words} number {topic * each + n}", START + topic * 86_400 + n * 300, vector))
    return out


def insert(ctx: Context, agent: str, rows: list[tuple[str, float, np.ndarray | None]], model: str = "m1") -> list[int]:
    """Write rows with their vectors; a vector None leaves the row without one. Returns the ids."""

    def job(tx):
        ids = []
        for text, instant, vector in rows:
            ids.append(memories.insert(tx, NewMemory(agent, text, timestamp=iso_now(instant))))
            if vector is not None:
                backlog.attach_vector(tx, MEMORY, ids[-1], Embedded(vector, model))
        return ids

    return ctx.db.write_now(job)


class ModelServer(EmbedServer):
    """Answers every text with one vector, and says which model made it."""

    def __init__(self) -> None:
        super().__init__()
        self.model = "m1"

    def reply(self, texts: list[str]) -> dict:
        return {"embeddings": [[1.0] + [0.0] * (WIDTH - 1)] * len(texts), "model": self.model}
