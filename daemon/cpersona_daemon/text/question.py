"""A question, read once: what it asks for, in which language, of when, and whom it names.

It is made where a recall begins and handed on; what only some recalls need is read when first asked for.

Contract: recall.blank, blend.language, versions.order.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from ..shared.periods import DAYS
from . import operators
from .dates import Named, dates_of, spellings
from .form import sentence_form
from .identifiers import Spelling
from .language import is_english
from .operators import Typed
from .terms import LexicalQuery, Term, parse_query

NOW, PAST = "now", "past"
# From this many English stop words on a question is English, where a capital inside the sentence marks a name.
ENGLISH_STOP_WORDS = 2

_NOW = re.compile(
    r"\b(now|nowadays|current(ly)?|today|present(ly)?|at the moment|these days|still|latest|newest|most recent"
    r"|up to date|any ?more)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(was|were|did|had|used to|before|previous(ly)?|former(ly)?|earlier|original(ly)?|initial(ly)?|ago|back then"
    r"|at first|in the past|no longer|last (year|month|week|spring|summer|autumn|fall|winter|january|february|march"
    r"|april|may|june|july|august|september|october|november|december))\b",
    re.IGNORECASE,
)
_PRESENT = re.compile(r"\b(is|are|am|do|does|has|have|can|will|should|must)\b", re.IGNORECASE)
_EDGES = re.compile(r"^\W+|\W+$")
_ENDING = re.compile(r"['’](?:s|ll|d|re|ve|m)$")
_ACRONYM = re.compile(r"\b[A-Z]{2,5}s?\b")
_DATES = 4  # of a question that are looked for in their other spellings
_WEEKDAYS = frozenset(map(str.capitalize, DAYS))


class Phrase(NamedTuple):
    """Words that a question quotes: the place of the term that stands for them together, and of those of its words."""

    text: str
    place: int
    words: tuple[int, ...]


class Question:
    """One question with everything that can be read off its text alone.

    ``meant`` says what it quotes and leaves out, where that counts; ``text`` is what is asked then. ``phrases`` are
    among the terms, and ``without`` holds a term for each text that no row may hold. ``wording``: a row must hold what
    is quoted, since nothing else is asked.

    ``blank``: nothing is asked. ``wordless``: something is, and no word, number or emoji is in it: nothing to look for
    but the very characters. ``also`` holds other names of what it mentions: only the full-text channels and the
    coverage see them, and there they add to what a row holds and never to what there is to hold. ``with_spellings``:
    its identifiers are asked for in their other spellings too, which a blend does.
    """

    def __init__(
        self, text: str, also: tuple[str, ...] = (), with_spellings: bool = False, meant: Typed | None = None
    ) -> None:
        self.meant = meant or Typed(text)
        self.text, self.also, self.with_spellings = self.meant.text, also, with_spellings
        self.blank = not text.strip()
        parsed = self._parsed(self.text)
        self.phrases, together = self._phrases(parsed.terms)
        self.written: LexicalQuery = replace(parsed, terms=(*parsed.terms, *together)) if together else parsed
        self.wording = self.meant.only_quoted and bool(self.phrases)
        self.without = tuple(term for text in self.meant.without if (term := operators.term_of(text)) is not None)

    def as_written(self) -> Question:
        """Return the same question without its other names."""
        return Question(self.text, with_spellings=self.with_spellings, meant=self.meant)

    def as_it_stands(self, text: str) -> Question:
        """Return the same question with the whole of its ``text`` asked for: nothing is left out."""
        meant = replace(self.meant, text=text, without=(), only_quoted=False)
        return Question(text, self.also, self.with_spellings, meant)

    def _parsed(self, text: str) -> LexicalQuery:
        return parse_query(text, with_spellings=self.with_spellings)

    def _phrases(self, terms: tuple[Term, ...]) -> tuple[tuple[Phrase, ...], list[Term]]:
        """Return what is quoted, and the terms that must be asked for besides: words that stand together."""
        places = {term.text: place for place, term in enumerate(terms)}
        found: list[Phrase] = []
        together: list[Term] = []
        for text in self.meant.quoted:
            words = tuple(places[term.text] for term in self._parsed(text).terms if term.text in places)
            if (phrase := operators.phrase(text)) is not None:
                found.append(Phrase(text, len(terms) + len(together), words))
                together.append(phrase)
            elif words:
                found.append(Phrase(text, words[0], ()))
        return tuple(found), together

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms as written."""
        return self.written.terms

    @property
    def wordless(self) -> bool:
        return not self.blank and not self.written.terms

    @property
    def searched(self) -> LexicalQuery:
        """What the full-text channels are asked for: the terms as written and those of the other names, and its dates
        in every spelling.
        """
        found = self.written
        if self.also:
            more = self._parsed("\n".join((self.text, *self.also)))
            found = replace(more, terms=(*more.terms, *(term for term in self.terms if term.kind == "phrase")))
        if self._dated:
            others = (term for term in found.terms if term.text not in self._dated)
            found = replace(found, terms=(*others, *self._dated.values()))
        return found

    @property
    def characters(self) -> str:
        """The text that a row holds if it holds the whole question as it stands: without quotes around all of it."""
        quoted = self.meant.quoted
        return quoted[0] if self.wording and len(quoted) == 1 else self.text

    @cached_property
    def other_terms(self) -> tuple[Term, ...]:
        """The terms of the other names that are not in the question as written."""
        known = {term.text for term in self.written.terms}
        return tuple(term for text in self.also for term in self._parsed(text).terms if term.text not in known)

    @cached_property
    def english(self) -> bool:
        return is_english(self.text)

    @cached_property
    def sentence(self) -> float:
        """1 for a sentence, 0 for the keywords of a search box, between them for what may be either."""
        return sentence_form(self.text)

    @cached_property
    def dates(self) -> dict[str, Named]:
        """Which of its terms speak of a date, and of which."""
        return dates_of(self.text)

    @cached_property
    def _dated(self) -> dict[str, Term]:
        """Terms that find its dates in their other spellings, by the spelling of ISO; none where such are not asked
        for.
        """
        found: dict[str, Term] = {}
        if self.with_spellings:
            asked = dict.fromkeys(date for named in self.dates.values() for date in named.readings)
            for date in [date for date in asked if date[1] and (date[0] or date[2])][:_DATES]:
                iso, others = spellings(date)
                (term,) = parse_query(iso).terms
                found[iso] = replace(term, others=tuple(map(Spelling, others)))
        return found

    @cached_property
    def names(self) -> frozenset[str]:
        """The words of an English question that a capital marks as names, in lower case; none of any other question."""
        return inner_names(self.text, self.written)

    @cached_property
    def acronyms(self) -> frozenset[str]:
        """Its words in capitals alone (SQL, APIs), in lower case: the one who answers need not have used them."""
        return frozenset(word.lower() for word in _ACRONYM.findall(self.text))

    def typed(self, term: str) -> str:
        """Return a term, which is in lower case, as it stands in the question."""
        found = re.search(re.escape(term), self.text, re.IGNORECASE)
        return found[0] if found else term

    @cached_property
    def about(self) -> str | None:
        """Whether it is about NOW or the PAST; None where nothing in it tells.

        A word for now counts before a past tense, and a past tense or a date before a present one.
        """
        if _NOW.search(self.text):
            return NOW
        if _PAST.search(self.text) or self.dates:
            return PAST
        return NOW if _PRESENT.search(self.text) else None


def inner_names(text: str, query: LexicalQuery) -> frozenset[str]:
    """Return the words of an English question that a capital marks as names, in lower case; none of any other
    question.
    """
    if len(query.stop_words) < ENGLISH_STOP_WORDS:
        return frozenset()
    words = text.split()
    inner = [
        _EDGES.sub("", word)
        for before, word in zip(words, words[1:], strict=False)
        if not before.endswith((".", "?", "!"))
    ]
    names = [word for word in inner if word[:1].isupper() and word not in _WEEKDAYS]
    # Where every noun has one (German), a capital marks nothing.
    return (
        frozenset() if 2 * len(names) > len(words) - 1 else frozenset(_ENDING.sub("", name).lower() for name in names)
    )
