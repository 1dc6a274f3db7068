"""Quoting a row: whole where it is short, else its passages that match the question best. Pure functions.

A passage is a sentence or a line. Its score is the IDF-weighted share of the question's terms that it holds; a
term's document frequency is counted over the candidate texts of the response, so the same question over the same
rows always quotes the same text. Terms are those the full-text search would ask for; words compare without accents
and common English endings. Every character of a quotation is a character of the row, in the row's order; where
passages were left out between two that are quoted, GAP stands.

Contract: associations.quotes.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ..text.terms import Term

GAP = "\n…\n"
_LINE = re.compile(r"[^\r\n]+")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])")
_WORD = re.compile(r"[\w\u0300-\u036f]+")
_ENDINGS = ("ings", "ing", "edly", "ed", "es", "ly", "s")
_WINDOW_STARTS = 200


@dataclass(frozen=True, slots=True)
class Quote:
    """Text of a row; ``whole`` tells whether it is all of it."""

    text: str
    whole: bool


class Wanted:
    """What a quotation should hold: the terms of a question, each with its weight over some texts."""

    def __init__(self, terms: Iterable[Term], texts: Iterable[str]) -> None:
        terms = tuple(terms)
        self._words = {stem(fold(term.text)) for term in terms if term.kind == "word"}
        self._pieces = {fold(term.text) for term in terms if term.kind != "word"}
        self._texts, self._total = tuple(texts), 0.0
        self._weights: dict[str, float] | None = None

    @property
    def weights(self) -> dict[str, float]:
        """Return the weight of each term, counted when a text is first too long to be quoted whole."""
        if self._weights is None:
            n, df = len(self._texts), dict.fromkeys(self._words | self._pieces, 0)
            for text in self._texts:
                for term in self.held(text):
                    df[term] += 1
            self._weights = {
                term: math.log(1 + (n - count + 0.5) / (count + 0.5)) for term, count in sorted(df.items())
            }
            self._total = sum(self._weights.values())
        return self._weights

    def held(self, text: str) -> set[str]:
        """Return the terms that a text holds."""
        folded = fold(text)
        words = {stem(word) for word in set(_WORD.findall(folded))} if self._words else set()
        return (self._words & words) | {piece for piece in self._pieces if piece in folded}

    def share(self, text: str) -> float:
        """Return the weight of the terms that a text holds as a share of all, 0 to 1."""
        weights = self.weights
        return sum(weights[term] for term in sorted(self.held(text))) / self._total if self._total else 0.0


def fold(text: str) -> str:
    """Return a text in the form that terms are compared in: compatible, lower case, without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not "\u0300" <= c <= "\u036f"))


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Return a folded word without a common English ending, so that `deploys`, `deployed` and `deploying` are one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] in "bdgmnprt":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] == "e" else word


def passages(text: str) -> list[tuple[int, int]]:
    """Return the sentences and lines of a text as (start, end), without the white space around them."""
    out = []
    for line in _LINE.finditer(text):
        at = line.start()
        for cut in [m.span() for m in _SENTENCE_END.finditer(text, line.start(), line.end())] + [
            (line.end(), line.end())
        ]:
            end = cut[0] if cut[0] == cut[1] else cut[1]
            piece = text[at:end]
            start, stop = at + len(piece) - len(piece.lstrip()), at + len(piece.rstrip())
            if start < stop:
                out.append((start, stop))
            at = end
    return out


def quote(text: str, limit: int, wanted: Wanted) -> Quote:
    """Return a text whole when it has at most ``limit`` characters, else its best passages.

    Together they are no longer than ``limit``.
    """
    if len(text) <= limit:
        return Quote(text, True)
    spans = passages(text)
    scores = [wanted.share(text[start:end]) for start, end in spans]
    order = _preference(scores)
    if not order:
        return Quote(text[:limit], False)
    best = spans[order[0]]
    if best[1] - best[0] > limit:
        start, end = _window(text, *best, limit, wanted)
        return Quote(text[start:end], False)
    chosen = _fill(spans, order, limit)
    parts = [text[spans[chosen[0]][0] : spans[chosen[0]][1]]]
    for before, after in zip(chosen, chosen[1:], strict=False):
        parts.append(
            text[spans[before][1] : spans[after][1]]
            if after == before + 1
            else GAP + text[spans[after][0] : spans[after][1]]
        )
    return Quote("".join(parts), False)


def _preference(scores: list[float]) -> list[int]:
    """Return passages best first.

    Those that match nothing follow by their distance to a matching one, then in text order.
    """
    matching = sorted((i for i, score in enumerate(scores) if score > 0), key=lambda i: (-scores[i], i))
    places = sorted(matching)

    def distance(i: int) -> int:
        at = bisect_left(places, i)
        return min((abs(i - place) for place in places[max(0, at - 1) : at + 1]), default=0)

    return matching + sorted((i for i, score in enumerate(scores) if score <= 0), key=lambda i: (distance(i), i))


def _fill(spans: list[tuple[int, int]], order: list[int], limit: int) -> list[int]:
    """Return, in text order, the passages that fit into ``limit`` characters when taken in the preferred order."""

    def between(a: int, b: int) -> int:
        return spans[b][0] - spans[a][1] if b == a + 1 else len(GAP)

    chosen: list[int] = []
    used = 0
    for i in order:
        at = bisect_left(chosen, i)
        left, right = chosen[at - 1] if at else None, chosen[at] if at < len(chosen) else None
        cost = spans[i][1] - spans[i][0]
        cost += between(left, i) if left is not None else 0
        cost += between(i, right) if right is not None else 0
        cost -= between(left, right) if left is not None and right is not None else 0
        if used + cost <= limit:
            chosen.insert(at, i)
            used += cost
    return chosen


def _window(text: str, start: int, end: int, limit: int, wanted: Wanted) -> tuple[int, int]:
    """Return the part of one overlong passage that holds the most of the question.

    It is cut between words where there are any.
    """
    places = _places(text, start, end, wanted)
    best, best_weight, last = start, -1.0, start
    for i, (place, _) in enumerate(places[:_WINDOW_STARTS]):
        held = {term: at for at, term in places[i:] if at < place + limit}
        weight = sum(wanted.weights[term] for term in sorted(held))
        if weight > best_weight:
            best, best_weight, last = place, weight, max(held.values())
    room = max(0, limit - (last - best))
    left = min(max(start, best - room // 2), end - limit)
    right = left + limit
    if left > start:
        space = re.compile(r"\s").search(text, left, best)
        left = space.end() if space else left
    if right < end and not text[right].isspace():
        cut = max(text.rfind(" ", left, right), text.rfind("\t", left, right))
        right = cut if cut > last else right
    piece = text[left:right]
    return left + len(piece) - len(piece.lstrip()), left + len(piece.rstrip())


def _places(text: str, start: int, end: int, wanted: Wanted) -> list[tuple[int, str]]:
    """Return where the terms of a question stand in a passage, as (position, term) in text order."""
    out = [
        (m.start(), term)
        for m in _WORD.finditer(text, start, end)
        for term in (stem(fold(m.group())),)
        if term in wanted.weights
    ]
    # Lower case may change a text's length in rare alphabets; a place a little off moves the window, never the
    # quotation's letters.
    lowered = text[start:end].lower()
    for term in wanted.weights:
        at = lowered.find(term)
        while at >= 0 and len(out) < 10 * _WINDOW_STARTS:
            out.append((min(start + at, end - 1), term))
            at = lowered.find(term, at + 1)
    return sorted(out)
