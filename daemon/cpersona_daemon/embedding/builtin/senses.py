"""Which words mean something to the models: one cut into crumbs has a vector, and it points nowhere.

Pure functions of words and of how many pieces vocabularies make of them.

Contract: embedding.sense.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

LEAST_LETTERS = 2.25  # of a piece in the mean: graphql is three pieces of seven letters, asdfghjkl five of nine
LEAST_PART = 3  # letters of a part of an identifier that counts as a word
_LETTERS = re.compile(r"[^\W\d_]+")
_LAST_LATIN = 0x24F

Pieces = Callable[[str], int]


def share(words: Sequence[str], vocabularies: Sequence[Pieces]) -> float:
    """Return the share of some words that mean something; numbers count with none, alone they mean nothing.

    A word does if one of the vocabularies knows it, or long enough pieces of it. An identifier does by any of its
    words. Beyond Latin letters every word does.
    """
    told = [known for word in words if (known := _known(word, vocabularies)) is not None]
    if told:
        return sum(told) / len(told)
    return 0.0 if words else 1.0


def _known(word: str, vocabularies: Sequence[Pieces]) -> bool | None:
    runs = _LETTERS.findall(word)
    if runs == [word]:
        return _means(word, vocabularies)
    if not runs:
        return None
    return any(len(run) >= LEAST_PART and _means(run, vocabularies) for run in runs)


def _means(run: str, vocabularies: Sequence[Pieces]) -> bool:
    if any(ord(letter) > _LAST_LATIN for letter in run):
        return True
    if len(run) == 1 or len(set(run)) == 1:
        return False
    fewest = max(1, min(pieces(run) for pieces in vocabularies))
    return fewest == 1 or len(run) / fewest >= LEAST_LETTERS
