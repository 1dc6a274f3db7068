"""Forgetting by and by what rows were, once that is older than it is to be kept.

Contract: past.kept.
"""

from __future__ import annotations

import asyncio
import logging

from ..context import Context
from ..errors import CPersonaError
from ..storage import past

log = logging.getLogger("cpersona.aging")

EVERY_SECONDS = 3600.0


async def forget_what_is_old(ctx: Context) -> None:
    """Remove entries of the past whose days are over, at the start and every hour, in short transactions.

    Runs in the background and fails quietly.
    """
    while not ctx.db.read_only:
        try:
            while await ctx.db.read(past.some_old, ctx.clock.now(), ctx.db.history_days):
                await ctx.db.write(past.sweep)
        except CPersonaError as error:
            log.warning("what rows were long ago could not be removed: %s; it is tried again in an hour", error)
        await asyncio.sleep(EVERY_SECONDS)
