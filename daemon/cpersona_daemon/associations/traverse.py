"""The declared neighbourhood of an entity.

Contract: associations.traverse.
"""

from __future__ import annotations

from typing import Any

import apsw

from ..model.kinds import ref_of
from ..model.scope import Scope
from ..storage import associations as table
from ..storage.associations import Relation
from ..text.folding import as_name
from .walk import Walk, walk

MENTIONS_SHOWN = 20


def walk_from(conn: apsw.Connection, scope: Scope, starts: list[int], max_hops: int) -> Walk:
    """Walk the relations that are visible in a scope from some entities."""
    return walk(
        starts,
        max_hops,
        relations_of=lambda ids: table.entity_relations(conn, scope, ids),
        visible=lambda ids: table.entities(conn, scope, sorted(ids)),
    )


def traverse(conn: apsw.Connection, scope: Scope, entity: str, max_hops: int, limit: int) -> dict:
    """Return traverse's answer: at most ``limit`` entities around the one that a name or alias means, and the relations among them.

    Each entity shows at most MENTIONS_SHOWN of the visible records that mention it. An unknown name is an empty
    neighbourhood with `reason: no_such_entity`. `entities_omitted` counts those that the walk reached; around a hub
    there may be more, since a walk looks at a bounded number of relations.
    """
    answer: dict[str, Any] = {"entity": entity, "max_hops": max_hops, "limit": limit, "entities": [], "relations": []}
    start = table.entity_named(conn, scope, as_name(entity))
    if start is None:
        return {**answer, "reason": "no_such_entity"}
    found = walk_from(conn, scope, [start], max_hops)
    shown = found.reached[:limit]
    ids = [reached.entity_id for reached in shown]
    known, names = table.entities(conn, scope, ids), table.names_of(conn, ids)
    mentions = table.mentions_of(conn, scope, ids, MENTIONS_SHOWN)
    for reached in shown:
        entry: dict[str, Any] = {"id": reached.entity_id, "name": known[reached.entity_id].name, "hops": reached.hops}
        aliases = [name.written for name in names.get(reached.entity_id, ()) if not name.is_name]
        if aliases:
            entry["aliases"] = aliases
        rids, total = mentions.get(reached.entity_id, ([], 0))
        if rids:
            entry["mentions"] = [ref_of(rid) for rid in rids]
        if total > len(rids):
            entry["mentions_omitted"] = total - len(rids)
        answer["entities"].append(entry)
    inside = set(ids)
    among = [r for r in found.relations.values() if r.subject[1] in inside and r.object[1] in inside]
    answer["relations"] = [relation_entry(r) for r in sorted(among, key=lambda r: r.recency, reverse=True)]
    omitted = []
    if found.beyond:
        omitted.append("max_hops")
    if len(found.reached) > limit:
        answer["entities_omitted"] = len(found.reached) - limit
    if len(found.reached) > limit or found.cut:
        omitted.append("limit")
    if omitted:
        answer["bounds"] = {"omitted": omitted}
    return answer


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


def _end(node: table.Node) -> int | str:
    return node[1] if node[0] == table.ENTITY else ref_of(node)
