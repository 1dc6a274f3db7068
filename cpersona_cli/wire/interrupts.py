"""Ctrl-C in a run that counts what it does: what is under way is asked for first, so that no number is untrue.

The first Ctrl-C ends the run where nothing is lost by it: it asks for nothing new, waits a bounded time for the answers
that are still to come, and counts them. A second one leaves at once, wherever the run is.
"""

from __future__ import annotations

import time

# The C half alone: `signal` itself loads enum and functools.
from _signal import SIG_IGN, SIGINT, getsignal, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .client import Connection

GRACE_SECONDS = 5.0


class _Woken(BaseException):
    """The first Ctrl-C came while a wait was on; the wait looks at its time again."""


class Interrupts:
    """What Ctrl-C does within the block.

    ``check`` and ``for_input`` raise KeyboardInterrupt once it came, ``for_answer`` when the grace is over.
    """

    def __init__(self) -> None:
        self.asked = self._twice = False
        self._until: float | None = None
        self._waits = False

    def __enter__(self) -> Interrupts:
        # Started by `nohup` or in a script's background, a program is to ignore it; then it stays ignored.
        self._before = getsignal(SIGINT)
        if self._before is not SIG_IGN:
            signal(SIGINT, self._said)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not SIG_IGN:
            signal(SIGINT, self._before)

    def attend(self, connection: Connection) -> None:
        """Have a connection wait for its answers here."""
        connection.wait = self.for_answer

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C came: nothing new is begun."""
        if self.asked:
            raise KeyboardInterrupt

    def hurry(self) -> None:
        """Begin the time that answers still have: the run ends, for whatever reason. None after a second Ctrl-C."""
        if self._twice:
            self._until = time.monotonic()
        elif self._until is None:
            self._until = time.monotonic() + GRACE_SECONDS

    def for_input(self, descriptor: int) -> None:
        """Wait until a descriptor can be read; Ctrl-C is raised before anything is taken from it."""
        while not self._readable(descriptor):
            self.check()

    def for_answer(self, descriptor: int, seconds: float) -> bool:
        """Wait at most so long until a descriptor can be read, and tell whether it can.

        Ctrl-C shortens the wait to the grace.
        """
        deadline = time.monotonic() + seconds
        while True:
            if self._readable(descriptor, deadline):
                return True
            now = time.monotonic()
            if self._until is not None and now >= self._until:
                raise KeyboardInterrupt
            if now >= deadline:
                return False

    def _readable(self, descriptor: int, deadline: float | None = None) -> bool:
        """Wait until a descriptor can be read, the time is over or the first Ctrl-C comes, and tell whether it can.

        Without a deadline it does not wait after a Ctrl-C.
        """
        import select

        try:
            self._waits = True  # first of all: a Ctrl-C that comes now must not be slept over
            try:
                if deadline is None:
                    left = None
                    if self.asked:
                        return False
                else:
                    left = max(0.0, min(deadline, self._until or deadline) - time.monotonic())
                return bool(select.select([descriptor], [], [], left)[0])
            finally:
                self._waits = False
        except _Woken:
            self._waits = False
            return False

    def _said(self, number: int, frame: object) -> None:
        if self.asked:
            self._twice = True  # wherever this one ends, no answer is waited for any more
            raise KeyboardInterrupt
        self.asked = True
        self.hurry()
        if self._waits:
            raise _Woken
