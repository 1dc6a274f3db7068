"""What embedders answer and declare: values without the means to make them.

Contract: embedding.identity, gate.measured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ..model.identity import Embedded

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Part:
    """The numbers [start, stop) of a vector that are a vector of their own, and the share they have of a cosine."""

    start: int
    stop: int
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class Probes:
    """Texts about anything, which hardly a store answers: what an embedder's vectors have in common anyway.

    ``vectors`` is float32 of shape (texts, dimension), rows of unit length; ``exact`` holds the same as float64.
    """

    texts: tuple[str, ...]
    vectors: np.ndarray
    exact: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "exact", self.vectors.astype("float64"))


@dataclass(frozen=True, slots=True)
class Declared:
    """Where an embedder's cosines lie: used where neither a person nor a measurement gives the number.

    ``background`` is the mean cosine of texts that have nothing to do with each other. ``part`` is the part of the
    vectors that compares texts of different languages, None where the whole vector does. ``questions`` are
    questions about anything and ``keywords`` such words, None where nobody embedded any.
    """

    admission: float
    min_similarity: float
    cosine_floor: float
    cosine_ceil: float
    background: float = 0.2
    part: Part | None = None
    questions: Probes | None = None
    keywords: Probes | None = None


class Prefixes(NamedTuple):
    """What a model wants before a question and before a document, as it was trained; '' for none."""

    query: str = ""
    document: str = ""

    def before(self, texts: list[str], as_questions: bool) -> list[str]:
        """Return texts with what is wanted before each."""
        prefix = self.query if as_questions else self.document
        return [prefix + text for text in texts] if prefix else texts


class Advice(NamedTuple):
    """What an answer must say about vectors that it lacked; ``severity`` is hint or fault."""

    severity: str
    reason: str
    evidence: str
    runbook: str


class Embeddings(NamedTuple):
    """Vectors and the identity of the model that made them, which belong together even while a service changes its
    model.

    ``vectors`` is float32 of shape (texts, dimension), rows of unit length; ``model`` is '' when unknown.
    """

    vectors: np.ndarray
    model: str

    def each(self) -> list[Embedded]:
        """Return the vectors one by one, each with its model."""
        return [Embedded(vector, self.model) for vector in self.vectors]
