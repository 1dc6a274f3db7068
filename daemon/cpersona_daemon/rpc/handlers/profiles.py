"""Handlers of the profile of an agent.

Contract: profile.row.
"""

from __future__ import annotations

import msgspec

from ...memory import archive
from ...storage import profiles
from ..common import AgentParams
from ..registry import Call, Handler


class ProfileParams(msgspec.Struct, forbid_unknown_fields=True):
    agent_id: str
    profile: str = ""
    fail_if_cut: bool = False
    session_key: str = ""


async def update_profile(call: Call) -> dict:
    p, cap = call.params, call.settings.max_profile_length
    return await call.ctx.db.write(
        lambda tx: archive.put_profile(tx, p.agent_id, p.profile, cap, p.fail_if_cut), call.key
    )


async def get_profile(call: Call) -> dict:
    return {"profile": await call.ctx.db.read(profiles.get, call.params.agent_id)}


HANDLERS = {"update_profile": Handler(ProfileParams, update_profile), "get_profile": Handler(AgentParams, get_profile)}
