"""Reading what a service answered, whole or not at all.

Contract: embedding.http, embedding.openai, rerank.asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

Answered = TypeVar("Answered")


class Unfit(ValueError):
    """Why an answer is not that to what was asked; the message goes on from "the answer of …"."""


def decoded(decode: Callable[[bytes], Answered], body: bytes) -> Answered:
    """Return a body as a decoder reads it. Raises Unfit, whose message quotes nothing of the body."""
    try:
        return decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unfit(f"is not what was asked for ({error})") from None
