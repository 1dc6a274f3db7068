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


def walk(
    starts: Iterable[int],
    max_hops: int,
    relations_of: Callable[[list[int]], list[Relation]],
    visible: Callable[[set[int]], Iterable[int]],
) -> Walk:
    """Return every entity within ``max_hops`` of the starts, ordered by hops, then newest relation that reached it, then id.

    ``relations_of(ids)`` gives the entity relations that touch those entities, newest first; ``visible(ids)`` those of
    the entities that may be shown. Of several relations that reach an entity in the same hop the newest counts.
    """
    frontier = sorted(set(starts))
    out = Walk([Reached(entity_id, 0, None) for entity_id in frontier])
    seen = set(frontier)
    for hops in range(1, max_hops + 2):
        if not frontier:
            break
        inside, found, step = set(frontier), {}, relations_of(frontier)
        out.cut |= hops <= max_hops and len(step) >= RELATIONS_PER_STEP
        for relation in sorted(step, key=lambda r: r.recency, reverse=True):
            out.relations[relation.id] = relation
            for end, other in ((relation.subject, relation.object), (relation.object, relation.subject)):
                if end[0] == other[0] == ENTITY and end[1] in inside and other[1] not in seen:
                    found.setdefault(other[1], relation)
        allowed = set(visible(set(found))) if found else set()
        # dict order is newest relation first, and one relation reaches one entity, so it is the order asked for
        next_ones = [(entity_id, relation) for entity_id, relation in found.items() if entity_id in allowed]
        if hops > max_hops:
            out.beyond = bool(next_ones)
            break
        room = max(0, MAX_REACHED - len(out.reached))
        out.cut |= len(next_ones) > room
        next_ones = next_ones[:room]
        out.reached += [Reached(entity_id, hops, relation) for entity_id, relation in next_ones]
        frontier = [entity_id for entity_id, _ in next_ones]
        seen.update(frontier)
    return out
