"""Merging one agent's memory into another's.

The copies are written in short transactions, with other writers between them, and nobody sees them until one more
shows all of them at once and, when the rows move, hides the ones that were copied. Only that one decides: before it a
merge that ends has done nothing, after it the rest is the deletion of what nobody sees. A row of the source that is
changed or deleted meanwhile is copied anew or not at all; one that the target gets meanwhile wins over its copy.

Contract: merge.copies.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from array import array
from bisect import bisect_left
from collections import ChainMap
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import apsw
import numpy as np

from ...context import Context
from ...errors import Busy, CPersonaError, Refused, StorageFailure
from ...model.changes import Hidden
from ...model.kinds import EPISODE, MEMORY
from ...storage import associations, backlog, copying, episodes, hidden, history, idempotency, memories, transfer
from ...storage.associations import ENTITY
from ...storage.copying import Copyable
from ...storage.damaged import Unreadable
from ...storage.idempotency import Key
from ...storage.transaction import Transaction
from ..imports.columns import unit_vector
from ..progress import Progress
from ..sweep import TRANSACTION_SECONDS, leftovers, sweep

MODES = ("copy", "move")
STRATEGIES = ("skip",)
READ_TOGETHER = 500
ROWS_TOGETHER = 64  # what one statement writes
MOST_NAMED = 100  # rows that an answer names as left out
FEW_CHANGED = 200  # what the last transaction copies anew itself

_Outcome = tuple[
    int, int, bool
]  # a row of the source, the one of the target in its place (0: none), and whether it was written for it
_Outcomes = dict[str, dict[int, tuple[int, bool]]]  # the same by kind and row of the source
_TABLE = {MEMORY: "memories", EPISODE: "episodes"}


@dataclass(slots=True)
class Plan:
    """What a merge will do: ids at the source with the row of the target in their place, None where one is to be written."""

    memories: list[tuple[int, int | None]]
    episodes: list[tuple[int, int | None]]
    copies_profile: bool
    skips_profile: bool
    left_out: dict[str, dict[int, str]]  # by kind, the rows that no answer can carry, and why

    def copied(self, kind: str) -> list[int]:
        return [old for old, there in self._of(kind) if there is None and old not in self.left_out[kind]]

    def skipped(self, kind: str) -> int:
        return sum(there is not None for old, there in self._of(kind) if old not in self.left_out[kind])

    def _of(self, kind: str) -> list[tuple[int, int | None]]:
        return self.memories if kind == MEMORY else self.episodes


def check(source: str, target: str, mode: str, strategy: str) -> None:
    """Raise Refused for a merge that makes no sense."""
    if not source or not target:
        raise Refused("source_agent_id and target_agent_id must both be named")
    if source == target:
        raise Refused(f"source and target are the same agent, {source!r}")
    if mode not in MODES:
        raise Refused(f"mode is one of {', '.join(MODES)}, not {mode!r}")
    if strategy not in STRATEGIES:
        raise Refused(f"strategy is {', '.join(STRATEGIES)}, not {strategy!r}")


def plan(conn: apsw.Connection, source: str, target: str) -> Plan:
    """Return what a merge does, reading only: the same for a dry run and for the merge itself."""
    twice = [
        (old, there if there is not None else None if first == old else first)
        for old, there, first in transfer.episode_plan(conn, source, target)
    ]
    has, had = transfer.profile_of(conn, source) is not None, transfer.profile_of(conn, target) is not None
    left_out = {kind: _left_out_of(conn, kind, source, target) for kind in _TABLE}
    return Plan(transfer.memory_plan(conn, source, target), twice, has and not had, has and had, left_out)


def _left_out_of(conn: apsw.Connection, kind: str, source: str, target: str) -> dict[int, str]:
    ids, found = transfer.ids_of(conn, _TABLE[kind], source), {}
    for at in range(0, len(ids), READ_TOGETHER):
        found |= {
            row.id: row.reason
            for row in copying.read(conn, kind, ids[at : at + READ_TOGETHER], source, target)
            if isinstance(row, Unreadable)
        }
    return found


def dry_run(conn: apsw.Connection, source: str, target: str, mode: str, strategy: str) -> dict:
    """Return what merge_memories would answer, reading only."""
    what = plan(conn, source, target)
    counts = {kind: (len(what.copied(kind)), what.skipped(kind)) for kind in (MEMORY, EPISODE)}
    return _answer(
        source, target, mode, strategy, True, counts, what.copies_profile, what.skips_profile, what.left_out
    ) | _unknown(conn, source)


def _unknown(conn: apsw.Connection, agent_id: str) -> dict:
    """Return what an answer says of an agent that nothing is stored for."""
    return {} if any(transfer.counts(conn, agent_id).values()) else {"unknown_agent": True}


def _answer(
    source: str,
    target: str,
    mode: str,
    strategy: str,
    dry_run: bool,
    counts: dict[str, tuple[int, int]],
    profile_copied: bool,
    profile_skipped: bool,
    left_out: dict[str, dict[int, str]],
) -> dict:
    """Return merge_memories' answer; ``counts`` are (copied, skipped) by kind, ``left_out`` the rows that stay because no answer can carry them."""
    (copied, skipped), (episodes_copied, episodes_skipped) = counts[MEMORY], counts[EPISODE]
    answer: dict[str, Any] = {
        "ok": True,
        "dry_run": dry_run,
        "source_agent_id": source,
        "target_agent_id": target,
        "strategy": strategy,
        "mode": mode,
        "merged_memories": copied,
        "skipped_memories": skipped,
        "merged_episodes": episodes_copied,
        "skipped_episodes": episodes_skipped,
        "profile_copied": profile_copied,
        "skipped_profile": profile_skipped,
    }
    if mode == "move":
        if not dry_run:
            answer["source_deleted"] = {
                "ok": True,
                "agent_id": source,
                "deleted_memories": copied,
                "deleted_profiles": int(profile_copied),
                "deleted_episodes": episodes_copied,
            }
        answer["left_at_source"] = {
            "memories": skipped + len(left_out[MEMORY]),
            "episodes": episodes_skipped + len(left_out[EPISODE]),
            "profiles": int(profile_skipped),
        }
    if named := [
        {"ref": f"{kind}:{row_id}", "reason": reason}
        for kind, rows in left_out.items()
        for row_id, reason in rows.items()
    ]:
        answer["left_out"] = named[:MOST_NAMED]
    return answer


async def merge(
    ctx: Context,
    source: str,
    target: str,
    mode: str,
    strategy: str,
    key: Key | None = None,
    progress: Progress | None = None,
) -> dict:
    """Merge and return merge_memories' answer once all of it is done. Raises Refused; whatever it raises, readers find all of the merge or nothing."""
    check(source, target, mode, strategy)
    async with ctx.moving:
        if key is not None and await ctx.db.read(idempotency.known, key):
            return await ctx.db.write(lambda tx: {}, key)  # answered before: the job does not run
        await sweep(ctx)  # of an earlier one that ended early
        run = _Merge(ctx, source, target, mode, strategy, progress)
        try:
            answer = await run.run(key)
        except BaseException:
            ctx.in_background(leftovers(ctx, watched=True))
            raise
        ctx.backlog.wake()
        try:
            await sweep(ctx, progress, answer["merged_memories"] + answer["merged_episodes"])
        except asyncio.CancelledError:
            ctx.in_background(leftovers(ctx))
            raise
        except CPersonaError as error:
            raise StorageFailure(
                f"the rows are merged, but not all of them could be deleted at {source!r} ({error}); the next start goes on"
            ) from error
    return answer


@dataclass(slots=True)
class _Copies:
    """What became of each row of the source that was looked at, by ascending id: a row of the target, and whether it was written for it."""

    old: array = field(default_factory=lambda: array("q"))
    new: array = field(default_factory=lambda: array("q"))
    written: bytearray = field(default_factory=bytearray)

    def add(self, outcomes: Iterable[tuple[int, int, bool]]) -> None:
        for old, new, written in outcomes:
            self.old.append(old)
            self.new.append(new)
            self.written.append(written)

    def place(self, old: int) -> int:
        """Return where a row of the source stands here, -1 for one that was not looked at."""
        at = bisect_left(self.old, old)
        return at if at < len(self.old) and self.old[at] == old else -1

    def concerned(self, row_id: int) -> list[int]:
        """Return the rows of the source that a row is, or whose place at the target it takes."""
        if self.place(row_id) >= 0:
            return [row_id]
        return (
            [self.old[at] for at in np.flatnonzero(np.frombuffer(self.new, np.int64) == row_id)]
            if len(self.new)
            else []
        )

    def get(self, old: int) -> int:
        """Return the row of the target, 0 where there is none."""
        at = self.place(old)
        return self.new[at] if at >= 0 else 0

    def copied(self, which: str = "old") -> np.ndarray:
        """Return the ids of the rows that were written, at the source or (``new``) at the target, ascending. int64."""
        ids = (
            np.frombuffer(getattr(self, which), np.int64)[np.frombuffer(self.written, np.uint8) == 1]
            if len(self.old)
            else np.zeros(0, np.int64)
        )
        return np.sort(ids)

    def counts(self) -> tuple[int, int]:
        """Return how many rows were copied and how many skipped; those that are gone by now count as neither."""
        copied = sum(self.written)
        return copied, sum(1 for new in self.new if new) - copied

    def changed(self, outcomes: dict[int, tuple[int, bool]]) -> _Copies:
        """Return the same with other outcomes for some rows of the source."""
        other = _Copies(self.old, array("q", self.new), bytearray(self.written))
        for old, (new, written) in outcomes.items():
            at = self.place(old)
            other.new[at], other.written[at] = new, written
        return other


class _Merge:
    """One merge under way. What the writer thread works out is taken over only once it is committed: a job may run twice."""

    def __init__(self, ctx: Context, source: str, target: str, mode: str, strategy: str, progress: Progress | None):
        self._db, self._source, self._target, self._mode, self._strategy = ctx.db, source, target, mode, strategy
        self._progress = progress or (lambda step: None)
        self._copies = {MEMORY: _Copies(), EPISODE: _Copies()}
        self._left_out: dict[str, dict[int, str]] = {MEMORY: {}, EPISODE: {}}
        self._first: dict[bytes, int] = {}  # of episodes that say the same only the first is copied

    async def run(self, key: Key | None) -> dict:
        """Copy everything, show it, and return the answer, which is kept under the key."""
        await self._db.write(self._begin)
        ids = {kind: await self._db.read(transfer.ids_of, table, self._source) for kind, table in _TABLE.items()}
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
        copying.watch(tx, self._source, self._target)

    async def _copy(self, kind: str, ids: list[int], before: int, total: int) -> None:
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
                    start, outcomes, first = await self._db.write(self._writer(kind, rows, start))
                    self._copies[kind].add(outcomes)
                    self._first |= first
                self._progress(
                    {"stage": "copying", "done": before + min((number + 1) * READ_TOGETHER, len(ids)), "total": total}
                )
        finally:
            if following is not None:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    def _read(self, kind: str, ids: list[int]) -> asyncio.Task:
        def job(conn: apsw.Connection) -> tuple[list[_Ready], dict[int, str]]:
            return self._readied(conn, kind, ids)

        return asyncio.create_task(self._db.read(job))

    def _readied(self, conn: apsw.Connection, kind: str, ids: list[int]) -> tuple[list[_Ready], dict[int, str]]:
        """Return the rows to copy, and those that no answer can carry with the reason."""
        found = copying.read(conn, kind, ids, self._source, self._target)
        return [_ready(row) for row in found if isinstance(row, Copyable)], {
            row.id: row.reason for row in found if isinstance(row, Unreadable)
        }

    def _writer(
        self, kind: str, rows: list[_Ready], start: int
    ) -> Callable[[Transaction], tuple[int, list[_Outcome], dict[bytes, int]]]:
        """Return the job that copies rows from ``start`` on for as long as a transaction may last; it answers where the next one goes on."""
        unseen = self._copies[kind].copied("new")

        def job(tx: Transaction) -> tuple[int, list[_Outcome], dict[bytes, int]]:
            deadline, at, outcomes, first = time.monotonic() + TRANSACTION_SECONDS, start, [], ChainMap({}, self._first)
            while at < len(rows) and (at == start or time.monotonic() < deadline):
                outcomes += self._write(tx, kind, rows[at : at + ROWS_TOGETHER], first)
                at += ROWS_TOGETHER
            tx.changes.append(
                Hidden(kind, np.append(unseen, np.array([new for _, new, written in outcomes if written], np.int64)))
            )
            return at, outcomes, first.maps[0]

        return job

    def _write(
        self, tx: Transaction, kind: str, rows: list[_Ready], first: MutableMapping[bytes, int]
    ) -> list[_Outcome]:
        """Write hidden copies of those of the rows whose place is free at the target."""
        if kind == MEMORY:
            ids = memories.insert_new(tx, [ready.prepared for ready in rows])
            outcomes = [
                (
                    ready.row.id,
                    transfer.find_memory(tx.conn, ready.row.new) or 0 if new is None else new,
                    new is not None,
                )
                for ready, new in zip(rows, ids, strict=True)
            ]
        else:
            outcomes = [(ready.row.id, *self._put_episode(tx, ready.row.new, first)) for ready in rows]
        hidden.hide(tx, _TABLE[kind], [new for _, new, written in outcomes if written])
        vectors = []
        for ready, (_, new, written) in zip(rows, outcomes, strict=True):
            if written and ready.vector is not None:
                vectors.append(
                    (new, ready.row.new, ready.prepared and ready.prepared.source_id, ready.row.model, ready.vector)
                )
            elif written and ready.row.waits:
                backlog.enqueue(tx, kind, new)
        transfer.put_vectors(tx, kind, vectors)
        return outcomes

    def _put_episode(
        self, tx: Transaction, new: episodes.NewEpisode, first: MutableMapping[bytes, int]
    ) -> tuple[int, bool]:
        key = hashlib.blake2b(
            "\0".join((new.project_id, new.channel, new.summary, new.whole.key.hex() if new.whole else "")).encode(),
            digest_size=16,
        ).digest()
        if key in first:
            return first[key], False
        first[key], written = transfer.put_episode(tx, new)
        return first[key], written

    # -- what changed meanwhile

    def _follow(self, tx: Transaction) -> _Outcomes | None:
        """Copy anew what changed since it was copied; None once so little is left that the last transaction may do it."""
        if copying.count_changed(tx.conn) <= FEW_CHANGED:
            return None
        outcomes = self._again(tx, copying.take_changed(tx, FEW_CHANGED))
        tx.changes += [Hidden(kind, copies.copied("new")) for kind, copies in self._changed(outcomes).items()]
        return outcomes

    def _again(self, tx: Transaction, noted: list[tuple[str, int]]) -> _Outcomes:
        """Take away the copies of rows that were changed, and copy what of them is there; one that a writer took away makes way for his."""
        outcomes: _Outcomes = {MEMORY: {}, EPISODE: {}}
        for kind, copies in self._copies.items():
            stale = {old for noted_kind, row_id in noted if noted_kind == kind for old in copies.concerned(row_id)}
            for old in sorted(stale):
                copy = copies.get(old)
                if hidden.holds(tx.conn, _TABLE[kind], copy):
                    _delete(tx, kind, copy)
                    stale |= set(copies.concerned(copy))
            outcomes[kind] = dict.fromkeys(stale, (0, False))
            there, _ = self._readied(tx.conn, kind, sorted(stale))
            gone = {copies.get(old) for old in stale}
            first = {} if kind == MEMORY else {key: new for key, new in self._first.items() if new not in gone}
            for ready in there:
                ((old, new, written),) = self._write(tx, kind, [ready], first)
                outcomes[kind][old] = new, written
        return outcomes

    def _changed(self, outcomes: _Outcomes) -> dict[str, _Copies]:
        return {kind: copies.changed(outcomes[kind]) for kind, copies in self._copies.items()}

    # -- the end

    def _show(self, tx: Transaction) -> dict:
        """Let everybody see the copies and, where the rows move, nobody what was copied; return the answer."""
        unknown = _unknown(tx.conn, self._source)
        copies = self._changed(self._again(tx, copying.take_changed(tx)))
        hidden.show_all(tx)
        copying.unwatch(tx)
        profile, had = (
            transfer.profile_of(tx.conn, self._source),
            transfer.profile_of(tx.conn, self._target) is not None,
        )
        if profile is not None and not had:
            transfer.put_profile(tx, self._target, *profile)
        _copy_associations(tx, self._source, self._target, copies)
        counts = {kind: these.counts() for kind, these in copies.items()}
        if any(copied for copied, _ in counts.values()):
            history.note_arrival(tx, self._target)
        doomed = {kind: np.zeros(0, np.int64) for kind in copies}
        if self._mode == "move":
            doomed = {kind: these.copied() for kind, these in copies.items()}
            for kind, ids in doomed.items():
                hidden.hide(tx, _TABLE[kind], ids.tolist())
                history.note_deletions(tx, kind, ids.tolist())
            copying.hide_relations_of_hidden(tx, self._source)
            if profile is not None and not had:
                transfer.delete_profile(tx, self._source)
        tx.changes += [Hidden(kind, ids) for kind, ids in doomed.items()]
        answer = _answer(
            self._source,
            self._target,
            self._mode,
            self._strategy,
            False,
            counts,
            profile is not None and not had,
            profile is not None and had,
            self._left_out,
        )
        return answer | unknown


@dataclass(frozen=True, slots=True)
class _Ready:
    """A row to copy with everything worked out that does not need the writer."""

    row: Copyable
    prepared: memories.Prepared | None
    vector: np.ndarray | None


def _ready(row: Copyable) -> _Ready:
    try:
        vector = None if row.vector is None else unit_vector(row.vector)
    except ValueError:
        vector = None  # a stored vector that is none counts as no vector, here as in a recall
    return _Ready(row, memories.Prepared.of(row.new) if isinstance(row.new, memories.NewMemory) else None, vector)


def _delete(tx: Transaction, kind: str, row_id: int) -> None:
    (memories if kind == MEMORY else episodes).delete(tx, row_id, noted=False)


def _copy_associations(tx: Transaction, source: str, target: str, copies: dict[str, _Copies]) -> None:
    """Declare at the target what is declared at the source, re-anchored to the target's rows."""
    nodes: dict[tuple[str, int], int] = {}

    def node(kind: str, old: int) -> int | None:
        """Return what an end of the source became at the target, None where it is not there."""
        if (kind, old) not in nodes and kind in copies:
            new = copies[kind].get(old)
            if new and associations.owns_record(tx.conn, target, (kind, new)):
                nodes[kind, old] = new
        return nodes.get((kind, old))

    for entity, _, project, channel, name, declared_by, created_at, _ in transfer.entity_rows(
        tx.conn, source
    ).fetchall():
        names = associations.names_of(tx.conn, [entity]).get(entity, [])
        own = next(((n.normalized, name) for n in names if n.is_name), None)
        if own is None:
            continue
        aliases = [(n.normalized, n.written) for n in names if not n.is_name]
        nodes[ENTITY, entity], _ = transfer.put_entity(
            tx, target, project, channel, own, aliases, declared_by, created_at
        )
    for entity, kind, record, declared_by, created_at in transfer.mention_rows(tx.conn, source).fetchall():
        if (at := node(ENTITY, entity)) and (became := node(kind, record)):
            transfer.put_mention(tx, at, kind, became, declared_by, created_at)
    for (
        _,
        _,
        project,
        channel,
        s_kind,
        s_id,
        predicate,
        o_kind,
        o_id,
        anchor,
        declared_by,
        declared_at,
    ) in transfer.relation_rows(tx.conn, source).fetchall():
        if (subject := node(s_kind, s_id)) and (obj := node(o_kind, o_id)):
            kind, _, number = (anchor or "").partition(":")
            new_anchor = node(kind, int(number)) if number.isdigit() else None
            transfer.put_relation(
                tx,
                target,
                project,
                channel,
                (s_kind, subject),
                predicate,
                (o_kind, obj),
                None if new_anchor is None else f"{kind}:{new_anchor}",
                declared_by,
                declared_at,
            )
