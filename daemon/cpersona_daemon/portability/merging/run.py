"""Merging one agent's memory into another's.

The copies are written in short transactions, with other writers between them, and nobody sees them until one more
shows all of them at once and, when the rows move, hides the ones that were copied. Only that one decides: before it a
merge that ends has done nothing, after it the rest is the deletion of what nobody sees. A row of the source that is
changed or deleted meanwhile is copied anew or not at all; one that the target gets meanwhile wins over its copy.

Contract: merge.copies.
"""

from __future__ import annotations

import asyncio
import time
from collections import ChainMap
from collections.abc import Callable

import apsw
import numpy as np

from ...context import Context
from ...errors import Busy
from ...model.changes import Hidden
from ...model.kinds import EPISODE, MEMORY, Kind
from ...storage import copying, hidden, history, idempotency, transfer
from ...storage.idempotency import Key
from ...storage.transaction import Transaction
from ..progress import Progress
from ..sweep import TRANSACTION_SECONDS, finish, leftovers, sweep
from .associations import copy_associations
from .copies import Copies, Outcome, Outcomes
from .dry_run import READ_TOGETHER, unknown_agent
from .request import LeftOut, Merged, Request
from .writing import Ready, delete, readied, write

ROWS_TOGETHER = 64  # what one statement writes
FEW_CHANGED = 200  # what the last transaction copies anew itself

_Written = tuple[int, list[Outcome], dict[bytes, int]]  # where to go on, what was written, what new episodes say


async def merge(ctx: Context, request: Request, key: Key | None = None, progress: Progress | None = None) -> dict:
    """Merge and return merge_memories' answer once all of it is done.

    Whatever it raises, readers find all of the merge or nothing.
    """
    async with ctx.moving:
        if key is not None and await ctx.db.read(idempotency.known, key):
            return await ctx.db.write(lambda tx: {}, key)  # answered before: the job does not run
        await sweep(ctx)  # of an earlier one that ended early
        try:
            answer = await _Merge(ctx, request, progress).run(key)
        except BaseException:
            ctx.in_background(leftovers(ctx, watched=True))
            raise
        ctx.backlog.wake()
        await finish(
            ctx,
            progress,
            answer["merged_memories"] + answer["merged_episodes"],
            f"the rows are merged, but not all of them could be deleted at {request.source!r}",
        )
    return answer


class _Merge:
    """One merge under way.

    What the writer thread works out is taken over only once it is committed: a job may run twice.
    """

    def __init__(self, ctx: Context, request: Request, progress: Progress | None) -> None:
        self._db, self._request = ctx.db, request
        self._progress = progress or (lambda step: None)
        self._copies = {MEMORY: Copies(), EPISODE: Copies()}
        self._left_out: LeftOut = {MEMORY: {}, EPISODE: {}}
        self._said: dict[bytes, int] = {}  # of episodes that say the same only the first is copied

    async def run(self, key: Key | None) -> dict:
        """Copy everything, show it, and return the answer, which is kept under the key."""
        await self._db.write(self._begin)
        ids = {kind: await self._db.read(transfer.ids_of, kind.table, self._request.source) for kind in self._copies}
        done, total = 0, sum(map(len, ids.values()))
        for kind, found in ids.items():
            await self._copy(kind, found, done, total)
            done += len(found)
        while (outcomes := await self._db.write(self._follow)) is not None:
            self._copies = self._changed(outcomes)
        return await self._db.write(self._show, key)

    def _begin(self, tx: Transaction) -> None:
        if any(hidden.some(tx.conn, table) for table in hidden.TABLES):
            raise Busy("rows of an earlier deletion are still being deleted")
        copying.watch(tx, self._request.source, self._request.target)

    async def _copy(self, kind: Kind, ids: list[int], before: int, total: int) -> None:
        """Write hidden copies; the next rows are read while the last are written."""
        chunks = [ids[at : at + READ_TOGETHER] for at in range(0, len(ids), READ_TOGETHER)]
        following = None
        try:
            for number, chunk in enumerate(chunks):
                rows, left_out = await (following or self._read(kind, chunk))
                self._left_out[kind] |= left_out
                following = self._read(kind, chunks[number + 1]) if number + 1 < len(chunks) else None
                start = 0
                while start < len(rows):
                    start, outcomes, said = await self._db.write(self._writer(kind, rows, start))
                    self._copies[kind].add(outcomes)
                    self._said |= said
                self._progress(
                    {"stage": "copying", "done": before + min((number + 1) * READ_TOGETHER, len(ids)), "total": total}
                )
        finally:
            if following is not None:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    def _read(self, kind: Kind, ids: list[int]) -> asyncio.Task[tuple[list[Ready], dict[int, str]]]:
        def job(conn: apsw.Connection) -> tuple[list[Ready], dict[int, str]]:
            return readied(conn, kind, ids, self._request)

        return asyncio.create_task(self._db.read(job))

    def _writer(self, kind: Kind, rows: list[Ready], start: int) -> Callable[[Transaction], _Written]:
        """Return the job that copies rows from ``start`` on for as long as a transaction may last."""
        unseen = self._copies[kind].copied("new")

        def job(tx: Transaction) -> _Written:
            deadline, at = time.monotonic() + TRANSACTION_SECONDS, start
            outcomes: list[Outcome] = []
            said: dict[bytes, int] = {}
            while at < len(rows) and (at == start or time.monotonic() < deadline):
                outcomes += write(tx, kind, rows[at : at + ROWS_TOGETHER], ChainMap(said, self._said))
                at += ROWS_TOGETHER
            tx.changes.append(
                Hidden(kind, np.append(unseen, np.array([new for _, new, written in outcomes if written], np.int64)))
            )
            return at, outcomes, said

        return job

    # -- what changed meanwhile

    def _follow(self, tx: Transaction) -> Outcomes | None:
        """Copy anew what changed since it was copied.

        Returns None once so little is left that the last transaction may do it.
        """
        if copying.count_changed(tx.conn) <= FEW_CHANGED:
            return None
        outcomes = self._again(tx, copying.take_changed(tx, FEW_CHANGED))
        tx.changes += [Hidden(kind, copies.copied("new")) for kind, copies in self._changed(outcomes).items()]
        return outcomes

    def _again(self, tx: Transaction, noted: list[tuple[Kind, int]]) -> Outcomes:
        """Take away the copies of rows that were changed, and copy what of them is there.

        One that a writer took away makes way for his.
        """
        outcomes: Outcomes = {MEMORY: {}, EPISODE: {}}
        for kind, copies in self._copies.items():
            stale = {old for noted_kind, row_id in noted if noted_kind == kind for old in copies.concerned(row_id)}
            for old in sorted(stale):
                copy = copies.get(old)
                if hidden.holds(tx.conn, kind.table, copy):
                    delete(tx, kind, copy)
                    stale |= set(copies.concerned(copy))
            outcomes[kind] = dict.fromkeys(stale, (0, False))
            there, _ = readied(tx.conn, kind, sorted(stale), self._request)
            gone = {copies.get(old) for old in stale}
            said = {} if kind is MEMORY else {key: new for key, new in self._said.items() if new not in gone}
            for ready in there:
                ((old, new, written),) = write(tx, kind, [ready], said)
                outcomes[kind][old] = new, written
        return outcomes

    def _changed(self, outcomes: Outcomes) -> dict[Kind, Copies]:
        return {kind: copies.changed(outcomes[kind]) for kind, copies in self._copies.items()}

    # -- the end

    def _show(self, tx: Transaction) -> dict:
        """Let everybody see the copies and, where the rows move, nobody what was copied; return the answer."""
        request = self._request
        unknown = unknown_agent(tx.conn, request.source)
        copies = self._changed(self._again(tx, copying.take_changed(tx)))
        hidden.show_all(tx)
        copying.unwatch(tx)
        profiles, skipped = self._copy_profiles(tx)
        copy_associations(tx, request, copies)
        counts = {kind: these.counts() for kind, these in copies.items()}
        if any(copied for copied, _ in counts.values()):
            history.note_arrival(tx, request.target)
        if request.moves:
            self._let_go(tx, copies, profiles)
        else:
            tx.changes += [Hidden(kind, np.zeros(0, np.int64)) for kind in copies]
        return Merged(counts, len(profiles), skipped, self._left_out).answer(request, False) | unknown

    def _copy_profiles(self, tx: Transaction) -> tuple[list[str], int]:
        """Give the target those profiles of the source that it has none of; return whose they are, and how many were
        skipped.
        """
        found = transfer.profiles_of(tx.conn, self._request.source)
        copied = [user for user in found if user not in transfer.profiles_of(tx.conn, self._request.target)]
        for user in copied:
            content, updated_at, project = found[user]
            transfer.put_profile(tx, self._request.target, content, updated_at, project, user)
        return copied, len(found) - len(copied)

    def _let_go(self, tx: Transaction, copies: dict[Kind, Copies], profiles: list[str]) -> None:
        """Let nobody see at the source what was copied from there; the rows are deleted afterwards."""
        for kind, these in copies.items():
            doomed = these.copied()
            hidden.hide(tx, kind.table, doomed.tolist())
            history.note_deletions(tx, kind, doomed.tolist())
            tx.changes.append(Hidden(kind, doomed))
        copying.hide_relations_of_hidden(tx, self._request.source)
        transfer.delete_profiles(tx, self._request.source, profiles)
