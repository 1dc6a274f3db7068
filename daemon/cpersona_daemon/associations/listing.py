"""Everything that an agent declared, a page at a time, for a person who wants to see or correct it.

Contract: associations.declare.
"""

from __future__ import annotations

import apsw

from ..model.scope import Scope
from ..storage import associations as table
from ..storage.associations import ENTITY, Entity, Relation
from .entries import Entities, relation_entry


def list_associations(conn: apsw.Connection, scope: Scope, limit: int, after: int, after_relation: int) -> dict:
    """Return entities and relations in the order of their ids, ``limit`` of each, and where the next page starts.

    Entities carry aliases and mentions as in traverse, relations the names of the entities at their ends as
    `subject_name` and `object_name`. `next` holds the params of the next page and is absent on the last one.
    """
    entities, more_entities = table.entities_page(conn, scope, after, limit)
    relations, more_relations = table.relations_page(conn, scope, after_relation, limit)
    entity_count, relation_count = table.total(conn, scope)
    answer = {
        "entities": _entities(conn, scope, entities),
        "relations": _relations(conn, scope, relations),
        "entity_count": entity_count,
        "relation_count": relation_count,
    }
    if more_entities or more_relations:
        answer["next"] = {
            "after": entities[-1].id if entities else after,
            "after_relation": relations[-1].id if relations else after_relation,
        }
    return answer


def _entities(conn: apsw.Connection, scope: Scope, page: list[Entity]) -> list[dict]:
    known = Entities(conn, scope, [entity.id for entity in page])
    return [
        {
            "id": entity.id,
            "name": entity.name,
            "project_id": entity.project_id,
            "channel": entity.channel,
            "aliases": known.aliases(entity.id),
            "declared_by": entity.declared_by,
            "created_at": entity.created_at,
            **known.mentions(entity.id),
        }
        for entity in page
    ]


def _relations(conn: apsw.Connection, scope: Scope, page: list[Relation]) -> list[dict]:
    nodes = (node for relation in page for node in (relation.subject, relation.object))
    known = table.entities(conn, scope, sorted({row_id for kind, row_id in nodes if kind == ENTITY}))
    entries = []
    for relation in page:
        entry = relation_entry(relation)
        for side, (kind, row_id) in (("subject_name", relation.subject), ("object_name", relation.object)):
            if kind == ENTITY and row_id in known:
                entry[side] = known[row_id].name
        entries.append(entry)
    return entries
