"""An open store for a test body, and a model server."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator

import pytest
from assoc_kit import Body, ModelServer, opened


@pytest.fixture
def in_store() -> Callable:
    """Run ``body(world)`` against a fresh store and return what it returns."""

    def run(body: Body, **options: object):
        async def life():
            with tempfile.TemporaryDirectory() as directory:
                async with opened(directory, calibrate_on_model_change=False, **options) as world:
                    return await body(world)

        return asyncio.run(life())

    return run


@pytest.fixture
def model() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.stop()
