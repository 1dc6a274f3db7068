"""How well questions match what hardly answers them: the noise of a store, and the gate of the blend above it.

How large a store is says beforehand what its best unrelated row scores; the measurement moves the gate from there.
Asked are questions about anything, which come with the embedder: hardly a store answers them, and the median of what
their best rows score says how near an answer the rest of this store comes. An embedder that brings none is asked
the opening words of some memories; what counts is the best row that is unrelated, neither the memory itself nor one
within half an hour of it. A store holds good answers to some of its own openings too, so that the lower quartile speaks
of noise where the median would speak of them.

Contract: calibration.noise, blend.gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..context import Context
from ..embedding.values import Probes
from ..errors import EmbeddingFailure
from ..model.identity import Embedded
from ..model.kinds import MEMORY, Rid
from ..model.scope import Scope
from ..recall.scoring import blend
from ..recall.types import Candidate, Query
from ..shared.settings import Settings
from ..storage.calibration import Sampled
from .asking import ask, instants_of, near

LEAST_QUERIES = 10
# A gate stands so far above the median of what questions about anything meet, and is moved there by a part.
ABOVE_NOISE, FOLLOWS = 0.10, 0.5
# What openings of memories met in the stores that the shipped gate was chosen on, which had few rows.
USUAL_OPENINGS = 0.12
# Of the gate that the size alone asks for.
RANGE, RANGE_OPENINGS = (0.6, 1.4), (0.4, 2.0)
PRIOR_ROWS = 300  # the gate by size weighs like this many rows of the store


def gate_from(noise: float | None, rows: int, asked: bool) -> float | None:
    """Return the gate for a store of ``rows`` memories whose noise was measured; it moves from the one by size without
    a jump.

    ``asked``: with questions about anything. None when nothing was measured.
    """
    if noise is None:
        return None
    by_size = blend.size_gate(rows)
    if asked:
        told, follows, (low, high) = noise + ABOVE_NOISE, FOLLOWS, RANGE
    else:
        # Of an embedder that nobody tried the scale is not known either: both say as much.
        told, follows, (low, high) = (by_size * blend.GATE * noise / USUAL_OPENINGS) ** 0.5, 1.0, RANGE_OPENINGS
    moved = min(max(by_size + follows * (told - by_size), low * by_size), high * by_size)
    return round(by_size + rows / (rows + PRIOR_ROWS) * (moved - by_size), 4)


def noise_of_questions(found: Sequence[Sequence[Candidate]]) -> float:
    """Return the median of what each question's best row scored, 0 for a question that found none."""
    return float(np.median([max((c.blend or 0.0 for c in rows), default=0.0) for rows in found]))


def noise_of(best: Sequence[float]) -> float | None:
    """Return the lower quartile of what each opening's best unrelated row scored, None for fewer than 10."""
    return float(np.quantile(best, 0.25)) if len(best) >= LEAST_QUERIES else None


def best_unrelated(
    asked: Sampled, found: Sequence[Candidate], instants: Mapping[Rid, float | None], window: float
) -> float:
    """Return the best own score among rows that are not the query's memory nor within ``window`` seconds of it; 0
    without one.
    """
    return max(
        (
            c.scored.own
            for c in found
            if c.scored is not None
            and c.rid != (MEMORY, asked.id)
            and not near(asked.instant, instants.get(c.rid), window)
        ),
        default=0.0,
    )


async def gate_of(
    ctx: Context, settings: Settings, agent: str, openings: Sequence[tuple[Sampled, str]], rows: int, model: str
) -> float | None:
    """Return the gate measured on an agent's store of ``rows`` memories; ``openings`` are some of them with their first
    words.

    ``model`` is the one at work when the store was read: the embedder's questions and the memories' vectors are of it.
    """
    declared = ctx.embedding.declared
    if declared is not None and declared.questions is not None:
        return gate_from(await _asked(ctx, settings, agent, declared.questions, model), rows, True)
    return gate_from(await _openings(ctx, settings, agent, openings, model), rows, False)


async def _asked(ctx: Context, settings: Settings, agent: str, questions: Probes, model: str) -> float:
    vectors = [Embedded(vector, model) for vector in questions.vectors]
    return noise_of_questions(await ask(ctx, settings, _queries(agent, questions.texts, vectors)))


async def _openings(
    ctx: Context, settings: Settings, agent: str, openings: Sequence[tuple[Sampled, str]], model: str
) -> float | None:
    asked = [row for row, text in openings if text]
    texts = [text for _, text in openings if text]
    vectors = await embedded(ctx, texts, asked, model)
    found = await ask(ctx, settings, _queries(agent, texts, vectors))
    instants = await instants_of(ctx, found)
    window = settings.calibrate_temporal_window_min * 60
    return noise_of([best_unrelated(row, rows, instants, window) for row, rows in zip(asked, found, strict=True)])


def _queries(
    agent: str, texts: Sequence[str], vectors: Sequence[Embedded | None]
) -> list[tuple[Query, Embedded | None]]:
    return [(Query(text, Scope(agent), 1), vector) for text, vector in zip(texts, vectors, strict=True)]


async def embedded(ctx: Context, texts: list[str], rows: Sequence[Sampled], model: str) -> Sequence[Embedded | None]:
    """Return a vector for each text; that of its whole memory while the embedder does not answer."""
    if not ctx.embedding.enabled:
        return [None] * len(texts)
    try:
        return (await ctx.embedding.embed_documents(texts, as_questions=True)).each()
    except EmbeddingFailure:
        return [Embedded(row.vector, model) for row in rows]
