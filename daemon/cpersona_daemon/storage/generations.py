"""Which state of the vectors a database is in, in words that no other history of the same database uses.

The number counts the transactions that changed vectors. Two copies of one database that go different ways reach the
same numbers; the stamp, eight random bytes of each such transaction, they never share. Whoever stands at the
same number and stamp has seen the same transactions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from ..model.changes import Change, VectorDrop, VectorPut

STAMP_BYTES = 8
NO_STAMP = bytes(STAMP_BYTES)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[bytes, list[tuple[str, int]]]).decode


class Generation(NamedTuple):
    """A committed state of the vectors. ``before`` is the stamp of the one its transaction found, None if unknown."""

    number: int
    stamp: bytes
    before: bytes | None = None

    def is_after(self, number: int, stamp: bytes) -> bool:
        """Say whether a single transaction leads from that state to this one."""
        return number == self.number - 1 and stamp == self.before


NOTHING = Generation(0, NO_STAMP)


def current(conn: apsw.Connection) -> tuple[Generation, list[tuple[str, int]]]:
    """Return the state that this connection sees, and the (kind, id) of each row that its transaction touched.

    Where that is not recorded, there are no rows, and the state before is unknown.
    """
    number, stamp, noted = conn.execute(
        "SELECT value, (SELECT value FROM meta WHERE key = 'vector_stamp'),"
        " (SELECT value FROM meta WHERE key = 'vector_changes') FROM meta WHERE key = 'vector_generation'"
    ).get
    try:
        before, changed = _decode(noted)
    except (TypeError, msgspec.DecodeError):
        before, changed = None, []
    return Generation(number, _stamp(stamp), before), changed


def advance(conn: apsw.Connection, changes: Sequence[Change]) -> Generation:
    """Note in the running transaction that it makes these changes, and return the state that it leads to.

    A kill before the index hears of the commit leaves it one behind: with what is noted here it then catches up.
    """
    found: list[tuple[Any, ...]] = conn.execute(
        "UPDATE meta SET value = value + 1 WHERE key = 'vector_generation'"
        " RETURNING value, (SELECT value FROM meta WHERE key = 'vector_stamp')"
    ).fetchall()
    ((number, before),) = found
    reached = Generation(number, os.urandom(STAMP_BYTES), _stamp(before))
    changed = _encode(
        (reached.before, [(change.kind, change.id) for change in changes if isinstance(change, VectorPut | VectorDrop)])
    )
    conn.execute(
        "INSERT OR REPLACE INTO meta VALUES ('vector_stamp', ?), ('vector_changes', ?)", (reached.stamp, changed)
    )
    return reached


def _stamp(value: object) -> bytes:
    return value if isinstance(value, bytes) and len(value) == STAMP_BYTES else NO_STAMP
