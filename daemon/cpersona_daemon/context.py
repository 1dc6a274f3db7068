"""Everything one daemon holds for one database, handed to every handler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .health.recent import RecentRecalls
from .paths import Places
from .settings import Settings
from .storage.database import Database


@dataclass(slots=True)
class Context:
    """The daemon's parts. Built and taken down by ``lifecycle``, read by everything behind the boundary."""

    settings: Settings
    places: Places
    clock: Any
    db: Database
    vectors: Any          # vectors.store.VectorStore
    embedding: Any        # embedding.service.EmbeddingService
    backlog: Any          # embedding.backlog.BacklogWorker
    calibration: Any      # calibration.file.CalibrationFile
    access: Any           # boundary.access.AccessList
    pauses: Any           # boundary.pause.Pauses
    status: Any           # status.Status: counters, latencies, last errors
    spool: Any = None     # spool.drain.Spool
    tasks: set = field(default_factory=set)
    recent: RecentRecalls = field(default_factory=RecentRecalls)
    daemon: Any = None    # lifecycle.Daemon: its end, and what it knows of the process; set once it serves
