"""A database that cannot be written to is read all the same, and one that can be again is written to again.

Contract: reads.free.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from cli_kit import runner
from powers import heed_modes, needs_modes

from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load


@pytest.fixture
def bound(home):
    """Run `cpersona` bound by the modes of files; directories are opened again afterwards."""
    needs_modes()
    yield runner(home, heed_modes)
    directory = Path(home["CPERSONA_DB_PATH"]).parent
    directory.chmod(0o700)
    for path in directory.iterdir():
        path.chmod(0o600 if path.is_file() else 0o700)
    # A daemon of a closed directory has its lock and socket elsewhere, where the fixture's end does not look.
    runner(home)(["daemon", "stop"])


@pytest.fixture
def written(bound, home):
    """A database with a row, at rest."""
    assert bound(["store", "the pump is in the cellar"]).returncode == 0
    assert bound(["daemon", "stop"]).returncode == 0
    return Path(home["CPERSONA_DB_PATH"])


def reads(bound):
    """Ask in every way that reads, and return the errors."""
    asked = {
        "health": ["health"],
        "recall": ["recall", "pump", "--json"],
        "list": ["list", "--json"],
        "get": ["get", "mem:1", "--json"],
        "export": ["export", "-"],
    }
    return {
        name: run.stderr
        for name, args in asked.items()
        if (run := bound(args)).returncode or ("cellar" not in run.stdout and name != "health")
    }


def assert_refused(run):
    assert run.returncode == 1 and "written" in run.stderr, run.stderr
    assert not any(word in run.stderr for word in ("disk space", "unlock")), run.stderr


def test_a_read_only_file_is_read_and_a_write_is_refused_with_the_reason(bound, written):
    written.chmod(0o400)
    assert reads(bound) == {}
    assert_refused(bound(["store", "another"]))
    assert_refused(bound(["delete", "mem:1"]))
    assert json.loads(bound(["daemon", "status", "--json"]).stdout)["read_only"] is True
    assert "read-only" in bound(["daemon", "status"]).stdout


def test_a_read_only_directory_is_read_and_a_write_is_refused_with_the_reason(bound, written, home):
    for path in written.parent.iterdir():
        path.chmod(0o400 if path.is_file() else 0o500)
    written.parent.chmod(0o500)
    assert reads(bound) == {}
    assert_refused(bound(["store", "another"]))
    assert bound(["daemon", "stop"]).returncode == 0


def test_a_file_that_was_read_only_for_a_while_can_be_written_to_again(bound, written):
    written.chmod(0o400)
    assert reads(bound) == {}
    assert bound(["daemon", "stop"]).returncode == 0
    left = [path for path in (Path(f"{written}-wal"), Path(f"{written}-shm")) if path.exists()]
    for path in left:
        path.chmod(0o400)
    written.chmod(0o600)
    assert bound(["store", "another"]).returncode == 0
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in left if path.exists())


def test_a_log_that_lost_its_modes_is_mended_at_the_next_start(bound, written):
    Path(f"{written}-shm").touch()
    os.chmod(f"{written}-shm", 0o400)
    run = bound(["store", "another"])
    assert run.returncode == 0, run.stderr


def test_a_directory_in_which_nothing_can_be_made_is_named(bound, home):
    directory = Path(home["CPERSONA_DB_PATH"]).parent
    directory.mkdir(mode=0o500)
    run = bound(["store", "first"])
    assert run.returncode == 4 and str(directory) in run.stderr and "disk space" not in run.stderr, run.stderr


def test_places_apart_are_used_only_where_nothing_can_be_written_beside_the_database(home):
    where = places(load(home), home)
    assert {os.path.dirname(path) for path in (where.lock, where.daemon_json, where.start_lock, where.socket)} == {
        os.path.dirname(where.db)
    }


def test_a_database_that_vanished_is_not_replaced_by_an_empty_one_without_a_word(home, daemon, run_cli):
    assert run_cli(["store", "before"]).stderr == ""
    os.rename(home["CPERSONA_DB_PATH"], home["HOME"] + "/elsewhere.db")
    after = run_cli(["store", "after"])
    assert after.returncode == 0 and "was moved away or deleted; a new, empty database" in after.stderr
    assert run_cli(["store", "later"]).stderr == ""


def test_a_database_moved_with_its_directory_is_served_at_its_new_place(hurried, home, daemon, run_cli):
    run_cli(["store", "before"])
    directory = Path(home["CPERSONA_DB_PATH"]).parent
    directory.rename(directory.with_name("moved"))
    there = run_cli(["list"], env={"CPERSONA_DB_PATH": str(directory.with_name("moved") / "t.db")})
    assert there.returncode == 0 and "before" in there.stdout, there.stderr
