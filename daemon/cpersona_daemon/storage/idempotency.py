"""Kept answers of writes, so that a lost answer can be asked for again safely.

A key belongs to the request it came with: who asked what of which method. The writer keeps and serves them in
``database.py``.

Contract: wire.keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

_canonical = msgspec.msgpack.Encoder(order="deterministic").encode


# Keys of answers that hold numbers, refs and words of ours alone.
SILENT = frozenset(
    "ok result id embedded reason locked content_differs cut ref dropped_links episode_id canary_id removed_id"
    " updated_id deleted_id locked_id unlocked_id profiles_updated undone at rows refs results".split()
)


class Key(NamedTuple):
    """The text that a client chose, and the digest of the request that it came with."""

    text: str
    request: bytes

    @classmethod
    def of(cls, text: str, client_id: str, method: str, params: Mapping[str, Any]) -> Key:
        """Return the key of a request; params that say the same in another order are the same request."""
        return cls(text, hashlib.blake2b(_canonical((client_id, method, params)), digest_size=16).digest())


class Kept(NamedTuple):
    """What is kept under a key: the request that it belongs to, and its encoded answer.

    The request is empty where the answer was kept before keys were bound to one.
    """

    request: bytes
    answer: bytes

    def answers(self, key: Key) -> bool:
        """Tell whether this is the answer of the request that the key came with."""
        return self.request in (key.request, b"")


def known(conn: apsw.Connection, key: Key) -> bool:
    """Tell whether a write with this key was answered already, be it this request or another."""
    return conn.execute("SELECT 1 FROM idempotency WHERE key = ?", (key.text,)).fetchone() is not None


def answers(conn: apsw.Connection, keys: Sequence[str]) -> dict[str, Kept]:
    """Return what is kept under those of the keys that were used."""
    return {
        key: Kept(request, answer)
        for key, request, answer in conn.executemany(
            "SELECT key, request, answer FROM idempotency WHERE key = ?", [(key,) for key in keys]
        )
    }


def keep(conn: apsw.Connection, now: float, given: Mapping[str, Kept]) -> None:
    """Keep answers by the text of their keys."""
    conn.executemany(
        "INSERT INTO idempotency (key, answered_at, request, answer) VALUES (?, ?, ?, ?)",
        [(key, now, kept.request, kept.answer) for key, kept in given.items()],
    )


def forget_told(conn: apsw.Connection) -> None:
    """Forget the answers that may tell of what rows say: all but those that have nothing beside SILENT keys.

    Who asks again for one of them asks anew.
    """
    telling = []
    for key, answer in conn.execute("SELECT key, answer FROM idempotency"):
        try:
            told = msgspec.msgpack.decode(answer)
        except msgspec.DecodeError:
            told = None
        if not isinstance(told, dict) or told.keys() - SILENT:
            telling.append((key,))
    conn.executemany("DELETE FROM idempotency WHERE key = ?", telling)


def prune(conn: apsw.Connection, before: float, most: int) -> None:
    """Forget answers given before an instant, and of the others the oldest above ``most``."""
    conn.execute("DELETE FROM idempotency WHERE answered_at < ?", (before,))
    conn.execute(
        "DELETE FROM idempotency"
        " WHERE key IN (SELECT key FROM idempotency ORDER BY answered_at DESC LIMIT -1 OFFSET ?)",
        (most,),
    )
