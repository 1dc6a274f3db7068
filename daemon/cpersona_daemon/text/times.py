"""The time that a question names, by a date or by words, and whether an instant lies in it. Pure but for the zone.

Contract: time.asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..model.instants import iso_now
from ..shared import periods
from .dates import Date, agrees, day_of, named_first


@dataclass(frozen=True, slots=True)
class AskedTime:
    """A time in the ``words`` of the question: any of ``dates``, or from ``since`` to ``until`` in epoch seconds."""

    words: str
    dates: tuple[Date, ...] = ()
    since: float = 0.0
    until: float = 0.0

    def holds(self, instant: float | None) -> bool:
        """Tell whether an instant lies in it; None, of a row without a date, in none."""
        if instant is None:
            return False
        if not self.dates:
            return self.since <= instant <= self.until
        day = day_of(instant)
        return day is not None and any(agrees(date, day) for date in self.dates)

    def told(self) -> dict[str, str]:
        """Return it as traces carry it: `{asked, since?, until?}`, the instants where it is not a date."""
        told = {"asked": self.words}
        return told if self.dates else told | {"since": iso_now(self.since), "until": iso_now(self.until)}


def asked_time(text: str, now: float) -> AskedTime | None:
    """Return the time that a question names, None of one that names none; ``now`` is in epoch seconds.

    A day or a year is more than last week, and that more than a month of no year.
    """
    named, relative = named_first(text), periods.asked(text, now)
    if named is not None and (relative is None or any(year or day for year, _, day in named[1])):
        return AskedTime(*named)
    if relative is None:
        return None
    words, (start, end) = relative
    return AskedTime(words, since=start.timestamp(), until=end.timestamp())
