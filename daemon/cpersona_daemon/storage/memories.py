"""Every statement on memories.

Contract: rows.shape, dedup.skip, speed.plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import apsw

from ..model.cuts import Whole, content_key
from ..model.instants import created_text, parse_instant
from ..model.kinds import MEMORY
from ..model.scope import Scope
from ..text.terms import index_text
from . import associations, backlog, damaged, hidden, history, past, postings, tables
from .damaged import Unreadable
from .json_columns import source_id
from .scope import memory_sql, pool_sql
from .transaction import Transaction


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A row about to be written. ``source`` and ``metadata`` are JSON text; an empty created_at means now.

    ``whole`` is what the content was before it was cut, None when it is all there.
    """

    agent_id: str
    content: str
    project_id: str = ""
    channel: str = ""
    msg_id: str = ""
    source: str = "{}"
    timestamp: str = ""
    metadata: str = "{}"
    created_at: str = ""
    locked: bool = False
    recall_count: int = 0
    last_recalled_at: str | None = None
    whole: Whole | None = None

    @property
    def key(self) -> bytes:
        """What the content is known by; of a text that was cut, all of it counts."""
        return content_key(self.content) if self.whole is None else self.whole.key


@dataclass(frozen=True, slots=True)
class Existing:
    """What an edit or a dedup probe needs to know of a stored row."""

    id: int
    agent_id: str
    project_id: str
    channel: str
    locked: bool
    content_key: bytes
    whole_length: int | None
    kept_length: int | None

    @property
    def cut(self) -> dict | None:
        """`{kept, of}` of a text that was cut, None for one that is whole."""
        return None if self.whole_length is None else {"kept": self.kept_length, "of": self.whole_length}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A row with everything worked out that its columns and postings hold, so that writing it is all that is left."""

    new: NewMemory
    key: bytes
    source_id: str | None
    instant: float | None
    body: str

    @classmethod
    def of(cls, new: NewMemory) -> Prepared:
        return cls(new, new.key, source_id(new.source), parse_instant(new.timestamp), index_text(new.content))


# Why a store is skipped.
SAME_ID, SAME_CONTENT = "duplicate msg_id", "duplicate content"

# The length of a text is counted only where it was cut, so that a probe reads no text.
_EXISTING = (
    "id, agent_id, project_id, channel, locked, content_key, whole_length,"
    " CASE WHEN whole_length IS NOT NULL THEN length(content) END FROM memories"
)


def _existing(conn: apsw.Connection, where: str, params: tuple) -> Existing | None:
    row = conn.execute(f"SELECT {_EXISTING} {where} AND {hidden.seen('memories')}", params).fetchone()
    return None if row is None else _as_existing(row)


def _as_existing(row: Sequence) -> Existing:
    return Existing(row[0], row[1], row[2], row[3], bool(row[4]), *row[5:])


def find(conn: apsw.Connection, memory_id: int) -> Existing | None:
    """Return a row by its id, whoever owns it."""
    return _existing(conn, "WHERE id = ?", (memory_id,))


def content_of(conn: apsw.Connection, memory_id: int) -> str | None:
    """Return what a row says, None where there is none or its text cannot be read."""
    found = list(damaged.rows(conn, "SELECT id, content FROM memories WHERE id = ?", (memory_id,)))
    return found[0][1] if found and not isinstance(found[0], Unreadable) else None


def find_duplicate(
    conn: apsw.Connection, agent_id: str, project_id: str, channel: str, msg_id: str, key: bytes
) -> tuple[Existing | None, str]:
    """Return the row that a store is skipped against, and why; (None, '') where it is new.

    The same message id counts before the same content: in the own project before the global one, any channel. The
    same content counts in the own bucket or a global one.
    """
    # One step into a unique index for each place, all in one statement; IN lists and a sort would cost several times
    # that.
    projects = tuple(dict.fromkeys((project_id, "")))
    steps: list[str] = []
    values: list[Any] = []
    for project in projects if msg_id else ():
        steps.append("WHERE agent_id = ? AND msg_id = ? AND msg_id <> '' AND project_id = ?")
        values += agent_id, msg_id, project
    by_id = len(steps)
    for project in projects:
        for axis in dict.fromkeys((channel, "")):
            steps.append("WHERE agent_id = ? AND content_key = ? AND project_id = ? AND channel = ?")
            values += agent_id, key, project, axis
    sql = " UNION ALL ".join(
        f"SELECT {min(by_id, place)}, {_EXISTING} {step} AND {hidden.seen('memories')}"
        for place, step in enumerate(steps)
    )
    found: Any = conn.execute(sql, values).fetchall()
    if not found:
        return None, ""
    first, *row = min(found)
    return _as_existing(row), SAME_ID if first < by_id else SAME_CONTENT


def find_in_bucket(conn: apsw.Connection, agent_id: str, project_id: str, channel: str, key: bytes) -> Existing | None:
    """Return the row with this content in exactly this bucket."""
    return _existing(
        conn,
        "WHERE agent_id = ? AND content_key = ? AND project_id = ? AND channel = ?",
        (agent_id, key, project_id, channel),
    )


def find_msg_id_in_project(conn: apsw.Connection, agent_id: str, project_id: str, msg_id: str) -> Existing | None:
    """Return the row with this message id in exactly this project; import and merge compare exact axes."""
    if not msg_id:
        return None
    return _existing(
        conn, "WHERE agent_id = ? AND msg_id = ? AND msg_id <> '' AND project_id = ?", (agent_id, msg_id, project_id)
    )


_COLUMNS = (
    "agent_id, project_id, channel, msg_id, source_id, created_at, instant, locked, recall_count, last_recalled_at,"
    " timestamp, source, metadata, content_key, content, whole_length, kept_key"
)
_PLACES = "(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"


def _values(row: Prepared, created: str) -> tuple:
    new = row.new
    return (
        new.agent_id,
        new.project_id,
        new.channel,
        new.msg_id,
        row.source_id,
        new.created_at or created,
        row.instant,
        int(new.locked),
        new.recall_count,
        new.last_recalled_at,
        new.timestamp,
        new.source,
        new.metadata,
        row.key,
        new.content,
        *_mark(new.content, new.whole),
    )


def _mark(content: str, whole: Whole | None) -> tuple[int | None, bytes | None]:
    """Return the two columns that a cut text fills; with them what is kept can be checked, as the key of a whole text
    checks it.
    """
    return (None, None) if whole is None else (whole.length, content_key(content))


def insert(tx: Transaction, new: NewMemory) -> int:
    """Write a row and its postings and return its id. Raises apsw.ConstraintError on a duplicate."""
    return _insert(tx, [Prepared.of(new)])


def insert_new(tx: Transaction, rows: list[Prepared]) -> list[int | None]:
    """Write those of the rows whose place is free, with their postings, and return the id of each, None for the others.

    A place is taken by the same message id in the project or the same content in the bucket: the axes of the
    unique indexes. A few dozen new rows are one statement, during which other threads run; ids follow each other
    in the order of the rows, and a row that is not written uses up none.
    """
    try:
        last = _insert(tx, rows)
    except apsw.ConstraintError:
        return [None] if len(rows) == 1 else [found for row in rows for found in insert_new(tx, [row])]
    return list(range(last - len(rows) + 1, last + 1))


def _insert(tx: Transaction, rows: list[Prepared]) -> int:
    """Write all of the rows, or none, and return the last one's id."""
    created = created_text(tx.now)
    if hidden.some(tx.conn, MEMORY.table):
        for row in rows:
            _make_way(tx, row.new, row.key)
    tx.execute(
        f"INSERT INTO memories ({_COLUMNS}) VALUES {','.join([_PLACES] * len(rows))}",
        tuple(chain.from_iterable(_values(row, created) for row in rows)),
    )
    last = tx.conn.last_insert_rowid()
    postings.add_memories(
        tx.conn, [(last - len(rows) + 1 + place, row.new.agent_id, row.body) for place, row in enumerate(rows)]
    )
    return last


def insert_again(tx: Transaction, memory_id: int, new: NewMemory) -> None:
    """Write a row that is gone under the id that it had; what it says counts as changed now, for it was away.

    Raises apsw.ConstraintError on a duplicate.
    """
    row = Prepared.of(new)
    if hidden.holds(tx.conn, MEMORY.table, memory_id):
        delete(tx, memory_id, noted=False)
    if hidden.some(tx.conn, MEMORY.table):
        _make_way(tx, new, row.key)
    now = created_text(tx.now)
    tx.execute(
        f"INSERT INTO memories (id, changed_at, {_COLUMNS}) VALUES (?,?,{_PLACES[1:]}",
        (memory_id, now, *_values(row, now)),
    )
    postings.put_memory(tx.conn, memory_id, new.content)


def _make_way(tx: Transaction, new: NewMemory, key: bytes) -> None:
    """Remove the hidden rows that stand where a row is to be written."""
    found: Any = tx.execute(
        "SELECT id FROM memories WHERE id IN hidden_memories AND agent_id = ?1 AND content_key = ?2"
        " AND project_id = ?3 AND channel = ?4"
        " UNION SELECT id FROM memories WHERE id IN hidden_memories AND agent_id = ?1"
        " AND msg_id = ?5 AND msg_id <> '' AND project_id = ?3",
        (new.agent_id, key, new.project_id, new.channel, new.msg_id),
    ).fetchall()
    for (memory_id,) in found:
        delete(tx, memory_id, noted=False)


def replace_content(
    tx: Transaction,
    memory_id: int,
    content: str,
    whole: Whole | None = None,
    keeps_vector: bool = False,
    act: str = past.UPDATE,
) -> None:
    """Give a row another text (``whole``: what it was before it was cut) with its postings, and take away the vector of
    the old one, unless what is embedded of both is the same. What it was is kept.
    """
    key = content_key(content) if whole is None else whole.key
    past.keep_text(tx, memory_id, act, content, key)
    if hidden.some(tx.conn, MEMORY.table):
        held: list[Any] = tx.execute(
            "SELECT agent_id, project_id, channel FROM memories WHERE id = ?", (memory_id,)
        ).fetchall()
        for agent_id, project_id, channel in held:
            _make_way(tx, NewMemory(agent_id, content, project_id, channel), key)
    tx.execute(
        "UPDATE memories SET content = ?, content_key = ?, whole_length = ?, kept_key = ?,"
        " changed_at = CASE WHEN content_key = ? THEN changed_at ELSE ? END WHERE id = ?",
        (content, key, *_mark(content, whole), key, created_text(tx.now), memory_id),
    )
    postings.put_memory(tx.conn, memory_id, content)
    if not keeps_vector:
        backlog.detach(tx, MEMORY, [memory_id])


def replace_facts(tx: Transaction, memory_id: int, new: NewMemory, act: str = past.UPDATE) -> bool:
    """Give a row another time, source and metadata, and tell whether any of them was another; what it was is kept."""
    facts = new.timestamp, new.source, new.metadata
    past.keep_facts(tx, memory_id, act, facts)
    tx.execute(
        "UPDATE memories SET timestamp = ?, source = ?, metadata = ?, instant = ?, source_id = ?, changed_at = ?"
        " WHERE id = ? AND (timestamp, source, metadata) IS NOT (?, ?, ?)",
        (*facts, parse_instant(new.timestamp), source_id(new.source), created_text(tx.now), memory_id, *facts),
    )
    return bool(tx.conn.changes())


def delete(tx: Transaction, memory_id: int, noted: bool = True) -> None:
    """Remove a row with its postings, vector, backlog entry, mentions and relations; that it went is ``noted``, and
    what it was is kept.
    """
    if noted:
        history.note_deletion(tx, MEMORY, memory_id)
        past.keep_deleted(tx, MEMORY, memory_id)
    postings.drop(tx.conn, MEMORY, memory_id)
    backlog.detach(tx, MEMORY, [memory_id])
    backlog.forget(tx, MEMORY, memory_id)
    associations.forget_record(tx, MEMORY, memory_id)
    tx.execute("DELETE FROM memories WHERE id = ?", (memory_id,))


def set_locked(tx: Transaction, memory_id: int, locked: bool) -> None:
    """Protect a row from editing and deletion, or lift that."""
    tx.execute("UPDATE memories SET locked = ? WHERE id = ?", (int(locked), memory_id))


def bump_recalls(tx: Transaction, ids: list[int]) -> None:
    """Count one more recall of these rows, now."""
    stamp = created_text(tx.now)
    tx.conn.executemany(
        "UPDATE memories SET recall_count = recall_count + 1, last_recalled_at = ? WHERE id = ?",
        [(stamp, i) for i in ids],
    )


# -- reading

_FULL = (
    "id, agent_id, project_id, channel, msg_id, content, source, timestamp, metadata, created_at, locked,"
    " recall_count, last_recalled_at, instant, whole_length, CASE WHEN whole_length IS NOT NULL THEN content_key END"
)


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored row as it is read back; ``source`` and ``metadata`` are JSON text, ``instant`` epoch seconds or None."""

    id: int
    agent_id: str
    project_id: str
    channel: str
    msg_id: str
    content: str
    source: str
    timestamp: str
    metadata: str
    created_at: str
    locked: int
    recall_count: int
    last_recalled_at: str | None
    instant: float | None
    whole_length: int | None
    whole_key: bytes | None

    @property
    def cut(self) -> dict | None:
        """The mark of a text that was cut, None for one that is whole."""
        return (
            None
            if self.whole_length is None or self.whole_key is None
            else Whole(self.whole_length, self.whole_key).told(self.content)
        )


def _read(row: tuple | Unreadable) -> Memory | Unreadable:
    if isinstance(row, Unreadable):
        return row
    memory = Memory(*row)
    reason = damaged.unfit(memory.content, memory.source, memory.metadata)
    return memory if reason is None else Unreadable(memory.id, reason)


def by_ids(
    conn: apsw.Connection, ids: list[int], scope: Scope | None = None, agent_id: str | None = None
) -> dict[int, Memory | Unreadable]:
    """Return the rows with these ids that are visible in the scope (or owned by the agent), by id."""
    seen = None if scope is None else memory_sql(scope)
    return {row.id: row for row in map(_read, tables.by_ids(conn, MEMORY.table, _FULL, ids, seen, agent_id))}


def newest(
    conn: apsw.Connection,
    agent_id: str,
    project_id: str | None,
    limit: int,
    since: str = "",
    until: str = "",
    channel: str = "",
    narrowed: Sequence[tuple[str, tuple]] = (),
) -> list[Memory | Unreadable]:
    """Return rows created_at DESC, id DESC; agent '' lists all agents.

    ``since`` and ``until``, in created_at's form, are inclusive; '' = open. ``narrowed``: as ``tables.newest`` has it.
    """
    found = map(
        _read, tables.newest(conn, MEMORY.table, _FULL, agent_id, project_id, limit, since, until, channel, narrowed)
    )
    return tables.within_a_frame(found, lambda memory: len(memory.content) + len(memory.source) + len(memory.metadata))


def recent(conn: apsw.Connection, scope: Scope, n: int) -> list[int]:
    """Return the ``n`` newest memories in scope: created_at DESC, id DESC. What a blank query lists."""
    axes, params = memory_sql(scope)
    return [
        id
        for (id,) in conn.execute(
            f"SELECT id FROM memories WHERE {axes} ORDER BY created_at DESC, id DESC LIMIT ?", (*params, max(0, n))
        )
    ]


def count_in_scope(conn: apsw.Connection, scope: Scope, at_most: int) -> int:
    """Count memories in the agent, project and channel scope, stopping at ``at_most``."""
    return tables.count_in_scope(conn, MEMORY.table, scope, at_most)


def span(conn: apsw.Connection, scope: Scope) -> tuple[float, float] | None:
    """Return the oldest and the newest instant among dated memories in the axes of a scope, or None without any."""
    condition, params = pool_sql(scope, MEMORY.table)
    low: Any = conn.execute(
        f"SELECT instant FROM memories INDEXED BY memories_instant WHERE {condition} AND instant IS NOT NULL"
        " ORDER BY instant LIMIT 1",
        tuple(params),
    ).fetchone()
    if low is None:
        return None
    high: Any = conn.execute(
        f"SELECT instant FROM memories INDEXED BY memories_instant WHERE {condition} AND instant IS NOT NULL"
        " ORDER BY instant DESC LIMIT 1",
        tuple(params),
    ).fetchone()
    return low[0], high[0]


def total(conn: apsw.Connection, agent_id: str = "") -> int:
    """Count the memories of an agent, or of all."""
    n: Any
    if agent_id:
        ((n,),) = conn.execute(
            f"SELECT count(*) FROM memories WHERE agent_id = ? AND {hidden.seen('memories')}", (agent_id,)
        ).fetchall()
    else:
        ((n,),) = conn.execute(
            "SELECT (SELECT count(*) FROM memories) - (SELECT count(*) FROM hidden_memories)"
        ).fetchall()
    return n
