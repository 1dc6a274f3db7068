"""One score from the blend's and a reranker's: what the reranker says moves a row up or down, as far as it is sure.

    score = blend + WEIGHT x (log-odds of what it says of the row - LEVEL x their median, if that is below 0) / SURE

the last factor held to -1 … 1. Most of the rows that it is asked about answer nothing, so that the median is what this
model says of such rows: one that gives 0.001 to all others says more with 0.2 than one that gives 0.1 to all others.
Half of it alone is taken off, for a question that no row answers has a median too. Log-odds tell 0.1 from 0.001, which
is where many of these models tell an answer from a row about something else. A row behind those that were asked about
is taken for what the least of these is, so that it passes none of them.

Pure functions of numbers. The constants were chosen for rerankers of several qualities that were made up.

Contract: rerank.blend.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from ...model.kinds import Rid
from ..types import Candidate

ASKED = 20  # rows from the best on
WEIGHT = 0.2
SURE = 6.0  # log-odds of 0.9975
LEVEL = 0.5
_LEAST = 1e-6  # a score of 0 has log-odds without end


def moves(scores: Mapping[Rid, float]) -> dict[Rid, float]:
    """Return by how much the blend of each row changes for what a reranker said of it and of the others, 0 to 1."""
    if not scores:
        return {}
    odds = {rid: _log_odds(score) for rid, score in scores.items()}
    level = min(0.0, LEVEL * median(odds.values()))
    return {rid: WEIGHT * min(max((value - level) / SURE, -1.0), 1.0) for rid, value in odds.items()}


def blended(candidates: Sequence[Candidate], scores: Mapping[Rid, float]) -> list[Candidate]:
    """Return the rows with the blend of both scores, best first; of equals in the order they had.

    One of the best that has no score, stored or changed a moment ago, keeps its own.
    """
    by = moves(scores)
    if not by:
        return list(candidates)
    behind = min(0.0, *by.values())
    rows = [
        _moved(c, by.get(c.rid, 0.0 if place < ASKED else behind), scores.get(c.rid))
        for place, c in enumerate(candidates)
    ]
    return sorted(rows, key=lambda c: -(c.blend or 0.0))


def _moved(candidate: Candidate, by: float, score: float | None) -> Candidate:
    if candidate.blend is None or candidate.scored is None:
        return candidate
    scored = replace(candidate.scored, reranked=by)
    return candidate.with_(blend=scored.score, scored=scored, rerank=score)


def _log_odds(score: float) -> float:
    inside = min(max(score, _LEAST), 1.0 - _LEAST)
    return math.log(inside / (1.0 - inside))
