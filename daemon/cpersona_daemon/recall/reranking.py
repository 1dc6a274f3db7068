"""Asking the reranker, between two snapshots: nothing is read while it thinks, and its word is kept by row and text.

Contract: rerank.asks, advisory.says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..context import Context
from ..embedding.advice import FAULT_AFTER
from ..embedding.values import Advice
from ..errors import RerankFailure
from ..model.kinds import Rid
from ..text.question import Question

MOST_QUERY_CHARS = 2_000


class Reranked(NamedTuple):
    """What the reranker said, 0 to 1, of each row's text; nothing where it failed, and ``advice`` says so then."""

    scores: Mapping[tuple[Rid, str], float]
    advice: Advice | None = None


async def ask(ctx: Context, question: Question, texts: Mapping[Rid, str]) -> Reranked:
    """Return what the reranker says of some rows. Never raises RerankFailure: an answer without it is an answer."""
    if ctx.reranker is None or not texts:
        return Reranked({})
    try:
        scores = await ctx.reranker.scores(question.text[:MOST_QUERY_CHARS], list(texts.values()))
    except RerankFailure as error:
        return Reranked({}, _advice(ctx.reranker.failures, str(error)))
    return Reranked(dict(zip(texts.items(), scores, strict=True)))


def _advice(failures: int, problem: str) -> Advice:
    return Advice(
        "fault" if failures >= FAULT_AFTER else "hint",
        "the reranker did not answer, so rows stand and pass as without one",
        problem,
        "`cpersona doctor` asks it once more; the next answer of it clears this",
    )
