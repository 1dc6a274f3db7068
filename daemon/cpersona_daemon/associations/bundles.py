"""Which candidates belong together as one item. Pure functions: records in, bundles out.

Contract: associations.bundle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..model.kinds import MEMORY, Rid
from ..storage.associations import Relation
from .records import Record

SAME_MESSAGE, EPISODE_SPAN, ADJACENT, RELATION = "same_message", "episode_span", "adjacent", "relation:"


@dataclass(frozen=True, slots=True)
class Link:
    """Two candidates that one rule holds together."""

    first: Rid
    second: Rid
    why: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """The candidates of one item, best first, and for each the rule that bundled it; a single one has none."""

    records: tuple[Record, ...]
    why: dict[Rid, str]
    links: tuple[Link, ...] = ()

    @property
    def head(self) -> Record:
        return self.records[0]


def bundle(records: list[Record], relations: list[Relation], adjacency_seconds: float) -> list[Bundle]:
    """Group candidates (best first) and return the groups in the order of their best candidate.

    Linked are: records of one message; a memory and an episode of its project and channel whose span holds it;
    memories of one source within ``adjacency_seconds`` of their run's first; the ends of a declared relation.
    Links are transitive. A record's rule is the first in this order that links it.
    """
    links = list(_links(records, relations, adjacency_seconds))
    root = {record.rid: record.rid for record in records}

    def find(rid: Rid) -> Rid:
        while root[rid] != rid:
            root[rid] = root[root[rid]]
            rid = root[rid]
        return rid

    for link in links:
        root[find(link.second)] = find(link.first)
    groups: dict[Rid, list[Record]] = {}
    for record in records:
        groups.setdefault(find(record.rid), []).append(record)
    out = []
    for group_root, members in groups.items():
        own = [link for link in links if find(link.first) == group_root]
        why: dict[Rid, str] = {}
        for link in own:
            why.setdefault(link.first, link.why)
            why.setdefault(link.second, link.why)
        out.append(Bundle(tuple(members), why, tuple(own)))
    return out


def _links(records: list[Record], relations: list[Relation], adjacency_seconds: float) -> Iterator[Link]:
    memories = [record for record in records if record.rid[0] == MEMORY]
    by_message: dict[str, Record] = {}
    for record in memories:
        if record.message:
            first = by_message.setdefault(record.message, record)
            if first is not record:
                yield Link(first.rid, record.rid, SAME_MESSAGE)
    for episode in records:
        for memory in memories:
            if spans(episode, memory):
                yield Link(episode.rid, memory.rid, EPISODE_SPAN)
    yield from _adjacent(memories, adjacency_seconds)
    present = {record.rid for record in records}
    for relation in sorted(relations, key=lambda r: r.recency, reverse=True):
        if relation.subject in present and relation.object in present:
            yield Link(relation.subject, relation.object, RELATION + relation.predicate)


def spans(episode: Record, memory: Record) -> bool:
    """Tell whether a memory's instant lies in an episode's span, in the same project and channel."""
    if episode.span is None or memory.instant is None or episode.bucket != memory.bucket:
        return False
    return episode.span[0] <= memory.instant <= episode.span[1]


def _adjacent(memories: list[Record], seconds: float) -> Iterator[Link]:
    """Link the memories of one source to the first of their run.

    The first one beyond ``seconds`` begins the next run.
    """
    by_source: dict[str, list[tuple[float, Rid]]] = {}
    for record in memories:
        if record.source and record.instant is not None:
            by_source.setdefault(record.source, []).append((record.instant, record.rid))
    for run in by_source.values():
        run.sort()
        begun, first = run[0]
        for instant, rid in run[1:]:
            if instant - begun <= seconds:
                yield Link(first, rid, ADJACENT)
            else:
                begun, first = instant, rid
