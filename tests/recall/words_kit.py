"""A store without an embedder, asked through the pipeline in any mode."""

from __future__ import annotations

from functools import partial

from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.recall import pipeline, prepare
from cpersona_daemon.recall.run import Run
from cpersona_daemon.recall.types import Query, Result
from cpersona_daemon.shared import paths
from cpersona_daemon.shared.settings import load
from cpersona_daemon.storage import episodes, memories
from cpersona_daemon.storage.database import Database
from cpersona_daemon.storage.episodes import NewEpisode
from cpersona_daemon.storage.memories import NewMemory
from cpersona_daemon.vectors.fallback import WithFallback
from cpersona_daemon.vectors.local.engine import LocalEngine

MODES = ("blend", "rrf", "rsf", "cascade")
POOL = 100  # a cascade returns rows without a score only from a pool of so many


class WordStore:
    """A database with its vector store, where no row has a vector."""

    def __init__(self, directory):
        self.settings = load({"HOME": str(directory)}, {"db_path": str(directory / "t.db"), "embedding_mode": "none"})
        places = paths.places(self.settings, {"HOME": str(directory)})
        self.vectors = WithFallback(LocalEngine(places))
        self.db = Database(places.db, SystemClock(), self.vectors.apply)
        self.db.open()
        self.vectors.open(self.db)

    def close(self) -> None:
        self.db.close()
        self.vectors.close()

    def add(self, *texts: str, agent: str = "kit", **more) -> list[str]:
        """Store memories and return their refs."""
        return [
            f"mem:{i}"
            for i in self.db.write_now(
                lambda tx: [memories.insert(tx, NewMemory(agent, text, **more)) for text in texts]
            )
        ]

    def episode(self, summary: str, keywords: str = "", agent: str = "kit") -> str:
        return f"ep:{self.db.write_now(lambda tx: episodes.insert(tx, NewEpisode(agent, summary, keywords)))}"

    def fill(self, agent: str = "kit", count: int = POOL) -> None:
        """Add rows in words that no test asks for."""
        self.add(*(f"filler {chr(97 + n // 26)}{chr(97 + n % 26)}zqx filler" for n in range(count)), agent=agent)

    def recall(
        self, text: str, mode: str = "blend", agent: str = "kit", limit: int = 10, scope: Scope | None = None, **more
    ) -> Result:
        settings = self.settings.with_overrides({"recall_mode": mode})
        query = Query(text, scope or Scope(agent), limit, **more)
        make = partial(
            Run,
            settings=settings,
            query=query,
            question=pipeline.question_of(settings, query),
            vector=None,
            vectors=self.vectors,
            now=1_750_000_000.0,
            depth=prepare.depth_of(settings, limit),
            cosine_scale=(0.2, 0.75),
        )
        return self.db.read_now(pipeline.answer, make)

    def refs(self, text: str, mode: str = "blend", **options) -> list[str]:
        return [row.ref for row in self.recall(text, mode, **options).rows]
