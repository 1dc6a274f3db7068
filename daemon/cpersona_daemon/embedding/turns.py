"""Who computes next: questions before rows that are being stored, both before what is embedded in the background.

The background works a piece at a time. Before each it waits until nobody who comes first is there; a piece that can be
stopped is, when somebody comes, and is done again afterwards. A stream without a pause does not starve it: a piece that
has been put off for ten times as long as it takes is done in any case, so that the background has a tenth of the time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

QUESTION, STORED, BACKGROUND = 0, 1, 2
# Somebody who asks one question after the other is gone for no longer than this between two of them.
LINGER_SECONDS = 0.01
# A piece is put off for so many times what its kind took lately, and no longer than this.
PATIENCE_TIMES = 10
PATIENCE_SECONDS = 1.0

Result = TypeVar("Result")
# How a call does its pieces, each with the name of its kind: ``Aside.piece``, or ``at_once``.
Piece = Callable[[str, Callable[["Stop | None"], Result]], Result]


class Stopped(Exception):
    """A piece of work was given up because somebody came who goes first."""


class Stop:
    """Whether a piece of work is to be given up; ``then`` says how its thread is told."""

    __slots__ = ("asked", "_tell")

    def __init__(self) -> None:
        self.asked = False
        self._tell: Callable[[], None] | None = None

    def then(self, tell: Callable[[], None]) -> None:
        """Call ``tell`` as soon as the work is to be given up, on another thread or here and now."""
        self._tell = tell
        if self.asked:
            tell()

    def ask(self) -> None:
        self.asked = True
        if self._tell is not None:
            self._tell()


class Claim:
    """One caller's place before the others: taken when it is made, given up and taken again as often as the caller
    likes.
    """

    __slots__ = ("_turns", "_level", "held")

    def __init__(self, turns: Turns, level: int) -> None:
        self._turns, self._level, self.held = turns, level, False
        self.take()

    def take(self) -> None:
        if not self.held:
            self.held = True
            self._turns._count(self._level, 1)

    def give_up(self) -> None:
        if self.held:
            self.held = False
            self._turns._count(self._level, -1)

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *failure: object) -> None:
        self.give_up()


class Turns:
    """The claims of one embedder. Every method may be called from any thread; only ``wait`` blocks."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._claims = [0, 0]
        self._free_since = [float("-inf")] * 2
        self._stops: set[Stop] = set()
        self._closed = False

    def claim(self, level: int) -> Claim:
        """Go before every level below this one until the claim is given up."""
        return Claim(self, level)

    def wait(self, level: int, seconds: float) -> bool:
        """Return True once nobody of a level above is there, nor was a moment ago; False when not in time."""
        end = time.monotonic() + seconds
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                due = max(self._free_since[:level]) + LINGER_SECONDS if not any(self._claims[:level]) else None
                if due is not None and due <= now:
                    return True
                if now >= end:
                    return False
                self._changed.wait((end if due is None else min(due, end)) - now)
        return True

    @contextmanager
    def stoppable(self) -> Iterator[Stop]:
        """Yield what tells a piece of the background that somebody came."""
        stop = Stop()
        with self._changed:
            if any(self._claims):
                stop.asked = True
            self._stops.add(stop)
        try:
            yield stop
        finally:
            with self._changed:
                self._stops.discard(stop)

    def close(self) -> None:
        """Let everybody go on, and stop what can be stopped."""
        with self._changed:
            self._closed = True
            self._ask_all()
            self._changed.notify_all()

    def _count(self, level: int, by: int) -> None:
        with self._changed:
            self._claims[level] += by
            if by > 0:
                self._ask_all()
            elif not self._claims[level]:
                self._free_since[level] = time.monotonic()
                self._changed.notify_all()

    def _ask_all(self) -> None:
        for stop in self._stops:
            stop.ask()


class Aside:
    """How the background does its work: ``piece(kind, work)`` calls ``work(stop)`` when its turn has come.

    ``stop`` is None for a piece that was put off for long enough: it is then done in any case. ``check`` raises when
    nothing more is to be done. ``spent`` is the seconds of all pieces that were done, without the time for which they
    were put off.
    """

    def __init__(self, turns: Turns, check: Callable[[], None]) -> None:
        self._turns, self._check = turns, check
        self._taken: dict[str, float] = {}
        self.spent = 0.0

    def piece(self, kind: str, work: Callable[[Stop | None], Result]) -> Result:
        patience = min(PATIENCE_SECONDS, PATIENCE_TIMES * self._taken.get(kind, PATIENCE_SECONDS))
        end = time.monotonic() + patience
        while True:
            free = self._turns.wait(BACKGROUND, end - time.monotonic())
            self._check()
            if not free:
                return self._timed(kind, work, None)
            with self._turns.stoppable() as stop:
                if stop.asked:
                    continue
                try:
                    return self._timed(kind, work, stop)
                except Stopped:
                    continue

    def _timed(self, kind: str, work: Callable[[Stop | None], Result], stop: Stop | None) -> Result:
        started = time.perf_counter()
        result = work(stop)
        taken = time.perf_counter() - started
        self.spent += taken
        self._taken[kind] = smoothed(self._taken.get(kind, 0.0), taken)
        return result


def at_once(kind: str, work: Callable[[Stop | None], Result]) -> Result:
    """Do a piece of work that waits for nobody."""
    return work(None)


def smoothed(before: float, now: float) -> float:
    """Return how long something takes lately, from what it took before (0: nothing is known) and now."""
    return now if not before else 0.8 * before + 0.2 * now
