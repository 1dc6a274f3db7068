"""Importing a file: two streamed passes, short transactions with other writers between them.

While one chunk is written the next one is read. Only the writer thread touches the database, and only the
outcome of a committed transaction is counted, so that an import that ends early says exactly what it stored.

Contract: import.lines.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, BinaryIO

from ...context import Context
from ...errors import CPersonaError, Refused
from ...shared.settings import Settings
from ...storage.transaction import Transaction
from .. import paths
from ..progress import Progress
from ..sweep import TRANSACTION_SECONDS
from .export_file import ExportFile
from .format import Format, Survey
from .outcome import Outcome
from .reading import Chunk, Reader
from .records import BadRecord, Record, Row
from .reference_database import ReferenceDatabase
from .seems import seems
from .writing import DryRun, Ids, Taker, Writer

FORMATS: tuple[Format, ...] = (ReferenceDatabase(), ExportFile())  # asked in this order whether a file is theirs
LEARN_SECONDS = 5.0  # how long an embedder may take to say which model it is, before the first line is written


@dataclass(frozen=True, slots=True)
class Options:
    """How to import. ``target`` replaces the agent of every record, ``batch`` names the run that new rows belong to.

    With ``embed`` rows without a vector, or with one of another model, are listed for embedding, with ``fail_if_cut``
    records whose text is too long are left out instead of cut, with ``keep_vectors`` vectors of another model stay as
    they are.
    """

    dry_run: bool = False
    target: str = ""
    embed: bool = False
    batch: str = ""
    fail_if_cut: bool = False
    keep_vectors: bool = False


async def import_file(
    ctx: Context, settings: Settings, path: object, options: Options, progress: Progress | None = None
) -> dict:
    """Import a file and return import_memories' answer.

    ``progress`` is called with `{done, total}` in lines. Raises Refused, with nothing changed, for a file that
    cannot be read or is not what its header says; an import that ends later answers `ok: false` with what it stored.
    """
    handle = paths.open_input(path, settings, ctx.places)
    stop, survey = threading.Event(), Survey()
    try:
        known = await asyncio.to_thread(_recognised, handle, stop)
        if known is None:
            raise Refused(
                f"this is no export of cpersona, {await asyncio.to_thread(seems, handle)}; nothing was imported"
            )
        its_format, survey = known
        records = its_format.records(handle, survey, options.target, settings)
        reader = Reader(records, not options.dry_run, options.fail_if_cut, survey.unit)
        return await _Import(ctx, options, survey, progress).run(reader)
    except OSError as error:
        raise Refused(f"input_path cannot be read ({error.strerror})") from None
    finally:
        stop.set()
        survey.close()
        handle.close()


def _recognised(handle: BinaryIO, stop: threading.Event) -> tuple[Format, Survey] | None:
    """Return the format that a file is of with what it holds, None for a file of no format that is known."""
    for one in FORMATS:
        if (survey := one.survey(handle, stop)) is not None:
            if not stop.is_set():
                return one, survey
            survey.close()  # nobody waits for it any more
    return None


class _Import:
    """One import under way: its second pass."""

    def __init__(self, ctx: Context, options: Options, survey: Survey, progress: Progress | None) -> None:
        self._ctx, self._options, self._lines, self._unit = ctx, options, survey.lines, survey.unit.lower()
        self._tell = progress or (lambda step: None)
        self._embed = options.embed and ctx.embedding.enabled and not options.dry_run
        self._total, self._done = Outcome(), 0
        self._ids: Ids = Ids(survey.wanted)
        self._seen: set[bytes] = set()

    async def run(self, reader: Reader) -> dict:
        """Take in what the reader gives and return the answer."""
        dry_run = self._options.dry_run
        if self._embed:
            await self._ctx.embedding.learn(LEARN_SECONDS)
        self._model = self._ctx.embedding.model if self._ctx.embedding.enabled else None
        try:
            await self._take_all(reader)
        except asyncio.CancelledError:
            # Whoever asked has left; what was committed is told to who asks later.
            self._tell({**self._total.answer(dry_run), "done": self._done, "total": self._lines, "final": True})
            raise
        except (CPersonaError, OSError) as error:
            text = str(error) or type(error).__name__
            ended = (
                "nothing was written"
                if dry_run or not self._done
                else f"{self._unit}s 1 to {self._done} of {self._lines} are stored, the rest is not;"
                " running it again is harmless"
            )
            return {"ok": False, "error": f"the import ended early: {text}; {ended}", **self._total.answer(dry_run)}
        self._tell({"done": self._lines, "total": self._lines})
        return {"ok": True, **self._total.answer(dry_run)}

    async def _take_all(self, reader: Reader) -> None:
        chunk = await asyncio.to_thread(reader.chunk)
        while chunk.items:
            following = asyncio.create_task(asyncio.to_thread(reader.chunk))
            try:
                await self._take(chunk)
            finally:
                # A reading that is still under way would meet a closed file.
                upcoming = await _finished(following)
            self._tell({"done": chunk.last_line, "total": self._lines})
            chunk = upcoming

    async def _take(self, chunk: Chunk) -> None:
        step = self._try_out if self._options.dry_run else self._write
        start, left = 0, False
        while start < len(chunk.items) and not left:
            (start, outcome), left = await _whole(step(chunk, start))
            self._total.add(outcome)
            self._done = chunk.items[start - 1][0]
            if not self._options.dry_run:  # what has its vector may be listed for passages
                self._ctx.backlog.wake()
        if left:
            raise asyncio.CancelledError

    async def _write(self, chunk: Chunk, start: int) -> tuple[int, Outcome]:
        def job(tx: Transaction) -> tuple[int, Outcome]:
            options = self._options
            writer = Writer(tx, self._ids, self._embed, options.batch, self._model, options.keep_vectors)
            return apply(chunk, start, writer)

        return await self._ctx.db.write(job)

    async def _try_out(self, chunk: Chunk, start: int) -> tuple[int, Outcome]:
        return await self._ctx.db.read(
            lambda conn: apply(chunk, start, DryRun(conn, self._ids, self._seen, self._model))
        )


async def _whole(step: Coroutine[Any, Any, tuple[int, Outcome]]) -> tuple[tuple[int, Outcome], bool]:
    """Return what a step did, and whether this task was cancelled meanwhile: a transaction under way is counted."""
    task = asyncio.get_running_loop().create_task(step)
    try:
        return await asyncio.shield(task), False
    except asyncio.CancelledError:
        await asyncio.wait([task])
        return task.result(), True


async def _finished(task: asyncio.Task[Chunk]) -> Chunk:
    """Wait for a task to its end, even while this one is being cancelled, and return its result."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def apply(chunk: Chunk, start: int, into: Taker) -> tuple[int, Outcome]:
    """Take in the records of a chunk from ``start`` on, for as long as a transaction may last.

    Returns where the next transaction goes on, and the outcome of this one.
    """
    out, deadline, place = Outcome(chunk.unit), time.monotonic() + TRANSACTION_SECONDS, start
    while place < len(chunk.items) and (place == start or time.monotonic() < deadline):
        number, record = chunk.items[place]
        if isinstance(record, Row):
            rows = chunk.rows_from(place)
            into.take_rows([row for _, row in rows], out)
            for number, row in rows:
                out.cut += row.cut is not None
                for remark in row.remarks:
                    out.complain(number, remark)
            place += len(rows)
        else:
            _apply_one(number, record, into, out)
            place += 1
    return place, out


def _apply_one(number: int, record: Record | BadRecord, into: Taker, out: Outcome) -> None:
    try:
        if isinstance(record, BadRecord):
            raise record
        for remark in into.take(record, out):
            out.complain(number, remark)
    except BadRecord as error:
        out.reject(number, error)
