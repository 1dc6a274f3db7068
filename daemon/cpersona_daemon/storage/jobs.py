"""The write jobs of one commit: who waits for which, and how they run together in one transaction.

A job that fails costs the others nothing: mostly it fails before it wrote; where it did write, the group is run again
with each job inside a savepoint of its own (a savepoint makes FTS5 write out what it gathers, which costs as much as
the row, so it is not the rule). A job may therefore run twice, and does nothing outside its transaction.

Contract: writes.durable, wire.keys.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import apsw
import msgspec

from ..errors import KeyUsed, translate
from ..model.changes import Change
from . import idempotency
from .idempotency import Kept, Key
from .transaction import HISTORY_DAYS, Transaction

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

WriteJob = Callable[[Transaction], Any]
Outcome = tuple[Any, BaseException | None]  # what a job returned, or why it failed


class Pending:
    """A job that waits, and who waits for it: a future of an event loop, or one that a thread may wait for."""

    __slots__ = ("job", "key", "waiter")

    def __init__(self, job: WriteJob, key: Key | None, waiter: asyncio.Future[Any] | Future[Any]) -> None:
        self.job, self.key, self.waiter = job, key, waiter

    def begins(self) -> bool:
        """Tell whether somebody still wants it done; from here on it cannot be cancelled."""
        if isinstance(self.waiter, Future):
            return self.waiter.set_running_or_notify_cancel()
        return not self.waiter.cancelled()


def tell(group: list[Pending], outcomes: list[Outcome]) -> None:
    """Tell every caller of a group its outcome, once."""
    told: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any, BaseException | None]]] = {}
    for pending, (result, error) in zip(group, outcomes, strict=True):
        waiter = pending.waiter
        if not isinstance(waiter, Future):
            told.setdefault(waiter.get_loop(), []).append((waiter, result, error))
        elif error is None:
            waiter.set_result(result)
        else:
            waiter.set_exception(error)
    for loop, outcome in told.items():
        try:
            loop.call_soon_threadsafe(_tell_loop, outcome)  # one wake-up for the whole group
        except RuntimeError:
            pass  # the loop is closed, nobody waits any more


def _tell_loop(outcomes: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    """Give each waiter of a loop its outcome; one that was cancelled meanwhile wants none."""
    for waiter, result, error in outcomes:
        if waiter.done():
            continue
        if error is None:
            waiter.set_result(result)
        else:
            waiter.set_exception(error)


class _HalfDone(Exception):
    """A job failed after it had written something; ``error`` is what its caller is told."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def run(
    conn: apsw.Connection, group: list[Pending], now: Callable[[], float], history_days: float = HISTORY_DAYS
) -> tuple[list[Outcome], list[Change]]:
    """Run a group in a new transaction, which stays open; return each job's result or error, and what all changed."""
    try:
        return _run_all(conn, group, now, history_days, _run_job)
    except _HalfDone as half:
        conn.execute("ROLLBACK")
        if len(group) == 1:
            raise half.error from None
        return _run_all(conn, group, now, history_days, _run_apart)


class _Shared:
    """What the jobs of a group share: the connection, the clock, the changes so far, what is known of their keys."""

    __slots__ = ("conn", "now", "history_days", "changes", "answers")

    def __init__(
        self, conn: apsw.Connection, now: Callable[[], float], history_days: float, answers: dict[str, Kept]
    ) -> None:
        self.conn, self.now, self.history_days, self.answers = conn, now, history_days, answers
        self.changes: list[Change] = []


def _run_all(
    conn: apsw.Connection,
    group: list[Pending],
    now: Callable[[], float],
    history_days: float,
    run_one: Callable[[Pending, _Shared], Outcome],
) -> tuple[list[Outcome], list[Change]]:
    conn.execute("BEGIN IMMEDIATE")
    keys = [pending.key.text for pending in group if pending.key is not None]
    shared = _Shared(conn, now, history_days, idempotency.answers(conn, keys) if keys else {})
    before = set(shared.answers)
    outcomes = [run_one(pending, shared) for pending in group]
    idempotency.keep(conn, now(), {key: answer for key, answer in shared.answers.items() if key not in before})
    return outcomes, shared.changes


def _run_apart(pending: Pending, shared: _Shared) -> Outcome:
    """Run one job in a savepoint of its own."""
    shared.conn.execute("SAVEPOINT job")
    try:
        outcome = _run_job(pending, shared)
    except _HalfDone as half:
        shared.conn.execute("ROLLBACK TO job")
        outcome = None, half.error
    shared.conn.execute("RELEASE job")
    return outcome


def _run_job(pending: Pending, shared: _Shared) -> Outcome:
    """Run one job, or answer what its key is known by. Raises _HalfDone for one that failed after writing."""
    conn, key = shared.conn, pending.key
    if key is not None and (known := shared.answers.get(key.text)) is not None:
        if known.answers(key):
            return _decode(known.answer), None
        return None, KeyUsed("the idempotency key was used for another request, so nothing was done")
    tx, before = Transaction(conn, shared.now(), shared.history_days), conn.total_changes()
    try:
        result = pending.job(tx)
        if key is not None:
            shared.answers[key.text] = Kept(key.request, _encode(result))
    except Exception as error:
        if not conn.in_transaction:
            # SQLite gave up the whole transaction (disk full): the jobs before this one are gone too.
            raise
        if conn.total_changes() != before:
            raise _HalfDone(translate(error)) from error
        return None, translate(error)
    shared.changes.extend(tx.changes)
    return result, None
