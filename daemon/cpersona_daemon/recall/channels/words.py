"""Rows that hold words of the question, or its very characters.

Contract: lexical.order, lexical.keyword, recall.blank.
"""

from __future__ import annotations

from typing import Any

from ...model.kinds import EPISODE, MEMORY, Kind, Rid
from ...storage import keyword, lexical, memories
from ...text.terms import LexicalQuery
from .. import evidence
from ..run import Run
from ..scoring.reading import Reading
from ..types import EPISODE_FTS, KEYWORD, MEMORY_FTS, RECENT, Ranked


def word_lists(run: Run) -> list[Ranked]:
    """Return the lists of the full-text index, and the substring scan of the memories where that found none of
    these.
    """
    lists: list[Ranked] = []
    if run.settings.fts_enabled:
        searched = run.question.searched
        if run.query.scope.sees_episodes:
            lists.append(_indexed(run, EPISODE_FTS, EPISODE, searched))
        lists.append(_indexed(run, MEMORY_FTS, MEMORY, searched))
        if lists[-1].rids:
            return lists
        run.account.keyword_fallback = "the full-text index found nothing"
    else:
        run.account.keyword_fallback = "CPERSONA_FTS_ENABLED is false"
    characters, rows = run.question.characters, run.rows
    found = keyword.keyword_scan(run.conn, characters, run.query.scope, run.depth)
    newest = rows.newest_of(found, rows.holding(characters), run.depth)
    return [*lists, Ranked(KEYWORD, _rids(MEMORY, newest), None)]


def _indexed(run: Run, channel: str, kind: Kind, searched: LexicalQuery) -> Ranked:
    told: dict[str, Any] | None = {} if run.query.accounted else None
    hits = lexical.search(run.conn, kind, searched, run.query.scope, run.depth, told, without=run.question.without)
    if told is not None:
        run.account.words[channel] = told
    hits = with_those_of_then(run, kind, hits, run.depth)
    return Ranked(channel, _rids(kind, [i for i, _ in hits]), tuple(s for _, s in hits))


def with_those_of_then(run: Run, kind: Kind, hits: list[tuple[int, float]], depth: int) -> list[tuple[int, float]]:
    """Return the best of the rows that a search found and of those that have changed since and held its words, each
    with about the bm25 that it had.
    """
    former: dict[Rid, Reading] = {}
    for term in run.question.searched.terms if run.rows.then else ():
        former |= run.rows.of_then_holding(term)
    if not former:
        return hits
    sought = evidence.sought(run)
    found = [(rid[1], sought.bm25(reading)) for rid, reading in former.items() if rid[0] == kind]
    return sorted([*hits, *found], key=lambda hit: (hit[1], hit[0]))[:depth]


def recent_list(run: Run) -> Ranked:
    """Return the newest memories in scope: what a blank question lists."""
    rows, limit = run.rows, run.query.limit
    newest = rows.newest_of(memories.recent(run.conn, run.query.scope, limit), rows.of_then(MEMORY), limit)
    return Ranked(RECENT, _rids(MEMORY, newest), None)


def _rids(kind: Kind, ids: list[int]) -> tuple[Rid, ...]:
    return tuple((kind, i) for i in ids)
