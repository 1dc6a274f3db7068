"""The relation walk: records that mention an entity reached from an item's candidates join that item as evidence.

Contract: associations.evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
class Gathered:
    """Evidence for each item in order, and which bound left more out.

    The bounds are `max_hops`, `max_evidence`, `relations` (of a hub).
    """

    items: list[list[Evidence]]
    omitted: set[str] = field(default_factory=set)


def gather(
    conn: apsw.Connection, scope: Scope, bundles: list[Bundle], candidates: list[Rid], max_hops: int, max_evidence: int
) -> Gathered:
    """Walk from each item in turn and return its evidence: fewest hops, then newest relation, then lowest id.

    A candidate is never evidence, and a record is evidence once in a response; so what an item gets depends on
    the items before it and on nothing after it.
    """
    if max_hops == 0:
        return Gathered([[] for _ in bundles])
    mentioned = table.mentioned_by(conn, scope, [record.rid for bundle in bundles for record in bundle.records])
    search = _Search(conn, scope, candidates, max_hops, max_evidence)
    for bundle in bundles:
        starts = {entity for record in bundle.records for entity in mentioned.get(record.rid, ())}
        search.walk(frozenset(starts))
    return search.gathered


class _Search:
    """Evidence looked for item by item: what is taken already, and how much may follow."""

    def __init__(
        self, conn: apsw.Connection, scope: Scope, candidates: list[Rid], max_hops: int, max_evidence: int
    ) -> None:
        self._conn, self._scope, self._max_hops = conn, scope, max_hops
        self._taken, self._left = set(candidates), max_evidence
        self._walks: dict[frozenset[int], Walk] = {}
        self.gathered = Gathered([])

    def walk(self, starts: frozenset[int]) -> None:
        """Add the evidence of the next item, whose candidates mention these entities."""
        found = self._records_behind(starts) if starts else []
        self._taken.update(evidence.rid for evidence in found)
        self._left -= len(found)
        self.gathered.items.append(found)

    def _records_behind(self, starts: frozenset[int]) -> list[Evidence]:
        walk = self._walks.get(starts)
        if walk is None:
            walk = self._walks[starts] = walk_from(self._conn, self._scope, sorted(starts), self._max_hops)
        bounds = (("max_hops", walk.beyond), ("relations", walk.cut))
        self.gathered.omitted.update(name for name, left_out in bounds if left_out)
        ways = {one.entity_id: (one.relation, one.hops) for one in walk.reached if one.relation is not None}
        if not ways:
            return []
        rows = table.records_mentioning(self._conn, self._scope, list(ways), self._taken, self._left + 1)
        if len(rows) > self._left:
            self.gathered.omitted.add("max_evidence")
        return [
            Evidence(rid, RELATION + relation.predicate, hops)
            for entity_id, rid in rows[: self._left]
            for relation, hops in (ways[entity_id],)
        ]
