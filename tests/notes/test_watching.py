"""Notes that are kept up to date, told of changes and by looking. Contract: import.watch."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest

from cpersona_cli.notes import watching

HOW = {"told": [], "looking": ["--every", "0.1"]}


class Watching:
    """`import --watch` as a process; ``round`` is the next line of its JSON, ``said`` what it says on stderr."""

    def __init__(self, environ, root, words):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cpersona_cli", "import", "--markdown", str(root), "--watch", *words],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._left = {}

    def _line(self, stream):
        until, left = time.monotonic() + 30, self._left.get(stream, b"")
        while b"\n" not in left:
            assert select.select([stream], [], [], max(0, until - time.monotonic()))[0], (left, self.process.poll())
            data = os.read(stream.fileno(), 65_536)
            assert data, (left, self.process.wait())
            left += data
        line, _, self._left[stream] = left.partition(b"\n")
        return line.decode()

    def round(self) -> dict:
        return json.loads(self._line(self.process.stdout))

    def said(self) -> str:
        return self._line(self.process.stderr)

    def end(self) -> dict:
        self.process.send_signal(signal.SIGINT)
        totals = self.round()
        while not totals.get("ended"):
            totals = self.round()
        assert self.process.wait(30) == 130
        return totals


@pytest.fixture
def watch(module_home, notes, request):
    """Watch the directory of notes, told of changes or by looking; answers what it does."""
    if request.param == "told" and not watching.told():
        pytest.skip("watchfiles is not installed")
    started = []

    def start(*words):
        started.append(Watching(module_home, notes.root, ["--agent", notes.agent, *HOW[request.param], *words]))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()
        one.process.stdout.close()
        one.process.stderr.close()


both = pytest.mark.parametrize("watch", list(HOW), indirect=True)


@both
def test_what_changes_is_brought_up_to_date_until_ctrl_c(notes, watch):
    notes.write("a.md", "alpha")
    seen = watch("--json", "--prune", "--yes")
    assert seen.round()["stored"] == 1
    notes.write("sub/b.md", "beta")
    assert seen.round()["stored"] == 1
    notes.write("a.md", "alpha anew")
    assert seen.round()["updated"] == 1
    os.rename(notes.root / "a.md", notes.root / "c.md")
    told = seen.round()
    assert (told["stored"], told["deleted"]) == (1, 1)
    assert notes.texts() == {"sub/b.md": "b\n\nbeta", "c.md": "c\n\nalpha anew"}
    assert seen.end() == {
        "ok": True,
        "ended": True,
        "files": 2,
        "stored": 3,
        "updated": 1,
        "skipped": 1,
        "rejected": 0,
        "deleted": 1,
    }


@both
def test_a_directory_that_goes_is_waited_for_and_loses_no_note(notes, watch):
    notes.write("a.md", "alpha")
    seen = watch("--prune", "--yes")
    assert seen.said().startswith("1 stored in 1 file")
    os.rename(notes.root, notes.root.parent / "away")
    assert "is gone; its notes stay, and it is waited for" in seen.said()
    assert notes.rows()
    shutil.move(notes.root.parent / "away", notes.root)
    assert "is there again" in seen.said()
    notes.write("b.md", "beta")
    assert seen.said().startswith("1 stored in 2 files")
    seen.process.send_signal(signal.SIGINT)
    assert seen.process.wait(30) == 130 and b"stored\t2\n" in seen.process.stdout.read()


@both
def test_a_daemon_that_restarts_is_found_again(notes, watch):
    notes.write("a.md", "alpha")
    seen = watch("--json")
    assert seen.round()["stored"] == 1
    assert notes.cli(["daemon", "stop"]).returncode == 0
    notes.write("b.md", "beta")
    assert seen.round()["stored"] == 1
    assert seen.end()["stored"] == 2


@pytest.mark.parametrize("watch", ["looking"], indirect=True)
def test_a_store_that_cannot_be_reached_is_said_once_and_tried_again(notes, watch, module_home):
    notes.write("a.md", "alpha")
    seen = watch()
    seen.said()
    database = module_home["CPERSONA_DB_PATH"]
    assert notes.cli(["daemon", "stop"]).returncode == 0
    os.rename(database, f"{database}.away")
    os.mkdir(database)
    notes.write("b.md", "beta")
    assert seen.said().endswith("; it is tried again")
    os.rmdir(database)
    os.rename(f"{database}.away", database)
    assert seen.said() == "the store answers again" and seen.said().startswith("1 stored in 2 files")


def test_without_what_tells_of_changes_it_says_that_it_looks(notes, module_home, tmp_path):
    (tmp_path / "watchfiles.py").write_text("raise ImportError")
    environ = module_home | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{module_home.get('PYTHONPATH', '')}"}
    seen = Watching(environ, notes.root, ["--agent", notes.agent])
    assert seen.said().startswith(
        "looking every 2 s; with `pip install 'cpersona-cli[watch]'` changes are seen at once"
    )
    seen.process.send_signal(signal.SIGINT)
    assert seen.process.wait(30) == 130
    seen.process.stdout.close()
    seen.process.stderr.close()


def test_where_the_system_cannot_tell_it_looks(notes, module_home, tmp_path):
    (tmp_path / "watchfiles.py").write_text("def watch(*paths, **more):\n    raise OSError('no room')\n")
    environ = module_home | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{module_home.get('PYTHONPATH', '')}"}
    seen = Watching(environ, notes.root, ["--agent", notes.agent])
    assert seen.said().startswith("nothing new in 0 files; none in ")
    assert seen.said() == "looking every 2 s, the system cannot tell of changes: no room"
    seen.process.send_signal(signal.SIGINT)
    assert seen.process.wait(30) == 130
    seen.process.stdout.close()
    seen.process.stderr.close()


def test_an_empty_directory_is_filled(notes, module_home):
    seen = Watching(module_home, notes.root, ["--agent", notes.agent, "--every", "0.1", "--json"])
    assert seen.round()["files"] == 0
    notes.write("a.md", "alpha")
    assert seen.round()["stored"] == 1 and seen.end()["stored"] == 1
    seen.process.stdout.close()
    seen.process.stderr.close()


def test_a_burst_of_changes_is_one(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "SETTLE_SECONDS", 0.001)
    (tmp_path / "a.md").write_text("one")
    looks = iter(watching.by_looking([str(tmp_path)], 0.001))
    assert next(looks) and not next(looks)
    (tmp_path / "a.md").write_text("another")
    (tmp_path / "b.md").write_text("one")
    assert next(looks) and not next(looks)
    assert set(watching.picture([str(tmp_path), str(tmp_path / "none")])) == {f"{tmp_path}/a.md", f"{tmp_path}/b.md"}
