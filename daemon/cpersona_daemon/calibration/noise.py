"""How well questions match what does not answer them: the noise of a store, and the gate of the blend above it.

The opening words of some memories are embedded and asked, through the live pipeline; what counts is the best row that
is unrelated, neither the memory itself nor one within half an hour of it. A store holds good answers to some of its own
openings too, so that the lower quartile speaks of noise where the median would speak of them.

Contract: issue "Honest recall", item 1; contracts.md §13 "blend".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..context import Context
from ..embedding.base import Profile
from ..errors import EmbeddingFailure
from ..recall import blend
from ..recall.types import Candidate, Query
from ..settings import Settings
from ..storage.calibration import Sampled
from ..storage.scope import Scope
from ..vectors.changes import MEMORY, Rid
from .asking import ask, near

LEAST_QUERIES = 10
USUAL = 0.12  # the noise of the stores that the shipped gate was chosen on
# A declared model was measured before it was shipped: its gate moves a little. Of an unknown one nothing is known.
DECLARED_RANGE, UNKNOWN_RANGE = (0.85, 1.15), (0.4, 2.0)
DECLARED_ROWS, UNKNOWN_ROWS = 200, 20  # the shipped gate weighs like this many rows of the store


def gate_from(noise: float | None, rows: int, profile: Profile | None) -> float | None:
    """Return the gate for a store of ``rows`` memories whose noise was measured; it moves from the shipped one without a jump.

    None when nothing was measured.
    """
    if noise is None:
        return None
    low, high = DECLARED_RANGE if profile is not None else UNKNOWN_RANGE
    weight = rows / (rows + (DECLARED_ROWS if profile is not None else UNKNOWN_ROWS))
    return round(blend.GATE * (1 + weight * (min(max(noise / USUAL, low), high) - 1)), 4)


def noise_of(best: Sequence[float]) -> float | None:
    """Return the lower quartile of what each query's best unrelated row scored, None for fewer than 10 queries."""
    return float(np.quantile(best, 0.25)) if len(best) >= LEAST_QUERIES else None


def best_unrelated(asked: Sampled, found: Sequence[Candidate], instants: Mapping[Rid, float | None], window: float) -> float:
    """Return the best own score among rows that are not the query's memory nor within ``window`` seconds of it; 0 without one."""
    return max((c.scored.own for c in found if c.rid != (MEMORY, asked.id) and not near(asked.instant, instants.get(c.rid), window)), default=0.0)


async def measure(ctx: Context, settings: Settings, agent: str, queries: Sequence[Sampled], texts: Mapping[int, str]) -> float | None:
    """Return the noise of an agent's store from memories that ask with their opening words; ``texts`` are those words by id."""
    asked = [row for row in queries if texts.get(row.id)]
    vectors = await _embedded(ctx, [texts[row.id] for row in asked], asked)
    queries = [(Query(texts[row.id], Scope(agent), 1, count_recalls=False), vector) for row, vector in zip(asked, vectors, strict=True)]
    found, instants = await ask(ctx, settings, queries)
    window = settings.calibrate_temporal_window_min * 60
    return noise_of([best_unrelated(row, rows, instants, window) for row, rows in zip(asked, found, strict=True)])


async def _embedded(ctx: Context, texts: list[str], rows: Sequence[Sampled]) -> list[np.ndarray | None]:
    """Return a vector for each text; that of its whole memory while the embedder does not answer."""
    if ctx.embedding.mode == "none":
        return [None] * len(texts)
    try:
        return list(await ctx.embedding.embed_texts(texts))
    except EmbeddingFailure:
        return [row.vector for row in rows]
