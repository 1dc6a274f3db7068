"""Writing the words of rows anew after an update that spells them otherwise: in the background, beside all other work.

Meanwhile a row that has not had its turn is found by its former words.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import apsw

from ..context import Context
from ..errors import CPersonaError
from ..storage import camel_case, former

log = logging.getLogger("cpersona.words")

ROWS_AT_ONCE = 100  # some 15 ms of the writer
ROWS_REPLACED_AT_ONCE = 25  # what stood in the index before has to go
AT_WORK = "writing the words of all rows anew"


async def write_words_anew(ctx: Context) -> None:
    """Write the words of every row that still has its former ones, as much of the time as others leave, and at most
    half of it; then those inside camel case of every row that an earlier version indexed.
    """
    if await ctx.db.read(former.present) and not await _written(ctx, former.write_anew, ROWS_AT_ONCE):
        return
    if await ctx.db.read(camel_case.present):
        await _written(ctx, camel_case.write, ROWS_REPLACED_AT_ONCE)


async def _written(ctx: Context, write: Callable[[apsw.Connection, int], bool], rows: int) -> bool:
    """Write so many rows at a time until none is left; false where that failed."""
    log.info("the index of words is written anew; rows that wait are found by their former words")
    loop = asyncio.get_running_loop()
    with ctx.status.at_work(AT_WORK):
        while True:
            began = loop.time()
            try:
                left = await ctx.db.write(lambda tx: write(tx.conn, rows))
            except CPersonaError as error:
                log.warning(
                    "the index of words is written to its end after the next start;"
                    " until then the former words stay in use: %s",
                    error,
                )
                return False
            if not left:
                break
            await asyncio.sleep(loop.time() - began)
    log.info("the index of words is written")
    return True
