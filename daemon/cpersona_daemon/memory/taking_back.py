"""Taking the last write of an agent back: what it stored last goes, what it changed, deleted or brought back last is as
it was.

Which write was the last follows from what is kept: an act knows the largest ids of its time, so that a row with a
larger one was stored after it. Taking an act back is an act of its own, and is taken back like any other.

Contract: past.acts, locks.hold.
"""

from __future__ import annotations

from collections.abc import Callable
from shlex import quote
from typing import Any

import apsw

from ..context import Context
from ..errors import Refused
from ..model.instants import created_text
from ..model.kinds import EPISODE, MEMORY, Kind
from ..storage import history, memories, past, records
from ..storage.idempotency import Key
from ..storage.past import Entry
from ..storage.transaction import Transaction
from .returning import REMOVED, bring_back
from .store import check_unlocked

ROWS_A_TRANSACTION = 200
REFS_SHOWN = 100
STORE = "store"
Stored = tuple[Kind, int]


async def undo_last(
    ctx: Context, agent_id: str, key: Key | None = None, progress: Callable[[dict], None] | None = None
) -> dict:
    """Take the last write of an agent back and return undo_last's answer: `{ok, undone, at, rows, refs, results,
    kept?}`.

    ``undone`` is store, update, delete or return; ``refs`` the first 100 of the rows and ``results`` what became of
    each of them; ``kept`` those that stay as they are, with the reasons. Raises Refused where there is nothing to take
    back, and where none of it can be.
    """

    def first(tx: Transaction) -> tuple[dict, int, int, int]:
        what = _last(tx.conn, agent_id, tx.now, tx.history_days)
        told = _told(tx.conn, what)
        if isinstance(what, Entry):
            return _undone(ctx, tx, agent_id, told, what.together, what.id + 1)
        kind, row_id = what
        if kind == MEMORY and (row := memories.find(tx.conn, row_id)) is not None:
            check_unlocked(row)
        records.delete(tx, kind, row_id)
        return {**told, "results": [REMOVED]}, 0, 0, 0

    answer, last, before, act = await ctx.db.write(first, key)
    whole = answer["rows"]
    while before:
        if progress is not None:
            progress({"done": len(answer["results"]), "total": whole})

        def more(tx: Transaction, before: int = before) -> tuple[dict, int, int, int]:
            tx.act = act or None
            return _undone(ctx, tx, agent_id, {"refs": []}, last, before)

        added, _, before, _ = await ctx.db.write(more)
        for name, value in added.items():
            answer[name] = answer[name] + value if name in answer else value
    ctx.backlog.wake()
    return _bounded(answer)


def _bounded(answer: dict) -> dict:
    """Return an answer with the number of rows that were taken back, and the first of each list."""
    kept = answer.pop("kept", [])
    refs = answer["refs"]
    bounded = {**answer, "rows": len(refs), "refs": refs[:REFS_SHOWN], "results": answer["results"][:REFS_SHOWN]}
    return {**bounded, "kept_rows": len(kept), "kept": kept[:REFS_SHOWN]} if kept else bounded


def _undone(
    ctx: Context, tx: Transaction, agent_id: str, told: dict, last: int, before: int
) -> tuple[dict, int, int, int]:
    """Do the opposite of an act to its latest rows below ``before``; return the answer so far, the act, where to go on
    (0: nowhere) and the act that this is.

    Raises Refused where the act has one row and that stays.
    """
    refs, results, kept, dropped = [], [], [], 0
    entries = past.of_act(tx.conn, last, agent_id, before, ROWS_A_TRANSACTION)
    for entry in entries:
        try:
            result, without = bring_back(ctx, tx, entry)
        except Refused as error:
            if told.get("rows") == 1:
                raise
            kept.append({"ref": entry.ref, "reason": str(error)})
            continue
        refs.append(entry.ref)
        results.append(result)
        dropped += without
    answer = {**told, "refs": refs, "results": results}
    if kept:
        answer["kept"] = kept
    if dropped:
        answer["dropped_links"] = dropped
    return answer, last, entries[-1].id if len(entries) == ROWS_A_TRANSACTION else 0, tx.act or 0


def looked(conn: apsw.Connection, ctx: Context, agent_id: str) -> dict:
    """Return what ``undo_last`` would take back, and change nothing. Raises Refused where there is nothing."""
    return _told(conn, _last(conn, agent_id, ctx.clock.now(), ctx.db.history_days))


def _told(conn: apsw.Connection, what: Entry | Stored) -> dict[str, Any]:
    """Return what is said of a write before it is taken back, with the beginning of its first row's text."""
    if not isinstance(what, Entry):
        kind, row_id = what
        row: Any = records.by_rids(conn, [what]).get(what)
        at = getattr(row, "created_at", "")
        return {"ok": True, "undone": STORE, "at": at, "rows": 1, "refs": [kind.ref(row_id)]}
    entries = past.of_act(conn, what.together, what.agent_id, what.id + 1, REFS_SHOWN)
    rows = past.count_act(conn, what.together, what.agent_id)
    return {"ok": True, "undone": what.act, "at": what.at, "rows": rows, "refs": [entry.ref for entry in entries]}


def _last(conn: apsw.Connection, agent_id: str, now: float, days: float) -> Entry | Stored:
    """Return the last write of an agent: an entry of its last act, or the row that it stored after that.

    Raises Refused where there is none, or none that can be taken back by itself.
    """
    if not days:
        raise Refused(
            "CPERSONA_HISTORY_DAYS is 0: nothing is kept by which a write could be taken back; `cpersona delete REF`"
            " removes a row"
        )
    act = past.last_act(conn, agent_id)
    after = {MEMORY: act.newest_memory, EPISODE: act.newest_episode} if act else {MEMORY: 0, EPISODE: 0}
    stored = past.last_stored(conn, agent_id, after)
    if stored is None:
        if act is None:
            raise Refused(f"nothing that agent {agent_id!r} wrote can be taken back")
        if act.act == past.PURGE:
            raise Refused(f"the last write deleted {act.ref} for good, and nothing brings it back")
        return act
    kind, row_id, created_at, batch = stored
    ref = kind.ref(row_id)
    if batch:
        raise Refused(
            f"the last write is {ref} of the batch {batch!r}; `cpersona undo {quote(batch)}` takes all of it back,"
            f" `cpersona delete {ref}` the row alone"
        )
    if created_at < history.last_arrival(conn, agent_id):
        raise Refused(
            f"the last write was an import or a merge without --batch, which has no name to take it back by;"
            f" `cpersona delete {ref}` deletes its last row"
        )
    if created_at < created_text(now - days * past.DAY_SECONDS):
        raise Refused(
            f"the last write is {ref}, stored more than {days:g} days ago; `cpersona delete {ref}` deletes it"
        )
    return kind, row_id
