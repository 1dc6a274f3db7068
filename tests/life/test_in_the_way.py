"""Whatever was put in the place of a file of ours: nothing hangs, nothing of others is written to, and it is named.

Files that only help (the note, the calibration, the log) never keep a daemon from starting.

Contract: files.damage, paths.confined.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cpersona_cli.wire import control
from cpersona_daemon.life import logfile, ownership
from cpersona_daemon.shared.paths import Places, places
from cpersona_daemon.shared.settings import load

THEIRS = "what stands here is somebody else's\n"
SECONDS = 20  # what no command may take: the waits that a pipe or a link caused had no end, or that of a deadline


@pytest.fixture
def where(home) -> Places:
    """Where everything of the database stands; its directory is there, and a file of somebody else."""
    where = places(load(home), home)
    for path in (where.db, where.log):
        os.makedirs(os.path.dirname(path), mode=0o700)
    Path(home["HOME"], "theirs").write_text(THEIRS)
    return where


@pytest.fixture
def cli(home) -> Callable[..., subprocess.CompletedProcess]:
    def run(*words: str, **more: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-m", "cpersona_cli", *words],
            env=home | more,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
            cwd=home["HOME"],
        )

    return run


def put(kind: str, path: str, home: dict[str, str]) -> None:
    """Put something else than a regular file at a path."""
    if kind == "link":
        os.symlink(os.path.join(home["HOME"], "theirs"), path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        os.makedirs(os.path.join(path, "inside"))
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)


KINDS = ("link", "pipe", "directory", "socket")
kinds = pytest.mark.parametrize("kind", KINDS)
NAMES = {"link": "a symbolic link", "pipe": "a named pipe", "directory": "a directory", "socket": "a socket"}


@pytest.fixture(autouse=True)
def nothing_of_theirs_changes(home):
    yield
    theirs = Path(home["HOME"], "theirs")
    assert not theirs.exists() or theirs.read_text() == THEIRS


# -- what only helps


@kinds
def test_files_that_only_help_keep_nothing_from_working(home, where, cli, kind):
    moved = {path: os.path.basename(path) + ".aside-1" for path in (where.daemon_json, where.calibration)}
    for path in (*moved, where.calibration + ".previous", where.log):
        put(kind, path, home)
    assert cli("store", "one").stdout == "mem:1\n"
    status = json.loads(cli("daemon", "status", "--json").stdout)
    told = [text for text in status["warnings"] if NAMES[kind] in text]
    assert f"no log is written to {where.log}: {NAMES[kind]} stands there, where a file belongs; move it away" in told
    assert all([text for text in told if name in text] for name in moved.values()), told
    assert moved[where.calibration] in status["calibration"]["problem"]
    assert cli("precision", "set", "strict").returncode == 0
    assert cli("precision", "get").stdout.split()[0] == "strict"
    assert all(os.path.isfile(path) and not os.path.islink(path) for path in (*moved, where.calibration + ".previous"))
    logs = cli("daemon", "logs")
    assert logs.returncode == 1 and NAMES[kind] in logs.stderr
    assert cli("health").returncode == 0
    assert cli("backup", "b.tar").returncode == 0
    assert THEIRS.strip().encode() not in Path(home["HOME"], "b.tar").read_bytes()
    assert cli("daemon", "stop").stdout == "stopped\n"


def test_no_temporary_name_leads_anywhere_else(home, where):
    """The names that temporary files had could be guessed, and a link in their place was written through."""
    for name in (f"{where.daemon_json}.{os.getpid()}.tmp", where.calibration + ".tmp"):
        put("link", name, home)
    ownership.write_note(where, {"pid": os.getpid()})
    assert ownership.read_note(where) == {"pid": os.getpid()}


@kinds
def test_the_log_takes_turns_although_something_stands_where_the_old_one_goes(home, where, kind, monkeypatch):
    monkeypatch.setattr(logfile, "BYTES", 300)
    put(kind, where.log + ".1", home)
    root, before = logging.getLogger(), logging.getLogger().handlers[:]
    level = root.level
    try:
        assert logfile.start("info", where.log) is None
        for number in range(20):
            logging.getLogger("cpersona.test").info("line %d of a log", number)
    finally:
        for handler in set(root.handlers) - set(before):
            root.removeHandler(handler)
            handler.close()
        root.setLevel(level)
    logs = [path for path in (where.log + ".2", where.log + ".1", where.log) if os.path.isfile(path)]
    kept = "".join(Path(path).read_text() for path in logs)
    assert "line 19 " in kept and "line 18 " in kept
    assert os.path.isfile(where.log + ".1") and os.path.getsize(where.log) <= 300
    assert os.path.lexists(where.log + ".1.aside-1")


def test_a_daemon_starts_and_is_found_where_its_note_cannot_be_written(home, where, cli):
    """As on a full disk: a note that an earlier daemon left is no reason not to start, nor is it believed."""
    Path(where.daemon_json).write_text(json.dumps({"pid": 1, "socket": home["HOME"] + "/gone.sock"}))
    blocked = (
        "import os, sys; from cpersona_daemon import main; from cpersona_daemon.life import ownership\n"
        "def full(*_): raise OSError(28, 'No space left on device')\n"
        "ownership.files.replace = full\nsys.exit(main.main())"
    )
    command, pipe = [sys.executable, "-c", blocked, "--foreground", "--ready-fd", "1"], subprocess.PIPE
    with subprocess.Popen(command, env=home, stdout=pipe, stderr=pipe) as process:
        assert json.loads(process.stdout.readline())["ready"] is True
        assert control.find_daemon(load(home), home)["pid"] == process.pid
        warnings = json.loads(cli("daemon", "status", "--json").stdout)["warnings"]
        assert [w for w in warnings if where.daemon_json in w and "No space left on device" in w], warnings
        other = subprocess.run(
            [sys.executable, "-m", "cpersona_daemon.main", "--foreground"],
            env=home,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert other.returncode == 6 and "already" in other.stderr
        assert cli("daemon", "stop").stdout == "stopped\n"
        assert process.wait(SECONDS) == 0
        process.stderr.close()
    assert not os.path.exists(where.daemon_json)


# -- what everything depends on


@kinds
def test_what_stands_in_a_locks_place_is_said_at_once_and_stays(home, where, cli, kind):
    for path in (where.start_lock, where.lock):
        put(kind, path, home)
        was = os.lstat(path).st_ino
        done = cli("store", "one")
        assert done.returncode == 4 and done.stderr.count("\n") == 1, done
        assert f"{path} cannot be opened: {NAMES[kind]} stands there, where a file belongs; move it away" in done.stderr
        assert "disk space" not in done.stderr and "config show" not in done.stderr
        assert cli("daemon", "status").returncode == 4
        assert cli("daemon", "stop").stdout == "not running\n"
        assert os.lstat(path).st_ino == was
        shutil.rmtree(path) if kind == "directory" else os.unlink(path)
    assert cli("store", "one").stdout == "mem:1\n"


@kinds
def test_a_config_file_that_is_none_is_named_and_left_out(home, cli, kind, where):
    directory = Path(home["XDG_CONFIG_HOME"]) / "cpersona"
    directory.mkdir(parents=True)
    Path(home["HOME"], "theirs").unlink()
    put(kind, str(directory / "config.toml"), home)
    done = cli("store", "one")
    assert done.stdout == "mem:1\n"
    if kind == "link":
        # A person may keep the file elsewhere.
        Path(home["HOME"], "theirs").write_text('agent = "zoe"\n')
        assert json.loads(cli("config", "show", "agent", "--json").stdout)["settings"][0]["value"] == "zoe"
        Path(home["HOME"], "theirs").unlink()
    else:
        assert f"{NAMES[kind]} stands there" in done.stderr


@pytest.mark.parametrize("kind", ["pipe", "directory"])
def test_an_access_file_that_is_none_keeps_the_daemon_from_starting_at_once(home, cli, kind, where):
    put(kind, home["HOME"] + "/acl", home)
    done = cli("store", "one", CPERSONA_ACL_FILE=home["HOME"] + "/acl")
    assert done.returncode == 4 and f"{NAMES[kind]} stands there" in done.stderr


@pytest.mark.parametrize("kind", ["pipe"])
def test_a_database_that_is_none_is_said_at_once_by_every_command(home, cli, kind, where):
    put(kind, where.db, home)
    assert "no regular file" in cli("store", "one").stderr
    done = cli("doctor")
    assert done.returncode == 1 and f"{NAMES[kind]} stands there" in done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_stands_in_the_spools_place_loses_nothing_and_holds_nothing(home, where, cli, kind):
    put(kind, where.spool, home)
    done = cli("store", "--queue", "one")
    assert done.returncode == 1 and where.spool in done.stderr
    assert cli("store", "two").returncode == 0 and cli("list").returncode == 0


@kinds
def test_what_stands_in_the_place_of_a_refused_write_holds_nothing(home, where, cli, kind):
    failed = os.path.join(where.spool, "failed")
    os.makedirs(where.spool, mode=0o700)
    if kind != "directory":
        put(kind, failed, home)
    Path(where.spool, "1-1-0.json").write_text('{"method": "daemon_stop", "params": {}}')
    assert cli("store", "one").stdout == "mem:1\n"
    assert cli("list").returncode == 0
    assert sorted(os.listdir(failed)) == ["1-1-0.json"]
    for name in (".2-1-0.json", "2-1-0.json", ".3-1-0.json.reason", "3-1-0.json.reason", "3-1-0.json"):
        put(kind, os.path.join(failed, name), home)
    put(kind, os.path.join(where.spool, "3-1-0.json"), home)
    Path(where.spool, "2-1-0.json").write_text('{"method": "daemon_stop", "params": {}}')
    assert cli("list").returncode == 0
    spool = json.loads(cli("daemon", "status", "--json").stdout)["spool"]
    assert spool["waiting"] == 0 and "problem" not in spool
    assert json.loads(Path(failed, "2-1-0.json").read_text())["code"] == "invalid_params"
    assert not os.path.lexists(os.path.join(where.spool, "3-1-0.json"))
    assert os.path.isfile(os.path.join(failed, "3-1-0.json.reason"))
    assert cli("daemon", "stop").stdout == "stopped\n"
