"""Writing the words of rows anew after an update that spells them otherwise: in the background, beside all other work.

Meanwhile a row that has not had its turn is found by its former words.
"""

from __future__ import annotations

import asyncio
import logging

from ..context import Context
from ..errors import CPersonaError
from ..storage import former

log = logging.getLogger("cpersona.words")

ROWS_AT_ONCE = 100  # some 15 ms of the writer
AT_WORK = "writing the words of all rows anew"


async def write_words_anew(ctx: Context) -> None:
    """Write the words of every row that still has its former ones, as much of the time as others leave, and at most
    half of it.
    """
    if not await ctx.db.read(former.present):
        return
    log.info("the index of words is written anew; rows that wait are found by the former one")
    loop = asyncio.get_running_loop()
    with ctx.status.at_work(AT_WORK):
        while True:
            began = loop.time()
            try:
                left = await ctx.db.write(lambda tx: former.write_anew(tx.conn, ROWS_AT_ONCE))
            except CPersonaError as error:
                log.warning(
                    "the index of words is written to its end after the next start;"
                    " until then the former one stays in use: %s",
                    error,
                )
                return
            if not left:
                break
            await asyncio.sleep(loop.time() - began)
    log.info("the index of words is written")
