"""What a row's place in time does to it: the episode penalty, which reaches the gate, and the prior, which orders
alone.

Contract: penalty.episode, prior.order.
"""

from __future__ import annotations

from ...model.instants import parse_instant
from ...model.signals import Signal
from ..run import Run
from ..scoring import penalty, prior
from ..types import Candidate


def penalise(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Weigh down memories from before the latest episode, where that is switched on."""
    run.account.considered = rows
    s = run.settings
    if not s.episode_penalty_enabled:
        return rows
    boundary = parse_instant(run.rows.boundary)
    return penalty.apply(
        rows,
        run.rows.facts(c.rid for c in rows if not c.is_profile),
        boundary,
        rate=s.episode_decay_rate,
        floor=s.episode_decay_floor,
    )


def weigh_age(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Order rows of a fused score by their age too, where that is switched on."""
    s = run.settings
    if s.prior_age_rate <= 0:
        return rows
    return prior.apply(
        rows,
        run.rows.facts(c.rid for c in rows if not c.is_profile),
        run.rows.span,
        signal=Signal(s.recall_mode),
        rate=s.prior_age_rate,
        floor=s.prior_age_floor,
        anchor=s.prior_age_anchor,
        now=run.now,
    )
