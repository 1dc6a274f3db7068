"""Rows as they were at an earlier instant, as far as that is kept.

What a row was then is the oldest entry kept of an act after that instant; where there is none it is the row of today.
Either says itself whether it is of then: by the time at which its text, time, source or metadata last changed.

Contract: time.asof, past.kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from ..model.kinds import MEMORY, Rid, by_kind
from ..model.scope import Scope
from . import damaged, memories, past, records
from .damaged import Unreadable
from .episodes import Episode
from .history import COUNTED
from .json_columns import source_id
from .memories import Memory
from .narrowing import Narrowing, conditions
from .scope import stored_sql


@dataclass(frozen=True, slots=True)
class Shown:
    """How many rows that were changed since, and how many that were deleted since, are known as they were, COUNTED
    together at most.
    """

    changed: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class _Former:
    """An entry without its text: ``true`` where it is of then, ``gone`` where the row is not there today."""

    id: int
    row_id: int
    created_at: str
    true: bool
    gone: bool
    matches: bool

    @property
    def place(self) -> tuple[str, int]:
        return self.created_at, self.row_id


def newest(
    conn: apsw.Connection, scope: Scope, narrowing: Narrowing, limit: int
) -> tuple[list[Memory | Unreadable], Shown]:
    """Return the newest memories of a scope at ``scope.as_of`` as they were then, created_at DESC, id DESC, and how
    many of all that were changed or deleted since are known so; agent '' means every agent.
    """
    former = _former(conn, scope, narrowing)
    untouched = ("id NOT IN (SELECT row_id FROM past WHERE +kind = ? AND at > ?)", (MEMORY, scope.as_of))
    asked = [*conditions(narrowing, scope.agent_id), untouched]
    today = memories.newest(
        conn, scope.agent_id, scope.project_id, limit, scope.since, scope.latest, scope.channel, asked
    )
    chosen = _read(conn, [entry.id for entry in former if entry.matches][:limit])
    rows: list[tuple[tuple[str, int], Memory | Unreadable]] = [
        (entry.place, chosen[entry.id]) for entry in former if entry.id in chosen
    ]
    when = dict(
        conn.execute(
            "SELECT id, created_at FROM memories WHERE id IN (SELECT value FROM json_each(?))",
            (json.dumps([row.id for row in today]),),
        )
    )
    rows += [((when.get(row.id, ""), row.id), row) for row in today]
    rows.sort(key=lambda row: row[0], reverse=True)
    known = [entry for entry in former if entry.true]
    gone = sum(entry.gone for entry in known)
    return [row for _, row in rows[:limit]], Shown(len(known) - gone, gone)


def by_rids(
    conn: apsw.Connection, rids: Sequence[Rid], scope: Scope
) -> tuple[dict[Rid, Memory | Episode | Unreadable], set[Rid]]:
    """Return those of the rows that were in a scope at ``scope.as_of`` as they were, and those of them that have
    changed since and are not kept as they were.
    """
    found = records.by_rids(conn, rids, scope)
    untrue: set[Rid] = set()
    axes, params = stored_sql(scope)
    for kind, ids in by_kind(rids).items():
        named = json.dumps(ids)
        oldest = conn.execute(
            "SELECT min(id) FROM past WHERE kind = ? AND row_id IN (SELECT value FROM json_each(?)) AND at > ?"
            f" AND {axes} GROUP BY row_id",
            (kind, named, scope.as_of, *params),
        )
        for entry in past.by_ids(conn, [entry_id for (entry_id,) in oldest]):
            rid: Rid = (entry.kind, entry.row_id)
            found.pop(rid, None)
            if entry.text is None:
                continue  # it was away then
            found[rid] = _memory(entry) if kind == MEMORY else _episode(entry)
            if (entry.fields.get("changed_at") or "") > scope.as_of:
                untrue.add(rid)
        if kind == MEMORY:
            later = conn.execute(
                "SELECT id FROM memories WHERE id IN (SELECT value FROM json_each(?)) AND changed_at > ?"
                " AND id NOT IN (SELECT row_id FROM past WHERE kind = ? AND row_id = memories.id AND at > ?)",
                (named, scope.as_of, kind, scope.as_of),
            )
            untrue |= {(kind, row_id) for (row_id,) in later if (kind, row_id) in found}
    return found, untrue


def _former(conn: apsw.Connection, scope: Scope, narrowing: Narrowing) -> list[_Former]:
    """Return the rows of a scope that have changed since as they were then, newest first."""
    axes, params = stored_sql(scope, everyone=not scope.agent_id)
    found: Any = conn.execute(
        "SELECT p.id, p.row_id, p.created_at, p.fields, coalesce(p.batch, ''),"
        " p.row_id NOT IN (SELECT id FROM memories WHERE id = p.row_id AND id NOT IN hidden_memories) FROM past p"
        f" WHERE p.text IS NOT NULL AND p.id IN (SELECT min(id) FROM past WHERE +kind = ? AND at > ? AND {axes}"
        " GROUP BY row_id) ORDER BY p.created_at DESC, p.row_id DESC LIMIT ?",
        (MEMORY, scope.as_of, *params, COUNTED),
    ).fetchall()
    rows = []
    for entry_id, row_id, created_at, fields, batch, gone in found:
        was = json.loads(fields)
        true = (was["changed_at"] or "") <= scope.as_of
        rows.append(_Former(entry_id, row_id, created_at, true, bool(gone), _matches(was, batch, narrowing)))
    return rows


def _matches(was: dict[str, Any], batch: str, narrowing: Narrowing) -> bool:
    """Tell whether a row that was so is meant."""
    if narrowing.source_id:
        whose = source_id(was["source"]) or ""
        prefix = not narrowing.source_id[-1].isalnum()
        if not (whose.startswith(narrowing.source_id) if prefix else whose == narrowing.source_id):
            return False
    if narrowing.locked and not was["locked"] or narrowing.batch not in ("", batch):
        return False
    return was["msg_id"].startswith(narrowing.id_prefix)


def _read(conn: apsw.Connection, ids: Sequence[int]) -> dict[int, Memory | Unreadable]:
    """Return memories by the entries that are kept of them."""
    return {entry.id: _memory(entry) for entry in past.by_ids(conn, ids)}


def _memory(entry: past.Entry) -> Memory | Unreadable:
    was, text = entry.fields, entry.text or ""
    reason = damaged.unfit(text, was["source"], was["metadata"])
    if reason is not None:
        return Unreadable(entry.row_id, reason)
    return Memory(
        entry.row_id,
        entry.agent_id,
        entry.project_id,
        entry.channel,
        was["msg_id"],
        text,
        was["source"],
        was["timestamp"],
        was["metadata"],
        entry.created_at,
        was["locked"],
        was["recall_count"],
        was["last_recalled_at"],
        None,
        was["whole_length"],
        _key(entry),
    )


def _episode(entry: past.Entry) -> Episode | Unreadable:
    was, text = entry.fields, entry.text or ""
    reason = damaged.unfit(text + was["keywords"])
    if reason is not None:
        return Unreadable(entry.row_id, reason)
    return Episode(
        entry.row_id,
        entry.agent_id,
        entry.project_id,
        entry.channel,
        text,
        was["keywords"],
        was["start_time"],
        was["end_time"],
        was["resolved"],
        entry.created_at,
        was["whole_length"],
        _key(entry),
    )


def _key(entry: past.Entry) -> bytes | None:
    key = entry.fields["whole_key"]
    return None if key is None else bytes.fromhex(key)
