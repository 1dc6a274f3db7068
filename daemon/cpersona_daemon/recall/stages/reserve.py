"""Seats beside the answer for long rows: a passage may hold what a vector of the whole row does not show.

Works behind the limit: what is seated has no score, is compared with no gate and weighed by nothing.

Contract: block.reserved.
"""

from __future__ import annotations

from ...model.kinds import Rid
from ..channels.vectors import PASSAGES_A_ROW, nearest_passages
from ..exclusion import matcher
from ..run import Run
from ..types import Candidate

ANY = -1.0  # the cosine that a passage must reach


def reserve(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Return the rows and behind them those whose best passage is nearest of all that are not among them, where seats
    are kept.
    """
    seats = run.settings.block_reservation
    if seats <= 0 or run.vector is None:
        return rows
    there = {c.rid for c in rows}
    # Each row that is there may take the best places with several of its passages.
    (found,) = nearest_passages(
        run, [run.vector.vector], run.settings.max_memories, PASSAGES_A_ROW * (len(rows) + seats), ANY
    )
    nearest = [rid for rid in dict.fromkeys(near.rid for near in found) if rid not in there]
    seated = _wanted(run, nearest)[:seats]
    run.account.reserved = frozenset(seated)
    best = {near.rid: near.span for near in reversed(found)}
    return rows + [Candidate(rid, reserved=True, passage=best[rid]) for rid in seated]


def _wanted(run: Run, rids: list[Rid]) -> list[Rid]:
    """Leave out what the caller holds already."""
    if (excluded := matcher(run.query.exclude)) is None:
        return rids
    texts = run.rows.texts(rids)
    return [rid for rid in rids if not excluded(texts.get(rid, ""))]
