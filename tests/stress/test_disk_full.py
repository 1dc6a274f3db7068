"""A full disk is a typed failure that leaves nothing half-written; reads go on, and writes resume by themselves.

Two kinds of full disk: a file system of three megabytes (needs root), and a limit on the size of the daemon's files.

Contract: writes.durable.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from stress_kit import assert_index_equals_plain_scan, contents, pending

from cpersona_cli.wire import client, control
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load

pytestmark = pytest.mark.stress

MEGABYTE = 1024 * 1024
BODY = "words of a note, no long one, " * 38 + "and an end"  # a long one waits for passages too


def small_file_system(environ: dict[str, str]) -> Iterator[Callable[[], None]]:
    directory = os.path.dirname(environ["CPERSONA_DB_PATH"])
    os.makedirs(directory, mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "tmpfs", directory]
    if sys.platform != "linux" or os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system can be mounted by root on Linux only")
    try:
        yield lambda: subprocess.run(["mount", "-o", "remount,size=256m", directory], check=True)
        control.stop_daemon(load(environ), 15, environ)
    finally:
        subprocess.run(["umount", "-l", directory], check=True)


def limited_files(environ: dict[str, str]) -> Iterator[Callable[[], None]]:
    if not hasattr(resource, "prlimit"):
        pytest.skip("another process's limits can be changed on Linux only")
    with client.connect(load(environ), environ) as connection:
        pid = connection.hello["pid"]
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE, (3 * MEGABYTE, resource.RLIM_INFINITY))
    yield lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard)) and None


@pytest.fixture(params=[small_file_system, limited_files], ids=lambda made: made.__name__)
def make_room(request, with_model) -> Iterator[Callable[[], None]]:
    """A disk with little room for the daemon of ``with_model``; calling it makes more."""
    yield from request.param(with_model)


@pytest.fixture
def full(request) -> str:
    """The code of a write for which there is no room."""
    return "full" if request.node.callspec.params["make_room"] is small_file_system else "storage"


def test_a_full_disk_refuses_writes_keeps_answering_and_recovers(make_room, full, with_model):
    kept: dict[int, str] = {}

    def store(number: int) -> str | None:
        text = f"note {number}: {BODY}"
        answer, code = connection.call("store", {"agent_id": "a", "content": text})
        if code is None:
            kept[answer["id"]] = text
        else:
            assert answer["ok"] is False and answer["result"] == "rejected" and answer["reason"], answer
        return code

    with client.connect(load(with_model), with_model) as connection:
        pid = connection.hello["pid"]
        codes = []
        # A limit on the size of a file is no full disk, though it keeps as much from being written.
        while len(codes) < 2000 and len(codes) - codes.count(None) < 20:
            codes.append(store(len(codes)))
        assert set(codes) == {None, full}
        verdict = connection.call("check_health", {"checks": ["disk"]})[0]
        assert verdict["status"] == "unhealthy" and "latest write failed" in verdict["issues"][0]["message"]
        # Reads go on.
        listed, code = connection.call("list_memories", {"agent_id": "a", "limit": 5})
        assert code is None and listed["count"] == 5
        found, code = connection.call("recall", {"agent_id": "a", "query": "note 3"})
        assert code is None and found["messages"]
        make_room()
        # Writes resume by themselves, in the same daemon.
        for number in range(5000, 5020):
            assert store(number) is None
        while pending(connection):
            pass
        assert connection.hello["pid"] == pid
        assert connection.call("check_health", {"deep": True})[0]["issues"] == []
        assert control.stop_daemon(load(with_model), 30, with_model)
    assert contents(with_model["CPERSONA_DB_PATH"]) == kept
    assert assert_index_equals_plain_scan(with_model["CPERSONA_DB_PATH"]) == len(kept)


@pytest.fixture
def small(with_model) -> Iterator[Callable[[], None]]:
    yield from small_file_system(with_model)


def test_after_a_kill_on_a_full_disk_everything_can_be_read(small, with_model):
    """Not a byte can be written, neither of the note that says where the daemon is nor of an index."""
    kept: dict[int, str] = {}
    with client.connect(load(with_model), with_model) as connection:
        while True:
            text = f"note {len(kept)}: {BODY}"
            answer, code = connection.call("store", {"agent_id": "a", "content": text})
            if code is not None:
                break
            kept[answer["id"]] = text
        killed = connection.hello["pid"]
    os.kill(killed, signal.SIGKILL)
    where = places(load(with_model), with_model)
    filler = os.open(os.path.join(os.path.dirname(where.db), "filler"), os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while True:
            os.write(filler, bytes(512))
    except OSError as error:
        assert error.errno == errno.ENOSPC
    finally:
        os.close(filler)
    with client.connect(load(with_model), with_model) as connection:
        assert connection.hello["pid"] != killed
        got, code = connection.call("get_contents", {"agent_id": "a", "refs": [f"mem:{min(kept)}"]})
        assert code is None and got["items"][0]["content"] == kept[min(kept)], got
        assert connection.call("list_memories", {"agent_id": "a", "limit": 1})[0]["count"] == 1
        found, code = connection.call("recall", {"agent_id": "a", "query": "note 3"})
        assert code is None and found["messages"]
        warnings = connection.call("daemon_status", {})[0]["warnings"]
        assert [text for text in warnings if where.daemon_json in text and "No space left" in text], warnings
    found = control.find_daemon(load(with_model), with_model)
    assert found["answers"] is True
    os.unlink(os.path.join(os.path.dirname(where.db), "filler"))
    small()
    assert control.stop_daemon(load(with_model), 30, with_model) is True
    with client.connect(load(with_model), with_model) as connection:
        answer, code = connection.call("store", {"agent_id": "a", "content": "there is room again"})
        kept[answer["id"]] = "there is room again"
        while pending(connection):
            pass
        assert control.stop_daemon(load(with_model), 30, with_model) is True
    assert contents(with_model["CPERSONA_DB_PATH"]) == kept
