"""Checks of what recall relies on besides the rows: the embedder, the calibration, the saved questions.

Contract: health.checks.
"""

from __future__ import annotations

import os

from ..calibration.measured import scoring_version
from ..embedding.advice import FAULT_AFTER
from ..storage import backlog, vector_counts
from ..storage import canaries as saved
from .view import INFO, MOST_MESSAGES, WARN, Issue, View, issue

OLD_DAYS = 180


def embedder(view: View) -> list[Issue]:
    """The embedder, if there is one, works."""
    status = view.ctx.embedding.status()
    if status["state"] == "failed":
        return [issue(WARN, f"the embedder cannot be used, recall is lexical only: {status['problem']}")]
    if status["consecutive_failures"] >= FAULT_AFTER:
        return [issue(WARN, f"the last {status['consecutive_failures']} query embeddings failed: {status['problem']}")]
    waiting = backlog.count(view.conn, 1) if status["mode"] == "none" else 0
    return (
        [issue(INFO, "rows are listed for embedding, and there is no embedder (CPERSONA_EMBEDDING_MODE=none)")]
        if waiting
        else []
    )


def calibration(view: View) -> list[Issue]:
    """The calibration file can be read, and was measured with the present model and not too long ago."""
    book, embedding = view.ctx.calibration, view.ctx.embedding
    if book.problem:
        return [issue(WARN, book.problem)]
    if not embedding.enabled or not book.exists:
        return []
    if book.current.stale(*embedding.model, scoring_version(view.ctx.settings)):
        return [
            issue(
                WARN,
                "the thresholds were measured with another model or scoring and are not used;"
                " `cpersona calibrate` measures them again",
            )
        ]
    return _outgrown(view) + _old(view)


def _outgrown(view: View) -> list[Issue]:
    """Return the agents that have twice the memories and passages which they had when they were measured."""
    book = view.ctx.calibration
    agents = [view.agent_id] if view.agent_id else sorted(agent for agent in book.current.counts if agent)
    grown = [
        (agent, had, now)
        for agent in agents
        if (had := book.rows(agent)) and (now := vector_counts.size(view.conn, agent)) >= 2 * had
    ]
    return [
        issue(
            INFO,
            f"agent {agent} was calibrated with {had} memories and passages and has {now}; its gate grows with them,"
            " and its next recall measures it again",
            agent_id=agent,
            measured_rows=had,
            rows=now,
        )
        for agent, had, now in grown[:MOST_MESSAGES]
    ]


def _old(view: View) -> list[Issue]:
    book = view.ctx.calibration
    try:
        days = (view.ctx.clock.now() - os.stat(book.path).st_mtime) / 86_400
    except FileNotFoundError:
        return [issue(WARN, "the calibration file was removed; `cpersona calibrate` writes it again")]
    return (
        [
            issue(
                INFO,
                f"the last calibration is {days:.0f} days old; `cpersona calibrate` measures again",
                days=round(days),
            )
        ]
        if days > OLD_DAYS
        else []
    )


def canaries(view: View) -> list[Issue]:
    """Every saved question still finds its row. ``check_health`` runs them before it looks."""
    lost = [c for c in saved.listed(view.conn, view.agent_id) if c.state in (saved.LOST, saved.GONE)]
    why = {saved.LOST: "does not come back", saved.GONE: "is gone"}
    out = [
        issue(WARN, f"canary {c.id} is lost: {c.ref} {why[c.state]}", canary=c.id, ref=c.ref)
        for c in lost[:MOST_MESSAGES]
    ]
    if len(lost) > MOST_MESSAGES:
        out.append(issue(WARN, f"{len(lost) - MOST_MESSAGES} more canaries are lost", count=len(lost) - MOST_MESSAGES))
    return out


def outbox(view: View) -> list[Issue]:
    """A service elsewhere has heard of every change, where there is one."""
    drainer = view.ctx.vectors.outbox
    if drainer is None:
        return []
    told = drainer.status(view.conn)
    pending, oldest = told["pending"], told["oldest_seconds"] or 0.0
    waits = f"{pending} changes wait for the vector service, the oldest for {oldest:.0f} s"
    if told["problem"] is not None:
        return [issue(WARN, f"the vector service is not told of changes ({told['problem']}); {waits}", count=pending)]
    if told["filling"] is not None:
        return [issue(INFO, "the vector service is being sent everything; recall asks the database meanwhile")]
    return [issue(INFO, waits, count=pending)] if pending else []
