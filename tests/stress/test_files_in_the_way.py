"""Every file beside the database replaced by something else, at rest and under a running daemon: no row is lost, nobody
waits for ever.

An answer may be refused with a reason that names what is in the way; what was acknowledged stands once that is gone.
The full form tries every file with every replacement, the short one a few by chance.

Contract: files.damage.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from stress_kit import FULL, StressModel, pending

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load
from cpersona_daemon.vectors.local.names import SUFFIXES

pytestmark = pytest.mark.stress

FILES = (
    "-wal",
    "-shm",
    ".lock",
    ".start.lock",
    ".daemon.json",
    ".calibration.json",
    ".calibration.json.previous",
    ".spool",
    ".sock",
    *(f".{kind}.vec{suffix}" for kind in ("memories", "episodes") for suffix in SUFFIXES),
)
KINDS = ("nothing", "directory", "link", "fifo", "bytes", "older")
TRIALS = list(itertools.product(FILES, KINDS, ("at rest", "running")))
# SQLite takes a log of the same database for its own, however old it is: nobody can put one back.
TRIALS = [trial for trial in TRIALS if trial[:2] != ("-wal", "older")]
if not FULL:
    TRIALS = random.Random(5).sample(TRIALS, 8)


@pytest.fixture(scope="module")
def prepared(module_home, tmp_path_factory):
    """Two moments of one database with vectors, an older and a newer one, each as a directory of files at rest; and the
    model's address.
    """
    model, kept = StressModel(), tmp_path_factory.mktemp("moments")
    environ = module_home | {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": model.url}
    for moment in ("older", "newer"):
        with client.connect(load(environ), environ) as connection:
            for number in range(15):
                assert connection.call("store", {"agent_id": "a", "content": f"{moment} note {number}"})[1] is None
            connection.call("archive_episode", {"agent_id": "a", "summary": f"{moment} day"})
            connection.call("calibrate_threshold", {"agent_id": "a"})
            while pending(connection):
                pass
        assert control.stop_daemon(load(environ), 30, environ)
        shutil.copytree(Path(environ["CPERSONA_DB_PATH"]).parent, kept / moment)
    yield kept, model.url
    model.stop()


def put(path: Path, kind: str, older: Path, victim: Path) -> None:
    """Have ``kind`` stand at a path, and nothing of what stood there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    if kind == "directory":
        path.mkdir()
        (path / "inside").write_text("theirs")
    elif kind == "link":
        path.symlink_to(victim)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "bytes":
        path.write_bytes(random.Random(1).randbytes(5000))
    elif kind == "older" and older.is_file():
        shutil.copy(older, path)


@pytest.mark.parametrize("name, kind, when", TRIALS)
def test_whatever_stands_beside_the_database_no_row_is_lost(home, prepared, name, kind, when):
    kept, url = prepared
    home |= {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": url}
    database = Path(home["CPERSONA_DB_PATH"])
    shutil.copytree(kept / "newer", database.parent)
    victim = Path(home["HOME"]) / "victim"
    victim.write_text("a file of somebody else")
    path = Path(str(database) + name)
    acknowledged: dict[int, str] = {}
    told: list[str] = []

    def store(text: str) -> None:
        try:
            with client.connect(load(home), home) as connection:
                answer, code = connection.call("store", {"agent_id": "a", "content": text}, deadline_ms=10_000)
                if code is None:
                    acknowledged[answer["id"]] = text
                else:
                    told.append(f"{code}: {answer}")
                found, code = connection.call("recall", {"agent_id": "a", "query": "newer note 3"}, deadline_ms=10_000)
                if code is None:
                    assert "newer note 3" in [row["content"] for row in found["messages"]]
                else:
                    told.append(f"{code}: {found}")
        except client.CallFailed as error:
            told.append(f"{error.code}: {error.message}")

    if when == "running":
        store("before it was there")
        assert acknowledged and not told
    put(path, kind, kept / "older" / path.name, victim)
    for number in range(3):
        store(f"while it was there {number}")
    assert not [line for line in told if line.startswith(("internal", "timed_out"))], told
    assert victim.read_text() == "a file of somebody else"
    # Whoever has read the reason takes it away.
    note = control.find_daemon(load(home), home)
    if note is not None:
        control.stop_daemon(load(home), 30, home)
    if path.is_symlink() or path.is_fifo() or path.is_dir() or name == ".sock":
        put(path, "nothing", path, victim)
    told.clear()
    store("after it was gone")
    assert acknowledged and not told, told
    assert control.stop_daemon(load(home), 30, home)
    with closing(sqlite3.connect(database)) as conn:
        assert conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = dict(conn.execute("SELECT id, content FROM memories"))
    assert {number: rows.get(number) for number in acknowledged} == acknowledged
    assert {f"{moment} note {number}" for moment in ("older", "newer") for number in range(15)} <= set(rows.values())
    assert len(set(rows.values())) == len(rows)
    assert places(load(home), home).db == str(database)
