"""A model server for the stress tests that need vectors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stress_kit import StressModel


@pytest.fixture
def with_model(home: dict[str, str]) -> Iterator[dict[str, str]]:
    """The clean environment with an http embedder that answers."""
    model = StressModel()
    home["CPERSONA_EMBEDDING_MODE"], home["CPERSONA_EMBEDDING_URL"] = "http", model.url
    yield home
    model.stop()
