"""One score from the blend's and a reranker's: what the reranker says moves a row up or down, as far as it is sure.

    score = blend + WEIGHT x log-odds of what the reranker says / SURE, held to -1 … 1

One half says nothing, so that such a row stands and passes as without a reranker. Log-odds tell 0.1 from 0.001, which
is where many of these models tell an answer from a row about something else. A row behind those that were asked about
is taken for what the least of these is, so that it passes none of them.

Pure functions of numbers.

Contract: rerank.blend.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...model.kinds import Rid
from ..types import Candidate

ASKED = 20  # rows from the best on
WEIGHT = 0.2
SURE = 6.0  # log-odds of 0.9975


def move(score: float) -> float:
    """Return by how much a row's blend changes for a reranker's score between 0 and 1."""
    if score <= 0.0 or score >= 1.0:
        return math.copysign(WEIGHT, score - 0.5)
    odds = math.log(score) - math.log1p(-score)
    return WEIGHT * min(max(odds / SURE, -1.0), 1.0)


def blended(candidates: Sequence[Candidate], scores: Mapping[Rid, float]) -> list[Candidate]:
    """Return the rows with the blend of both scores, best first; of equals in the order they had.

    One of the best that has no score, stored or changed a moment ago, keeps its own.
    """
    if not scores:
        return list(candidates)
    behind = min(0.0, min(map(move, scores.values())))
    rows = [_moved(c, scores.get(c.rid), 0.0 if place < ASKED else behind) for place, c in enumerate(candidates)]
    return sorted(rows, key=lambda c: -(c.blend or 0.0))


def _moved(candidate: Candidate, score: float | None, unasked: float) -> Candidate:
    if candidate.blend is None or candidate.scored is None:
        return candidate
    by = unasked if score is None else move(score)
    scored = replace(candidate.scored, reranked=by)
    return candidate.with_(blend=scored.score, scored=scored, rerank=score)
