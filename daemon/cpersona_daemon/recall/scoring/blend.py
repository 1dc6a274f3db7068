"""The blend: one absolute score from meaning and words, comparable across questions, and what it must reach.

    score = similarity + WORDS x coverage^2 + LENT x the better of what the rows stored just before and after have

What similarity is, ``similarity`` says. Coverage enters squared: a few shared common words are next to nothing, a whole
identifier is enough by itself.

Pure functions of numbers. The constants were chosen on some of the evaluation's sets and checked on the others.

Contract: blend.score, blend.gate, blend.language, passages.best.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...model.kinds import Rid
from ..types import Scored

WORDS = 0.7
WORDS_ALONE = 1.25  # where there is no vector to compare, 0.3 of the question's words are as good as the gate
# One of two keywords is what a row about the other thing holds too: a part of them says less than a part of a sentence.
SENTENCE_POWER, KEYWORDS_POWER = 2, 5
IDENTIFIED = 0.6  # what a rare identifier of the question is worth by itself, however long the question is
AROUND = 0.3  # what the rest of a long row adds to the words of a passage
LENT = 0.3
NEIGHBOUR_SECONDS = 1800.0
LEADERS = 20  # rows whose neighbours are looked at
DEPTH = 50  # rows that each list hands over at least

GATE = 0.11  # in a store of so many rows, or fewer
GATE_ROWS = 100
# The best of n scores of noise grows with ln n: so does what is asked of an answer.
GATE_PER_LOG = 0.045
UNKNOWN_NAME = 1.9  # a question that names what no row holds must be met this much better
# One that is little else than an identifier that no row holds: nothing near to it is as good as that.
ABSENT_IDENTIFIER = 100.0
# One about a person whom many rows name is near to all of those: by how much better it must be met if no row held any
# word of it, in a store of very many rows. In one of so many, by half of that: there most words stand in no row.
UNKNOWN_WORDS, WORDS_KNOWN_ROWS = 1.2, 100
FOLLOWING = 0.5  # once a row has reached the gate, others need this share of it
PRECISION_POWER = 0.4  # strict (beta 2) asks for 1.32 x the gate, lenient (0.5) for 0.76 x


def scored(
    cosine: float | None, similarity: float | None, coverage: float, identified: bool = False, sentence: float = 1.0
) -> Scored:
    """Return a row's own score, without what its neighbours lend it. ``sentence``: 1 for one, 0 for keywords."""
    words = (
        WORDS_ALONE * coverage**2
        if similarity is None
        else WORDS * coverage ** (SENTENCE_POWER * sentence + KEYWORDS_POWER * (1 - sentence))
    )
    return Scored(
        cosine, similarity or 0.0, coverage, max(words, IDENTIFIED) if identified else words, identified=identified
    )


def in_passage(passage: float, row: float) -> float:
    """Return what a passage covers of a question: what it holds itself, and a share of what all of its row does."""
    return (1.0 - AROUND) * passage + AROUND * row


def with_lent(scored: Scored, lent: float) -> Scored:
    return replace(scored, lent=lent) if lent else scored


def lend(scores: Mapping[Rid, Scored], pairs: Iterable[tuple[Rid, Rid]]) -> dict[Rid, float]:
    """Return what each row is lent by the better of its neighbours. ``pairs`` name two neighbours once, in either
    order.

    A turn of a dialogue often answers in words and a meaning that only the turn before it gives away, so that it need
    not have a score of its own. Without a vector nothing says that a row belongs to its neighbour: it must share a
    word.
    """
    best: dict[Rid, float] = {}
    for one, other in pairs:
        if one in scores and other in scores:
            best[one] = max(best.get(one, 0.0), scores[other].lends)
            best[other] = max(best.get(other, 0.0), scores[one].lends)
    return {
        rid: LENT * value
        for rid, value in best.items()
        if value > 0 and (scores[rid].cosine is not None or scores[rid].own > 0)
    }


def unfamiliarity(rows: int, name: bool, familiar: bool, share: float) -> float:
    """Return by what factor better a question must be met because of what none of the ``rows`` holds; at least 1. See
    coverage.Unmet.
    """
    if name:
        return UNKNOWN_NAME
    return 1.0 + UNKNOWN_WORDS * share * rows / (rows + WORDS_KNOWN_ROWS) if familiar else 1.0


def size_gate(rows: int) -> float:
    """Return the gate of a store of so many rows and passages whose own noise is not known."""
    return GATE + growth(GATE_ROWS, rows)


def growth(measured_at: int, rows: int) -> float:
    """Return how much higher the gate of ``rows`` rows is than that of ``measured_at``; small ones ask for the same."""
    return GATE_PER_LOG * math.log(max(rows, GATE_ROWS) / max(measured_at, GATE_ROWS))


def gate_of(gate: float, beta: float = 1.0, unfamiliarity: float = 1.0) -> float:
    """Return what the best row must reach: the store's gate, moved by the precision and by what is unfamiliar in the
    question. That adds the same in a store of any size.
    """
    return (gate + GATE * (unfamiliarity - 1.0)) * beta**PRECISION_POWER
