"""The embedder of a store that wants no vectors: recall is lexical, by choice.

Contract: advisory.says.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import EmbeddingFailure
from ..model.identity import VectorModel
from .turns import Piece, at_once
from .values import Declared, Embeddings, Prefixes


class NoneEmbedder:
    """Embeds nothing and says so."""

    name = "none"
    declared: Declared | None = None
    resident = False
    slice_size = 1
    query_threads = 1
    prefixes = Prefixes()
    model = VectorModel("", None)

    def expect(self, model: str, dimension: int) -> None:
        """Nothing is ever answered, so nothing is compared."""

    def sense(self, words: Sequence[str]) -> float:
        return 1.0

    def load(self) -> None:
        """There is nothing to load."""

    def unload(self) -> None:
        """There is nothing to give back."""

    def embed(self, texts: list[str], piece: Piece = at_once) -> Embeddings:
        raise EmbeddingFailure("no embedder is configured (CPERSONA_EMBEDDING_MODE=none)")
