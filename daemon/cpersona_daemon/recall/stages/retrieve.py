"""Asking the channels for their lists, and leaving out what the caller holds already.

Contract: recall.blank, exclude.texts, question.without.
"""

from __future__ import annotations

from ...model.kinds import Rid
from .. import evidence
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
    """Return the lists that hold anything, each with those of its rows marked that the caller or the question does
    not want back.
    """
    lists = [ranked for ranked in lists if ranked.rids]
    rids = sorted({rid for ranked in lists for rid in ranked.rids})
    out: set[Rid] = set()
    if (excluded := matcher(run.query.exclude)) is not None:
        out |= {rid for rid, text in run.rows.texts(rids).items() if excluded(text)}
    if (unwanted := evidence.unwanted(run)) is not None:
        out |= {rid for rid, (text, _) in run.rows.readings(rids).items() if unwanted(text)}
    if not out:
        return lists
    return [Ranked(r.channel, r.rids, r.scores, frozenset(out.intersection(r.rids))) for r in lists]
