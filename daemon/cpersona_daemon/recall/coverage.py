"""How much of a question a row holds: the IDF-weighted share of its content words, absolute and between 0 and 1.

Pure functions of texts. A row is read the way the full-text index reads it: the same stems, the same pairs of CJK
characters, the same whole identifiers; so that a row counts as holding what a search for it would have found. Beyond
that a row holds a date of the question when it was written on it.

Contract: issue "Honest recall", items 2 and 3; contracts.md §3 (what matches), §13 "blend".
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from .lexical import CJK_RUN, LEADING, TRAILING, LexicalQuery, Term, normalise

# An identifier that stands in more rows than either of these names no row in particular.
TELLING_ROWS, TELLING_SHARE = 10, 0.01
# A name in so many rows, as a share of the agent's, and no fewer than three, is that of one whom the store is about.
FAMILIAR_SHARE, FAMILIAR_ROWS = 0.03, 3
# From this many English stop words on a question is English, where a capital inside the sentence marks a name.
ENGLISH_STOP_WORDS = 2

Stem = Callable[[str], Sequence[str]]
Date = tuple[int | None, int | None, int | None]

_MONTHS = {m: i for i, m in enumerate("january february march april may june july august september october november december".split(), 1)}
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_SPOKEN = re.compile(rf"(?:(?<!\d){_DAY}\s+)?\b({'|'.join(m.capitalize() for m in _MONTHS)})\b(?:\s+{_DAY}(?!\d))?(?:,?\s+((?:19|20)\d\d)(?!\d))?")
_YEAR = re.compile(r"(?<![\w.:/#-])((?:19|20)\d\d)(?![\w:/#-])")
_ISO = re.compile(r"(?<![\w.:/-])((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?(?![\w:/-])")
_AMBIGUOUS = ("may", "march")  # words of their own where neither a day nor a year stands beside them
_DIACRITICS = re.compile("[\u0300-\u036f]+")
_EDGES = re.compile(r"^\W+|\W+$")
_ENDING = re.compile(r"['’](?:s|ll|d|re|ve|m)$")
_WEEKDAYS = frozenset("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split())
_BETWEEN = re.compile(r"[\W_]")
_PLAIN_COMPOUND = re.compile(r"[^\W\d_]+(?:(?:[-'][^\W\d_]+)*|/[^\W\d_]+)")  # dry-run, and/or


@dataclass(frozen=True, slots=True)
class Held:
    """What a row holds of a question. ``identified``: it holds an identifier of the question that few rows hold.

    ``terms`` has a bit for every term that it holds, the first of the question the lowest.
    """

    coverage: float
    identified: bool
    terms: int = 0


@dataclass(frozen=True, slots=True)
class Unmet:
    """What of a question no row in scope holds.

    ``name``: it names something that none holds; ``familiar``: it names someone whom many rows name, so that all of those
    are near to it; ``share``: where it does, the part of its weight that lies on words that none holds.
    """

    name: bool = False
    familiar: bool = False
    share: float = 0.0


class Reading:
    """A row as the matching sees it: its text in the forms that the kinds of terms are looked for in, each made when first needed."""

    __slots__ = ("body", "_folded", "_pieces", "_instant")

    def __init__(self, text: str, instant: float | None):
        self.body, self._instant = normalise(text), instant
        self._folded = self._pieces = self.body.lower() if self.body.isascii() else None

    @property
    def folded(self) -> str:
        if self._folded is None:
            self._folded = fold(self.body)
        return self._folded

    @property
    def pieces(self) -> str:
        if self._pieces is None:
            self._pieces = CJK_RUN.sub(" ", self.body).lower()
        return self._pieces

    @property
    def day(self) -> tuple[int, int, int] | None:
        """The day the row tells of (UTC), None where it names none."""
        return day_of(self._instant)


class Question:
    """The terms of one question with their weights, ready to be looked for in many rows.

    ``rows`` is the number of rows in the store and ``found`` in how many of them each term stands; both may be
    empty (0 and ()), every term then weighs the same. ``also`` holds terms that are not in the question as written:
    they add to what a row covers and never to what there is to cover.
    """

    def __init__(self, text: str, query: LexicalQuery, stem: Stem, rows: int = 0, found: Sequence[int] = (), also: Sequence[Term] = (), also_found: Sequence[int] = ()):
        self.rows = rows
        dates = dates_of(text)
        terms = (*query.terms, *also)
        counts = (*found, *also_found) if rows else (0,) * len(terms)
        self._sought = [_Sought(term, dates.get(term.text), stem) for term in terms]
        # One row more than there is, without any of the words: in a store of one memory all would be common.
        self._weights = [idf(count, rows + 1) for count in counts]
        self._whole = sum(self._weights[:len(query.terms)])
        few = max(TELLING_ROWS, rows * TELLING_SHARE)
        self._telling = [s.telling and count <= few for s, count in zip(self._sought, counts, strict=True)]
        self._names, self._terms, self._counts = inner_names(text, query), query.terms, tuple(found)

    def unmet(self, rows: int, held: int, holds: Callable[[Term], bool]) -> Unmet:
        """Return what none of an agent's ``rows`` memories holds.

        ``held`` has a bit for every term that is known to be held, as ``Held.terms`` has; of the others ``holds`` is asked.

        Nothing where there is no index to count by.
        """
        if not self.rows or not self._whole:
            return Unmet()
        # Only the terms as written were counted; other names come after them.
        written = list(enumerate(zip(self._sought, self._counts, self._weights, strict=False)))

        def missing(place: int, sought: _Sought, count: int) -> bool:
            return sought.date is None and not (count and (held >> place & 1 or holds(self._terms[place])))

        if any((s.telling or s.text in self._names) and missing(place, s, count) for place, (s, count, _) in written):
            return Unmet(name=True)
        if not any(s.text in self._names and count >= max(FAMILIAR_ROWS, FAMILIAR_SHARE * rows) for _, (s, count, _) in written):
            return Unmet()
        return Unmet(familiar=True, share=sum(weight for place, (s, count, weight) in written if missing(place, s, count)) / self._whole)

    def held(self, reading: Reading) -> Held:
        """Return what a row holds; nothing at all for a question without terms."""
        if not self._whole:
            return Held(0.0, False)
        total, identified, terms = 0.0, False, 0
        for place, (sought, weight, telling) in enumerate(zip(self._sought, self._weights, self._telling, strict=True)):
            if sought.in_text(reading):
                total += weight
                identified = identified or telling
                terms |= 1 << place
            elif sought.date is not None and reading.day is not None and agrees(sought.date, reading.day):
                total += weight
        return Held(min(1.0, total / self._whole), identified, terms)


class _Sought:
    """One term and how it is looked for."""

    __slots__ = ("text", "date", "telling", "_pair", "_literal", "_whole", "_sequence", "_stems", "_first", "_stem")

    def __init__(self, term: Term, date: Date | None, stem: Stem):
        self.text, self.date, self._stem = term.text, date, stem
        self.telling = date is None and term.kind == "identifier" and not _PLAIN_COMPOUND.fullmatch(term.text) and not (term.text.isdigit() and len(term.text) < 4)
        self._pair = term.text if term.kind == "bigram" else None
        self._literal = self._whole = self._sequence = None
        self._stems: tuple[str, ...] = ()
        if self._pair is not None:
            return
        if term.prefix:
            self._literal, self._whole = term.text, _piece(term.text, True)
        if term.kind == "word" or term.phrase or term.text.isalnum() or _PLAIN_COMPOUND.fullmatch(term.text):
            self._stems = tuple(stem(term.text))
            self._sequence = _sequence(self._stems) if self._stems else None
            self._first = _beginning(self._stems[0]) if self._stems else ""
        elif not term.prefix:
            self._literal, self._whole = term.text, _piece(term.text, False)

    def in_text(self, reading: Reading) -> bool:
        if self._pair is not None:
            return self._pair in reading.body
        if self._literal is not None and self._literal in reading.pieces and self._whole.search(reading.pieces):
            return True
        return self._sequence is not None and self._stands_in(reading.folded)

    def _stands_in(self, text: str) -> bool:
        """Tell whether the words stand in a folded text. The beginning is sought by itself: far quicker than by the pattern."""
        at = text.find(self._first)
        while at >= 0:
            if at and text[at - 1].isalnum():
                # Inside a word: on from its end, however often it repeats what is sought.
                end = _BETWEEN.search(text, at)
                at = text.find(self._first, end.start()) if end else -1
                continue
            if (words := self._sequence.match(text, at)) and self._stem(words[0]) == self._stems:
                return True
            at = text.find(self._first, at + 1)
        return False


def _beginning(stem: str) -> str:
    """Return what every word with this stem begins with: stemming changes at most the last letter of what it leaves."""
    return stem[:-1] if len(stem) > 2 else stem


@lru_cache(1024)
def _sequence(stems: tuple[str, ...]) -> re.Pattern:
    """Return a pattern for the words in a row, each by its beginning; the stems are compared afterwards."""
    return re.compile(r"[\W_]+".join(f"{re.escape(_beginning(s))}[^\\W_]*" for s in stems))


@lru_cache(1024)
def _piece(text: str, open_ended: bool) -> re.Pattern:
    """Return a pattern for a whole piece between blanks, less the punctuation of the sentence; or for one that begins so."""
    end = "" if open_ended else f"[{re.escape(TRAILING)}]*(?!\\S)"
    return re.compile(f"(?<!\\S)[{re.escape(LEADING)}]*{re.escape(text)}{end}")


def fold(text: str) -> str:
    """Return the text in lower case and without diacritics."""
    if text.isascii():
        return text.lower()
    return _DIACRITICS.sub("", unicodedata.normalize("NFD", text.lower()))


def idf(count: int, rows: int) -> float:
    """Return what a term found in ``count`` of ``rows`` rows weighs: ln(1 + (N - df + .5) / (df + .5)), most where none holds it."""
    count = min(count, rows)
    return math.log(1 + (rows - count + 0.5) / (count + 0.5))


def inner_names(text: str, query: LexicalQuery) -> frozenset[str]:
    """Return the words of an English question that a capital marks as names, in lower case; none of any other question."""
    if len(query.stop_words) < ENGLISH_STOP_WORDS:
        return frozenset()
    words = text.split()
    inner = [_EDGES.sub("", word) for before, word in zip(words, words[1:], strict=False) if not before.endswith((".", "?", "!"))]
    names = [word for word in inner if word[:1].isupper() and word not in _WEEKDAYS]
    # Where every noun has one (German), a capital marks nothing.
    return frozenset() if 2 * len(names) > len(words) - 1 else frozenset(_ENDING.sub("", name).lower() for name in names)


def dates_of(text: str) -> dict[str, Date]:
    """Return which terms of a question speak of a date: term -> (year, month, day), None where it names none."""
    found: dict[str, Date] = {}
    for year in _YEAR.findall(text):
        found[year] = (int(year), None, None)
    for match in _SPOKEN.finditer(text):
        before, month, after, year = match.groups()
        day, month = before or after, month.lower()
        if month in _AMBIGUOUS and not day and not year:
            continue
        found[month] = (None, _MONTHS[month], None)
        if day:
            for written in (day, day + "st", day + "nd", day + "rd", day + "th"):
                found[written] = (None, None, int(day))
    for match in _ISO.finditer(text):
        found[match[0]] = (int(match[1]), int(match[2]), int(match[3]) if match[3] else None)
    return found


def agrees(date: Date, day: tuple[int, int, int]) -> bool:
    """Tell whether a day is the date, or lies in the month or year, or is the day of the month, that it names."""
    return all(wanted is None or wanted == there for wanted, there in zip(date, day, strict=True))


def day_of(instant: float | None) -> tuple[int, int, int] | None:
    """Return the UTC day of an instant (epoch seconds)."""
    if instant is None:
        return None
    try:
        at = datetime.fromtimestamp(instant, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return at.year, at.month, at.day
