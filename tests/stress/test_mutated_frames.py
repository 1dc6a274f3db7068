"""Frames with changed bytes, beside a client that works: each is answered or ends its own connection alone.

The full form sends a million of them, the short one four thousand.

Contract: wire.frames.
"""

from __future__ import annotations

import random
import socket
import threading

import msgpack
import pytest
from daemon_helpers import HELLO
from stress_kit import FULL

from cpersona_daemon.shared import fields
from cpersona_daemon.shared.paths import places
from cpersona_daemon.shared.settings import load

pytestmark = pytest.mark.stress

FRAMES, SENDERS, BATCH = (1_000_000 if FULL else 4_000), 2, 10
PARAMS = (
    ("store", {"agent_id": "m", "content": "a text of some length", "metadata": {"a": [1, 2.5, None]}}),
    ("recall", {"agent_id": "m", "query": "text", "limit": 3}),
    ("get_contents", {"agent_id": "m", "refs": ["mem:1", "ep:2"]}),
    ("list_memories", {"agent_id": "m", "limit": 2}),
    ("update_memory", {"memory_id": 1, "content": "b"}),
    ("lock_memory", {"agent_id": "m", "memory_id": 1}),
    ("traverse", {"agent_id": "m", "entity": "x"}),
    ("get_profile", {"agent_id": "m"}),
    ("declare_associations", {"agent_id": "m", "associations": {"entities": [{"name": "x", "aliases": ["y"]}]}}),
    ("exists", {"agent_id": "m", "content": "a"}),
)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(fields.LENGTH_BYTES, "big") + body


def mutated(chance: random.Random, number: int) -> bytes:
    """A request with a few bytes changed, left out or put in; now and then its length is changed as well."""
    method, params = chance.choice(PARAMS)
    body = bytearray(msgpack.packb({"id": number, "method": method, "params": params, "deadline_ms": 2000}))
    for _ in range(chance.randrange(1, 4)):
        at, kind = chance.randrange(len(body)), chance.random()
        if kind < 0.6:
            body[at] = chance.randrange(256)
        elif kind < 0.8:
            del body[at]
        else:
            body[at:at] = chance.randbytes(chance.randrange(1, 5))
    frame = bytearray(framed(bytes(body)))
    if chance.random() < 0.002:
        frame[chance.randrange(fields.LENGTH_BYTES)] = chance.randrange(256)
    return bytes(frame)


def answers(sock: socket.socket) -> int:
    """Read until the daemon has closed the connection and return how many frames it sent, its hello aside."""
    data = b""
    try:
        while piece := sock.recv(1 << 18):
            data += piece
    except ConnectionResetError:
        pass
    at, count = 0, -1
    while at < len(data):
        at += fields.LENGTH_BYTES + int.from_bytes(data[at : at + fields.LENGTH_BYTES], "big")
        count += 1
    return count


def send(path: str, seed: int, frames: int, answered: list[int]) -> None:
    """Send frames, a few on a connection, until so many were answered: one that cannot be trusted ends its
    connection.
    """
    chance, count, number = random.Random(seed), 0, 0
    while count < frames:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(path)
            number += BATCH
            try:
                sock.sendall(
                    framed(msgpack.packb(HELLO)) + b"".join(mutated(chance, number + at) for at in range(BATCH))
                )
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it was closed at a frame that could not be trusted
            got = answers(sock)
            assert got > 0, "a connection was closed without a word"
            count += got
    answered.append(count)


def test_a_client_works_on_beside_frames_with_changed_bytes(home, daemon):
    path, answered = places(load(home), home).socket, []
    senders = [threading.Thread(target=send, args=(path, seed, FRAMES // SENDERS, answered)) for seed in range(SENDERS)]
    for sender in senders:
        sender.start()
    calls = 0
    while any(sender.is_alive() for sender in senders):
        text = f"beside them {calls}"
        stored, code = daemon.call("store", {"agent_id": "worker", "content": text})
        assert code is None and stored["result"] == "stored", stored
        found, code = daemon.call("get_contents", {"agent_id": "worker", "refs": [f"mem:{stored['id']}"]})
        assert code is None and found["items"][0]["content"] == text
        calls += 1
    for sender in senders:
        sender.join()
    assert len(answered) == SENDERS, "a sender broke off"
    status = daemon.call("daemon_status", {})[0]
    assert status["pid"] == daemon.hello["pid"] and calls > 0
    assert [error for error in status["last_errors"] if error.get("code") == "internal"] == []
    assert daemon.call("check_health", {"checks": ["sqlite_integrity"]})[0]["issues"] == []
    print(f"{sum(answered)} frames answered, {calls} stores and reads beside them")
