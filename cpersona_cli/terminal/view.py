"""A recall on a terminal: a table with the words of the question marked, and what its numbers mean when that is asked
for.

Contract: output.shapes, output.streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import render
from .output import Output

# Lines that a text gets in the table, fewer where they would push the first rows off the screen.
LINES = 3
_AROUND = 3  # the heading, the note below and the next prompt
# A shorter word is marked only where it stands as it is, not where another begins with it.
_STEM = 4
# kana, Chinese characters, Hangul: no spaces between words, or endings without number
_DENSE = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
SIGNALS = {
    "cosine": "how alike question and row are, -1 to 1; absolute, it compares between questions",
    "blend": "meaning above what unrelated rows of this store have, plus shared words and a share of its neighbours'; "
    "absolute",
    "rsf": "relative to this question: the best of nothing scores as high as the best of everything",
    "rrf": "a sum of reciprocal ranks, for a row that only words found; positions, not closeness",
    "block": "a long row beside the answer, for a passage that is near; nothing was compared",
    "confidence": "a cosine that age and recall history moved; below 1, absolute",
}
COLUMNS = {
    "rank": "1 is the best row; it is printed last, nearest the prompt",
    "coverage": "the share of the question's words that the row holds, rare words counting more",
    "rerank": "how well the row answers the question, says the reranker: 0 to 1",
    "prior": "what age took from the score",
}


def draw(out: Output, rows: list[dict], names: Sequence[str], query: str, whole: bool) -> None:
    """Print recalled rows as a table in which the question's words stand out."""
    lines = max(1, min(LINES, (out.rows() - _AROUND) // max(1, len(rows))))
    marks, room = marker(query), lines * out.columns() * 2 // 3
    cells = [
        [
            render.on_terminal(row, marks, room) if name == "preview" and not whole else render.field(row, name)
            for name in names
        ]
        for row in rows
    ]
    render.table(out, names, cells, whole, lines, marks)


def legend(out: Output, rows: list[dict]) -> None:
    """Explain on stderr the signals and numbers that these rows carry; without rows, every signal."""
    reasons = [row.get("match_reason") or {} for row in rows]
    said = {
        name: text
        for name, text in SIGNALS.items()
        if not rows or any(name in reason or reason.get("signal") == name for reason in reasons)
    }
    said |= {
        name: text for name, text in COLUMNS.items() if name == "rank" or any(name in reason for reason in reasons)
    }
    width = max(map(len, said))
    for name, text in said.items():
        out.warn(f"{name:<{width}}  {text}")
    out.warn(
        "a row is shown when the score of its signal reaches the gate; --explain shows the gate, `cpersona help "
        "scores` says more"
    )


def marker(query: str) -> render.Marks:
    """Return the function that gives the (start, end) places of a text's words that the question holds, in their order.

    A word counts as the question's when either begins with the other, which plurals and endings mostly do; case and
    accents do not matter. In a script without spaces two characters in a row are a word.
    """
    import re

    from cpersona_daemon.shared.stopwords import ENGLISH

    word = re.compile(f"([{_DENSE}]+)|(?:[^\\W{_DENSE}]|[\u0300-\u036f])+")
    asked = [(found[1], _folded(found[0])) for found in word.finditer(query)]
    pairs = {dense[at : at + 2] for dense, _ in asked if dense for at in range(len(dense) - 1)}
    words = {folded for dense, folded in asked if not dense}
    words = words - ENGLISH or words

    def marks(text: str) -> Iterator[tuple[int, int]]:
        for found in word.finditer(text):
            start, dense = found.start(), found[1]
            if dense:
                yield from ((start + at, start + at + 2) for at in range(len(dense) - 1) if dense[at : at + 2] in pairs)
            elif any(_alike(_folded(found[0]), other) for other in words):
                yield found.span()

    return marks


def _alike(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) >= _STEM and (one.startswith(other) or other.startswith(one)))


def _folded(word: str) -> str:
    """Return a word without case and accents. Unlike the index's spelling this neither parts a word nor joins two."""
    if word.isascii():
        return word.lower()
    import unicodedata

    return "".join(c for c in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(c))
