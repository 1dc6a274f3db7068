"""The client's small codec and the msgpack package are the same thing to the wire. Contract: wire.frames."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.fast import codec

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=400)
    | st.binary(max_size=300)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=40), inner, max_size=20),
    max_leaves=60,
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(codec, "FEW", 10**9)


@given(VALUES)
def test_both_write_the_same_bytes_and_read_the_same_values(value):
    written = codec.packb(value)
    assert written == msgpack.packb(value, unicode_errors="surrogatepass")
    assert codec.unpackb(written) == value


@pytest.mark.parametrize(
    "value",
    ["x" * n for n in (31, 32, 255, 256, 65_535, 65_536)]
    + [list(range(n)) for n in (15, 16, 65_536)]
    + [{str(i): i for i in range(n)} for n in (15, 16, 70_000)]
    + [b"y" * n for n in (255, 256, 65_536)]
    + [n + d for n in (0, 127, 255, 65_535, 2**32 - 1, 2**63, -32, -128, -32_768, -(2**31)) for d in (-1, 0, 1)]
    + [2**64 - 1, -(2**63)],
)
def test_every_border_between_forms_is_written_alike(value, monkeypatch):
    written = codec.packb(value)
    assert written == msgpack.packb(value)
    monkeypatch.setattr(codec, "SMALL_BYTES", 1 << 30)
    assert codec.unpackb(written) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_value_error(data):
    try:
        ours = codec.unpackb(data)
    except ValueError:
        return
    assert repr(ours) == repr(msgpack.unpackb(data, strict_map_key=False))


@pytest.mark.parametrize("value", [object(), {1, 2}, 2**64, -(2**63) - 1, {"k": [object()]}])
def test_what_msgpack_has_not_is_refused(value):
    with pytest.raises((TypeError, OverflowError, ValueError)):
        codec.packb(value)


def test_nesting_without_end_is_refused():
    value = []
    value.append(value)
    with pytest.raises((ValueError, RecursionError)):
        codec.packb(value)
    with pytest.raises(ValueError):
        codec.unpackb(b"\x91" * 60_000)


def test_a_lone_surrogate_travels():
    assert codec.packb("a\ud800") == msgpack.packb("a\ud800", unicode_errors="surrogatepass")


def test_many_frames_are_left_to_the_package(monkeypatch):
    monkeypatch.setattr(codec, "FEW", 0)
    assert codec.unpackb(codec.packb({"a": [1, None, "ü"]})) == {"a": [1, None, "ü"]}
