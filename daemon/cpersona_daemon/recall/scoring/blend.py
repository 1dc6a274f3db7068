"""The blend: one absolute score from meaning and words, comparable across questions, and what it must reach.

    score = similarity + WORDS x coverage^2 + LENT x the better of what the rows stored just before and after have

Similarity is the cosine above what unrelated texts have anyway: a share of the question's mean cosine with the store,
of the row's mean cosine with it, and of the row's mean cosine with questions about anything. Notes of one person lie at
0.1, chat lies at 0.4, and "Wow, what did you get?" is near to every question; what stands out is the same in all.
Coverage enters squared: a few shared common words are next to nothing, a whole identifier is enough by itself.

Pure functions of numbers. The constants were chosen on some of the evaluation's sets and checked on the others.

Contract: blend.score, blend.gate, blend.language.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from ...embedding.values import Declared, Part
from ...model.kinds import Rid
from ...vectors.backend import Background
from ..types import Scored

BACKGROUND_SHARE = (
    0.75  # of each mean cosine: the row's and the question's with the store, the row's with questions about anything
)
QUESTION_SHARE = 0.45  # of the question's, where the row's with questions about anything is known
PART_WORTH = 0.7  # a cosine of the multilingual part, beside one of the whole vector
FOREIGN_PART, FOREIGN_WHOLE = 1.2, 0.2  # what both are worth together where the question is not in English
WORDS = 0.7
WORDS_ALONE = 1.25  # where there is no vector to compare, 0.3 of the question's words are as good as the gate
IDENTIFIED = 0.6  # what a rare identifier of the question is worth by itself, however long the question is
LENT = 0.3
NEIGHBOUR_SECONDS = 1800.0
LEADERS = 20  # rows whose neighbours are looked at
DEPTH = 50  # rows that each list hands over at least

GATE = 0.11
UNKNOWN_NAME = 1.9  # a question that names what no row holds must be met this much better
# One that is little else than an identifier that no row holds: nothing near to it is as good as that.
ABSENT_IDENTIFIER = 100.0
# One about a person whom many rows name is near to all of those: by how much better it must be met if no row held any
# word of it, in a store of very many rows. In one of so many, by half of that: there most words stand in no row.
UNKNOWN_WORDS, WORDS_KNOWN_ROWS = 1.2, 100
FOLLOWING = 0.5  # once a row has reached the gate, others need this share of it
PRECISION_POWER = 0.4  # strict (beta 2) asks for 1.32 x the gate, lenient (0.5) for 0.76 x

PRIOR_BACKGROUND = 0.2
PRIOR_ROWS = 8  # the background expected beforehand counts like this many rows


def similarities(
    vectors: np.ndarray,
    query: np.ndarray,
    background: Background | None,
    declared: Declared | None,
    english: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (cosine, similarity) of each row of ``vectors`` to a question, float64. Rows and ``query`` are of unit
    length.

    An embedder whose vectors hold a multilingual part is asked twice, and the better answer counts: across languages
    only that part speaks. To a question that is not in English nearly all weight is the part's: to the rest any two
    texts of such a language are alike.
    """
    rows, question = vectors.astype(np.float64), query.astype(np.float64)
    asked = None if declared is None or declared.questions is None else declared.questions.mean
    return rows @ question, _similarity(rows, question, background, declared, asked, english)


def alike(vectors: np.ndarray, background: Background | None, declared: Declared | None) -> np.ndarray:
    """Return how far the cosine of each two rows stands above their background: float64, (n, n). Neither is a
    question.
    """
    rows = vectors.astype(np.float64)
    return np.array([_similarity(rows, row, background, declared, None, True) for row in rows]).reshape(
        len(rows), len(rows)
    )


def _similarity(
    rows: np.ndarray,
    question: np.ndarray,
    background: Background | None,
    declared: Declared | None,
    asked: np.ndarray | None,
    english: bool,
) -> np.ndarray:
    above = _above(rows, question, background, declared, asked)
    if declared is None or declared.part is None or len(question) < declared.part.stop:
        return above
    part = declared.part
    behind = background and background._replace(mean=_cut(background.mean, part))
    of_part = _above(
        _cut(rows, part), _cut(question, part), behind, declared, None if asked is None else _cut(asked, part)
    )
    return np.maximum(above, PART_WORTH * of_part) if english else FOREIGN_WHOLE * above + FOREIGN_PART * of_part


def _cut(vectors: np.ndarray, part: Part) -> np.ndarray:
    """Return the part of the vectors, scaled so that products are its own cosines."""
    return vectors[..., part.start : part.stop] / part.share**0.5


def _above(
    rows: np.ndarray,
    question: np.ndarray,
    background: Background | None,
    declared: Declared | None,
    asked: np.ndarray | None,
) -> np.ndarray:
    """Return how far the cosines stand above the shares of what question and rows have anyway.

    ``asked`` is the mean vector of questions about anything, None where the embedder declares none.
    """
    cosines, expected = rows @ question, PRIOR_BACKGROUND if declared is None else declared.background
    of_question = of_rows = expected
    if background is not None and background.averaged:
        n, known = background.averaged, background.averaged
        of_question, of_rows = question @ background.mean * n, rows @ background.mean * n
        if background.rows == n:
            # Every row was averaged, so each is among its own background: in a store of three, an answer would hide
            # itself.
            of_question, of_rows, known = of_question - cosines, of_rows - 1.0, n - 1
        of_question, of_rows = (
            (mean + PRIOR_ROWS * expected) / (known + PRIOR_ROWS) for mean in (of_question, of_rows)
        )
    if asked is None:
        return cosines - BACKGROUND_SHARE * (of_question + of_rows)
    return cosines - QUESTION_SHARE * of_question - BACKGROUND_SHARE * (of_rows + rows @ asked)


def scored(cosine: float | None, similarity: float | None, coverage: float, identified: bool = False) -> Scored:
    """Return a row's own score, without what its neighbours lend it."""
    words = (WORDS if similarity is not None else WORDS_ALONE) * coverage**2
    return Scored(
        cosine, similarity or 0.0, coverage, max(words, IDENTIFIED) if identified else words, identified=identified
    )


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


def gate_of(measured: float | None, beta: float, unfamiliarity: float = 1.0) -> float:
    """Return what the best row must reach: the gate, moved by the precision and by what is unfamiliar in the
    question.
    """
    return (GATE if measured is None else measured) * beta**PRECISION_POWER * unfamiliarity
