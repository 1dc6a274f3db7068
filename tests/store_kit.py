"""A whole daemon in the test's own process but for its socket: every part real, requests through the real dispatch."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cpersona_daemon.life import lifecycle
from cpersona_daemon.model.clock import SystemClock
from cpersona_daemon.rpc.dispatch import dispatch
from cpersona_daemon.rpc.envelopes import Request
from cpersona_daemon.shared import paths
from cpersona_daemon.shared.settings import load


class Store:
    """A whole daemon in this process but for its socket, for what asks more than a socket has time for."""

    def __init__(self, root: Path, clock: SystemClock | None = None, **environ: str):
        self.environ = {
            "HOME": str(root),
            "CPERSONA_DB_PATH": str(root / "db" / "t.db"),
            "CPERSONA_EMBEDDING_MODE": "none",
            "CPERSONA_CALIBRATE_ON_MODEL_CHANGE": "false",
            **environ,
        }
        self.settings = load(self.environ)
        self.places = paths.places(self.settings, self.environ)
        paths.make_private_directory(os.path.dirname(self.places.db))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.ctx = self.run(lifecycle.open_context(self.settings, self.places, clock or SystemClock()))

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def call(self, method: str, params: dict, overrides: dict | None = None) -> tuple[dict, str | None]:
        return self.run(self.answer(method, params, overrides))

    async def answer(self, method: str, params: dict, overrides: dict | None = None) -> tuple[dict, str | None]:
        """The same for a coroutine that ``run`` runs."""
        caller = self.ctx.access.identify("", os.getuid())
        return await dispatch(self.ctx, caller, Request(1, method, params, overrides=overrides))

    def close(self) -> None:
        self.run(lifecycle.close_context(self.ctx))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def opened_store(clock: SystemClock | None = None, **environ: str) -> Iterator[tuple[Store, Path]]:
    """Open a store in a directory of its own; yields it and the directory."""
    with tempfile.TemporaryDirectory(prefix="cp-") as directory:
        store = Store(Path(directory), clock, **environ)
        try:
            yield store, Path(directory)
        finally:
            store.close()
