"""A model server for the stress tests that need vectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stress_kit import model_server


@pytest.fixture
def with_model(home: dict[str, str]) -> Iterator[dict[str, str]]:
    """The clean environment with an http embedder that answers."""
    with model_server() as address:
        home["CPERSONA_EMBEDDING_MODE"], home["CPERSONA_EMBEDDING_URL"] = "http", address
        yield home
