"""Rows as they were at an earlier instant, as far as that is kept.

What a row was then is the oldest entry kept of an act after that instant; where there is none it is the row of today.
Either says itself whether it is of then: by the time at which its text, time, source or metadata last changed.

Contract: time.asof, past.kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from ..model.instants import parse_instant
from ..model.kinds import MEMORY, Kind, Rid, by_kind
from ..model.scope import Scope
from . import damaged, memories, past, records
from .damaged import Unreadable
from .episodes import Episode
from .hidden import seen
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
class Was:
    """A row that has changed since, as it was: ``true`` where that is of then, ``gone`` where it is not there today.

    ``model`` and ``vector`` are those of its vector where it had one, little-endian float32.
    """

    rid: Rid
    created_at: str
    record: Memory | Episode
    true: bool
    gone: bool
    model: str | None
    vector: bytes | None


@dataclass(frozen=True, slots=True)
class _Former:
    """An entry without its text; ``true`` and ``gone`` as a Was has them."""

    id: int
    row_id: int
    created_at: str
    fields: dict[str, Any]
    batch: str
    true: bool
    gone: bool

    @property
    def place(self) -> tuple[str, int]:
        return self.created_at, self.row_id


def newest(
    conn: apsw.Connection, scope: Scope, narrowing: Narrowing, limit: int
) -> tuple[list[Memory | Unreadable], Shown]:
    """Return the newest memories of a scope at ``scope.as_of`` as they were then, created_at DESC, id DESC, and how
    many of all that were changed or deleted since are known so; agent '' means every agent.
    """
    former = _former(conn, MEMORY, scope)
    untouched = ("id NOT IN (SELECT row_id FROM past WHERE +kind = ? AND at > ?)", (MEMORY, scope.as_of))
    asked = [*conditions(narrowing, scope.agent_id), untouched]
    today = memories.newest(
        conn, scope.agent_id, scope.project_id, limit, scope.since, scope.latest, scope.channel, asked
    )
    meant = [entry.id for entry in former if _matches(entry, narrowing)][:limit]
    chosen = {entry.id: _memory(entry) for entry in past.by_ids(conn, meant)}
    rows: list[tuple[tuple[str, int], Memory | Unreadable]] = [
        (entry.place, chosen[entry.id]) for entry in former if entry.id in chosen
    ]
    stored = _stored(conn, [row.id for row in today])
    rows += [((stored.get(row.id, ""), row.id), row) for row in today]
    rows.sort(key=lambda row: row[0], reverse=True)
    return [row for _, row in rows[:limit]], shown(former)


def shown(rows: Iterable[Was | _Former]) -> Shown:
    """Return how many of the rows are known as they were."""
    known = [row for row in rows if row.true]
    gone = sum(row.gone for row in known)
    return Shown(len(known) - gone, gone)


def were(conn: apsw.Connection, scope: Scope) -> list[Was]:
    """Return the memories and episodes in the axes of a scope that have changed since ``scope.as_of`` as they were
    then, the newest first, COUNTED of a kind at most; those of damaged text are left out.
    """
    found: list[Was] = []
    for kind in scope.kinds:
        former = _former(conn, kind, scope)
        entries = {entry.id: entry for entry in past.by_ids(conn, [was.id for was in former])}
        for was in former:
            record = _record(entries[was.id])
            if not isinstance(record, Unreadable):
                entry = entries[was.id]
                rid: Rid = (kind, was.row_id)
                found.append(Was(rid, was.created_at, record, was.true, was.gone, entry.model, entry.vector))
    return found


def changed(conn: apsw.Connection, rids: Iterable[Rid], as_of: str) -> set[Rid]:
    """Return those of the rows of which something is kept that was done to them after an instant."""
    return {
        (kind, row_id)
        for kind, ids in by_kind(rids).items()
        for (row_id,) in conn.execute(
            "SELECT value FROM json_each(?)"
            " WHERE EXISTS (SELECT 1 FROM past WHERE past.kind = ? AND past.row_id = value AND past.at > ?)",
            (json.dumps(ids), kind, as_of),
        )
    }


def in_order(conn: apsw.Connection, today: Sequence[int], former: Iterable[Was], limit: int) -> list[int]:
    """Return the newest memories of both, created_at DESC, id DESC, ``limit`` at most."""
    places = [(stored, row_id) for row_id, stored in _stored(conn, today).items()]
    places += [(was.created_at, was.rid[1]) for was in former]
    return [row_id for _, row_id in sorted(places, reverse=True)[:limit]]


def _stored(conn: apsw.Connection, ids: Sequence[int]) -> dict[int, str]:
    """Return when the memories were stored."""
    sql = "SELECT id, created_at FROM memories WHERE id IN (SELECT value FROM json_each(?))"
    return dict(conn.execute(sql, (json.dumps(list(ids)),)))


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
            found[rid] = _record(entry)
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


def _former(conn: apsw.Connection, kind: Kind, scope: Scope) -> list[_Former]:
    """Return the rows of a kind in a scope, of any source, that have changed since as they were then, newest first;
    agent '' means every agent.
    """
    axes, params = stored_sql(scope, everyone=not scope.agent_id)
    found: Any = conn.execute(
        "SELECT p.id, p.row_id, p.created_at, p.fields, coalesce(p.batch, ''),"
        f" p.row_id NOT IN (SELECT id FROM {kind.table} WHERE id = p.row_id AND {seen(kind.table)}) FROM past p"
        f" WHERE p.text IS NOT NULL AND p.id IN (SELECT min(id) FROM past WHERE +kind = ? AND at > ? AND {axes}"
        " GROUP BY row_id) ORDER BY p.created_at DESC, p.row_id DESC LIMIT ?",
        (kind, scope.as_of, *params, COUNTED),
    ).fetchall()
    rows = []
    for entry_id, row_id, created_at, fields, batch, gone in found:
        was = json.loads(fields)
        true = (was.get("changed_at") or "") <= scope.as_of
        rows.append(_Former(entry_id, row_id, created_at, was, batch, true, bool(gone)))
    return rows


def _matches(entry: _Former, narrowing: Narrowing) -> bool:
    """Tell whether a row that was so is meant."""
    was = entry.fields
    if not of_source(was["source"], narrowing.source_id):
        return False
    if narrowing.locked and not was["locked"] or narrowing.batch not in ("", entry.batch):
        return False
    return was["msg_id"].startswith(narrowing.id_prefix)


def of_source(source: str, wanted: str) -> bool:
    """Tell whether a source, JSON as it is stored, is the wanted one, or begins with it; '' wants any."""
    if not wanted:
        return True
    whose = source_id(source) or ""
    return whose == wanted if wanted[-1].isalnum() else whose.startswith(wanted)


def _record(entry: past.Entry) -> Memory | Episode | Unreadable:
    return _memory(entry) if entry.kind == MEMORY else _episode(entry)


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
        parse_instant(was["timestamp"]),
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
