"""What brings the outbox to a service: one thread, one batch at a time, in the order of the commits.

Nothing waits for it. While the service is asked no transaction is open, for reading or writing; what it has taken is
then struck off the list. A kill in between delivers a batch twice, which does no harm: an entry says which row, and
what is delivered is what that row is.

Contract: outbox.drained, outbox.anew.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import Any, Protocol

import apsw

from ..errors import CPersonaError
from ..model.clock import Clock
from ..model.kinds import VectorKind
from ..storage import generations, outbox
from ..storage.database import Database
from ..storage.outbox import Entry, Feed, Filling
from ..storage.transaction import Transaction

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
LET_FINISH_SECONDS = 1.0  # what a call under way may take at the end
STOP_SECONDS = 6.0  # more than a service may take to answer
CHECK_SECONDS = 60.0  # how often a service is looked at that has nothing to be told

_log = logging.getLogger(__name__)


class Undelivered(Exception):
    """A service did not take what it was sent, and why, in words that hold nothing of it.

    ``refused``: it will not take it the next time either. ``lost``: it has not what was sent before, so that everything
    has to be sent anew.
    """

    def __init__(self, why: str, refused: bool = False, lost: bool = False) -> None:
        super().__init__(why)
        self.refused, self.lost = refused, lost


class Receiver(Protocol):
    """A service that is told what rows are. Called by one thread; all but ``read`` and ``following`` may take seconds,
    and raise Undelivered.

    ``target`` tells it from every other one, and is kept beside the list. ``kinds`` are the kinds of rows that it
    takes, in the order in which they are sent; ``most`` entries are delivered together.
    """

    target: str
    kinds: tuple[VectorKind, ...]
    most: int

    def check(self) -> None:
        """Make sure that it answers and has what it was sent before; at the start, after each failure, now and then."""

    def clear(self) -> None:
        """Take away what it has; everything will be sent."""

    def following(self, conn: apsw.Connection, kind: VectorKind, after: int, most: int) -> list[Entry]:
        """Return the rows of a kind that come next where everything is sent, by their ids."""

    def read(self, conn: apsw.Connection, entries: list[Entry]) -> Any:
        """Return what these rows are now, in the form that ``deliver`` takes. Inside a snapshot."""

    def deliver(self, read: Any) -> None:
        """Bring it there."""

    def level(self, reached: generations.Generation) -> None:
        """Learn that it has been told of everything up to a state of the database."""

    def close(self) -> None:
        """End a call under way."""


class Drainer:
    """The outbox of one database and the service that it is for. ``start`` and ``stop`` once; any thread may ask."""

    def __init__(self, receiver: Receiver, clock: Clock, first_pause: float = FIRST_PAUSE_SECONDS) -> None:
        self._receiver, self._clock, self._first_pause = receiver, clock, first_pause
        self._guard = threading.Condition()
        self._woken = self._stopped = self._again = False
        self._thread: threading.Thread | None = None
        self._most = receiver.most
        self._checked = False
        self._level: generations.Generation | None = None
        self._pause = 0.0
        self._problem: str | None = None
        self._done = self._failures = self._refused = 0
        self._filling: Filling | None = None

    # -- life

    def start(self, db: Database) -> None:
        """List every change from now on, have everything sent where changes were not listed before, and begin.

        Returns without any of it where nothing can be written.
        """
        self._db = db
        if db.read_only:
            self._problem = "the database is served for reading alone, so nothing can be noted for the service"
            return
        if not db.read_now(outbox.in_step, self._receiver.target):
            db.write_now(self._begin_anew)
        self._filling = db.read_now(outbox.filling)
        db.feed = db.read_now(Feed, self._receiver.kinds)
        self._thread = threading.Thread(target=self._run, name="outbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the work; what is left stays listed. Before ``Database.close``."""
        with self._guard:
            self._stopped = True
            self._guard.notify_all()
        if self._thread is not None:
            self._thread.join(LET_FINISH_SECONDS)
            if self._thread.is_alive():
                self._receiver.close()
                self._thread.join(STOP_SECONDS)

    def wake(self) -> None:
        """Say that a commit listed something."""
        with self._guard:
            self._woken = True
            self._guard.notify_all()

    # -- what others ask

    @property
    def filling(self) -> Filling | None:
        """How far a service has got that is sent everything, None where it has been."""
        return self._filling

    @property
    def problem(self) -> str | None:
        """Why the latest delivery failed, None once one succeeded."""
        return self._problem

    def status(self, conn: apsw.Connection) -> dict[str, Any]:
        """Return how much waits, for how long, and how it goes: the outbox's part of `daemon status`."""
        since, level = outbox.since(conn), self._level
        return {
            "target": self._receiver.target,
            "pending": outbox.length(conn),
            "oldest_seconds": None if since is None else round(max(0.0, self._clock.now() - since), 3),
            "filling": None if self._filling is None else {"kind": str(self._filling.kind), "id": self._filling.id},
            "generation": None if level is None else level.number,
            "delivered": self._done,
            "refused": self._refused,
            "failures": self._failures,
            "paused_seconds": self._pause,
            "problem": self._problem,
        }

    def wait(self, seconds: float) -> bool:
        """Return once everything committed by now was delivered: True; False after a failure or so many seconds."""
        reached, failures, end = self._db.read_now(generations.current)[0], self._failures, time.monotonic() + seconds
        with self._guard:
            self._woken = True
            self._guard.notify_all()
            while not self._stopped and self._failures == failures and time.monotonic() < end:
                level = None if self._filling is not None or not self._checked else self._level
                if level is not None and level.number >= reached.number:
                    return True
                self._guard.wait(min(1.0, max(0.0, end - time.monotonic())))
        return False

    def doubt(self) -> None:
        """Look soon whether the service still has what it was sent."""
        with self._guard:
            self._checked = False
            self._guard.notify_all()

    def retry(self) -> None:
        """Say that the service answers: what failed before is tried again now."""
        with self._guard:
            self._again = True
            self._guard.notify_all()

    def send_everything(self) -> None:
        """Have everything sent anew, whatever the service has."""
        self._db.write_now(self._begin_anew)
        self._filling, self._level = self._db.read_now(outbox.filling), None
        self.wake()

    # -- the work

    def _begin_anew(self, tx: Transaction) -> None:
        outbox.begin_anew(tx, self._receiver.target, self._receiver.kinds[0])

    def _run(self) -> None:
        while not self._stopped:
            try:
                with self._guard:
                    self._woken = False
                if not self._checked and self._filling is None:
                    self._receiver.check()
                self._checked = True
                if not self._step():
                    self._rest()
            except Undelivered as error:
                if self._stopped:
                    return
                self._failed(error)
            except Exception as error:
                if self._stopped or self._db.lost is not None:
                    return
                why = str(error) if isinstance(error, CPersonaError) else type(error).__name__
                _log.warning("the outbox: %s", why, exc_info=_log.isEnabledFor(logging.DEBUG))
                self._wait_out(why)

    def _step(self) -> bool:
        """Deliver the next batch; tell whether there was one."""
        reached, filling, entries, read = self._db.read_now(self._look)
        self._filling = filling
        if filling is not None and not filling.begun:
            self._receiver.clear()
            self._fill(filling, filling._replace(begun=True))
            return True
        if entries:
            self._receiver.deliver(read)
        if filling is not None:
            self._fill(filling, self._next(filling, entries))
        elif entries:
            self._db.write_now(partial(outbox.delivered, entries=entries))
        else:
            if self._level is None or self._level[:2] != reached[:2]:
                self._receiver.level(reached)
            self._went_well(0)
            with self._guard:
                self._level = reached
                self._guard.notify_all()
            return False
        self._went_well(len(entries))
        return True

    def _look(self, conn: apsw.Connection) -> tuple[generations.Generation, Filling | None, list[Entry], Any]:
        filling = outbox.filling(conn)
        if filling is None:
            entries = outbox.oldest(conn, self._most)
        else:
            kind = next(kind for kind in self._receiver.kinds if kind == filling.kind)
            entries = self._receiver.following(conn, kind, filling.id, self._most) if filling.begun else []
        read = self._receiver.read(conn, entries) if entries else None
        return generations.current(conn)[0], filling, entries, read

    def _next(self, filling: Filling, entries: list[Entry]) -> Filling | None:
        if entries:
            return filling._replace(id=entries[-1].id)
        at = self._receiver.kinds.index(filling.kind) + 1
        return Filling(self._receiver.kinds[at], 0, True) if at < len(self._receiver.kinds) else None

    def _fill(self, found: Filling, reached: Filling | None) -> None:
        """Note how far everything was sent, unless it was asked for anew meanwhile."""

        def job(tx: Transaction) -> None:
            if outbox.filling(tx.conn) == found:
                outbox.filled(tx, reached)

        self._db.write_now(job)

    def _rest(self) -> None:
        end = time.monotonic() + CHECK_SECONDS
        with self._guard:
            while not self._woken and not self._stopped and self._checked:
                left = end - time.monotonic()
                self._checked = left > 0
                self._guard.wait(max(0.0, left))

    def _went_well(self, delivered: int) -> None:
        self._done += delivered
        self._pause, self._problem = 0.0, None
        self._most = min(self._receiver.most, self._most * 2)

    def _failed(self, error: Undelivered) -> None:
        """Find out whether one row is to blame, and pass it over; anything else is tried again after a pause."""
        if error.lost:
            _log.warning("the service is sent everything: %s", error)
            self._db.write_now(self._begin_anew)
            filling, once_more = self._db.read_now(outbox.filling), self._problem is not None
            with self._guard:
                self._level, self._filling = None, filling
                self._checked = True
            if not once_more:
                self._failures, self._problem = self._failures + 1, str(error)
                return
        elif error.refused and self._most > 1:
            self._most = 1
            return
        elif error.refused:
            _log.warning("one row is passed over: %s", error)
            self._refused += 1
            self._pass_over()
            self._checked = False  # perhaps it is the service that is not as it was left
            return
        self._wait_out(str(error))

    def _pass_over(self) -> None:
        _, filling, entries, _ = self._db.read_now(self._look)
        if filling is not None:
            self._fill(filling, self._next(filling, entries[:1]))
        else:
            self._db.write_now(partial(outbox.delivered, entries=entries[:1]))

    def _wait_out(self, why: str) -> None:
        with self._guard:
            self._failures += 1
            self._checked = False
            self._pause = min(LONGEST_PAUSE_SECONDS, self._pause * 2 or self._first_pause)
            if why != self._problem:
                _log.warning("the outbox waits: %s", why)
            self._problem = why
            self._guard.notify_all()
            end, self._again = time.monotonic() + self._pause, False
            while not self._stopped and not self._again and time.monotonic() < end:
                self._guard.wait(end - time.monotonic())
