"""Ctrl-C in a run that counts what it does: what is under way is asked for first, so that no number is untrue.

The first Ctrl-C ends the run where nothing is lost by it: it asks for nothing new, waits a bounded time for the answers
that are still to come, and counts them. A second one leaves at once, wherever the run is.
"""

import signal
import time

GRACE_SECONDS = 5.0


class _Woken(BaseException):
    """The first Ctrl-C came while a wait was on; the wait looks at its time again."""


class Interrupts:
    """What Ctrl-C does within the block. ``check`` and ``for_input`` raise KeyboardInterrupt once it came, ``for_answer`` when the grace is over."""

    def __init__(self):
        self.asked = self._twice = False
        self._until = None
        self._waits = False

    def __enter__(self):
        # Started by `nohup` or in a script's background, a program is to ignore it; then it stays ignored.
        self._before = signal.getsignal(signal.SIGINT)
        if self._before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._said)
        return self

    def __exit__(self, *_):
        if self._before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._before)

    def attend(self, connection):
        """Have a connection wait for its answers here."""
        connection.wait = self.for_answer

    def check(self):
        """Raise KeyboardInterrupt if Ctrl-C came: nothing new is begun."""
        if self.asked:
            raise KeyboardInterrupt

    def hurry(self):
        """Begin the time that answers still have: the run ends, for whatever reason. None after a second Ctrl-C."""
        if self._twice:
            self._until = time.monotonic()
        elif self._until is None:
            self._until = time.monotonic() + GRACE_SECONDS

    def for_input(self, descriptor):
        """Wait until a descriptor can be read; Ctrl-C is raised before anything is taken from it."""
        while not self._readable(descriptor):
            self.check()

    def for_answer(self, descriptor, seconds):
        """Wait at most so long until a descriptor can be read, and tell whether it can. Ctrl-C shortens the wait to the grace."""
        deadline = time.monotonic() + seconds
        while True:
            if self._readable(descriptor, deadline):
                return True
            now = time.monotonic()
            if self._until is not None and now >= self._until:
                raise KeyboardInterrupt
            if now >= deadline:
                return False

    def _readable(self, descriptor, deadline=None):
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

    def _said(self, number, frame):
        if self.asked:
            self._twice = True  # wherever this one ends, no answer is waited for any more
            raise KeyboardInterrupt
        self.asked = True
        self.hurry()
        if self._waits:
            raise _Woken


def each(session, items, work, named):
    """Call ``work`` with each item, which asks the daemon one thing and says what came of it.

    After a Ctrl-C the answer under way is still said; ``named(item)`` is the one that nothing is known of.
    """
    if len(items) < 2:
        for item in items:
            work(item)
        return
    done, begun = 0, None
    with Interrupts() as interrupts:
        interrupts.attend(session.connection)
        try:
            for item in items:
                interrupts.check()
                begun = item
                work(item)
                done, begun = done + 1, None
        except KeyboardInterrupt:
            unknown = "" if begun is None else f", what became of {named(begun)} is not known"
            session.out.warn(
                f"cpersona {session.name}: ended early: {done:,} of {len(items):,} are done{unknown}; run the same command again for the others"
            )
            raise


def watch(session, method, params, early, grace=False, ask=None, **more):
    """Ask what takes long, with a bar on a terminal where the daemon tells its progress, and return the Answer.

    When it ends early, by Ctrl-C or because the daemon went away, `early(reached)` is said first: what is certain then,
    from the last progress map (empty when none came). With ``grace`` a Ctrl-C waits a moment for the answer.
    """
    import sys

    from ..terminal import render
    from .client import CallFailed

    bar = render.waiting(sys.stderr.isatty() and not session.out.quiet)
    reached = {}

    def seen(step):
        reached.update(step)
        if bar is not None:
            bar(step)

    connection = session.connection  # where no daemon can be had, nothing has begun and nothing ends early
    try:
        with bar or _Nothing(), Interrupts() if grace else _Nothing() as interrupts:
            if grace:
                interrupts.attend(connection)
            return (ask or session.ask)(method, params, progress=seen, **more)
    except (KeyboardInterrupt, CallFailed):
        session.out.warn(f"cpersona {session.name}: ended early: {early(reached)}")
        raise


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None
