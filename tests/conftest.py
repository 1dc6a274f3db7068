"""What every test may ask for: a clean home, a daemon of its own, and the command line."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_kit import runner
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from nursery_kit import Nursery

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.settings import load

# How long an example takes says how busy the machine is, and nothing of what is tested.
hypothesis_settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("busy")

PASSED_ON = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")


# The modules about how a daemon starts, and the whole story of one installation: there each is a Python that began by
# itself. From `cpersona_daemon.main.main` on a birth is a start like any other.
START_THEMSELVES = {"test_start_and_stop", "test_opening", "test_service_files", "test_journey", "test_kill_9"}


@contextmanager
def clean_home(nursery: Nursery | None = None) -> Iterator[dict[str, str]]:
    """A clean environment whose every place lies in a fresh directory with a short path; its daemons end with the
    block, and are born by the nursery that is given.
    """
    # A socket's path may have about a hundred bytes, fewer than pytest's own directories take.
    root = Path(tempfile.mkdtemp(prefix="cp-", dir="/tmp")).resolve()
    environ = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environ |= {
        "HOME": str(root),
        "TMPDIR": str(root / "tmp"),
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "XDG_DATA_HOME": str(root / "data"),
        "XDG_STATE_HOME": str(root / "state"),
        "XDG_CONFIG_HOME": str(root / "config"),
        "CPERSONA_DB_PATH": str(root / "db" / "t.db"),
        "CPERSONA_EMBEDDING_MODE": "none",
        "CPERSONA_CALIBRATE_ON_MODEL_CHANGE": "false",
    }
    if nursery is not None:
        environ |= nursery.births(environ)
    (root / "tmp").mkdir()
    try:
        yield environ
    finally:
        try:
            for lock in root.rglob("*.lock"):
                if not lock.name.endswith(".start.lock"):
                    end_daemon(environ | {"CPERSONA_DB_PATH": str(lock)[: -len(".lock")]})
        finally:
            # A daemon that is there all the same leaves by itself once its database is gone.
            shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """What bears the daemons of this test process."""
    with tempfile.TemporaryDirectory(prefix="cp-", dir="/tmp") as directory:
        nursery = Nursery(Path(directory))
        yield nursery
        nursery.close()


@pytest.fixture(scope="module")
def bearing(request: pytest.FixtureRequest, nursery: Nursery) -> Nursery | None:
    """The nursery; none where a module's subject is how a daemon starts."""
    return None if request.path.stem in START_THEMSELVES else nursery


@pytest.fixture
def home(bearing: Nursery | None) -> Iterator[dict[str, str]]:
    """A clean environment, and the end of every daemon that the test started in it."""
    with clean_home(bearing) as environ:
        yield environ


@pytest.fixture(scope="module")
def module_home(bearing: Nursery | None) -> Iterator[dict[str, str]]:
    """A clean environment for all tests of a module; daemons of several databases may run in it."""
    with clean_home(bearing) as environ:
        yield environ


@pytest.fixture(scope="module")
def other_home(bearing: Nursery | None) -> Iterator[dict[str, str]]:
    """A second clean environment for all tests of a module: another machine."""
    with clean_home(bearing) as environ:
        yield environ


@pytest.fixture(scope="module")
def shared_daemon(module_home: dict[str, str]) -> Iterator[client.Connection]:
    """One daemon for all tests of a module, where each leaves it as it was."""
    with client.connect(load(module_home), module_home) as connection:
        yield connection


def end_daemon(environ: dict[str, str]) -> None:
    """Stop the daemon of an environment; one that does not leave is killed."""
    settings = load(environ)
    note = control.find_daemon(settings, environ)
    if note is None:
        return
    try:
        gone = control.stop_daemon(settings, 15, environ)
    except client.CallFailed:
        gone = False
    if not gone and note.get("pid"):
        os.kill(note["pid"], signal.SIGKILL)


@pytest.fixture
def connect(home: dict[str, str]) -> Iterator[Callable[..., client.Connection]]:
    """Open connections to the daemon of ``home``, with more environment variables where a test wants them."""
    opened: list[client.Connection] = []

    def make(start: bool = True, **more: str) -> client.Connection:
        environ = home | more
        opened.append(client.connect(load(environ), environ, start))
        return opened[-1]

    yield make
    for connection in opened:
        connection.close()


@pytest.fixture
def daemon(connect: Callable[..., client.Connection]) -> client.Connection:
    """A started daemon, as a connection to it: ``daemon.call(method, params)`` answers (response, code)."""
    return connect()


# What a daemon waits for by the clock: how often it looks at its files, and how long for a client's first words.
HURRY = """
import sys
if "cpersona_daemon.main" in sys.orig_argv:
    from cpersona_daemon.shared import fields
    fields.HELLO_SECONDS = fields.PARTIAL_FRAME_SECONDS = 1.0
    from cpersona_daemon.life import lifecycle
    lifecycle.TICK_SECONDS = 0.5
"""


@pytest.fixture
def hurried(home: dict[str, str]) -> dict[str, str]:
    """The environment of ``home``, whose daemons wait a tenth of their usual times."""
    directory = Path(home["HOME"]) / "hurry"
    directory.mkdir()
    (directory / "sitecustomize.py").write_text(HURRY)
    home["PYTHONPATH"] = os.pathsep.join(filter(None, (str(directory), home.get("PYTHONPATH"))))
    return home


@pytest.fixture
def run_cli(home: dict[str, str]) -> Callable[..., subprocess.CompletedProcess]:
    """Run `cpersona` with the environment of ``home``."""
    return runner(home)


@pytest.fixture(scope="module")
def shared_cli(
    shared_daemon: client.Connection, module_home: dict[str, str]
) -> Callable[..., subprocess.CompletedProcess]:
    """Run `cpersona` against the one daemon of a module."""
    return runner(module_home)
