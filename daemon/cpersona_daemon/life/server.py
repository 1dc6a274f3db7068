"""The daemon's socket: it listens, tells who is connected, and drains before the daemon leaves.

Contract: wire.bounds, daemon.life.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection

from ..context import Context
from ..shared import fields, methods
from .connection import Connection, Hub

DRAIN_SECONDS = 40.0  # longer than any default deadline
UNLIMITED_DRAIN_SECONDS = 5.0  # what a request without a deadline gets when the daemon leaves
FLUSH_SECONDS = 5.0


class Server(Hub):
    """All connections of one daemon, from the first to the last."""

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx)
        self._listeners: list[asyncio.Server] = []

    async def listen(self, sock: socket.socket) -> None:
        """Begin to accept on a bound (or already listening) unix socket."""
        self._listeners.append(
            await self.loop.create_server(lambda: Connection(self), sock=sock, backlog=fields.MAX_CONNECTIONS)
        )

    def stop_listening(self) -> None:
        """Accept no more; connections that stand go on."""
        while self._listeners:
            self._listeners.pop().close()

    def clients(self, besides: Connection | None = None) -> list[dict]:
        """Return `{pid, uid, method, seconds}` of each client (besides one), those at work first.

        That is what it has asked for longest, or None, and since when. One that is gone is none, though the daemon may
        not have heard of it yet.
        """
        now, others = self.ctx.clock.monotonic(), self.connections - {besides}
        told = [connection.told(now) for connection in others if connection.is_there()]
        return sorted(told, key=lambda entry: (entry["method"] is None, -entry["seconds"]))

    def asking(self) -> Connection | None:
        """Return whose request the present task serves."""
        task = asyncio.current_task()
        return self.tasks[task][0] if task in self.tasks else None

    def heartbeat(self) -> None:
        """Tell those who wait for a request without a deadline that the daemon is alive."""
        for connection, request in list(self.tasks.values()):
            if request.progress and not methods.of(request.method).limited:
                connection.tell_progress(request.id, {})

    async def drain(self) -> None:
        """Stop accepting, let what runs finish, answer it, and close every connection; never longer than its limits."""
        self.stopping = True
        self.stop_listening()
        self._give_up_unread()
        await self._finish_requests()
        await self._close_connections()

    def _give_up_unread(self) -> None:
        """End reads whose client does not take its answers."""
        for task, (connection, request) in list(self.tasks.items()):
            if methods.of(request.method).reads and not connection.reads:
                task.cancel()

    async def _finish_requests(self) -> None:
        running = [(task, methods.of(request.method).limited) for task, (_, request) in self.tasks.items()]
        for limited, seconds in ((False, UNLIMITED_DRAIN_SECONDS), (True, DRAIN_SECONDS)):
            await _wait([task for task, is_limited in running if is_limited is limited], seconds)
        late = list(self.tasks)
        for task in late:
            task.cancel()
        await _wait(late, FLUSH_SECONDS)

    async def _close_connections(self) -> None:
        for connection in list(self.connections):
            connection.close()
        await _wait([asyncio.ensure_future(c.lost.wait()) for c in self.connections], FLUSH_SECONDS)
        for connection in list(self.connections):
            connection.abort()


async def _wait(work: Collection[asyncio.Future], seconds: float) -> None:
    if work:
        await asyncio.wait(work, timeout=seconds)
