"""Deadlines, bounds and slow readers: busy or timed out instead of growth, and nobody else notices."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import msgpack
import pytest
from daemon_helpers import HELLO, Raw

from cpersona_daemon.wire import fields


@pytest.fixture
def path(daemon) -> str:
    return daemon.places.socket


@contextmanager
def held_writer(database: str) -> Iterator[None]:
    """Keep the database's write lock, so that every write waits; reads go on."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def test_a_deadline_that_passes_is_answered_in_the_shape_of_the_method(daemon):
    with held_writer(daemon.places.db):
        response, code = daemon.call("store", {"agent_id": "a", "content": "late"}, deadline_ms=200)
    assert (code, response["ok"], response["result"]) == ("timed_out", False, "rejected")
    assert daemon.call("store", {"agent_id": "a", "content": "next"})[0]["result"] == "stored"


def test_reads_go_on_while_the_writer_waits(daemon, connect):
    daemon.call("store", {"agent_id": "a", "content": "there"})
    with held_writer(daemon.places.db):
        daemon.send("store", {"agent_id": "a", "content": "waits"})
        assert len(connect().call("list_memories", {"agent_id": "a"}, deadline_ms=5_000)[0]["memories"]) == 1
    assert daemon.receive()[1]["result"] == "stored"


def test_a_write_asked_again_after_its_deadline_is_done_once(daemon):
    with held_writer(daemon.places.db):
        daemon.send("store", {"agent_id": "a", "content": "once", "id": "m1"}, deadline_ms=200, key="the-key")
        assert daemon.receive()[2] == "timed_out"
    daemon.send("store", {"agent_id": "a", "content": "once", "id": "m1"}, key="the-key")
    first = daemon.receive()[1]
    daemon.send("store", {"agent_id": "a", "content": "once", "id": "m1"}, key="the-key")
    assert daemon.receive()[1] == first and first["result"] == "stored"


def test_more_requests_at_once_than_the_bound_are_busy(daemon, path):
    per, connections = fields.MAX_IN_FLIGHT_PER_CONNECTION, fields.MAX_IN_FLIGHT // fields.MAX_IN_FLIGHT_PER_CONNECTION
    crowd = [Raw(path).greet() for _ in range(connections)]
    with held_writer(daemon.places.db):
        for at, one in enumerate(crowd):
            one.sock.sendall(b"".join(_frame({"id": n, "method": "store", "params": {"agent_id": "a", "content": f"{at}-{n}"}}) for n in range(per)))
        late = Raw(path).greet()
        answer = {}
        while answer.get("code") != "busy":     # the last of the crowd's frames may still be on their way
            late.send({"id": 1, "method": "persistence_status"})
            answer = late.read()
        assert answer["response"]["ok"] is False and answer["id"] == 1
    for at, one in enumerate(crowd):
        assert {one.read()["response"]["result"] for _ in range(per)} == {"stored"}, at
        one.sock.close()
    assert daemon.call("daemon_status", {})[1] is None


def test_a_long_pipeline_is_slowed_down_and_answered_whole(daemon):
    count = 20 * fields.MAX_IN_FLIGHT_PER_CONNECTION
    for number in range(count):
        daemon.send("store", {"agent_id": "a", "content": f"note {number}"})
    assert [daemon.receive()[1]["result"] for _ in range(count)] == ["stored"] * count
    assert daemon.waiting == 0


def test_more_connections_than_the_bound_are_told_busy(daemon, path):
    held = []
    try:
        while True:
            one = Raw(path)
            held.append(one)
            one.send(HELLO)
            answer = one.read()
            if "code" in answer:
                break
        assert answer["code"] == "busy" and answer["id"] is None
        assert len(held) == fields.MAX_CONNECTIONS      # the fixture's own is the one that makes it too many
        assert daemon.call("persistence_status", {})[1] is None
    finally:
        for one in held:
            one.sock.close()
    assert Raw(path).greet()


def test_a_client_that_does_not_read_is_no_longer_read_and_costs_others_nothing(daemon, path):
    for number in range(60):
        daemon.send("store", {"agent_id": "a", "content": f"{number} " + "x" * 15_000})
    while daemon.waiting:
        daemon.receive()
    slow = Raw(path).greet()
    slow.sock.setblocking(False)
    request, sent = _frame({"id": 1, "method": "list_memories", "params": {"agent_id": "a", "limit": 500}}), 0
    with pytest.raises(BlockingIOError):
        while True:
            sent += slow.sock.send(request)
            assert sent < 100_000_000
            if sent % 50 == 0:
                daemon.call("persistence_status", {})
    assert daemon.call("list_memories", {"agent_id": "a"}, deadline_ms=10_000)[1] is None
    assert _resident(daemon.hello["pid"]) < 600 << 20
    slow.sock.setblocking(True)
    slow.sock.settimeout(30)
    assert [slow.read()["id"] for _ in range(20)] == [1] * 20      # it may go on as soon as it reads
    slow.sock.close()


def test_a_pipeline_of_large_answers_does_not_lock_up(daemon):
    for number in range(30):
        daemon.call("store", {"agent_id": "a", "content": f"{number} " + "x" * 15_000})
    for _ in range(300):
        daemon.send("list_memories", {"agent_id": "a"})
    assert all(len(daemon.receive()[1]["memories"]) == 30 for _ in range(300))


def test_a_client_that_leaves_ends_its_reads_and_finishes_its_writes(daemon, path):
    one = Raw(path).greet()
    with held_writer(daemon.places.db):
        one.send({"id": 1, "method": "store", "params": {"agent_id": "a", "content": "said before leaving"}})
        one.send({"id": 2, "method": "persistence_status"})
        assert one.read()["id"] == 2     # both have arrived
        one.sock.close()
    daemon.call("store", {"agent_id": "b", "content": "the writer has come this far"})
    assert daemon.call("list_memories", {"agent_id": "a"})[0]["memories"][0]["content"] == "said before leaving"


def _frame(request: dict) -> bytes:
    body = msgpack.packb(request)
    return len(body).to_bytes(4, "big") + body


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm") as handle:
            return int(handle.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0     # no /proc here


def test_a_hello_that_does_not_come_ends_the_connection(daemon, path):
    """Ten seconds of real time: the one wait that only the daemon can end."""
    silent, half = Raw(path), Raw(path).greet()
    half.sock.sendall(b"\x00\x00\x10\x00part of a frame")
    for one in (silent, half):
        answer = one.read()
        assert (answer["id"], answer["code"]) == (None, "timed_out")
        assert one.read() is None


def test_a_full_queue_of_connections_is_waited_out(daemon, path):
    """Connections that come faster than they are accepted are retried by the client, not failed."""
    crowd = []
    for _ in range(300):
        one = socket.socket(socket.AF_UNIX)
        one.setblocking(False)
        one.connect(path)
        crowd.append(one)
    for one in crowd:
        one.close()
    assert daemon.call("persistence_status", {})[1] is None
