"""Several lists become one: by ranks, by scores, or one after the other.

Contract: fusion.rrf, scores.rsf, fusion.cascade.
"""

from __future__ import annotations

from ...model.signals import Signal
from ..run import Run
from ..scoring import cascade, fusion, rrf, rsf
from ..scoring.fusion import Votes
from ..types import Candidate


def fuse_ranks(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Score rows by their places in the lists."""
    return _fused(run, rrf.votes(run.lists, run.settings.rrf_k, run.settings.prior_far_weight), Signal.RRF)


def fuse_scores(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Score rows by where they lie between the best and the worst of each list."""
    return _fused(run, rsf.votes(run.lists, run.settings.prior_far_weight), Signal.RSF)


def line_up(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Put what is near in meaning first and fill up with words, without a score."""
    return cascade.cascade(run.lists, run.query.limit)


def _fused(run: Run, votes: Votes, signal: Signal) -> list[Candidate]:
    run.account.votes = votes
    return fusion.fused(run.lists, votes, signal)
