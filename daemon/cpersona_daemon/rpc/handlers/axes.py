"""Handler of list_axes: the names that a shell completes."""

from __future__ import annotations

from ...storage import axes
from ..common import AgentParams
from ..registry import Call, Handler


async def list_axes(call: Call) -> dict:
    """Answer `{projects, channels}` of an agent, and without one `{agents}`."""
    agent = call.params.agent_id
    if agent:
        return await call.ctx.db.read(axes.below, agent)
    return {"agents": await call.ctx.db.read(axes.agents)}


HANDLERS = {"list_axes": Handler(AgentParams, list_axes)}
