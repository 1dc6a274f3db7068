"""How much of a question a row holds: the IDF-weighted share of its content words, absolute and between 0 and 1.

Pure functions of texts. A row is read as what the full-text index was fed for it: the same words in the same spelling,
the same stems, the same runs, the same whole identifiers; so that a row holds exactly what a search for it would have
found. Beyond that a row holds a date of the question when it was written on it.

Contract: coverage.share, blend.gate.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...text.folding import as_matched
from ...text.identifiers import PERHAPS, SURELY
from ...text.passages import Span
from ...text.question import Phrase, Question
from ...text.terms import Term
from .reading import Reading, SoughtTerm, Stem

# A store does not know how common its words are elsewhere: what stands in half of an agent's rows, a name, may stand
# nowhere else. Each of its rows counts as that many more without any of the words, a few more in any store, and so many
# at most.
ELSEWHERE, ELSEWHERE_LEAST, ELSEWHERE_MOST = 4, 10, 2_500
# An identifier that stands in more rows than either of these names no row in particular.
TELLING_ROWS, TELLING_SHARE = 10, 0.01
APART = 0.5  # what words that the question quotes together are worth where they do not stand so
# A name in so many rows, as a share of the agent's, and no fewer than three, is that of one whom the store is about.
FAMILIAR_SHARE, FAMILIAR_ROWS = 0.03, 3
# A question with so many words beside an identifier that no row holds asks for nothing else.
WORDS_BESIDE = 2

# Whether a row holds a term; the second tells it of a text, where words are not enough.
Holds = Callable[[Term, Callable[[str], bool] | None], bool]

_REPEATED, _USUAL_LENGTH = 1.2, 400  # as bm25 damps repetition, in a row of so many characters
_PLACES = 20  # of a part in a text that are looked at
_STEM, _ENDING = 4, 3  # letters that a word keeps in any form, at least, and those that it may lose


class Held(NamedTuple):
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
        self._sought = [SoughtTerm(term, question.dates.get(term.text), stem) for term in terms]
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

    def _names_one(self, sought: SoughtTerm) -> bool:
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

    def places(self, text: str, spans: Sequence[Span], most: int) -> list[int]:
        """Return which of the spans of a text hold most of the question's words as far as their letters tell, the best
        first; none that holds nothing. ``spans`` ascend.
        """
        lower = text.lower()
        weights = [0.0] * len(spans)
        starts = [span.start for span in spans]
        for sought, weight in zip(self._sought, self._weights, strict=True):
            seen: set[int] = set()
            needle, at = _letters(sought.text), -1
            for _ in range(_PLACES):
                if (at := lower.find(needle, at + 1)) < 0:
                    break
                # Where two passages share a sentence, both hold it.
                last = bisect_right(starts, at) - 1
                seen.update(place for place in (last, last - 1) if place >= 0 and at < spans[place].end)
            for place in seen:
                weights[place] += weight
        best = sorted((place for place, weight in enumerate(weights) if weight), key=lambda place: -weights[place])
        return best[:most]

    def said(self, reading: Reading) -> float:
        """Return how much a row says the words of the question, for its length: what chooses between rows that hold the
        same ones.
        """
        return self._repeated(reading, [sought.times(reading) for sought in self._sought])

    def bm25(self, reading: Reading) -> float:
        """Return about what the full-text index would rank a row by, had it the row: negative, 0.0 where it holds no
        term.
        """
        held = [sought.in_text(reading) and max(1, sought.times(reading)) for sought in self._sought]
        return -(_REPEATED + 1) * self._repeated(reading, held)

    def _repeated(self, reading: Reading, times: Sequence[int]) -> float:
        """Return the weights of the terms, each by how often a row holds it, for its length."""
        damped = _REPEATED * (0.25 + 0.75 * len(reading.told) / _USUAL_LENGTH)
        return sum(weight * n / (n + damped) for n, weight in zip(times, self._weights, strict=True))


def _letters(term: str) -> str:
    """Return what a text has that holds a term in some form: its beginning, in lower case."""
    return term.lower()[: max(_STEM, len(term) - _ENDING)]


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
