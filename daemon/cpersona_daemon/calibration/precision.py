"""How strict an agent's gate is: set by name, and measured anew under it.

Contract: calibration.precision.
"""

from __future__ import annotations

import asyncio

from ..context import Context
from ..errors import Refused
from ..shared.settings import Settings
from .measured import BALANCED, BETAS, orders_by_confidence
from .plan import Plan
from .run import calibrate


async def set_precision(ctx: Context, settings: Settings, agent_id: str, precision: str) -> dict:
    """Set how strict an agent's gate is and measure it again at once; '' clears it.

    Raises Refused, with nothing changed, for an unknown name and, in every mode but blend, where there is too little to
    measure.
    """
    if not agent_id:
        raise Refused("agent_id is empty; name the agent whose precision this is")
    if precision and precision not in BETAS:
        raise Refused(f"precision is one of {', '.join(BETAS)}, or empty to clear it, not {precision!r}")
    plan = Plan.of_last(ctx.calibration.current, agent_id)
    if precision:
        beta = BETAS[precision]
        await _with_beta(ctx, settings, plan, beta)
        return {"ok": True, "agent_id": agent_id, "precision": precision, "beta": beta, "cleared": False}
    if agent_id in ctx.calibration.current.betas:
        try:
            await calibrate(ctx, settings, plan, beta=lambda held: held.with_beta(agent_id, None))
        except Refused:
            # Too little is left to measure: the gates of the old precision must not outlive it.
            await asyncio.to_thread(
                ctx.calibration.update, lambda held: held.with_beta(agent_id, None).without_gates(agent_id)
            )
    return {"ok": True, "agent_id": agent_id, "precision": "default", "beta": BETAS[BALANCED], "cleared": True}


async def _with_beta(ctx: Context, settings: Settings, plan: Plan, beta: float) -> None:
    """Set a beta and measure under it. A blend needs none for it: a precision moves whatever gate there is."""
    try:
        await calibrate(ctx, settings, plan, beta=lambda held: held.with_beta(plan.agent_id, beta))
    except Refused:
        if settings.recall_mode != "blend" or orders_by_confidence(settings):
            raise
        await asyncio.to_thread(ctx.calibration.update, lambda held: held.with_beta(plan.agent_id, beta))


def get_precision(ctx: Context, agent_id: str) -> dict:
    """Return an agent's precision; balanced when none was set."""
    name = ctx.calibration.precision(agent_id)
    return {
        "ok": True,
        "agent_id": agent_id,
        "precision": name or BALANCED,
        "beta": ctx.calibration.beta(agent_id),
        "overridden": name is not None,
    }
