"""Handlers of check_health and reindex.

Contract: health.checks, health.repairs.
"""

from __future__ import annotations

import msgspec

from ...health.canaries import run_after
from ...health.reindex import reindex as rebuild
from ...health.verdict import check_health as verdict
from ...shared.methods import WRITE
from ..registry import Call, Handler


class HealthParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str | None = ""
    fix: bool = False
    checks: list[str] | None = None
    deep: bool = False
    session_key: str = ""


class ReindexParams(msgspec.Struct, forbid_unknown_fields=True):
    vectors: bool = False
    session_key: str = ""


async def check_health(call: Call) -> dict:
    p = call.params
    return await verdict(call.ctx, p.agent_id or "", p.checks, p.fix, p.deep, call.may_all(WRITE))


async def reindex(call: Call) -> dict:
    answer = await rebuild(call.ctx, call.progress, call.params.vectors)
    call.ctx.in_background(run_after(call.ctx, "reindex"))
    return answer


HANDLERS = {"check_health": Handler(HealthParams, check_health), "reindex": Handler(ReindexParams, reindex)}
