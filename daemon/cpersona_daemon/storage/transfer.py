"""The statements of export, import and merge. Each compares and restores rows on their exact axes.

Contract: import.lines, export.file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apsw
import numpy as np

from ..model.changes import VectorPut
from ..model.instants import created_text, normal_created
from ..model.kinds import EPISODE, MEMORY, Kind
from . import associations, episodes, memories
from .damaged import Unreadable, rows
from .hidden import seen, some
from .transaction import Transaction

# -- export


def _owned(agent_id: str, column: str = "agent_id") -> tuple[str, tuple]:
    # The plus keeps SQLite from the index: rows then stream in id order instead of being sorted first, text and all.
    return (f"+{column} = ?", (agent_id,)) if agent_id else ("1", ())


# A mention is seen where both its ends are.
_MENTION_SEEN = (
    f"{seen('entities', 'm.entity_id')} AND CASE m.kind WHEN 'mem' THEN {seen('memories', 'm.record_id')}"
    f" ELSE {seen('episodes', 'm.record_id')} END"
)


def counts(conn: apsw.Connection, agent_id: str) -> dict[str, int]:
    """Count what an export of an agent ('' = all) holds, by kind of line."""
    where, params = ("agent_id = ?", (agent_id,)) if agent_id else ("1", ())
    out: dict[str, Any] = {}
    for name, table in (
        ("memory", MEMORY.table),
        ("episode", EPISODE.table),
        ("profile", "profiles"),
        ("entity", "entities"),
        ("relation", "relations"),
    ):
        condition = where if table == "profiles" else f"{where} AND {seen(table)}"
        ((out[name],),) = conn.execute(f"SELECT count(*) FROM {table} WHERE {condition}", params).fetchall()
    ((out["mention"],),) = conn.execute(
        f"SELECT count(*) FROM entity_mentions m JOIN entities e ON e.id = m.entity_id WHERE {where}"
        f" AND {_MENTION_SEEN}",
        params,
    ).fetchall()
    return out


def memory_rows(conn: apsw.Connection, agent_id: str, vectors: bool) -> Iterator[tuple | Unreadable]:
    """Yield (id, agent, msg_id, content, source, timestamp, metadata, created_at, project, channel, locked,
    recall_count, last_recalled_at, whole_length, content_key, vector, model) by id; the last two None without a vector,
    the two before for a whole text.
    """
    where, params = _owned(agent_id, "m.agent_id")
    extra, join = (
        (", v.vector, v.model", "LEFT JOIN memory_vectors v ON v.id = m.id") if vectors else (", NULL, NULL", "")
    )
    return rows(
        conn,
        "SELECT m.id, m.agent_id, m.msg_id, m.content, m.source, m.timestamp, m.metadata, m.created_at, m.project_id,"
        " m.channel, m.locked, m.recall_count, m.last_recalled_at, m.whole_length,"
        f" iif(m.whole_length IS NULL, NULL, m.content_key){extra} FROM memories m {join}"
        f" WHERE {where} AND {seen('memories', 'm.id')} ORDER BY m.id",
        params,
    )


def episode_rows(conn: apsw.Connection, agent_id: str, vectors: bool) -> Iterator[tuple | Unreadable]:
    """Yield (id, agent, summary, keywords, start, end, created_at, resolved, project, channel, whole_length, whole_key,
    vector, model) by id.
    """
    where, params = _owned(agent_id, "m.agent_id")
    extra, join = (
        (", v.vector, v.model", "LEFT JOIN episode_vectors v ON v.id = m.id") if vectors else (", NULL, NULL", "")
    )
    return rows(
        conn,
        "SELECT m.id, m.agent_id, m.summary, m.keywords, m.start_time, m.end_time, m.created_at, m.resolved,"
        f" m.project_id, m.channel, m.whole_length, m.whole_key{extra} FROM episodes m {join}"
        f" WHERE {where} AND {seen('episodes', 'm.id')} ORDER BY m.id",
        params,
    )


def profile_rows(conn: apsw.Connection, agent_id: str) -> Iterator[tuple]:
    """Yield (agent, user, content, updated_at, project)."""
    where, params = _owned(agent_id)
    return conn.execute(
        f"SELECT agent_id, user_id, content, updated_at, project_id FROM profiles WHERE {where}"
        " ORDER BY agent_id, user_id",
        params,
    )


def entity_rows(conn: apsw.Connection, agent_id: str) -> Iterator[tuple]:
    """Yield (id, agent, project, channel, name, declared_by, created_at, JSON list of aliases) by id."""
    where, params = _owned(agent_id)
    return conn.execute(
        "SELECT id, agent_id, project_id, channel, name, declared_by, coalesce(stamp, created_at),"
        " (SELECT json_group_array(alias) FROM"
        "  (SELECT alias FROM entity_aliases WHERE entity_id = entities.id AND NOT is_name ORDER BY normalized))"
        f" FROM entities WHERE {where} AND {seen('entities')} ORDER BY id",
        params,
    )


def mention_rows(conn: apsw.Connection, agent_id: str) -> Iterator[tuple]:
    """Yield (entity id, record kind, record id, declared_by, created_at), by entity and then as they were declared."""
    where, params = _owned(agent_id, "e.agent_id")
    return conn.execute(
        "SELECT m.entity_id, m.kind, m.record_id, m.declared_by, coalesce(m.stamp, m.created_at) FROM entity_mentions m"
        f" JOIN entities e ON e.id = m.entity_id WHERE {where} AND {_MENTION_SEEN}"
        " ORDER BY m.entity_id, m.created_at, m.kind DESC, m.record_id",
        params,
    )


def relation_rows(conn: apsw.Connection, agent_id: str) -> Iterator[tuple]:
    """Yield (id, agent, project, channel, subject kind and id, predicate, object kind and id, anchor, declared_by,
    declared_at) by id.
    """
    where, params = _owned(agent_id)
    return conn.execute(
        "SELECT id, agent_id, project_id, channel, subject_kind, subject_id, predicate, object_kind, object_id,"
        " anchor_ref, declared_by, coalesce(stamp, declared_at) FROM relations"
        f" WHERE {where} AND {seen('relations')} ORDER BY id",
        params,
    )


# -- import


def find_memory(conn: apsw.Connection, new: memories.NewMemory) -> int | None:
    """Return the row that stands where this one would: of the same message id in the project, else the same content in
    the bucket.
    """
    found = memories.find_msg_id_in_project(conn, new.agent_id, new.project_id, new.msg_id) or memories.find_in_bucket(
        conn, new.agent_id, new.project_id, new.channel, new.key
    )
    return None if found is None else found.id


def put_vectors(
    tx: Transaction,
    kind: Kind,
    rows: list[tuple[int, memories.NewMemory | episodes.NewEpisode, str | None, str, np.ndarray]],
) -> None:
    """Give rows that this transaction wrote their vectors: (id, row, its source's id, model, unit vector) each."""
    if not rows:
        return
    values = [value for row_id, _, _, model, vector in rows for value in (row_id, model, vector)]
    tx.execute(
        f"INSERT INTO {kind.vectors} (id, model, vector) VALUES {','.join(['(?,?,?)'] * len(rows))}", tuple(values)
    )
    now = created_text(tx.now)
    tx.changes.extend(
        VectorPut(kind, row_id, new.created_at or now, new.agent_id, new.project_id, new.channel, source, model, vector)
        for row_id, new, source, model, vector in rows
    )


def find_episode(conn: apsw.Connection, new: episodes.NewEpisode) -> int | None:
    """Return the episode with this summary in exactly this agent, project and channel."""
    row = conn.execute(
        "SELECT id FROM episodes INDEXED BY episodes_same"
        " WHERE agent_id = ? AND substr(summary, 1, 64) = substr(?, 1, 64) AND summary = ? AND whole_key IS ?"
        f" AND project_id = ? AND channel = ? AND {seen('episodes')} ORDER BY id LIMIT 1",
        (new.agent_id, new.summary, new.summary, new.whole and new.whole.key, new.project_id, new.channel),
    ).fetchone()
    return None if row is None else row[0]


def put_episode(tx: Transaction, new: episodes.NewEpisode) -> tuple[int, bool]:
    """Write an episode unless it is there; return its id and whether it was written."""
    found = find_episode(tx.conn, new)
    return (found, False) if found is not None else (episodes.insert(tx, new), True)


def profile_age(conn: apsw.Connection, agent_id: str, user_id: str = "") -> str | None:
    """Return when a profile was written, or None when there is none."""
    row = conn.execute(
        "SELECT updated_at FROM profiles WHERE agent_id = ? AND user_id = ?", (agent_id, user_id)
    ).fetchone()
    return None if row is None else row[0]


def put_profile(
    tx: Transaction, agent_id: str, content: str, updated_at: str | None, project_id: str, user_id: str = ""
) -> bool:
    """Write a profile unless the stored one is newer, and tell whether it was written. Each user's is one of its own.

    One of unknown age never replaces another.
    """
    stamp = updated_at or created_text(tx.now)
    before = tx.conn.total_changes()
    tx.execute(
        "INSERT INTO profiles (agent_id, user_id, project_id, updated_at, content) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (agent_id, user_id)"
        " DO UPDATE SET project_id = excluded.project_id, updated_at = excluded.updated_at, content = excluded.content"
        " WHERE ? AND excluded.updated_at >= profiles.updated_at",
        (agent_id, user_id, project_id, stamp, content, updated_at is not None),
    )
    return tx.conn.total_changes() > before


# -- merge

_SAME_MSG_ID = (
    "SELECT t.id FROM memories t WHERE t.agent_id = ?1 AND t.msg_id = s.msg_id AND t.msg_id <> '' AND s.msg_id <> ''"
    f" AND t.project_id = s.project_id AND {seen('memories', 't.id')}"
)
_SAME_CONTENT = (
    "SELECT t.id FROM memories t WHERE t.agent_id = ?1 AND t.content_key = s.content_key"
    f" AND t.project_id = s.project_id AND t.channel = s.channel AND {seen('memories', 't.id')}"
)


def memory_plan(conn: apsw.Connection, source: str, target: str) -> list[tuple[int, int | None]]:
    """Return every memory of ``source`` by id with the row of ``target`` that stands in its place, None where there is
    none.
    """
    found: list[Any] = conn.execute(
        f"SELECT s.id, coalesce(({_SAME_MSG_ID}), ({_SAME_CONTENT})) FROM memories s"
        f" WHERE s.agent_id = ?2 AND {seen('memories', 's.id')} ORDER BY s.id",
        (target, source),
    ).fetchall()
    return found


def episode_plan(conn: apsw.Connection, source: str, target: str) -> list[tuple[int, int | None, int]]:
    """Return every episode of ``source`` by id, the one of ``target`` in its place, and the first of its own kind at
    the source.
    """
    same = (
        "SELECT min(t.id) FROM episodes t INDEXED BY episodes_same"
        " WHERE t.agent_id = {} AND substr(t.summary, 1, 64) = substr(s.summary, 1, 64) AND t.summary = s.summary"
        " AND t.whole_key IS s.whole_key AND t.project_id = s.project_id AND t.channel = s.channel"
        f" AND {seen('episodes', 't.id')}"
    )
    found: list[Any] = conn.execute(
        f"SELECT s.id, ({same.format('?1')}), ({same.format('?2')}) FROM episodes s WHERE s.agent_id = ?2"
        f" AND {seen('episodes', 's.id')} ORDER BY s.id",
        (target, source),
    ).fetchall()
    return found


def profiles_of(conn: apsw.Connection, agent_id: str) -> dict[str, tuple]:
    """Return (content, updated_at, project) of an agent's profiles by their users, the own one under ''."""
    found: list[Any] = conn.execute(
        "SELECT user_id, content, updated_at, project_id FROM profiles WHERE agent_id = ?", (agent_id,)
    ).fetchall()
    return {user: tuple(rest) for user, *rest in found}


def delete_profiles(tx: Transaction, agent_id: str, users: Iterable[str] | None = None) -> int:
    """Remove an agent's profiles, or those of some users, and return how many that were."""
    before = tx.conn.total_changes()
    if users is None:
        tx.execute("DELETE FROM profiles WHERE agent_id = ?", (agent_id,))
    else:
        for user in users:
            tx.execute("DELETE FROM profiles WHERE agent_id = ? AND user_id = ?", (agent_id, user))
    return tx.conn.total_changes() - before


def ids_of(conn: apsw.Connection, table: str, agent_id: str) -> list[int]:
    """Return the ids of an agent's rows in a table with an agent_id."""
    return [
        i
        for (i,) in conn.execute(
            f"SELECT id FROM {table} WHERE agent_id = ? AND {seen(table)} ORDER BY id", (agent_id,)
        )
    ]


# -- associations


def _stamped(tx: Transaction, stamp: str | None) -> tuple[str, str | None]:
    """Return the two columns of an instant: in the form that lists sort by, and as it is written where that differs."""
    normal = normal_created(stamp)
    return (created_text(tx.now), None) if normal is None else (normal, None if normal == stamp else stamp)


def find_entity(conn: apsw.Connection, agent_id: str, project_id: str, channel: str, normalized: str) -> int | None:
    """Return the entity that this name or alias means in exactly this scope."""
    row = conn.execute(
        "SELECT entity_id FROM entity_aliases WHERE agent_id = ? AND normalized = ? AND project_id = ? AND channel = ?"
        f" AND {seen('entities', 'entity_id')}",
        (agent_id, normalized, project_id, channel),
    ).fetchone()
    return None if row is None else row[0]


def put_entity(
    tx: Transaction,
    agent_id: str,
    project_id: str,
    channel: str,
    name: tuple[str, str],
    aliases: list[tuple[str, str]],
    declared_by: str,
    created_at: str | None,
) -> tuple[int, list[str]]:
    """Register an entity unless its name is known in the scope; return its id and the aliases that name another one.

    ``name`` and ``aliases`` are (normalised, written); ``created_at`` is any stamp, kept as it is written.
    """
    entity = find_entity(tx.conn, agent_id, project_id, channel, name[0])
    if entity is None:
        tx.execute(
            "INSERT INTO entities (agent_id, project_id, channel, name, declared_by, created_at, stamp)"
            " VALUES (?,?,?,?,?,?,?)",
            (agent_id, project_id, channel, name[1], declared_by, *_stamped(tx, created_at)),
        )
        entity = tx.conn.last_insert_rowid()
        associations.insert_name(tx, entity, *name, is_name=True)
    taken = []
    for alias in aliases:
        associations.insert_name(tx, entity, *alias)
        if associations.bearer_in_bucket(tx.conn, entity, alias[0]) != entity:
            taken.append(alias[1])
    return entity, taken


def put_mention(tx: Transaction, entity: int, kind: str, record: int, declared_by: str, created_at: str | None) -> None:
    """Register that an entity is mentioned by a record, unless it is known."""
    tx.execute(
        "INSERT OR IGNORE INTO entity_mentions (entity_id, kind, record_id, declared_by, created_at, stamp)"
        " VALUES (?,?,?,?,?,?)",
        (entity, kind, record, declared_by, *_stamped(tx, created_at)),
    )


def put_relation(
    tx: Transaction,
    agent_id: str,
    project_id: str,
    channel: str,
    subject: tuple[str, int],
    predicate: str,
    object_: tuple[str, int],
    anchor_ref: str | None,
    declared_by: str,
    declared_at: str | None,
) -> None:
    """Register a relation, unless it is known."""
    if some(tx.conn, "relations"):
        tx.execute(
            "DELETE FROM relations WHERE id IN hidden_relations AND agent_id = ? AND project_id = ? AND channel = ?"
            " AND subject_kind = ? AND subject_id = ? AND predicate = ? AND object_kind = ? AND object_id = ?",
            (agent_id, project_id, channel, *subject, predicate, *object_),
        )
    tx.execute(
        "INSERT OR IGNORE INTO relations (agent_id, project_id, channel, subject_kind, subject_id, predicate,"
        " object_kind, object_id, anchor_ref, declared_by, declared_at, stamp) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            agent_id,
            project_id,
            channel,
            *subject,
            predicate,
            *object_,
            anchor_ref,
            declared_by,
            *_stamped(tx, declared_at),
        ),
    )
