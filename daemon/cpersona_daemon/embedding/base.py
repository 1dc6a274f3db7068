"""What an embedder is, whoever does the work.

Contract: contracts.md §5 (profiles), §12 (identity, normalised vectors, failures).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True, slots=True)
class Profile:
    """Where an embedder's cosines lie: used where neither a person nor a measurement gives the number."""

    admission: float
    min_similarity: float
    cosine_floor: float
    cosine_ceil: float


class Embedder(Protocol):
    """Turns texts into unit vectors. Calls block; one call runs at a time.

    ``identity`` names the model and its version, '' when unknown. ``dimension`` is None until known.
    """

    name: str
    profile: Profile | None

    @property
    def identity(self) -> str: ...

    @property
    def dimension(self) -> int | None: ...

    def load(self) -> None:
        """Make ``embed`` ready. Raises EmbeddingFailure with what is missing and how to mend it."""

    def unload(self) -> None:
        """Give the memory back; ``load`` brings the model again."""

    def embed(self, texts: list[str]) -> np.ndarray:
        """Return float32 rows of unit length, shape (len(texts), dimension). Raises EmbeddingFailure."""
