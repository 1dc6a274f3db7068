"""Every statement on entities, their names, mentions and relations.

Contract: associations.declare, associations.names, scope.axes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import apsw

from ..model.instants import created_text
from ..model.kinds import Kind, Rid
from ..model.scope import Scope
from ..text.names import Name
from . import hidden, tables
from .damaged import texts
from .hidden import seen
from .scope import axes_sql, memory_sql
from .transaction import Transaction

ENTITY = "entity"
Node = tuple[str, int]  # (ENTITY, id), or the Rid of a record

# What one step of a walk reads at most, the newest relations first: a hub of any size costs no more than this.
RELATIONS_PER_STEP = 2_000


@dataclass(frozen=True, slots=True)
class Entity:
    """A declared entity as it is read back."""

    id: int
    project_id: str
    channel: str
    name: str
    declared_by: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Relation:
    """A declared relation as it is read back; ``anchor_ref`` is None where none was given."""

    id: int
    subject: Node
    predicate: str
    object: Node
    anchor_ref: str | None
    declared_by: str
    declared_at: str

    @property
    def recency(self) -> tuple[str, int]:
        """The larger, the newer declared."""
        return self.declared_at, self.id


_ENTITY = "id, project_id, channel, name, declared_by, created_at"
_RELATION = "id, subject_kind, subject_id, predicate, object_kind, object_id, anchor_ref, declared_by, declared_at"
# The same of a joined table; json_each has columns of these names too, so each is named.
_JOINED_RELATION = ", ".join(f"r.{column} AS {column}" for column in _RELATION.split(", "))


def _relation(row: tuple) -> Relation:
    return Relation(row[0], (row[1], row[2]), row[3], (row[4], row[5]), row[6] or None, row[7], row[8])


# -- writing


def resolve(conn: apsw.Connection, agent_id: str, project_id: str, channel: str, normalized: str) -> int | None:
    """Return the entity that a name means where it is declared: (P,C), (P,''), ('',C), ('','') in this order."""
    row = conn.execute(
        "SELECT entity_id FROM entity_aliases WHERE agent_id = ? AND normalized = ? AND project_id IN (?, '')"
        f" AND channel IN (?, '') AND {seen('entities', 'entity_id')}"
        " ORDER BY project_id = ? DESC, channel = ? DESC LIMIT 1",
        (agent_id, normalized, project_id, channel, project_id, channel),
    ).fetchone()
    return None if row is None else row[0]


def insert_entity(
    tx: Transaction, agent_id: str, project_id: str, channel: str, name: str, normalized: str, declared_by: str
) -> int:
    """Register an entity under its own name and return its id."""
    tx.execute(
        "INSERT INTO entities (agent_id, project_id, channel, name, declared_by, created_at) VALUES (?,?,?,?,?,?)",
        (agent_id, project_id, channel, name, declared_by, created_text(tx.now)),
    )
    entity_id = tx.conn.last_insert_rowid()
    insert_name(tx, entity_id, normalized, name, is_name=True)
    return entity_id


def insert_name(tx: Transaction, entity_id: int, normalized: str, written: str, is_name: bool = False) -> None:
    """Give an entity a name in the entity's own bucket; a name that it bears already stays as it was first written."""
    if hidden.some(tx.conn, "entities"):
        bearer = bearer_in_bucket(tx.conn, entity_id, normalized)
        if bearer is not None and bearer != entity_id and hidden.holds(tx.conn, "entities", bearer):
            delete_entity(tx, bearer)
    tx.execute(
        "INSERT OR IGNORE INTO entity_aliases (entity_id, agent_id, project_id, channel, normalized, alias, is_name)"
        " SELECT id, agent_id, project_id, channel, ?, ?, ? FROM entities WHERE id = ?",
        (normalized, written, int(is_name), entity_id),
    )


def bearer_in_bucket(conn: apsw.Connection, entity_id: int, normalized: str) -> int | None:
    """Return the entity that bears a name in the bucket where this entity lives."""
    row = conn.execute(
        "SELECT a.entity_id FROM entities e JOIN entity_aliases a ON a.agent_id = e.agent_id AND a.normalized = ?"
        " AND a.project_id = e.project_id AND a.channel = e.channel WHERE e.id = ?",
        (normalized, entity_id),
    ).fetchone()
    return None if row is None else row[0]


def owns_entity(conn: apsw.Connection, agent_id: str, entity_id: int) -> bool:
    """Tell whether the agent has an entity with this id."""
    return tables.owns(conn, "entities", agent_id, entity_id)


def insert_mention(tx: Transaction, entity_id: int, rid: Rid, declared_by: str) -> None:
    """Note that a record mentions an entity; a mention that stands already stays as it was."""
    tx.execute(
        "INSERT OR IGNORE INTO entity_mentions (entity_id, kind, record_id, declared_by, created_at)"
        " VALUES (?,?,?,?,?)",
        (entity_id, *rid, declared_by, created_text(tx.now)),
    )


def count_mentions(conn: apsw.Connection, entity_ids: Iterable[int], rid: Rid) -> int:
    """Count which of these entities a record mentions."""
    n: Any
    ((n,),) = conn.execute(
        "SELECT count(*) FROM entity_mentions WHERE kind = ? AND record_id = ? AND entity_id IN (SELECT value"
        " FROM json_each(?))",
        (*rid, json.dumps(list(entity_ids))),
    ).fetchall()
    return n


def put_relation(
    tx: Transaction,
    agent_id: str,
    project_id: str,
    channel: str,
    subject: Node,
    predicate: str,
    obj: Node,
    anchor_ref: str | None,
    declared_by: str,
) -> int:
    """Register a relation and return its id; one that stands already in this bucket answers its own id."""
    row = tx.execute(
        "SELECT id FROM relations WHERE agent_id = ? AND subject_kind = ? AND subject_id = ? AND predicate = ?"
        " AND object_kind = ? AND object_id = ? AND project_id = ? AND channel = ?",
        (agent_id, *subject, predicate, *obj, project_id, channel),
    ).fetchone()
    if row is not None and not hidden.holds(tx.conn, "relations", row[0]):
        return row[0]
    if row is not None:
        tx.execute("DELETE FROM relations WHERE id = ?", row)
    tx.execute(
        "INSERT INTO relations (agent_id, project_id, channel, subject_kind, subject_id, predicate, object_kind,"
        " object_id, anchor_ref, declared_by, declared_at) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        (agent_id, project_id, channel, *subject, predicate, *obj, anchor_ref, declared_by, created_text(tx.now)),
    )
    return tx.conn.last_insert_rowid()


def _deleted(tx: Transaction, sql: str, params: tuple) -> bool:
    return tx.execute(sql + " RETURNING 1", params).fetchall() != []


def delete_relation(tx: Transaction, agent_id: str, relation_id: int) -> bool:
    """Remove one of the agent's relations; False when there is no such relation."""
    return _deleted(tx, "DELETE FROM relations WHERE id = ? AND agent_id = ?", (relation_id, agent_id))


def delete_mention(tx: Transaction, entity_id: int, rid: Rid) -> bool:
    """Remove a mention; False when there is no such mention."""
    return _deleted(
        tx, "DELETE FROM entity_mentions WHERE entity_id = ? AND kind = ? AND record_id = ?", (entity_id, *rid)
    )


def delete_alias(tx: Transaction, entity_id: int, normalized: str) -> bool:
    """Take an alias from an entity; False when it has none of that name. Its own name stays."""
    return _deleted(
        tx, "DELETE FROM entity_aliases WHERE entity_id = ? AND normalized = ? AND is_name = 0", (entity_id, normalized)
    )


def delete_entity(tx: Transaction, entity_id: int) -> None:
    """Remove an entity with its names, mentions and relations."""
    tx.execute("DELETE FROM relations WHERE subject_kind = ? AND subject_id = ?", (ENTITY, entity_id))
    tx.execute("DELETE FROM relations WHERE object_kind = ? AND object_id = ?", (ENTITY, entity_id))
    tx.execute("DELETE FROM entities WHERE id = ?", (entity_id,))


def forget_record(tx: Transaction, kind: Kind, record_id: int) -> None:
    """Remove the mentions of a record and every relation that names it."""
    tx.execute("DELETE FROM entity_mentions WHERE kind = ? AND record_id = ?", (kind, record_id))
    tx.execute("DELETE FROM relations WHERE subject_kind = ? AND subject_id = ?", (kind, record_id))
    tx.execute("DELETE FROM relations WHERE object_kind = ? AND object_id = ?", (kind, record_id))


# -- reading


def names_within(conn: apsw.Connection, scope: Scope, text: str) -> list[Name]:
    """Return the names visible in a scope that occur in a normalised text, each where it is nearest to the scope."""
    return _nearest(conn, scope, "instr(?, normalized) > 0", (text,))


def entity_named(conn: apsw.Connection, scope: Scope, normalized: str) -> int | None:
    """Return the entity that a name means in a scope, or None; the oldest one where a wide scope holds several."""
    names = _nearest(conn, scope, "normalized = ?", (normalized,))
    return min((name.entity_id for name in names), default=None)


def _nearest(conn: apsw.Connection, scope: Scope, condition: str, params: tuple) -> list[Name]:
    """Return the matching names, of one spelling only those in the bucket nearest to the axes that the scope gives."""
    axes, values = axes_sql(scope)
    rows = texts(
        conn,
        f"SELECT entity_id, normalized, alias, is_name, project_id, channel FROM entity_aliases WHERE {axes}"
        f" AND {condition} AND {seen('entities', 'entity_id')} ORDER BY entity_id, normalized",
        (*values, *params),
    )

    def distance(row: tuple) -> tuple[bool, bool]:
        return scope.project_id is not None and row[4] != scope.project_id, bool(scope.channel) and row[
            5
        ] != scope.channel

    best: dict[str, tuple[bool, bool]] = {}
    for row in rows:
        best[row[1]] = min(best.get(row[1], (True, True)), distance(row))
    return [Name(row[0], row[1], row[2], bool(row[3])) for row in rows if distance(row) == best[row[1]]]


def names_of(conn: apsw.Connection, entity_ids: Iterable[int]) -> dict[int, list[Name]]:
    """Return every name of these entities by entity, the own name first, then by spelling."""
    out: dict[int, list[Name]] = {}
    rows = texts(
        conn,
        "SELECT entity_id, normalized, alias, is_name FROM entity_aliases"
        " WHERE entity_id IN (SELECT value FROM json_each(?)) ORDER BY entity_id, is_name DESC, normalized",
        (json.dumps(list(entity_ids)),),
    )
    for entity_id, normalized, written, is_name in rows:
        out.setdefault(entity_id, []).append(Name(entity_id, normalized, written, bool(is_name)))
    return out


def entities(conn: apsw.Connection, scope: Scope, entity_ids: Iterable[int]) -> dict[int, Entity]:
    """Return those of the entities that are visible in a scope, by id."""
    axes, values = axes_sql(scope)
    rows = texts(
        conn,
        f"SELECT {_ENTITY} FROM entities NOT INDEXED WHERE id IN (SELECT value FROM json_each(?)) AND {axes}"
        f" AND {seen('entities')}",
        (json.dumps(list(entity_ids)), *values),
    )
    return {row[0]: Entity(*row) for row in rows}


def _relation_axes(scope: Scope) -> tuple[str, list]:
    axes, values = axes_sql(scope, "r.")
    return f"{axes} AND {seen('relations', 'r.id')}", values


def entity_relations(conn: apsw.Connection, scope: Scope, entity_ids: Iterable[int]) -> list[Relation]:
    """Return the visible relations between entities that start or end at one of these, newest declared first."""
    axes, values = _relation_axes(scope)
    ids = json.dumps(list(entity_ids))
    rows = texts(
        conn,
        f"SELECT {_JOINED_RELATION} FROM json_each(?) j"
        " CROSS JOIN relations r ON r.subject_kind = 'entity' AND r.subject_id = j.value"
        f" WHERE r.object_kind = 'entity' AND {axes}"
        f" UNION SELECT {_JOINED_RELATION} FROM json_each(?) j"
        " CROSS JOIN relations r ON r.object_kind = 'entity' AND r.object_id = j.value"
        f" WHERE r.subject_kind = 'entity' AND {axes} ORDER BY declared_at DESC, id DESC LIMIT ?",
        (ids, *values, ids, *values, RELATIONS_PER_STEP),
    )
    return [_relation(row) for row in rows]


def record_relations(conn: apsw.Connection, scope: Scope, rids: Iterable[Rid]) -> list[Relation]:
    """Return the visible relations whose both ends are among these records, newest declared first."""
    axes, values = _relation_axes(scope)
    wanted = set(rids)
    rows = texts(
        conn,
        f"SELECT {_JOINED_RELATION} FROM json_each(?) j CROSS JOIN relations r"
        " ON r.subject_kind = json_extract(j.value, '$[0]') AND r.subject_id = json_extract(j.value, '$[1]')"
        f" WHERE {axes} ORDER BY r.declared_at DESC, r.id DESC",
        (json.dumps(sorted(wanted)), *values),
    )
    return [relation for relation in map(_relation, rows) if relation.object in wanted]


def mentioned_by(conn: apsw.Connection, scope: Scope, rids: Iterable[Rid]) -> dict[Rid, list[int]]:
    """Return the visible entities that each of these records mentions, by record, ids ascending."""
    axes, values = axes_sql(scope, "e.")
    rows = conn.execute(
        "SELECT x.kind, x.record_id, e.id FROM json_each(?) j CROSS JOIN entity_mentions x"
        " ON x.kind = json_extract(j.value, '$[0]') AND x.record_id = json_extract(j.value, '$[1]')"
        f" CROSS JOIN entities e ON e.id = x.entity_id WHERE {axes} AND {seen('entities', 'e.id')} ORDER BY e.id",
        (json.dumps(sorted(set(rids))), *values),
    )
    out: dict[Rid, list[int]] = {}
    for kind, record_id, entity_id in rows:
        out.setdefault((kind, record_id), []).append(entity_id)
    return out


def _visible_mentions(scope: Scope, ids: str) -> tuple[str, list]:
    """Return SQL for (place, kind, record_id): the visible records that mention the entities of a JSON list, by their
    place in it.
    """
    condition, values = memory_sql(scope, "m.")
    sql = (
        "SELECT j.key AS place, x.kind AS kind, x.record_id AS record_id FROM json_each(?) j"
        " CROSS JOIN entity_mentions x ON x.entity_id = j.value AND x.kind = 'mem'"
        f" CROSS JOIN memories m ON m.id = x.record_id WHERE {condition}"
    )
    params = [ids, *values]
    if scope.sees_episodes:
        condition, values = axes_sql(scope, "p.")
        sql += (
            " UNION ALL SELECT j.key, x.kind, x.record_id FROM json_each(?) j"
            " CROSS JOIN entity_mentions x ON x.entity_id = j.value AND x.kind = 'ep'"
            f" CROSS JOIN episodes p ON p.id = x.record_id WHERE {condition} AND {seen('episodes', 'p.id')}"
        )
        params += [ids, *values]
    return sql, params


def mentions_of(
    conn: apsw.Connection, scope: Scope, entity_ids: list[int], each: int
) -> dict[int, tuple[list[Rid], int]]:
    """Return, by entity, its first ``each`` visible mentions (memories, then episodes, ids ascending) and how many
    there are.
    """
    inner, params = _visible_mentions(scope, json.dumps(entity_ids))
    rows = conn.execute(
        "SELECT place, kind, record_id, total"
        " FROM (SELECT place, kind, record_id, count(*) OVER (PARTITION BY place) AS total,"
        f" row_number() OVER (PARTITION BY place ORDER BY kind DESC, record_id) AS n FROM ({inner})) WHERE n <= ?"
        " ORDER BY place, n",
        (*params, each),
    )
    out: dict[int, tuple[list[Rid], int]] = {}
    for place, kind, record_id, total in rows:
        out.setdefault(entity_ids[place], ([], total))[0].append((kind, record_id))
    return out


def records_mentioning(
    conn: apsw.Connection, scope: Scope, entity_ids: list[int], taken: Iterable[Rid], limit: int
) -> list[tuple[int, Rid]]:
    """Return (entity, record) for the visible records that mention these entities and are not taken, each record once.

    In the order of the entities, then lowest id, a memory before an episode of the same id.
    """
    inner, params = _visible_mentions(scope, json.dumps(entity_ids))
    rows = conn.execute(
        f"SELECT min(place) AS place, kind, record_id FROM ({inner})"
        " WHERE json_array(kind, record_id) NOT IN (SELECT value FROM json_each(?)) GROUP BY kind, record_id"
        " ORDER BY place, record_id, kind DESC LIMIT ?",
        (*params, json.dumps([json.dumps([kind, i], separators=(",", ":")) for kind, i in sorted(taken)]), limit),
    )
    return [(entity_ids[place], (kind, record_id)) for place, kind, record_id in rows]


# -- listing


def entities_page(conn: apsw.Connection, scope: Scope, after: int, limit: int) -> tuple[list[Entity], bool]:
    """Return visible entities with an id above ``after``, and whether more follow."""
    axes, values = axes_sql(scope)
    rows = texts(
        conn,
        f"SELECT {_ENTITY} FROM entities WHERE id > ? AND {axes} AND {seen('entities')} ORDER BY id LIMIT ?",
        (after, *values, limit + 1),
    )
    return [Entity(*row) for row in rows[:limit]], len(rows) > limit


def relations_page(conn: apsw.Connection, scope: Scope, after: int, limit: int) -> tuple[list[Relation], bool]:
    """Return visible relations with an id above ``after``, and whether more follow."""
    axes, values = axes_sql(scope)
    rows = texts(
        conn,
        f"SELECT {_RELATION} FROM relations WHERE id > ? AND {axes} AND {seen('relations')} ORDER BY id LIMIT ?",
        (after, *values, limit + 1),
    )
    return [_relation(row) for row in rows[:limit]], len(rows) > limit


def total(conn: apsw.Connection, scope: Scope) -> tuple[int, int]:
    """Count the visible entities and relations."""
    axes, values = axes_sql(scope)
    found: list[Any] = [
        conn.execute(f"SELECT count(*) FROM {name} WHERE {axes} AND {seen(name)}", tuple(values)).fetchone()
        for name in ("entities", "relations")
    ]
    return found[0][0], found[1][0]
