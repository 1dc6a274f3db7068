"""The process that Qdrant's engine runs in, for the daemon that started it: `python -m ...qdrant.host FOLDER`.

Its calls hold the interpreter, up to a tenth of a second at a million rows; in a process of its own they hold up
nothing else, and its memory is its own. It answers one call after the other on its input and output, and leaves with
the daemon: when the input ends.

Contract: qdrant.embedded.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from typing import IO, Any

import msgspec
import numpy as np

from .client import Failed, Point, Search
from .embedded import Embedded

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_LENGTH = struct.Struct("<I")

# A call is (method, arguments), an answer (value, None) or (None, (words, missing, unfit)).
Answer = tuple[Any, tuple[str, bool, bool] | None]


def write(out: IO[bytes], message: Any) -> None:
    """Write one message: its length, and itself."""
    data = _encode(message)
    out.write(_LENGTH.pack(len(data)))
    out.write(data)
    out.flush()


def read(source: IO[bytes]) -> Any:
    """Return the next message, None at the end."""
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = source.read(length)
    return None if len(data) < length else _decode(data)


def packed(vector: np.ndarray) -> bytes:
    """Return a vector as it goes between the two processes."""
    return np.ascontiguousarray(vector, "<f4").tobytes()


def answered(engine: Embedded, method: str, given: list[Any]) -> Answer:
    """Return the answer to one call."""
    try:
        if method == "upsert":
            name, points = given
            made = [Point(row, np.frombuffer(vector, "<f4"), payload) for row, vector, payload in points]
            engine.upsert(name, made)
            return None, None
        if method == "search":
            name, asked = given
            return engine.search(name, [Search(np.frombuffer(one[0], "<f4"), *one[1:]) for one in asked], 0.0), None
        return getattr(engine, method)(*given), None
    except Failed as error:
        return None, (str(error), error.missing, error.unfit)


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who ends the daemon by a key ends this through it
    source, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints writes no answer
    engine = Embedded(sys.argv[1])
    while (call := read(source)) is not None:
        write(out, answered(engine, *call))
    engine.close()


if __name__ == "__main__":
    main()
