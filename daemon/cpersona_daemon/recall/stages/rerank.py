"""What a reranker said of the best rows, made one with their blend.

It was asked between two snapshots, about texts of the first: a row whose text is another one now has no score.

Contract: rerank.blend, rerank.asks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model.kinds import Rid
from ..run import Run
from ..scoring import reranked
from ..types import Candidate

MOST_CHARS = 2_000  # of a text: about what a reranker reads of it


def rerank(run: Run, rows: list[Candidate]) -> list[Candidate]:
    """Return the rows scored and ordered by both, where a reranker answered."""
    if not run.reranked:
        return rows
    said = {c.rid: run.reranked.get((c.rid, text_of(run, c))) for c in rows}
    return reranked.blended(rows, {rid: score for rid, score in said.items() if score is not None})


def texts_of(run: Run, rows: Sequence[Candidate]) -> dict[Rid, str]:
    """Return what is to be shown to a reranker of the best rows."""
    return {c.rid: text_of(run, c) for c in rows[: reranked.ASKED]}


def text_of(run: Run, row: Candidate) -> str:
    """Return what is shown to a reranker of one row: of a long one its nearest passage, else the beginning."""
    text = run.read[row.rid].text
    return (text if row.passage is None else text[row.passage.start : row.passage.end])[:MOST_CHARS]
