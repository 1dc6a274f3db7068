"""Handler of backup_database.

Restoring is no method: it happens while no daemon has the database (``portability.backup.restore``).

Contract: backup.file, paths.confined.
"""

from __future__ import annotations

import asyncio
import threading

import msgspec

from ...portability import paths
from ...portability.backup import make
from ..registry import Call, Handler


class BackupParams(msgspec.Struct, forbid_unknown_fields=True):
    output_path: str


async def backup_database(call: Call) -> dict:
    """Answer what was backed up once the file is whole, verified and durable.

    `{ok, path, database, bytes, memories, episodes, profiles, schema}`
    """
    ctx = call.ctx
    target = paths.output_file(call.params.output_path, call.settings, ctx.places)
    stop = threading.Event()
    with ctx.status.at_work("backup"):
        work = asyncio.create_task(
            asyncio.to_thread(make.make, ctx.places, ctx.settings, target, ctx.clock.now(), call.progress, stop)
        )
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # The thread cleans up after itself; nobody may close the database before it has.
            stop.set()
            await asyncio.wait([work])
            raise


HANDLERS = {"backup_database": Handler(BackupParams, backup_database)}
