"""Linking a row that came back as it was linked: its mentions and relations, as far as what they name is there.

Contract: past.kept, associations.names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from ..model.kinds import Kind
from . import tables
from .associations import ENTITY
from .hidden import seen
from .transaction import Transaction


def relink(tx: Transaction, kind: Kind, row_id: int, agent_id: str, links: Mapping[str, Sequence[Any]]) -> int:
    """Declare the mentions and relations of a row again, as ``past`` keeps them; return how many name what is gone."""
    gone = 0
    for node, declared_by, created_at, stamp in links["mentions"]:
        entity = _there(tx.conn, agent_id, node)
        if entity is None:
            gone += 1
            continue
        tx.execute(
            "INSERT OR IGNORE INTO entity_mentions (entity_id, kind, record_id, declared_by, created_at, stamp)"
            " VALUES (?,?,?,?,?,?)",
            (entity, kind, row_id, declared_by, created_at, stamp),
        )
    for subject, predicate, object_, *rest in links["relations"]:
        ends = [_there(tx.conn, agent_id, node) for node in (subject, object_)]
        if None in ends:
            gone += 1
            continue
        tx.execute(
            "INSERT OR IGNORE INTO relations (agent_id, subject_kind, subject_id, predicate, object_kind, object_id,"
            " project_id, channel, anchor_ref, declared_by, declared_at, stamp) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
            (agent_id, subject[0], ends[0], predicate, object_[0], ends[1], *rest),
        )
    return gone


def _there(conn: apsw.Connection, agent_id: str, node: Sequence[Any]) -> int | None:
    """Return the id of what a kept end names: the same row, else the entity that bears the name now, None for none."""
    kind, node_id, *named = node
    if tables.owns(conn, "entities" if kind == ENTITY else Kind(kind).table, agent_id, node_id):
        return node_id
    if kind != ENTITY or not named[0]:
        return None
    row = conn.execute(
        "SELECT entity_id FROM entity_aliases WHERE agent_id = ? AND normalized = ? AND project_id = ? AND channel = ?"
        f" AND {seen('entities', 'entity_id')}",
        (agent_id, *named[0]),
    ).fetchone()
    return None if row is None else row[0]
