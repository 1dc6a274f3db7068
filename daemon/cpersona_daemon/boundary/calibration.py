"""Handlers of calibrate_threshold and of the recall precision.

Contract: contracts.md §8, §13.
"""

from __future__ import annotations

import msgspec

from ..calibration import run
from .registry import Call, Method


class CalibrateParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str | None = ""
    sample_size: int = 200
    method: str = run.SEPARATION
    percentile: float = 0.95
    z_factor: float = 1.0
    dry_run: bool = False
    session_key: str = ""


class PrecisionParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    precision: str | None = ""
    session_key: str = ""


class AgentParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str


async def calibrate_threshold(call: Call) -> dict:
    p = call.params
    plan = run.Plan(p.agent_id or "", p.sample_size, p.method, p.percentile, p.z_factor)
    return await run.calibrate(call.ctx, call.settings, plan, dry_run=p.dry_run)


async def set_recall_precision(call: Call) -> dict:
    p = call.params
    return await run.set_precision(call.ctx, call.settings, p.agent_id, (p.precision or "").strip().lower())


async def get_recall_precision(call: Call) -> dict:
    return run.get_precision(call.ctx, call.params.agent_id)


# A pause keeps conversations out of the store; what is measured about the rows already there is none of that.
METHODS = {
    "calibrate_threshold": Method(CalibrateParams, calibrate_threshold),
    "set_recall_precision": Method(PrecisionParams, set_recall_precision),
    "get_recall_precision": Method(AgentParams, get_recall_precision),
}
