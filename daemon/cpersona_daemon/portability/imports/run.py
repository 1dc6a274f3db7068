"""Importing a file: two streamed passes, short transactions with other writers between them.

While one batch is written the next one is read. Only the writer thread touches the database, and only the
outcome of a committed batch is counted, so that an import that ends early says exactly what it stored.

Contract: import.lines.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from ...context import Context
from ...errors import CPersonaError, Refused
from ...model.kinds import MEMORY
from ...shared.settings import Settings
from ...storage.memories import Prepared
from ...storage.transaction import Transaction
from .. import paths
from . import lines
from .lines import BadLine, HeaderLine, Row
from .seems import seems
from .survey import Survey, read_lines, survey
from .writing import DryRun, Ids, Restore

BATCH_LINES = 1000
# A statement writes so many rows at once: the next batch is read meanwhile, on the other processor.
ROWS_TOGETHER = 64
BATCH_BYTES = 8 * 1024 * 1024
# The commit and the vector index come on top, and who comes a moment too late waits for one more transaction.
TRANSACTION_SECONDS = 0.2
MAX_ERRORS = 100
LEARN_SECONDS = 5.0  # how long an embedder may take to say which model it is, before the first line is written

Progress = Callable[[dict], None]


@dataclass(slots=True)
class Outcome:
    """What became of the lines so far."""

    imported_memories: int = 0
    skipped_memories: int = 0
    imported_episodes: int = 0
    skipped_episodes: int = 0
    entities: int = 0
    mentions: int = 0
    relations: int = 0
    profile_updated: bool = False
    uncompared: int = 0  # rows without a vector, or with one of another model or width than those of the embedder
    listed: bool = False
    cut: int = 0
    errors: list[str] = field(default_factory=list)
    error_count: int = 0  # the rejected lines, and what is to be said of others
    rejected: int = 0

    def complain(self, line: int, text: str) -> None:
        self.error_count += 1
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(f"Line {line}: {text}")

    def add(self, other: Outcome) -> None:
        """Take over what another part of the import did."""
        for name in (
            "imported_memories",
            "skipped_memories",
            "imported_episodes",
            "skipped_episodes",
            "entities",
            "mentions",
            "relations",
            "uncompared",
            "cut",
            "error_count",
            "rejected",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.profile_updated |= other.profile_updated
        self.errors.extend(other.errors[: MAX_ERRORS - len(self.errors)])

    def answer(self, dry_run: bool) -> dict:
        """Return import_memories' answer but for `ok`."""
        out: dict[str, Any] = {
            "dry_run": dry_run,
            "imported_memories": self.imported_memories,
            "skipped_memories": self.skipped_memories,
            "imported_episodes": self.imported_episodes,
            "skipped_episodes": self.skipped_episodes,
            "profile_updated": self.profile_updated,
        }
        if self.entities or self.mentions or self.relations:
            out["associations"] = {"entities": self.entities, "mentions": self.mentions, "relations": self.relations}
        if self.uncompared:
            out["listed_for_embedding" if self.listed else "without_usable_vector"] = self.uncompared
        if self.cut:
            out["cut"] = self.cut
        if self.error_count:
            out["errors"], out["error_count"] = self.errors, self.error_count
        if self.rejected:
            out["rejected"] = self.rejected
        return out


@dataclass(slots=True)
class Batch:
    """Lines that were read: (number, item or BadLine) and the number of the last line, blank ones included."""

    items: list[tuple[int, Any]]
    last_line: int

    def rows_from(self, place: int) -> list[tuple[int, Row]]:
        """Return the rows of one kind that stand together from here on, so many as one statement writes."""
        kind, end = self.items[place][1].kind, place + 1
        stop = min(len(self.items), place + ROWS_TOGETHER)
        while end < stop and type(self.items[end][1]) is Row and self.items[end][1].kind == kind:
            end += 1
        return self.items[place:end]


class _Reader:
    """The second pass: lines become checked items, a batch at a time."""

    def __init__(self, handle: BinaryIO, count: int, target: str, settings: Settings, prepare: bool, fail_if_cut: bool):
        self._lines, self._number, self._count = read_lines(handle), 0, count
        self._owner = ""  # whom the last header named
        self._target, self._settings, self._prepare, self._fail_if_cut = target, settings, prepare, fail_if_cut

    def batch(self) -> Batch:
        """Return the next lines, none at the end of the file."""
        with np.errstate(over="ignore", invalid="ignore"):  # such vectors are reported, with their line
            return self._batch()

    def _batch(self) -> Batch:
        items: list[tuple[int, Any]] = []
        size = 0
        # Not beyond the lines that the first pass counted: a file that still grows is read as far as it was checked.
        while self._number < self._count and len(items) < BATCH_LINES and size < BATCH_BYTES:
            raw = next(self._lines, b"")
            self._number += 1
            if raw is None:
                items.append((self._number, BadLine("longer than any line of an export")))
                continue
            if not raw:
                continue
            size += len(raw)
            try:
                item = lines.parse(raw, self._target, self._settings, self._owner)
                if type(item) is HeaderLine:
                    self._owner = item.agent_id
                if self._fail_if_cut and (cut := getattr(item, "cut", None)):
                    raise BadLine(
                        f"its text has {cut['of']:,} characters, {cut['kept']:,} would be kept; the line was left out"
                    )
            except BadLine as error:
                item = error
            if self._prepare and type(item) is Row and item.kind == MEMORY:
                item.prepared = Prepared.of(item.new)
            items.append((self._number, item))
        return Batch(items, self._number)


async def import_file(
    ctx: Context,
    settings: Settings,
    path: object,
    *,
    dry_run: bool = False,
    target: str = "",
    embed: bool = False,
    batch: str = "",
    fail_if_cut: bool = False,
    progress: Progress | None = None,
) -> dict:
    """Import a file and return import_memories' answer.

    ``target`` replaces the agent of every line, ``batch`` names the run that new rows belong to. With ``embed`` rows without a vector, or with one of
    another model, are listed for embedding, with ``fail_if_cut`` lines whose text is too long are left out instead of cut.
    ``progress`` is called with `{done, total}` in lines. Raises Refused, with nothing changed, for a file that
    cannot be read or is not what its header says; an import that ends later answers `ok: false` with what it stored.
    """
    handle = paths.open_input(path, settings)
    stop = threading.Event()
    try:
        found = await asyncio.to_thread(survey, handle, stop)
        if not found.is_export:
            raise Refused(
                f"this is no export of cpersona, {await asyncio.to_thread(seems, handle)}; nothing was imported"
            )
        found.check()
        return await _second_pass(
            ctx,
            settings,
            handle,
            found,
            dry_run=dry_run,
            target=target,
            embed=embed,
            name=batch,
            fail_if_cut=fail_if_cut,
            progress=progress,
        )
    except OSError as error:
        raise Refused(f"input_path cannot be read ({error.strerror})") from None
    finally:
        stop.set()
        handle.close()


async def _second_pass(
    ctx: Context,
    settings: Settings,
    handle: BinaryIO,
    found: Survey,
    *,
    dry_run: bool,
    target: str,
    embed: bool,
    name: str,
    fail_if_cut: bool,
    progress: Progress | None,
) -> dict:
    embeds = ctx.embedding.enabled
    embed = embed and embeds and not dry_run
    total, done = Outcome(listed=embed), 0
    ids, seen = Ids(found.wanted), set()
    if embed:
        await ctx.embedding.learn(LEARN_SECONDS)
    fit = ctx.embedding.model if embeds else None
    reader = _Reader(handle, found.lines, target, settings, prepare=not dry_run, fail_if_cut=fail_if_cut)

    async def write(batch: Batch, start: int) -> tuple[int, Outcome]:
        def job(tx: Transaction) -> tuple[int, Outcome]:
            return apply(batch, start, Restore(tx, ids, embed, name, fit))

        return await ctx.db.write(job)

    async def try_out(batch: Batch, start: int) -> tuple[int, Outcome]:
        return await ctx.db.read(lambda conn: apply(batch, start, DryRun(conn, ids, seen, fit)))

    step = try_out if dry_run else write
    try:
        batch = await asyncio.to_thread(reader.batch)
        while batch.items:
            following = asyncio.create_task(asyncio.to_thread(reader.batch))
            try:
                start = 0
                while start < len(batch.items):
                    start, part = await step(batch, start)
                    total.add(part)
                    done = batch.items[start - 1][0]
                    if embed and part.uncompared:
                        ctx.backlog.wake()
            finally:
                # A reading that is still under way would meet a closed file.
                upcoming = await _finished(following)
            if progress is not None:
                progress({"done": batch.last_line, "total": found.lines})
            batch = upcoming
    except (CPersonaError, OSError) as error:
        text = str(error) or type(error).__name__
        ended = (
            "nothing was written"
            if dry_run
            else f"lines 1 to {done} of {found.lines} are stored, the rest is not; running it again is harmless"
        )
        return {"ok": False, "error": f"the import ended early: {text}; {ended}", **total.answer(dry_run)}
    if progress is not None:
        progress({"done": found.lines, "total": found.lines})
    return {"ok": True, **total.answer(dry_run)}


async def _finished(task: asyncio.Task) -> Any:
    """Wait for a task to its end, even while this one is being cancelled, and return its result."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def apply(batch: Batch, start: int, into: Restore | DryRun) -> tuple[int, Outcome]:
    """Restore the items of a batch from ``start`` on, for as long as a transaction may last.

    Returns where the next transaction goes on, and the outcome of this one.
    """
    out, deadline = Outcome(), time.monotonic() + TRANSACTION_SECONDS
    place = start
    while place < len(batch.items):
        if place > start and time.monotonic() >= deadline:
            break
        number, item = batch.items[place]
        if type(item) is Row:
            rows = batch.rows_from(place)
            into.take_rows([row for _, row in rows], out)
            for number, row in rows:
                out.cut += row.cut is not None
                for remark in row.remarks:
                    out.complain(number, remark)
            place += len(rows)
            continue
        place += 1
        if type(item) is HeaderLine:
            into.ids.next_part()
            continue
        try:
            if type(item) is BadLine:
                raise item
            for remark in into.take(item, out):
                out.complain(number, remark)
        except BadLine as error:
            out.complain(number, str(error))
            out.rejected += 1
            if error.skipped == "memories":
                out.skipped_memories += 1
            elif error.skipped == "episodes":
                out.skipped_episodes += 1
    return place, out
