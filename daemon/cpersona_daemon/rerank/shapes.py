"""How a reranker is asked and what it answers: the shape of Cohere, and that of text-embeddings-inference.

Pure functions of bytes and numbers. Each takes an answer whole or refuses it.

Contract: rerank.asks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from ..services.answers import Unfit, decoded

AUTO, COHERE, TEI = "auto", "cohere", "tei"


class Shape(NamedTuple):
    """One way to ask. ``body(query, texts, model)`` is the request, ``read(body, count)`` the scores of so many texts,
    in their order.
    """

    body: Callable[[str, list[str], str], bytes]
    read: Callable[[bytes, int], list[float]]


def shapes_of(api: str) -> tuple[Shape, ...]:
    """Return the shapes to be tried, in their order: the one that a setting names, or under auto both."""
    return tuple(_SHAPES.values()) if api == AUTO else (_SHAPES[api],)


def probabilities(scores: Sequence[float]) -> list[float]:
    """Return scores between 0 and 1: as they are where all of an answer are, else as log-odds, which models give that
    were not asked for more.
    """
    if all(0.0 <= score <= 1.0 for score in scores):
        return list(scores)
    return [_logistic(score) for score in scores]


def _logistic(score: float) -> float:
    small = math.exp(-abs(score))  # never overflows
    return 1.0 / (1.0 + small) if score >= 0 else small / (1.0 + small)


class _Result(msgspec.Struct):
    index: int
    relevance_score: float


class _Cohere(msgspec.Struct):
    results: list[_Result]


class _Rank(msgspec.Struct):
    index: int
    score: float


_decode_cohere = msgspec.json.Decoder(_Cohere).decode
_decode_tei = msgspec.json.Decoder(list[_Rank]).decode


def _cohere_body(query: str, texts: list[str], model: str) -> bytes:
    named = {"model": model} if model else {}
    return json.dumps({**named, "query": query, "documents": texts, "top_n": len(texts)}).encode("ascii")


def _tei_body(query: str, texts: list[str], model: str) -> bytes:
    # Without it a text that is too long for the model fails the whole request.
    return json.dumps({"query": query, "texts": texts, "truncate": True}).encode("ascii")


def _cohere_scores(body: bytes, count: int) -> list[float]:
    answer = decoded(_decode_cohere, body)
    return _in_order([(result.index, result.relevance_score) for result in answer.results], count)


def _tei_scores(body: bytes, count: int) -> list[float]:
    return _in_order([(rank.index, rank.score) for rank in decoded(_decode_tei, body)], count)


def _in_order(scored: list[tuple[int, float]], count: int) -> list[float]:
    """Return the scores by their index. Raises Unfit unless each of ``count`` texts has one, and one alone."""
    if len(scored) != count:
        raise Unfit(f"has {len(scored)} scores for {count} texts")
    by_index = dict(scored)
    if by_index.keys() != set(range(count)):
        raise Unfit("numbers its scores otherwise than the texts: one is there twice, or belongs to none")
    if not all(map(math.isfinite, by_index.values())):
        raise Unfit("has a score that is not finite")
    return [by_index[at] for at in range(count)]


_SHAPES = {COHERE: Shape(_cohere_body, _cohere_scores), TEI: Shape(_tei_body, _tei_scores)}
