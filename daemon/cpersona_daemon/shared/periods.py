"""Times that are named by words, relative to now: yesterday, last week, 3 days ago, Monday. In the machine's zone.

A name means the same where it is typed as an option and where it stands in a question.

Contract: time.typed, time.asked.
"""

from __future__ import annotations

import re

try:
    # The C half alone: the client loads this file, and the Python half is a long module that it replaces.
    from _datetime import date, datetime, timedelta
except ImportError:  # pragma: no cover - an interpreter without it
    from datetime import date, datetime, timedelta

TYPE_CHECKING = False  # as typing has it, which takes longer to load than a command takes to run
if TYPE_CHECKING:
    from collections.abc import Callable

DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
MONTHS = "january february march april may june july august september october november december".split()
_COUNTS = {"a": 1, "an": 1} | {
    n: i for i, n in enumerate("one two three four five six seven eight nine ten".split(), 1)
}
_COUNT = rf"(?P<count>\d{{1,4}}|{'|'.join(_COUNTS)})"
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600}
_UNIT = "(?P<unit>second|minute|hour|day|week|month|year)s?"
_MICROSECOND = timedelta(microseconds=1)

Period = tuple[datetime, datetime]  # the first and the last moment, aware; equal for an instant


def _days(first: date, beyond: date) -> Period:
    """Return the whole days from ``first`` to the one before ``beyond``."""
    start, end = (datetime(day.year, day.month, day.day).astimezone() for day in (first, beyond))
    return start, end - _MICROSECOND


def _months_before(day: date, months: int) -> date:
    """Return the same day so many months earlier, or the last one of a shorter month."""
    year, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    for last in (day.day, 30, 29, 28):
        try:
            return date(year, month + 1, min(day.day, last))
        except ValueError:
            continue
    raise ValueError("no such day")


def _earlier(day: date, count: int, unit: str) -> date:
    if unit in ("month", "year"):
        return _months_before(day, count * (12 if unit == "year" else 1))
    return day - timedelta(days=count * (7 if unit == "week" else 1))


def _day(now: datetime, said: re.Match[str]) -> Period:
    day = now.date() - timedelta(days=said["day"].startswith("yester") or said["day"] == "last night")
    return _days(day, day + timedelta(days=1))


def _weekday(now: datetime, said: re.Match[str]) -> Period:
    """Return the latest day of that name, today being one; after `last` the latest before today."""
    today = now.date()
    back = (today.weekday() - DAYS.index(said["weekday"])) % 7
    day = today - timedelta(days=back or (7 if said["before"] else 0))
    return _days(day, day + timedelta(days=1))


def _calendar(now: datetime, said: re.Match[str]) -> Period:
    """Return this or the last week (from Monday), month or year, whole."""
    today, unit = now.date(), said["calendar"]
    if unit == "week":
        first = today - timedelta(days=today.weekday())
        beyond = first + timedelta(days=7)
    else:
        first = today.replace(day=1, month=today.month if unit == "month" else 1)
        beyond = _months_before(first, -12 if unit == "year" else -1)
    return _days(first, beyond) if said["which"] == "this" else _days(_earlier(first, 1, unit), first)


def _month(now: datetime, said: re.Match[str]) -> Period:
    """Return the latest month of that name that has begun, or the one of the year given; after `last` the latest
    before this one.
    """
    today, month = now.date(), MONTHS.index(said["month"]) + 1
    this = today.month - (1 if said["before_month"] else 0)
    year = said.groupdict().get("year")
    first = date(int(year) if year else today.year - (month > this), month, 1)
    return _days(first, _months_before(first, -1))


def _ago(now: datetime, said: re.Match[str]) -> Period:
    """Return the whole day so many days, weeks, months or years ago, or the moment so many hours ago."""
    count, unit = _counted(said["count"]), said["unit"]
    if unit in _SECONDS:
        moment = now - timedelta(seconds=count * _SECONDS[unit])
        return moment, moment
    day = _earlier(now.date(), count, unit)
    return _days(day, day + timedelta(days=1))


def _past(now: datetime, said: re.Match[str]) -> Period:
    """Return the time from so many units ago up to now."""
    count, unit = _counted(said["count"]), said["unit"]
    if unit in _SECONDS:
        return now - timedelta(seconds=count * _SECONDS[unit]), now
    return _days(_earlier(now.date(), count, unit), now.date())[0], now


def _counted(word: str | None) -> int:
    return 1 if word is None else _COUNTS.get(word) or int(word)


_WEEKDAY, _MONTH = f"(?P<weekday>{'|'.join(DAYS)})", f"(?P<month>{'|'.join(MONTHS)})"
_Names = tuple[tuple[str, "Callable[[datetime, re.Match[str]], Period]"], ...]
_NAMES: _Names = (
    (r"(?P<day>today|this morning|yesterday|last night)", _day),
    # The last week of March is none of those that are counted from now.
    (r"(?P<which>this|last) (?P<calendar>week|month|year)(?! of\b)", _calendar),
    (rf"{_COUNT} {_UNIT} ago", _ago),
    (rf"(?:last (?={_COUNT.replace('<count>', '<_>')})|past )(?:{_COUNT} )?{_UNIT}", _past),
)
# Where a time is typed nothing else stands beside its name; in a question a weekday alone may be every one.
_TYPED: _Names = (
    *_NAMES,
    (rf"(?P<before>last )?{_WEEKDAY}", _weekday),
    (rf"(?P<before_month>last )?{_MONTH}(?: (?P<year>\d{{4}}))?", _month),
)
_ASKED: _Names = (
    *_NAMES,
    (rf"(?:(?P<before>last )|\b(?:on|since|this) ){_WEEKDAY}", _weekday),
    (rf"(?P<before_month>last ){_MONTH}", _month),
)


def typed(text: str, now: float) -> Period | None:
    """Return the time that a text is the name of, None where it is none; ``now`` is in epoch seconds.

    Raises ValueError or OverflowError for one beyond the calendar.
    """
    said = " ".join(text.lower().split())
    return next((mean(_here(now), m) for name, mean in _TYPED if (m := re.fullmatch(name, said))), None)


def asked(text: str, now: float) -> tuple[str, Period] | None:
    """Return the first name of a time in a question, as it stands there, with its time; None of one without."""
    said = " ".join(text.lower().split())
    found = [(m.start(), m, mean) for name, mean in _ASKED if (m := re.search(rf"\b{name}\b", said))]
    if not found:
        return None
    _, match, mean = min(found, key=lambda one: one[0])
    try:
        return match[0], mean(_here(now), match)
    except (ValueError, OverflowError):
        return None


def _here(now: float) -> datetime:
    return datetime.fromtimestamp(now).astimezone()
