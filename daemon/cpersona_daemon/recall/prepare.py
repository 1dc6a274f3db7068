"""What happens before the snapshot: the question gets its vector, and the numbers that this recall goes by are chosen.

Contract: gate.measured, window.near, advisory.says.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..context import Context
from ..embedding.turns import Claim
from ..embedding.values import Advice, Declared
from ..errors import EmbeddingFailure
from ..model.identity import Embedded
from ..model.signals import Signal
from ..shared.settings import Settings
from ..text.form import content_words
from ..text.question import Question
from .channels.vectors import scans_of
from .run import Run
from .scoring import blend
from .types import BLEND, CASCADE, Query, VectorQuery

BACKLOG_WORTH_WAITING_FOR = 256
# Below the default deadline, so that a hung backend ends in a lexical answer with an advisory and not in a time-out.
QUERY_VECTOR_SECONDS = 20.0


class Lack(NamedTuple):
    """Why a question has no vector: what the answer says about it, and the failure, None without an embedder."""

    advice: Advice
    failure: str | None


async def embed_question(
    ctx: Context, query: Query, question: Question, turn: Claim
) -> tuple[Embedded | None, Lack | None]:
    """Return the question's vector, or why it has none: there is no embedder, or it failed this time.

    Rows stored a moment ago are waited for, so that what was acknowledged can be found.
    """
    if not ctx.embedding.enabled:
        return None, Lack(ctx.embedding.advice(), None)
    try:
        made = await ctx.embedding.embed_query(question.text, query.wait_seconds, QUERY_VECTOR_SECONDS)
    except EmbeddingFailure as error:
        return None, Lack(ctx.embedding.advice(error), str(error))
    if query.wait_seconds > 0 and ctx.backlog.worth_waiting_for(BACKLOG_WORTH_WAITING_FOR, query.wait_seconds):
        turn.give_up()
        await ctx.backlog.wait_until_drained(BACKLOG_WORTH_WAITING_FOR, query.wait_seconds)
        turn.take()
    return made, None


def run_of(ctx: Context, settings: Settings, query: Query, question: Question, made: Embedded | None) -> partial[Run]:
    """Return what makes the run of a snapshot's connection. Everything that the daemon's state decides is settled here.

    ``made`` is the question's vector: rows are judged by what was measured with the model that made it.
    """
    mode, declared = settings.recall_mode, ctx.embedding.declared
    if query.limit > settings.recall_library_max_limit:
        query = replace(query, limit=settings.recall_library_max_limit)
    depth = depth_of(settings, query.limit)
    sense = ctx.embedding.sense(content_words(term.text for term in question.terms)) if mode == BLEND else 1.0
    model = ctx.embedding.model.identity if made is None else made.model
    return partial(
        Run,
        settings=settings,
        query=query,
        question=question,
        vector=None if made is None else _vector_query(ctx, settings, query, made),
        vectors=ctx.vectors,
        now=ctx.clock.now(),
        depth=depth,
        scans=scans_of(settings, depth),
        sense=sense,
        declared=declared,
        measured=_measured(ctx, settings, query.scope.agent_id, model),
        embedded_per_second=ctx.backlog.rate,
        measured_rows=ctx.calibration.rows(query.scope.agent_id),
        beta=ctx.calibration.beta(query.scope.agent_id) if query.beta is None else query.beta,
        cosine_scale=(
            _number(settings, "cosine_floor", None, declared.cosine_floor if declared else None),
            _number(settings, "cosine_ceil", None, declared.cosine_ceil if declared else None),
        ),
    )


def depth_of(settings: Settings, limit: int) -> int:
    """Return how many rows each channel hands over. A blend reorders by what no channel sees alone, so it looks
    deeper.
    """
    return max(limit, settings.recall_depth_floor, blend.DEPTH if settings.recall_mode == BLEND else 0)


def _measured(ctx: Context, settings: Settings, agent_id: str, model: str) -> dict[Signal, float]:
    if not settings.fused_gate_enabled:
        return {}
    gates = {s: ctx.calibration.gate(agent_id, settings.recall_mode, s.value, model) for s in Signal}
    return {signal: value for signal, value in gates.items() if value is not None}


def _number(settings: Settings, name: str, measured: float | None, declared: float | None) -> float:
    """Take a number from the first that has it: set by a person, measured, declared by the embedder, default."""
    default: float = getattr(settings, name)
    if settings.is_set(name):
        return default
    return next((v for v in (measured, declared) if v is not None), default)


def _vector_query(ctx: Context, settings: Settings, query: Query, made: Embedded) -> VectorQuery:
    (vector, model), declared = made, ctx.embedding.declared
    if settings.recall_mode == BLEND:
        # Nothing but the gate decides, so only what points the other way is left out.
        return VectorQuery(vector, model, 0.0, part_of(vector, declared))
    threshold = _number(
        settings,
        "vector_min_similarity",
        ctx.calibration.threshold(query.scope.agent_id, model),
        declared.min_similarity if declared else None,
    )
    factor = 1.0 if settings.recall_mode == CASCADE else settings.rrf_threshold_factor
    return VectorQuery(vector, model, threshold * factor)


def part_of(vector: np.ndarray, declared: Declared | None) -> np.ndarray | None:
    """Return the question with nothing but its multilingual part, of unit length; None where it has none."""
    if declared is None or declared.part is None or len(vector) < declared.part.stop:
        return None
    alone = np.zeros_like(vector)
    alone[declared.part.start : declared.part.stop] = vector[declared.part.start : declared.part.stop]
    norm = float(np.linalg.norm(alone))
    return alone / np.float32(norm) if norm > 0 else None
