"""Measuring again after a start, where what is measured no longer fits.

Contract: calibration.file.
"""

from __future__ import annotations

import asyncio

from ..context import Context
from ..errors import CPersonaError, EmbeddingFailure, Refused
from ..shared.settings import Settings
from ..storage import calibration as rows
from ..storage import vector_counts
from .measured import EVERY_AGENT, scoring_version
from .plan import Plan
from .run import calibrate


async def recalibrate_if_stale(ctx: Context) -> None:
    """Measure every agent again when model, dimension or scoring changed since, or nothing is measured yet; and an
    agent that has twice or half the memories it had.

    Run it as a task once the embedder is ready. Betas are kept and the old file is backed up; an agent with fewer
    than 10 embedded memories stays uncalibrated. Raises only CancelledError.
    """
    settings = ctx.settings
    if ctx.calibration.problem:
        ctx.status.warn(ctx.calibration.problem)
    if not settings.calibrate_on_model_change or not ctx.embedding.enabled:
        return
    try:
        if ctx.embedding.model.dimension is None and (ctx.calibration.exists or await ctx.db.read(rows.agents)):
            # A service tells its model only with an answer.
            await ctx.embedding.embed_documents(["calibration"])
        await _recalibrate(ctx, settings)
    except EmbeddingFailure as error:
        ctx.status.warn(f"calibration at start was left out, the embedder does not answer: {error}")
    except CPersonaError as error:
        ctx.status.warn(f"calibration at start failed: {error}")


async def _recalibrate(ctx: Context, settings: Settings) -> None:
    (model, dimension), version = ctx.embedding.model, scoring_version(settings)
    before = ctx.calibration.current
    agents = await ctx.db.read(rows.agents)
    if ctx.calibration.stale(model, dimension, version):
        if before.stale(model, dimension, version):
            await asyncio.to_thread(ctx.calibration.update, lambda held: held.for_model(model, dimension or 0, version))
        if EVERY_AGENT in before.thresholds:
            agents = [EVERY_AGENT, *agents]
    else:
        # A precision holds in the mode it was measured in; after a change of mode it is measured again.
        unmeasured = {a for a in agents if a in before.betas and settings.recall_mode not in before.gates.get(a, {})}
        agents = [a for a in agents if a in unmeasured or before.outgrown(a, await ctx.db.read(vector_counts.size, a))]
    for agent in agents:
        try:
            await calibrate(ctx, settings, Plan.of_last(before, agent))
        except Refused:
            continue  # too few embedded memories; the shipped numbers stand in
