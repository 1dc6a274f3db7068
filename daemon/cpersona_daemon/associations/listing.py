"""Everything that an agent declared, a page at a time, for a person who wants to see or correct it.

Contract: associations.declare.
"""

from __future__ import annotations

from typing import Any

import apsw

from ..model.kinds import ref_of
from ..model.scope import Scope
from ..storage import associations as table
from .traverse import MENTIONS_SHOWN, relation_entry


def list_associations(conn: apsw.Connection, scope: Scope, limit: int, after: int, after_relation: int) -> dict:
    """Return entities and relations in the order of their ids, ``limit`` of each, and where the next page starts.

    Entities carry aliases and mentions as in traverse, relations the names of the entities at their ends as
    `subject_name` and `object_name`. `next` holds the params of the next page and is absent on the last one.
    """
    entities, more_entities = table.entities_page(conn, scope, after, limit)
    relations, more_relations = table.relations_page(conn, scope, after_relation, limit)
    ids = [entity.id for entity in entities]
    ends = {
        node[1] for relation in relations for node in (relation.subject, relation.object) if node[0] == table.ENTITY
    }
    names, end_names = table.names_of(conn, ids), table.entities(conn, scope, sorted(ends))
    mentions = table.mentions_of(conn, scope, ids, MENTIONS_SHOWN)
    shown = []
    for entity in entities:
        entry: dict[str, Any] = {
            "id": entity.id,
            "name": entity.name,
            "project_id": entity.project_id,
            "channel": entity.channel,
            "aliases": [name.written for name in names.get(entity.id, ()) if not name.is_name],
            "declared_by": entity.declared_by,
            "created_at": entity.created_at,
        }
        rids, total = mentions.get(entity.id, ([], 0))
        entry["mentions"] = [ref_of(rid) for rid in rids]
        if total > len(rids):
            entry["mentions_omitted"] = total - len(rids)
        shown.append(entry)
    listed = []
    for relation in relations:
        entry = relation_entry(relation)
        for side, node in (("subject_name", relation.subject), ("object_name", relation.object)):
            if node[0] == table.ENTITY and node[1] in end_names:
                entry[side] = end_names[node[1]].name
        listed.append(entry)
    entity_count, relation_count = table.total(conn, scope)
    answer = {"entities": shown, "relations": listed, "entity_count": entity_count, "relation_count": relation_count}
    if more_entities or more_relations:
        answer["next"] = {
            "after": ids[-1] if ids else after,
            "after_relation": relations[-1].id if relations else after_relation,
        }
    return answer
