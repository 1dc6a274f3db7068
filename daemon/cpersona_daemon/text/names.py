"""Names of entities, and finding them in a question. Pure functions.

Contract: associations.names, associations.alias.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .folding import as_name

MAX_NAME_LENGTH = 256
MAX_OTHER_NAMES = 64  # a question that names everything still asks the index for a bounded number of words


@dataclass(frozen=True, slots=True)
class Name:
    """One name or alias of an entity. ``written`` is the declared form, ``is_name`` tells the name from its aliases."""

    entity_id: int
    normalized: str
    written: str
    is_name: bool


def find_names(query: str, names: Iterable[Name]) -> list[Name]:
    """Return the names that occur in a question, in the order they stand there.

    Longest first, no two overlapping; one spelling that several entities bear counts for all of them.
    """
    text = as_name(query)
    bearers: dict[str, list[Name]] = {}
    for name in names:
        bearers.setdefault(name.normalized, []).append(name)
    taken = bytearray(len(text))
    found: list[tuple[int, str]] = []
    for spelling in sorted((s for s in bearers if s), key=lambda s: (-len(s), s)):
        at = text.find(spelling)
        while at >= 0:
            end = at + len(spelling)
            if any(taken[at:end]):
                at = text.find(spelling, at + 1)
                continue
            taken[at:end] = b"\1" * (end - at)
            found.append((at, spelling))
            at = text.find(spelling, end)
    out: dict[tuple[int, str], Name] = {}
    for _, spelling in sorted(found):
        for name in sorted(bearers[spelling], key=lambda n: n.entity_id):
            out.setdefault((name.entity_id, spelling), name)
    return list(out.values())


def other_names(found: Iterable[Name], all_names: dict[int, list[Name]]) -> tuple[str, ...]:
    """Return, as written, every name of the found entities that the question does not hold itself.

    In the order of the entities in the question, each entity's own name before its aliases; at most MAX_OTHER_NAMES.
    """
    found = list(found)
    present = {name.normalized for name in found}
    out: dict[str, str] = {}
    for entity_id in dict.fromkeys(name.entity_id for name in found):
        for name in sorted(all_names.get(entity_id, ()), key=lambda n: (not n.is_name, n.normalized)):
            if name.normalized not in present:
                out.setdefault(name.normalized, name.written)
    return tuple(out.values())[:MAX_OTHER_NAMES]
