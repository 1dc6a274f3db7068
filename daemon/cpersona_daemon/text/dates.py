"""Dates that a question names, and the day that a row tells of. Pure functions.

Contract: coverage.share.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

Date = tuple[int | None, int | None, int | None]  # year, month, day; None where none is named
Day = tuple[int, int, int]

_MONTHS = {
    m: i
    for i, m in enumerate(
        "january february march april may june july august september october november december".split(), 1
    )
}
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_SPOKEN = re.compile(
    rf"(?:(?<!\d){_DAY}\s+)?\b({'|'.join(m.capitalize() for m in _MONTHS)})\b"
    rf"(?:\s+{_DAY}(?!\d))?(?:,?\s+((?:19|20)\d\d)(?!\d))?"
)
_YEAR = re.compile(r"(?<![\w.:/#-])((?:19|20)\d\d)(?![\w:/#-])")
_ISO = re.compile(r"(?<![\w.:/-])((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?(?![\w:/-])")
_AMBIGUOUS = ("may", "march")  # words of their own where neither a day nor a year stands beside them
_ENDINGS = ("", "st", "nd", "rd", "th")


def dates_of(text: str) -> dict[str, Date]:
    """Return which terms of a question speak of a date: term -> (year, month, day), None where it names none."""
    found: dict[str, Date] = {year: (int(year), None, None) for year in _YEAR.findall(text)}
    for match in _SPOKEN.finditer(text):
        before, month, after, year = match.groups()
        day, month = before or after, month.lower()
        if month in _AMBIGUOUS and not day and not year:
            continue
        found[month] = (None, _MONTHS[month], None)
        if day:
            found |= {day + ending: (None, None, int(day)) for ending in _ENDINGS}
    for match in _ISO.finditer(text):
        found[match[0]] = (int(match[1]), int(match[2]), int(match[3]) if match[3] else None)
    return found


def agrees(date: Date, day: Day) -> bool:
    """Tell whether a day is the date, or lies in the month or year, or is the day of the month, that it names."""
    return all(wanted is None or wanted == there for wanted, there in zip(date, day, strict=True))


def day_of(instant: float | None) -> Day | None:
    """Return the UTC day of an instant (epoch seconds)."""
    if instant is None:
        return None
    try:
        at = datetime.fromtimestamp(instant, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return at.year, at.month, at.day
