"""Who is good enough: the gate, the profile that stands before it, and the rescue behind it.

Contract: gate.signal, profile.row, gate.fallback.
"""

from __future__ import annotations

from ...model.kinds import PROFILE, Kind
from ...model.signals import Signal
from ..run import Run
from ..scoring import blend
from ..scoring import gate as scoring
from ..types import BLEND, Candidate

POOL_COUNTED = 500
SIZE_COUNTED = 20_000  # rows of a part of the agent's store; to count more would take longer than the answer


def seat_profile(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Put the row that describes the agent behind all others."""
    return [*rows, Candidate(PROFILE)] if run.rows.profile else rows


def gate(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Return the rows that reach the threshold of their signal.

    Where other names were searched for too, those that pass for the question as written: another name adds a vote to a
    row, never a pass.
    """
    limits, account = _limits(run), run.account
    run.limits = limits.opened(rows)
    if run.as_written is None:
        kept, below = scoring.split(rows, run.limits)
    else:
        passed, _ = scoring.split(run.as_written, limits.opened(run.as_written))
        admitted = {c.rid for c in passed}
        kept, below = [c for c in rows if c.rid in admitted], [c for c in rows if c.rid not in admitted]
    account.kept, account.below = kept, below
    return kept


def _limits(run: Run) -> scoring.Thresholds:
    if run.settings.recall_mode == BLEND and run.size is None:
        run.size = run.rows.count_seen(SIZE_COUNTED)
    return scoring.thresholds(
        sum(run.rows.count(kind, POOL_COUNTED) for kind in Kind),
        k=run.settings.rrf_k,
        deep=run.query.deep,
        blank=run.question.blank,
        admission=None if run.declared is None else run.declared.admission,
        measured=run.measured,
        blend_gate=blend.gate_of(_of_store(run), run.beta, run.unfamiliarity),
    )


def _of_store(run: Run) -> float:
    """Return the gate of as many rows as are in scope: by their number, and for a sentence as the store was measured.

    What sentences about anything meet says nothing of keywords.
    """
    by_size, measured = blend.size_gate(run.size or 0), run.measured.get(Signal.BLEND)
    if measured is None:
        return by_size
    return by_size + run.question.sentence * (measured + blend.growth(run.measured_rows, run.size or 0) - by_size)


def rescue(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Where nothing but the profile is left, bring back those that words found and that have a cosine."""
    if any(not c.is_profile for c in rows):
        return rows
    rescued = [c for c in run.account.below if c.lexical and c.cosine is not None]
    run.rescued = bool(rescued)
    return rescued or rows
