"""Whatever arrives at the socket gets a typed answer, and the daemon goes on serving others.

Contract: wire.frames, wire.hello.
"""

from __future__ import annotations

import os
import random
import socket

import msgpack
import pytest
from daemon_helpers import HELLO, Raw

from cpersona_cli.wire.client import Connection
from cpersona_daemon.shared import fields


@pytest.fixture
def raw(shared_daemon: Connection):
    opened: list[Raw] = []

    def make() -> Raw:
        opened.append(Raw(shared_daemon.places.socket))
        return opened[-1]

    yield make
    for one in opened:
        one.sock.close()
    # Whatever the test did to it, the daemon serves.
    assert shared_daemon.call("persistence_status", {})[1] is None


def refused(answer: dict, code: str = "invalid_params") -> None:
    assert (answer["id"], answer["code"], answer["response"]["ok"]) == (None, code, False)
    assert answer["response"]["error"]


def test_a_first_frame_that_is_no_hello_is_refused_and_the_connection_closes(raw):
    one = raw()
    one.send({"id": 1, "method": "recall"})
    refused(one.read())
    assert one.read() is None


@pytest.mark.parametrize(
    "change", [{"protocol": "1"}, {"protocol": None}, {"version": 3}, {"capabilities": "x"}, {"token": 5}]
)
def test_a_hello_with_a_wrong_type_is_refused(raw, change):
    one = raw()
    one.send(HELLO | change)
    refused(one.read())


def test_a_hello_of_a_later_version_with_more_fields_is_answered(raw):
    one = raw()
    one.send(HELLO | {"colour": "green"})
    assert one.read()["pid"] > 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\xff" * 50,
        b"\x80\x80",
        b"\x93\x01\x02\x03",
        b"\xdf\xff\xff\xff\xff",
        b"\x81\xa1a\xdd\xff\xff\xff\xff",
        b"{}",
        b"\x81\xa2id\xc0",
        msgpack.packb([1, 2]),
        msgpack.packb("text"),
        b"\x81" * 1_000_000,
    ],
)
def test_a_frame_that_is_no_request_is_refused_and_the_connection_closes(raw, body):
    one = raw().greet()
    one.send(body)
    refused(one.read())
    assert one.read() is None


@pytest.mark.parametrize(
    "change",
    [
        {"method": 5},
        {"params": [1]},
        {"params": None},
        {"deadline_ms": "soon"},
        {"deadline_ms": 1.5},
        {"idempotency_key": 4},
        {"overrides": []},
        {"progress": "yes"},
        {"colour": "green"},
        {"deadline_ms": -1},
    ],
)
def test_a_request_with_a_wrong_field_is_answered_by_its_id_and_the_connection_stays(raw, change):
    one = raw().greet()
    one.send({"id": "q", "method": "recall", "params": {}} | change)
    answer = one.read()
    assert (answer["id"], answer["code"]) == ("q", "invalid_params")
    one.send({"id": 2, "method": "persistence_status"})
    assert one.read()["id"] == 2


def test_a_huge_length_is_refused_before_its_bytes_are_awaited(raw):
    one = raw().greet()
    one.sock.sendall((fields.MAX_FRAME_BYTES + 1).to_bytes(4, "big"))
    refused(one.read())


def test_a_lone_surrogate_is_refused_in_the_shape_of_its_method(raw):
    one = raw().greet()
    one.send({"id": 1, "method": "store", "params": {"agent_id": "a", "content": "x\ud800y"}})
    assert one.read() == {
        "id": 1,
        "code": "invalid_params",
        "response": {
            "ok": False,
            "result": "rejected",
            "reason": "text that is not valid Unicode (a lone surrogate) is not accepted",
        },
    }


def test_half_a_frame_and_the_end_of_the_stream_is_a_typed_error(raw):
    one = raw().greet()
    one.sock.sendall(b"\x00\x00\x01\x00half")
    one.sock.shutdown(socket.SHUT_WR)
    refused(one.read())


def test_a_frame_may_arrive_in_single_bytes(raw):
    one = raw().greet()
    body = msgpack.packb({"id": 9, "method": "persistence_status"})
    for byte in len(body).to_bytes(4, "big") + body:
        one.sock.sendall(bytes([byte]))
    assert one.read()["id"] == 9


def test_a_client_that_has_said_everything_still_gets_its_answers(raw):
    one = raw().greet()
    for number in range(20):
        one.send({"id": number, "method": "store", "params": {"agent_id": "a", "content": f"note {number}"}})
    one.sock.shutdown(socket.SHUT_WR)
    assert {one.read()["id"] for _ in range(20)} == set(range(20))
    assert one.read() is None


def test_random_frames_never_hurt(raw):
    random_bytes = random.Random(20_261)
    for _ in range(150):
        one = raw().greet()
        one.send(random_bytes.randbytes(random_bytes.randrange(1, 400)))
        answer = one.read()
        assert answer is not None and answer["code"] in fields.ERRORS
        one.sock.close()


def test_random_bytes_without_frames_never_hurt(raw):
    random_bytes = random.Random(1_977)
    for _ in range(60):
        one = raw()
        try:
            one.sock.sendall(random_bytes.randbytes(random_bytes.randrange(1, 5_000)))
            one.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it was refused before all was sent
        answer = one.read()
        assert answer is None or answer["code"] in fields.ERRORS
        one.sock.close()


def test_changed_bytes_of_a_real_request_get_a_typed_answer(raw):
    body = bytearray(
        msgpack.packb(
            {
                "id": 1,
                "method": "store",
                "params": {"agent_id": "a", "content": "hello", "metadata": {"k": [1, 2.5, None]}},
            }
        )
    )
    change = random.Random(7)
    for _ in range(200):
        one, copy = raw().greet(), bytearray(body)
        for _ in range(change.randrange(1, 4)):
            copy[change.randrange(len(copy))] = change.randrange(256)
        one.send(bytes(copy))
        answer = one.read()
        assert answer is not None and isinstance(answer["response"], dict)
        assert answer.get("code") is None or answer["code"] in fields.ERRORS
        one.sock.close()


def test_a_ten_megabyte_text_is_answered(raw):
    one = raw().greet()
    one.send({"id": 1, "method": "store", "params": {"agent_id": "a", "content": "x" * 10_000_000}})
    answer = one.read()
    assert answer["response"]["ok"] is True and answer["response"]["truncated"] is True


@pytest.mark.parametrize(
    "value",
    [
        b"\x00\xff",
        float("nan"),
        float("inf"),
        [1, float("-inf")],
        msgpack.Timestamp(1),
        msgpack.ExtType(5, b"x"),
        {5: 1},
        {"k": {None: 1}},
    ],
)
def test_a_value_that_json_has_not_is_refused(raw, value):
    one = raw().greet()
    one.send({"id": 1, "method": "store", "params": {"agent_id": "a", "content": "v", "metadata": {"k": value}}})
    answer = one.read()
    assert (answer["id"], answer["code"], answer["response"]["result"]) == (1, "invalid_params", "rejected")


@pytest.mark.parametrize("value", [2**64 - 1, -(2**63), 1e308, "\x00", "\uffff", ""])
def test_an_extreme_value_never_is_an_internal_error(raw, value):
    one = raw().greet()
    for params in ({"metadata": {"k": value}}, {"content": value}, {"id": value}, {"timestamp": value}):
        one.send({"id": 1, "method": "store", "params": {"agent_id": "a", "content": "v"} | params})
        assert one.read().get("code") in (None, "invalid_params", "refused")


def test_an_unknown_method_is_a_typed_error(raw):
    one = raw().greet()
    one.send({"id": 1, "method": "remember", "params": {}})
    assert one.read()["code"] == "unknown_method"


def test_the_socket_can_be_reached_by_its_owner_alone(shared_daemon):
    assert os.stat(shared_daemon.places.socket).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(shared_daemon.places.socket)).st_mode & 0o077 == 0
