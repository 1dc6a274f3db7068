"""Rows that hold words of the question, or its very characters.

Contract: lexical.order, lexical.keyword, recall.blank.
"""

from __future__ import annotations

from typing import Any

from ...model.kinds import EPISODE, MEMORY, Kind, Rid
from ...storage import keyword, lexical, memories
from ...text.terms import LexicalQuery
from ..run import Run
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
    found = keyword.keyword_scan(run.conn, run.question.characters, run.query.scope, run.depth)
    return [*lists, Ranked(KEYWORD, _rids(MEMORY, found), None)]


def _indexed(run: Run, channel: str, kind: Kind, searched: LexicalQuery) -> Ranked:
    told: dict[str, Any] | None = {} if run.query.accounted else None
    hits = lexical.search(run.conn, kind, searched, run.query.scope, run.depth, told, without=run.question.without)
    if told is not None:
        run.account.words[channel] = told
    return Ranked(channel, _rids(kind, [i for i, _ in hits]), tuple(s for _, s in hits))


def recent_list(run: Run) -> Ranked:
    """Return the newest memories in scope: what a blank question lists."""
    return Ranked(RECENT, _rids(MEMORY, memories.recent(run.conn, run.query.scope, run.query.limit)), None)


def _rids(kind: Kind, ids: list[int]) -> tuple[Rid, ...]:
    return tuple((kind, i) for i in ids)
