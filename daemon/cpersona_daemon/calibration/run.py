"""Measuring a store: its similarity threshold, and a gate for every signal that the recall mode compares.

Reads on reader threads, arithmetic on worker threads, the queries through the live pipeline a few at a time:
the write lock is never held and other requests are answered meanwhile.

Contract: calibration.sample, calibration.gates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ..context import Context
from ..errors import Refused
from ..model.signals import LEGACY, compared_in
from ..shared.settings import Settings
from .drawn import LEAST_SAMPLE, draw
from .gates import gates_of
from .in_force import threshold_in_force
from .measured import Measured, Threshold, orders_by_confidence, scoring_version
from .plan import Plan
from .threshold import threshold_of

Compare = Callable[[Measured, Measured], Awaitable[dict]]


async def calibrate(
    ctx: Context,
    settings: Settings,
    plan: Plan,
    *,
    dry_run: bool = False,
    beta: Callable[[Measured], Measured] | None = None,
    compare: Compare | None = None,
) -> dict:
    """Measure a threshold, with an agent its gates too, keep both and return the answer of `calibrate_threshold`.

    ``beta`` changes the agent's precision together with what is measured under it. ``compare(before, after)`` is asked
    what changes, before anything is kept; its map joins the answer. With ``dry_run`` nothing is kept. Raises Refused
    when there is too little to measure, and StorageFailure; both leave everything as it was.
    """
    plan.check()
    async with ctx.calibration.turn:
        with ctx.status.at_work("calibration"):
            return await _calibrate(ctx, settings, plan, dry_run, beta or (lambda held: held), compare)


async def _calibrate(
    ctx: Context,
    settings: Settings,
    plan: Plan,
    dry_run: bool,
    beta: Callable[[Measured], Measured],
    compare: Compare | None,
) -> dict:
    agent, book = plan.agent_id, ctx.calibration
    forgets = book.forgets(agent)
    # Told once: a service may be another model by the time that its former vectors are measured.
    at_work = ctx.embedding.model
    drawn = await ctx.db.read(draw, plan, at_work, settings)
    if len(drawn.sample) < LEAST_SAMPLE:
        whose = f"agent {agent!r} has" if agent else "the store has"
        raise Refused(f"{whose} {len(drawn.sample)} embedded memories to sample; a calibration needs {LEAST_SAMPLE}")
    value, proxy = await asyncio.to_thread(threshold_of, drawn, plan, settings)
    threshold = Threshold(value, plan.method, plan.sample_size, plan.percentile, plan.z_factor)
    model, version = at_work.identity, scoring_version(ctx.settings)
    dimension = at_work.dimension or len(drawn.sample[0].vector)

    def measured(held: Measured) -> Measured:
        return beta(held.for_model(model, dimension, version)).with_threshold(agent, threshold, drawn.rows)

    # The queries run against the threshold just measured, not the one in force: the same store then gives the same
    # gates.
    trial = measured(book.current)
    signals = LEGACY if orders_by_confidence(settings) else compared_in(settings.recall_mode)
    gates = await gates_of(ctx.under(trial), settings, agent, signals, drawn, model) if agent else {}

    def keep(held: Measured) -> Measured:
        if book.forgets(agent) != forgets:
            raise Refused(f"the data of agent {agent!r} was deleted meanwhile; nothing was kept")
        changed = measured(held)
        return changed.with_gates(agent, settings.recall_mode, signals, gates) if agent else changed

    answer = {
        "ok": True,
        "scope": "per_agent" if agent else "global",
        "agent_id": agent,
        "method": plan.method,
        "sampled_embeddings": len(drawn.sample),
        "old_threshold": threshold_in_force(ctx, settings, agent),
        "new_threshold": value,
        "gates": gates,
        "rows": drawn.rows,
    }
    if proxy is not None:
        answer["proxy_source"] = proxy
    if compare is not None:
        before = book.current
        answer |= await compare(before, keep(before))
    if dry_run:
        answer["dry_run"] = True
    else:
        await asyncio.to_thread(book.update, keep)
    return answer
