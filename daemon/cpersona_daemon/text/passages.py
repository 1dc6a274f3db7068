"""A long text as passages: stretches of whole sentences that a model takes in at once. Pure functions.

What a text of many pages says in one place is lost in a vector of all of it. Lengths are bytes of UTF-8, of which a
model's pieces of words have about as many in every script: 120 words of English, 240 characters of Chinese.

Contract: passages.split.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..shared.fields import LONG_BYTES

PASSAGE_BYTES = 720
LEAST_BYTES = 240  # what is shorter at the end of a text joins the passage before it
OVERLAP_BYTES = 240  # a sentence that is longer is not said twice
FULL = 0.6  # of a passage, from which on it ends with its paragraph

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_SENTENCE_END = re.compile(r"[.!?\u2026][\"'\u201d\u2019)\]]*\s+|[\u3002\uff01\uff1f][\u300d\u300f\uff09]*\s*|\n\s*")
_BREAK = re.compile(r"\s+")


class Span(NamedTuple):
    """The code points [start, end) of a text."""

    start: int
    end: int


class _Sentence(NamedTuple):
    start: int
    end: int
    bytes: int
    ends_paragraph: bool


def is_long(text: str) -> bool:
    """Return whether a text is too long to be taken in at once."""
    return len(text) > LONG_BYTES or len(text) * 4 > LONG_BYTES and _bytes(text) > LONG_BYTES


def split(text: str) -> list[Span]:
    """Return the passages of a text in order, none of one that is not long.

    Every sentence is in one, and the last of a passage begins the next one too, unless it is a long one. What has no
    end of a sentence for long is cut between words.
    """
    if not is_long(text):
        return []
    passages: list[Span] = []
    current: list[_Sentence] = []
    size = 0
    for sentence in _sentences(text):
        if current and (size + sentence.bytes > PASSAGE_BYTES or (current[-1].ends_paragraph and _is_full(size))):
            passages.append(Span(current[0].start, current[-1].end))
            last = current[-1]
            current = [last] if len(current) > 1 and last.bytes <= OVERLAP_BYTES else []
            size = sum(kept.bytes for kept in current)
        current.append(sentence)
        size += sentence.bytes
    if passages and _bytes(text[passages[-1].end : current[-1].end]) < LEAST_BYTES:
        passages[-1] = Span(passages[-1].start, current[-1].end)
    elif current:
        passages.append(Span(current[0].start, current[-1].end))
    return passages


def _is_full(size: int) -> bool:
    return size >= FULL * PASSAGE_BYTES


def _sentences(text: str) -> Iterator[_Sentence]:
    bounds = [0, *(found.end() for found in _BLANK_LINE.finditer(text)), len(text)]
    for start, stop in zip(bounds, bounds[1:], strict=False):
        said = [part for begin, end in _between(_SENTENCE_END, text, start, stop) for part in _cut(text, begin, end)]
        for place, (begin, end) in enumerate(said, 1):
            yield _Sentence(begin, end, _bytes(text[begin:end]), ends_paragraph=place == len(said))


def _between(ends: re.Pattern[str], text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield what lies between the ends that are found, and behind the last."""
    for found in ends.finditer(text, start, stop):
        yield start, found.end()
        start = found.end()
    yield start, stop


def _cut(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a sentence, one where it is no longer than a passage; none of white space."""
    while start < stop and text[start].isspace():
        start += 1
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    while stop - start > PASSAGE_BYTES or _bytes(text[start:stop]) > PASSAGE_BYTES:
        end = start + _fitting(text[start : start + PASSAGE_BYTES])
        breaks = [found.start() for found in _BREAK.finditer(text, start + (end - start) // 2, end)]
        end = breaks[-1] if breaks else end
        yield start, end
        start = end
        while start < stop and text[start].isspace():
            start += 1
    if start < stop:
        yield start, stop


def _fitting(text: str) -> int:
    """Return how many code points of a text fit into a passage, one at least."""
    kept = text.encode("utf-8", "replace")[:PASSAGE_BYTES].decode("utf-8", "ignore")
    return max(1, len(kept))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
