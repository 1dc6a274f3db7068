"""The last stage: no more rows than were asked for.

Contract: recall.limit.
"""

from __future__ import annotations

from ..run import Run
from ..types import Candidate


def limit(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Return the best rows, as many as were asked for."""
    run.account.ordered, run.account.returned = rows, rows[: run.query.limit]
    return rows[: run.query.limit]
