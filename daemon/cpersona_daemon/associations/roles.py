"""What the records of one item are to each other, and the claims that say so. Pure functions.

Contract: associations.claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..model.kinds import Rid
from ..storage.associations import Relation
from .bundles import spans
from .evidence import Evidence
from .records import Record

SUPERSEDES, SUPPORTS = "supersedes", "supports"
ROLE_WORDS = frozenset((SUPPORTS, SUPERSEDES, "corrects", "qualifies", "contradicts", "temporal_predecessor"))


def roles(records: Iterable[Record], relations: Iterable[Relation]) -> dict[Rid, list[dict]]:
    """Return, for each record that has any, the records of this item that bear a role towards it: `[{ref, role}]`.

    Every newer version of a message supersedes the older ones, newest first; an episode supports the memories in its
    span; a declared relation whose predicate is a role word gives its subject that role towards its object, newest
    first.
    """
    members = sorted(records, key=lambda r: r.newest_first)
    present = {record.rid: record for record in members}
    out: dict[Rid, list[dict]] = {}

    def give(rid: Rid, bearer: Record, role: str) -> None:
        entry = {"ref": bearer.ref, "role": role}
        if entry not in out.setdefault(rid, []):
            out[rid].append(entry)

    for at, newer in enumerate(members):
        for older in members[at + 1 :]:
            if newer.message and newer.message == older.message:
                give(older.rid, newer, SUPERSEDES)
    for episode in members:
        for memory in members:
            if spans(episode, memory):
                give(memory.rid, episode, SUPPORTS)
    for relation in sorted(relations, key=lambda r: r.recency, reverse=True):
        if relation.predicate in ROLE_WORDS and relation.subject in present and relation.object in present:
            give(relation.object, present[relation.subject], relation.predicate)
    return out


def claims(
    candidates: Iterable[Record],
    why: dict[Rid, str],
    evidence: Iterable[tuple[Evidence, Record]],
    relations: Iterable[Relation],
) -> list[dict]:
    """Return an item's claims newest first: `{ref, as_of, why?, hops?, roles?}`."""
    said: dict[Rid, dict[str, Any]] = {}
    records = list(candidates)
    for record in records:
        said[record.rid] = {"why": why[record.rid]} if record.rid in why else {}
    for found, record in evidence:
        said[record.rid] = {"why": found.why, "hops": found.hops}
        records.append(record)
    borne = roles(records, relations)
    return [
        {"ref": r.ref, "as_of": r.as_of, **said[r.rid], **({"roles": borne[r.rid]} if r.rid in borne else {})}
        for r in sorted(records, key=lambda r: r.newest_first)
    ]
