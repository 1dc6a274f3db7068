"""Both sides of the wire are built from one table of names. Contract: wire.frames, wire.requests."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import cpersona_daemon
from cpersona_daemon.errors import CPersonaError
from cpersona_daemon.life import frames
from cpersona_daemon.rpc import dispatch, envelopes
from cpersona_daemon.shared import fields, methods

PACKAGE = Path(cpersona_daemon.__file__).parent


def test_the_daemon_answers_exactly_the_methods_of_the_table():
    assert sorted(dispatch.HANDLERS) == sorted(methods.METHODS)


def test_every_error_has_a_code_that_the_table_knows():
    def tree(kind):
        return [kind, *(k for sub in kind.__subclasses__() for k in tree(sub))]

    assert {kind.code for kind in tree(CPersonaError)} <= set(fields.ERRORS)


def test_the_table_of_fields_imports_nothing():
    names = [
        n
        for n in ast.walk(ast.parse((PACKAGE / "shared" / "fields.py").read_text()))
        if isinstance(n, ast.Import | ast.ImportFrom)
    ]
    assert names == []


def test_the_table_of_methods_imports_the_fields_alone():
    code = (
        "import sys; before = set(sys.modules); import cpersona_daemon.shared.methods; "
        "print(sorted(set(sys.modules) - before))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    rooms = ["cpersona_daemon", "cpersona_daemon.shared"]
    assert told.strip() == str([*rooms, *(f"{rooms[1]}.{name}" for name in ("fields", "methods"))])


def test_a_client_map_decodes_into_the_structs_and_back():
    import msgpack

    request = {
        "id": 7,
        "method": "recall",
        "params": {"query": "x", "limit": 3},
        "deadline_ms": 100,
        "idempotency_key": "k",
        "overrides": {"rrf_k": 9},
        "progress": True,
    }
    assert msgspec.structs.asdict(frames.decode_request(msgpack.packb(request))) == request
    frame = frames.encode(envelopes.Response(7, {"messages": []}))
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert msgpack.unpackb(frame[4:]) == {"id": 7, "response": {"messages": []}}


@pytest.mark.parametrize("depth", [1, fields.MAX_NESTING - 2])
def test_nesting_up_to_the_limit_is_accepted(depth):
    assert frames.decode_request(_nested(depth)).id == 1


@pytest.mark.parametrize("depth", [fields.MAX_NESTING - 1, 900, 100_000])
def test_nesting_beyond_the_limit_is_a_typed_error(depth):
    with pytest.raises(frames.BadFrame, match="nests deeper than 64"):
        frames.decode_request(_nested(depth))


def _nested(depth: int) -> bytes:
    """A request whose params hold `depth` lists inside one another; request and params are two levels more."""
    return b"\x83\xa2id\x01\xa6method\xa1m\xa6params\x81\xa1p" + b"\x91" * (depth - 1) + b"\x90"
