"""The gate of every signal that the recall mode compares, measured on what a store's own memories find as questions.

Contract: calibration.gates.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ..context import Context
from ..model.identity import Embedded
from ..model.kinds import MEMORY, Rid
from ..model.scope import Scope
from ..model.signals import Signal
from ..recall.types import Candidate, Query
from ..shared.settings import Settings
from ..storage.calibration import Sampled
from . import measure, noise
from .asking import ask, instants_of, near
from .drawn import Drawn

QUERY_DEPTH = 20
QUERY_CHARS = 48  # the opening words of a memory, as long as a question: whole memories ask for forty words each


@dataclass(frozen=True, slots=True)
class _Found:
    """What the memories found as questions: rows by the id of the one that asked, and the instants of all of them.

    Rows within ``window`` seconds of who asked are related to it.
    """

    rows: dict[int, list[Candidate]]
    instants: dict[Rid, float | None]
    window: float

    def scores(self, draw: list[Sampled], signal: Signal) -> tuple[list[float], list[bool]]:
        """Return the values of a signal that a draw's questions met, and which of them are of a related row."""
        scores, related = [], []
        for row in draw:
            for candidate in self.rows.get(row.id, ()):
                value = _compared(candidate, signal)
                if candidate.rid == (MEMORY, row.id) or value is None:
                    continue
                scores.append(value)
                related.append(near(row.instant, self.instants.get(candidate.rid), self.window))
        return scores, related


async def gates_of(
    ctx: Context, settings: Settings, agent: str, signals: tuple[Signal, ...], drawn: Drawn, model: str
) -> dict[str, float]:
    """Return the gate of each signal that has scores enough, by running the drawn memories as queries."""
    if Signal.BLEND in signals:
        openings = [(row, opening_words(drawn.texts.get(row.id, ""))) for row in drawn.draws[0]]
        measured = await noise.gate_of(ctx, settings, agent, openings, drawn.rows, model)
        return {} if measured is None else {"blend": measured}
    asked = {row.id: row for draw in drawn.draws for row in draw if drawn.texts.get(row.id, "").strip()}
    # The vector that the row was stored with is the query's vector, so nothing is embedded again.
    # Without an embedder the live pipeline has no vectors, and neither has the measurement.
    queries = [
        (
            Query(opening_words(drawn.texts[row.id]), Scope(agent), QUERY_DEPTH),
            Embedded(row.vector, model) if ctx.embedding.enabled else None,
        )
        for row in asked.values()
    ]
    found = await ask(ctx, settings, queries)
    seen = _Found(
        dict(zip(asked, found, strict=True)), await instants_of(ctx, found), settings.calibrate_temporal_window_min * 60
    )
    return await asyncio.to_thread(_sweep, drawn.draws, seen, signals, ctx.calibration.beta(agent), settings)


def opening_words(text: str) -> str:
    """Return the head of a text, cut between words where there are words."""
    head = text.strip()[: QUERY_CHARS + 1]
    if len(head) <= QUERY_CHARS:
        return head
    return head.rsplit(maxsplit=1)[0] if len(head.split()) > 1 else head[:QUERY_CHARS]


def _sweep(
    draws: list[list[Sampled]], found: _Found, signals: tuple[Signal, ...], beta: float, settings: Settings
) -> dict[str, float]:
    """Return the gate of each signal that the draws brought scores enough of."""
    gates = {}
    for signal in signals:
        least = measure.least_gate(signal, settings.calibrate_floor, settings.rrf_k)
        value = measure.gate([found.scores(draw, signal) for draw in draws], beta, least, signal.digits)
        if value is not None:
            gates[signal.value] = value
    return gates


def _compared(candidate: Candidate, signal: Signal) -> float | None:
    """Return a row's value of a signal. Rank fusion gates only rows without a cosine, so it is measured on those:
    rows that two lists voted for would lift its gate above what one list can give.
    """
    if signal is Signal.RRF and candidate.cosine is not None:
        return None
    return candidate.value(signal)
