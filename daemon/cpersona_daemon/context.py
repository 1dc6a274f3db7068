"""Everything one daemon holds for one database, handed to every handler.

Rooms below are named by their classes. Of a room above stands here what others ask of its part, as a Protocol: nothing
here knows the room.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from .model.clock import Clock
from .shared.paths import Places
from .shared.settings import Settings
from .storage.database import Database

if TYPE_CHECKING:  # numpy comes with them, and the way to the first answer is without
    from .embedding.backlog import BacklogWorker
    from .embedding.service import EmbeddingService
    from .rerank.service import Reranker
    from .vectors.fallback import WithFallback

log = logging.getLogger("cpersona.context")


class Access(Protocol):
    """Who may do what (``rpc.access``)."""

    @property
    def open(self) -> bool: ...

    def admits(self, uid: int) -> bool: ...

    @property
    def by_group(self) -> bool: ...

    def identify(self, token: str, uid: int, groups: Collection[int] = ()) -> Any: ...

    def permits(self, caller: Any, method_class: str, agent: str | None) -> bool: ...


class Pauses(Protocol):
    """Whose writes are answered as if done and not kept (``rpc.pauses``)."""

    def pause(self, ttl_seconds: int = ..., session_key: str = ...) -> dict: ...

    def resume(self, session_key: str = ...) -> dict: ...

    def status(self, session_key: str = ...) -> dict: ...

    def is_paused(self, session_key: str = ...) -> bool: ...


class Runs(Protocol):
    """How far long requests came (``rpc.runs``)."""

    def followed(
        self, client_id: str, key: str, tell: Callable[[dict], None] | None
    ) -> AbstractContextManager[Callable[[dict], None]]: ...

    async def told(self, client_id: str, key: str, wait_seconds: float) -> dict: ...


class Status(Protocol):
    """Counters, latencies, last failures and warnings (``life.status``)."""

    @property
    def working(self) -> list[str]: ...

    def record(self, method: str, seconds: float, error_code: str | None = None) -> None: ...

    def warn(self, text: str) -> None: ...

    def at_work(self, what: str) -> AbstractContextManager[None]: ...

    def snapshot(self) -> dict: ...


class Calibration(Protocol):
    """What was measured about the store (``calibration.file``); its values belong to that room."""

    path: str
    turn: asyncio.Lock
    exists: bool
    tried: dict[str, int]
    problem: str | None

    @property
    def current(self) -> Any: ...

    def threshold(self, agent_id: str, model: str = "") -> float | None: ...

    def gate(self, agent_id: str, mode: str, signal: str, model: str) -> float | None: ...

    def beta(self, agent_id: str) -> float: ...

    def rows(self, agent_id: str) -> int: ...

    def precision(self, agent_id: str) -> str | None: ...

    def stale(self, model: str, dimension: int | None, version: str) -> bool: ...

    def summary(self) -> dict: ...

    def forgets(self, agent_id: str) -> int: ...

    def forget(self, agent_id: str) -> None: ...

    def update(self, change: Callable[[Any], Any]) -> Any: ...

    def earlier(self, agent_id: str) -> Any: ...

    def roll_back(self, agent_id: str) -> tuple[Any, Any]: ...


class Spool(Protocol):
    """The writes that were queued while no daemon could be reached (``life.spool``)."""

    @property
    def busy(self) -> bool: ...

    def look(self) -> bool: ...

    async def settled(self) -> None: ...

    def status(self) -> dict: ...


class Opening(Protocol):
    """Whether vectors, embedding, backlog and calibration are there yet (``life.opening``)."""

    @property
    def passed(self) -> bool: ...

    def begin(self) -> None: ...

    async def wanted(self) -> None: ...

    async def in_turn(self) -> None: ...

    async def stop(self) -> None: ...


class Recent(Protocol):
    """The last questions and the settings they were asked under (``recall.recent``)."""

    def add(self, query: Any, settings: Settings) -> None: ...

    def of(self, agent_id: str = "") -> list[tuple[Any, Settings]]: ...

    def forget(self, agent_id: str) -> None: ...


class Server(Protocol):
    """Who is connected (``life.server``); whom a task serves belongs to that room."""

    @property
    def identity(self) -> dict[str, Any]: ...

    def clients(self, besides: Any = ...) -> list[dict]: ...

    def asking(self) -> Any: ...


class Daemon(Protocol):
    """The process: its end, and what it knows of itself (``life.lifecycle``)."""

    @property
    def server(self) -> Server: ...

    def status(self) -> dict: ...

    def request_stop(self, why: str) -> None: ...


# A part that is opened later is None until then, and is never asked before: only early methods run meanwhile.
_LATER: Any = None


@dataclass(slots=True)
class Context:
    """The daemon's parts. Built and taken down by ``life.opening``, read by every handler and what it calls."""

    settings: Settings
    places: Places
    clock: Clock
    db: Database
    access: Access
    pauses: Pauses
    status: Status
    runs: Runs = _LATER
    vectors: WithFallback = _LATER
    embedding: EmbeddingService = _LATER
    backlog: BacklogWorker = _LATER
    reranker: Reranker | None = None  # where one is configured
    calibration: Calibration = _LATER
    recent: Recent = _LATER
    spool: Spool = _LATER
    opening: Opening = _LATER
    daemon: Daemon = _LATER  # set once it serves
    tasks: set[asyncio.Task] = field(default_factory=set)
    # Held while rows are hidden: one merge or deletion of an agent at a time.
    moving: asyncio.Lock = field(default_factory=asyncio.Lock)

    def under(self, measured: Any) -> Context:
        """Return this context as it would be with another measurement in force."""
        return replace(self, calibration=measured)

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
