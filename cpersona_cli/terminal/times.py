"""Read a time that a person typed: an instant, a whole UTC day, an age, or a name such as `last week`. One parser for
every option.

Contract: time.typed.
"""

from __future__ import annotations

import time

try:
    # The C half alone: the Python half is a long module that it replaces, and datetime.UTC is in that one only.
    from _datetime import date, datetime, timedelta, timezone
except ImportError:  # pragma: no cover - an interpreter without it
    from datetime import date, datetime, timedelta, timezone

from ..exits import Usage

UTC = timezone.utc  # noqa: UP017
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


class Typed:
    """A typed time: ``start`` and ``end`` (aware datetimes, equal unless it was longer), whether its zone was assumed,
    and whether it was a name, which means something only in the machine's zone.
    """

    __slots__ = ("start", "end", "assumed_utc", "named")

    def __init__(self, start: datetime, end: datetime, assumed_utc: bool, named: bool = False) -> None:
        self.start, self.end, self.assumed_utc, self.named = start, end, assumed_utc, named


def parse(text: str, now: float | None = None) -> Typed:
    """Return the time that ``text`` names; ``now`` is in epoch seconds. Raises Usage."""
    said = text.strip()
    now = time.time() if now is None else now
    try:
        length = _length(said)
        if length is not None:
            moment = datetime.fromtimestamp(now, UTC) - timedelta(seconds=length)
            return Typed(moment, moment, False)
        day = _day(said)
        if day is not None:
            start = datetime(day.year, day.month, day.day, tzinfo=UTC)
            return Typed(start, start + timedelta(days=1) - timedelta(microseconds=1), True)
        if said[:1].isalpha() or " " in said:
            from cpersona_daemon.shared import periods

            if (period := periods.typed(said, now)) is not None:
                return Typed(*period, False, True)
        moment = datetime.fromisoformat(said)
        naive = moment.tzinfo is None
        moment = moment.replace(tzinfo=UTC) if naive else moment.astimezone(UTC)
        return Typed(moment, moment, naive)
    except (ValueError, OverflowError):
        raise Usage(
            f"{text!r} is not a time; give an instant like 2026-03-01T09:30Z, a date like 2026-03-01, an age like "
            "90m, 3h, 2d, or a name like yesterday, monday, 'last week', '3 days ago'"
        ) from None


def local(moment: datetime) -> str:
    """Return a moment as a person reads it, with the offset of its zone."""
    naive = moment.replace(tzinfo=None)
    zone = moment.isoformat()[len(naive.isoformat()) :]
    return f"{naive.isoformat(' ', 'minutes' if not moment.second else 'seconds')} {zone}"


def seconds(text: str) -> float:
    """Return the length of an age such as `90m` or `1h30m` in seconds. Raises Usage."""
    length = _length(text.strip())
    if length is None:
        raise Usage(f"{text!r} is not a length of time; give one like 90s, 30m, 3h or 2d")
    return length


def _length(said: str) -> float | None:
    """Return the seconds of an age, or None when the text is none."""
    import re  # costs more than the interpreter's start; only a typed time needs it

    said = said.lower()
    if not re.fullmatch(r"(?:\d+(?:\.\d+)?[smhdw])+", said):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+(?:\.\d+)?)([smhdw])", said))


def zone_warning(text: str, typed: Typed) -> str | None:
    """Return the sentence that says a naive time was read as UTC, or None where nobody could mean otherwise."""
    if not typed.assumed_utc:
        return None
    try:
        offset = time.localtime(typed.start.timestamp()).tm_gmtoff
    except (OverflowError, OSError, ValueError):
        return None
    if offset == 0:
        return None
    sign, minutes = "-" if offset < 0 else "+", abs(offset) // 60
    zone = f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"
    local = text if "T" in text or ":" in text else text + "T00:00"
    return f"{text} is read as UTC, not as local time; write {local}{zone} to mean local time"


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
