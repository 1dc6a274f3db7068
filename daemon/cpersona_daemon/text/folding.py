"""The forms that whole texts are compared in, one for each purpose. Pure functions.

Plain words between single blanks look the same in all of them: in lower case. Where they differ, each has its reason,
and a test holds an example of every pair: a name is kept in the database in its form, so that it may never change; what
a person means by a text does not hang on typographic marks; what a caller wants left out is compared as the text it was
given; and a part of a word is one where SQLite's LIKE finds it. How words are spelled for the index, ``spelling`` says.

Contract: associations.names, exists.words, exclude.texts, lexical.keyword.
"""

from __future__ import annotations

import unicodedata

from .spelling import normalise

_LOWER_ASCII = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def as_name(text: str) -> str:
    """Return the form that declared names are compared and kept in: NFKC, case-folded, white space collapsed."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def as_meant(text: str) -> str:
    """Return the form in which one text holds another: one apostrophe and one dash, nothing that has no shape,
    case-folded, white space collapsed, trimmed.
    """
    return " ".join(normalise(text).casefold().split())


def as_given(text: str) -> str:
    """Return the form that a caller's own texts are compared in: trimmed and in lower case, and every character as it
    is.
    """
    return text.strip().lower()


def as_matched(text: str) -> str:
    """Return the form that SQLite's LIKE compares: ASCII letters in lower case, every other character as it is."""
    return text.translate(_LOWER_ASCII)
