"""Bytes to envelopes and back, for the daemon: every malformed frame becomes a ``BadFrame``.

Contract: shared/interface.md, "The wire" (length prefix, 32 MiB, nesting 64, strict decoding).
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ..errors import InvalidParams
from . import fields
from .structs import ClientHello, Request

_encode = msgspec.msgpack.Encoder().encode
_hello = msgspec.msgpack.Decoder(ClientHello).decode
_request = msgspec.msgpack.Decoder(Request).decode


class BadFrame(InvalidParams):
    """A frame that is no envelope. ``id`` is the request's where it could be told, ``method`` likewise;
    ``fatal`` says that the stream cannot be trusted any further."""

    def __init__(self, text: str, id: int | str | None = None, method: str = "", fatal: bool = True):
        super().__init__(text)
        self.id, self.method, self.fatal = id, method, fatal


def encode(envelope: msgspec.Struct) -> bytes:
    """Return the frame of an envelope. Raises InvalidParams when it is above the frame limit."""
    body = _encode(envelope)
    if len(body) > fields.MAX_FRAME_BYTES:
        raise InvalidParams(f"the answer is {len(body)} bytes, above the limit of {fields.MAX_FRAME_BYTES}; ask for less at a time")
    return len(body).to_bytes(fields.LENGTH_BYTES, "big") + body


def decode_hello(body: bytes) -> ClientHello:
    """Return the client's hello. Raises BadFrame."""
    try:
        return _hello(body)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadFrame(f"the first frame is not a hello ({error})") from None


def decode_request(body: bytes) -> Request:
    """Return the request in a frame. Raises BadFrame; one that names its id is not fatal, since the frame's bounds held."""
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


_LEAVES = (str, bool, type(None))
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def unfit(params: dict[str, Any]) -> str | None:
    """Return what of params no method takes, or None: they are those of JSON, whatever carries them, with numbers that SQLite holds.

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
            for one in value:
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
                    return f"a value of type {kind.__name__} is not accepted; text, numbers, true, false, null, lists and maps are"
        if not inner:
            return None
        level = inner
    return f"the frame nests deeper than {fields.MAX_NESTING} levels"


def _describe(body: bytes, error: Exception) -> BadFrame:
    """Find out whom to answer: a lone surrogate or a wrong type costs one request, not the connection."""
    import msgpack

    try:
        loose = msgpack.unpackb(body, unicode_errors="surrogatepass", strict_map_key=False)
    except Exception:  # whatever the bytes are, they are no msgpack map
        return BadFrame(f"the frame is not a request ({error})")
    if not isinstance(loose, dict):
        return BadFrame(f"the frame is not a request ({error})")
    id, method = loose.get("id"), loose.get("method")
    id = id if isinstance(id, (int, str)) and not isinstance(id, bool) and not _broken(id) else None
    method = method if isinstance(method, str) and not _broken(method) else ""
    text = "text that is not valid Unicode (a lone surrogate) is not accepted" if "UTF-8" in str(error) else f"the request is malformed: {error}"
    return BadFrame(text, id, method, fatal=id is None)


def _broken(value: int | str) -> bool:
    if isinstance(value, int):
        return not -(1 << 63) <= value < 1 << 64
    return any("\ud800" <= c <= "\udfff" for c in value)
