"""How much of a question a row holds: the IDF-weighted share of its content words, absolute and between 0 and 1.

Pure functions of texts. A row is read as what the full-text index was fed for it: the same words in the same spelling,
the same stems, the same runs, the same whole identifiers; so that a row holds exactly what a search for it would have
found. Beyond that a row holds a date of the question when it was written on it.

Contract: coverage.share, blend.gate.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...text.dates import Day, Named, agrees, day_of, is_named, is_near
from ...text.folding import as_matched
from ...text.identifiers import NONE, PERHAPS, SURELY, as_checked, humped
from ...text.question import Phrase, Question
from ...text.spelling import RUN, normalise, spelled, words, written
from ...text.terms import IDENTIFIER_LENGTH, Term, beside, quoted

# A store does not know how common its words are elsewhere: what stands in half of an agent's rows, a name, may stand
# nowhere else. Each of its rows counts as that many more without any of the words, a few more in any store, and so many
# at most.
ELSEWHERE, ELSEWHERE_LEAST, ELSEWHERE_MOST = 4, 10, 2_500
# An identifier that stands in more rows than either of these names no row in particular.
TELLING_ROWS, TELLING_SHARE = 10, 0.01
NEAR = 0.75  # of the worth of a date, what a row has that was written in its month or in the days after
APART = 0.5  # what words that the question quotes together are worth where they do not stand so
# A name in so many rows, as a share of the agent's, and no fewer than three, is that of one whom the store is about.
FAMILIAR_SHARE, FAMILIAR_ROWS = 0.03, 3
# A word inside another one in camel case (mongo in MongoEngine) is worth so much of one that stands by itself.
WITHIN_WORD = 0.7
# A question with so many words beside an identifier that no row holds asks for nothing else.
WORDS_BESIDE = 2

Stem = Callable[[str], Sequence[str]]
# Whether a row holds a term; the second tells it of a text, where words are not enough.
Holds = Callable[[Term, Callable[[str], bool] | None], bool]

_REPEATED, _USUAL_LENGTH = 1.2, 400  # as bm25 damps repetition, in a row of so many characters
_PLACES = 20  # of a part in a text that are looked at
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

    ``name``: it names something that none holds; ``familiar``: it names someone whom many rows name, so that all of
    those are near to it; ``share``: where it does, the part of its weight that lies on words that none holds.
    ``absent`` are the identifiers that none holds in any spelling, or the day that is all that is asked for; ``bare``:
    the question is little else than those.
    """

    name: bool = False
    familiar: bool = False
    share: float = 0.0
    absent: tuple[str, ...] = ()
    bare: bool = False


class Reading:
    """A row as the matching sees it: its words between blanks, and with what the index holds of it beside them; that is
    made when first needed.
    """

    __slots__ = ("words", "_text", "_whole", "_instant", "_humped", "_checked", "_of")

    def __init__(self, text: str, instant: float | None) -> None:
        self.words, self._text, self._instant = words(text), text, instant
        self._whole: str | None = None
        self._humped: str | None = None
        self._checked: str | None = None
        self._of: dict[Named, float] = {}

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


class Sought:
    """The terms of one question with their weights, ready to be looked for in many rows.

    ``rows`` is the number of rows that were counted, the asker's own, and ``found`` in how many of them each term
    stands; both may be empty (0 and ()), every term then weighs the same. ``also_found`` tells it of the terms of other
    names. ``all``: the asker has no other rows.
    """

    def __init__(
        self,
        question: Question,
        stem: Stem,
        rows: int = 0,
        found: Sequence[int] = (),
        also_found: Sequence[int] = (),
        all: bool = True,
    ) -> None:
        self.rows, self._all = rows, all
        terms = (*question.terms, *question.other_terms)
        counts = (*found, *also_found) if rows else (0,) * len(terms)
        self._sought = [_SoughtTerm(term, question.dates.get(term.text), stem) for term in terms]
        for one, other in zip(self._sought, self._sought[1:], strict=False):
            one.together, other.together = (*one.together, one.text + other.text), (one.text + other.text,)
        world = rows + ELSEWHERE_LEAST + min(ELSEWHERE_MOST, ELSEWHERE * rows)
        self._weights = [idf(count, world) for count in counts]
        self._join(question.phrases)
        self._whole = sum(self._weights[: len(question.terms)])
        few = max(TELLING_ROWS, rows * TELLING_SHARE)
        self._telling = [s.telling and count <= few for s, count in zip(self._sought, counts, strict=True)]
        self._names, self._terms, self._counts = question.names, question.terms, tuple(found)
        self._acronyms = question.acronyms
        self._asks_more = any(term.text not in question.dates for term in question.terms)
        # The text of a question for a day alone.
        days = any(date.names_a_day for date in question.dates.values())
        self._day = question.text.strip() if days and not self._asks_more else ""

    def _join(self, phrases: Sequence[Phrase]) -> None:
        """Let words that are quoted together weigh as much as they do anyway, and apart only a share of it."""
        alone = list(self._weights)
        for phrase in phrases:
            if phrase.words:
                self._weights[phrase.place] = (1 - APART) * sum(alone[place] for place in phrase.words)
                for place in phrase.words:
                    self._weights[place] = APART * alone[place]

    def unmet(self, rows: int, held: int, holds: Holds) -> Unmet:
        """Return what none of an agent's ``rows`` memories holds.

        ``held`` has a bit for every term that is known to be held, as ``Held.terms`` has; of the others ``holds`` is
        asked, with what tells of a text whether it holds the term, None where words are enough.

        Nothing where there is no index to count by.
        """
        if not self.rows or not self._whole:
            return Unmet()
        # Only the terms as written were counted; other names come after them.
        asked = len(self._counts)
        if self._lacks_its_day(held & (1 << asked) - 1):
            return Unmet(name=True, absent=(self._day,), bare=True)
        least = PERHAPS if asked == 1 else SURELY
        missing = [
            s
            for place, s in enumerate(self._sought[:asked])
            if (self._names_one(s) or s.naming >= least) and self._missing(place, held, holds)
        ]
        if missing:
            absent = tuple(s.text for s in missing if s.naming >= least)
            return Unmet(name=True, absent=absent, bare=bool(absent) and asked - len(absent) <= WORDS_BESIDE)
        return self._familiar(rows, held, holds)

    def _lacks_its_day(self, held: int) -> bool:
        """Tell whether a day is all that is asked for, and no row has it."""
        return bool(self._day) and not held

    def _familiar(self, rows: int, held: int, holds: Holds) -> Unmet:
        """Return how much of a question none holds, where it is about someone whom many of the rows name."""
        written = list(zip(self._sought, self._counts, self._weights, strict=False))
        many = max(FAMILIAR_ROWS, FAMILIAR_SHARE * min(rows, self.rows))
        if not any(s.text in self._names and count >= many for s, count, _ in written):
            return Unmet()
        return Unmet(
            familiar=True,
            share=sum(weight for place, (_, _, weight) in enumerate(written) if self._missing(place, held, holds))
            / self._whole,
        )

    def _names_one(self, sought: _SoughtTerm) -> bool:
        return sought.telling or sought.text in self._names and sought.text not in self._acronyms

    def _missing(self, place: int, held: int, holds: Holds) -> bool:
        sought, count = self._sought[place], self._counts[place]
        if sought.date is not None:
            return False
        return not (count or not self._all) or not (
            held >> place & 1 or holds(self._terms[place], sought.reads if sought.checks else None)
        )

    def held(self, reading: Reading) -> Held:
        """Return what a row holds; nothing at all for a question without terms."""
        if not self._whole:
            return Held(0.0, False)
        total, identified, terms = 0.0, False, 0
        for place, (sought, weight, telling) in enumerate(zip(self._sought, self._weights, self._telling, strict=True)):
            if sought.stands_in(reading):
                total += weight * sought.worth(reading)
                identified = identified or telling
                terms |= 1 << place
            elif sought.date is not None and (share := reading.tells_of(sought.date, self._asks_more)):
                total += weight * share
                terms |= (share == 1.0) << place
        return Held(min(1.0, total / self._whole), identified, terms)

    def said(self, reading: Reading) -> float:
        """Return how much a row says the words of the question, for its length: what chooses between rows that hold the
        same ones.
        """
        damped = _REPEATED * (0.25 + 0.75 * len(reading.words) / _USUAL_LENGTH)
        return sum(
            weight * (n := sought.times(reading)) / (n + damped)
            for sought, weight in zip(self._sought, self._weights, strict=True)
        )


class _SoughtTerm:
    """One term and how it is looked for: as a pair inside a run, or in any of the forms that the index is asked for."""

    __slots__ = (
        "text", "date", "together", "telling", "naming", "checks", "_check", "_others", "_first", "_pair",
        "_hint", "_prefix", "_forms", "_is_one_word", "_stem",
    )  # fmt: skip

    def __init__(self, term: Term, date: Named | None, stem: Stem) -> None:
        self.text, self.date, self._stem = term.text, date, stem
        self.together: tuple[str, ...] = ()  # the term and one beside it in the question, as one word
        self.naming = term.naming if date is None else NONE
        self.telling = date is None and _tells(term)
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
        apart = self.date is not None and not self.date.alone and self.date.names_a_day
        return not apart and self.in_text(reading)

    def in_text(self, reading: Reading) -> bool:
        if self._pair is not None:
            return self._pair in reading.words
        if self._as_written(reading) and (not self._check or self._check.search(reading.checked)):
            return True
        return any(
            self._holds_one(reading, forms) and (not check or check.search(reading.checked))
            for check, forms in self._others
        )

    def worth(self, reading: Reading) -> float:
        """Return how much of the term a row holds that holds it: less where it is a part of a longer word, and the
        words beside it in the question are not.
        """
        if not self._is_one_word or self.naming or not self._first or self._first not in reading.humped:
            return 1.0
        whole = any(self._stands_in(reading.words, *form) for form in self._forms)
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
        return reading.words.count(sought) or (reading.whole.count(sought) if self._first in reading.humped else 0)

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
    sought = [_SoughtTerm(term, None, stem) for term in terms]

    def holds(text: str) -> bool:
        reading = Reading(text, None)
        return any(term.in_text(reading) for term in sought)

    return holds


def _beginning(stem: str) -> str:
    """Return what every word with this stem begins with: stemming changes at most the last letter of what it leaves."""
    return stem[:-1] if len(stem) > 2 else stem


def idf(count: int, rows: int) -> float:
    """Return what a term found in ``count`` of ``rows`` rows weighs: ln(1 + (N - df + .5) / (df + .5)), most where none
    holds it.
    """
    count = min(count, rows)
    return math.log(1 + (rows - count + 0.5) / (count + 0.5))


def share_of_words(text: str, part: str) -> float:
    """Return the share of the words that a part of them stands in, ASCII letters in either case: 1 for whole words, 0
    for no part.
    """
    needle, body = as_matched(part.strip()), as_matched(text)
    at, best = body.find(needle) if needle else -1, 0.0
    for _ in range(_PLACES):
        if at < 0:
            break
        end = at + len(needle)
        begin = at
        while begin and body[begin].isalnum() and body[begin - 1].isalnum():
            begin -= 1
        while end < len(body) and body[end].isalnum() and body[end - 1].isalnum():
            end += 1
        best = max(best, len(needle) / (end - begin))
        at = body.find(needle, at + 1)
    return best
