"""By what a text is known, and what is kept of one that was cut.

Contract: rows.text, dedup.skip.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

KEY_BYTES = 16
LONGEST = 2**53  # characters of a text that was cut, as a mark from outside may claim


def content_key(content: str) -> bytes:
    """Return the 128-bit digest that stands for a content in the unique index and in comparisons."""
    return key_of_bytes(content.encode("utf-8"))


def key_of_bytes(content: bytes) -> bytes:
    """Return the same digest of a content as its bytes stand in the database."""
    return hashlib.blake2b(content, digest_size=KEY_BYTES).digest()


@dataclass(frozen=True, slots=True)
class Whole:
    """What a text was of which only the beginning is kept: its length in characters, and the key it is known by."""

    length: int
    key: bytes

    @classmethod
    def of(cls, text: str, kept: str) -> Whole | None:
        """Return the mark of a text that was cut down to ``kept``, None for one that was not."""
        return None if len(kept) == len(text) else cls(len(text), content_key(text))

    def told(self, kept: str) -> dict:
        """Return the mark as rows carry it out and in: `{kept, of, digest}`."""
        return {"kept": len(kept), "of": self.length, "digest": self.key.hex()}


def read_mark(mark: Any, kept: str) -> Whole:
    """Return what a mark from outside says of a text. Raises ValueError for one that cannot be true of it."""
    length, digest = (mark.get("of"), mark.get("digest")) if isinstance(mark, dict) else (None, None)
    if type(length) is not int or not len(kept) < length <= LONGEST:
        raise ValueError("cut.of is the length of the whole text, more than what is there of it")
    try:
        key = bytes.fromhex(digest) if isinstance(digest, str) else b""
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ValueError(f"cut.digest is {2 * KEY_BYTES} hexadecimal digits")
    return Whole(length, key)
