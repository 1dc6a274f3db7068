"""A row as the matching reads it, and one term of a question that is looked for in it.

Pure functions of texts.

Contract: coverage.share, lexical.spellings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from ...shared import commit_notes
from ...text.dates import Day, Named, agrees, day_of, is_named, is_near
from ...text.identifiers import NONE, SURELY, as_checked, humped
from ...text.spelling import RUN, normalise, spelled, words, written
from ...text.terms import IDENTIFIER_LENGTH, Term, beside, quoted

NEAR = 0.75  # of the worth of a date, what a row has that was written in its month or in the days after
# A word inside another one in camel case (mongo in MongoEngine) is worth so much of one that stands by itself, and
# so is one in the paths that a commit's note lists.
WITHIN_WORD = 0.7

LONG = 2_000  # characters of a text whose words are kept for the next question, as those of the last KEPT are
KEPT = 256

Stem = Callable[[str], Sequence[str]]
_PLAIN_COMPOUND = re.compile(r"[^\W\d_]+(?:(?:[-'][^\W\d_]+)*|/[^\W\d_]+)")  # dry-run, and/or


@lru_cache(KEPT)
def _words_of_long(text: str) -> str:
    return words(text)


class Reading:
    """A row as the matching sees it: its words between blanks, and with what the index holds of it beside them; that is
    made when first needed.
    """

    __slots__ = ("words", "_text", "_told", "_whole", "_instant", "_humped", "_checked", "_of")

    def __init__(self, text: str, instant: float | None) -> None:
        self.words = words(text) if len(text) < LONG else _words_of_long(text)
        self._text, self._instant = text, instant
        self._told: str | None = None
        self._whole: str | None = None
        self._humped: str | None = None
        self._checked: str | None = None
        self._of: dict[Named, float] = {}

    @property
    def told(self) -> str:
        """Its words without those of the paths that a commit's note lists: ``words`` itself where it lists none."""
        if self._told is None:
            message, files, end = commit_notes.parts(self._text)
            self._told = words(message + end) if files else self.words
        return self._told

    @property
    def whole(self) -> str:
        if self._whole is None:
            tokens = beside(normalise(self._text))
            self._whole = f"{self.words}{tokens} " if tokens else self.words
        return self._whole

    @property
    def humped(self) -> str:
        """Its runs of words in camel case."""
        if self._humped is None:
            self._humped = humped(self._text)
        return self._humped

    @property
    def checked(self) -> str:
        """The text that the spelling of an identifier is checked in."""
        if self._checked is None:
            self._checked = as_checked(self._text)
        return self._checked

    @property
    def day(self) -> Day | None:
        """The day the row tells of (UTC), None where it names none."""
        return day_of(self._instant)

    def tells_of(self, date: Named, asks_more: bool) -> float:
        """Return how much of a date the row has: all of it, if the row is of it or its text names it in whatever
        spelling; a part, if it was written near to it and the question is for more than the date; else nothing.
        """
        if date not in self._of:
            self._of[date] = self._share_of(date, asks_more)
        return self._of[date]

    def _share_of(self, date: Named, asks_more: bool) -> float:
        day = self.day
        for reading in date.readings:
            if day is not None and agrees(reading, day) or is_named(reading, self._text, day):
                return 1.0
        near = asks_more and day is not None and any(is_near(reading, day) for reading in date.readings)
        return NEAR if near else 0.0


class SoughtTerm:
    """One term and how it is looked for: as a pair inside a run, or in any of the forms that the index is asked for."""

    __slots__ = (
        "text", "date", "together", "telling", "naming", "checks", "_check", "_others", "_first", "_pair",
        "_hint", "_prefix", "_forms", "_is_one_word", "_is_of_a_day", "_stem",
    )  # fmt: skip

    def __init__(self, term: Term, date: Named | None, stem: Stem) -> None:
        self.text, self.date, self._stem = term.text, date, stem
        self.together: tuple[str, ...] = ()  # the term and one beside it in the question, as one word
        self.naming = term.naming if date is None else NONE
        self.telling = date is None and _tells(term)
        self._is_of_a_day = date is not None and not date.alone and date.names_a_day
        self.checks = bool(term.check or any(other.check for other in term.others))
        self._check = term.check and re.compile(term.check)
        self._pair = _run_of(term)
        self._prefix = f" {term.prefix}"
        self._forms = self._made(term.token, term.phrase)
        self._others = [
            (other.check and re.compile(other.check), self._made(quoted(other.words))) for other in term.others
        ]
        self._is_one_word = term.text.isalpha() or term.text.isdecimal()
        self._hint = self._hint_of(term)
        self._first = self._hint.split()[0] if self._hint else ""

    def _made(self, *forms: str) -> list[tuple[str, tuple[str, ...]]]:
        return [(f" {_beginning(stems[0])}", stems) for form in forms if (stems := tuple(self._stem(form)))]

    def _hint_of(self, term: Term) -> str:
        """Return what stands among the words of every row that holds the term; '' where it is a pair."""
        if self._pair is not None:
            return ""
        if self._is_one_word:
            return _beginning(self._forms[0][1][0])
        return spelled(term.text[:IDENTIFIER_LENGTH]).strip()

    def reads(self, text: str) -> bool:
        """Tell whether a text holds the term."""
        return self.in_text(Reading(text, None))

    def stands_in(self, reading: Reading) -> bool:
        """Tell whether a row holds the term. A word of a date with its day is held with all of the date or not."""
        return not self._is_of_a_day and self.in_text(reading)

    def in_text(self, reading: Reading) -> bool:
        if self._pair is not None:
            return self._pair in reading.words
        if self._as_written(reading) and (not self._check or self._check.search(reading.checked)):
            return True
        return bool(self._others) and any(
            self._holds_one(reading, forms) and (not check or check.search(reading.checked))
            for check, forms in self._others
        )

    def worth(self, reading: Reading) -> float:
        """Return how much of the term a row holds that holds it: less where it is a part of a longer word, or of the
        path of a file alone, and the words beside it in the question are not.
        """
        if not self._is_one_word or self.naming or not self._first:
            return 1.0
        if reading.told is reading.words and self._first not in reading.humped:
            return 1.0
        whole = any(self._stands_in(reading.told, *form) for form in self._forms)
        return 1.0 if whole or any(words in reading.humped for words in self.together) else WITHIN_WORD

    def _as_written(self, reading: Reading) -> bool:
        for first, stems in self._forms:
            if self._stands_in(reading.words, first, stems):
                return True
        # What stands beside a row's words stands among them too, if only glued to others.
        if not self._may_stand_beside(reading):
            return False
        whole = reading.whole
        return (
            len(self._prefix) > 1
            and self._prefix in whole
            or whole is not reading.words
            and any(self._stands_in(whole, *form) for form in self._forms)
        )

    def _may_stand_beside(self, reading: Reading) -> bool:
        if self._first and self._first in reading.humped:
            return True
        if self._is_one_word:
            return self._is_glued_in(reading.words)
        return self._hint in reading.words or " ".join(self._hint.split()) in reading.words

    def _holds_one(self, reading: Reading, forms: list[tuple[str, tuple[str, ...]]]) -> bool:
        return any(
            self._stands_in(reading.words, first, stems)
            or first.strip() in reading.humped
            and self._stands_in(reading.whole, first, stems)
            for first, stems in forms
        )

    def _is_glued_in(self, text: str) -> bool:
        """Tell whether the word may stand beside a digit, or a number beside a letter, in one run of them."""
        at = text.find(self._hint)
        while at >= 0:
            begin, end = text.rfind(" ", 0, at), text.find(" ", at)
            if not (run := text[begin + 1 : end]).isalpha() and not run.isdecimal():
                return True
            at = text.find(self._hint, end)
        return False

    def times(self, reading: Reading) -> int:
        """Return how often a row holds the beginning of the term, which is about how often it holds the term."""
        if not (sought := self._pair or (self._forms and self._forms[0][0])):
            return 0
        return (
            reading.told.count(sought)
            or reading.words.count(sought)
            or (reading.whole.count(sought) if self._first in reading.humped else 0)
        )

    def _stands_in(self, text: str, first: str, stems: tuple[str, ...]) -> bool:
        """Tell whether words with these stems follow each other in a text. The beginning of the first is sought by
        itself: few words have it.
        """
        at, stem = text.find(first), self._stem
        while at >= 0:
            end = text.find(" ", at + 1)
            if stem(text[at + 1 : end]) == stems[:1] and (len(stems) == 1 or self._goes_on(text, end, stems[1:])):
                return True
            at = text.find(first, end)
        return False

    def _goes_on(self, text: str, at: int, stems: tuple[str, ...]) -> bool:
        following = text[at:].split(maxsplit=len(stems))[: len(stems)]
        return len(following) == len(stems) and all(
            self._stem(word) == (stem,) for word, stem in zip(following, stems, strict=True)
        )


def _tells(term: Term) -> bool:
    """Tell whether a term identifies something, so that few rows are meant by it."""
    if term.naming == SURELY:
        return True
    short = term.text.isdigit() and len(term.text) < 4
    return term.kind == "identifier" and not short and not _PLAIN_COMPOUND.fullmatch(term.text)


def _run_of(term: Term) -> str | None:
    """Return what is looked for inside runs, where a term asks for such; None for one of words."""
    if term.kind == "bigram":
        return written(term.text)
    return words(term.text).strip() if term.kind == "phrase" and RUN.search(term.text) else None


def holder(terms: Sequence[Term], stem: Stem) -> Callable[[str], bool]:
    """Return a test for texts: whether one holds any of some terms."""
    sought = [SoughtTerm(term, None, stem) for term in terms]

    def holds(text: str) -> bool:
        reading = Reading(text, None)
        return any(term.in_text(reading) for term in sought)

    return holds


def _beginning(stem: str) -> str:
    """Return what every word with this stem begins with: stemming changes at most the last letter of what it leaves."""
    return stem[:-1] if len(stem) > 2 else stem
