"""Measuring an agent again once its store has outgrown what was measured, without being asked.

A recall counts what is in scope anyway. Where that is twice what was measured the measurement follows in the
background, so that a store is measured about as often as it doubles; until then the gate grows with the logarithm.

Contract: calibration.growth.
"""

from __future__ import annotations

import logging

from ..context import Context
from ..errors import CPersonaError, Refused

LEAST_ROWS = 100  # below, the size asks for nothing and a measurement hardly counts

_log = logging.getLogger(__name__)


def noticed(ctx: Context, agent_id: str, rows: int) -> None:
    """Have an agent measured in the background that a recall saw with so many rows, where that is twice what it had.

    Nothing happens where nothing is measured unasked, or while rows wait for their vectors.
    """
    book, settings = ctx.calibration, ctx.settings
    known = max(book.rows(agent_id), book.tried.get(agent_id, 0))
    if rows < max(LEAST_ROWS, 2 * known) or settings.recall_mode != "blend" or not settings.calibrate_on_model_change:
        return
    if ctx.db.read_only or not ctx.embedding.enabled or ctx.backlog.busy:
        return
    book.tried[agent_id] = rows
    ctx.in_background(_measure(ctx, agent_id))


async def _measure(ctx: Context, agent_id: str) -> None:
    from .plan import Plan
    from .run import calibrate

    try:
        await calibrate(ctx, ctx.settings, Plan.of_last(ctx.calibration.current, agent_id))
    except Refused:
        pass  # too few embedded memories; the gate by size stands in
    except CPersonaError as error:
        ctx.status.warn(f"agent {agent_id!r} has outgrown its calibration and could not be measured again: {error}")
        _log.warning("calibration of %r: %s", agent_id, error)
