"""One daemon with chosen vectors and one without any for each module; an agent of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from contract_kit import Agent, Embedder

from cpersona_cli.wire import client
from cpersona_daemon.shared.settings import load


@pytest.fixture(scope="module")
def module_home(module_home: dict[str, str]) -> dict[str, str]:
    """The contracts speak of rank fusion where they name no mode."""
    return module_home | {"CPERSONA_RECALL_MODE": "rrf"}


@pytest.fixture
def home(home: dict[str, str]) -> dict[str, str]:
    """The same for the daemon of a single test."""
    return home | {"CPERSONA_RECALL_MODE": "rrf"}


@pytest.fixture(scope="module")
def embedder() -> Iterator[Embedder]:
    """The embedding service of a module's daemons."""
    service = Embedder()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def vector_daemon(module_home: dict[str, str], embedder: Embedder) -> Iterator[client.Connection]:
    """The daemon of a store with vectors, for all tests of a module."""
    environ = (
        module_home | embedder.settings | {"CPERSONA_DB_PATH": str(Path(module_home["HOME"]) / "vectors" / "v.db")}
    )
    with client.connect(load(environ), environ) as connection:
        yield connection


@pytest.fixture
def agent(vector_daemon: client.Connection, module_home: dict[str, str], embedder: Embedder) -> Agent:
    """A new agent in a store whose rows and questions have the vectors that the test chose."""
    return Agent(vector_daemon.call, Path(module_home["TMPDIR"]), embedder)


@pytest.fixture
def other(vector_daemon: client.Connection, module_home: dict[str, str], embedder: Embedder) -> Agent:
    """Another agent in the same store."""
    return Agent(vector_daemon.call, Path(module_home["TMPDIR"]), embedder)


@pytest.fixture
def reader(shared_daemon: client.Connection, module_home: dict[str, str]) -> Agent:
    """A new agent in a store without an embedder: recall is by words alone."""
    return Agent(shared_daemon.call, Path(module_home["TMPDIR"]), None)


@pytest.fixture
def daemon_with(connect: Callable[..., client.Connection], home: dict[str, str]) -> Callable[..., Agent]:
    """Start a daemon of one's own with settings: ``daemon_with(CPERSONA_X="1")`` is an agent in it."""

    def start(**settings: str) -> Agent:
        return Agent(connect(**settings).call, Path(home["TMPDIR"]), None)

    return start
