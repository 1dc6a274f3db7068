"""Ordering by confidence, which the legacy ordering does; everywhere else a confidence is shown and moves nothing.

Contract: confidence.score, profile.row.
"""

from __future__ import annotations

from ...model.kinds import PROFILE
from ...storage.candidates import Facts
from ..run import Run
from ..scoring.confidence import Frame, confidence
from ..types import Candidate


def frame_of(run: Run) -> Frame:
    """Return what the confidences of a recall are measured against."""
    return Frame(run.settings, run.now, run.rows.span, *run.cosine_scale, run.query.deep)


def by_confidence(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Score every row by its confidence and sort by it. The profile takes part, of unknown age and without a cosine."""
    rows = [*rows, Candidate(PROFILE)] if run.rows.profile else rows
    frame, facts = frame_of(run), run.rows.facts(c.rid for c in rows if not c.is_profile)
    scored = [(confidence(frame, facts.get(c.rid, Facts(None)), c.cosine)["score"], c) for c in rows]
    scored.sort(key=lambda pair: -pair[0])
    return [c.with_(confidence=score) for score, c in scored]
