"""Handlers of pause, resume and their status. A pause lives in memory and ends by itself.

Contract: pause.answers.
"""

from __future__ import annotations

import msgspec

from ...memory.cleaning import check_axes
from ..common import Whole
from ..pauses import DEFAULT_TTL_SECONDS
from ..registry import Call, Handler


class PauseParams(msgspec.Struct, forbid_unknown_fields=True):
    ttl_seconds: Whole = DEFAULT_TTL_SECONDS
    session_key: str = ""


class SessionParams(msgspec.Struct, forbid_unknown_fields=True):
    session_key: str = ""


async def pause_persistence(call: Call) -> dict:
    check_axes(session_key=call.params.session_key)
    return call.ctx.pauses.pause(call.params.ttl_seconds, call.params.session_key)


async def resume_persistence(call: Call) -> dict:
    return call.ctx.pauses.resume(call.params.session_key)


async def persistence_status(call: Call) -> dict:
    return call.ctx.pauses.status(call.params.session_key)


HANDLERS = {
    "pause_persistence": Handler(PauseParams, pause_persistence),
    "resume_persistence": Handler(SessionParams, resume_persistence),
    "persistence_status": Handler(SessionParams, persistence_status),
}
