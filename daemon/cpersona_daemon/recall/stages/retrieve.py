"""Asking the channels for their lists, and leaving out what the caller holds already.

Contract: recall.blank, exclude.texts.
"""

from __future__ import annotations

from ...storage import candidates
from ..channels.vectors import vector_lists
from ..channels.words import recent_list, word_lists
from ..exclusion import matcher
from ..run import Run
from ..types import Candidate, Ranked


def retrieve(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Ask by meaning and by words. The lists stand in fusion order: near, part, far, episode, memory."""
    run.lists = _marked(run, [*vector_lists(run), *word_lists(run)])
    return rows


def list_recent(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """List the newest memories, where nothing was asked."""
    run.lists = _marked(run, [recent_list(run)])
    return rows


def _marked(run: Run, lists: list[Ranked]) -> list[Ranked]:
    """Return the lists that hold anything, each with those of its rows marked that the caller does not want back."""
    lists = [ranked for ranked in lists if ranked.rids]
    excluded = matcher(run.query.exclude)
    if excluded is None:
        return lists
    rids = sorted({rid for ranked in lists for rid in ranked.rids})
    out = frozenset(rid for rid, text in candidates.texts(run.conn, rids).items() if excluded(text))
    return [Ranked(r.channel, r.rids, r.scores, out & frozenset(r.rids)) for r in lists]
