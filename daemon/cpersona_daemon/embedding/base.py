"""What an embedder is, whoever does the work.

Contract: embedding.identity, embedding.prefixes, gate.measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ..errors import EmbeddingFailure
from ..model.identity import VectorModel
from .turns import Piece, at_once
from .values import Declared, Embeddings, Prefixes

if TYPE_CHECKING:
    import numpy as np


class Embedder(Protocol):
    """Turns texts into unit vectors. Calls block, and several threads may call ``embed`` at once.

    ``resident`` says whether there is a model in memory that takes time to load. ``slice_size`` is the
    number of texts of one call that answers soon; ``query_threads`` how many queries may be under way.
    ``prefixes`` are put before what is given to ``embed``, by whoever knows whether it is a question.
    """

    name: str
    declared: Declared | None
    resident: bool
    slice_size: int
    query_threads: int
    prefixes: Prefixes

    @property
    def model(self) -> VectorModel:
        """Which model answers, and how wide its vectors are; of a service, those of its latest answer."""

    def expect(self, model: str, dimension: int) -> None:
        """Learn what the database's vectors are, so that an answer of another width can be refused."""

    def sense(self, words: Sequence[str]) -> float:
        """Return the share of some words that the vectors can know; 1 where nobody can tell."""

    def load(self) -> None:
        """Make ``embed`` ready. Raises EmbeddingFailure with what is missing and how to mend it."""

    def unload(self) -> None:
        """Give memory and connections back; ``load`` brings the model again."""

    def embed(self, texts: list[str], piece: Piece = at_once) -> Embeddings:
        """Return one unit row a text. Raises EmbeddingFailure; never a part of the answer.

        ``piece(kind, work)`` does one piece of the work, as short a one as the model allows, so that others can come in
        between.
        """


def unit_rows(raw: np.ndarray) -> np.ndarray:
    """Return the rows scaled to unit length as float32; raises EmbeddingFailure on a zero or non-finite row."""
    import numpy as np  # a start answers what needs no vector before numpy is loaded

    rows = np.asarray(raw, dtype=np.float64)
    if not np.isfinite(rows).all():
        raise EmbeddingFailure("the embedder answered a number that is not finite")
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    if not (largest > 0).all():
        raise EmbeddingFailure("the embedder answered a vector of zeros")
    rows = rows / largest  # keeps the squares of very large and very small numbers in range
    return np.ascontiguousarray(rows / np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None], dtype=np.float32)
