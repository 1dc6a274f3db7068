"""Handlers of calibrate_threshold and of the recall precision.

Contract: calibration.sample, calibration.precision.
"""

from __future__ import annotations

import asyncio

import msgspec

from ...calibration import plan, precision, run, scores
from ...calibration.in_force import gates_in_force, threshold_in_force
from ...errors import InvalidParams
from ...health import canaries
from ...memory.cleaning import check_axes
from ..registry import Call, Handler


class CalibrateParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str | None = ""
    sample_size: int = 200
    method: str = plan.SEPARATION
    percentile: float = 0.95
    z_factor: float = 1.0
    dry_run: bool = False
    rollback: bool = False
    scores: bool = False
    session_key: str = ""


class PrecisionParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    precision: str | None = ""
    session_key: str = ""


class AgentParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str


async def calibrate_threshold(call: Call) -> dict:
    p = call.params
    agent, ctx = p.agent_id or "", call.ctx
    if p.scores and (p.rollback or not agent):
        raise InvalidParams("scores are those of one agent and of a measurement: name agent_id, leave rollback out")
    compare = canaries.comparison(ctx, call.settings, agent)
    if p.rollback:
        answer = await _roll_back(call, agent, compare)
    else:
        wanted = plan.Plan(agent, p.sample_size, p.method, p.percentile, p.z_factor)
        answer = await run.calibrate(ctx, call.settings, wanted, dry_run=p.dry_run, compare=compare)
        if p.scores:
            known = await scores.of_openings(ctx, call.settings, wanted)
            drawn = await scores.draw_scores(ctx, call.settings, agent, known)
            # A dry run keeps nothing: its own gate is the one to look at.
            answer["scores"] = drawn | {"gate": answer["gates"].get(drawn["signal"], drawn["gate"])}
    if not p.dry_run:
        ctx.in_background(canaries.run_after(ctx, "a calibration", agent))
    return answer


async def _roll_back(call: Call, agent: str, compare: run.Compare) -> dict:
    """Return to the agent's calibration before the last one, or with dry_run only say what that would change."""
    ctx = call.ctx
    async with ctx.calibration.turn:
        now = ctx.calibration.current
        before, after = now, await asyncio.to_thread(ctx.calibration.earlier, agent)
        changes = await compare(before, after)
        if not call.params.dry_run:
            before, after = await asyncio.to_thread(ctx.calibration.roll_back, agent)
    returned = ctx.under(after)
    return {
        "ok": True,
        "rolled_back": not call.params.dry_run,
        "scope": "per_agent" if agent else "global",
        "agent_id": agent,
        "old_threshold": threshold_in_force(ctx.under(before), call.settings, agent),
        "new_threshold": threshold_in_force(returned, call.settings, agent),
        "gates": gates_in_force(returned, call.settings, agent),
        **changes,
        **({"dry_run": True} if call.params.dry_run else {}),
    }


async def set_recall_precision(call: Call) -> dict:
    p = call.params
    check_axes(agent_id=p.agent_id)
    return await precision.set_precision(call.ctx, call.settings, p.agent_id, (p.precision or "").strip().lower())


async def get_recall_precision(call: Call) -> dict:
    return precision.get_precision(call.ctx, call.params.agent_id)


HANDLERS = {
    "calibrate_threshold": Handler(CalibrateParams, calibrate_threshold),
    "set_recall_precision": Handler(PrecisionParams, set_recall_precision),
    "get_recall_precision": Handler(AgentParams, get_recall_precision),
}
