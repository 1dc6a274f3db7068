"""A question, read once: what it asks for, in which language, of when, and whom it names.

It is made where a recall begins and handed on; what only some recalls need is read when first asked for.

Contract: recall.blank, blend.language, versions.order.
"""

from __future__ import annotations

import re
from functools import cached_property

from .dates import Date, dates_of
from .language import is_english
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
_WEEKDAYS = frozenset("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split())


class Question:
    """One question with everything that can be read off its text alone.

    ``blank``: nothing is asked. ``wordless``: something is, and no word, number or emoji is in it: nothing to look for
    but the very characters. ``also`` holds other names of what it mentions: only the full-text channels and the
    coverage see them, and there they add to what a row holds and never to what there is to hold. ``with_spellings``:
    its identifiers are asked for in their other spellings too, which a blend does.
    """

    def __init__(self, text: str, also: tuple[str, ...] = (), with_spellings: bool = False) -> None:
        self.text, self.also, self.with_spellings = text, also, with_spellings
        self.blank = not text.strip()
        self.written: LexicalQuery = self._parsed(text)

    def as_written(self) -> Question:
        """Return the same question without its other names."""
        return Question(self.text, with_spellings=self.with_spellings)

    def _parsed(self, text: str) -> LexicalQuery:
        return parse_query(text, with_spellings=self.with_spellings)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms as written."""
        return self.written.terms

    @property
    def wordless(self) -> bool:
        return not self.blank and not self.written.terms

    @property
    def searched(self) -> LexicalQuery:
        """What the full-text channels are asked for: the terms as written and those of the other names."""
        return self._parsed("\n".join((self.text, *self.also))) if self.also else self.written

    @cached_property
    def other_terms(self) -> tuple[Term, ...]:
        """The terms of the other names that are not in the question as written."""
        known = {term.text for term in self.written.terms}
        return tuple(term for text in self.also for term in self._parsed(text).terms if term.text not in known)

    @cached_property
    def english(self) -> bool:
        return is_english(self.text)

    @cached_property
    def dates(self) -> dict[str, Date]:
        """Which of its terms speak of a date."""
        return dates_of(self.text)

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
