"""Every statement on what rows were before: an entry for each update, deletion and return, for a number of days.

An entry holds a row as it was before an act, whole, with its vector, and a deleted one with its batch, mentions and
relations, which are kept by what they name. It is written by the statement beside the act's own, in its transaction; a
store writes none. Acts of one job have one number, ``together``, by which they can be taken back together.

Contract: past.kept, past.acts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from ..model.instants import created_text
from ..model.kinds import EPISODE, MEMORY, Kind, Rid
from .damaged import texts
from .hidden import seen
from .transaction import Transaction

UPDATE, DELETE, RETURN, PURGE = "update", "delete", "return", "purge"
DAY_SECONDS = 86_400.0
SWEPT_TOGETHER = 500

_FIELDS = {
    MEMORY: "json_object('msg_id', m.msg_id, 'timestamp', CAST(m.timestamp AS TEXT), 'source', CAST(m.source AS TEXT),"
    " 'metadata', CAST(m.metadata AS TEXT), 'locked', m.locked, 'recall_count', m.recall_count,"
    " 'last_recalled_at', m.last_recalled_at, 'changed_at', m.changed_at, 'whole_length', m.whole_length,"
    " 'whole_key', CASE WHEN m.whole_length IS NOT NULL THEN hex(m.content_key) END)",
    EPISODE: "json_object('keywords', CAST(m.keywords AS TEXT), 'start_time', m.start_time, 'end_time', m.end_time,"
    " 'resolved', m.resolved, 'whole_length', m.whole_length,"
    " 'whole_key', CASE WHEN m.whole_length IS NOT NULL THEN hex(m.whole_key) END)",
}
_TEXT = {MEMORY: "m.content", EPISODE: "m.summary"}


def _node(end: str) -> str:
    """Return the SQL of one end of a relation: its kind, its id, and where it is an entity what it is named where."""
    return (
        f"json_array(r.{end}_kind, r.{end}_id, json((SELECT json_array(a.normalized, a.project_id,"
        f" a.channel) FROM entity_aliases a WHERE r.{end}_kind = 'entity' AND a.entity_id = r.{end}_id AND a.is_name)))"
    )


_MENTIONS = (
    "(SELECT json_group_array(json_array(json_array('entity', x.entity_id, json((SELECT json_array("
    "a.normalized, a.project_id, a.channel) FROM entity_aliases a WHERE a.entity_id = x.entity_id AND a.is_name))),"
    " x.declared_by, x.created_at, x.stamp)) FROM entity_mentions x WHERE x.kind = ?1 AND x.record_id = m.id)"
)
_RELATIONS = (
    f"(SELECT json_group_array(json_array({_node('subject')}, r.predicate, {_node('object')}, r.project_id, r.channel,"
    " r.anchor_ref, r.declared_by, r.declared_at, r.stamp)) FROM relations r WHERE r.id IN"
    " (SELECT id FROM relations WHERE subject_kind = ?1 AND subject_id = ?2"
    " UNION SELECT id FROM relations WHERE object_kind = ?1 AND object_id = ?2))"
)
_NO_LINKS = '{"mentions":[],"relations":[]}'
_LINKS = f"nullif(json_object('mentions', json({_MENTIONS}), 'relations', json({_RELATIONS})), '{_NO_LINKS}')"
# The number of an act is that of its first entry.
_NEXT = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'past') + 1, 1)"


def _newest(kind: Kind) -> str:
    return f"coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{kind.table}'), 0)"


_COLUMNS = (
    "kind, row_id, at, act, together, newest_memory, newest_episode, agent_id, project_id, channel, created_at, text,"
    " fields, batch, links, model, vector, bytes"
)


def _keep_sql(kind: Kind, condition: str = "", links: str = "NULL") -> str:
    text, fields = _TEXT[kind], _FIELDS[kind]
    return (
        f"INSERT INTO past ({_COLUMNS}) SELECT ?1, ?2, ?3, ?4, coalesce(?5, {_NEXT}), {_newest(MEMORY)},"
        f" {_newest(EPISODE)}, m.agent_id, m.project_id, m.channel, m.created_at, {text}, {fields},"
        " (SELECT batch FROM batches WHERE kind = ?1 AND id = ?2),"
        f" {links}, v.model, v.vector,"
        f" 200 + octet_length({text}) + octet_length({fields}) + coalesce(octet_length(v.vector), 0)"
        f" FROM {kind.table} m LEFT JOIN {kind.vectors} v ON v.id = m.id WHERE m.id = ?2{condition}"
    )


_KEEP_DELETED = {kind: _keep_sql(kind, links=_LINKS) for kind in Kind}
# Of an update that changes nothing nothing is kept.
_OTHER_TEXT = " AND (m.content IS NOT ?6 OR m.content_key IS NOT ?7)"
_OTHER_FACTS = " AND (m.timestamp, m.source, m.metadata) IS NOT (?6, ?7, ?8)"
_KEEP_TEXT, _KEEP_FACTS = _keep_sql(MEMORY, _OTHER_TEXT), _keep_sql(MEMORY, _OTHER_FACTS)


@dataclass(frozen=True, slots=True)
class Entry:
    """A row as it was before an act at ``at``; ``text`` None where it was not there before.

    ``fields``: the other columns of its kind; ``links``: what a deleted row was linked to, ``model`` and ``vector`` its
    vector where it had one.
    """

    id: int
    kind: Kind
    row_id: int
    at: str
    act: str
    together: int
    newest_memory: int
    newest_episode: int
    agent_id: str
    project_id: str
    channel: str
    created_at: str
    text: str | None
    fields: dict[str, Any]
    batch: str
    links: dict[str, list]
    model: str | None
    vector: bytes | None

    @property
    def ref(self) -> str:
        return self.kind.ref(self.row_id)


# -- writing


def keep_deleted(tx: Transaction, kind: Kind, row_id: int) -> None:
    """Keep a row that is deleted in this transaction, and what it is linked to."""
    _keep(tx, _KEEP_DELETED[kind], kind, row_id, DELETE)


def keep_text(tx: Transaction, memory_id: int, act: str, content: str, key: bytes) -> None:
    """Keep a memory that gets this text, known by this key, where it says something else."""
    _keep(tx, _KEEP_TEXT, MEMORY, memory_id, act, content, key)


def keep_facts(tx: Transaction, memory_id: int, act: str, facts: tuple[str, str, str]) -> None:
    """Keep a memory that gets this time, source and metadata, where it has others."""
    _keep(tx, _KEEP_FACTS, MEMORY, memory_id, act, *facts)


def _keep(tx: Transaction, sql: str, kind: Kind, row_id: int, act: str, *more: Any) -> None:
    # What a job does to a row twice is one act: the row as it was before the job.
    if not tx.history_days or (kind, row_id) in tx.kept:
        return
    tx.execute(sql, (kind, row_id, created_text(tx.now), act, tx.act, *more))
    _acted(tx, kind, row_id)


def _acted(tx: Transaction, kind: Kind, row_id: int) -> None:
    if tx.conn.changes():
        tx.kept.add((kind, row_id))
        tx.act = tx.act or tx.conn.last_insert_rowid()


def note_return(tx: Transaction, entry: Entry) -> None:
    """Note that a row that was not there comes back as an entry has it."""
    if not tx.history_days:
        return
    tx.execute(
        f"INSERT INTO past ({_COLUMNS}) SELECT ?1, ?2, ?3, ?4, coalesce(?5, {_NEXT}), {_newest(MEMORY)},"
        f" {_newest(EPISODE)}, agent_id, project_id, channel, created_at, NULL, '{{}}', NULL, NULL, NULL, NULL, 200"
        " FROM past WHERE id = ?6",
        (entry.kind, entry.row_id, created_text(tx.now), RETURN, tx.act, entry.id),
    )
    _acted(tx, entry.kind, entry.row_id)


def sweep(tx: Transaction, most: int = SWEPT_TOGETHER) -> None:
    """Remove the oldest entries whose days are over, so many at most."""
    tx.execute(
        "DELETE FROM past WHERE id IN (SELECT id FROM past WHERE at < ? ORDER BY at LIMIT ?)",
        (_kept_since(tx.now, tx.history_days), most),
    )


def some_old(conn: apsw.Connection, now: float, history_days: float) -> bool:
    """Tell whether the days of an entry are over."""
    row = conn.execute("SELECT 1 FROM past WHERE at < ? LIMIT 1", (_kept_since(now, history_days),)).fetchone()
    return row is not None


def _kept_since(now: float, history_days: float) -> str:
    return created_text(now - history_days * DAY_SECONDS) if history_days else "9999"


def purge(tx: Transaction, rid: Rid) -> None:
    """Remove all that is kept of a row, but for the fact that it is gone, which says when and on which axes."""
    tx.execute(
        "DELETE FROM past WHERE kind = ?1 AND row_id = ?2"
        " AND id < (SELECT max(id) FROM past WHERE kind = ?1 AND row_id = ?2)",
        rid,
    )
    tx.execute(
        "UPDATE past SET act = ?, text = NULL, fields = '{}', batch = NULL, links = NULL, model = NULL, vector = NULL,"
        " bytes = 200 WHERE kind = ? AND row_id = ?",
        (PURGE, *rid),
    )


def forget_agent(tx: Transaction, agent_id: str) -> None:
    """Remove all that is kept of an agent's rows."""
    tx.execute("DELETE FROM past WHERE agent_id = ?", (agent_id,))


# -- reading

_ENTRY = (
    "id, kind, row_id, at, act, together, newest_memory, newest_episode, agent_id, project_id, channel, created_at,"
    " text, fields, batch, links, model, vector"
)


def _entry(row: tuple) -> Entry:
    named: list[Any] = list(row)
    named[1:2] = [Kind(row[1])]
    named[13:16] = json.loads(row[13]), row[14] or "", json.loads(row[15] or _NO_LINKS)
    return Entry(*named)


_OF_ROW = (
    "FROM past WHERE kind = ?1 AND row_id = ?2 AND ?3 IN (agent_id, '') AND (?4 IS NULL OR project_id IN (?4, ''))"
)


def of_row(
    conn: apsw.Connection, rid: Rid, agent_id: str, project_id: str | None, at_most: int
) -> tuple[list[Entry], int]:
    """Return what is kept of a row, newest first, and how many entries there are.

    Agent '' means whoever had it, project None wherever it lay.
    """
    asked = (*rid, agent_id, project_id)
    count = conn.execute(f"SELECT count(*) {_OF_ROW}", asked).get
    rows = texts(conn, f"SELECT {_ENTRY} {_OF_ROW} ORDER BY id DESC LIMIT ?5", (*asked, at_most))
    return [_entry(row) for row in rows], count


def former(
    conn: apsw.Connection, rid: Rid, agent_id: str, project_id: str | None, version: int
) -> tuple[Entry | None, int]:
    """Return what a row was so many versions ago, 1 being the latest, and how many there are."""
    asked, there = (*rid, agent_id, project_id), f"{_OF_ROW} AND text IS NOT NULL"
    count = conn.execute(f"SELECT count(*) {there}", asked).get
    if not 0 < version <= count:
        return None, count
    rows = texts(conn, f"SELECT {_ENTRY} {there} ORDER BY id DESC LIMIT 1 OFFSET ?5", (*asked, version - 1))
    return _entry(rows[0]), count


def last_act(conn: apsw.Connection, agent_id: str) -> Entry | None:
    """Return the latest entry of an agent, None where nothing is kept."""
    rows = texts(conn, f"SELECT {_ENTRY} FROM past WHERE agent_id = ? ORDER BY id DESC LIMIT 1", (agent_id,))
    return _entry(rows[0]) if rows else None


def of_act(conn: apsw.Connection, act: int, agent_id: str, before: int, at_most: int) -> list[Entry]:
    """Return the entries of an agent that belong to an act and have a smaller id than ``before``, latest first."""
    rows = texts(
        conn,
        f"SELECT {_ENTRY} FROM past WHERE together = ? AND agent_id = ? AND id < ? ORDER BY id DESC LIMIT ?",
        (act, agent_id, before, at_most),
    )
    return [_entry(row) for row in rows]


def by_ids(conn: apsw.Connection, ids: Sequence[int]) -> list[Entry]:
    """Return the entries with these ids."""
    sql = f"SELECT {_ENTRY} FROM past NOT INDEXED WHERE id IN (SELECT value FROM json_each(?))"
    return [_entry(row) for row in texts(conn, sql, (json.dumps(list(ids)),))]


def count_act(conn: apsw.Connection, act: int, agent_id: str) -> int:
    """Count the entries of an agent that belong to an act."""
    return conn.execute("SELECT count(*) FROM past WHERE together = ? AND agent_id = ?", (act, agent_id)).get


def last_stored(conn: apsw.Connection, agent_id: str, after: dict[Kind, int]) -> tuple[Kind, int, str, str] | None:
    """Return the row that an agent stored last, with its created_at and batch, of those with a larger id than
    ``after`` has of their kind.
    """
    found = []
    for kind, last in after.items():
        row = conn.execute(
            f"SELECT id, created_at, coalesce((SELECT batch FROM batches WHERE kind = ? AND id = m.id), '')"
            f" FROM {kind.table} m WHERE id > ? AND agent_id = ? AND {seen(kind.table)} ORDER BY id DESC LIMIT 1",
            (kind, last, agent_id),
        ).fetchone()
        if row is not None:
            found.append((row[1], kind == MEMORY, kind, row))
    if not found:
        return None
    _, _, kind, (row_id, created_at, batch) = max(found)
    return kind, row_id, created_at, batch


def when_deleted(conn: apsw.Connection, rid: Rid) -> Entry | None:
    """Return what a row was when it was last deleted, None where that is not kept."""
    sql = f"SELECT {_ENTRY} FROM past WHERE kind = ? AND row_id = ? AND act = ? ORDER BY id DESC LIMIT 1"
    rows = texts(conn, sql, (*rid, DELETE))
    return _entry(rows[0]) if rows else None


def size(conn: apsw.Connection) -> dict[str, Any]:
    """Return `{entries, bytes, since}`: how much is kept of rows as they were, and since when."""
    found: list[Any] = conn.execute("SELECT count(*), coalesce(sum(bytes), 0), min(at) FROM past").fetchall()
    ((entries, taken, since),) = found
    return {"entries": entries, "bytes": taken, "since": since}
