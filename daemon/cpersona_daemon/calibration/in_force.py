"""What recall goes by now: measured, declared by the embedder, set by a person or shipped.

Contract: gate.measured, gate.minimum.
"""

from __future__ import annotations

from ..context import Context
from ..model.signals import LEGACY, compared_in
from ..recall.scoring import blend
from ..shared.settings import Settings
from .measured import orders_by_confidence


def threshold_in_force(ctx: Context, settings: Settings, agent: str) -> float:
    """Return the threshold measured so far, else the one declared by the embedder, else the setting."""
    found = ctx.calibration.threshold(agent, ctx.embedding.model.identity)
    if found is not None:
        return found
    declared = ctx.embedding.declared
    return (
        settings.vector_min_similarity
        if declared is None or settings.is_set("vector_min_similarity")
        else declared.min_similarity
    )


def gates_in_force(ctx: Context, settings: Settings, agent: str) -> dict[str, float]:
    """Return an agent's gates by signal: what was measured, and the gate that a blend ships with where none was."""
    mode, book = settings.recall_mode, ctx.calibration
    shipped = {"blend": blend.GATE} if agent and mode == "blend" and not orders_by_confidence(settings) else {}
    found = {
        signal: book.gate(agent, mode, signal, ctx.embedding.model.identity) for signal in (*compared_in(mode), *LEGACY)
    }
    return shipped | {signal.value: value for signal, value in found.items() if value is not None}
