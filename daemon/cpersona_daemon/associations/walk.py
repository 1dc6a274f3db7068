"""Walking relations between entities, breadth first and in both directions. A pure function over a neighbour look-up.

Contract: associations.traverse, associations.evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..storage.associations import ENTITY, RELATIONS_PER_STEP, Relation

MAX_REACHED = 1_000  # entities that one walk keeps; what lies behind more of them is left out, and ``cut`` says so


@dataclass(frozen=True, slots=True)
class Reached:
    """An entity that a walk came to: after how many hops, and by which relation (None for a start)."""

    entity_id: int
    hops: int
    relation: Relation | None


@dataclass(slots=True)
class Walk:
    """What a walk found: entities nearest first, and every relation it looked at by id.

    ``beyond``: more lies behind the last hop. ``cut``: more lies within it than one walk looks at.
    """

    reached: list[Reached] = field(default_factory=list)
    relations: dict[int, Relation] = field(default_factory=dict)
    beyond: bool = False
    cut: bool = False

    def look_at(self, step: Iterable[Relation], inside: set[int], seen: set[int]) -> dict[int, Relation]:
        """Note some relations, and return the entities that are not ``seen`` yet with the newest that leads to each.

        A relation leads from an entity that is ``inside`` to one behind it, in either direction.
        """
        found: dict[int, Relation] = {}
        for relation in sorted(step, key=lambda r: r.recency, reverse=True):
            self.relations[relation.id] = relation
            for end, other in ((relation.subject, relation.object), (relation.object, relation.subject)):
                if end[0] == other[0] == ENTITY and end[1] in inside and other[1] not in seen:
                    found.setdefault(other[1], relation)
        return found

    def arrive(self, reached: list[Reached]) -> list[int]:
        """Keep the entities of a hop, so many as there is room for, and return their ids."""
        room = max(0, MAX_REACHED - len(self.reached))
        self.cut |= len(reached) > room
        self.reached += reached[:room]
        return [one.entity_id for one in reached[:room]]


def walk(
    starts: Iterable[int],
    max_hops: int,
    relations_of: Callable[[list[int]], list[Relation]],
    visible: Callable[[set[int]], Iterable[int]],
) -> Walk:
    """Return every entity within ``max_hops`` of the starts.

    They are ordered by hops, then newest relation that reached it, then id.

    ``relations_of(ids)`` gives the entity relations that touch those entities, newest first; ``visible(ids)`` those of
    the entities that may be shown. Of several relations that reach an entity in the same hop the newest counts.
    """
    frontier = sorted(set(starts))
    out = Walk([Reached(entity_id, 0, None) for entity_id in frontier])
    seen = set(frontier)
    for hops in range(1, max_hops + 2):
        if not frontier:
            break
        step = relations_of(frontier)
        found = out.look_at(step, set(frontier), seen)
        allowed = set(visible(set(found))) if found else set()
        # dict order is newest relation first, and one relation reaches one entity, so it is the order asked for
        behind = [Reached(entity_id, hops, relation) for entity_id, relation in found.items() if entity_id in allowed]
        if hops > max_hops:
            out.beyond = bool(behind)
            break
        out.cut |= len(step) >= RELATIONS_PER_STEP
        frontier = out.arrive(behind)
        seen.update(frontier)
    return out
