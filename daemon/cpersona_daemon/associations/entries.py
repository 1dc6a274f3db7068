"""Entities and relations as answers show them.

Contract: associations.traverse, associations.declare.
"""

from __future__ import annotations

from typing import Any

import apsw

from ..model.kinds import ref_of
from ..model.scope import Scope
from ..storage import associations as table
from ..storage.associations import ENTITY, Node, Relation

MENTIONS_SHOWN = 20


class Entities:
    """What some entities are called and who mentions them, read at once."""

    def __init__(self, conn: apsw.Connection, scope: Scope, ids: list[int]) -> None:
        self._names = table.names_of(conn, ids)
        self._mentions = table.mentions_of(conn, scope, ids, MENTIONS_SHOWN)

    def aliases(self, entity_id: int) -> list[str]:
        return [name.written for name in self._names.get(entity_id, ()) if not name.is_name]

    def mentions(self, entity_id: int) -> dict[str, Any]:
        """Return `{mentions, mentions_omitted?}`: visible records that mention an entity, at most MENTIONS_SHOWN."""
        rids, total = self._mentions.get(entity_id, ([], 0))
        shown: dict[str, Any] = {"mentions": [ref_of(rid) for rid in rids]}
        if total > len(rids):
            shown["mentions_omitted"] = total - len(rids)
        return shown


def relation_entry(relation: Relation) -> dict:
    """Return a relation as answers show it; an entity stands as its id, a record as its ref."""
    entry = {
        "id": relation.id,
        "subject": _end(relation.subject),
        "predicate": relation.predicate,
        "object": _end(relation.object),
        "declared_by": relation.declared_by,
        "declared_at": relation.declared_at,
    }
    if relation.anchor_ref:
        entry["anchor_ref"] = relation.anchor_ref
    return entry


def _end(node: Node) -> int | str | None:
    return node[1] if node[0] == ENTITY else ref_of(node)
