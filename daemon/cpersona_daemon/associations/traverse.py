"""The declared neighbourhood of an entity.

Contract: associations.traverse.
"""

from __future__ import annotations

from typing import Any

import apsw

from ..model.scope import Scope
from ..storage import associations as table
from ..text.folding import as_name
from .entries import Entities, relation_entry
from .walk import Reached, Walk, walk


def walk_from(conn: apsw.Connection, scope: Scope, starts: list[int], max_hops: int) -> Walk:
    """Walk the relations that are visible in a scope from some entities."""
    return walk(
        starts,
        max_hops,
        relations_of=lambda ids: table.entity_relations(conn, scope, ids),
        visible=lambda ids: table.entities(conn, scope, sorted(ids)),
    )


def traverse(conn: apsw.Connection, scope: Scope, entity: str, max_hops: int, limit: int) -> dict:
    """Return traverse's answer: at most ``limit`` entities around the one that a name or alias means, and the relations
    among them.

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
    answer["entities"] = _neighbours(conn, scope, shown)
    answer["relations"] = _relations_among(found, shown)
    left_out = len(found.reached) - len(shown)
    if left_out:
        answer["entities_omitted"] = left_out
    bounds = (("max_hops", found.beyond), ("limit", left_out > 0 or found.cut))
    if omitted := [name for name, more in bounds if more]:
        answer["bounds"] = {"omitted": omitted}
    return answer


def _neighbours(conn: apsw.Connection, scope: Scope, shown: list[Reached]) -> list[dict]:
    ids = [reached.entity_id for reached in shown]
    known, entities = table.entities(conn, scope, ids), Entities(conn, scope, ids)
    entries = []
    for reached in shown:
        entry: dict[str, Any] = {"id": reached.entity_id, "name": known[reached.entity_id].name, "hops": reached.hops}
        mentions = entities.mentions(reached.entity_id)
        if aliases := entities.aliases(reached.entity_id):
            entry["aliases"] = aliases
        if mentions["mentions"]:
            entry |= mentions
        entries.append(entry)
    return entries


def _relations_among(found: Walk, shown: list[Reached]) -> list[dict]:
    """Return the relations of which both ends are shown, newest declared first."""
    inside = {reached.entity_id for reached in shown}
    among = [r for r in found.relations.values() if r.subject[1] in inside and r.object[1] in inside]
    return [relation_entry(r) for r in sorted(among, key=lambda r: r.recency, reverse=True)]
