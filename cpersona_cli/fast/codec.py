"""msgpack for one command's few small frames, without the cost of importing the msgpack package.

Importing that package takes half as long as the interpreter's own start, and most commands send one
small map and read another. From the 33rd frame on, and for every large one, the package does the work.
Tests hold both to the same bytes and values.

Contract: wire.frames, speed.client, house.functions.
"""

from _struct import pack, unpack_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


SMALL_BYTES = 64 * 1024
FEW = 32

_used = 0


def packb(value: "Any") -> bytes:
    """Return a value as msgpack; lone surrogates travel as they are.

    Raises TypeError, ValueError, OverflowError, RecursionError.
    """
    if _many():
        import msgpack  # type: ignore[import-untyped]  # it brings no types

        return msgpack.packb(value, unicode_errors="surrogatepass")
    parts: list[bytes] = []
    _pack(value, parts.append, 0)
    return b"".join(parts)


def unpackb(data: bytes) -> "Any":
    """Return the value in ``data``, which must hold exactly one. Raises ValueError."""
    if len(data) > SMALL_BYTES or _many():
        import msgpack

        return msgpack.unpackb(data, strict_map_key=False)
    try:
        value, end = _unpack(data, 0)
    except Exception as error:  # the end of the data, struct's own error, a list as a key, nesting without end
        raise ValueError(f"not msgpack: {error}") from None
    if end != len(data):
        raise ValueError("not one msgpack value")
    return value


def _many() -> bool:
    global _used
    _used += 1
    return _used > FEW


def _pack(value: "Any", out: "Callable[[bytes], object]", depth: int) -> None:
    if depth > 500:
        raise ValueError("nested too deeply")
    kind = type(value)
    if kind is str:
        raw = value.encode("utf-8", "surrogatepass")
        size = len(raw)
        out(
            bytes((0xA0 | size,))
            if size < 32
            else pack(">BB", 0xD9, size)
            if size < 256
            else pack(">BH", 0xDA, size)
            if size < 65_536
            else pack(">BI", 0xDB, size)
        )
        out(raw)
    elif value is None:
        out(b"\xc0")
    elif kind is bool:
        out(b"\xc3" if value else b"\xc2")
    elif kind is int:
        out(_packed_int(value))
    elif kind is dict:
        size = len(value)
        out(
            bytes((0x80 | size,))
            if size < 16
            else pack(">BH", 0xDE, size)
            if size < 65_536
            else pack(">BI", 0xDF, size)
        )
        for key, inner in value.items():
            _pack(key, out, depth + 1)
            _pack(inner, out, depth + 1)
    elif kind is list or kind is tuple:
        size = len(value)
        out(
            bytes((0x90 | size,))
            if size < 16
            else pack(">BH", 0xDC, size)
            if size < 65_536
            else pack(">BI", 0xDD, size)
        )
        for inner in value:
            _pack(inner, out, depth + 1)
    elif kind is float:
        out(pack(">Bd", 0xCB, value))
    elif kind is bytes:
        size = len(value)
        out(
            (
                pack(">BB", 0xC4, size)
                if size < 256
                else pack(">BH", 0xC5, size)
                if size < 65_536
                else pack(">BI", 0xC6, size)
            )
            + value
        )
    else:
        raise TypeError(f"can not serialize {kind.__name__!r} object")


def _packed_int(value: "Any") -> bytes:
    if value >= 0:
        if value < 0x80:
            return bytes((value,))
        for code, form, top in (
            (0xCC, ">BB", 0x100),
            (0xCD, ">BH", 0x1_0000),
            (0xCE, ">BI", 0x1_0000_0000),
            (0xCF, ">BQ", 1 << 64),
        ):
            if value < top:
                return pack(form, code, value)
    else:
        if value >= -32:
            return pack(">b", value)
        for code, form, bottom in (
            (0xD0, ">Bb", -0x80),
            (0xD1, ">Bh", -0x8000),
            (0xD2, ">Bi", -0x8000_0000),
            (0xD3, ">Bq", -(1 << 63)),
        ):
            if value >= bottom:
                return pack(form, code, value)
    raise OverflowError("an integer is out of range")


# first byte -> (struct form, its size) of numbers, and of the length before text, bytes, lists and maps
_NUMBERS = {
    0xCA: (">f", 4),
    0xCB: (">d", 8),
    0xCC: (">B", 1),
    0xCD: (">H", 2),
    0xCE: (">I", 4),
    0xCF: (">Q", 8),
    0xD0: (">b", 1),
    0xD1: (">h", 2),
    0xD2: (">i", 4),
    0xD3: (">q", 8),
}
_LENGTHS = {
    0xD9: (">B", 1),
    0xDA: (">H", 2),
    0xDB: (">I", 4),
    0xC4: (">B", 1),
    0xC5: (">H", 2),
    0xC6: (">I", 4),
    0xDC: (">H", 2),
    0xDD: (">I", 4),
    0xDE: (">H", 2),
    0xDF: (">I", 4),
}
_PLAIN = {0xC0: None, 0xC2: False, 0xC3: True}


def _unpack(data: bytes, at: int) -> "tuple[Any, int]":
    """Return the value that begins at ``at`` and where it ends."""
    first = data[at]
    at += 1
    if first < 0x80:
        return first, at
    if first >= 0xE0:
        return first - 256, at
    if first < 0x90:
        return _map(data, at, first & 0x0F)
    if first < 0xA0:
        return _list(data, at, first & 0x0F)
    if first < 0xC0:
        return _text(data, at, first & 0x1F)
    if first in _PLAIN:
        return _PLAIN[first], at
    if first in _NUMBERS:
        form, size = _NUMBERS[first]
        return unpack_from(form, data, at)[0], at + size
    if first not in _LENGTHS:
        raise ValueError(f"no value begins with {first:#x}")
    form, size = _LENGTHS[first]
    length = unpack_from(form, data, at)[0]
    at += size
    if first >= 0xDE:
        return _map(data, at, length)
    if first >= 0xDC:
        return _list(data, at, length)
    if first >= 0xD9:
        return _text(data, at, length)
    return _bytes(data, at, length), at + length


def _bytes(data: bytes, at: int, length: int) -> bytes:
    if at + length > len(data):
        raise ValueError("the data ends early")
    return data[at : at + length]


def _text(data: bytes, at: int, length: int) -> tuple[str, int]:
    return _bytes(data, at, length).decode("utf-8"), at + length


def _list(data: bytes, at: int, length: int) -> tuple[list, int]:
    out: list = []
    for _ in range(length):
        value, at = _unpack(data, at)
        out.append(value)
    return out, at


def _map(data: bytes, at: int, length: int) -> tuple[dict, int]:
    out: dict = {}
    for _ in range(length):
        key, at = _unpack(data, at)
        out[key], at = _unpack(data, at)
    return out, at
