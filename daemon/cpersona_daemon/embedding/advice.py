"""What an answer says about the vector that its question lacks.

Contract: advisory.says.
"""

from __future__ import annotations

from ..errors import EmbeddingFailure
from .loading import FAILED, LOADING
from .values import Advice

FAULT_AFTER = 2  # failed questions in a row: one may be chance


def without_embedder() -> Advice:
    """Return what is said where no embedder is configured, by choice."""
    return Advice(
        "hint",
        "no embedder is configured, so recall is lexical only",
        "CPERSONA_EMBEDDING_MODE=none",
        "set CPERSONA_EMBEDDING_MODE to builtin or http and run `cpersona daemon restart`",
    )


def after(failure: EmbeddingFailure, state: str, problem: str | None, failures: int) -> Advice:
    """Return what is said after a failure, just caught, by an embedder in ``state`` that failed ``failures`` times in a
    row.

    A ``hint`` while the model is still loading and where one question failed; a ``fault`` when the model cannot be
    loaded and from the second failed question in a row on.
    """
    if state == FAILED:
        return Advice(
            "fault",
            "the embedding model cannot be loaded, so recall is lexical only",
            problem or "",
            "mend what the evidence names; loading is tried again every minute,"
            " `cpersona daemon restart` tries at once",
        )
    if failures >= FAULT_AFTER:
        return Advice(
            "fault",
            "query embedding fails, so recall is lexical only",
            f"{failures} query embeddings in a row failed; the last one: {problem}",
            "check the embedding backend with `cpersona daemon status`;"
            " the next query that can be embedded clears this",
        )
    if state == LOADING:
        return Advice(
            "hint",
            "the embedding model is still loading, so this recall was lexical only",
            f"state: {state}",
            "ask again in a moment; a recall waits up to 5 s for the model unless it is told --no-wait",
        )
    return Advice(
        "hint",
        "this question could not be embedded, so rows were found by words alone",
        str(failure),
        "ask again; if it stays, `cpersona daemon status` shows what the embedding backend lacks",
    )
