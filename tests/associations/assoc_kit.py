"""A store with records, declarations and a model server of chosen vectors, for the association tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from embed_kit import EmbedServer

from cpersona_daemon.associations import reconstruct as reconstructing
from cpersona_daemon.associations.declare import declare
from cpersona_daemon.associations.traverse import traverse
from cpersona_daemon.context import Context
from cpersona_daemon.life import lifecycle
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.model.identity import Embedded
from cpersona_daemon.model.kinds import MEMORY
from cpersona_daemon.model.scope import Scope
from cpersona_daemon.recall.pipeline import recall
from cpersona_daemon.recall.types import Query
from cpersona_daemon.shared import paths
from cpersona_daemon.shared import settings as settings_module
from cpersona_daemon.storage import backlog, episodes, memories

AGENT = "kit"
WIDTH = 8


def axis(*values: float) -> list[float]:
    """A unit vector: the given leading components, the rest of its length on the last axis."""
    rest = max(0.0, 1.0 - sum(v * v for v in values)) ** 0.5
    return [*values, *[0.0] * (WIDTH - len(values) - 1), rest]


class ModelServer(EmbedServer):
    """Serves POST /embed: the vector set for a text in ``vectors``, for any other text the last axis but one."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors: dict[str, list[float]] = {}

    def reply(self, texts: list[str]) -> dict:
        other = [0.0] * (WIDTH - 2) + [1.0, 0.0]
        return {"embeddings": [self.vectors.get(text, other) for text in texts]}


class World:
    """An open store and short ways to fill and ask it."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    async def remember(
        self, content: str, *, agent: str = AGENT, vector: list[float] | None = None, **fields: Any
    ) -> int:
        """Write a memory, with a vector when one is given, and return its id."""
        import numpy as np

        def job(tx) -> int:
            memory_id = memories.insert(tx, memories.NewMemory(agent, content, **fields))
            if vector is not None:
                backlog.attach_vector(tx, MEMORY, memory_id, Embedded(np.array(vector, np.float32), ""))
            return memory_id

        return await self.ctx.db.write(job)

    async def archive(self, summary: str, *, agent: str = AGENT, **fields: Any) -> int:
        return await self.ctx.db.write(lambda tx: episodes.insert(tx, episodes.NewEpisode(agent, summary, **fields)))

    async def declare(
        self, spec: Any = None, *, agent: str = AGENT, project: str = "", channel: str = "", **more: Any
    ) -> dict:
        return await self.ctx.db.write(lambda tx: declare(tx, agent, project, channel, spec, **more))

    async def traverse(self, entity: str, hops: int = 1, limit: int = 20, **axes: Any) -> dict:
        return await self.ctx.db.read(traverse, Scope(axes.pop("agent", AGENT), **axes), entity, hops, limit)

    async def reconstruct(
        self, text: str, *, agent: str = AGENT, settings: dict | None = None, count: int | None = None, **more: Any
    ) -> dict:
        effective = self.ctx.settings.with_overrides(settings or {})
        axes = {name: more.pop(name) for name in ("project_id", "channel", "source_id") if name in more}
        numbers = {"top_k": 20, "max_hops": 2, "max_evidence": 40, **more}
        ask = reconstructing.Ask(
            text, Scope(agent, **axes), reconstructing.effective_count(effective, count), **numbers
        )
        return (await reconstructing.reconstruct(self.ctx, effective, ask))[0]

    async def recall(self, text: str, *, also: tuple[str, ...] = (), limit: int = 20) -> list[str]:
        result = await recall(self.ctx, self.ctx.settings, Query(text, Scope(AGENT), limit, also_lexical=also))
        return [row.ref for row in result.rows]


@asynccontextmanager
async def opened(directory: str, **options: object):
    """Open the store of a directory as the daemon does, without its socket."""
    settings = settings_module.load(
        {"HOME": directory}, {"db_path": f"{directory}/t.db", "embedding_mode": "none", **options}
    )
    ctx = await lifecycle.open_context(settings, paths.places(settings, {"HOME": directory}), SystemClock())
    try:
        yield World(ctx)
    finally:
        await lifecycle.close_context(ctx)


Body = Callable[[World], Awaitable[Any]]
