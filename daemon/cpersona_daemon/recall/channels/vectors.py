"""Asking each channel for its ranked list: ids and scores only.

Contract: contracts.md §3; seeds/behavior-contracts §4 (window and reach).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import apsw
import numpy as np

from ...model.kinds import EPISODE, MEMORY, Rid
from ...shared.settings import Settings
from ...storage import candidates, lexical
from ...text.terms import parse_query
from ...vectors.backend import QueryVectors, Window
from ..exclusion import matcher
from ..scoring.blend import DEPTH
from ..types import EPISODE_FTS, FAR, KEYWORD, MEMORY_FTS, NEAR, PART, RECENT, Query, Ranked


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """The query as a vector, and the floor below which a row is no candidate.

    ``part`` is the query with nothing but its multilingual part, of unit length; None where it has none or the mode asks for none.
    """

    vector: np.ndarray
    model: str
    floor: float
    part: np.ndarray | None = None


@dataclass(slots=True)
class Notes:
    """What the channels did beside their lists: skipped terms, fallbacks; and what a blend found out while weighing:
    by what factor better (1 or more) the question must be met for what no row holds, and which rows had nothing to weigh.
    """

    lexical: dict[str, Any] = field(default_factory=dict)
    keyword_reason: str | None = None
    unfamiliarity: float = 1.0
    weightless: frozenset[Rid] = frozenset()


def retrieve(
    conn: apsw.Connection, vectors: Any, settings: Settings, query: Query, vector: VectorQuery | None, notes: Notes
) -> list[Ranked]:
    """Return the ranked lists in fusion order: near, part, far, episode, memory (or recent, for a blank query). Empty lists are left out."""
    if query.blank:
        lists = [Ranked(RECENT, _rids(MEMORY, lexical.recent(conn, query.scope, query.limit)), None)]
    elif query.wordless:
        # What has no word has no meaning either. A blend answers with nothing; the others know rows by their very characters.
        lists = (
            []
            if settings.recall_mode == "blend"
            else _word_lists(conn, settings, query, depth_of(settings, query), notes)
        )
    else:
        depth = depth_of(settings, query)
        lists = [
            *_vector_lists(vectors, settings, query, vector, depth),
            *_word_lists(conn, settings, query, depth, notes),
        ]
    return _mark_excluded(conn, [r for r in lists if r.rids], query.exclude)


def depth_of(settings: Settings, query: Query) -> int:
    """Return how many rows each channel hands over. A blend reorders by what no channel sees alone, so it looks deeper."""
    return max(query.limit, settings.recall_depth_floor, DEPTH if settings.recall_mode == "blend" else 0)


def _rids(kind: str, ids: list[int]) -> tuple[Rid, ...]:
    return tuple((kind, i) for i in ids)


def vector_scans(settings: Settings, depth: int) -> list[tuple[str, int, int, int]]:
    """Return the vector channels that are asked, each with the scan positions it begins and ends at and its cut."""
    window, reach = settings.max_memories, settings.vector_reach
    scans = [(NEAR, 0, window, depth)]
    if reach > window and settings.prior_far_weight > 0 and settings.recall_mode in ("blend", "rrf", "rsf"):
        scans.append(
            (FAR, window, reach, min(depth, settings.vector_far_limit) if settings.vector_far_limit > 0 else depth)
        )
    return scans


def _vector_lists(
    vectors: Any, settings: Settings, query: Query, vector: VectorQuery | None, depth: int
) -> list[Ranked]:
    if vector is None:
        return []
    lists: list[Ranked] = []
    seen: set[Rid] = set()
    for channel, start, stop, cut in vector_scans(settings, depth):
        found = [(rid, score) for rid, score in scan(vectors, query, vector, start, stop, cut) if rid not in seen]
        seen.update(rid for rid, _ in found)
        lists.append(Ranked(channel, tuple(rid for rid, _ in found), tuple(score for _, score in found)))
        if channel == NEAR and vector.part is not None:
            found = scan(vectors, query, replace(vector, vector=vector.part), start, stop, cut)
            lists.append(Ranked(PART, tuple(rid for rid, _ in found), tuple(score for _, score in found)))
    return lists


def scan(vectors: Any, query: Query, vector: VectorQuery, start: int, stop: int, k: int) -> list[tuple[Rid, float]]:
    """Scan memories and episodes each over their own window and merge them by similarity, a memory first on ties."""
    asked, window = QueryVectors.one(vector.vector, vector.model), Window(start, stop)
    found = [
        ((kind, hit.id), hit.score)
        for kind in query.scope.kinds
        for hit in vectors.search(asked, kind, query.scope, window, vector.floor, k)[0]
    ]
    found.sort(key=lambda pair: -pair[1])
    return found[:k]


def _word_lists(conn: apsw.Connection, settings: Settings, query: Query, depth: int, notes: Notes) -> list[Ranked]:
    lists, memory_hits = [], []
    if settings.fts_enabled:
        parsed = parse_query("\n".join((query.text, *query.also_lexical)))
        if query.scope.sees_episodes:
            lists.append(_fts(conn, EPISODE_FTS, EPISODE, parsed, query, depth, notes))
        memory = _fts(conn, MEMORY_FTS, MEMORY, parsed, query, depth, notes)
        lists.append(memory)
        memory_hits = memory.rids
    if not memory_hits:
        notes.keyword_reason = (
            "the full-text index found nothing" if settings.fts_enabled else "CPERSONA_FTS_ENABLED is false"
        )
        lists.append(Ranked(KEYWORD, _rids(MEMORY, lexical.keyword_scan(conn, query.text, query.scope, depth)), None))
    return lists


def _fts(conn: apsw.Connection, channel: str, kind: str, parsed: Any, query: Query, depth: int, notes: Notes) -> Ranked:
    trace: dict = {}
    hits = lexical.search(conn, kind, parsed, query.scope, depth, trace)
    notes.lexical[channel] = trace
    return Ranked(channel, _rids(kind, [i for i, _ in hits]), tuple(s for _, s in hits))


def _mark_excluded(conn: apsw.Connection, lists: list[Ranked], entries: tuple[str, ...]) -> list[Ranked]:
    excluded = matcher(entries)
    if excluded is None:
        return lists
    rids = sorted({rid for r in lists for rid in r.rids})
    out = frozenset(rid for rid, text in candidates.texts(conn, rids).items() if excluded(text))
    return [Ranked(r.channel, r.rids, r.scores, out & frozenset(r.rids)) for r in lists]
