"""Deleting what nobody sees, in short transactions with other writers between them.

What a killed daemon left hidden is deleted by the next one: an unfinished merge is then undone, an unfinished
deletion finished.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

import apsw
import numpy as np

from ..context import Context
from ..errors import CPersonaError, StorageFailure
from ..model.changes import Hidden
from ..model.kinds import EPISODE, MEMORY, Kind
from ..storage import copying, erasing, hidden, postings
from ..storage.transaction import Transaction
from .progress import Progress

log = logging.getLogger("cpersona.sweep")

# What a transaction may take, its commit included. Who comes a moment too late waits for one more.
TRANSACTION_SECONDS = 0.2
FIRST_ROWS, FEWEST_ROWS, MOST_ROWS = 500, 50, 10_000  # rows deleted in one transaction
FIRST_PAGES, FEWEST_PAGES, MOST_PAGES = 50, 10, 5_000  # pages of the word index merged in one


async def sweep(ctx: Context, progress: Progress | None = None, total: int = 0) -> None:
    """Delete every hidden row; the caller holds ``ctx.moving``. ``progress`` is told how many of ``total`` are done."""
    done, rows = 0, FIRST_ROWS
    while True:
        deleted, begun = await ctx.db.write(_eraser(rows))
        if not deleted:
            break
        done += deleted
        if progress is not None:
            progress({"stage": "deleting", "done": done, "total": max(done, total)})
        rows = _fitting(rows, begun, FEWEST_ROWS, MOST_ROWS)
    if await ctx.db.read(postings.tidying_is_paused):
        await tidy(ctx)


async def finish(ctx: Context, progress: Progress | None, total: int, unfinished: str) -> None:
    """Delete what a piece of work has just hidden; the caller holds ``ctx.moving``.

    Where the caller gives up, the rest goes on in the background. Raises StorageFailure, with ``unfinished`` for what
    is then done and what is not.
    """
    try:
        await sweep(ctx, progress, total)
    except asyncio.CancelledError:
        ctx.in_background(leftovers(ctx))
        raise
    except CPersonaError as error:
        raise StorageFailure(f"{unfinished} ({error}); the next start goes on") from error


async def tidy(ctx: Context) -> None:
    """Merge what deletions left of the word indexes: afterwards they hold no word of a row that was gone before."""
    pages = FIRST_PAGES
    for kind in (MEMORY, EPISODE):
        begin, more = True, True
        while more:
            more, begun = await ctx.db.write(_merger(kind, pages, begin))
            begin, pages = False, _fitting(pages, begun, FEWEST_PAGES, MOST_PAGES)
    await ctx.db.write(postings.resume_tidying)


def _fitting(count: int, begun: float, fewest: int, most: int) -> int:
    """Return how many fit into a transaction, from how long so many took.

    What stood in the queue before them is not counted.
    """
    share = TRANSACTION_SECONDS / max(time.monotonic() - begun, 0.001)
    return min(max(int(count * min(max(share, 0.3), 2.0)), fewest), most)


async def leftovers(ctx: Context, watched: bool = False) -> None:
    """Delete what is hidden and belongs to nothing that is under way; runs in the background and fails quietly.

    ``watched``: a merge ended early, for which changes are still noted.
    """
    try:
        async with ctx.moving:
            if watched:
                await ctx.db.write(copying.unwatch)
            if await ctx.db.read(_is_left):
                with ctx.status.at_work("deletion"):
                    await sweep(ctx)
    except CPersonaError as error:
        log.warning("rows that nobody sees could not be deleted: %s; the next start tries again", error)
        ctx.status.warn(f"rows that nobody sees could not be deleted: {error}; the next start tries again")


def _is_left(conn: apsw.Connection) -> bool:
    return postings.tidying_is_paused(conn) or any(hidden.some(conn, table) for table in hidden.TABLES)


def _eraser(rows: int) -> Callable[[Transaction], tuple[int, float]]:
    """Return the job that deletes so many hidden rows.

    It answers how many there were, and when it began, in monotonic seconds.
    """

    def job(tx: Transaction) -> tuple[int, float]:
        begun, done = time.monotonic(), 0
        for table, erase in erasing.BY_TABLE.items():
            if row_ids := hidden.ids(tx.conn, table, rows - done):
                if len(row_ids) >= FIRST_ROWS and not postings.tidying_is_paused(tx.conn):
                    postings.pause_tidying(tx)
                erase(tx, row_ids)
                done += len(row_ids)
        if done and done < rows:
            tx.changes += [Hidden(kind, np.zeros(0, np.int64)) for kind in (MEMORY, EPISODE)]
        return done, begun

    return job


def _merger(kind: Kind, pages: int, begin: bool) -> Callable[[Transaction], tuple[bool, float]]:
    """Return the job that merges so many pages; it answers whether there was something to merge, and when it began."""

    def job(tx: Transaction) -> tuple[bool, float]:
        begun = time.monotonic()
        return postings.tidy(tx, kind, pages, begin), begun

    return job
