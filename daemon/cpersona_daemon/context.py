"""Everything one daemon holds for one database, handed to every handler."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from .shared.paths import Places
from .shared.settings import Settings
from .storage.database import Database

log = logging.getLogger("cpersona.context")


@dataclass(slots=True)
class Context:
    """The daemon's parts. Built and taken down by ``opening``, read by everything behind the boundary.

    Until ``opening`` is through, vectors, embedding, backlog and calibration are None: only early methods run before.
    """

    settings: Settings
    places: Places
    clock: Any
    db: Database
    access: Any  # boundary.access.AccessList
    pauses: Any  # boundary.pause.Pauses
    status: Any  # status.Status: counters, latencies, last errors
    vectors: Any = None  # vectors.backend.VectorBackend
    embedding: Any = None  # embedding.service.EmbeddingService
    backlog: Any = None  # embedding.backlog.BacklogWorker
    calibration: Any = None  # calibration.file.CalibrationFile
    spool: Any = None  # spool.drain.Spool
    opening: Any = None  # opening.Opening: whether vectors, embedding, backlog and calibration are there yet
    tasks: set = field(default_factory=set)
    recent: Any = None  # recall.recent.RecentRecalls
    daemon: Any = None  # lifecycle.Daemon: its end, and what it knows of the process; set once it serves
    moving: asyncio.Lock = field(
        default_factory=asyncio.Lock
    )  # held while rows are hidden: one merge or deletion of an agent at a time

    def in_background(self, work: Coroutine) -> None:
        """Run work beside the requests; the context's end cancels what still runs."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("work in the background failed", exc_info=task.exception())
            self.status.warn(f"work in the background failed: {type(task.exception()).__name__}")
