"""How far a row's cosine stands above what it would be anyway: the part of a blend's score that speaks of meaning.

Taken off is a share of the question's mean cosine with the store, of the row's mean cosine with it, of the row's mean
cosine with texts about anything, and of how far those cosines of the row spread. Notes of one person lie at 0.1, chat
lies at 0.4, "Wow, what did you get?" is near to every question and "hello" to every keyword; what stands out is the
same in all. What a question about anything is depends on its form: beside sentences stand sentences, beside one to four
words of a search box stand words.

Pure functions of vectors. The constants were chosen on some of the evaluation's sets and checked on the others.

Contract: blend.score, blend.language, blend.keywords.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...embedding.values import Declared, Part, Probes
from ...vectors.backend import Background

PART_WORTH = 0.7  # a cosine of the multilingual part, beside one of the whole vector
FOREIGN_PART, FOREIGN_WHOLE = 1.2, 0.2  # what both are worth together where the question is not in English
KNOWN_ENOUGH = 1.5  # where two of three words are known, the third may be misspelt
PRIOR_BACKGROUND = 0.2
PRIOR_ROWS = 8  # the background expected beforehand counts like this many rows


class Shares(NamedTuple):
    """What is taken off a cosine: shares of the mean cosine of the question and of the row with the store, of the row's
    mean cosine with the probes, and of the standard deviation of those. ``level`` is added, so that one gate fits all.
    """

    question: float
    row: float
    probes: float = 0.0
    spread: float = 0.0
    level: float = 0.0


UNPROBED = Shares(0.75, 0.75)
SENTENCE = Shares(0.45, 0.5, 0.75, 1.0, 0.04)
KEYWORDS = Shares(0.2, 0.0, 1.4, 1.5, -0.005)


@dataclass(frozen=True, slots=True)
class Form:
    """How a question is put, as its similarity is read.

    ``english``: whether the whole vector understands it. ``sentence``: 1 for a sentence, 0 for keywords, between them
    for what may be either. ``sense``: the share of its words that the embedder knows; the others point nowhere.
    """

    english: bool = True
    sentence: float = 1.0
    sense: float = 1.0


A_SENTENCE = Form()


def similarities(
    vectors: np.ndarray,
    query: np.ndarray,
    background: Background | None,
    declared: Declared | None,
    form: Form = A_SENTENCE,
    whole: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (cosine, similarity) of each row of ``vectors`` to a question, float64. Rows and ``query`` are of unit
    length.

    ``whole`` tells of each which of them is the row that it is a passage of; of a row it is itself. None: all are rows.

    An embedder whose vectors hold a multilingual part is asked twice, and the better answer counts: across languages
    only that part speaks. To a question that is not in English nearly all weight is the part's: to the rest any two
    texts of such a language are alike.
    """
    rows, question = vectors.astype(np.float64), query.astype(np.float64)
    similar = np.zeros(len(rows))
    for weight, shares, probes in _readings(declared, form.sentence):
        if weight:
            similar += weight * _similarity(rows, question, background, declared, shares, probes, form.english, whole)
    # What points nowhere claims nothing; what points away stays so.
    return rows @ question, np.where(similar > 0, similar * min(1.0, KNOWN_ENOUGH * form.sense) ** 2, similar)


def alike(vectors: np.ndarray, background: Background | None, declared: Declared | None) -> np.ndarray:
    """Return how far the cosine of each two rows stands above their background: float64, (n, n). Neither is a
    question.
    """
    rows = vectors.astype(np.float64)
    return np.array([_similarity(rows, row, background, declared, UNPROBED, None, True) for row in rows]).reshape(
        len(rows), len(rows)
    )


def _readings(declared: Declared | None, sentence: float) -> tuple[tuple[float, Shares, Probes | None], ...]:
    """Return as what a question is read, each with its weight."""
    if declared is None or declared.questions is None:
        return ((1.0, UNPROBED, None),)
    if declared.keywords is None:
        return ((1.0, SENTENCE, declared.questions),)
    return (sentence, SENTENCE, declared.questions), (1.0 - sentence, KEYWORDS, declared.keywords)


def _similarity(
    rows: np.ndarray,
    question: np.ndarray,
    background: Background | None,
    declared: Declared | None,
    shares: Shares,
    probes: Probes | None,
    english: bool,
    whole: np.ndarray | None = None,
) -> np.ndarray:
    part = None if declared is None else declared.part
    if part is not None and len(question) < part.stop:
        part = None
    with_any, with_any_in_part = _with_anything(rows, probes, part)
    above = _above(rows, question, background, declared, shares, with_any, whole)
    if part is None:
        return above + shares.level
    behind = background and background._replace(mean=_cut(background.mean, part))
    of_part = _above(_cut(rows, part), _cut(question, part), behind, declared, shares, with_any_in_part, whole)
    both = np.maximum(above, PART_WORTH * of_part) if english else FOREIGN_WHOLE * above + FOREIGN_PART * of_part
    return both + shares.level


def _with_anything(
    rows: np.ndarray, probes: Probes | None, part: Part | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the cosines of each row with each probe, and those of their parts; None without probes or a part."""
    if probes is None:
        return None, None
    asked = probes.exact
    if part is None:
        return rows @ asked.T, None
    inside = rows[:, part.start : part.stop] @ asked[:, part.start : part.stop].T
    outside = rows[:, : part.start] @ asked[:, : part.start].T + rows[:, part.stop :] @ asked[:, part.stop :].T
    return outside + inside, inside / part.share


def _cut(vectors: np.ndarray, part: Part) -> np.ndarray:
    """Return the part of the vectors, scaled so that products are its own cosines."""
    return vectors[..., part.start : part.stop] / part.share**0.5


def _above(
    rows: np.ndarray,
    question: np.ndarray,
    background: Background | None,
    declared: Declared | None,
    shares: Shares,
    with_anything: np.ndarray | None,
    whole: np.ndarray | None,
) -> np.ndarray:
    """Return how far the cosines stand above the shares of what question and rows have anyway.

    ``with_anything`` holds the cosines of each row with texts about anything; None where the embedder declares none.
    """
    cosines, expected = rows @ question, PRIOR_BACKGROUND if declared is None else declared.background
    of_question = of_rows = expected
    if background is not None and background.averaged:
        n, known = background.averaged, background.averaged
        of_question, of_rows = question @ background.mean * n, rows @ background.mean * n
        if background.rows == n:
            # Every row was averaged, so each is among its own background: in a store of three, an answer would hide
            # itself.
            with_whole = 1.0 if whole is None else np.einsum("ij,ij->i", rows, rows[whole])
            of_question = of_question - (cosines if whole is None else cosines[whole])
            of_rows, known = of_rows - with_whole, n - 1
        of_question, of_rows = (
            (mean + PRIOR_ROWS * expected) / (known + PRIOR_ROWS) for mean in (of_question, of_rows)
        )
    above = cosines - shares.question * of_question - shares.row * of_rows
    if with_anything is None:
        return above
    return above - shares.probes * with_anything.mean(axis=1) - shares.spread * with_anything.std(axis=1)
