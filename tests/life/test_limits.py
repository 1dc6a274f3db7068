"""Deadlines, bounds and slow readers: busy or timed out instead of growth, and nobody else notices.

Contract: wire.bounds, wire.requests.
"""

from __future__ import annotations

import os
import random
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import msgpack
import pytest
from daemon_helpers import HELLO, Raw

from cpersona_daemon.life import frames
from cpersona_daemon.shared import fields


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
            one.sock.sendall(
                b"".join(
                    _frame({"id": n, "method": "store", "params": {"agent_id": "a", "content": f"{at}-{n}"}})
                    for n in range(per)
                )
            )
        late = Raw(path).greet()
        answer = {}
        while answer.get("code") != "busy":  # the last of the crowd's frames may still be on their way
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
        assert len(held) == fields.MAX_CONNECTIONS  # the fixture's own is the one that makes it too many
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
    assert [slow.read()["id"] for _ in range(20)] == [1] * 20  # it may go on as soon as it reads
    slow.sock.close()


def test_a_pipeline_of_large_answers_does_not_lock_up(daemon):
    for number in range(30):
        daemon.call("store", {"agent_id": "a", "content": f"{number} " + "x" * 15_000})
    for _ in range(300):
        daemon.send("list_memories", {"agent_id": "a"})
    assert all(len(daemon.receive()[1]["memories"]) == 30 for _ in range(300))


def _large(number: int, text: str = "y") -> dict:
    """A store of about 30 MB on the wire."""
    return {
        "id": number,
        "method": "store",
        "params": {"agent_id": "a", "content": f"{number} " + text * (30_000_000 // len(text.encode()))},
        "deadline_ms": 60_000,
    }


def _send_until_unread(daemon, one: Raw, frames: Iterator[bytes]) -> int:
    """Send frames until the daemon reads no more of them, and return how many went out whole.

    The last may be on its way.
    """
    one.sock.setblocking(False)
    for whole, frame in enumerate(frames):
        rest, refused = memoryview(frame), 0
        while rest:
            try:
                rest, refused = rest[one.sock.send(rest) :], 0
            except BlockingIOError:
                refused += 1
                daemon.call("persistence_status", {})  # a turn of the daemon's loop, in which it would have read
                if refused > 100:
                    return whole
    return whole + 1


@pytest.mark.parametrize("text", ["y", "\U0001f600" + "y" * 4])
def test_a_connection_that_sends_too_much_at_once_is_not_read_and_nothing_is_kept_of_it(daemon, path, text):
    before = _resident(daemon.hello["pid"])
    one = Raw(path).greet()
    with held_writer(daemon.places.db):
        whole = _send_until_unread(daemon, one, (_frame(_large(n, text)) for n in range(127)))
        assert 1 <= whole <= 4
        assert _resident(daemon.hello["pid"]) - before < 250 << 20
    one.sock.settimeout(30)
    assert {one.read()["response"]["result"] for _ in range(whole)} == {"stored"}
    one.sock.close()
    for _ in range(2_000):  # what it took is given back in the background
        if _resident(daemon.hello["pid"]) - before < 30 << 20:
            break
        daemon.call("persistence_status", {})
    assert _resident(daemon.hello["pid"]) - before < 30 << 20


def test_large_requests_of_many_connections_are_busy_above_a_bound_and_small_ones_go_on(daemon, path):
    crowd, told = [Raw(path).greet() for _ in range(5)], []
    with held_writer(daemon.places.db):
        for number, one in enumerate(crowd):
            for turn in range(2):
                one.send(_large(2 * number + turn))
        small = Raw(path).greet()
        small.send({"id": 1, "method": "store", "params": {"agent_id": "b", "content": "small"}})
        assert daemon.call("persistence_status", {})[1] is None
        assert _resident(daemon.hello["pid"]) < 900 << 20
    for one in crowd:
        told += [one.read() for _ in range(2)]
        one.sock.close()
    codes = [answer.get("code") for answer in told]
    assert set(codes) == {None, "busy"} and codes.count(None) == fields.MAX_HELD_BYTES // 30_000_000
    assert all(answer["response"]["ok"] is (answer.get("code") is None) for answer in told)
    assert small.read()["response"]["result"] == "stored"


@pytest.mark.parametrize("value", [b"\x90", b"\x80", b"\xa1a", b"\xcd\x01\x00", b"\x91\xc0"])
def test_a_request_of_too_many_values_is_refused_before_they_are_built(daemon, path, value):
    before, one, count = _resident(daemon.hello["pid"]), Raw(path).greet(), fields.MAX_FRAME_BYTES // 4
    head = b"\x83\xa2id\x07\xa6method\xa5store\xa6params\x83\xa8agent_id\xa1a\xa7content\xa1x\xa8metadata\x81\xa1l\xdd"
    one.send(head + count.to_bytes(4, "big") + value * count)
    answer = one.read()
    assert (answer["id"], answer["code"]) == (7, "invalid_params") and "values" in answer["response"]["reason"]
    assert _resident(daemon.hello["pid"]) - before < 100 << 20
    one.send({"id": 8, "method": "persistence_status"})
    assert one.read()["id"] == 8


def test_as_many_values_as_are_taken_are_counted_whatever_they_are():
    draw = random.Random(17)
    leaves = [
        None,
        True,
        1,
        200,
        70_000,
        -1,
        -200,
        -70_000,
        -(2**40),
        2**40,
        1.5,
        "",
        "a" * 31,
        "b" * 40,
        "c" * 300,
        "d" * 70_000,
        b"e",
        b"f" * 300,
    ]

    def value(depth: int) -> object:
        if depth and draw.random() < 0.3:
            many = draw.choice((0, 3, 20))
            return (
                [value(depth - 1) for _ in range(many)]
                if draw.random() < 0.5
                else {str(n): value(depth - 1) for n in range(many)}
            )
        return draw.choice(leaves)

    def count(one: object) -> int:
        return 1 + (
            sum(map(count, one))
            if isinstance(one, list)
            else sum(1 + count(v) for v in one.values())
            if isinstance(one, dict)
            else 0
        )

    for _ in range(300):
        drawn = value(4)
        body, true = msgpack.packb(drawn), count(drawn)
        assert frames._holds_more_values(body, true - 1) and not frames._holds_more_values(body, true)


def test_a_hello_has_a_limit_of_its_own(path):
    one = Raw(path)
    one.send(HELLO | {"token": "x" * fields.MAX_HELLO_BYTES})
    answer = one.read()
    assert (answer["id"], answer["code"]) == (None, "invalid_params") and one.read() is None


def test_a_client_that_leaves_ends_its_reads_and_finishes_its_writes(daemon, path):
    one = Raw(path).greet()
    with held_writer(daemon.places.db):
        one.send({"id": 1, "method": "store", "params": {"agent_id": "a", "content": "said before leaving"}})
        one.send({"id": 2, "method": "persistence_status"})
        assert one.read()["id"] == 2  # both have arrived
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
        return 0  # no /proc here


def test_a_hello_that_does_not_come_ends_the_connection(hurried, daemon, path):
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
