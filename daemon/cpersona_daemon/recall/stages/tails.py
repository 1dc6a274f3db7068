"""What follows a good answer from far behind: rows that reached their threshold and say next to nothing beside it.

Contract: blend.tail.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..run import Run
from ..types import Candidate


def cut_tail(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Return the rows that reach a share of the best score; one that holds an identifier of the question stays."""
    share = run.settings.tail_share
    if run.query.deep or share <= 0:
        return rows
    kept, run.account.tail = split(rows, share)
    return kept


def split(rows: Sequence[Candidate], share: float) -> tuple[list[Candidate], list[Candidate]]:
    """Return the rows that stay and those that are left out, each in the given order. The profile has no score."""
    least = share * max((c.blend for c in rows if c.blend is not None), default=0.0)
    out = {c.rid for c in rows if c.blend is not None and c.blend < least and not c.identified}
    return [c for c in rows if c.rid not in out], [c for c in rows if c.rid in out]
