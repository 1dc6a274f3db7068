"""Bytes to envelopes and back, for the daemon: every malformed frame becomes a ``BadFrame``.

Contract: wire.frames.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from ..errors import InvalidParams
from ..rpc.envelopes import ClientHello, Request, RequestHead
from ..shared import fields

_encode = msgspec.msgpack.Encoder().encode
_hello = msgspec.msgpack.Decoder(ClientHello).decode
_request = msgspec.msgpack.Decoder(Request).decode
_head = msgspec.msgpack.Decoder(RequestHead).decode


class BadFrame(InvalidParams):
    """A frame that is no envelope.

    ``id`` is the request's where it could be told, ``method`` likewise; ``fatal`` says that the stream cannot be
    trusted any further.
    """

    def __init__(self, text: str, id: int | str | None = None, method: str = "", fatal: bool = True) -> None:
        super().__init__(text)
        self.id, self.method, self.fatal = id, method, fatal


def encode(envelope: msgspec.Struct) -> bytes:
    """Return the frame of an envelope. Raises InvalidParams when it is above the frame limit."""
    body = _encode(envelope)
    if len(body) > fields.MAX_FRAME_BYTES:
        raise InvalidParams(
            f"the answer is {len(body)} bytes, above the limit of {fields.MAX_FRAME_BYTES}; ask for less at a time"
        )
    return len(body).to_bytes(fields.LENGTH_BYTES, "big") + body


def decode_hello(body: bytes) -> ClientHello:
    """Return the client's hello. Raises BadFrame."""
    try:
        return _hello(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadFrame(f"the first frame is not a hello ({error})") from None


def decode_request(body: bytes) -> Request:
    """Return the request in a frame.

    Raises BadFrame; one that names its id is not fatal, since the frame's bounds held.
    """
    if len(body) > SMALL_BYTES and _holds_more_values(body, fields.MAX_VALUES):
        raise _too_many_values(body)
    try:
        request = _request(body)
    except RecursionError:
        raise BadFrame(f"the frame nests deeper than {fields.MAX_NESTING} levels") from None
    except msgspec.MsgspecError as error:
        raise _describe(body, error) from None
    problem = unfit(request.params) or (request.overrides and unfit(request.overrides))
    if problem:
        raise BadFrame(problem, request.id, request.method, fatal=False)
    return request


SMALL_BYTES = 4096  # a frame up to this size takes little however it is decoded


def _sizes() -> tuple[tuple[int, ...], dict[int, int]]:
    """Return how many bytes a value has by its first one, and how many of these tell a text's length.

    What a list or map contains is not among them, nor a text whose length is told.
    """
    size = [1] * 256
    for first in range(0xA0, 0xC0):
        size[first] = 1 + (first & 0x1F)
    for first, more in (
        (0xC4, 1),
        (0xC5, 2),
        (0xC6, 4),
        (0xC7, 2),
        (0xC8, 3),
        (0xC9, 5),
        (0xCA, 4),
        (0xCB, 8),
        (0xCC, 1),
        (0xCD, 2),
        (0xCE, 4),
        (0xCF, 8),
        (0xD0, 1),
        (0xD1, 2),
        (0xD2, 4),
        (0xD3, 8),
        (0xD4, 2),
        (0xD5, 3),
        (0xD6, 5),
        (0xD7, 9),
        (0xD8, 17),
        (0xD9, 1),
        (0xDA, 2),
        (0xDB, 4),
        (0xDC, 2),
        (0xDD, 4),
        (0xDE, 2),
        (0xDF, 4),
    ):
        size[first] += more
    return tuple(size), {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}


_SIZE, _LENGTH_OF = _sizes()


def _holds_more_values(body: bytes, most: int) -> bool:
    """Tell whether a frame holds more than so many values, without building any; what is no msgpack may be either."""
    at, end = 0, len(body)
    for _ in range(most):
        if at >= end:
            return False
        first = body[at]
        told = _LENGTH_OF.get(first)
        if told is not None:
            at += int.from_bytes(body[at + 1 : at + 1 + told], "big")
        at += _SIZE[first]
    return at < end


def _too_many_values(body: bytes) -> BadFrame:
    text = f"the request holds more than {fields.MAX_VALUES} values; send it in parts"
    try:
        head = _head(body)
    except (msgspec.MsgspecError, RecursionError):
        return BadFrame(text)
    return BadFrame(text, head.id, head.method, fatal=False)


def weight(request: Request) -> int:
    """Return about how many bytes a request's parameters take in memory."""
    total = 0
    waiting: list[Any] = [request.params]
    while waiting:
        one = waiting.pop()
        total += sys.getsizeof(one)
        kind = type(one)
        if kind is dict:
            waiting.extend(one)
            waiting.extend(one.values())
        elif kind is list:
            waiting.extend(one)
    return total


_LEAVES = (str, bool, type(None))
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def unfit(params: dict[str, Any]) -> str | None:
    """Return what of params no method takes, or None: JSON's values alone, with numbers that SQLite holds.

    One level of nesting after the other, and none beyond the limit; the envelope itself is the first level.
    """
    level: list[Any] = [params]
    for _ in range(fields.MAX_NESTING - 1):
        inner: list[Any] = []
        for value in level:
            if type(value) is dict:
                if not all(type(key) is str for key in value):
                    return "the keys of a map must be text"
                value = value.values()
            if (problem := _unfit_among(value, inner)) is not None:
                return problem
        if not inner:
            return None
        level = inner
    return f"the frame nests deeper than {fields.MAX_NESTING} levels"


def _unfit_among(values: Iterable[Any], inner: list[Any]) -> str | None:
    """Return what is wrong with one of these values, or None; those that hold others are added to ``inner``."""
    for one in values:
        kind = type(one)
        if kind is dict or kind is list:
            inner.append(one)
        elif kind is float:
            if not math.isfinite(one):
                return "a number must be finite"
        elif kind is int:
            if not _LEAST <= one <= _MOST:
                return f"a whole number must lie between {_LEAST} and {_MOST}"
        elif kind not in _LEAVES:
            return (
                f"a value of type {kind.__name__} is not accepted; text, numbers, true, false, null, lists and maps are"
            )
    return None


def _describe(body: bytes, error: Exception) -> BadFrame:
    """Find out whom to answer: a lone surrogate or a wrong type costs one request, not the connection."""
    import msgpack  # type: ignore[import-untyped]  # it has no types

    try:
        loose = msgpack.unpackb(body, unicode_errors="surrogatepass", strict_map_key=False)
    except Exception:  # whatever the bytes are, they are no msgpack map
        return BadFrame(f"the frame is not a request ({error})")
    if not isinstance(loose, dict):
        return BadFrame(f"the frame is not a request ({error})")
    id, method = loose.get("id"), loose.get("method")
    id = id if isinstance(id, (int, str)) and not isinstance(id, bool) and not _broken(id) else None
    method = method if isinstance(method, str) and not _broken(method) else ""
    text = (
        "text that is not valid Unicode (a lone surrogate) is not accepted"
        if "UTF-8" in str(error)
        else f"the request is malformed: {error}"
    )
    return BadFrame(text, id, method, fatal=id is None)


def _broken(value: int | str) -> bool:
    if isinstance(value, int):
        return not -(1 << 63) <= value < 1 << 64
    return any("\ud800" <= c <= "\udfff" for c in value)
