"""Settings, an open store and a model server for the calibration's tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from measured_store import ModelServer, opened

from cpersona_daemon.context import Context
from cpersona_daemon.shared import paths
from cpersona_daemon.shared import settings as settings_module


@pytest.fixture
def make_settings(tmp_path):
    def make(**options: object) -> settings_module.Settings:
        given = {"db_path": str(tmp_path / "t.db"), "embedding_mode": "none", **options}
        return settings_module.load({"HOME": str(tmp_path)}, given)

    return make


@pytest.fixture
def in_store(make_settings, tmp_path):
    """Run ``body(ctx)`` in a loop against the open store: what a daemon's life is, without the daemon."""

    def run(body: Callable[[Context], Awaitable], **options: object):
        async def life():
            settings = make_settings(**options)
            async with opened(settings, paths.places(settings, {"HOME": str(tmp_path)})) as ctx:
                return await body(ctx)

        return asyncio.run(life())

    return run


@pytest.fixture
def model_server():
    server = ModelServer()
    yield server
    server.stop()
