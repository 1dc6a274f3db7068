"""How fast work goes lately, and when it will be done: the one place that works it out, for both sides of the wire.

What was not measured is not known: without a rate there is no time either. Imports nothing.

Contract: progress.measured.
"""

WINDOW_SECONDS = 30.0  # of work that count: long enough to be steady, short enough to follow a change


class Pace:
    """How many things a second were done, over the latest WINDOW_SECONDS of work on them."""

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps: list[tuple[float, int]] = []

    def add(self, seconds: float, count: int) -> None:
        """Take in a piece of work: how long it took and how many were done by it."""
        self._steps.append((seconds, count))
        while len(self._steps) > 1 and sum(spent for spent, _ in self._steps[1:]) > WINDOW_SECONDS:
            del self._steps[0]

    def forget(self) -> None:
        """Know nothing again: what comes next has nothing to do with what was."""
        self._steps.clear()

    @property
    def rate(self) -> float | None:
        """How many a second, None where nothing was measured."""
        spent, count = (sum(column) for column in zip(*self._steps)) if self._steps else (0.0, 0)
        return count / spent if spent > 0 and count else None


class Followed:
    """The pace of a count that somebody else tells of now and then."""

    __slots__ = ("_pace", "_last")

    _LEAST_SECONDS = 0.2

    def __init__(self) -> None:
        self._pace, self._last = Pace(), (-1.0, -1)

    def reached(self, count: int, now: float) -> float | None:
        """Take in how far the count is at a moment of a steady clock, and return its rate, None while none is known.

        A count that falls begins anew.
        """
        then, before = self._last
        if before < 0 or count < before:
            self._pace.forget()
            self._last = now, count
        elif now - then >= self._LEAST_SECONDS:
            self._pace.add(now - then, count - before)
            self._last = now, count
        return self._pace.rate


def seconds_left(count: int, rate: float | None) -> float | None:
    """Return how long so many take at this rate; None where that is not known, 0 where none are left."""
    if not count:
        return 0.0
    return None if rate is None else count / rate
