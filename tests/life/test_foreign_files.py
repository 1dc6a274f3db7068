"""A file that is somebody else's, named as the database, is named as that; neither it nor its directory changes.

Contract: files.damage.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

KINDS = {
    "text": "no SQLite database",
    "short": "no SQLite database",
    "binary": "no SQLite database",
    "marked": "the database of another program",
    "plain": "a SQLite database of another program",
}


def foreign(path: Path, kind: str) -> Path:
    if kind in ("text", "short", "binary"):
        path.write_bytes({"text": b"notes of a person\n" * 50, "short": b"x", "binary": os.urandom(8192)}[kind])
        return path
    with sqlite3.connect(path) as conn:
        conn.execute("CREATE TABLE theirs (a)")
        conn.execute("INSERT INTO theirs VALUES (1)")
        if kind == "marked":
            conn.execute("PRAGMA application_id = 42")
    conn.close()
    return path


def state(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in directory.rglob("*")}


@pytest.mark.parametrize("kind", KINDS)
def test_a_foreign_file_named_as_the_database_is_left_as_it_is_and_so_is_its_directory(home, run_cli, kind):
    directory = Path(home["HOME"]) / "theirs"
    directory.mkdir()
    path = foreign(directory / "file", kind)
    before = state(path.parent)
    for words in (["store", "x"], ["list"], ["daemon", "start"]):
        done = run_cli([*words, "--db", str(path)])
        assert done.returncode == 4 and done.stderr.count("\n") == 1, done
        assert KINDS[kind] in done.stderr and str(path) in done.stderr
        assert state(path.parent) == before
    daemon = subprocess.run(
        [sys.executable, "-m", "cpersona_daemon.main", "--foreground"],
        capture_output=True,
        text=True,
        env=home | {"CPERSONA_DB_PATH": str(path)},
        timeout=60,
    )
    assert daemon.returncode != 0 and KINDS[kind] in daemon.stderr
    for words in (["daemon", "status"], ["daemon", "stop"], ["daemon", "socket"]):
        run_cli([*words, "--db", str(path)])
    assert state(path.parent) == before


@pytest.mark.parametrize("kind", ["text", "marked"])
def test_nothing_is_queued_beside_a_foreign_file(home, run_cli, kind):
    directory = Path(home["HOME"]) / "theirs"
    directory.mkdir()
    path = foreign(directory / "file", kind)
    before = state(directory)
    done = run_cli(["store", "--queue", "x", "--db", str(path)])
    assert done.returncode != 0 and KINDS[kind] in done.stderr and str(path) in done.stderr, done
    assert state(directory) == before


def test_a_start_that_fails_leaves_no_lock_that_was_not_there(home, run_cli):
    directory = Path(home["CPERSONA_DB_PATH"]).parent
    done = run_cli(["store", "x"], env={"CPERSONA_EMBEDDING_MODE": "http"})
    assert done.returncode == 4 and "CPERSONA_EMBEDDING_URL" in done.stderr
    assert not directory.exists() or state(directory) == {}
    assert run_cli(["store", "x"]).stdout == "mem:1\n"


@pytest.mark.parametrize("made", ["", "touched"])
def test_an_empty_file_becomes_a_database(home, run_cli, made):
    path = Path(home["CPERSONA_DB_PATH"])
    path.parent.mkdir(mode=0o700)
    if made:
        path.touch(mode=0o600)
    assert run_cli(["store", "x"]).stdout == "mem:1\n"
    assert Path(f"{path}.lock").exists()
