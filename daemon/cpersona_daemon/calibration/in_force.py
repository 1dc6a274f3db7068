"""What recall goes by now: measured, declared by the embedder, set by a person or shipped.

Contract: gate.measured, gate.minimum.
"""

from __future__ import annotations

from ..context import Context
from ..model.signals import LEGACY, compared_in
from ..recall.scoring import blend
from ..recall.scoring.gate import BY_SIZE, MEASURED
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


def gate_of_store(ctx: Context, settings: Settings, agent: str, rows: int) -> dict[str, object]:
    """Return the gate of an agent's blend with so many rows, where it comes from, and with how many it was measured."""
    measured = ctx.calibration.gate(agent, "blend", "blend", ctx.embedding.model.identity)
    out: dict[str, object] = {"agent_id": agent, "rows": rows}
    if measured is None or not settings.fused_gate_enabled:
        return out | {"gate": round(blend.size_gate(rows), 4), "from": BY_SIZE}
    had = ctx.calibration.rows(agent)
    return out | {"gate": round(measured + blend.growth(had, rows), 4), "from": MEASURED, "measured_rows": had}


def gates_in_force(ctx: Context, settings: Settings, agent: str) -> dict[str, float]:
    """Return an agent's gates by signal: what was measured, and the gate that a blend ships with where none was."""
    mode, book = settings.recall_mode, ctx.calibration
    by_size = blend.size_gate(book.rows(agent))
    shipped = {"blend": by_size} if agent and mode == "blend" and not orders_by_confidence(settings) else {}
    found = {
        signal: book.gate(agent, mode, signal, ctx.embedding.model.identity) for signal in (*compared_in(mode), *LEGACY)
    }
    return shipped | {signal.value: value for signal, value in found.items() if value is not None}
