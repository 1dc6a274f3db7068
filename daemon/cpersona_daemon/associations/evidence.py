"""The relation walk: records that mention an entity reached from an item's candidates join that item as evidence.

Contract: associations.evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from ..model.kinds import Rid
from ..model.scope import Scope
from ..storage import associations as table
from .bundles import RELATION, Bundle
from .traverse import walk_from
from .walk import Walk


@dataclass(frozen=True, slots=True)
class Evidence:
    """A record that the walk found: the predicate of the last relation on the way, and how many hops that way is."""

    rid: Rid
    why: str
    hops: int


@dataclass(slots=True)
class Found:
    """Evidence for each item in order, and which bound left more out: `max_hops`, `max_evidence`, `relations` (of a hub)."""

    items: list[list[Evidence]]
    omitted: set[str]


def gather(
    conn: apsw.Connection, scope: Scope, bundles: list[Bundle], candidates: list[Rid], max_hops: int, max_evidence: int
) -> Found:
    """Walk from each item in turn and return its evidence: fewest hops, then newest relation, then lowest id.

    A candidate is never evidence, and a record is evidence once in a response; so what an item gets depends on
    the items before it and on nothing after it.
    """
    found = Found([[] for _ in bundles], set())
    if max_hops == 0:
        return found
    taken, left = set(candidates), max_evidence
    walks: dict[frozenset[int], Walk] = {}
    mentioned = table.mentioned_by(conn, scope, [record.rid for bundle in bundles for record in bundle.records])
    for item, bundle in zip(found.items, bundles, strict=True):
        starts = frozenset(entity for record in bundle.records for entity in mentioned.get(record.rid, ()))
        if not starts:
            continue
        walk = walks.get(starts) or walks.setdefault(starts, walk_from(conn, scope, sorted(starts), max_hops))
        found.omitted |= {name for name, left_out in (("max_hops", walk.beyond), ("relations", walk.cut)) if left_out}
        reached = {r.entity_id: r for r in walk.reached if r.relation is not None}
        if not reached:
            continue
        records = table.records_mentioning(conn, scope, list(reached), taken, left + 1)
        if len(records) > left:
            found.omitted.add("max_evidence")
        for entity_id, rid in records[:left]:
            item.append(Evidence(rid, RELATION + reached[entity_id].relation.predicate, reached[entity_id].hops))
            taken.add(rid)
        left -= len(item)
    return found
