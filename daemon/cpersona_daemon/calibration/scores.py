"""What known and unrelated questions score, for a picture: how far the two lie apart, and where the gate stands.

A known question is one whose row is known: a saved one, or the opening words of a memory. What is unrelated are the
questions about anything that come with an embedder; one that brings none is shown the best row of each known question
that is neither its own nor stored within minutes of it.

Contract: scores.drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..context import Context
from ..model.identity import Embedded
from ..model.kinds import MEMORY, Rid
from ..model.scope import Scope
from ..model.signals import LEGACY, Signal, compared_in
from ..recall.types import Candidate, Query
from ..shared.settings import Settings
from ..storage import vector_counts
from .asking import ask, instants_of, near
from .drawn import draw
from .gates import QUERY_DEPTH, opening_words
from .in_force import gate_of_store, gates_in_force
from .measured import orders_by_confidence
from .noise import embedded
from .plan import Plan

DIGITS = 6


@dataclass(frozen=True, slots=True)
class Known:
    """A question, its vector where it has one yet, and the row that answers it."""

    query: Query
    vector: Embedded | None
    rid: Rid


async def of_openings(ctx: Context, settings: Settings, plan: Plan) -> list[Known]:
    """Return the opening words of the memories that a calibration asks, each as a question for its memory."""
    at_work = ctx.embedding.model
    drawn = await ctx.db.read(draw, plan, at_work, settings)
    rows = [(row, opening_words(drawn.texts.get(row.id, ""))) for row in (drawn.draws or [[]])[0]]
    asked, texts = [row for row, text in rows if text], [text for _, text in rows if text]
    vectors = await embedded(ctx, texts, asked, at_work.identity)
    return [
        Known(Query(text, Scope(plan.agent_id), QUERY_DEPTH), vector, (MEMORY, row.id))
        for row, text, vector in zip(asked, texts, vectors, strict=True)
    ]


async def draw_scores(ctx: Context, settings: Settings, agent: str, known: Sequence[Known]) -> dict[str, Any]:
    """Return `{signal, gate, known, known_missing, unrelated, unrelated_missing}` of an agent.

    The scores of one signal, rounded and ascending; a question that its row did not come into question for, or that
    found nothing at all, is counted as missing. ``gate`` is None where none is in force.
    """
    found = await ask(ctx, settings, [(one.query, one.vector) for one in known])
    others = await _unrelated(ctx, settings, agent, known, found)
    signal = _shown(ctx, settings, agent)
    own = [next((c for c in rows if c.rid == one.rid), None) for one, rows in zip(known, found, strict=True)]
    told, missing = _values([[row] if row else [] for row in own], signal)
    noise, empty = _values(others, signal)
    return {
        "signal": signal.value,
        "gate": await _gate(ctx, settings, agent, signal),
        "known": told,
        "known_missing": missing,
        "unrelated": noise,
        "unrelated_missing": empty,
    }


async def _unrelated(
    ctx: Context, settings: Settings, agent: str, known: Sequence[Known], found: Sequence[Sequence[Candidate]]
) -> list[list[Candidate]]:
    declared = ctx.embedding.declared
    if declared is not None and declared.questions is not None:
        model, probes = ctx.embedding.model.identity, declared.questions
        return await ask(
            ctx,
            settings,
            [
                (Query(text, Scope(agent), 1), Embedded(vector, model))
                for text, vector in zip(probes.texts, probes.vectors, strict=True)
            ],
        )
    instants = await instants_of(ctx, [*found, []])
    window = settings.calibrate_temporal_window_min * 60
    return [
        [c for c in rows if c.rid != one.rid and not near(instants.get(one.rid), instants.get(c.rid), window)]
        for one, rows in zip(known, found, strict=True)
    ]


def _values(found: Sequence[Sequence[Candidate]], signal: Signal) -> tuple[list[float], int]:
    """Return the best value of a signal that each question found, ascending, and how many found none."""
    best = [max((v for c in rows if (v := c.value(signal)) is not None), default=None) for rows in found]
    values = sorted(round(value, DIGITS) for value in best if value is not None)
    return values, len(best) - len(values)


def _shown(ctx: Context, settings: Settings, agent: str) -> Signal:
    """Return the signal that is drawn: the first that the gate compares and that has a gate, else the first."""
    signals = LEGACY if orders_by_confidence(settings) else compared_in(settings.recall_mode)
    gates = gates_in_force(ctx, settings, agent)
    return next((signal for signal in signals if signal.value in gates), signals[0])


async def _gate(ctx: Context, settings: Settings, agent: str, signal: Signal) -> float | None:
    """Return the gate of as many rows as the agent has now."""
    if signal is Signal.BLEND:
        rows = await ctx.db.read(vector_counts.size, agent)
        grown: Any = gate_of_store(ctx, settings, agent, rows)["gate"]
        return float(grown)
    return gates_in_force(ctx, settings, agent).get(signal.value)
