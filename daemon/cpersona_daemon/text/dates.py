"""Dates that a question or a row names, in the spellings that people type, and the day that a row tells of.

Pure functions.

Contract: coverage.share, dates.spelled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import islice

from ..shared.periods import MONTHS
from .months import ABBREVIATED, ELSEWHERE, NUMBERS

Date = tuple[int | None, int | None, int | None]  # year, month, day; None where none is named
Day = tuple[int, int, int]

_AMBIGUOUS = ("may", "march")  # words of their own where neither a day nor a year stands beside them
_ENDINGS = ("", "st", "nd", "rd", "th")
_PLACES, _AROUND = 50, 24  # of a text that are looked at, and characters to either side: as long as dates are
_TOLD_DAYS = 7
_YEARS_APART = 1  # a row that names a day without its year means one so near to its own

_YEAR, _MONTH = r"(?:19|20)\d\d", "|".join(sorted(NUMBERS, key=len, reverse=True))
_ENGLISH = "|".join(MONTHS)
# A date stands between signs that do not go on with it: 1.15.03.2024 and 2024-03-15-7 are none.
_BEGIN, _END = r"(?<!\d)(?<!\d[./-])", r"(?!\d|[./-]\d)"
_OF = r"(?:of\s+|de\s+|d')?"
_NAMED = re.compile(
    rf"{_BEGIN}(?P<ymd>(?P<y1>{_YEAR})(?P<s1>[-/.])(?P<m1>\d\d?)(?P=s1)(?P<d1>\d\d?)){_END}"
    rf"|{_BEGIN}(?P<xxy>(?P<a>\d\d?)(?P<s2>[-/.])(?P<b>\d\d?)(?P=s2)(?P<y2>{_YEAR}|(?<=\d\d/\d\d/)\d\d)){_END}"
    rf"|(?<![^\W_])(?P<compact>(?P<y3>{_YEAR})(?P<m3>0[1-9]|1[0-2])(?P<d3>0[1-9]|[12]\d|3[01]))(?!\d)"
    rf"|{_BEGIN}(?P<joined>(?P<d4>\d\d?)[-/](?P<n4>{_MONTH})[-/](?P<y4>{_YEAR})){_END}"
    rf"|(?<!\d)(?P<d5>\d\d?)(?:st|nd|rd|th|\.|º|er)?\s+{_OF}(?P<n5>{_MONTH})\b\.?(?:,?\s+{_OF}(?P<y5>{_YEAR})\b)?"
    rf"|\b(?P<n6>{_MONTH})\.?\s+(?:the\s+)?(?P<d6>\d\d?)(?:st|nd|rd|th)?\b(?![:.]\d)(?:,?\s+(?P<y6>{_YEAR})\b)?"
    r"|(?:(?P<y7>\d{4})[年년]\s?)?(?P<m7>\d\d?)[月월]\s?(?P<d7>\d\d?)[日일]"
    rf"|{_BEGIN}(?P<ym>(?P<y8>{_YEAR})-(?P<m8>0[1-9]|1[0-2]))(?![\w:/-])"
    rf"|\b(?P<n9>{_ENGLISH})\b(?:,?\s+{_OF}(?P<y9>{_YEAR})\b)?"
    rf"|(?<![\w.:/#-])(?P<y>{_YEAR})(?![\w:/#-])",
    re.IGNORECASE,
)
_IN_MONTH = re.compile(r"\b(?:in|of|since|until|by|last|during|early|late|mid)\s+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Named:
    """A date that a term speaks of: any of its ``readings``. ``alone``: the term spells all of it by itself.

    Contract: dates.spelled.
    """

    readings: tuple[Date, ...]
    alone: bool = True

    @property
    def names_a_day(self) -> bool:
        return all(month is not None and day is not None for _, month, day in self.readings)


def dates_of(text: str) -> dict[str, Named]:
    """Return which terms of a question speak of a date, and of which.

    The words of a date with its day speak of all of it, those of a month and its year each of their own.
    """
    found: dict[str, Named] = {}
    for match in _NAMED.finditer(text):
        for term, named in _terms_of(match, text):
            known = found.get(term)
            found[term] = named if known is None else Named(_joined(known.readings, named.readings), known.alone)
    return found


def named_first(text: str) -> tuple[str, tuple[Date, ...]] | None:
    """Return the first date of a question, as it stands there, with what it may mean; None of one without."""
    return next(
        (
            (match[0], _readings(match))
            for match in _NAMED.finditer(text)
            if match["m7"] and _readings(match) or any(True for _ in _terms_of(match, text))
        ),
        None,
    )


def _joined(*readings: Iterable[Date]) -> tuple[Date, ...]:
    return tuple(dict.fromkeys(reading for some in readings for reading in some))


def _terms_of(match: re.Match[str], text: str) -> Iterable[tuple[str, Named]]:
    """Return the terms of a match with what each speaks of."""
    said, readings = match.groupdict(), _readings(match)
    if not readings or said["m7"]:  # the terms of 年月日 are pairs of signs
        return []
    if whole := _first(said, ("ymd", "xxy", "compact", "joined", "ym", "y")):
        return [(whole.lower(), Named(readings))]
    if said["n9"]:
        return _month_terms(match, text)
    return [(term, Named(readings, alone=False)) for term in _words_of(match)]


def _words_of(match: re.Match[str]) -> list[str]:
    """Return the words that spell a day together."""
    said = match.groupdict()
    day, month, year = (_first(said, names) for names in (("d5", "d6"), ("n5", "n6"), ("y5", "y6")))
    of = ["de"] if " de " in match[0].lower() else []
    return [f"{day}{ending}" for ending in _ENDINGS] + [f"{month}".lower(), *filter(None, (year,)), *of]


def _month_terms(match: re.Match[str], text: str) -> Iterator[tuple[str, Named]]:
    """Return what a month without a day speaks of: a capital or a word before it tells it from other words."""
    name, year = match["n9"], match["y9"]
    month = name.lower()
    marked = name[0].isupper() and month not in _AMBIGUOUS or bool(year)
    if marked or month != "may" and _IN_MONTH.search(text[: match.start()]):
        yield month, Named(((None, NUMBERS[month], None),))
    if year:
        yield year, Named(((int(year), None, None),))


def _readings(match: re.Match[str]) -> tuple[Date, ...]:
    """Return the dates that a match may mean; none where it is no day of the calendar."""
    said = match.groupdict()
    if said["xxy"]:
        first, second, of = int(said["a"]), int(said["b"]), int(said["y2"])
        of += 2000 if of < 100 else 0
        # With dots the day comes first, as it does where both may.
        orders = ((second, first),) if said["s2"] == "." else ((second, first), (first, second))
        return _joined((of, month, day) for month, day in orders if _is_day(month, day))
    year, month, day = (_first(said, names) for names in _PARTS)
    number = NUMBERS[month.lower()] if month and month.lower() in NUMBERS else _int(month)
    if day is not None and not _is_day(number, int(day)):
        return ()
    return ((_int(year), number, _int(day)),)


_PARTS = (
    ("y1", "y3", "y4", "y5", "y6", "y7", "y8", "y9", "y"),
    ("m1", "m3", "n4", "n5", "n6", "m7", "m8", "n9"),
    ("d1", "d3", "d4", "d5", "d6", "d7"),
)


def _first(said: dict[str, str | None], names: Iterable[str]) -> str | None:
    return next((value for name in names if (value := said[name]) is not None), None)


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)


def _is_day(month: int | None, day: int) -> bool:
    return month is not None and 1 <= month <= 12 and 1 <= day <= 31


def agrees(date: Date, day: Day) -> bool:
    """Tell whether a day is the date, or lies in the month or year, or is the day of the month, that it names."""
    return all(wanted is None or wanted == there for wanted, there in zip(date, day, strict=True))


def is_near(named: Date, told: Day) -> bool:
    """Tell whether a day lies in the month of a date, or among the few days after it, on which people tell of it."""
    year, month, day = named
    if month is None or day is None:
        return False
    if (year or told[0], month) == told[:2]:
        return True
    try:
        passed = date(*told) - date(year or told[0], month, day)
    except ValueError:
        return False
    return 0 < passed.days <= _TOLD_DAYS


def is_named(asked: Date, text: str, day: Day | None) -> bool:
    """Tell whether the text of a row names the date, or one in the month that it names, in whatever spelling.

    A day that is named without its year is the one near to ``day``, the row's own. Dates of a year alone are words.
    """
    year, month, of_month = asked
    if month is None or str(of_month or "") not in text:
        return False
    years = {None, year} if of_month is not None and _is_near(year, day) else {year}
    return any(
        there_month == month and of_month in (None, there_day) and (year is None or there in years)
        for match in islice(_finder(month, of_month).finditer(text), _PLACES)
        for named in _NAMED.finditer(text[max(0, match.start() - _AROUND) : match.end() + _AROUND])
        for there, there_month, there_day in _readings(named)
    )


@lru_cache(64)
def _finder(month: int, day: int | None) -> re.Pattern[str]:
    """Return what only spellings of the date hold, whatever the year: few texts match, and in few places."""
    if day is None:
        numbers = rf"(?<!\d)0?{month}(?=[-/.月월])|\d{{4}}{month:02d}\d\d|-{month:02d}\b"
        return re.compile(rf"{numbers}|\b{ABBREVIATED[month - 1]}", re.IGNORECASE)
    names = "|".join(name for name, number in NUMBERS.items() if number == month)
    return re.compile(
        rf"(?<!\d)0?{day}(?:[-/.]0?{month}[-/.]|(?:st|nd|rd|th|\.|º|er)?(?:\s+(?:{_OF})|[-/])(?:{names}))"
        rf"|(?<!\d)0?{month}(?:[-/]0?{day}[-/]|[-/.]0?{day}(?!\d)|[月월]\s?0?{day})"
        rf"|{month:02d}{day:02d}(?!\d)|\b(?:{names})\.?\s+(?:the\s+)?0?{day}(?!\d)",
        re.IGNORECASE,
    )


def _is_near(year: int | None, day: Day | None) -> bool:
    return day is None or year is None or abs(year - day[0]) <= _YEARS_APART


def spellings(date: Date) -> tuple[str, tuple[str, ...]]:
    """Return a date with its month as ISO writes it, and its other spellings, as words between blanks."""
    year, month, day = date
    assert month is not None
    names = (MONTHS[month - 1], ABBREVIATED[month - 1])
    if day is None:
        return f"{year}-{month:02d}", tuple(f"{name} {year}" for name in names)
    spoken = [form for name in names for d in _days(day) for form in (f"{d} {name}", f"{d} of {name}", f"{name} {d}")]
    spoken += [f"{day} {name}" for name in ELSEWHERE[month - 1]]
    if year is None:
        return f"{month:02d}-{day:02d}", tuple(dict.fromkeys(spoken))
    numbers = [
        " ".join(parts)
        for m, d in dict.fromkeys(((f"{month:02d}", f"{day:02d}"), (str(month), str(day))))
        for parts in ((str(year), m, d), (d, m, str(year)), (m, d, str(year)))
    ]
    compact = f"{year}{month:02d}{day:02d}"
    return f"{year}-{month:02d}-{day:02d}", tuple(dict.fromkeys((compact, *numbers, *spoken)))


def _days(day: int) -> tuple[str, str]:
    ending = "th" if day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return str(day), f"{day}{ending}"


def day_of(instant: float | None) -> Day | None:
    """Return the UTC day of an instant (epoch seconds)."""
    if instant is None:
        return None
    try:
        at = datetime.fromtimestamp(instant, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return at.year, at.month, at.day
