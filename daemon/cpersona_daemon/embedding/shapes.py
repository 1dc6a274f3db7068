"""How an embedding service is asked and what it answers: the shape of this project, and that of OpenAI.

Pure functions of bytes. Each takes an answer whole or refuses it.

Contract: embedding.http, embedding.openai.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from ..services.answers import Unfit, decoded
from ..shared.addresses import speaks_openai

AUTO, NATIVE, OPENAI = "auto", "native", "openai"


class Answer(NamedTuple):
    """The vectors of the texts, in their order, and the model that the service names, '' where it names none."""

    rows: list[list[float]]
    model: str


class Shape(NamedTuple):
    """One way to ask. ``body(texts, model)`` is the request, ``read(body, count)`` the answer to so many texts."""

    body: Callable[[list[str], str], bytes]
    read: Callable[[bytes, int], Answer]


def shape_of(api: str, url: str) -> Shape:
    """Return the shape that a setting names, or under auto the address."""
    return _SHAPES[OPENAI if speaks_openai(api, url) else NATIVE]


class _Native(msgspec.Struct):
    embeddings: list[list[float]]
    model: Any = None


class _Item(msgspec.Struct):
    index: int
    embedding: list[float]


class _OpenAI(msgspec.Struct):
    data: list[_Item]
    model: Any = None


_decode_native = msgspec.json.Decoder(_Native).decode
_decode_openai = msgspec.json.Decoder(_OpenAI).decode


# ASCII escapes carry a lone surrogate too, which UTF-8 cannot.


def _native_body(texts: list[str], model: str) -> bytes:
    return json.dumps({"texts": texts}).encode("ascii")


def _openai_body(texts: list[str], model: str) -> bytes:
    return json.dumps({"model": model, "input": texts}).encode("ascii")


def _native_answer(body: bytes, count: int) -> Answer:
    answer = decoded(_decode_native, body)
    return Answer(_sound(answer.embeddings, count), _name(answer.model))


def _openai_answer(body: bytes, count: int) -> Answer:
    answer = decoded(_decode_openai, body)
    # A service may answer in the order in which it was done: each vector says whose it is.
    by_index = {item.index: item.embedding for item in answer.data}
    if len(answer.data) != count:
        raise Unfit(f"has {len(answer.data)} vectors for {count} texts")
    if by_index.keys() != set(range(count)):
        raise Unfit("numbers its vectors otherwise than the texts: one is there twice, or belongs to none")
    return Answer(_sound([by_index[at] for at in range(count)], count), _name(answer.model))


def _name(model: object) -> str:
    return model if isinstance(model, str) else ""


def _sound(rows: list[list[float]], count: int) -> list[list[float]]:
    """Return the rows where they are the vectors of ``count`` texts. Raises Unfit."""
    if len(rows) != count:
        raise Unfit(f"has {len(rows)} vectors for {count} texts")
    width = len(rows[0])
    if width == 0 or any(len(row) != width for row in rows):
        raise Unfit("has empty vectors or vectors of different widths")
    if not all(_finite(row) for row in rows):
        raise Unfit("has a number that is not finite")
    return rows


def _finite(row: Sequence[float]) -> bool:
    return math.isfinite(sum(row)) or all(map(math.isfinite, row))


_SHAPES = {NATIVE: Shape(_native_body, _native_answer), OPENAI: Shape(_openai_body, _openai_answer)}
